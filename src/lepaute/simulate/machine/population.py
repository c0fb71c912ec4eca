"""Draws from the population of a platform: its nodes, and one day of them.

Every draw is a function of (seed, node or cpu, stream), so nodes do not change when others are added, and a run with
seed s of `draw: nodes-and-days` sees the nodes that `synthesize` with seed s makes.
"""

import math
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from lepaute import _core
from lepaute.simulate.machine.core import per_cpu_coefficients
from lepaute.simulate.platform.kernel_model import KernelModel, Noise, PerCpu, Piece
from lepaute.simulate.platform.network_model import Network, Segment
from lepaute.simulate.platform.nodes import Nodes
from lepaute.simulate.platform.population import Population
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.topology import CableModel, Topology
from lepaute.stats.cholesky import Matrix, lower_factor, multiply_lower_triangular

if TYPE_CHECKING:
    from lepaute.simulate.conditions import Layers

#: Streams of draws, apart from those of the engine.
GROUP, SPATIAL, COMMON, OWN, SCALE = (0x504F5000 + number for number in range(5))

#: What exponential() takes.
LARGEST_LOG = 700.0

Vector = list[float]


def on_its_day(platform: "Platform", seed: int, *, days: bool = True) -> "Platform":
    """`platform` as the run with `seed` sees it: nodes and day drawn as its population says, nothing left to draw.

    days : whether the layer of nodes and days is drawn at all; without it, and without a population, `platform` itself
    The layer `days` is left out where the population draws a day: it holds the same spread once more.
    """
    population = platform.population
    if population is None or population.draw == "none" or not days:
        return platform
    model = platform.kernel(population.kernel, population.threads)
    assert model is not None  # Platform checks it
    nodes = platform.nodes
    cpus = [(nodes.first_number + node, cpu) for node in range(nodes.count) for cpu in range(nodes.cpus)]
    groups: Sequence[int] | None = population.group_of_node
    scales: Sequence[Sequence[float]] | None = population.scale_of_cpu
    if population.draw == "nodes-and-days":
        groups, centres = drawn_nodes(population, nodes.count, nodes.cpus, seed)
        model = with_coefficients(model, population, cpus, centres)
    if population.draw == "nodes-and-days" or scales is None:
        scales = drawn_scales(population, groups, nodes.count, nodes.cpus, seed)
    deviations = drawn_day(population, groups, scales, seed)
    moved = model.model_copy(
        update={"pieces": tuple(_moved(piece, population.terms, nodes, deviations) for piece in model.pieces)}
    )
    key = (model.kernel, model.threads)
    kernels = tuple(moved if (other.kernel, other.threads) == key else other for other in platform.kernels)
    return platform.model_copy(update={"kernels": kernels, "days": None, "population": None})


def drawn_nodes(population: Population, nodes: int, cpus: int, seed: int) -> tuple[list[int], list[Vector]]:
    """Hypothetical nodes: the group of each, and the coefficients of each cpu, node by node."""
    below = list(accumulate(group.weight for group in population.groups))[:-1]
    groups = [bisect(below, u) for u in _core.uniforms(seed, GROUP, nodes, 1)]
    factors = [lower_factor(group.covariance_spatial) for group in population.groups]
    normals = _rows(_core.normals(seed, SPATIAL, nodes * cpus, len(population.terms)), len(population.terms))
    centres = []
    for place, normal in enumerate(normals):
        number = groups[place // cpus]
        deviation = multiply_lower_triangular(factors[number], normal)
        centres.append([mean + by for mean, by in zip(population.groups[number].mean, deviation, strict=True)])
    return groups, centres


def drawn_scales(
    population: Population, groups: Sequence[int] | None, nodes: int, cpus: int, seed: int
) -> list[Vector]:
    """The factors of the days of each cpu, node by node; `groups`: of the nodes, None if not known."""
    size = len(population.terms)
    shared = lower_factor(population.covariance_log_scale or [[0.0] * size for _ in range(size)])
    factors = [
        shared if group.covariance_log_scale is None else lower_factor(group.covariance_log_scale)
        for group in population.groups
    ]
    logs = [
        multiply_lower_triangular(shared if groups is None else factors[groups[place // cpus]], normal)
        for place, normal in enumerate(_rows(_core.normals(seed, SCALE, nodes * cpus, size), size))
    ]
    return [[_core.exponential(max(-LARGEST_LOG, min(value, LARGEST_LOG))) for value in row] for row in logs]


def drawn_day(
    population: Population, groups: Sequence[int] | None, scales: Sequence[Sequence[float]], seed: int
) -> list[Vector]:
    """Offsets that a day adds to the coefficients of each cpu, node by node.

    groups : of the nodes, None if not known;  scales : the factors of the CPUs, as many for each node
    """
    size = len(population.terms)
    cpus = len(scales) if groups is None else len(scales) // len(groups)
    common = [0.0] * size
    if population.covariance_common is not None:
        factor = lower_factor(population.covariance_common)
        common = multiply_lower_triangular(factor, _core.normals(seed, COMMON, 1, size))
    shared = lower_factor(population.covariance_temporal)
    factors = [
        shared if group.covariance_temporal is None else lower_factor(group.covariance_temporal)
        for group in population.groups
    ]
    normals = _rows(_core.normals(seed, OWN, len(scales), size), size)
    days = []
    for place, (scale, normal) in enumerate(zip(scales, normals, strict=True)):
        own = multiply_lower_triangular(shared if groups is None else factors[groups[place // cpus]], normal)
        days.append([mean + factor * value for mean, factor, value in zip(common, scale, own, strict=True)])
    return days


def with_coefficients(
    model: "KernelModel", population: Population, cpus: Sequence[tuple[int, int]], centres: Sequence[Vector]
) -> "KernelModel":
    """`model` with one piece, whose terms are those of the population and whose CPUs have the coefficients `centres`.

    The kind of the noise, and its modes, stay as they were, and its width too where the population says nothing about
    it. Form and fitted ranges are left out: they are those of the models that are replaced.
    """
    first = model.pieces[-1]  # that of most calls
    noisy = any(term.startswith("sd:") for term in population.terms)
    kept = {} if noisy else {f"sd:{term}": value for term, value in first.noise.sd.items()}
    columns = (*population.terms, *kept)
    rows = [(*centre, *kept.values()) for centre in centres]
    average = [
        math.fsum(group.weight * group.mean[at] for group in population.groups) for at in range(len(population.terms))
    ]
    by_column = dict(zip(columns, (*average, *kept.values()), strict=True))
    sd = {name.removeprefix("sd:"): value for name, value in by_column.items() if name.startswith("sd:")}
    piece = Piece(
        mean={name: value for name, value in by_column.items() if not name.startswith("sd:")},
        # A mixture keeps its modes.
        noise=Noise(kind=first.noise.kind, sd=sd, modes=first.noise.modes) if sd else Noise(),
        per_cpu=PerCpu(
            columns=("node", "cpu", *columns),
            rows=tuple((float(node), float(cpu), *row) for (node, cpu), row in zip(cpus, rows, strict=True)),
        ),
    )
    return model.model_copy(update={"pieces": (piece,), "form": None})  # the form was that of the models replaced


def scaled(population: Population, spatial: float, temporal: float) -> Population:
    """`population` with the standard deviations between CPUs times `spatial`, those between days times `temporal`.

    The distance of each group from the mean of all is part of what differs between CPUs, and is scaled with it.
    """
    size = len(population.terms)
    centre = [math.fsum(group.weight * group.mean[at] for group in population.groups) for at in range(size)]
    groups = tuple(
        group.model_copy(
            update={
                "mean": tuple(
                    middle + spatial * (mean - middle) for middle, mean in zip(centre, group.mean, strict=True)
                ),
                "covariance_spatial": _multiplied(group.covariance_spatial, spatial),
                "covariance_temporal": _multiplied(group.covariance_temporal, temporal),
            }
        )
        for group in population.groups
    )
    days = ("covariance_temporal", "covariance_common")
    update = {name: _multiplied(getattr(population, name), temporal) for name in days}
    return population.model_copy(update={"groups": groups, **update})


def drawn_alike(one: "Population | None", other: "Population | None") -> bool:
    """Whether a seed draws the same groups, and the same deviations of CPUs and days but for their size, from both.

    So it is for a population and the same with its standard deviations multiplied (`scaled`).
    """
    if one is None or other is None:
        return one is other
    if _apart_from_sizes(one) != _apart_from_sizes(other):
        return False
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("covariance_temporal", "covariance_common")]
    for here, there in zip(one.groups, other.groups, strict=True):
        pairs.append((here.covariance_spatial, there.covariance_spatial))
        pairs.append((here.covariance_temporal, there.covariance_temporal))
    return all(_proportional(*pair) for pair in pairs)


def _apart_from_sizes(population: Population) -> tuple[object, ...]:
    shared = (population.kernel, population.threads, population.terms, population.draw, population.group_of_node)
    scales = (population.covariance_log_scale, population.scale_of_cpu)
    return (*shared, *scales, *((group.weight, group.covariance_log_scale) for group in population.groups))


def _proportional(one: Matrix | None, other: Matrix | None) -> bool:
    """Whether one covariance is the other times a number; 0 is one."""
    if one is None or other is None:
        return one is other
    largest = max(range(len(one)), key=lambda at: one[at][at])
    if one[largest][largest] == 0.0 or other[largest][largest] == 0.0:
        return True
    factor = other[largest][largest] / one[largest][largest]
    return all(
        abs(there - factor * here) <= 1e-9 * factor * math.sqrt(one[i][i] * one[j][j])
        for i, (row, other_row) in enumerate(zip(one, other, strict=True))
        for j, (here, there) in enumerate(zip(row, other_row, strict=True))
    )


def _moved(piece: "Piece", terms: Sequence[str], nodes: "Nodes", deviations: Sequence[Vector]) -> "Piece":
    """`piece` with a deviation added to the coefficients of each cpu; terms that it lacks begin at 0."""
    table = per_cpu_coefficients(piece)
    by_socket = piece.per_cpu is not None and piece.per_cpu.by_socket
    means = [*piece.mean, *(piece.per_cpu.mean_terms if piece.per_cpu else ())]
    sds = [*piece.noise.sd, *(piece.per_cpu.sd_terms if piece.per_cpu else ())]
    columns = list(dict.fromkeys([*means, *(f"sd:{term}" for term in sds), *terms]))
    columns.sort(key=lambda column: column.startswith("sd:"))  # terms of the mean first; the sort is stable
    cpus = [(nodes.first_number + node, cpu) for node in range(nodes.count) for cpu in range(nodes.cpus)]
    rows = []
    for at, deviation in zip(cpus, deviations, strict=True):
        mean, sd = table.get((at[0], nodes.socket_of_cpu(at[1])) if by_socket else at, (piece.mean, piece.noise.sd))
        values = mean | {f"sd:{term}": value for term, value in sd.items()}
        added = dict(zip(terms, deviation, strict=True))
        rows.append((float(at[0]), float(at[1]), *(values.get(name, 0.0) + added.get(name, 0.0) for name in columns)))
    per_cpu = PerCpu.model_construct(columns=("node", "cpu", *columns), rows=tuple(rows))
    return piece.model_copy(update={"per_cpu": per_cpu})


def _rows(values: Sequence[float], size: int) -> list[Vector]:
    return [list(values[at : at + size]) for at in range(0, len(values), size)]


def _multiplied(covariance: Matrix | None, sd_factor: float) -> tuple[tuple[float, ...], ...] | None:
    if covariance is None:
        return None
    return tuple(tuple(value * (sd_factor * sd_factor) for value in row) for row in covariance)


def with_network_of_run(platform: "Platform", seed: int, layers: "Layers") -> "Platform":
    """`platform` with transfers slower by the factors that the run of `seed` draws, and so the links between nodes, and
    with overheads of calls slower by theirs.

    Messages of datatypes with gaps and those to busy receivers keep their times: no other engine knows them.
    """
    network = platform.network
    drawn = [
        errors if on else dict.fromkeys(errors, 0.0)
        for on, errors in ((layers.network, network.discrepancies), (layers.overheads, network.overhead_errors))
    ]
    if not any(error for errors in drawn for error in errors.values()):
        return platform
    # Without segments of its own, loopback is remote.
    here = "remote" if network.loopback.segments is None else "loopback"
    inside, between = (
        tuple(_core.message_factor(link, errors[link], seed) for errors in drawn) for link in (here, "remote")
    )
    return platform.model_copy(
        update={
            "network": _slower_network(network, inside, between),
            "topology": _slower_topology(platform.topology, between[0]),
        }
    )


#: What transfers take longer, and overheads.
Factors = tuple[float, ...]


def _slower_network(network: "Network", inside: Factors, between: Factors) -> "Network":
    remote = network.remote.model_copy(update={"segments": slower_segments(network.remote.segments, between)})
    link = network.node_link.model_copy(update={"bandwidth_Bps": network.node_link.bandwidth_Bps / between[0]})
    loopback = network.loopback
    if loopback.segments is not None:
        loopback = loopback.model_copy(update={"segments": slower_segments(loopback.segments, inside)})
    loopback = loopback.model_copy(update={"bandwidth_Bps": loopback.bandwidth_Bps / inside[0]})
    calls = {name: getattr(network.costs, name) * inside[1] for name in ("iprobe_s", "test_s", "wtime_s")}
    costs = network.costs.model_copy(update=calls)
    return network.model_copy(update={"remote": remote, "loopback": loopback, "node_link": link, "costs": costs})


def slower_segments(segments: "tuple[Segment, ...]", factors: Factors) -> "tuple[Segment, ...]":
    """Segments whose transfers, and whose calls, take this many times as long."""
    transfers, overheads = factors
    return tuple(
        segment.model_copy(
            update={
                "latency_s": segment.latency_s * transfers,
                "bandwidth_Bps": segment.bandwidth_Bps / transfers,
                **{
                    name: tuple(part * overheads for part in getattr(segment, name))
                    for name in ("send", "isend", "receive")
                },
            }
        )
        for segment in segments
    )


def _slower_topology(topology: "Topology", factor: float) -> "Topology":
    def slower(cable: "CableModel") -> "CableModel":
        if cable.bandwidth_Bps is None:
            return cable
        return cable.model_copy(update={"bandwidth_Bps": cable.bandwidth_Bps / factor})

    update: dict[str, object] = {
        name: tuple(slower(cable) for cable in cables)
        for name in ("levels", "changed", "links")
        if (cables := getattr(topology, name))
    }
    if topology.limiters is not None:
        widths = topology.limiters.model_dump(exclude_none=True)
        update["limiters"] = topology.limiters.model_copy(
            update={name: width_Bps / factor for name, width_Bps in widths.items()}
        )
    return topology.model_copy(update=update)
