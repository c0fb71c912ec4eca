"""The entries of a run's journals, which become lists in its archive."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from lepaute.measure.experiment.raw_rows import Value


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
    """What a level of the design has reached at the end of the rounds; told: the same as a sentence."""

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
    """Of a command that has ended, what identifies it: node, start (ISO 8601) and status; None: it did not start."""

    JOURNAL: ClassVar[str] = "commands"
    node: str
    start: str
    returncode: int | None
