"""The critical path of a run: the calls and messages that it took as long as.

It is walked backwards from the last end of all ranks. A rank's time before a date is on the path until a call in which
it waited: from there the path goes along the message, or the collective operation, to the rank that began last, and on
before that. So it has no gap, and is as long as the run. A simulation also tells when a receive waited for a message
under way; of a recording such a call stays with its rank, being neither computing nor waiting.

Source: Boehme, de Supinski, Geimer, Schulz, Wolf, "Scalable critical-path based performance analysis", IPDPS 2012.
"""

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.analysis.regions import places_of
from lepaute.simulate.trace.dependencies import Dependencies, probed
from lepaute.simulate.trace.messages import COLLECTIVES, IMMEDIATE_SENDS, PROBES, RECEIVES, SENDRECVS, SENDS, WAITS
from lepaute.simulate.trace.sums import sums_by
from lepaute.simulate.trace.table import BETWEEN_CALLS, GAPS, KERNEL, MPI, PHASE, SLEEPING, WAITING, Trace

#: What a piece of the path is.
PIECES = ("computing", "calls", "messages", "collective operations", "waiting for a core", "sleeping", "not recorded")
COMPUTES, CALLS, MESSAGE, COLLECTIVE, NO_CORE, SLEEPS, BLANK = range(len(PIECES))
#: Of the run: shorter gaps between calls come from rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Pieces from the end of the run to its beginning, each of which ends where the one before it begins.

    piece    : into PIECES
    rank     : that computes or is in the call; of a message or an operation the one that waits for it
    origin   : of a message the rank that sends it, of an operation that which comes last; else as rank
    receiver : of a message the rank that receives it; else as rank
    row      : of the trace, -1 where nothing is recorded
    """

    piece: NDArray[Any]
    rank: NDArray[Any]
    origin: NDArray[Any]
    receiver: NDArray[Any]
    row: NDArray[Any]
    start_s: NDArray[Any]
    end_s: NDArray[Any]

    @property
    def duration_s(self) -> NDArray[Any]:
        result: NDArray[Any] = self.end_s - self.start_s
        return result

    @property
    def length_s(self) -> float:
        return fsum(self.duration_s.tolist())

    def seconds_by(self, *keys: NDArray[Any], where: NDArray[Any] | None = None) -> dict[tuple[Any, ...], float]:
        """Seconds of the path, or of some of its pieces, by keys of each piece, the longest first."""
        chosen = slice(None) if where is None else where
        return sums_by(self.duration_s[chosen], *(key[chosen] for key in keys))


class _RankRows:
    """The rows of a rank that take time, in the order of their beginning."""

    def __init__(self, rows: NDArray[Any], start_s: NDArray[Any], end_s: NDArray[Any]) -> None:
        self.rows, self.start_s, self.end_s = rows.tolist(), start_s, end_s.tolist()
        latest = numpy.maximum.accumulate(end_s) if len(rows) else end_s
        self.longest = numpy.maximum.accumulate(numpy.where(end_s == latest, numpy.arange(len(rows)), 0)).tolist()

    def before(self, date_s: float, rounding_s: float) -> tuple[int, float]:
        """The row that the rank was in right before a date, -1 if in none, and from when on."""
        last = int(self.start_s.searchsorted(date_s)) - 1
        if last < 0:
            return -1, -numpy.inf
        if self.end_s[last] >= date_s - rounding_s:
            return self.rows[last], float(self.start_s[last])
        longest = self.longest[last]  # of another thread, or around the last one
        if self.end_s[longest] >= date_s - rounding_s:
            return self.rows[longest], self.end_s[last]
        return -1, self.end_s[longest]


def critical_path(trace: Trace, known: Dependencies, begin_s: float) -> CriticalPath:
    """The path of a trace with its own code (`with_own_code`), back to `begin_s`; known: its dependencies."""
    takes_time = ~trace.of(PHASE) & (trace.duration_s > 0)
    end_s = trace.end_s
    ranks: dict[int, _RankRows] = {}
    for rank in trace.ranks:
        low, high = numpy.searchsorted(trace.rank, (rank, rank + 1))
        rows = low + numpy.flatnonzero(takes_time[low:high])
        ranks[rank] = _RankRows(rows, trace.start_s[rows], end_s[rows])
    goes_to = _origins(trace, known).tolist()
    starts, kinds = trace.start_s.tolist(), _pieces(trace).tolist()
    is_send = trace.named(SENDS | IMMEDIATE_SENDS).tolist()
    is_collective, of_rank = trace.named(COLLECTIVES).tolist(), trace.rank.tolist()
    made: list[tuple[int, int, int, int, int, float, float]] = []
    rank = of_rank[int(end_s.argmax())] if len(trace) else 0
    date_s = float(end_s.max()) if len(trace) else begin_s
    rounding_s = _ROUNDING * max(abs(date_s), date_s - begin_s)
    while date_s > begin_s:
        row, from_s = ranks[rank].before(date_s, rounding_s)
        if row < 0:
            from_s = max(from_s, begin_s)
            made.append((BLANK, rank, rank, rank, -1, from_s, date_s))
            date_s = from_s
            continue
        other = goes_to[row]
        if other >= 0 and starts[other] < date_s:
            from_s, origin = max(starts[other], begin_s), of_rank[other]
            if is_collective[row]:
                made.append((COLLECTIVE, rank, origin, rank, row, from_s, date_s))
            else:
                ends = (origin, rank) if is_send[other] else (rank, origin)
                made.append((MESSAGE, rank, *ends, row, from_s, date_s))
            rank = origin
        else:
            from_s = max(from_s, begin_s)
            made.append((kinds[row], rank, rank, rank, row, from_s, date_s))
        date_s = from_s
    columns = list(zip(*made, strict=True)) if made else [()] * 7
    numbers = [numpy.array(column, dtype="int64") for column in columns[:5]]
    return CriticalPath(*numbers, *(numpy.array(column, dtype="float64") for column in columns[5:]))


def _origins(trace: Trace, known: Dependencies) -> NDArray[Any]:
    """Of each row the one on another rank that it waited for, -1 if it did not wait."""
    known = probed(trace, known)
    late = numpy.nan_to_num(trace.late_s) > 0
    under_way = numpy.nan_to_num(trace.transfer_s) + numpy.nan_to_num(trace.contention_s) > 0
    receives = trace.named(RECEIVES | WAITS | PROBES | SENDRECVS) & trace.named(SENDS | IMMEDIATE_SENDS)[known.row]
    begins_later = known.gap_s > 0
    waits = numpy.where(
        numpy.isnan(trace.late_s), begins_later, (begins_later & late) | (receives & (late | under_way))
    )
    waits &= (known.row >= 0) & (trace.rank[known.row] != trace.rank)
    return numpy.where(waits, known.row, -1)


def _pieces(trace: Trace) -> NDArray[Any]:
    """What each row is where the path stays with its rank."""
    piece = numpy.full(len(trace), BLANK)
    kernels = trace.of(KERNEL)
    piece[kernels] = COMPUTES
    piece[trace.of(MPI)] = CALLS
    for names, what in ((GAPS, BLANK), ({WAITING}, NO_CORE), ({SLEEPING}, SLEEPS)):
        piece[kernels & trace.named(names)] = what
    return piece


def activities(path: CriticalPath, trace: Trace) -> NDArray[Any]:
    """What each piece is, in words: a call by name and place, a message by the call that waited for it."""
    words = numpy.array(list(trace.names) or [""], dtype=object)
    named = words[trace.name[path.row]] if len(trace) else numpy.array([], dtype=object)
    is_program = numpy.isin(named.astype(str), list(BETWEEN_CALLS - {WAITING, SLEEPING}))
    named = numpy.where(is_program, "the program's own code", named)
    sites = places_of(trace)
    if sites:
        named = numpy.array([f"{name}{sites.get(row, '')}" for name, row in zip(named, path.row.tolist(), strict=True)])
    named = numpy.where(path.piece == MESSAGE, [f"message, {name}" for name in named], named)
    named = numpy.where(path.row < 0, "not recorded", named)
    result: NDArray[Any] = numpy.array([str(name).replace("_for_a_", " for a ") for name in named], dtype="str")
    return result
