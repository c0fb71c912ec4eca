"""Episodes in which a machine was slow on all cores at once, as its steps and sentinels show them.

What was measured in one is left out of the models: the steps, not their launch. How often the machine is slow, for how
long and by how much is a layer of its own, from first attempts alone: a repetition was made because something was slow.
Runs and sentinels that a counter marked tell of what it saw, and are not looked at.

Messages are searched by the same rule, but only where steps or sentinels saw an episode: networks have slow starts and
modes of their own, which it would take for episodes in most archives. What it finds has to begin or end within a start
of mpirun, and in few of them, or the machine was slow right before or after (`validation/episodes.py`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.kit.text import counted, duration, percent
from lepaute.measure.fit.kernels.form import Form
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, fit_kernel
from lepaute.measure.fit.messages.links import MessageTables
from lepaute.measure.fit.numeric import Booleans, Floats, Integers, local_median
from lepaute.measure.fit.observations.calibrations import THREADS, without_disturbed
from lepaute.measure.fit.observations.calls import IN_CONTEXT, PRODUCTS, Calls, calls_by_kernel, numbered
from lepaute.measure.fit.observations.columns import combinations_of, net_seconds
from lepaute.measure.fit.variability.crowding import crowding_of, relieved
from lepaute.measure.fit.variability.dependence import fitted_rows
from lepaute.measure.fit.variability.sentinels import Watch
from lepaute.simulate.platform.schema import SlowState
from lepaute.stats import disturbance

#: What ends or begins so near an episode is left out with it.
MARGIN_S = 0.1
#: What a rank measured of messages in so long is one part, of this many calls at least.
_MESSAGES_S, _MIN_MESSAGES = 0.1, 5
#: So far from a stretch of messages, and in so large a share of starts at most.
_BESIDE_S, _MAX_STARTS = 5.0, 1 / 3
#: Columns that tell starts of mpirun apart, besides the two nodes, and messages that take alike.
_START, _SIMILAR = ("block", "attempt", "distance"), ("link", "distance", "operation", "condition", "call", "role")
#: Calls that wait for others or compute, of a length of their own.
_NOT_MESSAGES = frozenset({"iprobe", "dgemm", "wait"})
#: Where so many episodes would have been seen while fewer cores computed, and none was, they come with busy cores only.
EXPECTED_ALONE = 5.0
MAX_HOSTS = 1 << 20  # of an archive, in the number of a series


#: Dates, rising, and whether a node was slow then.
Look = tuple[Floats, Booleans]


@dataclass(frozen=True, slots=True)
class Episodes:
    """Episodes of a calibration in which the machine was slow for a while.

    rows : of the table, those measured in an episode;  slow_s, seen_s : seconds of launches, in episodes and in all
    sentinels, all_sentinels : how many were slow, and how many there are
    busy_cores : the fewest that compute where there are episodes; None: any number
    looks : by the number of an archive and a node: when it is known whether the machine was slow, and whether it was
    """

    rows: Booleans
    estimate: disturbance.SlowStateEstimate
    slow_s: float
    seen_s: float
    sentinels: int
    all_sentinels: int
    busy_cores: int | None
    looks: Mapping[tuple[int, str], Look]

    @property
    def slow_state(self) -> SlowState:
        seen = self.estimate
        return SlowState(
            share=_rounded(seen.share),
            length_s=_rounded(seen.length_s),
            factor=_rounded(seen.factor),
            share_error=_rounded(seen.odds_error * (1.0 - seen.share)),
            length_error=_rounded(seen.length_error),
            factor_error=_rounded(seen.factor_error),
            factor_relative_sd=_rounded(seen.factor_relative_sd),
            least_busy_cores=self.busy_cores,
            source=f"{counted(seen.episodes, 'episode')} in a calibration",
        )

    @property
    def witnesses(self) -> str:
        """Witnesses of the episodes: "steps on all cores at once, 3.9 s of 59 s, and 4 of 33 sentinels"."""
        of_steps = f"steps on all cores at once, {duration(self.slow_s)} of {duration(self.seen_s)}"
        of_sentinels = f"{self.sentinels} of {counted(self.all_sentinels, 'sentinel')}"
        return ", and ".join([of_steps] * bool(self.slow_s) + [of_sentinels] * bool(self.sentinels))

    def sentence(self, messages: int) -> str:
        """Episodes seen and what became of them; messages: how many were left out."""
        of_messages = f", without {counted(messages, 'message')}" if messages else ""
        return (
            f"the machine was slow for a while: calls took {percent(self.slower)} longer ({self.witnesses}); "
            f"the models are of the rest{of_messages}, the slow state is a layer of its own (slow_state)"
        )

    @property
    def slower(self) -> float:
        """By how much durations are longer in the slow state."""
        return self.estimate.factor - 1.0


@dataclass(frozen=True, slots=True)
class Parts:
    """Steps, or chunks of calls, of one table; vectors of shape (parts,), but for that of its rows.

    run    : what all cores of a node did at once, from 0;  core : each of its processes has one
    kind   : what has the same level but for the state of the machine;  work : what scatters alike
    active : how many cores of the node computed;  series : the archive, times MAX_HOSTS, and the node
    of_row : the part of each row of the table
    """

    start_s: Floats
    end_s: Floats
    measured_s: Floats
    predicted_s: Floats
    run: Integers
    core: Integers
    kind: Integers
    work: Integers
    first_attempt: Booleans
    active: Integers
    series: Integers
    of_row: Integers


def in_usual_state(
    table: pandas.DataFrame, watched: Sequence[Watch], hosts: Sequence[str]
) -> tuple[pandas.DataFrame, list[Watch], Episodes | None]:
    """The table without the steps of episodes in which the machine was slow, the sentinels with theirs marked, and the
    episodes: those of products of matrices with the fewest threads, in which most time of HPL is.

    table : observations as `pooled_observations` makes them;  hosts : those that were measured, as it numbers them
    """
    seen = (table[THREADS] == table[THREADS].min()).to_numpy()
    part = table[seen].reset_index(drop=True)
    fitted = {}
    for name, calls in calls_by_kernel(part).items():
        if name in PRODUCTS and len(calls):
            with suppress(FitError):
                alone = relieved(calls, crowding_of(calls).rows)
                fitted[name] = calls, fit_kernel(alone, form=Form("M'", False, "N-2"))
    episodes = episodes_of_parts(_parts(part, fitted), watched, hosts)
    if episodes is None:
        return table, list(watched), None
    slow = np.zeros(len(table), dtype=np.bool_)
    slow[seen] = episodes.rows
    marked = [replace(watch, disturbed=watch.disturbed | slow_sentinels(watch)) for watch in watched]
    return table[~slow].reset_index(drop=True), marked, episodes


def episodes_of_parts(parts: Parts, watches: Sequence[Watch], hosts: Sequence[str]) -> Episodes | None:
    """None if no episode was seen;  hosts : those that were measured, as the series of the parts number them."""
    usable = parts.predicted_s >= disturbance.SHORTEST_PART_S
    if not usable.any():
        return None
    at, level, duration_s = np.flatnonzero(usable), np.zeros(len(usable)), parts.end_s - parts.start_s
    level[at] = disturbance.centred(np.log(parts.measured_s[at] / parts.predicted_s[at]), parts.kind[at])
    stretches = disturbance.slow_stretches(
        parts.start_s[at], duration_s[at], level[at], parts.run[at], parts.core[at], parts.work[at]
    )
    of_watch = [slow_sentinels(watch) for watch in watches]
    sentinels = sum(int(one.sum()) for one in of_watch)
    # What is shorter is left out with them, and tells nothing of the state: a core may have been as slow by itself.
    lasting = [stretch for stretch in stretches if stretch.lasts]
    if not lasting and sentinels < disturbance.MIN_SENTINELS:
        return None
    first = parts.run[parts.first_attempt]
    factors = [float(np.exp(one.log_factor)) for one in lasting if one.launch in first]
    for watch, slow in zip(watches, of_watch, strict=True):
        factors += (watch.duration_s[slow] / np.median(watch.duration_s[~slow])).tolist()
    if not factors:
        return None
    middle = 0.5 * (parts.start_s + parts.end_s)
    left_out, of_state = np.zeros((2, len(usable)), dtype=np.bool_)
    for stretch in stretches:  # with the steps next to it, which began or ended in it
        near = (parts.end_s >= stretch.start_s - MARGIN_S) & (parts.start_s <= stretch.end_s + MARGIN_S)
        left_out |= (parts.run == stretch.launch) & near
    for one in lasting:
        of_state |= (parts.run == one.launch) & (middle >= one.start_s) & (middle <= one.end_s)
    busy_cores = _busy_cores(parts, usable, lasting)
    watched = usable & parts.first_attempt & (parts.active >= (busy_cores or 0))
    middles = [(one.launch, 0.5 * (one.start_s + one.end_s)) for one in lasting if one.launch in first]
    looks = _looks(parts, watched, of_state, middles, watches, of_watch, hosts)
    return Episodes(
        left_out[parts.of_row],
        disturbance.fit_slow_state(list(looks.values()), np.maximum(np.array(factors), 1.0 + 1e-6)),
        sum(one.end_s - one.start_s for one in lasting),
        _seconds(parts, usable),
        sentinels,
        sum(map(len, watches)),
        busy_cores,
        looks,
    )


def without_slow_messages(tables: MessageTables, episodes: Episodes, several: bool) -> tuple[MessageTables, int]:
    """The tables less messages of an episode, but for links of which too little would be left; how many these are.

    tables : each with the number of its `archive`;  several : there are several nodes
    """
    kept, dropped = [], 0
    for frames in (tables.p2p, tables.ring):
        marked = [frame.assign(disturbed=slow_messages(frame, episodes.looks)) for frame in frames]
        kept.append(without_disturbed(marked, ("host", "link") if several else ())[0])
        dropped += sum(map(len, frames)) - sum(map(len, kept[-1]))
    return replace(tables, p2p=kept[0], ring=kept[1]), dropped


def slow_messages(table: pandas.DataFrame, looks: Mapping[tuple[int, str], Look]) -> Booleans:
    """Which messages are of a stretch in which all ranks of a start of mpirun were slow at once, by the rule of steps.

    The level of a part is the median of its messages, over what others of their size take: some are late anywhere. The
    ranks of a start begin together, whatever the clocks of their nodes say.
    """
    slow = np.zeros(len(table), dtype=np.bool_)
    if not len(table) or not {"block", "attempt", "host", "peer", "link", "rank", "start_s"} <= set(table.columns):
        return slow  # of an old version
    first, second = np.sort(table[["host", "peer"]].to_numpy(dtype=str), axis=1).T
    start = combinations_of(table.assign(first=first, second=second), (*_START, "first", "second"))
    rank, begin_s = table["rank"].to_numpy(dtype=np.int64), table["start_s"].to_numpy(dtype=np.float64)
    size_bytes, net_s = table["size_bytes"].to_numpy(dtype=np.float64), np.maximum(net_seconds(table), 1e-9)
    process, first_s = numbered([start, rank]), np.full(len(table), np.inf)
    np.minimum.at(first_s, process, begin_s)
    since_s = begin_s - first_s[process]
    similar, level = combinations_of(table, _SIMILAR), np.zeros(len(table))
    for number in np.unique(similar):
        rows = np.flatnonzero(similar == number)
        level[rows] = np.log(net_s[rows] / local_median(size_bytes[rows], net_s[rows]))
    timed = size_bytes > 0.0
    if "call" in table.columns:  # of a ring
        timed &= ~table["call"].isin(_NOT_MESSAGES).to_numpy() & (table["condition"] != "iprobe+dgemm").to_numpy()
    part = numbered([process, (since_s / _MESSAGES_S).astype(np.int64)])
    columns = {"begin_s": since_s, "end_s": since_s + net_s, "level": level, "start": start, "rank": rank}
    parts = pandas.DataFrame(columns)[timed].groupby(part[timed])
    of_part = parts.agg({"begin_s": "min", "end_s": "max", "level": "median", "start": "first", "rank": "first"})
    of_part = of_part[(parts.size() >= _MIN_MESSAGES).to_numpy()]
    if of_part.empty:
        return slow
    low_s, high_s, levels, launch, core = (of_part[name].to_numpy() for name in columns)
    stretches = disturbance.slow_stretches(low_s, high_s - low_s, levels - np.median(levels), launch, core)
    lasting = [stretch for stretch in stretches if stretch.lasts]
    are_few = len({stretch.launch for stretch in lasting}) <= _MAX_STARTS * (int(start.max()) + 1)
    for stretch in lasting:
        inside = start == stretch.launch
        has_end = stretch.start_s > 1.5 * _MESSAGES_S or stretch.end_s < since_s[inside].max() - 1.5 * _MESSAGES_S
        if (are_few and has_end) or _beside_slow(table[inside], looks):
            slow |= inside & (since_s + net_s >= stretch.start_s - MARGIN_S) & (since_s <= stretch.end_s + MARGIN_S)
    return slow


def _beside_slow(start: pandas.DataFrame, looks: Mapping[tuple[int, str], Look]) -> bool:
    """Whether a node was slow up to _BESIDE_S before these messages, or after them."""
    for (archive, host), (date_s, slow) in looks.items():
        dates = start.loc[(start["archive"] == archive) & ((start["host"] == host) | (len(looks) == 1)), "start_s"]
        if np.any(slow & (date_s >= dates.min() - _BESIDE_S) & (date_s <= dates.max() + _BESIDE_S)):
            return True
    return False


def slow_sentinels(watch: Watch) -> Booleans:
    """Which sentinels were slow, by the rule of steps, though no counter says why; shape (sentinels,)."""
    logs = np.log(watch.duration_s)
    slow: Booleans = (logs - np.median(logs) > disturbance.slow_limit(logs)) & ~watch.disturbed
    return slow


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _parts(table: pandas.DataFrame, fitted: Mapping[str, tuple[Calls, FittedKernel]]) -> Parts:
    predicted = np.zeros(len(table))
    for rows, calls, kernel in fitted_rows(table, fitted):
        predicted[rows] = kernel.predict(calls)
    integers = {
        name: table[name].to_numpy(dtype=np.int64)
        for name in ("node", "block", "attempt", "cpu", "design_row", "position", "archive", "active_cores")
    }
    probe = table["probe"].cat.codes.to_numpy().astype(np.int64)
    context = np.array([str(name).startswith(IN_CONTEXT) for name in table["probe"].cat.categories])[probe]
    run = numbered([integers["node"], integers["block"], integers["attempt"], probe])
    process = run * (int(integers["cpu"].max(initial=0)) + 1) + integers["cpu"]
    step = integers["design_row"] * (int(integers["position"].max(initial=0)) + 1) + integers["position"]
    start_s, net_s = table["start_s"].to_numpy(dtype=np.float64), np.maximum(net_seconds(table), 0.0)
    cut = disturbance.parts_of(process, start_s, net_s, np.maximum(predicted, 0.0), np.where(context, step, -1))
    first, cold = cut.first, (integers["position"] == 0) & context
    return Parts(
        cut.start_s,
        cut.end_s,
        cut.measured_s,
        cut.expected_s,
        run[first],
        integers["cpu"][first],
        numbered([probe, integers["cpu"], cold.astype(np.int64)])[first],
        context[first].astype(np.int64),
        (integers["attempt"] == 0)[first],
        integers["active_cores"][first],
        (integers["archive"] * MAX_HOSTS + integers["node"])[first],
        cut.of_row,
    )


def _looks(
    parts: Parts,
    usable: Booleans,
    slow: Booleans,
    middles: Sequence[tuple[int, float]],
    watches: Sequence[Watch],
    of_watch: Sequence[Booleans],
    hosts: Sequence[str],
) -> dict[tuple[int, str], Look]:
    """Moments of each node in each archive: the middles of the steps of one core of a run, of episodes on all cores of
    one (its number, and when), and sentinels."""
    of_run = np.zeros(int(parts.run.max(initial=-1)) + 1, dtype=np.int64)
    of_run[parts.run] = parts.series
    lowest = np.full(int(parts.run.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(lowest, parts.run[usable], parts.core[usable])
    chosen = usable & (parts.core == lowest[parts.run])
    result = {}
    for number in np.unique(parts.series):
        mine = chosen & (parts.series == number)
        episodes = np.array([date_s for run, date_s in middles if of_run[run] == number])
        dates = [0.5 * (parts.start_s + parts.end_s)[mine], episodes]
        states = [slow[mine], np.ones(len(episodes), dtype=np.bool_)]
        for watch, state in zip(watches, of_watch, strict=True):
            if watch.host not in hosts and len(hosts) > 1:
                continue  # of a node that was lost before it was measured
            node = hosts.index(watch.host) if watch.host in hosts else 0
            if number == watch.archive * MAX_HOSTS + node:
                dates.append(watch.start_s[~watch.disturbed])
                states.append(state[~watch.disturbed])
        date_s, state = np.concatenate(dates), np.concatenate(states)
        order = np.argsort(date_s, kind="stable")
        archive, node = divmod(int(number), MAX_HOSTS)
        result[archive, hosts[node]] = date_s[order], state[order]
    return result


def _seconds(parts: Parts, usable: Booleans) -> float:
    """Seconds in which a run had usable steps, each core of it counted once."""
    cores = np.zeros(int(parts.run.max(initial=-1)) + 1)
    np.add.at(cores, np.unique(np.column_stack([parts.run[usable], parts.core[usable]]), axis=0)[:, 0], 1.0)
    return float(np.sum(parts.measured_s[usable] / cores[parts.run[usable]]))


def _busy_cores(parts: Parts, usable: Booleans, stretches: Sequence[disturbance.SlowStretch]) -> int | None:
    """The fewest cores that compute where there are episodes, where lower loads were watched for long without any."""
    if not stretches:
        return None
    active = np.zeros(int(parts.run.max(initial=-1)) + 1, dtype=np.int64)
    active[parts.run] = parts.active
    fewest = int(min(active[stretch.launch] for stretch in stretches))
    busy, idle = (_seconds(parts, usable & mask) for mask in (parts.active >= fewest, parts.active < fewest))
    return fewest if busy > 0.0 and len(stretches) / busy * idle > EXPECTED_ALONE else None
