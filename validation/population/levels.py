"""Data of a hierarchy taken apart: CPUs, days, and what is left; and synthetic data in the same layout."""

from dataclasses import replace

import numpy

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
    return Coefficients(
        data.terms,
        numpy.searchsorted(units, data.unit[rows]),
        data.day[rows],
        data.values[rows],
        node,
        tuple(data.node_names[number] for number in sorted(nodes)),
        data.source,
    )
