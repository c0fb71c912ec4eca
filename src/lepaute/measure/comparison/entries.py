"""What a campaign writes down: entries of its journals, the tables made of its raw files, its facts for the archive."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas

from lepaute.measure.archive.mpi_campaign import CALLS, COLUMNS, KIND, call_table
from lepaute.measure.comparison.cases import NOTHING, Case, ComparisonRequest
from lepaute.measure.experiment.entries import Content, Entry
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.machine_load import disturbance_warnings
from lepaute.measure.raw_files import read_raw
from lepaute.stats.disturbance import beside_slow_causes, slow_sentinels

COMPLETE, FAILED, INTERRUPTED = "complete", "failed", "interrupted"


@dataclass(frozen=True, slots=True)
class MpirunBegun(Entry):
    """A start of mpirun; its files are raw/mpirunNNNN.r<rank>.csv and raw/mpirunNNNN.clocks.r<rank>.csv.

    block  : -1 for trials, -2 for starts that try one operation alone
    place  : in the order of the block; attempt: at this place
    cell   : what is measured in turn: the library, or its label with the number of ranks and the levels of factors
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
    cell: str = ""
    levels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.cell:  # of older campaigns
            object.__setattr__(self, "cell", self.library)

    @property
    def stem(self) -> str:
        return f"mpirun{self.mpirun:04d}"


@dataclass(frozen=True, slots=True)
class MpirunEnded(Entry):
    """How it ended; one that has no such entry was interrupted.

    library, block, place, attempt: as it was begun
    outcome: complete or failed; failure: why, in one line; started_s: since the epoch; wall_s: how long it took
    disturbed, causes: other programs used the machine; load: what it did meanwhile
    sentinels_s: before and after it, seconds of a call
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
    cell: str = ""
    sentinels_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.cell:
            object.__setattr__(self, "cell", self.library)


@dataclass(frozen=True, slots=True)
class CaseNumbers(Entry):
    """Numbers of a case in each mpirun; decided once, from the trials."""

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
    """An operation that a library cannot be measured with, and why; library: the cell."""

    JOURNAL: ClassVar[str] = "lacking"
    library: str
    operation: str
    form: str
    why: str


@dataclass(frozen=True, slots=True)
class AlgorithmSeen(Entry):
    """Algorithm that a library runs for a case, "unknown" if not seen; ranks: 0 if there is one number of them."""

    JOURNAL: ClassVar[str] = "algorithms"
    library: str
    operation: str
    form: str
    size_bytes: int
    algorithm: str
    ranks: int = 0

    @property
    def case(self) -> Case:
        return Case(self.operation, self.form, self.size_bytes)


RAW = "raw"
_CLOCKS = (
    *("mpirun", "rank", "before_batch", "method", "x0_ns", "y0_ns", "drift"),
    *("variance_ns2", "drift_variance", "covariance_ns", "bound_ns"),
)
_MPIRUNS = (
    *("mpirun", "library", "block", "place", "trial", "attempt", "outcome", "failure", "disturbed", "causes"),
    *("started_s", "wall_s", "seed", "ranks", "cell", "levels", "sentinel_before_s", "sentinel_after_s"),
)
#: Columns that the probe names otherwise.
_RENAMED = {"design_row": "batch", "before_row": "before_batch"}
#: `before_row` of the model that is made when the last batch is over.
_END = "end"


def _calls_and_clocks(
    workspace: Workspace, begun: Iterable[MpirunBegun]
) -> "tuple[pandas.DataFrame, pandas.DataFrame]":
    """The rows of calls and of clock models of these starts of mpirun; a last line that was cut short is left out."""
    calls: list[pandas.DataFrame] = []
    clocks: list[pandas.DataFrame] = []
    for each in begun:
        for rank in range(each.ranks):
            calls.append(_rows(workspace.folder / RAW / f"{each.stem}.r{rank}.csv", each.mpirun))
            clocks.append(_rows(workspace.folder / RAW / f"{each.stem}.clocks.r{rank}.csv", each.mpirun))
    return _joined(calls, COLUMNS[CALLS]), _joined(clocks, _CLOCKS)


def _rows(path: Path, mpirun: int) -> pandas.DataFrame:
    frame, _ = read_raw(path)
    if frame.empty:
        return frame
    frame = frame.rename(columns=_RENAMED)
    if "before_batch" in frame:  # after all batches: for none of them
        last = frame["before_batch"].astype(str) == _END
        frame = frame.assign(before_batch=frame["before_batch"].mask(last, 1 << 30).astype("int64"))
    return frame.assign(mpirun=mpirun)


def _joined(parts: "list[pandas.DataFrame]", columns: tuple[str, ...]) -> pandas.DataFrame:
    filled = [part for part in parts if not part.empty]
    return pandas.concat(filled, ignore_index=True)[list(columns)] if filled else pandas.DataFrame(columns=columns)


def ended_mpiruns(workspace: Workspace) -> list[MpirunEnded]:
    """Every start that ended; those beside a sentinel that is slow among all until now are disturbed by that too."""
    ended = workspace.noted(MpirunEnded)
    slow, result = slow_sentinels([seconds for start in ended for seconds in start.sentinels_s]), []
    for start in ended:
        causes = beside_slow_causes([slow[seconds] for seconds in start.sentinels_s if seconds in slow])
        result.append(replace(start, disturbed=start.disturbed or bool(causes), causes=(*start.causes, *causes)))
    return result


def _mpirun_table(workspace: Workspace) -> pandas.DataFrame:
    """A row a start of mpirun, as `archive.mpi_campaign.mpiruns` describes it."""
    ended = {entry.mpirun: entry for entry in ended_mpiruns(workspace)}
    rows = []
    for begun in workspace.noted(MpirunBegun):
        row = (
            asdict(begun)
            | {"levels": json.dumps(begun.levels)}
            | {"outcome": INTERRUPTED, "failure": "the campaign was interrupted", "disturbed": False}
        )
        row |= {"causes": "", "started_s": float("nan"), "wall_s": float("nan")}
        if (end := ended.get(begun.mpirun)) is not None:
            row |= {name: getattr(end, name) for name in ("outcome", "failure", "disturbed", "started_s", "wall_s")}
            row["causes"] = "; ".join(end.causes)
            row |= dict(zip(("sentinel_before_s", "sentinel_after_s"), end.sentinels_s, strict=False))
        rows.append(row)
    return pandas.DataFrame(rows, columns=list(_MPIRUNS))


def tables(workspace: Workspace) -> "Iterator[tuple[str, pandas.DataFrame]]":
    """The tables `calls`, `clocks` and `mpiruns`, if mpirun was started at all."""
    begun = workspace.noted(MpirunBegun)
    if not begun:
        return
    calls, clocks = _calls_and_clocks(workspace, begun)
    yield "calls", calls
    yield "clocks", clocks
    yield "mpiruns", _mpirun_table(workspace)


def warnings(workspace: Workspace) -> list[str]:
    starts: dict[tuple[int, int], list[tuple[str, ...]]] = {}
    for entry in ended_mpiruns(workspace):
        if entry.block >= 0 and entry.outcome == COMPLETE:
            starts.setdefault((entry.block, entry.place), []).append(entry.causes)
    return disturbance_warnings(starts.values(), "mpiruns", "mpiruns.json")


#: What the archive of a campaign holds.
COMPARISON = Content(KIND, ("mpiruns", "numbers", "mpiruns_chosen", "algorithms"), tables, warnings)


def measurable(workspace: Workspace, request: ComparisonRequest, labels: Sequence[str]) -> tuple[Case, ...]:
    """The cases that one of these libraries at least can be measured with."""
    lacking = {(each.library, each.operation, each.form) for each in workspace.noted(Lacking)}
    return tuple(
        case for case in request.cases if any((label, case.operation, case.form) not in lacking for label in labels)
    )


def trial_calls(workspace: Workspace, trial: int) -> pandas.DataFrame:
    """The calls of the complete trials, `trial` being the number in the place of their block's."""
    ended = workspace.noted(MpirunEnded)
    return _calls(workspace, {each.mpirun for each in ended if (each.block, each.outcome) == (trial, COMPLETE)})


def first_stage_calls(workspace: Workspace, blocks: int) -> pandas.DataFrame:
    """Calls of one complete mpirun at each place of the first blocks, an undisturbed one where there is."""
    chosen: dict[tuple[int, int], MpirunEnded] = {}
    for mpirun in ended_mpiruns(workspace):
        if 0 <= mpirun.block < blocks and mpirun.outcome == COMPLETE:
            before = chosen.get((mpirun.block, mpirun.place))
            if before is None or (before.disturbed and not mpirun.disturbed):
                chosen[mpirun.block, mpirun.place] = mpirun
    return _calls(workspace, {each.mpirun for each in chosen.values()})


def _calls(workspace: Workspace, numbers: set[int]) -> pandas.DataFrame:
    begun = [each for each in workspace.noted(MpirunBegun) if each.mpirun in numbers]
    # Every cell needs its own numbers: it stands for a library here.
    table = call_table(
        *_calls_and_clocks(workspace, begun), _mpirun_table(workspace).assign(library=lambda runs: runs["cell"])
    )
    return table[table["operation"] != NOTHING]
