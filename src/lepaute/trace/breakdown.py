"""Where the time of each rank went."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lepaute.trace.messages import PROBES, SENDS, match_messages
from lepaute.trace.table import CATEGORIES, KERNEL, MPI, PHASE, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

COMPUTE, OVERHEAD, LATE, TRANSFER, CONTENTION, PROBE, OTHER = range(len(CATEGORIES))


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
class Breakdown:
    """Seconds by category.

    ranks, by_rank_s : the ranks, and shape (ranks, categories); a row adds up to the time of the rank
    steps, by_step_s : the panels, and shape (steps, categories), the sum over ranks; without "other"
    by_name          : calls of each kernel and MPI routine, the longest first
    estimated        : late, transfer come from pairing sends with receives, as a recording does not know them;
                       contention and overhead are then parts of transfer
    """

    ranks: tuple[int, ...]
    by_rank_s: "NDArray[Any]"
    steps: tuple[int, ...]
    by_step_s: "NDArray[Any]"
    by_name: tuple[KernelShare, ...]
    estimated: bool


def breakdown_of(trace: Trace) -> Breakdown:
    """The breakdown of the calls in a trace; a rank's time goes from the first to the last call in the trace."""
    import numpy

    parts = split(trace)
    ranks = trace.ranks
    row_of_rank = numpy.searchsorted(ranks, trace.rank)
    by_rank = numpy.zeros((len(ranks), len(CATEGORIES)))
    calls = trace.kind != PHASE
    for category in range(OTHER):
        numpy.add.at(by_rank[:, category], row_of_rank[calls], parts[calls, category])
    if len(trace):
        first = float(trace.start_s.min())
        first = min(first, 0.0) if trace.metadata.get("whole", False) else first
        span = float(trace.end_s.max()) - first
        by_rank[:, OTHER] = numpy.maximum(span - by_rank.sum(axis=1), 0.0)
    steps = [int(step) for step in numpy.unique(trace.step[calls]) if step >= 0]
    by_step = numpy.zeros((len(steps), len(CATEGORIES)))
    in_step = calls & (trace.step >= 0)
    row_of_step = numpy.searchsorted(steps, trace.step[in_step])
    for category in range(OTHER):
        numpy.add.at(by_step[:, category], row_of_step, parts[in_step, category])
    return Breakdown(
        tuple(ranks), by_rank, tuple(steps), by_step, _by_name(trace, float(by_rank.sum())), is_estimated(trace)
    )


def split(trace: Trace) -> "NDArray[Any]":
    """The duration of each row by category, shape (rows, categories); 0 for phases, which hold other rows.

    A kernel computes, a probe probes; what it waited is late. An MPI call that knows its parts has them, and the rest
    is overhead. Of one that does not, the time before the other side had begun is late, and the rest transfer.
    """
    import numpy

    parts = numpy.zeros((len(trace), len(CATEGORIES)))
    kernels = trace.kind == KERNEL
    parts[kernels, COMPUTE] = trace.duration_s[kernels]
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
    if unknown.any():
        late = numpy.minimum(_late_estimate(trace), trace.duration_s)
        parts[unknown, LATE] = late[unknown]
        parts[unknown, TRANSFER] = (trace.duration_s - late)[unknown]
    return parts


def _late_estimate(trace: Trace) -> "NDArray[Any]":
    """Of each row the time before the other side of its message had begun; 0 where that is not known."""
    import numpy

    late = numpy.zeros(len(trace))
    matches = match_messages(trace)
    has_end = matches.end >= 0
    send, receive, end = matches.send[has_end], matches.receive[has_end], matches.end[has_end]
    numpy.maximum.at(late, end, numpy.clip(trace.start_s[send] - trace.start_s[end], 0.0, None))
    # A send that was over before the receive began did not wait for it.
    blocking = trace.named(SENDS)[matches.send]
    send, receive = matches.send[blocking], matches.receive[blocking]
    waited = trace.end_s[send] > trace.start_s[receive]
    gap = numpy.clip(trace.start_s[receive] - trace.start_s[send], 0.0, None)
    numpy.maximum.at(late, send[waited], gap[waited])
    return late


def is_estimated(trace: Trace) -> bool:
    """Whether a call does not know its parts, as in recordings and in what SMPI writes."""
    import numpy

    mpi = (trace.kind == MPI) & ~trace.named(PROBES)
    return bool(numpy.isnan(trace.late_s[mpi]).any())


def _by_name(trace: Trace, total_s: float) -> tuple[KernelShare, ...]:
    import numpy

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
