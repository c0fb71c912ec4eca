"""The generative model of a kernel by moments: coefficients of (cpu, day) -> theta, Sigma_S, Sigma_T (and groups).

The model is that of Cornebize's thesis, section 4.2.2 (equations 4.3 to 4.5), with a mixture over nodes at the top, and
with Sigma_T split into what all CPUs of a day share and what is each one's own:

    theta[cpu] ~ N(theta[group], Sigma_S[group]);   theta[cpu, day] = theta[cpu] + common[day] + own[cpu, day]
    Sigma_T = cov(common) + cov(own)

The own part of each cpu has a standard deviation of its own where BIC prefers that (`day_scales`).

Nothing is divided out: covariances are in the units of the coefficients. All estimates are unbiased, whatever the
number of days of each cpu, but for the projection onto positive semi-definite matrices, noted where it has an effect.

Which nodes are alike: a Gaussian mixture over nodes, whose number of groups is chosen by BIC; deterministic.

The CPUs of a node belong to one group, and are independent draws from it. Means and covariances are found by
expectation maximisation with the conjugate prior of Fraley & Raftery (Journal of Classification 24, 2007, section 3.2),
which keeps the covariance of a group of few CPUs from collapsing. All is done in whitened coordinates, without units.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from lepaute.errors import FitError, LepauteError
from lepaute.kit.text import counted
from lepaute.measure.fit.numeric import Floats, Integers, one_blas_thread
from lepaute.measure.fit.population.coefficients import Coefficients
from lepaute.measure.fit.population.day_scales import DayScales, covariances_of_groups, day_scales, outlying_days
from lepaute.simulate.platform.population import Group, Population
from lepaute.stats.covariances import (
    BetweenDays,
    between_days,
    between_units,
    day_shares,
    nearest_covariance,
    unit_means,
)

MAX_GROUPS = 4
#: Nodes, below which there is nothing to be said about groups.
MIN_NODES = 6
ITERATIONS = 200
TOLERANCE = 1e-8
#: Directions with less than this share of the variance are rounding.
NEGLIGIBLE = 1e-9
#: Weight of the prior of a mean, in observations (Fraley & Raftery's default).
MEAN_PRIOR = 0.01
#: Share of the sum of absolute eigenvalues: less that is dropped is not worth a sentence.
WORTH_TELLING = 0.01


@dataclass(frozen=True, slots=True)
class Mixture:
    """Groups of nodes, the largest first.

    group_of_node : shape (nodes,)
    bic           : of the best mixture with 1, 2, ... groups; lower is better; NaN if there was none
    """

    group_of_node: Integers
    bic: tuple[float, ...]

    @property
    def groups(self) -> int:
        return int(self.group_of_node.max()) + 1


@dataclass(frozen=True, slots=True)
class _State:
    """A mixture in whitened coordinates: responsibilities (n, g), and how likely it makes the data."""

    share: Floats
    log_likelihood: float
    objective: float


def _groups_of_nodes(node: Integers, centres: Floats, most: int = MAX_GROUPS) -> Mixture:
    """The groups that the nodes fall in.

    node : shape (CPUs,), from 0, the node of each cpu;  centres : shape (CPUs, p), mean coefficients of each
    Candidates have 1 to `most` groups, of one covariance or each of its own; BIC counts CPUs as observations. A
    candidate with a group to which no node belongs most likely is left out.
    """
    nodes = int(node.max()) + 1
    z = _whitened(centres)
    single = Mixture(np.zeros(nodes, dtype=np.int64), (float("nan"),))
    if z.shape[1] == 0 or nodes < MIN_NODES:
        return single
    best: tuple[float, Integers] | None = None
    scores = []
    for groups in range(1, min(most, nodes // 2) + 1):
        lowest = float("nan")
        for alike in (True, False) if groups > 1 else (True,):
            states = (_maximised(z, node, start, alike) for start in _starts(z, node, groups))
            state = max(states, key=lambda state: state.objective)
            label = np.argmax(state.share, axis=1)
            if len(np.unique(label)) < groups:
                continue
            size = z.shape[1]
            parameters = groups - 1 + groups * size + (1 if alike else groups) * size * (size + 1) // 2
            score = -2.0 * state.log_likelihood + parameters * np.log(len(z))
            lowest = float(np.fmin(lowest, score))
            if best is None or score < best[0]:
                best = (float(score), label)
        scores.append(lowest)
    assert best is not None  # one group is always a candidate
    return Mixture(_by_size(best[1]), tuple(scores))


def _whitened(centres: Floats) -> Floats:
    """Uncorrelated coordinates of variance one, as many as have any spread."""
    centred = centres - centres.mean(axis=0)
    sd = np.sqrt(np.mean(centred**2, axis=0))
    spread = sd > 1e-12 * np.max(np.abs(centres), axis=0)
    scaled = centred[:, spread] / sd[spread]
    if scaled.shape[1] == 0 or len(scaled) < 3:
        return np.zeros((len(centres), 0))
    values, vectors = np.linalg.eigh(scaled.T @ scaled / len(scaled))
    kept = values > NEGLIGIBLE * values.max()
    whitened: Floats = scaled @ vectors[:, kept] / np.sqrt(values[kept])
    return whitened


def _starts(z: Floats, node: Integers, groups: int) -> Iterator[Floats]:
    """First responsibilities (nodes, groups): nodes cut along each coordinate, at the widest gaps and in equal parts;
    and around nodes far from each other."""
    nodes = int(node.max()) + 1
    if groups == 1:
        yield np.ones((nodes, 1))
        return
    mean = np.column_stack([np.bincount(node, column) / np.bincount(node) for column in z.T])
    for column in (*mean.T, np.sqrt(np.sum(mean**2, axis=1))):
        order = np.argsort(column, kind="stable")
        widest = np.sort(np.argsort(-np.diff(column[order]), kind="stable")[: groups - 1]) + 1
        for cuts in (widest, [nodes * part // groups for part in range(1, groups)]):
            label = np.zeros(nodes, dtype=np.int64)
            for cut in cuts:
                label[order[cut:]] += 1
            yield np.eye(groups)[label]
    chosen = [int(np.argmin(np.sum(mean**2, axis=1)))]
    while len(chosen) < groups:
        chosen.append(int(np.argmax(_distances(mean, chosen).min(axis=1))))
    yield np.eye(groups)[np.argmin(_distances(mean, chosen), axis=1)]


def _distances(mean: Floats, chosen: list[int]) -> Floats:
    distances: Floats = np.sum((mean[:, None, :] - mean[chosen][None]) ** 2, axis=2)
    return distances


def _maximised(z: Floats, node: Integers, share: Floats, alike: bool) -> _State:
    state = _step(z, node, share, alike)
    for _ in range(ITERATIONS):
        following = _step(z, node, state.share, alike)
        if following.objective < state.objective + TOLERANCE * len(z):
            return max(state, following, key=lambda one: one.objective)
        state = following
    return state


def _step(z: Floats, node: Integers, share: Floats, alike: bool) -> _State:
    """The maximum of the posterior for these responsibilities, and the responsibilities that follow from it."""
    (cpus, size), groups = z.shape, share.shape[1]
    of_cpu = share[node]
    count = of_cpu.sum(axis=0)
    weight = np.maximum(share.sum(axis=0) / len(share), 1e-12)
    average = (of_cpu.T @ z) / np.maximum(count, 1e-12)[:, None]
    kept = count / (count + MEAN_PRIOR)
    mean = kept[:, None] * average  # the prior's mean is 0, that of all
    prior_variance = 1.0 / groups ** (2.0 / size)
    second = ((of_cpu[:, :, None] * z[:, None, :]).reshape(cpus, -1).T @ z).reshape(groups, size, size)
    scatter = second - ((count - kept * MEAN_PRIOR)[:, None] * average)[:, :, None] * average[:, None, :]
    freedom = size + 2.0
    # One covariance, or one of each group.
    covariance = scatter.sum(axis=0, keepdims=True) if alike else scatter
    covariance.reshape(len(covariance), -1)[:, :: size + 1] += prior_variance
    covariance /= np.array([float(cpus)] if alike else count)[:, None, None] + freedom + size + 2.0
    log_determinant = np.linalg.slogdet(covariance)[1]
    inverse = np.linalg.inv(covariance)
    centred = z[None] - mean[:, None, :]
    square = ((centred @ inverse) * centred).sum(axis=2)
    log_density = -0.5 * (square + (log_determinant + size * np.log(2 * np.pi))[:, None])
    determinants = float(log_determinant.sum())
    of_mean = MEAN_PRIOR * ((mean[:, None, :] @ inverse)[:, 0] * mean).sum() + groups / len(covariance) * determinants
    of_covariance = (freedom + size + 1) * determinants + prior_variance * inverse.trace(axis1=1, axis2=2).sum()
    log_prior = -0.5 * float(of_mean + of_covariance)
    of_node = np.empty((len(share), groups))
    for group, column in enumerate(log_density):
        of_node[:, group] = np.bincount(node, column)
    of_node += np.log(weight)
    highest = of_node.max(axis=1, keepdims=True)
    total = highest[:, 0] + np.log(np.exp(of_node - highest).sum(axis=1))
    likelihood = float(total.sum())
    return _State(np.exp(of_node - total[:, None]), likelihood, likelihood + log_prior)


def _by_size(label: Integers) -> Integers:
    """Labels renumbered: the largest group is 0; of equal ones, that with the first node."""
    used, first, count = np.unique(label, return_index=True, return_counts=True)
    order = np.lexsort((first, -count))
    place = {int(used[old]): new for new, old in enumerate(order)}
    return np.array([place[int(one)] for one in label], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class GroupMoments:
    """One group of nodes.

    weight             : share of the nodes
    theta, theta_sd    : mean coefficients and their standard errors, shape (p,)
    degrees_of_freedom : of these standard errors, shape (p,)
    covariance_spatial : Sigma_S, shape (p, p);  covariance_temporal : of the own part of a day, None: that of all
    covariance_log_scale : of the logarithms of its CPUs' factors, None: that of all
    """

    weight: float
    nodes: int
    units: int
    theta: Floats
    theta_sd: Floats
    degrees_of_freedom: Floats
    covariance_spatial: Floats
    covariance_temporal: Floats | None
    covariance_log_scale: Floats | None = None

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds of the coefficients of theta at that confidence, each by itself (Student), shape (p,)."""
        half = stats.t.ppf(0.5 + level / 2, self.degrees_of_freedom) * self.theta_sd
        return self.theta - half, self.theta + half


@dataclass(frozen=True, slots=True)
class Generative:
    """A fitted hierarchy.

    days   : Sigma_T and its parts, in the mean over all CPUs
    scales : where CPUs differ in the standard deviation of their days; None if they do not
    notes  : what a reader should know, one sentence each
    """

    terms: tuple[str, ...]
    groups: tuple[GroupMoments, ...]
    group_of_node: Integers
    days: BetweenDays
    scales: DayScales | None
    bic: tuple[float, ...]
    notes: tuple[str, ...]
    source: str

    @property
    def covariance_temporal(self) -> Floats:
        """Sigma_T of the literature: of everything that differs between the days of a cpu."""
        return self.days.individual if self.days.common is None else self.days.individual + self.days.common

    def population(self, kernel: str = "dgemm", threads: int = 1) -> Population:
        """As the section of a platform."""
        common, scales = self.days.common, self.scales
        groups = (
            Group(
                weight=group.weight,
                mean=tuple(float(value) for value in group.theta),
                covariance_spatial=_rows(group.covariance_spatial),
                covariance_temporal=_rows_of(group.covariance_temporal),
                covariance_log_scale=_rows_of(group.covariance_log_scale),
            )
            for group in self.groups
        )
        return Population(
            kernel=kernel, threads=threads, terms=self.terms, groups=tuple(groups),
            covariance_temporal=_rows(self.days.individual if scales is None else scales.pooled_typical),
            covariance_log_scale=None if scales is None else _rows(scales.pooled_log),
            scale_of_cpu=None if scales is None else _rows(np.exp(scales.log_scale)),
            covariance_common=_rows_of(common),
            group_of_node=tuple(int(group) for group in self.group_of_node) if len(self.groups) > 1 else None,
            source=" ".join([f"{self.source}, {len(self.group_of_node)} nodes.", *self.notes]),
        )  # fmt: skip


@one_blas_thread()
def generative(data: Coefficients, *, most_groups: int = MAX_GROUPS) -> Generative:
    """Fits the hierarchy to the coefficients of several CPUs on several days.

    most_groups : 1 for no mixture
    With one day only, Sigma_T is zero and a note says so. A group of few CPUs (fewer than twice the coefficients) takes
    the Sigma_S that all groups share.
    Raises FitError with fewer than two nodes, or fewer than three CPUs.
    """
    if data.nodes < 2 or data.units < 3:
        raise FitError(
            f"{data.source}: holds {counted(data.nodes, 'node')} and {counted(data.units, 'CPU')}; what differs "
            "between nodes needs two nodes and three CPUs at least: calibrate more nodes, or use the platform of this "
            "one as it is"
        )
    notes: list[str] = []
    try:
        days = between_days(data.unit, data.day, data.values)
    except LepauteError:
        raise
    except ValueError:
        zero = np.zeros((len(data.terms), len(data.terms)))
        days = BetweenDays(zero, None, zero, 0)
        notes.append("every cpu was seen on one day: nothing is known of the spread between days, and none is drawn.")
    if days.degrees_of_freedom and days.common is None:
        notes.append("no part of a day is common to all CPUs, or it cannot be told apart.")
    constant = np.flatnonzero(np.ptp(data.values, axis=0) == 0.0)
    notes += [f"{data.terms[at]} is the same everywhere." for at in constant]
    mixture = _groups_of_nodes(data.node_of_unit, unit_means(data.unit, data.values), most_groups)
    of_unit = mixture.group_of_node[data.node_of_unit]
    scales = day_scales(data, of_unit) if days.degrees_of_freedom else None
    if scales is None:
        own = typical = covariances_of_groups(data, of_unit, days) or [None] * mixture.groups
    else:
        own = [*scales.mean]
        typical = [*scales.typical] if scales.grouped else [None] * mixture.groups
    days_of = [days if matrix is None else replace(days, individual=matrix) for matrix in own]
    spreads = _spreads(data, of_unit, days_of, notes)
    groups = tuple(
        replace(
            _group(data, mixture.group_of_node, of_unit, number, days_of[number], spreads[number]),
            covariance_temporal=typical[number],
            covariance_log_scale=scales.covariance_log[number] if scales is not None and scales.grouped else None,
        )
        for number in range(mixture.groups)
    )
    notes += outlying_days(data, scales)
    return Generative(data.terms, groups, mixture.group_of_node, days, scales, mixture.bic, tuple(notes), data.source)


def _rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in matrix)


def _rows_of(matrix: Floats | None) -> tuple[tuple[float, ...], ...] | None:
    return None if matrix is None else _rows(matrix)


def _chosen(data: Coefficients, units: Integers) -> tuple[Integers, Integers, Floats]:
    rows = np.isin(data.unit, units)
    return data.unit[rows], data.day[rows], data.values[rows]


def _spreads(data: Coefficients, of_unit: Integers, days_of: list[BetweenDays], notes: list[str]) -> list[Floats]:
    """Sigma_S of each group, projected; groups of few CPUs take that of all groups together."""
    size = len(data.terms)
    whole = np.var(unit_means(data.unit, data.values), axis=0)
    matrices: list[Floats | None] = []
    pooled, freedom = np.zeros((size, size)), 0
    for number, days in enumerate(days_of):
        units = np.flatnonzero(of_unit == number)
        if len(units) < 2:
            matrices.append(None)
            continue
        matrix = between_units(*_chosen(data, units), days)
        pooled, freedom = pooled + (len(units) - 1) * matrix, freedom + len(units) - 1
        matrices.append(matrix if len(units) > 2 * size else None)
    shared, _ = nearest_covariance(pooled / max(freedom, 1), whole)
    results = []
    several = len(matrices) > 1
    for number, candidate in enumerate(matrices):
        if candidate is None:
            results.append(shared)
            if several:
                notes.append(f"group {number} has too few CPUs for a Sigma_S of its own and takes that of all groups.")
            continue
        projected, dropped = nearest_covariance(candidate, whole)
        if dropped > WORTH_TELLING:
            notes.append(
                f"Sigma_S{f' of group {number}' if several else ''} had negative eigenvalues ({dropped:.0%} of all), "
                "which were dropped: there CPUs differ less than days can resolve."
            )
        results.append(projected)
    return results


def _group(
    data: Coefficients, group_of_node: Integers, of_unit: Integers, number: int, days: BetweenDays, spread: Floats
) -> GroupMoments:
    units = np.flatnonzero(of_unit == number)
    unit, day, values = _chosen(data, units)
    means = unit_means(unit, values)[units]
    # Of the mean over CPUs: their scatter holds Sigma_S and their own days; a day that all share does not average out.
    scatter = np.var(means, axis=0, ddof=1) if len(units) > 1 else np.diag(spread + days.individual)
    from_units = scatter / len(units)
    freedom_units = max(len(units) - 1, 1)
    from_days = np.zeros_like(from_units)
    if days.common is not None:
        from_days = np.diag(days.common) * float(np.sum(day_shares(unit, day)[units].mean(axis=0) ** 2))
    variance = from_units + from_days
    freedom_days = max(data.days - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # Satterthwaite, Biometrics Bulletin 2, 1946
        freedom = variance**2 / (from_units**2 / freedom_units + from_days**2 / freedom_days)
    freedom = np.where(np.isfinite(freedom), freedom, freedom_units)
    nodes = int(np.sum(group_of_node == number))
    return GroupMoments(
        nodes / len(group_of_node), nodes, len(units), means.mean(axis=0), np.sqrt(variance), freedom, spread, None
    )
