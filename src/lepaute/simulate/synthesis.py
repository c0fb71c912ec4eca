"""A hypothetical cluster: nodes drawn from a population, all else as on the platform that they are like."""

from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.simulate.population import drawn_nodes, drawn_scales, scaled, with_coefficients

if TYPE_CHECKING:
    from lepaute.platform.population import Population
    from lepaute.platform.schema import KernelModel, Platform

#: The file of more would be larger than what is read.
MOST_NODES = 40_000
#: Of standard deviations; of larger ones the squares end up as no numbers.
LARGEST_FACTOR = 1e6


def synthesize(
    like: "Platform",
    population: "Population | None",
    *,
    nodes: int,
    spatial: float = 1.0,
    temporal: float = 1.0,
    seed: int = 1,
) -> "Platform":
    """A cluster of `nodes` nodes drawn from `population`, deterministic for a seed: a smaller cluster is the beginning
    of a larger one. Without a population, the CPUs of `like` differ by a factor on dgemm (`unlike_cpus`).

    like : gives the shape of a node, the network, and the other kernels, with the mean of their CPUs
    spatial, temporal : factors of the standard deviations between CPUs and between days
    The layer `days` of `like` is left out: the population draws the days of dgemm.
    Raises InputError for a number that cannot be, or a topology that has no form with so many nodes.
    """
    from lepaute.platform.components import topology_for
    from lepaute.platform.schema import Platform

    if not 1 <= nodes <= MOST_NODES:
        raise InputError(f"nodes is {nodes}; a cluster has 1 to {MOST_NODES} nodes")
    for name, value in (("spatial", spatial), ("temporal", temporal)):
        if not 0.0 <= value <= LARGEST_FACTOR:
            raise InputError(f"{name} is {value:g}; a factor of a standard deviation is 0 to {LARGEST_FACTOR:g}")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; it is a whole number from 0 to 2^63 - 1")
    if population is None:
        from lepaute.simulate.unlike_cpus import synthesize_by_factor

        return synthesize_by_factor(like, nodes=nodes, spatial=spatial, temporal=temporal, seed=seed)
    model = like.kernel(population.kernel, population.threads)
    if model is None:
        raise InputError(
            f"platform {like.name} has no kernel {population.kernel} for {population.threads} threads, of which the "
            "population is; choose another --like"
        )
    chosen = scaled(population, spatial, temporal)
    first, cpus = like.nodes.first_number, like.nodes.cpus
    groups, centres = drawn_nodes(chosen, nodes, cpus, seed)
    places = [(first + node, cpu) for node in range(nodes) for cpu in range(cpus)]
    drawn = with_coefficients(model, chosen, places, centres)
    kernels = tuple(drawn if other is model else _of_the_mean_cpu(other) for other in like.kernels)
    content = like.model_dump() | {
        "name": f"{like.name}-synthetic-{nodes}",
        "description": _description(like, chosen, nodes, spatial, temporal, seed, groups),
        "source": f"lepaute platform synthesize, like {like.name} (sha256 {like.sha256})",
        "archive_id": None,
        "nodes": like.nodes.model_dump() | {"count": nodes},
        "kernels": [kernel.model_dump() for kernel in kernels],
        "topology": topology_for(like.topology, nodes, like.name).model_dump(),
        "days": None,
        "population": chosen.model_dump()
        | {
            "group_of_node": groups if len(chosen.groups) > 1 else None,
            "scale_of_cpu": None
            if chosen.covariance_log_scale is None
            else drawn_scales(chosen, groups, nodes, cpus, seed),
        },
    }
    return Platform.model_validate(content)


def odd_cpus(cluster: "Platform") -> list[str]:
    """Sentences about CPUs whose drawn coefficient of the largest term is 0 or less: their calls would cost nothing."""
    population = cluster.population
    model = None if population is None else cluster.kernel(population.kernel, population.threads)
    warnings = []
    for piece in model.pieces if model is not None else ():
        if piece.per_cpu is None:
            continue
        term = piece.per_cpu.columns[2]
        count = sum(row[2] <= 0.0 for row in piece.per_cpu.rows)
        if count:
            warnings.append(
                f"{count} of {len(piece.per_cpu.rows)} CPUs drew a coefficient of {term} of 0 or less: their calls "
                "cost nothing; choose a smaller --spatial"
            )
    return warnings


def _of_the_mean_cpu(model: "KernelModel") -> "KernelModel":
    """`model` without coefficients of single CPUs, which are those of nodes that the hypothetical cluster lacks."""
    return model.model_copy(
        update={"pieces": tuple(piece.model_copy(update={"per_cpu": None}) for piece in model.pieces)}
    )


def _description(
    like: "Platform",
    population: "Population",
    nodes: int,
    spatial: float,
    temporal: float,
    seed: int,
    groups: list[int],
) -> str:
    cpus = nodes * like.nodes.cpus
    terms = ", ".join(population.terms)
    lines = [
        f"A hypothetical cluster of {nodes} nodes like {like.name}: no such machine was measured.",
        f"{population.kernel} of each of its {cpus} CPUs is drawn (seed {seed}) from a population with the terms "
        f"{terms}; standard deviations between CPUs times {spatial:g}, between days times {temporal:g}.",
    ]
    if len(population.groups) > 1:
        counts = [groups.count(number) for number in range(len(population.groups))]
        lines.append(f"Nodes of the {len(counts)} groups of the population: {', '.join(map(str, counts))}.")
    lines.append(
        f"Assumed: network, topology and the shape of a node are those of {like.name} whatever the number of nodes; "
        "the other kernels cost on every cpu what they cost there in the mean, the same every day; CPUs of a node "
        "differ as much as those of two nodes of its group."
    )
    if population.source:
        lines.append(f"Population: {population.source}.")
    return "\n".join(lines) + "\n"
