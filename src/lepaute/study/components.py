"""A machine with other components: what a knob of a study makes of a platform.

scale.computing      speed of all kernels, times a number;  scale.KERNEL: of one of them, such as scale.dgemm
scale.bandwidth      of links and messages;                 scale.latency: of messages (2: twice as long)
noise.KERNEL         standard deviation of a call over its mean, of the term of highest degree
population.spatial   standard deviations between CPUs, times a number;  population.temporal: between days
population.weight[I] share of the nodes that are of group I; the others share the rest as before
population.draw      what each run draws anew: none, days or nodes-and-days
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError

if TYPE_CHECKING:
    from lepaute.platform.kernel_model import KernelModel, PerCpu, Piece
    from lepaute.platform.network_model import Network, Segment
    from lepaute.platform.population import Population
    from lepaute.platform.schema import Platform
    from lepaute.platform.topology import Topology

#: No component becomes more than so many times as fast or slow.
LARGEST_FACTOR = 1e9
COMPONENTS = ("computing", "bandwidth", "latency")
POPULATION = ("spatial", "temporal", "draw", "weight[I]")


def with_components(platform: "Platform", knobs: Mapping[str, Any]) -> "Platform":
    """`platform` with the knobs scale.… and noise.… applied; raises InputError for one that cannot be."""
    for path, value in knobs.items():
        root, _, name = path.partition(".")
        platform = scaled(platform, name, value) if root == "scale" else with_noise(platform, name, value)
    return platform


def scaled(platform: "Platform", name: str, value: Any) -> "Platform":
    """`platform` with a component so many times as fast; of the latency, as long."""
    factor = _number(f"scale.{name}", value)
    if not 1.0 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR:
        raise InputError(f"scale.{name} is {factor:g}; it is {1 / LARGEST_FACTOR:g} to {LARGEST_FACTOR:g}")
    if name in ("bandwidth", "latency"):
        network = _network(platform.network, name, factor)
        return platform.model_copy(update={"network": network, "topology": _topology(platform.topology, name, factor)})
    kernels_known = [model.kernel for model in platform.kernels]
    if name not in (*COMPONENTS, *kernels_known):
        from lepaute.kit.yaml_faults import guess

        raise InputError(
            f"scale.{name[:60]} is no component{guess(name, [*COMPONENTS, *kernels_known])}; they are "
            f"{', '.join(COMPONENTS)}, and kernels of platform {platform.name} such as {kernels_known[0]}"
        )
    kernels = tuple(
        _with_pieces(model, lambda piece: _longer(piece, 1.0 / factor))
        if name in ("computing", model.kernel)
        else model
        for model in platform.kernels
    )
    return platform.model_copy(update={"kernels": kernels})


def with_noise(platform: "Platform", kernel: str, value: Any) -> "Platform":
    """`platform` with calls of a kernel that vary by so much, half-normally unless its noise has another form."""
    relative_sd = _number(f"noise.{kernel}", value)
    if not 0.0 <= relative_sd <= 10.0:
        raise InputError(f"noise.{kernel} is {relative_sd:g}; a relative standard deviation is 0 to 10")
    _check_kernel(platform, f"noise.{kernel}", kernel)
    kernels = tuple(
        _with_pieces(model, lambda piece: _noisy(piece, relative_sd)) if model.kernel == kernel else model
        for model in platform.kernels
    )
    return platform.model_copy(update={"kernels": kernels})


def with_population_knobs(platform: "Platform", knobs: Mapping[str, Any]) -> "Platform":
    """`platform` with the knobs population.… applied to its population, or to the one that is shipped for it.

    Where nothing is drawn yet, runs draw the days; nodes and days where population.spatial or a weight is given.
    """
    from lepaute.platform.io import with_population
    from lepaute.platform.populations import population_of
    from lepaute.simulate.population import scaled as scaled_population

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
            population, nodes_too = _weighted(population, int(match[1]), _number(path, value)), True
        else:
            raise InputError(f"{path} is no knob of a population; they are {', '.join(POPULATION)}")
    usual = "nodes-and-days" if nodes_too else "days"
    chosen = scaled_population(population, spatial, temporal)
    return with_population(platform, chosen.model_dump() | {"draw": usual if draw is None else draw})


def slowest_nodes(platform: "Platform", count: int) -> list[int]:
    """The places, from 0, of the `count` nodes with the slowest dgemm; of equal ones the first.

    Raises InputError where the nodes do not differ, or there are not so many.
    """
    from lepaute.platform.evaluation import value_of
    from lepaute.platform.scaling import UPDATE

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


def _number(path: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{path} is {value!r:.60}; it must be a number, in at most 100 characters")
    return float(value)


def _sd_factor(path: str, value: Any) -> float:
    factor = _number(path, value)
    if not 0.0 <= factor <= 1e6:
        raise InputError(f"{path} is {factor:g}; a factor of standard deviations is 0 to 1e6")
    return factor


def _check_kernel(platform: "Platform", path: str, kernel: str) -> None:
    known = list(dict.fromkeys(model.kernel for model in platform.kernels))
    if kernel not in known:
        raise InputError(
            f"{path}: platform {platform.name} has no kernel {kernel[:60]!r}; it has {', '.join(known)[:300]}"
        )


def _with_pieces(model: "KernelModel", change: "Callable[[Piece], Piece]") -> "KernelModel":
    return model.model_copy(update={"pieces": tuple(change(piece) for piece in model.pieces)})


def _longer(piece: "Piece", factor: float) -> "Piece":
    """Calls `factor` times as long, and their errors in proportion."""
    covariance, table = piece.covariance, piece.per_cpu
    if covariance is not None:
        matrix = tuple(tuple(value * factor * factor for value in row) for row in covariance.matrix)
        covariance = covariance.model_copy(update={"matrix": matrix})
    if table is not None:
        rows = tuple((*row[:2], *(value * factor for value in row[2:])) for row in table.rows)
        table = table.model_copy(update={"rows": rows})
    sd = {term: value * factor for term, value in piece.noise.sd.items()}
    return piece.model_copy(
        update={
            "mean": {term: value * factor for term, value in piece.mean.items()},
            "covariance": covariance,
            "noise": piece.noise.model_copy(update={"sd": sd}),
            "per_cpu": table,
        }
    )


def _noisy(piece: "Piece", relative_sd: float) -> "Piece":
    from lepaute.platform.kernel_model import Noise

    term = max(piece.mean, key=lambda each: 0 if each == "1" else len(each))
    kind = piece.noise.kind if piece.noise.kind != "none" else "half-normal"
    noise = Noise(kind=kind, sd={term: relative_sd * piece.mean[term]}, modes=piece.noise.modes)
    if relative_sd == 0.0:
        noise = Noise()
    table = None if piece.per_cpu is None else _noisy_table(piece.per_cpu, relative_sd)
    return piece.model_copy(update={"noise": noise, "per_cpu": table})


def _noisy_table(table: "PerCpu", relative_sd: float) -> "PerCpu":
    means = table.mean_terms
    columns = [*table.columns[:2], *means]
    places = [table.columns.index(column) for column in columns]
    rows = [tuple(row[place] for place in places) for row in table.rows]
    if relative_sd > 0.0:
        term = max(means, key=lambda each: 0 if each == "1" else len(each))
        at = columns.index(term)
        columns.append(f"sd:{term}")
        rows = [(*row, relative_sd * row[at]) for row in rows]
    return table.model_copy(update={"columns": tuple(columns), "rows": tuple(rows)})


def _network(network: "Network", name: str, factor: float) -> "Network":
    """The network whose messages between nodes are changed, and its links too where that is the bandwidth."""
    field = "latency_s" if name == "latency" else "bandwidth_Bps"

    def changed(segments: "tuple[Segment, ...]") -> "tuple[Segment, ...]":
        return tuple(each.model_copy(update={field: getattr(each, field) * factor}) for each in segments)

    remote, loopback = network.remote, network.loopback
    if loopback.segments is None:  # those of remote, which change
        inside = {"segments": remote.segments, "noncontiguous": network.loopback_noncontiguous, "busy": remote.busy}
        loopback = loopback.model_copy(update=inside)
    update: dict[str, Any] = {"segments": changed(remote.segments)}
    if remote.noncontiguous is not None:
        update["noncontiguous"] = changed(remote.noncontiguous)
    if remote.busy is not None:
        update["busy"] = remote.busy.model_copy(update={"segments": changed(remote.busy.segments)})
    classes: dict[str, Any] = {"loopback": loopback, "remote": remote.model_copy(update=update)}
    if name == "bandwidth":
        width = network.node_link.bandwidth_Bps * factor
        classes["node_link"] = network.node_link.model_copy(update={"bandwidth_Bps": width})
    return network.model_copy(update=classes)


def _topology(topology: "Topology", name: str, factor: float) -> "Topology":
    """The topology whose cables that have a bandwidth or a latency of their own have another."""
    ending = "latency_s" if name == "latency" else "bandwidth_Bps"

    def changed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {inner: changed(each, inner) for inner, each in value.items()}
        if isinstance(value, list | tuple):
            return [changed(each) for each in value]
        return value * factor if key.endswith(ending) and value is not None else value

    return type(topology).model_validate(changed(topology.model_dump()))


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
