"""Covariances by moments: between units, and between the days of a unit; unbiased whatever the number of days of each.

The model: y[u, d] = centre[u] + common[d] + individual[u, d], with independent vectors of p coefficients.

Variances of effects that are nested: of a block, of a launch in it, of a process in a launch.

By moments, for any number of processes in a launch and of launches in a block: the sums of squares between blocks,
between launches and between processes are set equal to their expectations (Henderson's first method, Biometrics 9,
1953, with the kinds of processes taken off; for balanced data, the analysis of variance).
"""

from dataclasses import dataclass
from math import fsum

import numpy as np

from lepaute.stats import algebra
from lepaute.stats.expanding import Floats, Integers


@dataclass(frozen=True, slots=True)
class BetweenDays:
    """Covariances of what differs between the days of a unit, both shape (p, p), positive semi-definite.

    individual : of each unit's own part;  common : of the part that all share, None if it cannot be separated
    total  : individual + common before anything was projected, unbiased
    degrees_of_freedom : rows - units
    """

    individual: Floats
    common: Floats | None
    total: Floats
    degrees_of_freedom: int


def between_days(unit: Integers, day: Integers, values: Floats) -> BetweenDays:
    """Splits the variation between days (Henderson's third method, Biometrics 9, 1953).

    unit, day : shape (rows,), from 0;  values : shape (rows, p)
    The scatter within units has expectation (rows - units) (individual + common). What is left by the least squares
    fit of an effect for each unit and each day has expectation (rows - rank) individual. Their difference is common;
    its negative part (of eigenvalues, in units of the total) is dropped, and individual is then what is missing to the
    total.
    Raises ValueError if no unit has two days.
    """
    count = np.bincount(unit)
    deviations = values - unit_means(unit, values)[unit]
    freedom = len(values) - int(np.count_nonzero(count))
    if freedom < 1:
        raise ValueError("no unit was seen on two days")
    total = deviations.T @ deviations / freedom
    fit = two_way_fit(unit, day, values)
    residual, left = fit.residuals, len(values) - fit.rank
    if left < 1 or len(np.unique(day)) < 3 or np.count_nonzero(count) < 2:
        return BetweenDays(total, None, total, freedom)
    common, _ = nearest_covariance(total - residual.T @ residual / left, np.diag(total))
    individual, _ = nearest_covariance(total - common, np.diag(total))
    return BetweenDays(individual, common if np.any(common) else None, total, freedom)


def between_units(unit: Integers, day: Integers, values: Floats, days: BetweenDays) -> Floats:
    """The covariance of the centres of units, shape (p, p), unbiased; it may have negative eigenvalues.

    The covariance of the units' means holds, besides that of their centres, individual / (days of a unit) in the mean,
    and of common what is not the same in all means because units were seen on different days.
    Raises ValueError with fewer than two units.
    """
    seen = np.unique(unit)
    if len(seen) < 2:
        raise ValueError("there is one unit")
    means = unit_means(unit, values)[seen]
    centred = means - means.mean(axis=0)
    spread: Floats = centred.T @ centred / (len(seen) - 1)
    share = day_shares(unit, day)[seen]
    spread = spread - days.individual * float(np.mean(np.sum(share**2, axis=1)))
    if days.common is not None:
        uneven = float(np.sum((share - share.mean(axis=0)) ** 2)) / (len(seen) - 1)
        spread = spread - days.common * uneven
    return spread


def unit_means(unit: Integers, values: Floats) -> Floats:
    """Mean of the rows of each unit, shape (units, p); NaN for a number that no row has."""
    count = np.bincount(unit).astype(np.float64)
    sums = np.column_stack([np.bincount(unit, column) for column in values.T])
    with np.errstate(invalid="ignore"):
        means: Floats = sums / count[:, None]
    return means


def day_shares(unit: Integers, day: Integers) -> Floats:
    """Weight of each day in the mean of each unit, shape (units, days)."""
    share: Floats = np.zeros((int(unit.max()) + 1, int(day.max()) + 1))
    np.add.at(share, (unit, day), 1.0)
    total = share.sum(axis=1, keepdims=True)
    shares: Floats = share / np.where(total > 0, total, 1.0)
    return shares


def nearest_covariance(matrix: Floats, variances: Floats) -> tuple[Floats, float]:
    """`matrix` without its negative eigenvalues, in units of the square roots of `variances`, and their share dropped.

    The share is of the sum of the absolute eigenvalues. A coefficient whose variance there is 0 gets no variance.
    """
    known = variances > 0
    root = np.where(known, np.sqrt(np.where(known, variances, 1.0)), 1.0)
    scaled = np.where(np.outer(known, known), matrix / np.outer(root, root), 0.0)
    eigenvalues, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    kept = np.maximum(eigenvalues, 0.0)
    whole = float(np.sum(np.abs(eigenvalues)))
    dropped = float(np.sum(kept - eigenvalues)) / whole if whole > 0 else 0.0
    projected = (vectors * kept) @ vectors.T * np.outer(root, root)
    return (projected + projected.T) / 2, dropped


@dataclass(frozen=True, slots=True)
class TwoWayFit:
    """The least squares fit of an effect for each unit and each day.

    residuals : shape (rows, p);  rank : of the fit
    freedom   : degrees of freedom of the residuals of each unit, shape (units,): where the weights are the inverse
                variances of the units, the sum of squares of a unit's residuals is its variance times this in the mean
    """

    residuals: Floats
    rank: int
    freedom: Floats


def two_way_fit(unit: Integers, day: Integers, values: Floats, weight: Floats | None = None) -> TwoWayFit:
    """Fits y[u, d] = centre[u] + effect[d] by weighted least squares.

    weight : of the rows of each unit, shape (units,); 1 unless given
    The unit effects are eliminated: what is left are as many equations as there are days.
    """
    seen = np.zeros((int(unit.max()) + 1, int(day.max()) + 1))
    np.add.at(seen, (unit, day), 1.0)
    share = day_shares(unit, day)
    weights = np.ones(len(seen)) if weight is None else weight
    weighted = weights[:, None] * seen
    scale = np.sqrt(np.mean((values - values.mean(axis=0)) ** 2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    centred = (values - values.mean(axis=0)) / scale
    within = centred - unit_means(unit, centred)[unit]
    gram = np.diag(weighted.sum(axis=0)) - weighted.T @ share
    moment = np.column_stack([np.bincount(day, column * weights[unit]) for column in within.T])
    effect, _, rank, _ = np.linalg.lstsq(gram, moment, rcond=1e-9)
    residuals: Floats = (within - (effect[day] - (share @ effect)[unit])) * scale
    inverse = np.linalg.pinv(gram, rcond=1e-9, hermitian=True)
    count = seen.sum(axis=1)
    leverage = weights * (seen @ np.diag(inverse) - count * np.sum(share @ inverse * share, axis=1))
    return TwoWayFit(residuals, int(rank) + int(np.count_nonzero(count)), np.maximum(count - 1.0 - leverage, 0.0))


@dataclass(frozen=True, slots=True)
class NestedEffects:
    """Standard deviations of the three effects, and the degrees of freedom that each rests on.

    An effect that the data cannot tell from the one below it is 0 here, and part of that of the wider group: processes
    that were all started by themselves, or one launch a block.
    """

    block_sd: float
    launch_sd: float
    process_sd: float
    block_degrees_of_freedom: int
    launch_degrees_of_freedom: int
    process_degrees_of_freedom: int


def nested_effects(
    values: Floats,
    block: Integers,
    launch: Integers,
    kind: Integers,
    scatter: Floats | None = None,
    weight: Floats | None = None,
) -> NestedEffects:
    """Splits the variation of `values` between processes of the same kind; all arrays of shape (processes,).

    kind    : what differs lastingly, such as a core in a probe: only differences from the mean of a kind count
    scatter : variances of the errors of the single values, which are no effects of processes; 0 by default
    weight  : by which processes count in the sums of squares, on any scale; all alike by default. The variances are
              unbiased with any weights where they are the same for all processes; where they are not, they are those of
              processes as the weights choose them
    The sum of the three variances, that of a single process, is unbiased; a negative estimate of the variance of a
    wider group is set to 0 at the cost of the narrower ones, so that the sum stays. Where `scatter` explains the whole
    sum, its standard error is left: few values cannot show that processes are alike.
    Raises ValueError with fewer than two blocks, or where no kind occurs twice.
    """
    block, launch, kind = (np.unique(each, return_inverse=True)[1].astype(np.int64) for each in (block, launch, kind))
    process = np.arange(len(values))
    blocks, launches, kinds = (int(each.max(initial=-1)) + 1 for each in (block, launch, kind))
    if blocks < 2 or len(values) == kinds:
        raise ValueError("there are no two blocks to compare")
    weight = np.ones(len(values)) if weight is None else weight / np.mean(weight)
    scatter = np.zeros(len(values)) if scatter is None else scatter
    rest = values - (np.bincount(kind, weight * values) / np.bincount(kind, weight))[kind]
    layers = [block, launch, process]
    known = [True, launches > blocks, len(values) > launches]
    used = [layer for layer, is_known in zip(layers, known, strict=True) if is_known]
    expected = np.array([[_expected(one, other, kind, weight) for other in used] for one in used])
    weighted = weight * rest
    squares = np.array([np.sum(np.bincount(layer, weighted) ** 2 / np.bincount(layer, weight)) for layer in used])
    squares -= np.array([_expected(one, process, kind, weight, scatter) for one in used])
    solved = np.zeros(3)
    solved[known] = algebra.solution(algebra.squares(expected), algebra.products(expected, squares))
    variances: list[float] = []
    left = max(0.0, float(solved.sum()))
    for within in (solved[0], solved[0] + solved[1], np.inf):
        variances.append(float(np.clip(within - sum(variances), 0.0, left)))
        left -= variances[-1]
    alike, alike_launches = _alike(weight), _alike(np.bincount(launch, weight).astype(np.float64))
    free = len(values) - kinds
    groups = len({tuple(sorted(kind[members])) for members in _members(launch)})
    own = max(1.0, alike * (free - launches + groups))
    error = float(np.sum(weight * rest**2)) / free * float(np.sqrt(2.0 / (alike * free)))
    mean_scatter = float(np.average(scatter, weights=weight))
    if mean_scatter > 0.0 and free > 1 and error > fsum(variances):
        # Scatter that would explain everything leaves what the variance of a process is uncertain by.
        variances[2] += error - fsum(variances)
        own = alike * free
    block_variance, launch_variance, process_variance = variances
    least, most = blocks - 1, max(1.0, alike_launches * (launches - blocks - groups + 1))
    # The variance of launches is what that of their means has beyond the processes' share: known the less, the larger
    # this is (Satterthwaite 1946, Biometrics Bulletin 2), but no less than that of blocks, nor with fewer than three.
    of_means = launch_variance + (process_variance + mean_scatter) * launches / len(values)
    share = launch_variance / of_means if of_means > 0 else 1.0
    of_values = process_variance + mean_scatter
    process_variance_share = process_variance / of_values if of_values > 0 else 1.0
    return NestedEffects(
        float(np.sqrt(block_variance)),
        float(np.sqrt(launch_variance)),
        float(np.sqrt(process_variance)),
        least,
        _whole(max(min(max(least, 3), most), most * share**2)),
        _whole(max(min(max(least, 3), own), own * process_variance_share**2)),
    )


def _expected(one: Integers, other: Integers, kind: Integers, weight: Floats, variance: Floats | None = None) -> float:
    """What effects of the groups `other`, of unit variance or of these, shape (groups,), add to the sum of squares
    between the groups `one`, with the means of the kinds taken off: |N^-1/2 (Z' Y - Z' W D^-1 W' Y) S^1/2|^2 with the
    weighted indicators Z, Y and W of the groups and the kinds, and diagonal N and D, their sums."""
    others = int(other.max()) + 1
    variance = np.ones(others) if variance is None else variance
    z, y = _sums(one, kind, weight), _sums(other, kind, weight)
    sums, size = np.bincount(one, weight), np.bincount(kind, weight)
    both, position = np.unique(one * others + other, return_inverse=True)
    plain = float(np.sum(np.bincount(position, weight) ** 2 * variance[both % others] / sums[both // others]))
    crossed = float(np.sum((weight * variance[other] / sums[one])[:, None] * z[one] * y[other] / size))
    within = algebra.products(z / sums[:, None], z) / size
    return plain - 2.0 * crossed + float(np.sum(within * (algebra.products(y * variance[:, None], y) / size).T))


def _whole(number: float) -> int:
    """The whole number up to it; one that rounding has put below a whole number is that."""
    return int(number + 1e-6)


def _alike(weight: Floats) -> float:
    """Share of the values that would say as much if all weighed the same (Kish 1965, Survey Sampling, 11.2)."""
    return float(np.sum(weight) ** 2 / np.sum(weight**2)) / len(weight)


def _sums(group: Integers, kind: Integers, weight: Floats) -> Floats:
    result: Floats = np.zeros((int(group.max()) + 1, int(kind.max()) + 1))
    np.add.at(result, (group, kind), weight)
    return result


def _members(group: Integers) -> list[Integers]:
    return list(np.split(np.argsort(group, kind="stable").astype(np.int64), np.cumsum(np.bincount(group))[:-1]))
