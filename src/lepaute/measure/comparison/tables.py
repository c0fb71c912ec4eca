"""The tables of a campaign: the rows of its raw files, with the number of the mpirun that each came from."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.archive.mpi_campaign import KIND
from lepaute.measure.comparison.entries import COMPLETE, INTERRUPTED, MpirunBegun, MpirunEnded
from lepaute.measure.experiment.content import Content
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.probes import read_raw

if TYPE_CHECKING:
    import pandas

RAW = "raw"
_CALLS = (
    *("mpirun", "batch", "operation", "form", "size_bytes", "synchronisation", "call", "rank"),
    *("start_ns", "returned_ns", "end_ns", "marks", "window_ns"),
)
_CLOCKS = (
    *("mpirun", "rank", "before_batch", "method", "x0_ns", "y0_ns", "drift"),
    *("variance_ns2", "drift_variance", "covariance_ns", "bound_ns"),
)
#: Columns that the probe names otherwise.
_RENAMED = {"design_row": "batch", "before_row": "before_batch"}
#: `before_row` of the model that is made when the last batch is over.
_END = "end"


def calls_and_clocks(workspace: Workspace, begun: Iterable[MpirunBegun]) -> "tuple[pandas.DataFrame, pandas.DataFrame]":
    """The rows of calls and of clock models of these starts of mpirun; a last line that was cut short is left out."""
    import pandas

    calls: list[pandas.DataFrame] = []
    clocks: list[pandas.DataFrame] = []
    for each in begun:
        for rank in range(each.ranks):
            calls.append(_rows(workspace.folder / RAW / f"{each.stem}.r{rank}.csv", each.mpirun))
            clocks.append(_rows(workspace.folder / RAW / f"{each.stem}.clocks.r{rank}.csv", each.mpirun))
    return _joined(calls, _CALLS), _joined(clocks, _CLOCKS)


def _rows(path: Path, mpirun: int) -> "pandas.DataFrame":
    frame, _ = read_raw(path)
    if frame.empty:
        return frame
    frame = frame.rename(columns=_RENAMED)
    if "before_batch" in frame:  # after all batches: for none of them
        last = frame["before_batch"].astype(str) == _END
        frame = frame.assign(before_batch=frame["before_batch"].mask(last, 1 << 30).astype("int64"))
    return frame.assign(mpirun=mpirun)


def _joined(parts: "list[pandas.DataFrame]", columns: tuple[str, ...]) -> "pandas.DataFrame":
    import pandas

    filled = [part for part in parts if not part.empty]
    return pandas.concat(filled, ignore_index=True)[list(columns)] if filled else pandas.DataFrame(columns=columns)


def mpirun_table(workspace: Workspace) -> "pandas.DataFrame":
    """A row a start of mpirun, as `archive.mpi_campaign.mpiruns` describes it."""
    import pandas

    ended = {entry.mpirun: entry for entry in workspace.noted(MpirunEnded)}
    rows = []
    for begun in workspace.noted(MpirunBegun):
        end = ended.get(begun.mpirun)
        rows.append(
            {
                "mpirun": begun.mpirun,
                "library": begun.library,
                "block": begun.block,
                "place": begun.place,
                "trial": begun.trial,
                "attempt": begun.attempt,
                "outcome": end.outcome if end else INTERRUPTED,
                "failure": end.failure if end else "the campaign was interrupted",
                "disturbed": bool(end and end.disturbed),
                "causes": "; ".join(end.causes) if end else "",
                "started_s": end.started_s if end else float("nan"),
                "wall_s": end.wall_s if end else float("nan"),
                "seed": begun.seed,
            }
        )
    return pandas.DataFrame(rows)


def tables(workspace: Workspace) -> "Iterator[tuple[str, pandas.DataFrame]]":
    """The tables `calls`, `clocks` and `mpiruns`, if mpirun was started at all."""
    begun = workspace.noted(MpirunBegun)
    if not begun:
        return
    calls, clocks = calls_and_clocks(workspace, begun)
    yield "calls", calls
    yield "clocks", clocks
    yield "mpiruns", mpirun_table(workspace)


def warnings(workspace: Workspace) -> list[str]:
    """What the archive shall say of disturbed starts."""
    attempts: dict[tuple[int, int], list[MpirunEnded]] = {}
    for entry in workspace.noted(MpirunEnded):
        if entry.block >= 0 and entry.outcome == COMPLETE:
            attempts.setdefault((entry.block, entry.place), []).append(entry)
    disturbed = [each for each in attempts.values() if each[0].disturbed]
    if not disturbed:
        return []
    repeated = sum(len(each) > 1 for each in disturbed)
    remaining = sum(all(entry.disturbed for entry in each) for each in disturbed)
    return [
        f"{len(disturbed)} of {len(attempts)} mpiruns were disturbed by other load (mpiruns.json): "
        f"{repeated} repeated, {remaining} without an undisturbed attempt; all are kept and marked"
    ]


#: What the archive of a campaign holds.
COMPARISON = Content(KIND, ("mpiruns", "numbers", "mpiruns_chosen", "algorithms"), tables, warnings)
