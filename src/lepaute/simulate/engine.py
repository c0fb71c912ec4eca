"""What an engine is: it simulates runs of applications, under conditions that all runs of a prediction share."""

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions
    from lepaute.simulate.native import RunProgress
    from lepaute.simulate.run import SimulatedRun


class Simulator(Protocol):
    """An engine under fixed conditions.

    parallel     : whether several threads may run() at once
    tells_energy : whether computing and communicating are told apart so that the energy follows
    """

    parallel: bool
    tells_energy: bool

    def prepare(self, application: "Application") -> None:
        """Makes what all runs of `application` share; raises InputError for what cannot be simulated."""

    def progress_of(self, application: "Application") -> "RunProgress | None":
        """What tells how far a run has come, to be given to run(); None where the engine does not know."""
        ...

    def run(
        self, application: "Application", seed: int, *, first: bool, progress: "RunProgress | None" = None
    ) -> "SimulatedRun":
        """One run; the `first` of a prediction is the one that is traced or shown.

        Raises InputError for what does not fit, SimulationError where the application fails or ends in a deadlock.
        """
        ...

    def fidelity(self, run: "SimulatedRun") -> str:
        """How the run was simulated, in a word for the JSON."""
        ...

    def warnings(self, run: "SimulatedRun") -> list[str]:
        """What a reader must know about how the engine sees the platform; a sentence each."""
        ...


class Engine(Protocol):
    """An engine and its options: a value that can be sent to another process.

    samples : whether it can simulate windows of an application's steps in the place of all
    """

    samples: ClassVar[bool]

    def on(self, conditions: "Conditions") -> Simulator:
        """Its simulator under these conditions."""
        ...
