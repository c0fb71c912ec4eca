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
    residual, rank = _two_way_residuals(unit, day, values)
    left = len(values) - rank
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


def _two_way_residuals(unit: Integers, day: Integers, values: Floats) -> tuple[Floats, int]:
    """Residuals of the least squares fit of unit and day effects, and the rank of that fit.

    The unit effects are eliminated: what is left are as many equations as there are days.
    """
    seen = np.zeros((int(unit.max()) + 1, int(day.max()) + 1))
    np.add.at(seen, (unit, day), 1.0)
    share = day_shares(unit, day)
    scale = np.sqrt(np.mean((values - values.mean(axis=0)) ** 2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    centred = (values - values.mean(axis=0)) / scale
    within = centred - unit_means(unit, centred)[unit]
    gram = np.diag(seen.sum(axis=0)) - seen.T @ share
    moment = np.column_stack([np.bincount(day, column) for column in within.T])
    effect, _, rank, _ = np.linalg.lstsq(gram, moment, rcond=1e-9)
    residual: Floats = (within - (effect[day] - (share @ effect)[unit])) * scale
    return residual, int(rank) + int(np.count_nonzero(seen.sum(axis=1)))
