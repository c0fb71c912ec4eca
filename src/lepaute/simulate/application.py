"""What a simulation needs to know of an application: the protocol that all applications share.

A simulated application is a folder in `apps` with a frozen dataclass of its options that derives from `Application`, a
folder in `core/apps` with the program of a rank, and a line in the registry `apps/__init__.py`. It has to define
`title`, `ranks`, `label` and `events`, and the method that its `rate` names; all else has a default.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, get_type_hints

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.notebook import Public
from lepaute.kit.options import options_of
from lepaute.simulate.tasks import by_some_iterations

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.simulate import engine
    from lepaute.simulate.platform import schema
    from lepaute.simulate.prediction.prediction import Prediction
    from lepaute.simulate.smpi.emulate import Options
else:
    _core, schema = later("lepaute._core"), later("lepaute.simulate.platform.schema")
    engine = later("lepaute.simulate.engine")

#: Fields of applications that choose the models of the machine, and are not parameters of the simulated program.
OF_THE_MACHINE = frozenset({"threads_per_rank"})


class Rate(NamedTuple):
    """How an application counts its speed: the key of the JSON, which is also the method that gives the rate of a run
    of some seconds; and the unit in words."""

    key: str
    unit: str


GFLOPS = Rate("rate_gflops", "Gflop/s")


@dataclass(frozen=True)
class Files:
    """The input and output files of an application, as options of the command line: fields with metadata of options.

    input_option : that of the input file; empty where there is none
    several_in_file : where several values of an option go, for who gave them with commas; empty without such a file
    """

    input_option: ClassVar[str] = ""
    several_in_file: ClassVar[str] = ""

    @property
    def decides(self) -> frozenset[str]:
        """Fields of the application that the input file decides."""
        return frozenset()

    @property
    def inputs(self) -> list[Path | None]:
        """Files that are read."""
        return []

    @property
    def outputs(self) -> dict[str, Path | None]:
        """Files that are written, by option."""
        return {}

    def filled(self, values: "dict[str, Any]", platform: "Callable[[], schema.Platform]") -> "dict[str, Any]":
        """Values that the options leave to the platform; those of the command line are `values`."""
        return {}

    def combinations(self, others: Mapping[str, Any]) -> "list[Any] | None":
        """The runs that the input file describes, `others` being what it does not decide; None without one."""
        return None

    def refutes(self, application: "Application") -> str | None:
        """What an input file says against an application, a line; None where it says nothing."""
        return None

    def report(self, predictions: "Sequence[Prediction]") -> str | None:
        """The predictions in the form of the application's own report; None where it has none."""
        return None

    def write(self, predictions: "Sequence[Prediction]") -> None:
        """Writes the output file, where one is requested."""


@cache
def _hints(application_class: type) -> dict[str, Any]:
    return get_type_hints(application_class)


class Application(Public):
    """One run of an application: its parameters, checked when it is made, and how it is simulated.

    title, summary: for people: its name, and what it is; rate: None where time alone counts
    files        : its input and output files
    fidelities   : those that may be requested
    native       : whether the core has its program of a rank, which then simulates it by default
    kernel_models: whether its kernels take the time of the platform's models; if not, it says itself what they cost,
                   and all time inside communication counts as moving messages
    several      : options of which the command line takes several values, and predicts all combinations
    names_mapping: whether the JSON has the mapping where it is the usual one, too
    """

    __slots__ = ()
    _unlisted: ClassVar[frozenset[str]] = frozenset(
        "approximated choices code computes_between_probes core_name core_parameters cores_like detail_kinds details "
        "emulation estimated_run_s events fidelities files heading is_sampled kernel_costs kernel_models label "
        "names_mapping native noisy on own_draw own_kernels parameter_kinds problem rate rate_of run_details several "
        "share_done simulated_share summary title trace_ranks trace_rows uncertain uncertain_own_code "
        "unknown_collectives unused warnings".split()
    )

    title: ClassVar[str]
    summary: ClassVar[str] = ""
    files: ClassVar[type[Files]] = Files
    rate: ClassVar[Rate | None] = None
    fidelities: ClassVar[tuple[str, ...]] = ("auto", "full")
    kernel_models: ClassVar[bool] = True
    native: ClassVar[bool] = True
    several: ClassVar[tuple[str, ...]] = ("grid",)
    names_mapping: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """As the command line and the JSON have it."""
        return self.title.lower()

    @property
    def heading(self) -> str:
        """The title of tables and pictures."""
        return self.title

    @property
    def ranks(self) -> int:
        """Number of MPI processes."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The parameters in short, for people; the number of ranks last."""
        raise NotImplementedError

    @property
    def events(self) -> float:
        """What simulating one run costs: messages and turns of the ranks, about."""
        return float(self.ranks)

    @property
    def steps(self) -> int:
        """Parts that a trace can choose among, from 0."""
        return 1

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as a prediction's JSON shows them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def parameter_kinds(self) -> dict[str, Any]:
        """Name of each of the `parameters` -> its annotation, which decides the type of its column in a table."""
        hints = _hints(type(self))
        return {field.name: hints[field.name] for field in fields(self)}  # type: ignore[arg-type]

    def detail_kinds(self) -> dict[str, Any]:
        """The same of `run_details`."""
        return {}

    @property
    def unused(self) -> dict[str, str]:
        """Parameters whose value has no effect on the simulated run, beside the others; each with the reason."""
        return {}

    def rate_of(self, time_s: float) -> float | None:
        """The rate of a run of `time_s` seconds, in the unit of `rate`."""
        return None if self.rate is None else float(getattr(self, self.rate.key)(time_s))

    @property
    def problem(self) -> str:
        """What is solved, in short: runs of different problems are not better or worse than each other."""
        return ""

    def choices(self) -> dict[str, Any]:
        """What may be chosen for a problem, by the name that its users know; empty: sweeps do not compare choices."""
        return {}

    @property
    def threads_per_rank(self) -> int:
        """Cores that each rank computes on."""
        return 1

    @property
    def memory_bytes(self) -> int | None:
        """Memory of its data over all ranks; None where it is not known."""
        return None

    @property
    def computes_between_probes(self) -> bool:
        """Whether its ranks compute while they look for messages with MPI_Iprobe."""
        return False

    def on(self, platform: "schema.Platform") -> Self:
        """What is simulated on a platform, where that depends on what the platform has models of."""
        return self

    @property
    def own_draw(self) -> str:
        """What a seed decides besides the layers of uncertainty, in a word; empty where that is nothing."""
        return ""

    @property
    def unknown_collectives(self) -> bool:
        """Whether it has collective operations whose algorithms nobody said."""
        return False

    @property
    def approximated(self) -> tuple[str, ...]:
        """One sentence on its collective operations for whose algorithms others stand; none where all are exact."""
        return ()

    @property
    def noisy(self) -> bool:
        """Whether it draws noise of its own, besides that of the platform's models."""
        return False

    @property
    def uncertain(self) -> bool:
        """Whether what it says of its computing has errors of its own, besides those of the platform's models."""
        return False

    @property
    def uncertain_own_code(self) -> bool:
        """Whether it has code that was timed on another machine, and how long it takes on this one is not known."""
        return False

    @property
    def kernel_costs(self) -> tuple[Any, ...]:
        """What it says itself of kernels besides those of the platform: what `own_kernels` makes models of."""
        return ()

    def own_kernels(self, platform: "schema.Platform") -> "list[_core.MachineKernel]":
        """Their models, as the machine of a run has them."""
        return []

    def is_sampled(self, fidelity: str, *, traced: bool) -> bool:
        """Whether only windows of the run are simulated, for one of `fidelities`."""
        return False

    def simulated_share(self, fidelity: str) -> float:
        """About how much of the run is simulated."""
        return 1.0

    def share_done(self, begun_steps: int, *, sampled: bool) -> float:
        """The share of a run's work that is behind when its ranks have begun so many steps, all ranks together."""
        return min(1.0, begun_steps / (self.ranks * self.steps))

    @property
    def code(self) -> str:
        """SHA-256 of the program where it is none of ours: what decides results besides the parameters."""
        return ""

    @property
    def core_name(self) -> str:
        """Of its program in the core."""
        return self.name.replace("-", "_")

    def core_parameters(self, *, sampled: bool = False, trial_steps: int = 0, seed: int = 1) -> Any:
        """The parameters as the core takes them, whose names and words are those of the fields.

        trial_steps : simulate so many steps only, to see how long they take, where the application can; 0: a run
        seed : of the run, for an application that draws what it does
        """
        return core_parameters(self)

    def emulation(self, seed: int) -> "tuple[Path | None, Sequence[str], Options]":
        """Its executable (None: the engine chooses), the arguments of one run, and the options of SMPI."""
        raise InputError(f"{self.title} is not a program that SMPI could run; take the native engine")

    def warnings(self, platform: "schema.Platform", run: "engine.SimulatedRun", most_ranks_on_a_node: int) -> list[str]:
        """What a reader of the prediction must know, from one of its runs; a sentence each."""
        from lepaute.simulate.prediction.warnings import model_warnings

        return model_warnings(self, platform, run, most_ranks_on_a_node)

    def run_details(self, run: "engine.SimulatedRun") -> dict[str, Any]:
        """What the JSON of a run has besides seed, time and rate."""
        return {}

    def details(self, run: "engine.SimulatedRun") -> dict[str, Any]:
        """What the JSON of a prediction has of its first run besides what all applications have."""
        return {}

    def trace_rows(self, ranks: Sequence[int], steps: Sequence[int]) -> float:
        """Rows of a trace of these ranks and steps, about."""
        return 2.0 * self.events / self.steps / self.ranks * len(ranks) * len(steps)

    def trace_ranks(self) -> tuple[int, ...]:
        """Ranks worth tracing where not all can be."""
        return tuple(range(self.ranks))

    def cores_like(self, whole: Self, cores: list[int]) -> list[int]:
        """Cores for this run that lie to each other as those of a larger one, `whole`, do."""
        return cores[: self.ranks]

    @staticmethod
    def estimated_run_s(
        applications: "Sequence[Any]", runs: int, cores: int, measure: Callable[..., float], fidelity: str
    ) -> list[float] | None:
        """Seconds that one core takes to simulate a run of each; None where that is short, or nobody knows.

        measure : (small, whole, trial_steps = 0) simulates a smaller run in the place of a given one, or some of its
            steps, and returns the seconds of one core that it took
        """
        if not hasattr(applications[0], "iterations"):
            return None
        return by_some_iterations(applications, runs, cores, measure)


def core_parameters(application: Any) -> Any:
    """The core's parameters of an application: its fields by their names, words where there are choices."""
    described: Any = type(application)
    parameters = _parameters_class(described)()
    for name in _core_fields(described):
        setattr(parameters, name, getattr(application, name))
    return parameters


@cache
def _parameters_class(application: Any) -> type:
    """The class of the core that holds the parameters of an application.

    Raises ImportError where package and core disagree about the parameters, or about the choices of one.
    """
    parameters: type = getattr(_core, f"{application.__name__}Parameters")
    unknown = [name for name in _core_fields(application) if not hasattr(parameters, name)]
    if unknown:
        raise ImportError(
            f"the core has no {', '.join(unknown)} in {parameters.__name__}; build the package again, or add it there"
        )
    in_core: dict[str, list[str]] = getattr(parameters, "choices", dict)()
    options = options_of(application)
    for name, words in in_core.items():
        known = options[name].choices if name in options else ()
        if set(words) != set(known):
            raise ImportError(
                f"{application.__name__}.{name} is one of {', '.join(known)}, and of {', '.join(words)} in the core; "
                "build the package again, or make the two tables equal"
            )
    return parameters


def _core_fields(application: Any) -> list[str]:
    """The fields of an application that the core knows: all but those that are about the machine."""
    return [field.name for field in fields(application) if field.name not in OF_THE_MACHINE]
