"""What an experiment needs of a scheduler; a class for each batch system derives from Scheduler."""

import math
import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from lepaute.errors import InputError
from lepaute.kit.command import run_command
from lepaute.kit.node_sets import MAX_NODES, check_node_name, parse_node_set
from lepaute.kit.options import flag_of, option, options_of

#: Classes of links: between two nodes of one switch, and of two.
SAME_SWITCH, ACROSS = "same-switch", "across"


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches that nodes hang on, each by the names of its nodes; no node hangs on two. Empty: not known.

    What is above these switches is not told apart: two nodes of different ones are across.
    """

    nodes: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name in (name for names in self.nodes for name in names):
            if name in seen:
                raise InputError(f"--switches has node {name} twice; a node hangs on one switch")
            seen.add(name)

    def of(self, node: str) -> int | None:
        """The number of its switch, None if that is not known."""
        return next((number for number, names in enumerate(self.nodes) if node in names), None)

    def check(self, names: Sequence[str]) -> None:
        """Raises InputError if nodes are on none of them, of which links could not be told apart."""
        if missing := [name for name in names if self.of(name) is None]:
            raise InputError(f"--switches names no switch of {', '.join(missing)[:80]}; give that of every node")

    def distance(self, first: str, second: str) -> str | None:
        """SAME_SWITCH or ACROSS, None if the switch of either is not known."""
        one, other = self.of(first), self.of(second)
        if one is None or other is None:
            return None
        return SAME_SWITCH if one == other else ACROSS

    def among(self, nodes: Sequence[str]) -> "Switches":
        """The same of these nodes alone; switches without any of them are left out, as are all where one is unknown."""
        kept = [tuple(name for name in names if name in nodes) for names in self.nodes]
        if any(self.of(name) is None for name in nodes):
            return Switches()
        return Switches(tuple(names for names in kept if names))


def switches_of(text: str) -> Switches:
    """Switches in `a,b;c,d`: the nodes of each switch, as node sets. Raises InputError for anything else."""
    parts = [part.strip() for part in text.split(";")]
    if not all(parts):
        raise InputError(f"--switches is {text[:60]!r}; give the nodes of each switch, such as node[1-16];node[17-32]")
    return Switches(tuple(parse_node_set(part) for part in parts))


#: A reservation is for so long unless something else is asked for, and none is longer than MAX_WALLTIME_S.
DEFAULT_WALLTIME_S = 3600.0
MAX_WALLTIME_S = 366 * 86400.0
#: The fields that apply to an existing job: which of its nodes are used, and how they are reached.
_USED_IN_A_JOB = ("job", "nodes", "count", "image", "ssh_config")


def walltime_of(text: str) -> float:
    """Seconds of 90, 1:30 (minutes), or 2:00:00; raises InputError for an invalid walltime."""
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch("[0-9]{1,9}", each) for each in parts) or not int("".join(parts)):
        raise InputError(f"--walltime is {text!r}; give seconds, or h:mm:ss such as 2:00:00")
    return float(sum(60**place * int(part) for place, part in enumerate(reversed(parts))))


@dataclass(frozen=True, slots=True)
class Request:
    """Which nodes, for how long; a scheduler refuses a field that it does not support with InputError.

    A further field is a line here; commands, `words` and messages follow. walltime_s: DEFAULT_WALLTIME_S where None.
    """

    nodes: str | None = field(default=None, metadata=option("Node set such as node[1-32]."))
    count: int | None = field(default=None, metadata=option("How many nodes to ask for.", minimum=1))
    walltime_s: float | None = field(
        default=None,
        metadata=option(
            "Of the reservation: seconds, h:mm:ss; default: an hour.",
            name="walltime",
            metavar="TIME",
            parse=walltime_of,
        ),
    )
    queue: str | None = field(default=None, metadata=option("Queue; partition of Slurm."))
    account: str | None = field(default=None, metadata=option("Account or project to charge."))
    image: str | None = field(default=None, metadata=option("System image that Kadeploy deploys on nodes of OAR."))
    properties: str | None = field(
        default=None, metadata=option("Constraint of Slurm, properties of OAR.", name="constraint")
    )
    job: str | None = field(default=None, metadata=option("Use the nodes of this existing job."))
    ssh_config: Path | None = field(default=None, metadata=option("Configuration file for ssh."))

    def node_names(self) -> tuple[str, ...]:
        """The nodes that are requested by name; () where none are. Raises InputError as `parse_node_set`."""
        return () if self.nodes is None else parse_node_set(self.nodes)

    def flags_besides(self, fields: Collection[str]) -> list[str]:
        """The fields that are set and not among these, as the command line spells them."""
        return [flag_of(Request, name) for name in self._non_default_fields() if name not in fields]

    def words(self) -> list[str]:
        """The same request on the command line."""
        values = {name: getattr(self, name) for name in self._non_default_fields()}
        if "walltime_s" in values:
            values["walltime_s"] = math.ceil(values["walltime_s"])
        return [f"{flag_of(Request, name)}={value}" for name, value in values.items()]

    def _non_default_fields(self) -> list[str]:
        return [name for name in options_of(Request) if getattr(self, name) is not None]

    def refuse_all_but(self, supported: Collection[str], by: str) -> None:
        """Raises InputError for a field that is set and not supported; by: the scheduler, for the message."""
        for unsupported in self.flags_besides(supported):
            known = ", ".join(flag_of(Request, name) for name in supported)
            what = f"supported: {known}" if known else "leave it out"
            raise InputError(f"{by} does not support {unsupported}; {what}")

    def check_ssh_config(self) -> None:
        """Raises InputError if the configuration file of ssh is not there."""
        if self.ssh_config is not None and not self.ssh_config.is_file():
            raise InputError(f"{self.ssh_config}: no such file; give --ssh-config a configuration file for ssh")

    def duration_s(self) -> int:
        """How long to reserve nodes for, in whole seconds, at least one; raises InputError for an invalid walltime."""
        walltime_s = DEFAULT_WALLTIME_S if self.walltime_s is None else self.walltime_s
        if not 0 < walltime_s < MAX_WALLTIME_S:
            raise InputError(f"--walltime is {walltime_s:g} s; give more than 0 s and less than a year")
        return math.ceil(walltime_s)

    def size(self, names: Sequence[str] = ()) -> int:
        """How many nodes to ask for; names: those asked for by name. 1 where nothing says it."""
        if names and self.count is not None and self.count != len(names):
            raise InputError(f"--count is {self.count}, but --nodes names {len(names)}; give one of them")
        if self.count is not None and not 0 < self.count <= MAX_NODES:
            raise InputError(f"--count is {self.count}; give 1 to {MAX_NODES} nodes")
        return len(names) or self.count or 1

    def choose(self, job_nodes: tuple[str, ...], job: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Nodes of an existing job that were asked for: `names`, or the first `count`, or all."""
        if names:
            self.size(names)
            absent = [name for name in names if name not in job_nodes]
            if absent:
                raise InputError(f"job {job} has nodes {', '.join(job_nodes[:8])}, but not {', '.join(absent[:5])}")
            return names
        count = self.size() if self.count is not None else len(job_nodes)
        if count > len(job_nodes):
            raise InputError(f"--count is {count}, but job {job} has {len(job_nodes)} nodes")
        return job_nodes[:count]


def check_word(option: str, value: str) -> str:
    """The value of an option that goes to a scheduler's own command as one word; raises InputError for others."""
    if not value or not value.isprintable() or value.startswith("-"):
        raise InputError(f"{option} is {value[:60]!r}; give printable text that is not empty and does not start with -")
    return value


#: Called with what is being waited for.
Tell = Callable[[str], None]
#: How long a batch system may take to answer a command.
ANSWER_S = 60.0


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


@dataclass(slots=True)
class Allocation:
    """Nodes that are ours until released.

    facts: job number, partition, what was asked for: goes into the archive's metadata
    end  : ends the job that was submitted for them; None if there is nothing to give back
    """

    nodes: tuple[NodeAddress, ...]
    facts: Mapping[str, object] = field(default_factory=dict)
    end: Callable[[], None] | None = field(default=None, repr=False)

    def release(self) -> None:
        """Gives the nodes back; may be called more than once; leaves an existing job alone."""
        end, self.end = self.end, None
        if end is not None:
            end()


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


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node as an administrator sees it: its state in the scheduler's words, and the reason given for it, or "".

    out_of_service: it takes no new jobs (drained or down)
    """

    state: str = ""
    reason: str = ""
    out_of_service: bool = False


class Scheduler(Protocol):
    """Where nodes come from. One subclass a module; `lepaute.measure.schedulers.scheduler(name)` makes it.

    supports       : the fields of Request that it uses; `acquire` and `plan` refuse the others
    on_this_machine: programs are started without ssh or the like, by the Python that runs this
    idle_tests     : how nodes are tested while nobody uses them; None: they cannot be
    worker_jobs    : the class of dask-jobqueue that submits workers of a study; None: they cannot be submitted
    """

    supports: ClassVar[tuple[str, ...]]
    on_this_machine: ClassVar[bool] = False
    idle_tests: ClassVar["type[BatchSystem] | None"] = None
    worker_jobs: ClassVar[str | None] = None

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
        return RankLaunch()

    def node_states(self, partition: str | None = None) -> dict[str, NodeState]:  # noqa: ARG002
        """The nodes of a partition, or all; raises EnvironmentProblem without an answer, InputError for none."""
        raise InputError("this scheduler does not tell the states of its nodes; those of slurm are known")

    def drain(self, node: str, reason: str) -> None:  # noqa: ARG002
        """Takes a node out of service once its jobs have ended.

        Raises EnvironmentProblem if the scheduler refuses, or somebody has drained the node meanwhile.
        """
        raise InputError("nodes of this scheduler cannot be drained from here; those of slurm can")


#: The name of all jobs of tests.
JOB_NAME = "lepaute-node-test"
JobState = Literal["pending", "running"]


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """Somebody else's job that waits for nodes. nodes: those that it names, none where any will do; count: how many."""

    job: str
    count: int = 1
    nodes: frozenset[str] = frozenset()


class BatchSystem(Protocol):
    """What tests of idle nodes need. Each method raises EnvironmentProblem without an answer, or where it is refused.

    Made with (partition, account, qos), each None if not given; raises InputError for one that it does not have.
    """

    scheduler: ClassVar[str]

    def __init__(self, partition: str | None = None, account: str | None = None, qos: str | None = None) -> None: ...

    def idle(self) -> dict[str, bool]:
        """Nodes that tests may use, and whether each is idle. Raises InputError if there is none."""
        ...

    def waiting(self) -> list[WaitingJob]:
        """Jobs of others that could start if more of these nodes were free; none where it ends our tests for them."""
        ...

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        """States of those of our jobs that have not ended."""
        ...

    def submit(self, node: str, words: Sequence[str], log: Path, walltime_s: int) -> str:
        """Submits a command for one whole node, below the priority of other jobs; its job id."""
        ...

    def cancel(self, job: str) -> None: ...


def clock_time(duration_s: int) -> str:
    """HH:MM:SS, as Slurm and OAR take durations; hours beyond 99 get as many digits as they need."""
    return f"{duration_s // 3600:02d}:{duration_s // 60 % 60:02d}:{duration_s % 60:02d}"


def answer_of(argv: Sequence[str], what: str, timeout_s: float = ANSWER_S) -> str:
    """Output of a command of a batch system; raises EnvironmentProblem if it fails."""
    return run_command(list(argv), what=what, timeout_s=timeout_s).stdout


def word_options(values: Mapping[str, tuple[str, str | None]]) -> list[str]:
    """Words such as --partition=NAME, of {option there: (our option, value)}; those without a value are left out."""
    return [f"{there}={check_word(ours, value)}" for there, (ours, value) in values.items() if value is not None]


def existing_job(
    request: Request, scheduler: str, called: str, supports: Collection[str], form: str, variable: str | None = None
) -> str | None:
    """The job of `job`, or the one that we are in (`variable`); None if a new one is to be submitted.

    called: the scheduler's own name, for messages; form: a pattern of its job ids
    Raises InputError for an id that is none, and for fields that the scheduler does not support.
    """
    job = request.job or (os.environ.get(variable) if variable is not None else None)
    if job is not None and not re.fullmatch(form, job):
        raise InputError(f"{job[:40]!r} is not a valid {called} job id")
    if request.job is not None:
        request.refuse_all_but([name for name in supports if name in _USED_IN_A_JOB], f"{scheduler} with --job")
    request.refuse_all_but(supports, scheduler)
    return job


def warn_of_unused(request: Request, job: str, tell: Tell) -> None:
    """Says which options only a new job would use; job: the existing one, such as "Slurm job 7"."""
    if unused := request.flags_besides(_USED_IN_A_JOB):
        tell(f"using the existing {job}; {', '.join(unused)} {'is' if len(unused) == 1 else 'are'} ignored")
