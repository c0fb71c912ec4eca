"""All that is known of where a run's time went, of one trace, and its answer in a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from lepaute.errors import InputError
from lepaute.kit.text import percent
from lepaute.simulate.analysis.critical_path import CriticalPath, critical_path
from lepaute.simulate.analysis.efficiency import Efficiencies, efficiencies_of, efficiencies_on
from lepaute.simulate.analysis.regions import Region, computing_of, phases_of
from lepaute.simulate.analysis.wait_states import WaitStates, wait_states_of
from lepaute.simulate.apps.replay import TraceReplay
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.trace.breakdown import (
    MIN_SHARE,
    NO_CORE,
    Breakdown,
    breakdown_of,
    is_estimated,
    split,
    with_own_code,
)
from lepaute.simulate.trace.dependencies import dependencies_of
from lepaute.simulate.trace.table import MPI, Trace, caveats_of
from lepaute.simulate.trace.traffic import CollectiveUse, Pairs, collectives_of, pairs_of

#: Ranks that are named as late: the fewest that half of all waiting is for, if they are no more than so many.
MAX_LATE = 3
#: A replay on an ideal network that takes longer than the run by more than this says so.
_LONGER = 1.0005


@dataclass(frozen=True)
class Analysis:
    """trace : with rows of the program's own code;  begin_s, runtime_s: of what is analysed
    on : the efficiencies of its replay on a platform, where one is given
    phases, computing : regions of the program, and computing by kernel or by the call after it
    """

    trace: Trace
    begin_s: float
    runtime_s: float
    breakdown: Breakdown
    efficiencies: Efficiencies
    on: Efficiencies | None
    path: CriticalPath
    waits: WaitStates
    pairs: Pairs
    collectives: tuple[CollectiveUse, ...]
    phases: tuple[Region, ...]
    computing: tuple[Region, ...]

    @property
    def nodes(self) -> Pairs | None:
        """Messages between nodes; None where the trace does not tell on which node each rank is."""
        node_of = self.trace.metadata.get("nodes") or ()
        ranks = max(self.pairs.sender.max(initial=-1), self.pairs.receiver.max(initial=-1)) + 1
        return self.pairs.grouped(numpy.array(node_of)) if 0 < ranks <= len(node_of) else None

    @property
    def waiting_share(self) -> float:
        """Of the time of all ranks."""
        total_s = float(self.breakdown.by_rank_s.sum())
        return float(self.waits.time_s.sum()) / total_s if total_s > 0 else 0.0

    @property
    def late(self) -> dict[str, Any] | None:
        """The ranks for which most is waited, their share of all waiting, and the call, with its cause and its share of
        that, in which most of it is; None where little is waited, or for many ranks."""
        all_s = float(self.waits.time_s.sum())
        if self.waiting_share < MIN_SHARE:
            return None
        chosen: list[int] = []
        for_s = 0.0
        for (rank,), time_s in self.waits.seconds_by(self.waits.whom).items():
            if rank < 0:
                continue
            chosen.append(rank)
            for_s += time_s
            if for_s >= 0.5 * all_s:
                break
        if for_s < 0.5 * all_s or len(chosen) > MAX_LATE:
            return None
        by_call = self.waits.where(numpy.isin(self.waits.whom, chosen)).by_cause(self.trace)
        most = by_call[0]
        share = {"share": for_s / all_s, "call_share": most["time_s"] / for_s}
        return {"ranks": sorted(chosen), "call": most["call"], "cause": most["cause"], **share}

    @property
    def sentence(self) -> str:
        """Parallel efficiency 62.0 %: load balance 71.0 %, ...; 12.0 % of the ranks' time is waiting for others, mostly
        for ranks 3 and 7, above all in MPI_Allreduce (wait at NxN)"""
        efficiencies = self.efficiencies
        factors = ", ".join(f"{name} {percent(value)}" for name, value in efficiencies.factors.items())
        return f"Parallel efficiency {percent(efficiencies.parallel)}: {factors}; {self._who_is_late()}"

    def _who_is_late(self) -> str:
        late = self.late
        no_core = float(self.breakdown.by_rank_s[:, NO_CORE].sum()) / max(float(self.breakdown.by_rank_s.sum()), 1e-300)
        crowded = f"; {percent(no_core)} is waiting for a core" if no_core >= MIN_SHARE else ""
        if self.waiting_share < MIN_SHARE:
            return f"ranks hardly wait for each other{crowded}"
        waiting = f"{percent(self.waiting_share)} of the ranks' time is waiting for others"
        if late is None:
            return f"{waiting}, for many different ranks{crowded}"
        ranks = _ranks_named(late["ranks"])
        return f"{waiting}, mostly for {ranks}, above all in {late['call']} ({late['cause']}){crowded}"

    @property
    def caveats(self) -> list[str]:
        texts = caveats_of(self.trace.metadata)
        efficiencies = self.efficiencies
        if efficiencies.unknown:
            texts.append(f"serialisation and transfer are not known, as there is no replay: {efficiencies.unknown}")
        elif efficiencies.ideal_s is not None and efficiencies.ideal_s > _LONGER * efficiencies.runtime_s:
            texts.append(
                "on an ideal network the replay takes longer than the run: it keeps the order of calls that the run "
                "chose by probes and tests, so that transfer is too high, and serialisation as much too low"
            )
        if "shared" in self.trace.metadata:
            texts.append("within calls of MPI, waiting for a core cannot be told from transfer and waiting for others")
        if is_estimated(self.trace):
            inside = f"; of {', '.join(self.breakdown.unknown)} it is not known" if self.breakdown.unknown else ""
            texts.append(f"waiting is the time before the other side began, by matching sends with receives{inside}")
        return texts


def analysis_of(trace: Trace, *, path: Path | None = None, platform: str | Platform | None = None) -> Analysis:
    """The analysis of a trace; with its file and a platform, or the name of one, also of its replay there.

    Raises PlatformError for the platform, and InputError for a replay on it that cannot be, or calls without times.
    """
    calls = trace.of(MPI)
    if calls.any() and not trace.duration_s[calls].any():
        where = path or "the trace"
        raise InputError(f"{where}: its calls have no times; analyze a replay of it: lepaute predict trace --trace")
    # Before all else, as it may be refused.
    on = None if platform is None or path is None else efficiencies_on(load_platform(platform), TraceReplay(path))
    filled = with_own_code(trace)
    breakdown = breakdown_of(trace)
    begin_s = float(filled.start_s.min()) if len(filled) else 0.0
    begin_s = min(begin_s, 0.0) if trace.metadata.get("whole", False) else begin_s
    runtime_s = (float(filled.end_s.max()) if len(filled) else 0.0) - begin_s
    parts, whom = split(filled)
    known = dependencies_of(filled)
    return Analysis(
        filled,
        begin_s,
        runtime_s,
        breakdown,
        efficiencies_of(trace, breakdown, runtime_s),
        on,
        critical_path(filled, known, begin_s),
        wait_states_of(filled, parts, whom, known),
        pairs_of(filled, known),
        collectives_of(filled, parts),
        phases_of(filled, parts),
        computing_of(filled, parts),
    )


def _ranks_named(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
