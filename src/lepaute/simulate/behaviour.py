"""How an application behaves on a platform: what engines and predictions ask of it.

Only an application whose program is none of the core's fields, or which has kernels, noise or windows of its own, needs
more than the defaults, and `events`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.options import options_of
from lepaute.simulate.tasks import MEASURED_EVENTS, ROUGH_EVENT_S, WORTH_MEASURING_S

if TYPE_CHECKING:
    from lepaute import _core
    from lepaute.simulate.application import Application
    from lepaute.simulate.apps.own.laying import Laid
    from lepaute.simulate.engine import SimulatedRun
    from lepaute.simulate.platform.schema import Platform
    from lepaute.simulate.smpi.emulate import Options
else:
    _core = later("lepaute._core")

#: Fields of applications that choose the models of the machine, and are not parameters of the simulated program.
OF_THE_MACHINE = frozenset({"threads_per_rank"})


@dataclass(frozen=True)
class Kernels:
    """What its computing takes its time from.

    modelled : whether from the platform's models; if not, the application says itself what computing costs, and all
        time inside communication counts as moving messages
    costs    : what it says itself of kernels; equal costs make equal models of a platform
    make     : makes these models, as the machine of a run has them
    exact    : names of what has a cost without an error
    extrapolated : names of costs that are used on other numbers of ranks than they were measured on
    probing  : whether ranks compute while they look for messages with MPI_Iprobe
    """

    modelled: bool = True
    costs: tuple[Any, ...] = ()
    make: "Callable[[], list[_core.MachineKernel]]" = list
    exact: tuple[str, ...] = ()
    probing: bool = False
    extrapolated: tuple[str, ...] = ()


class Behaviour:
    """One application on a platform, or on any where that is None."""

    def __init__(self, application: "Application", platform: "Platform | None") -> None:
        self.application: Any = application
        self._platform = platform

    @property
    def platform(self) -> "Platform":
        assert self._platform is not None, "what is asked depends on the platform"
        return self._platform

    @property
    def events(self) -> float:
        """Approximate cost of simulating one run: messages and turns of the ranks."""
        return float(self.application.ranks)

    @property
    def kernels(self) -> Kernels:
        return Kernels()

    @property
    def draws(self) -> frozenset[str]:
        """What a seed decides besides what the platform's models draw: names of layers, and a word for what is none."""
        return frozenset()

    @property
    def approximated(self) -> tuple[str, ...]:
        """A sentence on its collective operations for whose algorithms others stand; none where all are exact."""
        return ()

    @property
    def code(self) -> str:
        """SHA-256 of the program where it is none of ours: what decides results besides the parameters."""
        return ""

    def core_parameters(self, *, sampled: bool = False, trial_steps: int = 0, seed: int = 1) -> Any:
        """The parameters as the core takes them, whose names and words are those of the fields.

        trial_steps : simulate this many steps only, to see how long they take, where the application can; 0: a run
        seed : of the run, for an application that draws what it does
        """
        return core_parameters(self.application)

    def emulation(self, seed: int) -> "tuple[Path | None, Sequence[str], Options]":
        """Its executable (None: the engine chooses), the arguments of one run, and the options of SMPI."""
        raise InputError(f"{self.application.title} is not a program that SMPI could run; take the native engine")

    def proviso(self, run: "SimulatedRun") -> str:
        """Where a prediction holds only if something is so that nobody has told: where, and if what; else ""."""
        return ""

    def warnings(self, run: "SimulatedRun") -> list[str]:
        """Warnings about it from one of its runs; a sentence each."""
        return []

    def details(self, run: "SimulatedRun") -> dict[str, Any]:
        """Keys that the JSON of a prediction has of its first run besides what all applications have."""
        return {}

    def is_sampled(self, fidelity: str, *, traced: bool = False) -> bool:
        """Whether only windows of the run are simulated, for one of the fidelities."""
        return False

    def simulated_share(self, fidelity: str) -> float:
        """About how much of the run is simulated."""
        return 1.0

    def share_done(self, begun_steps: int, *, sampled: bool) -> float:
        """The share of a run's work that is behind when its ranks have begun this many steps, all ranks together."""
        return min(1.0, begun_steps / float(self.application.ranks * self.application.steps))

    def trace_rows(self, ranks: Sequence[int], steps: Sequence[int]) -> float:
        """Rows of a trace of these ranks and steps, about."""
        rows: float = 2.0 * self.events / self.application.steps / self.application.ranks * len(ranks) * len(steps)
        return rows

    def trace_ranks(self) -> tuple[int, ...]:
        """Ranks worth tracing where not all can be."""
        return tuple(range(self.application.ranks))

    def estimated_run_s(
        self, applications: Sequence[Any], runs: int, cores: int, measure: Callable[..., float], fidelity: str
    ) -> list[float] | None:
        """Seconds that one core takes to simulate a run of each; None if that is short, or nobody knows.

        measure : (application, trial_steps = 0) simulates a run, or some of its steps, and returns its CPU seconds
        """
        if not hasattr(self.application, "iterations"):  # each of which takes the same time
            return None
        events: list[float] = [application.on().events for application in applications]
        if sum(events) * ROUGH_EVENT_S * runs / cores < WORTH_MEASURING_S:
            return None
        times_s = []
        for application, count in zip(applications, events, strict=True):
            iterations = max(1, min(application.iterations, int(MEASURED_EVENTS * application.iterations / count)))
            times_s.append(measure(replace(application, iterations=iterations)) * application.iterations / iterations)
        return times_s


class LaidBehaviour(Behaviour):
    """Behaviour of an application whose `laid` knows all that it will do."""

    def laid(self, seed: int = 1) -> "Laid":
        """What the core runs."""
        raise NotImplementedError

    @property
    def events(self) -> float:
        return self.laid().events

    def core_parameters(self, *, sampled: bool = False, trial_steps: int = 0, seed: int = 1) -> Any:
        return self.laid(seed).parameters

    def details(self, run: "SimulatedRun") -> dict[str, Any]:
        """What a saved prediction tells without the file of the class, or the recording."""
        application = self.application
        return {"program": {"title": application.title, "label": application.label, "ranks": application.ranks}}


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

    Raises ImportError if package and core disagree about the parameters, or about the choices of one.
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
