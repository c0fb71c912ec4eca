"""One covariance for all machines of a group, and a day that they share: a machine is compared with its peers.

An observation of machine p on day d is mu_p + D_d + e, with e ~ N(0, Sigma_T), independent and of the same covariance
for all machines (Cornebize's thesis, equation 4.4; `fit.population`). D_d is what the day does to all of them, of which
nothing is assumed: a season, a warm afternoon. It is estimated from the machines measured on that day, each against its
own reference, and taken off. Then days are no longer counted as many independent values, and in a balanced group the
statistic is distributed as F exactly: contrasts of a two-way layout (Scheffé, The Analysis of Variance, 1959, 4.1).

Days go by one after the other: what is estimated for a day rests on it and on earlier ones.
"""

from dataclasses import dataclass, replace

import numpy as np

from lepaute.stats.expanding import Booleans, ExpandingMoments, Floats, Integers
from lepaute.watch.judging.reference import References
from lepaute.watch.values import DAY_S

#: Other nodes without which it cannot be told what a day did to all.
FEWEST_NODES = 5
#: What is further than this many standard deviations from the median of the day is a machine's, not the day's.
FAR = 5.0
#: Of a normal distribution, the standard deviation over the median absolute deviation.
_SCALE = 1.4826


@dataclass(frozen=True, slots=True)
class SharedDays:
    """What the machines of a group say of each observation's day.

    effect : of the day, shape (rows, p); 0 where no machine has a reference yet
    share  : of the observation itself in the effect, shape (rows,)
    peers  : other machines that it rests on, shape (rows,), and other nodes
    peers_n : of the reference sets of these, harmonic mean, shape (rows,)
    day    : position of group and day in scatter and degrees, shape (rows,)
    scatter, degrees_of_freedom : of the earlier days, shape (days, p, p) and (days,)
    """

    effect: Floats
    share: Floats
    peers: Floats
    nodes: Integers
    peers_n: Floats
    day: Integers
    scatter: Floats
    degrees_of_freedom: Floats

    def of(self, rows: slice) -> "SharedDays":
        """The same of some of the observations."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _BY_ROW})


_BY_ROW = ("effect", "share", "peers", "nodes", "peers_n", "day")


@dataclass(frozen=True, slots=True)
class Contrasts:
    """What is tested: the mean of a window against `expected`, shape (rows, p), its variance, and of the covariance.

    variance : in variances of an observation, shape (rows,)
    missing  : nodes that are missing to tell what the day did, shape (rows,)
    """

    expected: Floats
    variance: Floats
    scatter: Floats
    degrees_of_freedom: Integers
    missing: Integers


def shared_days(x: Floats, found: References, started_s: Floats, group: Integers, node: Integers) -> SharedDays:
    """The effects of days and the scatter within machines, from the series that are current on a day.

    x : shape (rows, p); group, node : numbers, shape (rows,), the first the same for all rows of a series
    A series counts from the event at its beginning to the next one: an event may change the scatter, too.
    """
    rows, p = x.shape
    day = np.floor(started_s / DAY_S).astype(np.int64)
    order = np.lexsort((day, group))
    changes = np.flatnonzero((np.diff(group[order]) != 0) | (np.diff(day[order]) != 0)) + 1
    starts = np.concatenate([[0], changes, [rows]]) if rows else np.zeros(1, np.int64)
    days = len(starts) - 1
    state = _Series(len(found.begin_s), p)
    effect, share, peers, peers_n = np.zeros((rows, p)), np.zeros(rows), np.zeros(rows), np.ones(rows)
    nodes: Integers = np.zeros(rows, np.int64)
    position: Integers = np.zeros(rows, np.int64)
    scatter, degrees = np.zeros((days, p, p)), np.zeros(days)
    group_of_series: Integers = np.full(len(found.begin_s), -1, np.int64)
    group_of_series[found.series] = group
    kept = ~found.outlier
    last_group, last_s = -1, -np.inf
    members, bounds = np.zeros(0, np.int64), np.zeros(0)
    for number in range(days):
        all_rows = order[starts[number] : starts[number + 1]]
        now_s, its_group = day[all_rows[0]] * DAY_S, int(group[all_rows[0]])
        if its_group != last_group:
            members = np.flatnonzero(group_of_series == its_group)
            bounds = np.unique(np.concatenate([found.begin_s[members], found.end_s[members]]))
        if its_group != last_group or np.searchsorted(bounds, last_s, "right") != np.searchsorted(
            bounds, now_s, "right"
        ):  # other series are current: sums are made anew, so that nothing has to cancel
            current = members[(found.begin_s[members] <= now_s) & (found.end_s[members] > now_s)]
            total, total_degrees = state.scatter[current].sum(axis=0), float(state.degrees[current].sum())
        last_group, last_s = its_group, now_s
        position[all_rows] = number
        scatter[number], degrees[number] = total, total_degrees
        usable = all_rows[kept[all_rows]]
        spread = np.sqrt(np.diagonal(total) / total_degrees) if total_degrees >= 1 else np.zeros(p)
        estimate = _effect(x[usable], found.series[usable], node[usable], state, spread)
        effect[all_rows] = estimate.effect
        share[usable] = estimate.share
        peers[all_rows], peers_n[all_rows] = estimate.without(found.series[all_rows])
        nodes[all_rows] = estimate.other_nodes(node[all_rows])
        enough = len(estimate.nodes) > FEWEST_NODES
        more, more_degrees = state.add(x[usable] - estimate.effect, found.series[usable], estimate.share, enough)
        total, total_degrees = total + more, total_degrees + more_degrees
    return SharedDays(effect, share, peers, nodes, peers_n, position, scatter, degrees)


def contrasts(shared: SharedDays, moments: ExpandingMoments, r: int, which: Booleans) -> Contrasts:
    """What the mean of each window is compared with: the reference of the machine, and what its peers did since.

    moments : of the observations less the effects of their days; which : the observations to be tested
    The covariance is that of the days before the window. In an unbalanced group the variance is an upper bound.
    """
    rows = np.flatnonzero(which)
    window = moments.window[rows]
    full = window[:, -1] >= 0
    window = np.where(full[:, None], window, rows[:, None])
    share = shared.share[window].mean(axis=1)
    effect = shared.effect[window].mean(axis=1)
    first = window[:, -1]
    variance = 1 / np.maximum(moments.n[rows], 1) + 1 / r
    peers = np.maximum(shared.peers[window].min(axis=1), 1.0)
    variance = variance + np.maximum(variance, 1 / shared.peers_n[first] + 1 / r) / peers
    # from the effect with the machine itself to that of the others
    mean = moments.mean[rows]
    deviation = np.where(full[:, None], moments.window_mean[rows] - mean, 0.0)
    others = effect - (share / (1 - np.minimum(share, 0.5)))[:, None] * deviation
    at = shared.day[first]
    degrees: Integers = np.floor(shared.degrees_of_freedom[at] + 1e-6).astype(np.int64)
    missing: Integers = np.maximum(0, FEWEST_NODES - shared.nodes[window].min(axis=1))
    return Contrasts(mean + others, variance, shared.scatter[at], degrees, missing)


class _Series:
    """Of each series so far: values, their mean without effects of days, scatter and its degrees of freedom."""

    def __init__(self, count: int, p: int) -> None:
        self.n: Integers = np.zeros(count, np.int64)
        self.mean: Floats = np.zeros((count, p))
        self.scatter: Floats = np.zeros((count, p, p))
        self.degrees: Floats = np.zeros(count)

    def add(self, y: Floats, series: Integers, share: Floats, enough: bool) -> tuple[Floats, float]:
        """Values of a day; returns what they add to the scatter and its degrees of freedom, nothing unless `enough`."""
        p = self.mean.shape[1]
        total, degrees = np.zeros((p, p)), 0.0
        left = np.arange(len(series))
        while len(left):  # a machine may have several jobs on a day
            at = left[np.unique(series[left], return_index=True)[1]]
            left = np.setdiff1d(left, at)
            of = series[at]
            delta = y[at] - self.mean[of]
            before = self.n[of]
            self.n[of] += 1
            self.mean[of] += delta / self.n[of][:, None]
            if not enough:
                continue
            added = delta[:, :, None] * delta[:, None, :] * (before / (before + 1))[:, None, None]
            free = np.where(before > 0, 1 - share[at], 0.0)
            self.scatter[of] += added
            self.degrees[of] += free
            total, degrees = total + added.sum(axis=0), degrees + float(free.sum())
        return total, degrees


@dataclass(frozen=True, slots=True)
class _Effect:
    """Of one day: the effect, and what it rests on.

    share : of each observation in it; series, weight : of the machines that are not far from the others
    nodes : all that were measured and have a reference
    """

    effect: Floats
    share: Floats
    series: Integers
    weight: Floats
    nodes: Integers

    def without(self, series: Integers) -> tuple[Floats, Floats]:
        """For an observation of each of these series: other machines, and the harmonic mean of their n."""
        inside = np.isin(series, self.series)
        own = np.zeros(len(series))
        own[inside] = self.weight[np.searchsorted(self.series, series[inside])]
        peers = len(self.series) - inside.astype(np.float64)
        weight = np.maximum(self.weight.sum() - own, 0.0)
        # the weight of a machine is n / (n + 1)
        inverse = np.where(weight > 0, peers / np.where(weight > 0, weight, 1.0) - 1, 1.0)
        return peers, 1 / np.maximum(inverse, 1e-9)

    def other_nodes(self, node: Integers) -> Integers:
        found: Integers = len(self.nodes) - np.isin(node, self.nodes).astype(np.int64)
        return found


def _effect(x: Floats, series: Integers, node: Integers, state: _Series, spread: Floats) -> _Effect:
    """The weighted mean of what machines differ by from their references, without those that are far from most."""
    p = x.shape[1]
    known = state.n[series] > 0
    names, first, inverse, count = np.unique(series[known], return_index=True, return_inverse=True, return_counts=True)
    if not len(names):
        return _Effect(np.zeros(p), np.zeros(len(series)), names, np.zeros(0), np.zeros(0, np.int64))
    sums = np.zeros((len(names), p))
    np.add.at(sums, inverse, x[known] - state.mean[series[known]])
    delta = sums / count[:, None]
    weight = 1 / (1 / count + 1 / state.n[names])
    its_node = node[known][first]
    near = _near(delta, weight, spread) if len(np.unique(its_node)) > FEWEST_NODES else np.ones(len(names), np.bool_)
    used = np.where(near, weight, 0.0)
    share = np.zeros(len(series))
    share[known] = (used / count / used.sum())[inverse]
    effect: Floats = (used[:, None] * delta).sum(axis=0) / used.sum()
    return _Effect(effect, share, names[near], weight[near], np.unique(its_node))


def _near(delta: Floats, weight: Floats, spread: Floats) -> Booleans:
    """Those within FAR scales of the median in each variable; all of them where most are equal.

    spread : of earlier days, shape (p,); that of the day counts if it is more, as it may be small by chance
    """
    centred = np.sqrt(weight)[:, None] * (delta - np.median(delta, axis=0))
    of_day = _SCALE * np.median(np.abs(centred), axis=0)
    scale = np.maximum(of_day * (1 + 10 / len(delta)), spread)
    near: Booleans = ((np.abs(centred) <= FAR * scale) | (of_day == 0)).all(axis=1)
    return near if near.any() else np.ones(len(delta), np.bool_)
