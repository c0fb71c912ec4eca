"""What validation/generative.py compares: levels of made-up and published data, and tests of two samples."""

from collections.abc import Iterable
from dataclasses import replace

import numpy
from scipy.spatial.distance import cdist

from lepaute.measure.fit.population.coefficients import Coefficients
from lepaute.simulate.machine.population import drawn_day, drawn_nodes, drawn_scales
from lepaute.simulate.platform.population import Population
from lepaute.stats.covariances import unit_means

#: Seeds of the days of one synthetic data set lie this far from those of the next.
DAYS = 1000
Level = tuple[numpy.ndarray, numpy.ndarray]


def levels(data: Coefficients) -> dict[str, Level]:
    """(values, shape (n, p); what is exchanged as a whole, shape (n,)) of each level: nodes for CPUs and for what is
    left of rows, days for days.

    Means of CPUs are taken from the median of all: they share what is common to the days that they were seen on, so
    that the means of two data sets differ by it as a whole, and nodes of one set cannot stand in the place of the
    other's. The median, since a mean moves with the number of slow nodes.
    """
    means = unit_means(data.unit, data.values)
    deviations = data.values - means[data.unit]
    _, day = numpy.unique(data.day, return_inverse=True)
    of_day = unit_means(day, deviations)
    return {
        "between CPUs": (means - numpy.median(means, axis=0), data.node_of_unit),
        "between days, common": (of_day, numpy.arange(len(of_day))),
        "between days, own": (deviations - of_day[day], data.node_of_unit[data.unit]),
    }


def own_from_the_median(data: Coefficients) -> dict[str, Level]:
    """The last of the levels with the median over CPUs as the effect of a day: loud CPUs do not move it."""
    deviations = data.values - unit_means(data.unit, data.values)[data.unit]
    effect = numpy.array([numpy.median(deviations[data.day == day], axis=0) for day in range(data.days)])
    return {"between days, own": (deviations - effect[data.day], data.node_of_unit[data.unit])}


def synthetic(population: Population, layout: Coefficients, seed: int) -> Coefficients:
    """Coefficients drawn by the package for as many nodes as `layout` has, each cpu on the same days."""
    cpus = layout.units // layout.nodes
    groups, centres = drawn_nodes(population, layout.nodes, cpus, seed)
    scales = drawn_scales(population, groups, layout.nodes, cpus, seed)
    days = numpy.array([drawn_day(population, groups, scales, DAYS * seed + day) for day in range(layout.days)])
    return replace(layout, values=numpy.array(centres)[layout.unit] + days[layout.day, layout.unit], source="synthetic")


def some_nodes(data: Coefficients, nodes: numpy.ndarray) -> Coefficients:
    """The rows of some nodes, everything numbered anew from 0."""
    units = numpy.flatnonzero(numpy.isin(data.node_of_unit, nodes))
    rows = numpy.isin(data.unit, units)
    _, node = numpy.unique(data.node_of_unit[units], return_inverse=True)
    names, unit = tuple(data.node_names[number] for number in sorted(nodes)), numpy.searchsorted(units, data.unit[rows])
    return Coefficients(data.terms, unit, data.day[rows], data.values[rows], node, names, data.source)


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
