"""All tests of a table of factor values: is what a job found of a machine what earlier jobs found of it?

Pooled tests take one covariance for all machines of a group, and compare a machine with its peers: an observation of
machine p on day d is mu_p + D_d + e, with e ~ N(0, Sigma_T), independent and of the same covariance for all machines
(Cornebize's thesis, equation 4.4; `fit.population`). D_d is what the day does to all of them, of which nothing is
assumed: a season, a warm afternoon. It is estimated from the machines measured on that day, each against its own
reference, and taken off. Then days are no longer counted as many independent values, and in a balanced group the
statistic is distributed as F exactly: contrasts of a two-way layout (Scheffé, The Analysis of Variance, 1959, 4.1).
Days go by one after the other: what is estimated for a day rests on it and on earlier ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from lepaute.errors import InputError
from lepaute.stats.expanding import Booleans, ExpandingMoments, Floats, Integers, expanding_moments
from lepaute.stats.prediction_region import RegionTests, log10_p_values, region_tests
from lepaute.stats.student import SD_OF_MAD
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.reference import (
    Digests,
    Frozen,
    References,
    frozen,
    group_digests,
    machine_digests,
    references,
    with_beginnings,
)
from lepaute.watch.store.rows import row_keys
from lepaute.watch.values import DAY_S, MACHINE, NODE, check_values, day_numbers, is_packed, vectors

#: Defaults of the tests; the windows are the latest job and the latest five.
CONFIDENCE = 0.9999
WINDOWS = (1, 5)
#: Joins the names of factors that are tested as one vector.
AND = " & "
#: Machines are judged in turn, this many numbers of their covariances at a time.
_NUMBERS_AT_ONCE = 1_000_000
_FIELDS = ("n", "degrees_of_freedom", "statistic", "p_value", "direction", "low", "high", "missing")
#: Other nodes without which it cannot be told what a day did to all.
MIN_NODES = 5
#: What is further than this many standard deviations from the median of the day is a machine's, not the day's.
FAR = 5.0


def judge(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    factors: "Sequence[str | Sequence[str]] | None" = None,
    windows: Sequence[int] = WINDOWS,
    confidence: float = CONFIDENCE,
    pooled: bool = False,
    standing: "pd.DataFrame | None" = None,
) -> "pd.DataFrame":
    """Tests each observation of each machine against its reference: one row a test.

    values  : as watch.values says
    factors : each a factor, or several that are tested as one vector; every factor of the table by itself by default
    windows : the numbers r of latest observations whose mean is tested
    confidence : of low and high
    pooled  : the covariance is that within all machines of a cluster and stratum, less what a day did to all
    standing : rows of `open_regressions`: no reference has values from the beginning of its regression on

    Columns: cluster, node, cpu, job, started_s, stratum, archive, factor (names joined by AND), r, p, pooled, outlier
    (logged as one: tested, but no reference), n, degrees_of_freedom (of the covariance), statistic, p_value, direction,
    low, high (of the mean of r observations, in the unit of the factor), missing, log10_p (of the p-value, also where
    that is too small for a number). Where `missing` is not 0, there are not yet enough observations, by this many at
    least, and statistic, p_value, low, high and log10_p are NaN.
    Raises InputError for a table without rows or with unknown factors, and for windows or a confidence that cannot be.
    """
    table = check_values(values)
    tested = vectors_asked(sorted(table["factor"].unique()) if factors is None else factors)
    if not tested:
        raise InputError("there is nothing to test: the table of factor values is empty")
    check_windows(windows)
    parts = []
    for names in tested:
        case = compared(vectors(table, names), changelog or Changelog(), names, pooled, standing)
        parts += [with_log10(case.tests(r, confidence)) for r in dict.fromkeys(windows)]
    return joined(parts)


def vectors_asked(factors: "Sequence[str | Sequence[str]]") -> list[tuple[str, ...]]:
    """Each a vector of factors, or one factor; raises InputError for one that is none."""
    every = (factors,) if isinstance(factors, str) else factors
    tested = [(each,) if isinstance(each, str) else tuple(each) for each in every]
    for names in tested:
        if not names or len(set(names)) < len(names):
            raise InputError(f"the factors {names!r} cannot be tested as one vector; give each once")
    return list(dict.fromkeys(tested))


def check_windows(windows: Sequence[int]) -> None:
    """Raises InputError if there is none, or one too long to be held."""
    if not windows or max(windows) > 10**6:
        raise InputError(f"windows are {[*windows]!s:.80}; give numbers of observations, 1 to 1000000, such as 1 and 5")


def with_log10(tests: "pd.DataFrame") -> "pd.DataFrame":
    """The tests with a column log10_p."""
    numbers = (tests[name].to_numpy(np.float64) for name in ("statistic", "p", "degrees_of_freedom"))
    return tests.assign(log10_p=log10_p_values(*numbers))


def joined(parts: "list[pd.DataFrame]") -> "pd.DataFrame":
    """The rows of all of them; takes the parts out of the list, and their columns one after the other: less memory."""
    if len(parts) == 1:
        return parts[0].reset_index(drop=True)
    held = [{str(name): part[name] for name in part.columns} for part in parts]
    parts.clear()

    def column(name: str) -> "pd.Series[Any] | pd.Categorical":
        columns = [part.pop(name) for part in held]
        if all(is_packed(each) for each in columns):
            return pd.api.types.union_categoricals(columns, sort_categories=True)
        return pd.concat(columns, ignore_index=True)

    return pd.DataFrame({name: column(name) for name in list(held[0])}, copy=False)


@dataclass(frozen=True, slots=True)
class _SharedDays:
    """Day effects of each observation from the machines of its group.

    effect : of the day, shape (rows, p); 0 if no machine has a reference yet
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

    def of(self, rows: slice) -> "_SharedDays":
        """The same of some of the observations."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _BY_ROW})


@dataclass(frozen=True, slots=True)
class Compared:
    """Observations of one vector of factors, in the order of machine and time, with what each is compared with.

    keys : their columns but for the values, which are x, shape (rows, p)
    frozen : references that end where an open regression begins
    shared : what peers say of each day; None if each machine is tested by itself
    digest : tells what a verdict rests on, shape (rows,)
    """

    keys: "pd.DataFrame"
    names: tuple[str, ...]
    x: Floats
    references: References
    frozen: Frozen
    shared: _SharedDays | None
    digest: Digests

    def tests(self, r: int, confidence: float, chosen: Booleans | None = None) -> "pd.DataFrame":
        """The tests with windows of r observations, of the chosen rows (all by default)."""
        rows, p = self.x.shape
        which = np.ones(rows, np.bool_) if chosen is None else chosen
        parts = [
            self._tests(block, which[block], r, confidence)
            for block in _blocks(self.keys, max(1, _NUMBERS_AT_ONCE // (p * p)))
            if which[block].any()
        ] or [self._tests(slice(0, 0), which[:0], r, confidence)]
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS}
        keys = self.keys[which].reset_index(drop=True)
        same = {"factor": AND.join(self.names), "r": r, "p": p, "pooled": self.shared is not None}
        return keys.assign(**same, outlier=self.references.outlier[which], **columns)

    def _tests(self, block: slice, which: Booleans, r: int, confidence: float) -> RegionTests:
        x, series, kept = self.x[block], self.references.series[block], ~self.references.outlier[block]
        most = self.frozen.most[block]
        if self.shared is None:
            moments = expanding_moments(x, series, kept, r, most, which)
            n = moments.n
            return region_tests(moments.window_mean, moments.mean, moments.scatter, n, n - 1, r, confidence)
        shared = self.shared.of(block)
        moments = expanding_moments(x - shared.effect, series, kept, r, most, which)
        expected, variance, scatter, degrees, missing = _contrasts(shared, moments, r)
        window = moments.window
        new = np.where(window[:, -1:] >= 0, x[window].mean(axis=1), np.nan)
        return region_tests(new, expected, scatter, moments.n, degrees, r, confidence, variance, missing)


def compared(
    observations: "pd.DataFrame",
    changelog: Changelog,
    names: tuple[str, ...],
    pooled: bool,
    standing: "pd.DataFrame | None" = None,
) -> Compared:
    """What each of the observations, a table of watch.values.vectors, is compared with."""
    refs = references(observations, changelog)
    ended = frozen(observations, refs, names, standing)
    x = observations[list(names)].to_numpy(np.float64)
    keys = observations.drop(columns=list(names))
    shared = None
    if pooled:
        group: Integers = keys.groupby(["cluster", "stratum"], sort=False).ngroup().to_numpy().astype(np.int64)
        node: Integers = keys.groupby(NODE, sort=False).ngroup().to_numpy().astype(np.int64)
        day = day_numbers(keys["started_s"])
        shared = _shared_days(x, refs, day, group, node)
        digest = group_digests(refs, group, day)
    else:
        digest = machine_digests(refs)
    return Compared(keys, names, x, refs, ended, shared, with_beginnings(digest, keys, ended.begun_s))


def _blocks(keys: "pd.DataFrame", most: int) -> list[slice]:
    """Slices of whole machines, of about `most` rows."""
    rows = len(keys)
    if not rows:  # no job of the factor is done
        return [slice(0, 0)]
    first = np.flatnonzero(np.diff(row_keys(keys, MACHINE), prepend=-2))
    edges = [0]
    for begin, end in zip(first, [*first[1:], rows], strict=True):
        if end - edges[-1] > most and begin > edges[-1]:
            edges.append(int(begin))
    return [slice(begin, end) for begin, end in zip(edges, [*edges[1:], rows], strict=True) if end > begin]


_BY_ROW = ("effect", "share", "peers", "nodes", "peers_n", "day")


def _shared_days(x: Floats, refs: References, day: Integers, group: Integers, node: Integers) -> _SharedDays:
    """The effects of days and the scatter within machines, from the series that are current on a day.

    x : shape (rows, p); day, group, node : numbers, shape (rows,), the group the same for all rows of a series
    A series counts from the event at its beginning to the next one: an event may change the scatter, too.
    """
    rows, p = x.shape
    order = np.lexsort((day, group))
    changes = np.flatnonzero((np.diff(group[order]) != 0) | (np.diff(day[order]) != 0)) + 1
    starts = np.concatenate([[0], changes, [rows]]) if rows else np.zeros(1, np.int64)
    days = len(starts) - 1
    state = _Series(len(refs.begin_s), p)
    effect, share, peers, peers_n = np.zeros((rows, p)), np.zeros(rows), np.zeros(rows), np.ones(rows)
    nodes: Integers = np.zeros(rows, np.int64)
    position: Integers = np.zeros(rows, np.int64)
    scatter, degrees = np.zeros((days, p, p)), np.zeros(days)
    group_of_series: Integers = np.full(len(refs.begin_s), -1, np.int64)
    group_of_series[refs.series] = group
    kept = ~refs.outlier
    last_group, last_s = -1, -np.inf
    members, bounds = np.zeros(0, np.int64), np.zeros(0)
    for number in range(days):
        all_rows = order[starts[number] : starts[number + 1]]
        now_s, its_group = day[all_rows[0]] * DAY_S, int(group[all_rows[0]])
        if its_group != last_group:
            members = np.flatnonzero(group_of_series == its_group)
            bounds = np.unique(np.concatenate([refs.begin_s[members], refs.end_s[members]]))
        if its_group != last_group or np.searchsorted(bounds, last_s, "right") != np.searchsorted(
            bounds, now_s, "right"
        ):  # other series are current: sums are made anew, so that nothing has to cancel
            current = members[(refs.begin_s[members] <= now_s) & (refs.end_s[members] > now_s)]
            total, total_degrees = state.scatter[current].sum(axis=0), float(state.degrees[current].sum())
        last_group, last_s = its_group, now_s
        position[all_rows] = number
        scatter[number], degrees[number] = total, total_degrees
        usable = all_rows[kept[all_rows]]
        spread = np.sqrt(np.diagonal(total) / total_degrees) if total_degrees >= 1 else np.zeros(p)
        estimate = _effect(x[usable], refs.series[usable], node[usable], state, spread)
        effect[all_rows] = estimate.effect
        share[usable] = estimate.share
        peers[all_rows], peers_n[all_rows] = estimate.without(refs.series[all_rows])
        nodes[all_rows] = len(estimate.nodes) - np.isin(node[all_rows], estimate.nodes)
        enough = len(estimate.nodes) > MIN_NODES
        more, more_degrees = state.add(x[usable] - estimate.effect, refs.series[usable], estimate.share, enough)
        total, total_degrees = total + more, total_degrees + more_degrees
    return _SharedDays(effect, share, peers, nodes, peers_n, position, scatter, degrees)


def _contrasts(
    shared: _SharedDays, moments: ExpandingMoments, r: int
) -> tuple[Floats, Floats, Floats, Integers, Integers]:
    """What the mean of each window is compared with: the reference of the machine, and what its peers did since.

    moments : of the observations to be tested less the effects of their days
    Returns what is expected of the mean, shape (rows, p), the variance of its difference, in variances of an
    observation (in an unbalanced group an upper bound), scatter and degrees of freedom of the days before the window,
    and how many nodes are missing to tell what the day did, shape (rows,).
    """
    full = moments.window[:, -1] >= 0
    window = np.where(full[:, None], moments.window, moments.window[:, :1])
    share = shared.share[window].mean(axis=1)
    effect = shared.effect[window].mean(axis=1)
    first = window[:, -1]
    variance = 1 / np.maximum(moments.n, 1) + 1 / r
    peers = np.maximum(shared.peers[window].min(axis=1), 1.0)
    variance = variance + np.maximum(variance, 1 / shared.peers_n[first] + 1 / r) / peers
    # from the effect with the machine itself to that of the others
    deviation = np.where(full[:, None], moments.window_mean - moments.mean, 0.0)
    others = effect - (share / (1 - np.minimum(share, 0.5)))[:, None] * deviation
    at = shared.day[first]
    degrees: Integers = np.floor(shared.degrees_of_freedom[at] + 1e-6).astype(np.int64)
    missing: Integers = np.maximum(0, MIN_NODES - shared.nodes[window].min(axis=1))
    return moments.mean + others, variance, shared.scatter[at], degrees, missing


class _Series:
    """State of each series so far: values, their mean without effects of days, scatter and its degrees of freedom."""

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
    """Effect of one day: the effect, and what it rests on.

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
        return peers, 1 / np.maximum(np.where(weight > 0, peers / np.where(weight > 0, weight, 1.0) - 1, 1.0), 1e-9)


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
    near = _near(delta, weight, spread) if len(np.unique(its_node)) > MIN_NODES else np.ones(len(names), np.bool_)
    used = np.where(near, weight, 0.0)
    share = np.zeros(len(series))
    share[known] = (used / count / used.sum())[inverse]
    effect: Floats = (used[:, None] * delta).sum(axis=0) / used.sum()
    return _Effect(effect, share, names[near], weight[near], np.unique(its_node))


def _near(delta: Floats, weight: Floats, spread: Floats) -> Booleans:
    """Values within FAR scales of the median in each variable; all of them if most are equal.

    spread : of earlier days, shape (p,); that of the day counts if it is more, as it may be small by chance
    """
    centred = np.sqrt(weight)[:, None] * (delta - np.median(delta, axis=0))
    of_day = SD_OF_MAD * np.median(np.abs(centred), axis=0)
    scale = np.maximum(of_day * (1 + 10 / len(delta)), spread)
    near: Booleans = ((np.abs(centred) <= FAR * scale) | (of_day == 0)).all(axis=1)
    return near if near.any() else np.ones(len(delta), np.bool_)
