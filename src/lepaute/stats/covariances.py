"""Covariances by moments: between units, and between the days of a unit; unbiased whatever the number of days of each.

The model: y[u, d] = centre[u] + common[d] + individual[u, d], with independent vectors of p coefficients.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BetweenDays:
    """Covariances of what differs between the days of a unit, both shape (p, p), positive semi-definite.

    individual : of each unit's own part;  common : of the part that all share, None where it cannot be separated
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
    Raises ValueError where no unit has two days.
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
    freedom = np.maximum(count - 1.0 - leverage, 0.0)
    return TwoWayFit(residuals, int(rank) + int(np.count_nonzero(count)), freedom)
