"""Where the time of each rank went."""

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.messages import COLLECTIVES, PROBES, WAITS, collective_lateness, match_messages
from lepaute.simulate.trace.table import (
    BETWEEN_CALLS,
    CATEGORIES,
    COMPUTING,
    KERNEL,
    MPI,
    PHASE,
    WAITING,
    Trace,
    with_rows,
)

COMPUTE, OVERHEAD, LATE, TRANSFER, CONTENTION, PROBE, OWN_CODE, NO_CORE, OTHER = range(len(CATEGORIES))


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
    calls = trace.kind != PHASE
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
    simulation is left as it is: its rows are all that it has computed, and where steps were chosen, the rest was not
    traced.
    """
    if not trace.is_recording or not len(trace) or trace.named((COMPUTING,)).any():
        return trace
    calls = trace.where(trace.kind != PHASE)
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
        same_in_all = {"rank": rank, "kind": KERNEL, "name": len(trace.names)}
        parts.append(gaps | {name: numpy.full(int(is_gap.sum()), value) for name, value in same_in_all.items()})
    return with_rows(trace, parts, (*trace.names, COMPUTING), trace.metadata, "recording")


def split(trace: Trace) -> tuple[NDArray[Any], NDArray[Any]]:
    """The duration of each row by category, shape (rows, categories); 0 for phases, which hold other rows. And the rank
    that each row waits for, -1 if that is not known.

    A kernel computes, and time of which only the passing is known is the program's own code. A probe probes; what it
    waited is late. An MPI call that knows its parts has them, and the rest is overhead. Of one that does not, the time
    before the other side had begun is late, and the rest transfer.
    """
    parts = numpy.zeros((len(trace), len(CATEGORIES)))
    kernels = trace.kind == KERNEL
    for names, category in (({WAITING}, NO_CORE), (BETWEEN_CALLS, OWN_CODE), (trace.names, COMPUTE)):
        rows = kernels & trace.named(names)
        parts[rows, category] = trace.duration_s[rows]
        kernels &= ~rows
    mpi = trace.kind == MPI
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
        estimated, other = _late_estimate(trace)
        late = numpy.minimum(estimated, trace.duration_s)
        parts[unknown, LATE] = late[unknown]
        parts[unknown, TRANSFER] = (trace.duration_s - late)[unknown]
        whom[unknown] = other[unknown]
    return parts, whom


def _late_estimate(trace: Trace) -> tuple[NDArray[Any], NDArray[Any]]:
    """Time of each row before the other side had begun, and who that is; 0 and -1 if that is not known."""
    late, whom = collective_lateness(trace)
    matches = match_messages(trace)
    has_end = matches.end >= 0
    send, end = matches.send[has_end], matches.end[has_end]
    # A send that was over before the receive began did not wait for it.
    has_sent = matches.sent >= 0
    sent, receive = matches.sent[has_sent], matches.receive[has_sent]
    waited = trace.end_s[sent] > trace.start_s[receive]
    sent, receive = sent[waited], receive[waited]
    rows, others = numpy.concatenate((end, sent)), numpy.concatenate((send, receive))
    gap = trace.start_s[others] - trace.start_s[rows]
    longer = gap > late[rows]
    rows, others, gap = rows[longer], others[longer], gap[longer]
    order = numpy.argsort(gap, kind="stable")  # of several of a row the longest stays
    late[rows[order]], whom[rows[order]] = gap[order], trace.rank[others[order]]
    return late, whom


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
    unknown &= (trace.kind == MPI) & numpy.isnan(trace.late_s) & (trace.duration_s > 0)
    return tuple(sorted(trace.names[code] for code in numpy.unique(trace.name[unknown])))


def is_estimated(trace: Trace) -> bool:
    """Whether a call does not know its parts, as in recordings and in what SMPI writes."""
    return bool(numpy.isnan(trace.late_s[((trace.kind == MPI) & ~trace.named(PROBES))]).any())


def _by_name(trace: Trace, total_s: float) -> tuple[KernelShare, ...]:
    shares = []
    for code, name in enumerate(trace.names):
        rows = (trace.name == code) & (trace.kind != PHASE)
        if not rows.any():
            continue
        durations = trace.duration_s[rows]
        kind = ("kernel", "mpi")[int(trace.kind[rows][0] == MPI)]
        time_s = float(durations.sum())
        share = time_s / total_s if total_s else 0.0
        shares.append(KernelShare(name, kind, int(rows.sum()), time_s, share, float(numpy.median(durations))))
    return tuple(sorted(shares, key=lambda one: -one.time_s))
