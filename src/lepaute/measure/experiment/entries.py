"""What a run writes down: its state, the entries of its journals, which become lists in its archive, and its tables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from lepaute.kit.json_values import ABSENT_IF_NONE
from lepaute.kit.later import pandas
from lepaute.measure.archive.metadata import Failure, LostNode, Phase, Session
from lepaute.measure.raw_files import Value

if TYPE_CHECKING:
    from lepaute.measure.experiment.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Settings:
    """How the machines are set (see docs/howto/experiments.md) and watched; 0 for not at all."""

    control: Mapping[str, Any] = field(default_factory=dict)
    warm_up_s: float = 0.0
    monitor_period_s: float = 0.0
    reference_period_s: float = 0.0


@dataclass(slots=True)
class RunState:
    """Grows while the run goes on; only the controller's main thread replaces what stands in it.

    kind      : of the run, where it is not a plain experiment
    created   : ISO 8601, UTC
    scheduler : its name, and what it says of the allocation
    nodes     : all that any session had, in order
    status    : complete, failed or partial, once the run has ended
    more      : what this kind of run adds to the metadata, and members of other versions
    """

    run_id: str = ""
    kind: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    name: str = ""
    script: str | None = None
    created: str = ""
    lepaute_version: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    python: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    seed: int = 1
    parameters: dict[str, str] = field(default_factory=dict)
    scheduler: dict[str, Any] = field(default_factory=dict)
    settings: Settings | None = field(default=None, metadata=ABSENT_IF_NONE)
    nodes: list[str] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    lost_nodes: list[LostNode] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    status: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    failure: Failure | None = field(default=None, metadata=ABSENT_IF_NONE)
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """JOURNAL: the journal it stands in."""

    JOURNAL: ClassVar[str]


@dataclass(frozen=True, slots=True)
class MeasuredRow(Entry):
    """A row of the design that has been measured; date: ISO 8601, UTC; wall_s: how long that took, None: not noted."""

    JOURNAL: ClassVar[str] = "done"
    design_row: int
    date: str = ""
    wall_s: float | None = None


@dataclass(frozen=True, slots=True)
class AddedRow(Entry):
    """A row of a further round, numbered on from the design's."""

    JOURNAL: ClassVar[str] = "rounds"
    round: int
    design_row: int
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReachedLevel(Entry):
    """State that a level of the design has reached at the end of the rounds; told: the same as a sentence."""

    JOURNAL: ClassVar[str] = "reached"
    level: Mapping[str, Value]
    column: str
    observations: int
    estimate: float | None
    low: float | None
    high: float | None
    reached: bool
    told: str


@dataclass(frozen=True, slots=True)
class ReferenceRun(Entry):
    """A run of the reference kernel: when (s since the epoch), and how long its two parts took."""

    JOURNAL: ClassVar[str] = "reference"
    node: str
    time_s: float
    compute_s: float
    memory_s: float


@dataclass(frozen=True, slots=True)
class MonitorEvent(Entry):
    """The start or stop of the monitor of a node, with the facts that its agent gives."""

    JOURNAL: ClassVar[str] = "monitor"
    node: str
    date: str
    event: str
    facts: Any


@dataclass(frozen=True, slots=True)
class Transfer(Entry):
    """A file that was written to a node or read from it."""

    JOURNAL: ClassVar[str] = "transfers"
    phase: str
    date: str
    node: str
    what: str
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Clone(Entry):
    """A repository that a node has cloned."""

    JOURNAL: ClassVar[str] = "repositories"
    node: str
    url: str
    revision: str
    commit: str
    folder: str


@dataclass(frozen=True, slots=True)
class CommandSeen(Entry):
    """What identifies a command that has ended: node, start (ISO 8601) and status; None: it did not start."""

    JOURNAL: ClassVar[str] = "commands"
    node: str
    start: str
    returncode: int | None


@dataclass(frozen=True, slots=True)
class Content:
    """Given by the class of the job, and by whoever closes the workspace of an interrupted run.

    kind    : in the metadata; journals: further ones that become lists
    tables  : of observations, by name; None: a table each of what was recorded
    warnings: about the run as a whole, made when it is archived
    """

    kind: str = "experiment"
    journals: tuple[str, ...] = ()
    tables: "Callable[[Workspace], Iterator[tuple[str, pandas.DataFrame]]] | None" = None
    warnings: "Callable[[Workspace], list[str]]" = lambda _workspace: []


EXPERIMENT = Content()
