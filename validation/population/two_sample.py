"""Two-sample tests by permutation of whole blocks: Kolmogorov-Smirnov of each coefficient, and the energy distance."""

from collections.abc import Iterable

import numpy
from scipy.spatial.distance import cdist

from population.levels import Level

PERMUTATIONS = 999


def p_values(observed: Level, synthetic: Level, seed: int) -> list[float]:
    """p of the Kolmogorov-Smirnov statistic of each coefficient, then of the energy distance of all (Szekely & Rizzo,
    InterStat 5, 2004), each coefficient divided by its observed standard deviation."""
    scale = numpy.std(observed[0], axis=0)
    scale = numpy.where(scale > 0.0, scale, 1.0)
    values = numpy.concatenate([observed[0], synthetic[0]]) / scale
    first, second = (numpy.unique(level[1], return_inverse=True)[1] for level in (observed, synthetic))
    blocks = int(first.max()) + 1
    block = numpy.concatenate([first, second + blocks])
    count = int(block.max()) + 1
    rng = numpy.random.default_rng(seed)
    chosen = numpy.zeros((PERMUTATIONS + 1, count), dtype=bool)  # which blocks are called observed
    chosen[0, :blocks] = True
    for row in chosen[1:]:
        row[rng.permutation(count)[:blocks]] = True
    statistics = [_kolmogorov_smirnov(column, block, chosen) for column in values.T]
    statistics.append(_energy(values, block, chosen))
    return [float(numpy.mean(found >= found[0] - 1e-12 * abs(found[0]))) for found in statistics]


def combined(values: Iterable[float]) -> float:
    """One valid p from dependent ones: twice their median (Rueger, Metrika 25, 1978)."""
    return min(1.0, 2.0 * float(numpy.median(list(values))))


def holm(values: Iterable[float]) -> list[float]:
    """p after Holm's correction (Scandinavian Journal of Statistics 6, 1979), in the same order."""
    given = numpy.array(list(values))
    order = numpy.argsort(given)
    factors = numpy.arange(len(given), 0, -1)
    adjusted = numpy.minimum(1.0, numpy.maximum.accumulate(given[order] * factors))
    result = numpy.empty_like(adjusted)
    result[order] = adjusted
    return [float(value) for value in result]


def _kolmogorov_smirnov(column: numpy.ndarray, block: numpy.ndarray, chosen: numpy.ndarray) -> numpy.ndarray:
    """The statistic of each choice of blocks, shape (choices,)."""
    sorted_block = block[numpy.argsort(column, kind="stable")]
    found = numpy.empty(len(chosen))
    for number, row in enumerate(chosen):
        inside = row[sorted_block]
        below = numpy.cumsum(inside)
        outside = numpy.arange(1, len(inside) + 1) - below
        found[number] = numpy.max(numpy.abs(below / below[-1] - outside / outside[-1]))
    return found


def _energy(values: numpy.ndarray, block: numpy.ndarray, chosen: numpy.ndarray) -> numpy.ndarray:
    """The energy distance of each choice of blocks, from sums of distances between blocks."""
    count = chosen.shape[1]
    order = numpy.argsort(block, kind="stable")
    starts = numpy.searchsorted(block[order], numpy.arange(count))
    sums = numpy.empty((count, count))
    sorted_values = values[order]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(values)], strict=True)):
        distances = cdist(sorted_values[start:end], sorted_values).sum(axis=0)
        sums[number] = numpy.add.reduceat(distances, starts)
    size = numpy.bincount(block, minlength=count).astype(float)
    one = chosen.astype(float)
    other = 1.0 - one
    n_one, n_other = one @ size, other @ size
    to_one, to_other = one @ sums, other @ sums
    across = numpy.sum(to_one * other, axis=1) / (n_one * n_other)
    inside = numpy.sum(to_one * one, axis=1) / n_one**2 + numpy.sum(to_other * other, axis=1) / n_other**2
    return 2.0 * across - inside
