"""A platform from the XML of a calibrated SMPI platform, and what of it was ignored."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pydantic import ValidationError

from lepaute.errors import InputError, PlatformError
from lepaute.kit.documents import read_json
from lepaute.platform.network_model import Loopback, Network, NodeLink, Remote, Segment
from lepaute.platform.schema import Nodes, Platform, Topology
from lepaute.platform.simgrid.decimals import exact, product
from lepaute.platform.simgrid.latency import longest_route, remote_latency_s
from lepaute.platform.simgrid.machines import Machine, machine_of, mesh_of
from lepaute.platform.simgrid.reading import Element, parse
from lepaute.platform.simgrid.tables import ALIASES, DEFAULTS, Row, costs, rows
from lepaute.platform.topology import CableModel, Limiters

#: What SimGrid 3.32 takes for messages inside a host without a loopback link.
_IMPLICIT_LOOPBACK_BPS = Decimal("1e10")
#: Settings that do not change how long a message takes.
_WITHOUT_EFFECT = (
    *("smpi/simulate-computation", "smpi/grow-injected-times", "smpi/host-speed", "smpi/running-power", "smpi/init"),
    *("smpi/display-timing", "smpi/privatization", "smpi/privatize-global-variables", "network/crosstraffic"),
    *("network/weight-S", "network/TCP-gamma", "surf/precision", "maxmin/precision", "maxmin/concurrency-limit"),
    "network/model",
)
#: SimGrid's corrections, and the values that turn them off.
_CORRECTIONS = {
    "network/crosstraffic": ("0", "no", "off", "false"),
    "network/weight-S": ("0", "0.0"),
    "network/TCP-gamma": ("0", "0.0"),
}
_READ_ELEMENTS = {
    *(
        "platform",
        "config",
        "prop",
        "zone",
        "AS",
        "cluster",
        "cabinet",
        "host",
        "link",
        "host_link",
        "backbone",
        "route",
    ),
    *("link_ctn", "router"),
}


@dataclass(frozen=True, slots=True)
class Imported:
    """`platform`, without kernel models; `notes`: a sentence for each thing of the file that it does not hold."""

    platform: Platform
    notes: tuple[str, ...]


def import_xml(text: str | bytes, name: str = "platform.xml") -> Imported:
    """The platform that the XML `text` of SimGrid (version 3 or 4) describes; `name` is the file's in messages.

    Factors become absolute bandwidths and latencies. Raises InputError with one line: file, line, what is wrong.
    """
    root = parse(text.encode() if isinstance(text, str) else text, name)
    if root.tag != "platform":
        raise InputError(
            f"{name}:{root.line}: the root element is '{root.tag}'; in a SimGrid platform file it is 'platform'"
        )
    properties = own_properties(root, name)
    machine = mesh_of(root, name) if "topology" in properties else machine_of(root, name)
    values, where, others = _settings(root, name)
    table = rows(values, where, with_envelope="enveloped" in properties)
    try:
        platform = _platform(machine, table, values, where, properties)
    except ValidationError as error:  # the platform's own checks
        first = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in (*first["loc"], *first.get("ctx", {}).get("at", ())))
        raise PlatformError(f"{name}: is not a valid platform: {field} {first['msg']}") from None
    given = {setting for setting, place in where.items() if place != name}
    notes = (*machine.notes, *_notes(root, machine, others, given, properties, _on_links(table, properties)))
    return Imported(platform, notes)


def _platform(
    machine: Machine,
    table: tuple[Row, ...],
    values: Mapping[str, str],
    where: Mapping[str, str],
    properties: Mapping[str, Any],
) -> Platform:
    topology = _topology(machine, properties)
    # Factors are those of the double that a text of 17 digits stands for.
    link_Bps = exact(properties.get("node_link_Bps", float(machine.link_Bps)))
    on_links = _on_links(table, properties)
    route = longest_route(topology)
    nominal_s = machine.link_latency_s * _links_counted(machine, on_links, route) + machine.backbone_latency_s
    enveloped = properties.get("enveloped", [])
    segments = tuple(_segment(row, link_Bps, nominal_s, _at(enveloped, i)) for i, row in enumerate(table))
    if on_links:
        topology = topology.model_copy(update={"levels": _cables(machine, table[0], topology.levels, route)})
    return Platform(
        name=properties.get("name", machine.name),
        description=properties.get("description", ""),
        source=properties.get("source"),
        nodes=Nodes.model_validate(
            properties.get("nodes", {})
            | {"count": len(machine.numbers), "first_number": machine.numbers[0], "cores": machine.cores}
        ),
        kernels=(),
        network=Network(
            flow_factor="scale",
            sharing=properties.get("sharing"),
            node_link=NodeLink(bandwidth_Bps=float(link_Bps)),
            loopback=_loopback(machine, table, segments, nominal_s, properties),
            remote=Remote(segments=segments),
            costs=costs(values, where),
        ),
        topology=topology,
    )


def _segment(row: Row, width_Bps: Decimal, nominal_s: Decimal, enveloped: bool) -> Segment:
    bandwidth = float(product(width_Bps, row.bandwidth_factor))
    return Segment(
        above_bytes=row.above_bytes,
        protocol=row.protocol,
        # a bandwidth that is too small for a double is refused by the segment itself
        latency_s=remote_latency_s(nominal_s, row.latency_factor, bandwidth if enveloped and bandwidth else None),
        bandwidth_Bps=bandwidth,
        send=row.send,
        isend=row.isend,
        receive=row.receive,
    )


def _loopback(
    machine: Machine,
    table: tuple[Row, ...],
    remote: tuple[Segment, ...],
    nominal_s: Decimal,
    properties: Mapping[str, Any],
) -> Loopback:
    width = exact(float(machine.loopback_Bps or _IMPLICIT_LOOPBACK_BPS))
    latency_s = machine.loopback_latency_s if machine.loopback_Bps else Decimal(0)
    # Latencies inside are those between nodes times one number, also where 16 bytes are taken off the factor.
    share = latency_s / nominal_s if nominal_s else None
    segments = tuple(
        Segment.model_validate(
            segment.model_dump()
            | {
                "bandwidth_Bps": float(product(width, row.bandwidth_factor)),
                "latency_s": float(
                    product(latency_s, row.latency_factor)
                    if share is None
                    else product(exact(segment.latency_s), share)
                ),
            }
        )
        for row, segment in zip(table, remote, strict=True)
    )
    same = all(
        abs(a.bandwidth_Bps - b.bandwidth_Bps) <= 1e-15 * b.bandwidth_Bps
        and abs(a.latency_s - b.latency_s) <= 1e-15 * b.latency_s
        for a, b in zip(segments, remote, strict=True)
    )
    return Loopback(
        shared=False,
        bandwidth_Bps=properties.get("loopback_Bps", float(width)),
        segments=None if same else segments,
    )


def _topology(machine: Machine, properties: Mapping[str, Any]) -> Topology:
    if "topology" in properties:
        return Topology.model_validate(properties["topology"])
    limits = (machine.node_limit_Bps, machine.switch_limit_Bps)
    levels = (CableModel(bandwidth_Bps=float(machine.link_Bps)),) if "node_link_Bps" in properties else None
    return Topology.model_validate(
        {
            "kind": machine.kind,
            "parameters": machine.parameters,
            "levels": levels,
            "duplex": "shared" if machine.shared else None,
            "limiters": Limiters(node_bandwidth_Bps=limits[0], switch_bandwidth_Bps=limits[1]) if any(limits) else None,
        }
    )


def _on_links(table: tuple[Row, ...], properties: Mapping[str, Any]) -> bool:
    """Is the latency of a route that of its links, for all messages? Ours say so; of others one factor says so."""
    if "latency" in properties:
        return bool(properties["latency"] == "links")
    return len({row.latency_factor for row in table}) == 1


def _links_counted(machine: Machine, on_links: bool, route: tuple[int, ...]) -> int:
    """The links whose latency is that of a segment; that of others is on the cables."""
    if machine.kind == "graph":
        return 1
    if not on_links or machine.kind == "switch":
        return len(route)
    return 0 if machine.kind == "torus" else 2


def _cables(
    machine: Machine, row: Row, levels: tuple[CableModel, ...] | None, route: tuple[int, ...]
) -> tuple[CableModel, ...] | None:
    """`levels` with the latencies of the links: of all in a torus, else of those between switches.

    route : the level of each link of a longest route; a tree of one switch has no others than those of the nodes
    """
    latency = float(product(machine.link_latency_s, row.latency_factor))
    if machine.kind == "switch" or not latency or (machine.kind != "torus" and not any(route)):
        return levels
    width = levels[0].bandwidth_Bps if levels else None
    cable = CableModel(bandwidth_Bps=width, latency_s=latency)
    return (cable,) if machine.kind == "torus" else (CableModel(bandwidth_Bps=width, latency_s=0.0), cable)


def _at(flags: list[int], position: int) -> bool:
    return position < len(flags) and bool(flags[position])


def _settings(root: Element, origin: str) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Value and place of each setting that is read (by default SimGrid's own), and the others."""
    values, where = dict(DEFAULTS), dict.fromkeys(DEFAULTS, origin)
    others: dict[str, str] = {}
    for config in root.all("config"):
        for prop in config.all("prop"):
            given, value = prop.attributes.get("id", ""), prop.attributes.get("value", "")
            name = ALIASES.get(given, given)
            if name in DEFAULTS:
                values[name], where[name] = value, f"{origin}:{prop.line}: {given}"
            else:
                others[name] = value
    return values, where, others


def _notes(
    root: Element,
    machine: Machine,
    settings: Mapping[str, str],
    given: set[str],
    properties: Mapping[str, Any],
    on_links: bool,
) -> Iterator[str]:
    """What was ignored, and what is taken otherwise than SimGrid does; of a file of ours, only what was added to it."""
    if "enveloped" not in properties:
        yield "speed: ignored; computing follows kernel models, which the file lacks: add some before predicting."
        yield (
            "thresholds: read as message sizes; SMPI compares those of the factors with the size plus 16 bytes, and "
            "sends eagerly or detached below, not at, a threshold."
        )
        if machine.kind not in ("switch", "graph") and not on_links:
            yield (
                "latency: the factors depend on the size, so that every message has the latency of a longest route; "
                "in SimGrid a route of fewer links has less."
            )
        on = [name for name, off in _CORRECTIONS.items() if settings.get(name, "").lower() not in off]
        if on:
            yield f"{', '.join(on)}: SimGrid's corrections, which the file does not turn off, are not applied."
        if not machine.loopback_Bps:
            yield "loopback: the file has none; messages inside a node have SimGrid's own, 10 GB/s without latency."
    if missing := [name for name in DEFAULTS if name not in given]:
        yield f"{', '.join(missing)}: not in the file; the values are those that SimGrid 3.32 takes then."
    if ignored := sorted(name for name in settings if name not in _WITHOUT_EFFECT and not name.startswith("contexts/")):
        yield f"settings ignored: {', '.join(ignored)}."
    if elements := sorted({element.tag for element in root.everything()} - _READ_ELEMENTS):
        yield f"elements ignored: {', '.join(elements)}."
    of_hosts = {name for element in root.all("cluster", "cabinet", "host", "link") for name in element.properties()}
    if of_hosts:
        yield f"properties of hosts and links ignored: {', '.join(sorted(of_hosts))}."
    first, last = machine.numbers[0], machine.numbers[-1]
    if machine.numbers != tuple(range(first, first + len(machine.numbers))):
        count = len(machine.numbers)
        yield f"radical: the {count} hosts are numbered {first} to {first + count - 1}; the last is {last} in the file."


PREFIX: Final = "lepaute:"
#: Of each property, the types that its value may have.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "name": (str,),
    "description": (str,),
    "source": (str,),
    "nodes": (dict,),
    "sharing": (str,),
    "node_link_Bps": (float, int),
    "loopback_Bps": (float, int),
    "latency": (str,),
    "enveloped": (list,),
    "topology": (dict,),
}


def own_properties(root: Element, origin: str) -> dict[str, Any]:
    """The properties, without their prefix, of the zones in `root`; `origin` is the file's name in messages.

    Raises InputError for one that lepaute does not write.
    """
    properties: dict[str, Any] = {}
    for zone in root.all("zone"):
        for name, text in zone.properties().items():
            if not name.startswith(PREFIX):
                continue
            types = _TYPES.get(name.removeprefix(PREFIX), ())
            try:
                value = read_json(text, name)
            except InputError:
                value = None
            sound = isinstance(value, types) and not isinstance(value, bool)
            if not sound or (isinstance(value, float | int) and not 0 < value < math.inf):
                raise InputError(
                    f"{origin}:{zone.line}: the property {name[:60]} is {text[:60]!r}, which Lepaute never writes; "
                    "remove it"
                )
            properties[name.removeprefix(PREFIX)] = value
    return properties
