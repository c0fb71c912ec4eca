"""One run of an application as users describe it: its parameters, and what commands and tables show of them.

An application is a frozen dataclass of its options that derives from `Application` and defines `about`, `ranks`,
`label` and the method that its rate names; all else has a default. How it is simulated is its `Behaviour`.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_type_hints

from lepaute.kit.later import later
from lepaute.kit.notebook import Public
from lepaute.simulate.behaviour import Behaviour

if TYPE_CHECKING:
    from lepaute.simulate.platform import schema
    from lepaute.simulate.prediction.prediction import Prediction
else:
    schema = later("lepaute.simulate.platform.schema")


class Rate(NamedTuple):
    """How an application counts its speed: the key of the JSON, which is also the method that gives the rate of a run
    of some seconds; and the unit in words."""

    key: str
    unit: str

    def of(self, application: "Application", time_s: float) -> float:
        """The rate of a run of `time_s` seconds."""
        return float(getattr(application, self.key)(time_s))


GFLOPS = Rate("rate_gflops", "Gflop/s")


@dataclass(frozen=True)
class Files:
    """The input and output files of an application, as options of the command line: fields with metadata of options.

    input_option : that of the input file; empty if there is none
    """

    input_option: ClassVar[str] = ""

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

    def checked(self, application: "Application") -> tuple[bool, str] | None:
        """Whether an application is as an input file has it, and a line on that; None if none was to be compared."""
        return None

    def report(self, predictions: "Sequence[Prediction]") -> str | None:
        """The predictions in the form of the application's own report; None if it has none."""
        return None

    def write(self, predictions: "Sequence[Prediction]") -> None:
        """Writes the output file, where one is requested."""


@dataclass(frozen=True)
class About:
    """Facts known of all runs of an application.

    title, summary : for people: its name, and what it is
    core       : name of its program in the core; empty if SMPI alone runs it
    behaviour  : how it is simulated
    rate       : None if time alone counts
    files      : its input and output files
    several    : options of which the command line takes several values, and predicts all combinations
    fidelities : those that may be requested
    names_mapping : whether the JSON has the mapping where it is the usual one, too
    parameter_kinds : annotations of `parameters()`, which decide the types of columns; those of the fields unless given
    run_details : what the JSON of a run has of its emulation: members of `EmulatedRun`, with annotations
    """

    title: str
    summary: str = ""
    core: str = ""
    behaviour: type[Behaviour] = Behaviour
    rate: Rate | None = None
    files: type[Files] = Files
    several: tuple[str, ...] = ()
    fidelities: tuple[str, ...] = ("auto", "full")
    names_mapping: bool = False
    parameter_kinds: Mapping[str, Any] = field(default_factory=dict)
    run_details: Mapping[str, Any] = field(default_factory=dict)


class Problem(NamedTuple):
    """What is solved: runs of different problems are not better or worse than each other.

    words   : in short
    choices : what may be chosen for it, by the name that its users know; without any, sweeps do not compare choices
    """

    words: str = ""
    choices: Mapping[str, Hashable] = MappingProxyType({})


class Application(Public):
    """One run of an application: its parameters, checked when it is made."""

    __slots__ = ()

    about: ClassVar[About]

    @property
    def ranks(self) -> int:
        """Number of MPI processes."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The parameters in short, for people; the number of ranks last."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The name for people."""
        return self.about.title

    @property
    def subject(self) -> str:
        """What takes the time that is predicted, in a sentence."""
        return self.title

    @property
    def name(self) -> str:
        """As the command line and the JSON have it."""
        return self.title.lower()

    @property
    def rate(self) -> Rate | None:
        """How it counts its speed; None if time alone counts."""
        return self.about.rate

    @property
    def steps(self) -> int:
        """Parts that a trace can choose among, from 0."""
        return 1

    @property
    def threads_per_rank(self) -> int:
        """Cores that each rank computes on."""
        return 1

    @property
    def memory_bytes(self) -> int | None:
        """Memory of its data over all ranks; None if it is not known."""
        return None

    @property
    def unused(self) -> dict[str, str]:
        """Parameters whose value has no effect on the simulated run, beside the others; each with the reason."""
        return {}

    @property
    def problem(self) -> Problem:
        """What is solved, and what may be chosen for it."""
        return Problem()

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as a prediction's JSON shows them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def on(self, platform: "schema.Platform | None" = None) -> Behaviour:
        """How it behaves on a platform; without one, what of that depends on none."""
        return self.about.behaviour(self, platform)


def parameter_kinds(application: Application) -> Mapping[str, Any]:
    """Name of each parameter -> its annotation, which decides the type of its column in a table."""
    return application.about.parameter_kinds or _kinds_of_fields(type(application))


@cache
def _kinds_of_fields(described: Any) -> dict[str, Any]:
    hints = get_type_hints(described)
    return {field.name: hints[field.name] for field in fields(described)}
