"""Where the time of each rank went, and what that amounts to: who waits most and for whom, and in which step."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.kit.text import percent
from lepaute.simulate.trace.dependencies import dependencies_of
from lepaute.simulate.trace.messages import COLLECTIVES, PROBES, WAITS
from lepaute.simulate.trace.table import (
    BETWEEN_CALLS,
    CATEGORIES,
    COMPUTING,
    GAPS,
    KERNEL,
    MPI,
    PHASE,
    WAITING,
    Trace,
    with_rows,
)

COMPUTE, OVERHEAD, LATE, TRANSFER, CONTENTION, PROBE, OWN_CODE, NO_CORE, OTHER = range(len(CATEGORIES))
#: Names of the categories of a breakdown, in their order, as parts of the time.
WORDS = (
    "computing",
    "call overhead",
    "waiting",
    "transfer",
    "contention",
    "probing",
    "the program's own code",
    "waiting for a core",
    "not accounted for",
)
#: Parts with less of the time are not in the sentence, and a rank that waits less does not wait.
MIN_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class KernelShare:
    """All calls of one kernel or MPI routine."""

    name: str
    kind: str
    calls: int
    time_s: float
    share: float  # of the time of all ranks
    median_s: float


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds for which a rank waits for another; each pair once.

    rank, whom, time_s : of the same length; whom is -1 if that is not known
    """

    rank: NDArray[Any]
    whom: NDArray[Any]
    time_s: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Seconds by category.

    ranks, by_rank_s : the ranks, and shape (ranks, categories); a row adds up to the time of the rank
    steps, by_step_s : the panels, and shape (steps, categories), the sum over ranks; without "other"
    waits            : who waits for whom; they add up to what is late
    by_name          : calls of each kernel and MPI routine, the longest first
    estimated        : late, transfer come from pairing sends with receives, as a recording does not know them;
                       contention and overhead are then parts of transfer
    unknown          : routines of which some calls tell neither group nor requests: their waiting is part of transfer
    """

    ranks: tuple[int, ...]
    by_rank_s: NDArray[Any]
    steps: tuple[int, ...]
    by_step_s: NDArray[Any]
    waits: Waits
    by_name: tuple[KernelShare, ...]
    estimated: bool
    unknown: tuple[str, ...]


def breakdown_of(trace: Trace) -> Breakdown:
    """The breakdown of the calls in a trace; a rank's time goes from the first to the last call in the trace."""
    trace = with_own_code(trace)
    parts, whom = split(trace)
    ranks = trace.ranks
    by_rank = numpy.zeros((len(ranks), len(CATEGORIES)))
    calls = ~trace.of(PHASE)
    numpy.add.at(by_rank, numpy.searchsorted(ranks, trace.rank)[calls], parts[calls])
    if len(trace):
        first = float(trace.start_s.min())
        first = min(first, 0.0) if trace.metadata.get("whole", False) else first
        span = float(trace.end_s.max()) - first
        # Where calls of several threads overlap, there is less own code than between them.
        in_calls = by_rank.sum(axis=1) - by_rank[:, OWN_CODE]
        by_rank[:, OWN_CODE] = numpy.clip(span - in_calls, 0.0, by_rank[:, OWN_CODE])
        by_rank[:, OTHER] = numpy.maximum(span - by_rank.sum(axis=1), 0.0)
    steps = [int(step) for step in numpy.unique(trace.step[calls]) if step >= 0]
    by_step = numpy.zeros((len(steps), len(CATEGORIES)))
    in_step = calls & (trace.step >= 0)
    numpy.add.at(by_step, numpy.searchsorted(steps, trace.step[in_step]), parts[in_step])
    return Breakdown(
        tuple(ranks),
        by_rank,
        tuple(steps),
        by_step,
        _waits_of(trace, parts, whom),
        _by_name(trace, float(by_rank.sum())),
        is_estimated(trace),
        not_separated(trace),
    )


def with_own_code(trace: Trace) -> Trace:
    """Trace of a recording with a row of the kernel `computing` wherever a rank is in no call: its own code.

    A rank's time goes from begins_s to ends_s of the metadata, else from the beginning of the trace to its last call. A
    simulation is left as it is: its rows are all that it computed, and where steps were chosen, others were not traced.
    """
    if not trace.is_recording or not len(trace) or trace.named((COMPUTING,)).any():
        return trace
    calls = trace.where(~trace.of(PHASE))
    first = 0.0 if trace.metadata.get("whole", False) else float(trace.start_s.min())
    begins_s, ends_s = (trace.metadata.get(name) or [] for name in ("begins_s", "ends_s"))
    parts = []
    for rank in calls.ranks:
        low, high = numpy.searchsorted(calls.rank, (rank, rank + 1))
        start_s, end_s = calls.start_s[low:high], numpy.maximum.accumulate(calls.end_s[low:high])
        begin = begins_s[rank] if rank < len(begins_s) else first
        end = ends_s[rank] if rank < len(ends_s) else end_s[-1]
        gap_from = numpy.concatenate(([min(begin, start_s[0])], end_s))
        gap_to = numpy.concatenate((start_s, [max(end, end_s[-1])]))
        is_gap = gap_to - gap_from > 0
        gaps = {"start_s": gap_from[is_gap], "duration_s": gap_to[is_gap] - gap_from[is_gap]}
        parts.append(gaps | {"rank": rank, "kind": KERNEL, "name": len(trace.names)})
    return with_rows(trace, parts, (*trace.names, COMPUTING), trace.metadata, "recording")


def split(trace: Trace) -> tuple[NDArray[Any], NDArray[Any]]:
    """The duration of each row by category, shape (rows, categories); 0 for phases, which hold other rows. And the rank
    that each row waits for, -1 if that is not known.

    A kernel computes, and time of which only the passing is known is the program's own code; gaps are neither. A probe
    probes; what it waited is late. An MPI call that knows its parts has them, and the rest is overhead. Of one that
    does not, the time before the other side had begun is late, and the rest transfer.
    """
    parts = numpy.zeros((len(trace), len(CATEGORIES)))
    kernels = trace.of(KERNEL)
    for names, category in (({WAITING}, NO_CORE), (BETWEEN_CALLS, OWN_CODE), (GAPS, OTHER), (trace.names, COMPUTE)):
        rows = kernels & trace.named(names)
        parts[rows, category] = trace.duration_s[rows]
        kernels &= ~rows
    mpi = trace.of(MPI)
    probes = mpi & trace.named(PROBES)
    parts[probes, PROBE] = trace.duration_s[probes]
    waited = numpy.where(probes, numpy.nan_to_num(trace.late_s), 0.0)  # probing for what had not come yet
    parts[:, LATE] += waited
    parts[:, PROBE] -= waited
    unknown = mpi & ~probes & numpy.isnan(trace.late_s)
    known = mpi & ~probes & ~unknown
    for category, column in ((LATE, trace.late_s), (TRANSFER, trace.transfer_s), (CONTENTION, trace.contention_s)):
        parts[known, category] = numpy.nan_to_num(column[known])
    parts[known, OVERHEAD] = numpy.maximum(trace.duration_s[known] - parts[known].sum(axis=1), 0.0)
    whom = numpy.where(mpi & (trace.peer >= 0) & (trace.peer != trace.rank), trace.peer, -1)
    if unknown.any():
        waits = dependencies_of(trace)
        late = waits.gap_s.clip(0.0, trace.duration_s)
        parts[unknown, LATE] = late[unknown]
        parts[unknown, TRANSFER] = (trace.duration_s - late)[unknown]
        whom[unknown] = numpy.where(waits.gap_s > 0, trace.rank[waits.row], -1)[unknown]
    return parts, whom


def _waits_of(trace: Trace, parts: NDArray[Any], whom: NDArray[Any]) -> Waits:
    """Who waits for whom; parts, whom: as split() gives them."""
    rows = numpy.flatnonzero(parts[:, LATE] > 0)
    pairs = numpy.stack((trace.rank[rows], whom[rows]), axis=1)
    pairs, pair = numpy.unique(pairs, axis=0, return_inverse=True)
    seconds = numpy.bincount(pair.reshape(-1), weights=parts[rows, LATE], minlength=len(pairs))
    return Waits(pairs[:, 0], pairs[:, 1], seconds)


def not_separated(trace: Trace) -> tuple[str, ...]:
    """Names of calls whose waiting is part of their transfer, as it is not known for whom they wait."""
    unknown = trace.named(COLLECTIVES) & (trace.comm < 0) | trace.named(WAITS) & (trace.completion < 0) & (
        (trace.peer < 0) & (trace.size_bytes > 0)
    )
    unknown &= trace.of(MPI) & numpy.isnan(trace.late_s) & (trace.duration_s > 0)
    return tuple(sorted(trace.names[code] for code in numpy.unique(trace.name[unknown])))


def is_estimated(trace: Trace) -> bool:
    """Whether a call does not know its parts, as in recordings and in what SMPI writes."""
    return bool(numpy.isnan(trace.late_s[(trace.of(MPI) & ~trace.named(PROBES))]).any())


def _by_name(trace: Trace, total_s: float) -> tuple[KernelShare, ...]:
    shares = []
    for code, name in enumerate(trace.names):
        rows = (trace.name == code) & ~trace.of(PHASE)
        if not rows.any():
            continue
        durations = trace.duration_s[rows]
        kind = ("kernel", "mpi")[int(trace.kind[rows][0] == MPI)]
        time_s = float(durations.sum())
        share = time_s / total_s if total_s else 0.0
        shares.append(KernelShare(name, kind, int(rows.sum()), time_s, share, float(numpy.median(durations))))
    return tuple(sorted(shares, key=lambda one: -one.time_s))


@dataclass(frozen=True, slots=True)
class Waiting:
    """The rank, or the step, with the most waiting.

    rank   : that waits most;  share: of its time;  time_s: in all
    whom   : the rank that it waits for longest, None if that is not known;  whom_share: of its waiting
    step   : in which all ranks together wait most, None if there are no steps;  step_share: of all waiting in steps
    """

    rank: int
    share: float
    time_s: float
    whom: int | None
    whom_share: float
    step: int | None
    step_share: float


@dataclass(frozen=True, slots=True)
class Finding:
    """shares : of the time of all ranks, by WORDS;  waiting : None if nothing waits."""

    shares: dict[str, float]
    waiting: Waiting | None

    @property
    def sentence(self) -> str:
        """82.4 % of the ranks' time is computing, 10.7 % waiting, 6.4 % transfer; rank 3 waits most, ..."""
        largest = sorted(self.shares.items(), key=lambda one: -one[1])
        first, *others = [f"{percent(share)} {name}" for name, share in largest if share >= MIN_SHARE] or ["nothing"]
        parts = ", ".join([first.replace(" % ", " % of the ranks' time is ", 1), *others])
        waiting = self.waiting
        if waiting is None:
            return parts
        mostly = "mostly" if waiting.whom_share >= 0.5 else f"{percent(waiting.whom_share)} of that"
        whom = "" if waiting.whom is None else f", {mostly} for rank {waiting.whom}"
        return f"{parts}; rank {waiting.rank} waits most, {percent(waiting.share)} of its time{whom}"

    def to_dict(self) -> dict[str, Any]:
        return {"answer": self.sentence, **asdict(self)}


def finding_of(breakdown: Breakdown) -> Finding:
    total = breakdown.by_rank_s.sum(axis=0)
    whole = float(total.sum())
    shares = {name: float(value) / whole if whole > 0 else 0.0 for name, value in zip(WORDS, total, strict=True)}
    if breakdown.estimated:  # as the parts of a call are not known
        shares = {("transfer and overhead" if name == "transfer" else name): share for name, share in shares.items()}
    return Finding(shares, _waiting(breakdown))


def _waiting(breakdown: Breakdown) -> Waiting | None:
    time_s = breakdown.by_rank_s.sum(axis=1)
    late_s = breakdown.by_rank_s[:, LATE]
    share = numpy.divide(late_s, time_s, out=numpy.zeros(len(late_s)), where=time_s > 0)
    if not len(share) or share.max() < MIN_SHARE:
        return None
    row = int(share.argmax())
    rank = breakdown.ranks[row]
    waits = breakdown.waits
    mine = numpy.flatnonzero((waits.rank == rank) & (waits.whom >= 0))
    longest = int(mine[waits.time_s[mine].argmax()]) if len(mine) else -1
    in_steps = breakdown.by_step_s[:, LATE] if breakdown.steps else numpy.zeros(0)
    has_steps = len(in_steps) > 1 and in_steps.sum() > 0
    return Waiting(
        rank,
        float(share[row]),
        float(late_s[row]),
        int(waits.whom[longest]) if longest >= 0 else None,
        float(waits.time_s[longest] / late_s[row]) if longest >= 0 else 0.0,
        breakdown.steps[int(in_steps.argmax())] if has_steps else None,
        float(in_steps.max() / in_steps.sum()) if has_steps else 0.0,
    )
