"""What every scheduler gives: nodes that commands can be started on, and a way to give them back."""

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Protocol

from lepaute.errors import InputError

#: A host name, or an alias of ssh's configuration; nothing that a shell or an option parser could take otherwise.
_NODE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")

#: What a reservation is for when nobody says how long, and what none is longer than.
DEFAULT_WALLTIME_S = 3600.0
MOST_WALLTIME_S = 366 * 86400.0
#: More nodes than this are a slip of the keyboard.
MOST_NODES = 10_000

#: Options of the command line that are called otherwise than the fields of Request.
_OPTIONS = {"walltime_s": "walltime", "ssh_config": "ssh-config", "properties": "constraint"}

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
    walltime_s : for how long; where None, a reservation is for DEFAULT_WALLTIME_S
    queue      : partition (Slurm) or queue (OAR)
    account    : account or project that pays
    site, cluster, image: of Grid'5000; an image is deployed
    properties : an expression of OAR's resource properties, or Slurm's constraint
    job        : an allocation that exists already
    ssh_config : a file given to ssh with -F
    """

    nodes: str | None = None
    count: int | None = None
    walltime_s: float | None = None
    queue: str | None = None
    account: str | None = None
    site: str | None = None
    cluster: str | None = None
    image: str | None = None
    properties: str | None = None
    job: str | None = None
    ssh_config: Path | None = None

    def options_besides(self, *names: str) -> list[str]:
        """The fields that say something and are none of these, as the command line calls them."""
        given = [each.name for each in fields(self) if getattr(self, each.name) is not None]
        return [_option(name) for name in given if name not in names]

    def words(self) -> list[str]:
        """The same request on the command line."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        if given["walltime_s"] is not None:
            given["walltime_s"] = math.ceil(given["walltime_s"])
        return [f"{_option(name)}={value}" for name, value in given.items() if value is not None]

    def refuse_all_but(self, scheduler: str, *used: str) -> None:
        """Raises InputError, which names the field, where one is given that this scheduler has no use for."""
        for option in self.options_besides(*used):
            known = ", ".join(_option(each) for each in used) or "nothing"
            raise InputError(f"{scheduler} has no use for {option}; it takes {known}")

    def duration_s(self) -> int:
        """How long to reserve nodes for, in whole seconds, at least one; raises InputError for what is no duration."""
        asked = DEFAULT_WALLTIME_S if self.walltime_s is None else self.walltime_s
        if not 0 < asked < MOST_WALLTIME_S:
            raise InputError(f"--walltime is {asked:g} s; nodes are reserved for more than 0 s and less than a year")
        return math.ceil(asked)

    def size(self, names: Sequence[str] = ()) -> int:
        """How many nodes to ask for, with `names` the nodes that are asked for by name; 1 where nothing says it."""
        if names and self.count is not None and self.count != len(names):
            raise InputError(f"--count is {self.count}, but --nodes names {len(names)}; give one of them")
        if self.count is not None and not 0 < self.count <= MOST_NODES:
            raise InputError(f"--count is {self.count}; nodes are counted from 1 to {MOST_NODES}")
        return len(names) or self.count or 1


def choose_nodes(there: tuple[str, ...], request: Request, wanted: tuple[str, ...], job: str) -> tuple[str, ...]:
    """The nodes of a job that are asked for: those named, or the first `count`, or all."""
    if wanted:
        request.size(wanted)
        absent = [name for name in wanted if name not in there]
        if absent:
            raise InputError(f"job {job} has {', '.join(there[:8])}, and not {', '.join(absent[:5])}")
        return wanted
    count = request.size() if request.count is not None else len(there)
    if count > len(there):
        raise InputError(f"--count is {count}, but job {job} has {len(there)} nodes")
    return there[:count]


def clock_time(duration_s: int) -> str:
    """HH:MM:SS, as Slurm and OAR take durations; hours beyond 99 get as many digits as they need."""
    return f"{duration_s // 3600:02d}:{duration_s // 60 % 60:02d}:{duration_s % 60:02d}"


def check_word(option: str, value: str) -> str:
    """A value that goes to a scheduler's own command or interface as one word; raises InputError for others."""
    if not value or not value.isprintable() or value.startswith("-"):
        raise InputError(
            f"{_option(option)} is {value[:60]!r}; give a text that is not empty, printable, without a - first"
        )
    return value


def _option(field_name: str) -> str:
    """A field as the command line calls it, which is where most people give it."""
    return f"--{_OPTIONS.get(field_name, field_name)}"


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
        """Waits until the nodes are there. Raises InputError or EnvironmentProblem, and leaves no reservation then."""
        ...

    def plan(self, request: Request) -> Plan: ...
