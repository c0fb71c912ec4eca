"""Machines that differ from a platform: other components, another number of nodes, CPUs that are faster or slower.

Knobs beside the fields of a platform, in `--set` and in studies:
scale.computing      speed of all kernels, times a number;  scale.KERNEL: of one of them, such as scale.dgemm
scale.bandwidth      of links and messages;                 scale.latency: of messages (2: twice as long)
noise.KERNEL         standard deviation of a call over its mean, of the term of highest degree
"""

import math
from collections.abc import Callable, Collection, Mapping
from itertools import cycle, islice
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.documents import guess
from lepaute.simulate.platform.kernel_model import KernelModel, Noise, PerCpu, Piece
from lepaute.simulate.platform.network_model import Network, Segment
from lepaute.simulate.platform.nodes import Nodes, refuse_groups, scaled_links
from lepaute.simulate.platform.population import Group, Population
from lepaute.simulate.platform.schema import Assumption, Platform
from lepaute.simulate.platform.topology import Topology

#: How the names of knobs begin.
KNOBS = ("scale.", "noise.")
#: No component becomes more than this many times as fast or slow.
LARGEST_FACTOR = 1e9
COMPONENTS = ("computing", "bandwidth", "latency")
#: A table of single CPUs is continued up to this many rows; beyond, new nodes have the coefficients of no CPU.
MAX_ROWS = 50_000
#: Kernels whose speed is that of a CPU's clock.
COMPUTING = ("dgemm", "dgemm_nn")


def with_components(platform: Platform, knobs: Mapping[str, Any]) -> Platform:
    """`platform` with the knobs scale.… and noise.… applied; raises InputError for one that cannot be."""
    changed = platform
    for path, value in knobs.items():
        root, _, name = path.partition(".")
        changed = _scaled(changed, name, value) if root == "scale" else _with_noise(changed, name, value)
    return changed.variant_of(platform) if knobs else platform


def number_of(path: str, value: Any) -> float:
    """The number that a knob is set to; raises InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{path} is {value!r:.60}; it must be a number, in at most 100 characters")
    return float(value)


def _scaled(platform: Platform, name: str, value: Any) -> Platform:
    """`platform` with a component this many times as fast; of the latency, as long."""
    factor = number_of(f"scale.{name}", value)
    if not 1.0 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR:
        raise InputError(f"scale.{name} is {factor:g}; it is {1 / LARGEST_FACTOR:g} to {LARGEST_FACTOR:g}")
    if name in ("bandwidth", "latency"):
        network = _scaled_network(platform.network, name, factor)
        topology = _scaled_topology(platform.topology, name, factor)
        groups = scaled_links(platform.groups, f"{name}_Bps" if name == "bandwidth" else f"{name}_s", factor)
        return platform.model_copy(update={"network": network, "topology": topology, "groups": groups})
    kernels = [model.kernel for model in platform.kernels]
    if name not in (*COMPONENTS, *kernels):
        raise InputError(
            f"scale.{name[:60]} is no component{guess(name, [*COMPONENTS, *kernels])}; they are "
            f"{', '.join(COMPONENTS)}, and kernels of platform {platform.name} such as {kernels[0]}"
        )
    return _with_pieces(
        platform, kernels if name == "computing" else [name], lambda piece: piece.lengthened(1.0 / factor)
    )


def _with_noise(platform: Platform, kernel: str, value: Any) -> Platform:
    """`platform` with calls of a kernel that vary by so much, half-normally unless its noise has another form."""
    relative_sd = number_of(f"noise.{kernel}", value)
    if not 0.0 <= relative_sd <= 10.0:
        raise InputError(f"noise.{kernel} is {relative_sd:g}; a relative standard deviation is 0 to 10")
    known = list(dict.fromkeys(model.kernel for model in platform.kernels))
    if kernel not in known:
        raise InputError(
            f"noise.{kernel}: platform {platform.name} has no kernel {kernel[:60]!r}; it has {', '.join(known)[:300]}"
        )
    changed = _with_pieces(platform, [kernel], lambda piece: _noisy(piece, relative_sd))
    population = platform.population
    if population is None or population.kernel != kernel:
        return changed
    return changed.model_copy(update={"population": _of_the_mean(population)})


def _of_the_mean(population: Population) -> Population:
    """`population` without the standard deviations of calls, which are then those of the kernel's noise."""
    kept = [place for place, term in enumerate(population.terms) if not term.startswith("sd:")]

    def part(rows: Any) -> Any:
        return rows and tuple(tuple(rows[i][j] for j in kept) for i in kept)

    def parts(holder: Group | Population) -> dict[str, Any]:
        return {name: part(getattr(holder, name)) for name in vars(holder) if name.startswith("covar")}

    scales = population.scale_of_cpu and tuple(tuple(row[i] for i in kept) for row in population.scale_of_cpu)
    groups = tuple(
        group.model_copy(update={"mean": tuple(group.mean[i] for i in kept), **parts(group)})
        for group in population.groups
    )
    values = {"terms": tuple(population.terms[i] for i in kept), "groups": groups, "scale_of_cpu": scales}
    return population.model_copy(update={**values, **parts(population)})


def _with_pieces(platform: Platform, kernels: Collection[str], change: Callable[[Piece], Piece]) -> Platform:
    def changed(models: tuple[KernelModel, ...]) -> tuple[KernelModel, ...]:
        return tuple(
            model.model_copy(update={"pieces": tuple(map(change, model.pieces))}) if model.kernel in kernels else model
            for model in models
        )

    groups = platform.groups and tuple(
        group.model_copy(update={"kernels": group.kernels and changed(group.kernels)}) for group in platform.groups
    )
    return platform.model_copy(update={"kernels": changed(platform.kernels), "groups": groups})


def _noisy(piece: Piece, relative_sd: float) -> Piece:
    term, noise, table = _highest(piece.mean), Noise(), piece.per_cpu
    if relative_sd > 0.0:
        kind = piece.noise.kind if piece.noise.kind != "none" else "half-normal"
        noise = Noise(kind=kind, sd={term: relative_sd * piece.mean[term]}, modes=piece.noise.modes)
    if table is not None:
        columns = [*table.columns[:2], *table.mean_terms]
        places = [table.columns.index(column) for column in columns]
        rows = [tuple(row[place] for place in places) for row in table.rows]
        if relative_sd > 0.0:
            term = _highest(table.mean_terms)
            at = columns.index(term)
            columns.append(f"sd:{term}")
            rows = [(*row, relative_sd * row[at]) for row in rows]
        table = table.model_copy(update={"columns": tuple(columns), "rows": tuple(rows)})
    return piece.model_copy(update={"noise": noise, "per_cpu": table})


def _highest(terms: Collection[str]) -> str:
    return max(terms, key=lambda term: 0 if term == "1" else len(term))


def _scaled_network(network: Network, name: str, factor: float) -> Network:
    """The network whose messages between nodes are changed, and its links too where that is the bandwidth."""
    field = "latency_s" if name == "latency" else "bandwidth_Bps"

    def changed(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        return tuple(segment.model_copy(update={field: getattr(segment, field) * factor}) for segment in segments)

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


def _scaled_topology(topology: Topology, name: str, factor: float) -> Topology:
    """The topology whose cables that have a bandwidth or a latency of their own have another."""
    ending = "latency_s" if name == "latency" else "bandwidth_Bps"

    def changed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {inner: changed(each, inner) for inner, each in value.items()}
        if isinstance(value, list | tuple):
            return [changed(each) for each in value]
        return value * factor if key.endswith(ending) and value is not None else value

    return Topology.model_validate(changed(topology.model_dump()))


def resized(platform: Platform, nodes: int, *, topology: bool = True) -> Platform:
    """`platform` with `nodes` nodes: additional ones reuse the models of those that it has, cyclically.

    topology : whether the topology grows or shrinks too; False if the caller replaces it
    Raises InputError if the topology has no form with this many nodes.
    """
    had = platform.nodes
    if nodes == had.count:
        return platform
    refuse_groups(platform, "other numbers of all nodes")
    update: dict[str, Any] = {
        "nodes": had.model_copy(update={"count": nodes}),
        "kernels": tuple(resized_tables(model, had, nodes) for model in platform.kernels),
    }
    if topology:
        update["topology"] = topology_for(platform.topology, nodes, platform.name)
    if (population := platform.population) is not None:
        cyclic = {
            name: tuple(islice(cycle(values), count)) if (values := getattr(population, name)) else None
            for name, count in {"group_of_node": nodes, "scale_of_cpu": nodes * had.cpus}.items()
        }
        update["population"] = population.model_copy(update=cyclic)
    tables = [piece.per_cpu for model in platform.kernels for piece in model.pieces if piece.per_cpu is not None]
    if nodes > had.count and tables:
        first, last = had.first_number, had.first_number + had.count - 1
        continued = all(_continues(table, had, nodes) for table in tables)
        as_which = f"as nodes {first} to {last}, in turn" if continued else "all alike, as the typical cpu"
        what = f"nodes {last + 1} to {had.first_number + nodes - 1}: {as_which}"
        update["assumed"] = (*(platform.assumed or ()), Assumption(what=what, source=f"nodes.count set to {nodes}"))
    return platform.model_copy(update=update)


def topology_for(topology: Topology, nodes: int, name: str) -> Topology:
    """`topology` with `nodes` nodes: one switch has any number, a fat tree grows or shrinks at its top.

    Raises InputError if there is no such form.
    """
    if topology.is_switch or topology.node_count == nodes:
        return topology
    if topology.kind == "fat-tree":
        levels, children, parents, cables = (part.split(",") for part in (topology.parameters or "").split(";"))
        below = math.prod(map(int, children[:-1]))
        named = topology.changed or topology.removed  # parts of the tree as it is
        if nodes % below == 0 and not named:
            parts = (levels, [*children[:-1], str(nodes // below)], parents, cables)
            parameters = ";".join(",".join(part) for part in parts)
            return Topology.model_validate(topology.model_dump() | {"parameters": parameters})
        remedy = "set the whole topology too" if named else f"take a multiple of {below}"
        raise InputError(
            f"the topology of {name} is a fat tree {topology.parameters}{' with changed parts' if named else ''}; with "
            f"{nodes} nodes it has no such form: {remedy}, or one switch: topology={{kind: switch}}"
        )
    stated = "the nodes that its links name" if topology.node_count is None else f"{topology.node_count} nodes"
    raise InputError(
        f"the topology of {name} is a {topology.kind} for {stated}, which {nodes} nodes do not fill; give that number, "
        "or one switch: topology={kind: switch}"
    )


def resized_tables(model: KernelModel, had: Nodes, nodes: int) -> KernelModel:
    """`model` whose tables `per_cpu` have rows for the new nodes, and none for nodes that are gone."""
    if all(piece.per_cpu is None for piece in model.pieces):
        return model
    pieces = []
    for piece in model.pieces:
        table = piece.per_cpu
        if table is not None:
            by_node: dict[int, list[tuple[float, ...]]] = {}
            for row in table.rows:
                by_node.setdefault(int(row[0]) - had.first_number, []).append(row)
            rows = tuple(
                (float(had.first_number + node), *row[1:])
                for node in range(nodes if nodes < had.count or _continues(table, had, nodes) else had.count)
                for row in by_node.get(node % had.count, ())
            )
            piece = piece.model_copy(update={"per_cpu": table.model_copy(update={"rows": rows})})  # noqa: PLW2901
        pieces.append(piece)
    return model.model_copy(update={"pieces": tuple(pieces)})


def _continues(table: PerCpu, had: Nodes, nodes: int) -> bool:
    """Whether a table continued to this many nodes is small enough."""
    return len(table.rows) * nodes <= MAX_ROWS * had.count


def with_cpu_factors(platform: Platform, node: int, factors: Mapping[int, float]) -> Platform:
    """`platform` whose CPUs of one node take `factors` times as long in calls of COMPUTING, noise included.

    node : its number;  factors : by cpu; CPUs that are not named stay as they are
    Variants with other factors (of 1, too) draw the same errors for a seed, so that those cancel between them. Where a
    kernel has one model for all CPUs, the error of its coefficients, which all have alike, is left out.
    Raises InputError for a node, a cpu or a factor that cannot be, and where every run draws nodes anew.
    """
    refuse_groups(platform, "factors of single CPUs")
    nodes = platform.nodes
    first, last = nodes.first_number, nodes.first_number + nodes.count - 1
    if not first <= node <= last:
        raise InputError(f"platform {platform.name} has no node {node}; it has {first} to {last}")
    if platform.population is not None and platform.population.draw == "nodes-and-days":
        raise InputError(
            f"the nodes of platform {platform.name} are drawn anew for each run, so that none of them is node {node}; "
            "take a platform of the real machine"
        )
    for cpu, factor in factors.items():
        if cpu not in range(nodes.cpus):
            raise InputError(f"a node of platform {platform.name} has CPUs 0 to {nodes.cpus - 1}, and no {cpu}")
        if not 0.0 < factor < 1e6:
            raise InputError(f"the factor of cpu {cpu} is {factor:g}; it is above 0 and below 1e6")
    changed = tuple(
        _with_rows(model, node, factors, nodes) if model.kernel in COMPUTING else model for model in platform.kernels
    )
    return platform.model_copy(update={"kernels": changed}).variant_of(platform)


def _with_rows(model: KernelModel, node: int, factors: Mapping[int, float], nodes: Nodes) -> KernelModel:
    tables = [piece.per_cpu for piece in model.pieces if piece.per_cpu is not None]
    by_socket = bool(tables) and tables[0].by_socket
    units: dict[int, float] = {}
    for cpu in range(nodes.cpus):  # a socket is as slow as its slowest cpu
        unit, factor = nodes.socket_of_cpu(cpu) if by_socket else cpu, factors.get(cpu, 1.0)
        units[unit] = max(units.get(unit, factor), factor)
    pieces = tuple(_with_row(piece, node, units, by_socket=by_socket) for piece in model.pieces)
    if not tables:
        # Each cpu would draw an error of its own.
        pieces = tuple(piece.model_copy(update={"covariance": None}) for piece in pieces)
    return model.model_copy(update={"pieces": pieces})


def _with_row(piece: Piece, node: int, units: Mapping[int, float], *, by_socket: bool) -> Piece:
    """The piece with a row for each cpu (or socket) of the node: that of its table, or the common coefficients."""
    common = {**piece.mean, **{f"sd:{term}": value for term, value in piece.noise.sd.items()}}
    table = piece.per_cpu or PerCpu(columns=("node", "socket" if by_socket else "cpu", *common), rows=())
    rows = {row[:2]: row[2:] for row in table.rows}
    places = {(float(node), float(unit)): factor for unit, factor in units.items()}
    terms = list(table.columns[2:])
    if not places.keys() <= rows.keys():  # a row in the place of the common coefficients has all of them
        terms += [term for term in common if term not in terms]
    for at, factor in places.items():
        values = rows.get(at) or [common.get(term, 0.0) for term in terms]
        rows[at] = tuple(value * factor for value in values)
    filled = tuple((*at, *values, *[0.0] * (len(terms) - len(values))) for at, values in rows.items())
    return piece.model_copy(update={"per_cpu": PerCpu(columns=(*table.columns[:2], *terms), rows=filled)})
