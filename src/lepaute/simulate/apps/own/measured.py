"""What computing costs, measured in a recording: the time of each rank between two of its MPI calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import fsum, sqrt
from pathlib import Path
from statistics import NormalDist, variance
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.errors import InputError
from lepaute.kit.text import counted, percent, significant
from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.messages import ARRIVAL
from lepaute.simulate.trace.table import MPI, WAITING
from lepaute.stats.student import student_quantile

#: From this many stretches of each rank on the first one is left out: it meets cold caches and pages not yet there.
WARM_FROM = 5
#: In how many parts of the time the spread over it is looked for: what drifts is seen in few parts only.
PARTS = (10, 5, 3)
#: Half-normal noise above it would make durations negative.
MAX_NOISE = 0.75
#: A cost that is not known better than that is none.
MAX_ERROR = 0.5
#: Calls that look and go on: their time is no computing, and they end no stretch.
_LOOKS = frozenset(f"MPI_{form}" for form in ("Iprobe", "Improbe", "Test", "Testall", "Testany", "Testsome"))


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of time in a recording between two calls.

    mean_s     : of a stretch, seconds
    error      : relative standard error of the mean, such that 1.96 of it are the half width of 95 %
    noise      : relative standard deviation of a stretch among those of its rank
    platform   : of an emulation; empty if nothing tells of the machine
    """

    mean_s: float
    error: float
    noise: float
    count: int
    ranks: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    platform: str = ""


def stretches_of(trace: Trace, between: tuple[str, str], where: str) -> list[NDArray[Any]]:
    """For each rank that has any: seconds from the end of the first call to the beginning of the second where that is
    the rank's next call, less waiting for a core and for looks that find nothing. Raises InputError for none."""
    called = sorted({trace.names[code] for code in numpy.unique(trace.name[trace.kind == MPI])} - {ARRIVAL})
    for name in between:
        if name not in called:
            raise InputError(f"{where}: no rank calls {name[:60]}; they call {', '.join(called[:12])}")
    is_polling_call = trace.named(_LOOKS - set(between)) & (trace.kind == MPI)
    rows = numpy.flatnonzero((trace.kind == MPI) & ~is_polling_call & ~trace.named(ARRIVAL))
    first, second = rows[:-1], rows[1:]
    follows = trace.named(between[0])[first] & trace.named(between[1])[second]
    follows &= trace.rank[first] == trace.rank[second]
    first, second = first[follows], second[follows]
    if not len(first):
        raise InputError(f"{where}: no {between[1]} is the next call after {between[0]} of a rank")
    looked_s = numpy.cumsum(numpy.where(is_polling_call | trace.named(WAITING), trace.duration_s, 0.0))
    passed_s = trace.start_s[second] - trace.end_s[first] - (looked_s[second] - looked_s[first])
    ranks = trace.rank[first]
    return [numpy.maximum(passed_s[ranks == rank], 0.0) for rank in numpy.unique(ranks)]


def told_by(stretches: Sequence[NDArray[Any]], where: str) -> Stretches:
    """Mean, error and noise from the stretches of each rank, seconds, in their order.

    Calls of a rank resemble each other, and so do calls at the same time. So the half width is Student's of the means
    of ranks, and that of the means of `PARTS` of the time over all ranks: the widest of them. What 95 % of it cover,
    also of few calls, outliers, ranks that differ and drifts: tests/promises/test_measured_costs.py.
    Raises InputError if nothing tells the error, or it is above `MAX_ERROR`.
    """
    warm = [stretch.tolist()[len(stretch) >= WARM_FROM :] for stretch in stretches]
    ranks, least, count = len(warm), min(map(len, warm)), sum(map(len, warm))
    means = [fsum(each) / len(each) for each in warm]
    mean_s = fsum(means) / ranks
    of_time = ([_mean_of_part(warm, part, of) for part in range(of)] for of in (min(of, least) for of in PARTS))
    known = [group for group in (means, *of_time) if len(group) > 1]
    if not known or mean_s <= 0.0:
        raise InputError(f"{where}: {counted(count, 'measurement')} of computing do not tell what one costs")
    half_s = max(student_quantile(0.975, len(group) - 1) * sqrt(variance(group) / len(group)) for group in known)
    error = half_s / NormalDist().inv_cdf(0.975) / mean_s
    if error > MAX_ERROR:
        raise InputError(
            f"{where}: {counted(count, 'measurement')} of computing differ too much to tell what one costs: "
            f"{significant(mean_s)} s ± {percent(half_s / mean_s)}; record more of them"
        )
    squares = fsum((value - mean) ** 2 for each, mean in zip(warm, means, strict=True) for value in each)
    noise = sqrt(squares / (count - ranks)) / mean_s if count > ranks else 0.0
    return Stretches(mean_s, error, min(noise, MAX_NOISE), count, ranks)


def _mean_of_part(stretches: Sequence[Sequence[float]], part: int, of: int) -> float:
    pieces = [stretch[len(stretch) * part // of : len(stretch) * (part + 1) // of] for stretch in stretches]
    return fsum(fsum(piece) / len(piece) for piece in pieces) / len(pieces)


@lru_cache(maxsize=64)
def told(path: Path, mtime_ns: int, size: int, between: tuple[str, str]) -> Stretches:
    """Stretches in a recording file of that date and size; raises InputError."""
    del mtime_ns, size  # another file of the same name is read again
    trace = read_trace(path)
    known = trace.metadata.get("parameters")
    return replace(
        told_by(stretches_of(trace, between, str(path)), str(path)),
        parameters={**(known if isinstance(known, dict) else {}), "ranks": len(trace.ranks)},
        platform=str(trace.metadata.get("platform") or ""),
    )
