"""A platform as the C++ core takes it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lepaute import _core
from lepaute.errors import InputError, LepauteError
from lepaute.simulate.machine.groups import kernels_of_groups, tell_groups
from lepaute.simulate.platform.nodes import with_links
from lepaute.simulate.platform.topology import numbers_between
from lepaute.simulate.platform.values import core_modes

if TYPE_CHECKING:
    from lepaute.simulate.platform.kernel_model import KernelModel, Piece
    from lepaute.simulate.platform.network_model import Network, Segment
    from lepaute.simulate.platform.schema import Platform
    from lepaute.simulate.platform.simgrid import Wiring

KERNELS = tuple(_core.kernel_names())
TERMS = {name: index for index, name in enumerate(_core.term_names())}


def machine_of(platform: "Platform", threads: int = 1) -> _core.Machine:
    """The machine that `platform` describes, for ranks of `threads` threads.

    Raises InputError when the platform has kernel models, but none for that number of threads.
    """
    machine = _core.Machine()
    nodes = platform.nodes
    machine.nodes = nodes.count
    machine.cores_per_node = nodes.cores
    machine.cpus_per_node = nodes.cpus
    machine.cpu_is_core_modulo = nodes.core_to_cpu == "modulo"
    machine.sockets_per_node = nodes.sockets or 1
    machine.threads_per_rank = threads
    available = sorted({model.threads for model in platform.kernels})
    if available and threads not in available:
        raise InputError(
            f"platform {platform.name} has no kernel models for {threads} threads a rank; "
            f"it has them for {', '.join(map(str, available))}; calibrate with --threads-per-rank {threads}, or, for a "
            f"machine from a data sheet, lepaute platform new --threads-per-rank {threads}"
        )
    machine.kernels = kernels_of_groups(platform, KERNELS, threads, _core_kernel)
    if (days := platform.days) is not None:
        for name in ("common_relative_sd", "run_relative_sd", "cpu_relative_sd"):
            setattr(machine, f"day_{name}", getattr(days, name) or 0.0)
        for name in ("degrees_of_freedom", "run_degrees_of_freedom", "cpu_degrees_of_freedom"):
            setattr(machine, f"day_{name}", getattr(days, name) or days.degrees_of_freedom)
    if platform.episodes is not None:
        machine.episode_relative_sd = platform.episodes.relative_sd
        machine.episode_s = platform.episodes.duration_s
    if platform.wandering is not None:
        for name in ("relative_sd", "correlation_s", "relative_sd_error", "correlation_error"):
            setattr(machine, f"wandering_{name}", getattr(platform.wandering, name))
    _fill_network(machine.network, platform.network)
    machine.network.ranks_on_full_node = platform.nodes.cores / threads
    machine.topology = core_topology(platform)
    if platform.groups is not None:
        tell_groups(machine, platform, threads)
    return machine


def _fill_network(core: _core.Network, network: "Network") -> None:
    for link, segments in (
        ("loopback", network.loopback_segments),
        ("remote", network.remote.segments),
        ("loopback_noncontiguous", network.loopback_noncontiguous),
        ("remote_noncontiguous", network.remote_noncontiguous),
        ("loopback_busy", network.loopback_busy.segments if network.loopback_busy else ()),
        ("remote_busy", network.remote.busy.segments if network.remote.busy else ()),
    ):
        costs = getattr(core, link)
        costs.segments = [_core_segment(segment) for segment in segments]
        costs.discrepancy_relative_sd = network.discrepancies[link]
        costs.overhead_relative_sd = network.overhead_errors[link]
        if (fitted := network.fitted_sizes[link]) is not None:
            costs.fitted_low_bytes, costs.fitted_high_bytes = map(float, fitted)
    core.loopback_as_remote = network.loopback.segments is None
    core.noncontiguous_modelled = network.loopback.noncontiguous is not None or network.remote.noncontiguous is not None
    core.flow_factor = network.flow_factor
    core.exact_sharing = network.sharing == "exact"
    core.node_link_Bps = network.node_link.bandwidth_Bps
    core.loopback_Bps = network.loopback.bandwidth_Bps
    core.loopback_shared = network.loopback.shared
    core.iprobe_s = network.costs.iprobe_s
    core.iprobe_looks_first = network.costs.iprobe_looks_first
    core.progress_in_calls = network.progress == "calls"


def _core_kernel(name: str, model: "KernelModel", platform: "Platform") -> _core.MachineKernel:
    kernel = _core.MachineKernel()
    kernel.name = name
    kernel.model_of = model.kernel
    kernel.models = per_cpu_models(model, platform)
    kernel.discrepancy_relative_sd = model.discrepancy_relative_sd
    kernel.crowding = [_core.CrowdingPoint(share, increase) for share, increase in model.crowding_table]
    kernel.crowding_relative_sd = model.crowding_relative_sd or 0.0
    return kernel


def per_cpu_models(model: "KernelModel", platform: "Platform") -> list[_core.KernelModel]:
    """One core model for all cpus, or one for each cpu (or socket) in the order of nodes where pieces have a table."""
    tables_of_pieces = [piece.per_cpu for piece in model.pieces if piece.per_cpu is not None]
    if not tables_of_pieces:
        return [_core.KernelModel([core_piece(piece, piece.mean, piece.noise.sd) for piece in model.pieces])]
    nodes = platform.nodes
    each = (nodes.sockets or 1) if tables_of_pieces[0].by_socket else nodes.cpus
    cpus = [(nodes.first_number + node, unit) for node in range(nodes.count) for unit in range(each)]
    tables = [per_cpu_coefficients(piece) for piece in model.pieces]

    def model_of(at: tuple[int, int] | None) -> _core.KernelModel:
        return _core.KernelModel(
            [
                core_piece(piece, *table.get(at, (piece.mean, piece.noise.sd)))
                for piece, table in zip(model.pieces, tables, strict=True)
            ]
        )

    listed: set[tuple[int, int] | None] = set().union(*tables)
    common = model_of(None)  # of all cpus that no table lists, which may be hundreds of thousands
    return [model_of(at) if at in listed else common for at in cpus]


def per_cpu_coefficients(piece: "Piece") -> dict[tuple[int, int] | None, tuple[dict[str, float], dict[str, float]]]:
    """(node number, cpu or socket) -> (mean, standard deviation) coefficients of the per_cpu table of a piece."""
    table: dict[tuple[int, int] | None, tuple[dict[str, float], dict[str, float]]] = {}
    if piece.per_cpu is None:
        return table
    columns = piece.per_cpu.columns
    for row in piece.per_cpu.rows:
        values = dict(zip(columns, row, strict=True))
        at = (int(values.pop("node")), int(values.pop(columns[1])))
        deviation = {name[3:]: value for name, value in values.items() if name.startswith("sd:")}
        table[at] = ({name: value for name, value in values.items() if not name.startswith("sd:")}, deviation)
    return table


def core_piece(piece: "Piece", mean: dict[str, float], deviation: dict[str, float]) -> _core.KernelPiece:
    core = _core.KernelPiece()
    core.where = bounds(piece.where)
    core.fitted = bounds(piece.range)
    core.fitted_parts = [bounds(box) for box in piece.ranges or ()]
    core.mean = coefficients(mean)
    core.deviation = coefficients(deviation)
    core.noise = piece.noise.kind
    core.discrepancy_relative_sd = piece.discrepancy_relative_sd or 0.0
    if piece.covariance:
        core.covariance_terms = [TERMS[term] for term in piece.covariance.terms]
        core.covariance = [value for row in piece.covariance.matrix for value in row]
    if piece.noise.modes:
        core.modes = [_core.Mode(*mode) for mode in core_modes(piece.noise.modes)]
    return core


def coefficients(by_term: Mapping[str, float]) -> list[float]:
    """Coefficients in the core's order of terms; raises InputError for a term that the engine does not evaluate."""
    values = [0.0] * len(TERMS)
    for term, value in by_term.items():
        if term not in TERMS:
            raise InputError(f"the engine does not evaluate the term {term}; it has {', '.join(TERMS)}")
        values[TERMS[term]] = value
    return values


def bounds(ranges: Mapping[Any, tuple[float, float]] | None) -> _core.Bounds:
    """Bounds from ranges {letter: (low, high)}; no entry, no bound."""
    low, high = zip(*((ranges or {}).get(letter, (0.0, 1e300)) for letter in "mnk"), strict=True)
    return _core.Bounds(_core.Size(*low), _core.Size(*high))


def _core_segment(segment: "Segment") -> _core.Segment:
    core = _core.Segment()
    for name in ("above_bytes", "protocol", "latency_s", "bandwidth_Bps", "cable_latency_factor", "noise_relative_sd"):
        if (value := getattr(segment, name)) is not None:
            setattr(core, name, value)
    for name in ("send", "isend", "receive"):
        setattr(core, name, _core.Overhead(*getattr(segment, name)))
    if segment.noise:
        modes = [_core.NoiseMode(mode.weight, mode.mean, mode.sd) for mode in segment.noise.modes]
        core.noise = _core.NoiseMixture.centred(modes)
    return core


def core_topology(platform: "Platform") -> _core.Topology:
    """The links between the nodes of `platform` and the rule for routes.

    Raises InputError, in one line, for a name that no part has and for nodes that nothing joins.
    """
    try:
        return _build(with_links(platform))
    except LepauteError:
        raise
    except ValueError as error:
        raise InputError(f"platform {platform.name}: topology: {error}; correct the platform file") from None


def _build(platform: "Platform") -> _core.Topology:
    topology, count = platform.topology, platform.nodes.count
    options = _core_options(platform)
    match topology.kind:
        case "switch":
            return _core.Topology.single_switch(count, options)
        case "fat-tree":
            _, down, up, cables = topology.sizes
            return _core.Topology.fat_tree(down, up, cables, topology.cables == "first", options)
        case "dragonfly":
            return _core.Topology.dragonfly([number for part in topology.sizes for number in part], options)
        case "torus":
            return _core.Topology.torus(topology.sizes[0], options)
        case "routes":
            links = topology.route_links or ()
            values = [(link.bandwidth_Bps or options.levels[0][0], link.latency_s or 0.0) for link in links]
            names = [link.name for link in links]
            return _core.Topology.given_routes(count, names, values, topology.routes or (), options)
        case "graph":
            switches = topology.switches or ()
            first = options.levels[0]
            cables_of_nodes = [
                (f"n{number}", switch.name, *first, False, 1)
                for switch in switches
                for number in (numbers_between(switch.nodes) if switch.nodes is not None else ())
            ]
            # A cable between switches is by default one of the second level, where there is one.
            upper = options.levels[min(1, len(options.levels) - 1)]
            between = [
                (
                    *link.between,
                    upper[0] if link.bandwidth_Bps is None else link.bandwidth_Bps,
                    upper[1] if link.latency_s is None else link.latency_s,
                    link.duplex == "shared",
                    link.cables,
                )
                for link in topology.links or ()
            ]
            names = [switch.name for switch in switches]
            return _core.Topology.graph(count, names, cables_of_nodes + between, topology.routing == "latency", options)


def wiring(platform: "Platform") -> "Wiring":
    """The links and routes of `platform`, for export.  Raises InputError as core_topology."""
    from lepaute.simulate.platform.simgrid import Wiring  # not on the way of a prediction

    topology = core_topology(platform)
    return Wiring([(topology.link_name(number), *link) for number, link in enumerate(topology.links)], topology.route)


def _core_options(platform: "Platform") -> _core.TopologyOptions:
    topology = platform.topology
    standard_Bps = platform.network.node_link.bandwidth_Bps
    options = _core.TopologyOptions()
    options.levels = [
        (standard_Bps if level.bandwidth_Bps is None else level.bandwidth_Bps, level.latency_s or 0.0)
        for level in topology.levels or ()
    ] or [(standard_Bps, 0.0)]
    options.shared = topology.duplex == "shared"
    if topology.limiters is not None:
        options.node_limiter_Bps = topology.limiters.node_bandwidth_Bps or 0.0
        options.switch_limiter_Bps = topology.limiters.switch_bandwidth_Bps or 0.0
    options.first_node_number = platform.nodes.first_number
    options.overrides = [(cable.name, cable.bandwidth_Bps, cable.latency_s) for cable in topology.changed or ()]
    options.removed = list(topology.removed or ())
    return options
