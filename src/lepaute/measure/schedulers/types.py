"""What every scheduler gives: nodes that commands can be started on, and a way to give them back."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lepaute.errors import InputError

#: A host name, or an alias of ssh's configuration; nothing that a shell or an option parser could take otherwise.
_NODE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")

#: Told what is being waited for.
Tell = Callable[[str], None]


def check_node_name(name: str) -> str:
    """The name, if it can be one of a node; raises InputError otherwise."""
    if not _NODE_NAME.fullmatch(name):
        raise InputError(f"{name[:60]!r} cannot be the name of a node; give host names such as node[1-32]")
    return name


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


@dataclass(frozen=True, slots=True)
class Request:
    """What an experiment asks of a scheduler; what a scheduler has no use for it refuses with InputError.

    nodes      : a node set such as node[1-32], or None
    count      : how many nodes, where the scheduler chooses them
    walltime_s : for how long
    queue      : partition (Slurm) or queue (OAR)
    account    : account or project that pays
    site, cluster, image: of Grid'5000; an image is deployed
    properties : an expression of OAR's resource properties, or Slurm's constraint
    job        : an allocation that exists already
    ssh_config : a file given to ssh with -F
    """

    nodes: str | None = None
    count: int | None = None
    walltime_s: float = 3600.0
    queue: str | None = None
    account: str | None = None
    site: str | None = None
    cluster: str | None = None
    image: str | None = None
    properties: str | None = None
    job: str | None = None
    ssh_config: Path | None = None


class Allocation(Protocol):
    """Nodes that are ours until released."""

    @property
    def nodes(self) -> tuple[NodeAddress, ...]: ...

    @property
    def facts(self) -> Mapping[str, object]:
        """Job number, partition, what was asked for: goes into the archive's metadata."""
        ...

    def release(self) -> None:
        """Gives the nodes back; may be called more than once; an allocation found, not made, is left alone."""
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


class Scheduler(Protocol):
    """One module each; `lepaute.measure.schedulers.scheduler(name)` finds it."""

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        """Waits until the nodes are there. Raises InputError or EnvironmentProblem; leaves no reservation behind then."""
        ...

    def plan(self, request: Request) -> Plan: ...
