"""The topology of a platform as the C++ core takes it."""

from typing import TYPE_CHECKING

from lepaute import _core
from lepaute.errors import InputError, LepauteError
from lepaute.platform.topology import numbers_between

if TYPE_CHECKING:
    from lepaute.platform.schema import Platform
    from lepaute.platform.simgrid import Wiring


def core_topology(platform: "Platform") -> _core.Topology:
    """The links between the nodes of `platform` and the rule for routes.

    Raises InputError, in one line, for a name that no part has and for nodes that nothing joins.
    """
    try:
        return _build(platform)
    except LepauteError:
        raise
    except ValueError as error:
        raise InputError(f"platform {platform.name}: topology: {error}; correct the platform file") from None


def _build(platform: "Platform") -> _core.Topology:
    topology, count = platform.topology, platform.nodes.count
    options = core_options(platform)
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
    from lepaute.platform.simgrid import Wiring  # not on the way of a prediction

    topology = core_topology(platform)
    links = [(topology.link_name(number), *link) for number, link in enumerate(topology.links)]
    return Wiring(links, topology.route)


def core_options(platform: "Platform") -> _core.TopologyOptions:
    """What all kinds of topology have in common."""
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
