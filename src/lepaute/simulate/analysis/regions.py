"""Computing by parts of the program, and how evenly ranks share it.

Regions are the trace's phases: those of HPL, of MPI_Pcontrol and of Score-P. A rank's time belongs to the innermost
that it is in. Without, or beside them, computing goes by its kernel, and the program's own code by the call after it,
or by its place in the program where the recording has that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.breakdown import COMPUTE, OWN_CODE
from lepaute.simulate.trace.messages import ARRIVAL
from lepaute.simulate.trace.table import KERNEL, MPI, PHASE, Trace

OUTSIDE = "outside of any region"
AT_THE_END = "before the end"


@dataclass(frozen=True, slots=True)
class Region:
    """Computing in a part of the program.

    useful_s : of each rank of the trace, shape (ranks,), 0 where it is never there
    time_s   : the same with all else, such as calls; NaN where a region has nothing else
    slowest  : the rank that computes longest in it
    """

    name: str
    useful_s: NDArray[Any]
    time_s: float
    slowest: int

    @property
    def load_balance(self) -> float:
        most = float(self.useful_s.max(initial=0.0))
        return float(self.useful_s.mean()) / most if most > 0 else 1.0

    @property
    def excess_s(self) -> float:
        """What the slowest rank computes longer than the mean of all ranks: as much is won at most."""
        return float(self.useful_s.max(initial=0.0) - self.useful_s.mean()) if len(self.useful_s) else 0.0

    def to_dict(self) -> dict[str, Any]:
        figures = {"load_balance": self.load_balance, "excess_s": self.excess_s, "slowest_rank": self.slowest}
        return {"region": self.name, **figures, "time_s": self.time_s, "useful_s": self.useful_s.tolist()}


def phases_of(trace: Trace, parts: NDArray[Any]) -> tuple[Region, ...]:
    """Regions of the phases of a trace with its own code, most excess first; none where it has no phases.

    parts: as `split` gives them. All computing of all ranks is in one of them, what is in no phase in OUTSIDE.
    """
    if not trace.of(PHASE).any():
        return ()
    ranks = trace.ranks
    useful: dict[str, NDArray[Any]] = {}
    time: dict[str, float] = {}
    for place, rank in enumerate(ranks):
        low, high = numpy.searchsorted(trace.rank, (rank, rank + 1))
        dates, names = _innermost(trace.where(numpy.arange(low, high)))
        computed = parts[low:high, [COMPUTE, OWN_CODE]].sum(axis=1)
        rows = low + numpy.flatnonzero(trace.kind[low:high] != PHASE)
        useful_s = numpy.diff(_done_by(dates, trace.start_s[rows], trace.duration_s[rows], computed[rows - low]))
        time_s = numpy.diff(_done_by(dates, trace.start_s[rows], trace.duration_s[rows], trace.duration_s[rows]))
        for name, of_rank, of_all in zip(names, useful_s.tolist(), time_s.tolist(), strict=True):
            useful.setdefault(name, numpy.zeros(len(ranks)))[place] += of_rank
            time[name] = time.get(name, 0.0) + of_all
    return _sorted_regions(useful, ranks, time)


def _innermost(trace: Trace) -> tuple[NDArray[Any], list[str]]:
    """Dates of a rank, from -inf to inf, and in which phase it is between two: the last begun that is not over."""
    phases = trace.where(trace.of(PHASE) & (trace.duration_s > 0))
    changes = sorted(
        [(end, 0, at) for at, end in enumerate(phases.end_s.tolist())]
        + [(start, 1, at) for at, start in enumerate(phases.start_s.tolist())]
    )
    open_phases: list[int] = []
    dates, names = [-numpy.inf], [OUTSIDE]
    for date, begins, at in changes:
        if begins:
            open_phases.append(at)
        elif at in open_phases:
            open_phases.remove(at)
        name = phases.names[phases.name[max(open_phases)]] if open_phases else OUTSIDE
        if date == dates[-1]:
            names[-1] = name
        elif name != names[-1]:
            dates.append(date)
            names.append(name)
    return numpy.array([*dates, numpy.inf]), names


def _done_by(dates: NDArray[Any], start_s: NDArray[Any], length_s: NDArray[Any], done_s: NDArray[Any]) -> NDArray[Any]:
    """How much of the rows was done by each date; done_s: of each row, at a steady pace over its length."""
    share = numpy.divide(done_s, length_s, out=numpy.zeros(len(done_s)), where=length_s > 0)
    marks = numpy.concatenate((start_s, start_s + length_s))
    order = numpy.argsort(marks, kind="stable")
    pace = numpy.cumsum(numpy.concatenate((share, -share))[order])
    at = marks[order]
    done = numpy.concatenate(([0.0], numpy.cumsum(pace[:-1] * numpy.diff(at)))) if len(at) else numpy.zeros(0)
    return numpy.interp(dates, at, done) if len(at) else numpy.zeros(len(dates))


def computing_of(trace: Trace, parts: NDArray[Any]) -> tuple[Region, ...]:
    """Computing of a trace with its own code, by kernel, and own code by the call after it; most excess first."""
    ranks = trace.ranks
    computed = parts[:, [COMPUTE, OWN_CODE]].sum(axis=1)
    rows = numpy.flatnonzero(trace.of(KERNEL) & (computed > 0))
    calls = numpy.flatnonzero(trace.of(MPI) & ~trace.named((ARRIVAL,)))
    after = numpy.searchsorted(calls, rows)
    following = calls[after.clip(max=len(calls) - 1)] if len(calls) else rows
    has_call = (after < len(calls)) & (trace.rank[following] == trace.rank[rows])
    is_program = parts[rows, OWN_CODE] > 0
    names = [trace.names[code] for code in trace.name[rows].tolist()]
    sites = places_of(trace)
    useful: dict[str, NDArray[Any]] = {}
    place = numpy.searchsorted(ranks, trace.rank[rows]).tolist()
    keys = zip(
        names, is_program.tolist(), has_call.tolist(), following.tolist(), place, computed[rows].tolist(), strict=True
    )
    for name, program, called, row, at, time_s in keys:
        label = name
        if program:
            label = f"before {trace.names[trace.name[row]]}{sites.get(row, '')}" if called else AT_THE_END
        useful.setdefault(label, numpy.zeros(len(ranks)))[at] += time_s
    return _sorted_regions(useful, ranks, {})


def places_of(trace: Trace) -> dict[int, str]:
    """Where in the program each call is, " at FUNCTION", by row, without callers; empty where not recorded."""
    site, sites = getattr(trace, "site", None), trace.metadata.get("sites")
    if site is None or not sites:
        return {}
    return {row: f" at {sites[at].split(' < ')[0]}" for row, at in enumerate(site.tolist()) if 0 <= at < len(sites)}


def _sorted_regions(
    useful: Mapping[str, NDArray[Any]], ranks: list[int], time: Mapping[str, float]
) -> tuple[Region, ...]:
    made = [
        Region(name, of_ranks, time.get(name, numpy.nan), ranks[int(of_ranks.argmax())])
        for name, of_ranks in useful.items()
        if of_ranks.any() or time.get(name)
    ]
    return tuple(sorted(made, key=lambda region: -region.excess_s))
