"""The entries of a campaign's journals."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from lepaute.measure.comparison.cases import Case
from lepaute.measure.experiment.entries import Entry

COMPLETE, FAILED, INTERRUPTED = "complete", "failed", "interrupted"


@dataclass(frozen=True, slots=True)
class MpirunBegun(Entry):
    """A start of mpirun; its files are raw/mpirunNNNN.r<rank>.csv and raw/mpirunNNNN.clocks.r<rank>.csv.

    block  : -1 for trials, -2 for starts that try one operation alone
    place  : in the order of the block; attempt: at this place
    """

    JOURNAL: ClassVar[str] = "mpiruns_begun"
    mpirun: int
    library: str
    block: int
    place: int
    trial: bool
    attempt: int
    seed: int
    ranks: int

    @property
    def stem(self) -> str:
        return f"mpirun{self.mpirun:04d}"


@dataclass(frozen=True, slots=True)
class MpirunEnded(Entry):
    """How it ended; one that has no such entry was interrupted.

    library, block, place, attempt: as it was begun
    outcome: complete or failed; failure: why, in one line; started_s: since the epoch; wall_s: how long it took
    disturbed, causes: other programs used the machine; load: what it did meanwhile
    """

    JOURNAL: ClassVar[str] = "mpiruns"
    mpirun: int
    library: str
    block: int
    place: int
    attempt: int
    outcome: str
    failure: str
    disturbed: bool
    causes: tuple[str, ...]
    started_s: float
    wall_s: float
    load: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseNumbers(Entry):
    """What a case gets in each mpirun; decided once, from the trials."""

    JOURNAL: ClassVar[str] = "numbers"
    operation: str
    form: str
    size_bytes: int
    calls: int
    window_ns: int

    @property
    def case(self) -> Case:
        return Case(self.operation, self.form, self.size_bytes)


@dataclass(frozen=True, slots=True)
class FirstStage(Entry):
    """How many mpiruns of each library come before their number is decided, and what the trials decided, as sentences.

    planned_s: what the trials and these take together
    """

    JOURNAL: ClassVar[str] = "first_stage"
    mpiruns: int
    planned_s: float
    derivation: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MpirunsChosen(Entry):
    """How many mpiruns of each library there are, decided once; needed: by each case, None: more than counts."""

    JOURNAL: ClassVar[str] = "mpiruns_chosen"
    mpiruns: int
    capped: bool
    derivation: tuple[str, ...]
    needed: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lacking(Entry):
    """An operation that a library cannot be measured with, and why."""

    JOURNAL: ClassVar[str] = "lacking"
    library: str
    operation: str
    form: str
    why: str


@dataclass(frozen=True, slots=True)
class AlgorithmSeen(Entry):
    """What a library runs for a case, "unknown" where that is not seen."""

    JOURNAL: ClassVar[str] = "algorithms"
    library: str
    operation: str
    form: str
    size_bytes: int
    algorithm: str

    @property
    def case(self) -> Case:
        return Case(self.operation, self.form, self.size_bytes)
