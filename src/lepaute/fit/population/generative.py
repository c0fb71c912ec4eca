"""The generative model of a kernel by moments: coefficients of (cpu, day) -> theta, Sigma_S, Sigma_T (and groups).

The model is that of Cornebize's thesis, section 4.2.2 (equations 4.3 to 4.5), with a mixture over nodes at the top, and
with Sigma_T split into what all CPUs of a day share and what is each one's own:

    theta[cpu] ~ N(theta[group], Sigma_S[group]);   theta[cpu, day] = theta[cpu] + common[day] + own[cpu, day]
    Sigma_T = cov(common) + cov(own)

Nothing is divided out: covariances are in the units of the coefficients. All estimates are unbiased, whatever the
number of days of each cpu, but for the projection onto positive semi-definite matrices, noted where it has an effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.numeric.threads import one_blas_thread
from lepaute.fit.population.coefficients import Coefficients
from lepaute.fit.population.node_groups import MOST_GROUPS, groups_of_nodes
from lepaute.stats.covariances import (
    BetweenDays,
    between_days,
    between_units,
    day_shares,
    nearest_covariance,
    unit_means,
)

if TYPE_CHECKING:
    from lepaute.platform.population import Population

#: Of the sum of absolute eigenvalues: less that is dropped is not worth a sentence.
WORTH_TELLING = 0.01
#: Excess kurtosis of days that is noted (Student's t of five degrees of freedom has 6), if it is five standard errors.
LONG_TAILS = 5.0


@dataclass(frozen=True, slots=True)
class GroupMoments:
    """One group of nodes.

    weight             : share of the nodes
    theta, theta_sd    : mean coefficients and their standard errors, shape (p,)
    degrees_of_freedom : of these standard errors, shape (p,)
    covariance_spatial : Sigma_S, shape (p, p);  covariance_temporal : of the own part of a day, None: that of all
    """

    weight: float
    nodes: int
    units: int
    theta: Floats
    theta_sd: Floats
    degrees_of_freedom: Floats
    covariance_spatial: Floats
    covariance_temporal: Floats | None

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds of the coefficients of theta at that confidence, each by itself (Student), shape (p,)."""
        from scipy import stats

        half = stats.t.ppf(0.5 + level / 2, self.degrees_of_freedom) * self.theta_sd
        return self.theta - half, self.theta + half


@dataclass(frozen=True, slots=True)
class Generative:
    """A fitted hierarchy; `days` holds Sigma_T and its parts, `notes` what a reader should know, one sentence each."""

    terms: tuple[str, ...]
    groups: tuple[GroupMoments, ...]
    group_of_node: Integers
    days: BetweenDays
    bic: tuple[float, ...]
    notes: tuple[str, ...]
    source: str

    @property
    def covariance_temporal(self) -> Floats:
        """Sigma_T of the literature: of everything that differs between the days of a cpu."""
        return self.days.individual if self.days.common is None else self.days.individual + self.days.common

    def population(self, kernel: str = "dgemm", threads: int = 1) -> "Population":
        """As the section of a platform."""
        from lepaute.platform.population import Group, Population

        common = self.days.common
        return Population(
            kernel=kernel,
            threads=threads,
            terms=self.terms,
            groups=tuple(
                Group(
                    weight=group.weight,
                    mean=tuple(float(value) for value in group.theta),
                    covariance_spatial=_rows(group.covariance_spatial),
                    covariance_temporal=None if group.covariance_temporal is None else _rows(group.covariance_temporal),
                )
                for group in self.groups
            ),
            covariance_temporal=_rows(self.days.individual),
            covariance_common=None if common is None else _rows(common),
            group_of_node=tuple(int(group) for group in self.group_of_node) if len(self.groups) > 1 else None,
            source=" ".join([f"{self.source}, {len(self.group_of_node)} nodes.", *self.notes]),
        )


@one_blas_thread()
def generative(data: Coefficients, *, most_groups: int = MOST_GROUPS) -> Generative:
    """Fits the hierarchy to the coefficients of several CPUs on several days.

    most_groups : 1 for no mixture
    With one day only, Sigma_T is zero and a note says so. A group of few CPUs (fewer than twice the coefficients) takes
    the Sigma_S that all groups share.
    Raises FitError with fewer than two nodes, or fewer than three CPUs.
    """
    if data.nodes < 2 or data.units < 3:
        raise FitError(
            f"{data.source}: holds {data.nodes} node(s) and {data.units} CPUs; what differs between nodes needs two "
            "nodes and three CPUs at least: calibrate more nodes, or use the platform of this one as it is"
        )
    notes: list[str] = []
    try:
        days = between_days(data.unit, data.day, data.values)
    except ValueError:
        zero = np.zeros((len(data.terms), len(data.terms)))
        days = BetweenDays(zero, None, zero, 0)
        notes.append("every cpu was seen on one day: nothing is known of the spread between days, and none is drawn.")
    if days.degrees_of_freedom and days.common is None:
        notes.append("no part of a day is common to all CPUs, or it cannot be told apart.")
    constant = np.flatnonzero(np.ptp(data.values, axis=0) == 0.0)
    notes += [f"{data.terms[at]} is the same everywhere." for at in constant]
    centres = unit_means(data.unit, data.values)
    mixture = groups_of_nodes(data.node_of_unit, centres, most_groups)
    of_unit = mixture.group_of_node[data.node_of_unit]
    per_group: Sequence[Floats | None] = _own_days(data, of_unit, days) or [None] * mixture.groups
    days_of = [days if matrix is None else replace(days, individual=matrix) for matrix in per_group]
    spreads = _spreads(data, of_unit, days_of, notes)
    groups = tuple(
        replace(
            _group(data, mixture.group_of_node, of_unit, number, days_of[number], spreads[number]),
            covariance_temporal=per_group[number],
        )
        for number in range(mixture.groups)
    )
    notes += _tails(data, of_unit)
    return Generative(data.terms, groups, mixture.group_of_node, days, mixture.bic, tuple(notes), data.source)


def _rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in matrix)


def _chosen(data: Coefficients, units: Integers) -> tuple[Integers, Integers, Floats]:
    """The rows of some CPUs."""
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
        share = day_shares(unit, day)[units].mean(axis=0)
        from_days = np.diag(days.common) * float(np.sum(share**2))
    variance = from_units + from_days
    freedom_days = max(data.days - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # Satterthwaite, Biometrics Bulletin 2, 1946
        freedom = variance**2 / (from_units**2 / freedom_units + from_days**2 / freedom_days)
    freedom = np.where(np.isfinite(freedom), freedom, freedom_units)
    nodes = int(np.sum(group_of_node == number))
    return GroupMoments(
        nodes / len(group_of_node), nodes, len(units), means.mean(axis=0), np.sqrt(variance), freedom, spread, None
    )


def _tails(data: Coefficients, of_unit: Integers) -> list[str]:
    """A sentence for each coefficient whose days have longer tails than a Gaussian, group by group alike."""
    residuals = data.values - unit_means(data.unit, data.values)[data.unit]
    residuals = residuals - unit_means(data.day, residuals)[data.day]
    label = of_unit[data.unit]
    variance = np.array([np.var(residuals[label == number], axis=0) for number in range(int(of_unit.max()) + 1)])[label]
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.mean(residuals**4 / variance**2, axis=0) - 3.0
    limit = max(LONG_TAILS, 5.0 * float(np.sqrt(24.0 / len(residuals))))
    return [
        f"the days of {term} have far longer tails than a Gaussian (excess kurtosis {value:.0f}): a few days decide "
        "how much is drawn on most."
        for term, value in zip(data.terms, excess, strict=True)
        if value > limit
    ]


def _own_days(data: Coefficients, of_unit: Integers, days: BetweenDays) -> list[Floats] | None:
    """Sigma_T (its own part) of each group where groups differ in it, by BIC; None where they do not.

    Every group needs twice as many degrees of freedom as there are coefficients.
    """
    size, count = len(data.terms), int(of_unit.max()) + 1
    deviations = data.values - unit_means(data.unit, data.values)[data.unit]
    label = of_unit[data.unit]
    freedom = np.array(
        [np.sum(label == number) - len(np.unique(data.unit[label == number])) for number in range(count)]
    )
    if count < 2 or np.any(freedom < 2 * size) or np.any(np.diag(days.total) <= 0):
        return None
    root = np.sqrt(np.diag(days.total))
    parts = [deviations[label == number] / root for number in range(count)]
    scatters = [part.T @ part for part in parts]
    _, pooled = np.linalg.slogdet(np.sum(scatters, axis=0) / freedom.sum())
    singles = [np.linalg.slogdet(scatter / n)[1] for scatter, n in zip(scatters, freedom, strict=True)]
    gain = freedom.sum() * pooled - float(np.dot(freedom, singles))
    if not gain > (count - 1) * size * (size + 1) / 2 * np.log(freedom.sum()):
        return None
    common = np.zeros((size, size)) if days.common is None else days.common
    return [
        nearest_covariance(scatter / n * np.outer(root, root) - common, np.diag(days.total))[0]
        for scatter, n in zip(scatters, freedom, strict=True)
    ]
