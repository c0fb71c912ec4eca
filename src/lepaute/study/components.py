"""What the knobs of a study make of a platform's population, and which nodes are the slowest.

population.spatial   standard deviations between CPUs, times a number;  population.temporal: between days
population.weight[I] share of the nodes that are of group I; the others share the rest as before
population.draw      what each run draws anew: none, days or nodes-and-days
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.platform.components import number_of

if TYPE_CHECKING:
    from lepaute.platform.population import Population
    from lepaute.platform.schema import Platform

POPULATION = ("spatial", "temporal", "draw", "weight[I]")


def with_population_knobs(platform: "Platform", knobs: Mapping[str, Any]) -> "Platform":
    """`platform` with the knobs population.… applied to its population, or to the one that is shipped for it.

    Where nothing is drawn yet, runs draw the days; nodes and days where population.spatial or a weight is given.
    """
    from lepaute.platform.io import with_population
    from lepaute.platform.population import population_of
    from lepaute.simulate.machine.population import scaled as scaled_population

    population = population_of(platform)
    draws_now = platform.population is not None and population.draw != "none"
    nodes_too = draws_now and population.draw == "nodes-and-days"
    spatial, temporal, draw = 1.0, 1.0, None
    for path, value in knobs.items():
        name = path.removeprefix("population.")
        if name == "draw":
            draw = value
        elif name == "spatial":
            spatial, nodes_too = _sd_factor(path, value), True
        elif name == "temporal":
            temporal = _sd_factor(path, value)
        elif match := re.fullmatch(r"weight\[(\d{1,3})\]", name):
            population, nodes_too = _weighted(population, int(match[1]), number_of(path, value)), True
        else:
            raise InputError(f"{path} is no knob of a population; they are {', '.join(POPULATION)}")
    usual = "nodes-and-days" if nodes_too else "days"
    chosen = scaled_population(population, spatial, temporal)
    return with_population(platform, chosen.model_dump() | {"draw": usual if draw is None else draw})


def slowest_nodes(platform: "Platform", count: int) -> list[int]:
    """The places, from 0, of the `count` nodes with the slowest dgemm; of equal ones the first.

    Raises InputError where the nodes do not differ, or there are not so many.
    """
    from lepaute.platform.kernel_model import UPDATE, value_of

    model = next((each for each in platform.kernels if each.kernel == "dgemm"), None)
    table = None if model is None else model.pieces[-1].per_cpu
    if table is None:
        raise InputError(
            f"the nodes of platform {platform.name} do not differ in dgemm, so that none is the slowest; take one "
            "whose nodes were calibrated apart, or draw nodes (base: {nodes: N})"
        )
    if not 0 <= count < platform.nodes.count:
        raise InputError(f"{count} nodes cannot be left out of {platform.nodes.count}")
    terms = table.mean_terms
    slowest = [0.0] * platform.nodes.count
    for row in table.rows:
        place = int(row[0]) - platform.nodes.first_number
        duration_s = value_of(dict(zip(terms, row[2 : 2 + len(terms)], strict=True)), *UPDATE)
        slowest[place] = max(slowest[place], duration_s)
    return sorted(range(len(slowest)), key=lambda place: (-slowest[place], place))[:count]


def _sd_factor(path: str, value: Any) -> float:
    factor = number_of(path, value)
    if not 0.0 <= factor <= 1e6:
        raise InputError(f"{path} is {factor:g}; a factor of standard deviations is 0 to 1e6")
    return factor


def _weighted(population: "Population", number: int, weight: float) -> "Population":
    groups = population.groups
    if not number < len(groups) or len(groups) < 2:
        raise InputError(f"population.weight[{number}]: the population has {len(groups)} group(s), from 0")
    if not 0.0 < weight < 1.0:
        raise InputError(f"population.weight[{number}] is {weight:g}; a share of the nodes is above 0 and below 1")
    others = sum(group.weight for place, group in enumerate(groups) if place != number)
    weights = [
        weight if place == number else (1.0 - weight) * group.weight / others for place, group in enumerate(groups)
    ]
    return population.model_copy(
        update={
            "groups": tuple(
                group.model_copy(update={"weight": share}) for group, share in zip(groups, weights, strict=True)
            ),
            "group_of_node": None,
        }
    )
