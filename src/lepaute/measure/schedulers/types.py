"""What every scheduler gives: nodes that commands can be started on, and a way to give them back."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from lepaute.kit.node_sets import check_node_name
from lepaute.measure.schedulers.request import Request
from lepaute.measure.switches import Switches

#: Called with what is being waited for.
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """A node, and how a program is started on it.

    prefix: the words before the program's own (ssh and its options, srun and its); empty on this machine
    joined: the program's words reach a shell there and are joined, each quoted, into one (ssh does that, srun does not)
    """

    name: str
    prefix: tuple[str, ...] = ()
    joined: bool = False

    def __post_init__(self) -> None:
        check_node_name(self.name)

    def argv(self, words: Sequence[str]) -> list[str]:
        """What to start here so that `words` start there, with standard input and output connected to here."""
        return [*self.prefix, shlex.join(words)] if self.joined else [*self.prefix, *words]


class Allocation(Protocol):
    """Nodes that are reserved until released."""

    @property
    def nodes(self) -> tuple[NodeAddress, ...]: ...

    @property
    def facts(self) -> Mapping[str, object]:
        """Job number, partition, what was asked for: goes into the archive's metadata."""
        ...

    def release(self) -> None:
        """Gives the nodes back; may be called more than once; leaves an existing job alone."""
        ...


@dataclass(slots=True)
class Given:
    """Nodes that need no reservation and no release."""

    nodes: tuple[NodeAddress, ...]
    facts: Mapping[str, object] = field(default_factory=dict)

    def release(self) -> None:
        """Nothing to give back."""


@dataclass(frozen=True, slots=True)
class Plan:
    """For a dry run: the commands or requests that an acquisition would make, one a line, nothing done."""

    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankLaunch:
    """How ranks of MPI are started on the nodes of a scheduler, from the first of them.

    launcher    : mpirun, or Slurm's srun, which needs no remote shell
    remote_shell: the words by which mpirun reaches the other nodes; (): by its own default
    """

    launcher: Literal["mpirun", "srun"] = "mpirun"
    remote_shell: tuple[str, ...] = ()


class Scheduler(Protocol):
    """Where nodes come from. One subclass a module; `lepaute.measure.schedulers.scheduler(name)` makes it.

    supports       : the fields of Request that it uses; `acquire` and `plan` refuse the others
    on_this_machine: programs are started without ssh or the like, by the Python that runs this
    """

    supports: ClassVar[tuple[str, ...]]
    on_this_machine: ClassVar[bool] = False

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        """Waits until the nodes are there. Raises InputError or EnvironmentProblem, and leaves no reservation then."""
        ...

    def plan(self, request: Request) -> Plan: ...

    def known_nodes(self, request: Request) -> tuple[str, ...] | None:  # noqa: ARG002 - for those that override it
        """The names of the nodes, where these are known before anything is reserved."""
        return None

    def switches(self) -> Switches:
        """Which nodes hang on which switch, as far as the scheduler knows."""
        return Switches()

    def rank_launch(self, request: Request) -> RankLaunch:  # noqa: ARG002
        """How ranks of MPI are started."""
        return RankLaunch()


def clock_time(duration_s: int) -> str:
    """HH:MM:SS, as Slurm and OAR take durations; hours beyond 99 get as many digits as they need."""
    return f"{duration_s // 3600:02d}:{duration_s // 60 % 60:02d}:{duration_s % 60:02d}"
