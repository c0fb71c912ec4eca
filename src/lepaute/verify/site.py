"""Where real runs are made: this machine, or nodes that are lent (`node_site`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lepaute.verify.real_run import HplProgram, RealRun, check_machine, real_run
from lepaute.verify.sentinels import watch_here

if TYPE_CHECKING:
    from lepaute.measure.sentinel import Guard
    from lepaute.simulate import Hpl


class Site(Protocol):
    """What a campaign needs of the place of its real runs."""

    def check(self, hpl: "Hpl") -> None:
        """Raises InputError where the run does not fit there."""

    def run(self, hpl: "Hpl", timeout_s: float) -> RealRun:
        """Makes one real run; raises EnvironmentProblem where it fails or takes longer."""
        ...

    def watch(self, guard: "Guard") -> float:
        """Runs a sentinel on all cores; the seconds of a call. Raises EnvironmentProblem where it fails."""
        ...


@dataclass(frozen=True, slots=True)
class Here:
    """This machine."""

    program: HplProgram

    def check(self, hpl: "Hpl") -> None:
        check_machine(hpl)

    def run(self, hpl: "Hpl", timeout_s: float) -> RealRun:
        return real_run(hpl, self.program, timeout_s)

    def watch(self, guard: "Guard") -> float:
        return watch_here(guard)
