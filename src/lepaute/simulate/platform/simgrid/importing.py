"""A platform from the XML of a calibrated SMPI platform, and what of it was ignored."""

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

from pydantic import ValidationError

from lepaute.errors import InputError, PlatformError
from lepaute.kit.documents import read_json
from lepaute.simulate.platform.network_model import Costs, Loopback, Network, NodeLink, Remote, Segment
from lepaute.simulate.platform.nodes import Nodes
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.simgrid import machines
from lepaute.simulate.platform.simgrid.hosts import groups_of
from lepaute.simulate.platform.simgrid.routes import BYPASSES, ZONE_ROUTES, routes_of
from lepaute.simulate.platform.simgrid.zones import (
    ENVELOPE_BYTES,
    longest_route,
    product,
    remote_latency_s,
    simgrid_routes_otherwise,
)
from lepaute.simulate.platform.topology import CableModel, Limiters, NamedCable, Topology

Protocol = Literal["eager", "detached", "rendezvous"]

#: What SimGrid 3.32 takes where a file says nothing (smpimain --help).
DEFAULTS: Mapping[str, str] = {
    "smpi/bw-factor": "65472:0.940694;15424:0.697866;9376:0.58729;5776:1.08739;3484:0.77493;1426:0.608902;"
    "732:0.341987;257:0.338112;0:0.812084",
    "smpi/lat-factor": "65472:11.6436;15424:3.48845;9376:2.59299;5776:2.18796;3484:1.88101;1426:1.61075;"
    "732:1.9503;257:1.95341;0:2.01467",
    "smpi/os": "0:0:0",
    "smpi/ois": "0:0:0",
    "smpi/or": "0:0:0",
    "smpi/async-small-thresh": "0",
    "smpi/send-is-detached-thresh": "65536",
    "smpi/iprobe": "1e-4",
    "smpi/test": "1e-4",
    "smpi/wtime": "1e-8",
}
#: Other names that SimGrid reads.
ALIASES: Mapping[str, str] = {
    "smpi/bw_factor": "smpi/bw-factor",
    "smpi/lat_factor": "smpi/lat-factor",
    "smpi/async_small_thresh": "smpi/async-small-thresh",
    "smpi/async_small_thres": "smpi/async-small-thresh",
    "smpi/send_is_detached_thresh": "smpi/send-is-detached-thresh",
    "smpi/send_is_detached_thres": "smpi/send-is-detached-thresh",
}


class Setting(NamedTuple):
    """The text of a setting, and where it stands, as a prefix of messages about it."""

    text: str
    where: str


@dataclass(frozen=True, slots=True)
class Row:
    """Values for messages of more than `above_bytes`, up to the next row; overheads are (intercept, per byte)."""

    above_bytes: int
    bandwidth_factor: Decimal
    latency_factor: Decimal
    send: tuple[float, float]
    isend: tuple[float, float]
    receive: tuple[float, float]
    protocol: Protocol


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
_PREFIX: Final = "lepaute:"
#: For each property, the types that its value may have.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("name", "description", "source", "sharing", "latency"), (str,)),
    **dict.fromkeys(("node_link_Bps", "loopback_Bps"), (float, int)),
    "nodes": (dict,),
    "groups": (list,),
    "topology": (dict,),
    "enveloped": (list,),
}
_READ_ELEMENTS = frozenset(
    "platform config prop zone AS cluster cabinet host link host_link backbone route link_ctn router "
    "zoneRoute ASroute bypassRoute bypassZoneRoute bypassASroute".split()
)


@dataclass(frozen=True, slots=True)
class Imported:
    """`platform`, without kernel models; `notes`: a sentence for each thing of the file that it does not hold."""

    platform: Platform
    notes: tuple[str, ...]


def import_xml(text: str | bytes, name: str = "platform.xml") -> Imported:
    """The platform that the XML `text` of SimGrid (version 3 or 4) describes; `name` is the file's in messages.

    Factors become absolute bandwidths and latencies. Raises InputError with one line: file, line, what is wrong.
    """
    root = machines.parse(text.encode() if isinstance(text, str) else text, name)
    if root.tag != "platform":
        raise InputError(
            f"{name}:{root.line}: the root element is '{root.tag}'; in a SimGrid platform file it is 'platform'"
        )
    properties = _own_properties(root, name)
    services = _without_service_hosts(root)
    _check_features(root, name)
    settings, others = _settings(root, name)
    table = _rows(settings, with_envelope="enveloped" in properties)
    machine = machines.mesh_of(root, name) if "topology" in properties else _machine(root, name, others, table[0])
    if "enveloped" not in properties and (groups := groups_of(machine.hosts, name)):
        properties["groups"] = groups
    try:
        platform = _platform(machine, table, settings, properties)
    except ValidationError as error:  # the platform's own checks
        first = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in (*first["loc"], *first.get("ctx", {}).get("at", ())))
        raise PlatformError(f"{name}: is not a valid platform: {field} {first['msg']}") from None
    if machine.kind == "dragonfly" and "enveloped" not in properties and simgrid_routes_otherwise(platform.topology):
        raise InputError(
            f"{name}: SimGrid 3.32 takes other routes than the shortest in a dragonfly of several chassis, "
            "which cannot be imported; give it one chassis"
        )
    missing = [setting for setting, (_, place) in settings.items() if place == name]
    notes = [*_ignored(root, others, properties)]
    if services:
        notes.append(f"hosts without speed are left out, as those of services: {', '.join(services)}.")
    return Imported(platform, (*notes, *machine.notes, *_notes(machine, others, missing, properties)))


#: Elements and attributes, of some the value, that make times others than those of one network that stays as it is.
_UNMODELLED = {
    **dict.fromkeys(("trace", "trace_connect"), "is a profile by which speeds and links change"),
    "peer": "is a peer, with a link of its own",
    **{name: f"has {name}, by which its speed or state changes"
       for name in ("availability_file", "state_file", "bandwidth_file", "latency_file", "availability", "state")},
    **{f"{name} {value}": f"has {name} {value}"
       for name, value in (("routing", "Vivaldi"), ("routing", "Wifi"), ("sharing_policy", "WIFI"))},
}  # fmt: skip


def _check_features(platform: machines.Element, origin: str) -> None:
    """Raises InputError for what changes times and has no counterpart in a platform, with its name."""
    for element in platform.everything():
        values = (f"{name} {value}" for name, value in element.attributes.items())
        for name in (element.tag, *element.attributes, *values):
            if name in _UNMODELLED:
                element.refuse(origin, f"{_UNMODELLED[name]}, which cannot be imported; import a file without it")


def _machine(root: machines.Element, origin: str, settings: Mapping[str, str], smallest: Row) -> machines.Machine:
    """The hosts of the file: around one switch, in one cluster, or with the route between every two of them."""
    parts = [element.tag for element in root.all("cluster", "cabinet", "host", *BYPASSES, *ZONE_ROUTES)]
    if parts == ["cluster"] or set(parts) == {"host"}:
        with contextlib.suppress(machines.NoSwitch):
            return machines.machine_of(root, origin)
    gamma = machines.time_s(settings.get("network/TCP-gamma", "4194304"), f"{origin}: network/TCP-gamma")
    crosstraffic = settings.get("network/crosstraffic", "").lower() not in _CORRECTIONS["network/crosstraffic"]
    factors = smallest.bandwidth_factor * smallest.latency_factor
    envelope_bytes = ENVELOPE_BYTES / factors if factors else Decimal(0)
    return routes_of(root, origin, crosstraffic=crosstraffic, tcp_gamma=gamma, envelope_bytes=envelope_bytes)


def _without_service_hosts(platform: machines.Element) -> list[str]:
    """Takes hosts without speed, their zones and the routes of these out; their names."""
    services = {
        id(host): host.attributes.get("id", "")
        for host in platform.all("host")
        if re.fullmatch(r"(?:0+\.?0*|\.0+)[A-Za-z]*", host.attributes.get("speed", ""))
    }
    if not services.keys() < set(map(id, platform.all("host", "cluster", "cabinet"))):
        return []
    gone = set(services.values())
    for zone in platform.all("zone", "AS"):
        if inside := set(map(id, zone.all("host", "cluster", "cabinet"))):
            gone |= {zone.attributes.get("id", "")} if inside <= services.keys() else set()
    for element in list(platform.everything()):
        element.inside = [
            inner
            for inner in element.inside
            if (inner.tag not in ("host", "zone", "AS", "host_link") or inner.attributes.get("id") not in gone)
            and gone.isdisjoint((inner.attributes.get("src"), inner.attributes.get("dst")))
        ]
    return list(services.values())


def _platform(
    machine: machines.Machine, table: tuple[Row, ...], settings: Mapping[str, Setting], properties: Mapping[str, Any]
) -> Platform:
    topology = _topology(machine, properties)
    # Factors are those of the double that a text of 17 digits stands for.
    link_Bps = Decimal(properties.get("node_link_Bps", float(machine.link_Bps)))
    # Is the latency of a route that of its links, for all messages? Ours say so; of others one factor says so.
    one_factor = len({row.latency_factor for row in table}) == 1
    on_links = properties["latency"] == "links" if "latency" in properties else one_factor
    route = longest_route(topology)
    # The links whose latency is that of a segment; that of others is on the cables.
    counted = len(route)
    by_size = machine.kind == "routes" or properties.get("latency") == "sized"
    by_size = by_size or (machine.parameters is not None and not on_links and "latency" not in properties)
    if machine.kind == "graph":
        counted = 1
    elif (on_links or by_size) and machine.kind != "switch":
        counted = 0 if machine.kind == "torus" else 2
    nominal_s = machine.link_latency_s * counted + machine.backbone_latency_s
    segments = tuple(
        _segment(row, link_Bps, nominal_s, bool(taken), by_size=by_size)
        for row, taken in zip(table, [*properties.get("enveloped", []), *[False] * len(table)], strict=False)
    )
    if (on_links or by_size) and machine.kind != "routes" and "topology" not in properties:
        factor = Decimal(1) if by_size else table[0].latency_factor
        topology = topology.model_copy(update={"levels": _cables(machine, factor, topology.levels, route)})
    iprobe_s, test_s, wtime_s = (
        float(machines.time_s(*settings[f"smpi/{name}"])) for name in ("iprobe", "test", "wtime")
    )
    return Platform(
        name=properties.get("name", machine.name),
        description=properties.get("description", ""),
        source=properties.get("source"),
        nodes=Nodes.model_validate(
            properties.get("nodes", {})
            | {"count": len(machine.numbers), "first_number": machine.numbers[0], "cores": machine.cores}
        ),
        groups=properties.get("groups"),
        kernels=(),
        network=Network(
            flow_factor="scale",
            sharing=properties.get("sharing"),
            node_link=NodeLink(bandwidth_Bps=float(link_Bps)),
            loopback=_loopback(machine, table, segments, nominal_s, properties),
            remote=Remote(segments=segments),
            costs=Costs(iprobe_s=iprobe_s, test_s=test_s, wtime_s=wtime_s),
        ),
        topology=topology,
    )


def _segment(row: Row, width_Bps: Decimal, nominal_s: Decimal, enveloped: bool, *, by_size: bool) -> Segment:
    """`by_size`: the factor of latencies, which depends on the size, is for those of cables as well."""
    bandwidth = float(product(width_Bps, row.bandwidth_factor))
    return Segment(
        above_bytes=row.above_bytes,
        protocol=row.protocol,
        # a bandwidth that is too small for a double is refused by the segment itself
        latency_s=remote_latency_s(nominal_s, row.latency_factor, bandwidth if enveloped and bandwidth else None),
        bandwidth_Bps=bandwidth,
        cable_latency_factor=float(row.latency_factor) if by_size else None,
        send=row.send,
        isend=row.isend,
        receive=row.receive,
    )


def _loopback(
    machine: machines.Machine,
    table: tuple[Row, ...],
    remote: tuple[Segment, ...],
    nominal_s: Decimal,
    properties: Mapping[str, Any],
) -> Loopback:
    width = Decimal(float(machine.loopback_Bps or _IMPLICIT_LOOPBACK_BPS))
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
                    else product(Decimal(segment.latency_s), share)
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
        shared=False, bandwidth_Bps=properties.get("loopback_Bps", float(width)), segments=None if same else segments
    )


def _topology(machine: machines.Machine, properties: Mapping[str, Any]) -> Topology:
    if "topology" in properties:
        return Topology.model_validate(properties["topology"])
    limits = [None if limit is None else float(limit) for limit in (machine.node_limit_Bps, machine.switch_limit_Bps)]
    if machine.kind == "routes":
        links = tuple(
            NamedCable(name=name, bandwidth_Bps=float(width), latency_s=float(latency))
            for name, width, latency in machine.links
        )
        return Topology(kind="routes", route_links=links, routes=machine.routes)
    return Topology.model_validate(
        {
            "kind": machine.kind,
            "parameters": machine.parameters,
            "levels": (CableModel(bandwidth_Bps=float(machine.link_Bps)),) if "node_link_Bps" in properties else None,
            "duplex": "shared" if machine.shared else None,
            "limiters": Limiters(node_bandwidth_Bps=limits[0], switch_bandwidth_Bps=limits[1]) if any(limits) else None,
        }
    )


def _cables(
    machine: machines.Machine, factor: Decimal, levels: tuple[CableModel, ...] | None, route: tuple[int, ...]
) -> tuple[CableModel, ...] | None:
    """`levels` with the latencies of the links: of all in a torus, else of those between switches in `route`."""
    latency = float(product(machine.link_latency_s, factor))
    if machine.kind == "switch" or not latency or (machine.kind != "torus" and not any(route)):
        return levels
    width = levels[0].bandwidth_Bps if levels else None
    cable = CableModel(bandwidth_Bps=width, latency_s=latency)
    return (cable,) if machine.kind == "torus" else (CableModel(bandwidth_Bps=width, latency_s=0.0), cable)


def _settings(root: machines.Element, origin: str) -> tuple[dict[str, Setting], dict[str, str]]:
    """The settings that are read (by default SimGrid's own), and the values of the others."""
    settings = {name: Setting(value, origin) for name, value in DEFAULTS.items()}
    others: dict[str, str] = {}
    for config in root.all("config"):
        for prop in config.all("prop"):
            spelt, value = prop.attributes.get("id", ""), prop.attributes.get("value", "")
            name = ALIASES.get(spelt, spelt)
            if name in DEFAULTS:
                settings[name] = Setting(value, f"{origin}:{prop.line}: {spelt}")
            else:
                others[name] = value
    return settings, others


def _ignored(root: machines.Element, settings: Mapping[str, str], properties: Mapping[str, Any]) -> Iterator[str]:
    """In a sentence, what does not change how long messages take; of a file of ours, only what was added to it."""
    hosts = list(root.all("cluster", "cabinet", "host", "link"))
    names = {name for element in hosts for name in element.properties()}
    energy = sorted(name for name in names if name.startswith("watt"))
    ignored = {
        "speeds": ["computing follows kernel models"] if not {"enveloped", "groups"} & properties.keys() else [],
        "p-states": sorted({e.attributes.get("id", "") for e in hosts if "," in e.attributes.get("speed", "")}),
        "energy": energy,
        "properties": sorted(names - set(energy)),
        "settings": sorted(
            name for name in settings if name not in _WITHOUT_EFFECT and not name.startswith("contexts/")
        ),
        "elements": sorted({element.tag for element in root.everything()} - _READ_ELEMENTS),
    }
    if named := [f"{what} ({', '.join(names)})" for what, names in ignored.items() if names]:
        yield f"ignored: {', '.join(named)}."


def _notes(
    machine: machines.Machine, settings: Mapping[str, str], missing: list[str], properties: Mapping[str, Any]
) -> Iterator[str]:
    """What is taken otherwise than SimGrid does."""
    if "enveloped" not in properties:
        yield (
            "thresholds: read as message sizes; SMPI compares those of the factors with the size plus 16 bytes, and "
            "sends eagerly or detached below, not at, a threshold."
        )
        on = [name for name, off in _CORRECTIONS.items() if settings.get(name, "").lower() not in off]
        if machine.kind == "routes":
            on = [name for name in on if name == "network/weight-S"]
        if on:
            yield f"{', '.join(on)}: SimGrid's corrections, which the file does not turn off, are not applied."
        if not machine.loopback_Bps:
            yield "loopback: the file has none; messages inside a node have SimGrid's own, 10 GB/s without latency."
    if missing:
        yield f"{', '.join(missing)}: not in the file; the values are those that SimGrid 3.32 takes then."
    first, last = machine.numbers[0], machine.numbers[-1]
    if machine.numbers != tuple(range(first, first + len(machine.numbers))):
        count = len(machine.numbers)
        yield f"radical: the {count} hosts are numbered {first} to {first + count - 1}; the last is {last} in the file."


def _own_properties(root: machines.Element, origin: str) -> dict[str, Any]:
    """The properties of zones, without their prefix; raises InputError for one that Lepaute does not write."""
    properties: dict[str, Any] = {}
    for zone in root.all("zone"):
        for name, text in zone.properties().items():
            if not name.startswith(_PREFIX):
                continue
            try:
                value = read_json(text, name)
            except InputError:
                value = None
            sound = isinstance(value, _TYPES.get(name.removeprefix(_PREFIX), ())) and not isinstance(value, bool)
            if not sound or (isinstance(value, float | int) and not 0 < value < math.inf):
                raise InputError(
                    f"{origin}:{zone.line}: the property {name[:60]} is {text[:60]!r}, which Lepaute never writes; "
                    "remove it"
                )
            properties[name.removeprefix(_PREFIX)] = value
    return properties


def _rows(settings: Mapping[str, Setting], *, with_envelope: bool) -> tuple[Row, ...]:
    """The tables as one, with a row wherever one of them has a threshold; the first begins at 0.

    with_envelope : thresholds of factors count the envelope, as SMPI takes them; those of calibrated files do not
    """
    shift = ENVELOPE_BYTES if with_envelope else 0
    factors = [_table(*settings[f"smpi/{name}-factor"], shift) for name in ("bw", "lat")]
    overheads = [_table(*settings[f"smpi/{name}"], 0) for name in ("os", "ois", "or")]
    starts = {start for table in (*factors, *overheads) for start in table}
    eager_from = machines.whole_number(*settings["smpi/async-small-thresh"])
    detached_from = machines.whole_number(*settings["smpi/send-is-detached-thresh"])
    for threshold in (eager_from, detached_from):
        if 0 < threshold < 2**31 - 1 and not starts & {threshold, threshold - 1}:
            starts.add(threshold - 1)
    rows = []
    for start in sorted(starts | {0}):
        bandwidth, latency = ((_at(table, start) or (Decimal(1),))[0] for table in factors)
        cells = ((*_at(table, start), Decimal(0), Decimal(0)) for table in overheads)
        send, isend, receive = ((float(intercept), float(per_byte)) for intercept, per_byte, *_ in cells)
        # more than `start` bytes are at least start + 1
        late: Protocol = "detached" if start + 1 < detached_from else "rendezvous"
        protocol: Protocol = "eager" if start + 1 < eager_from else late
        rows.append(Row(start, bandwidth, latency, send, isend, receive, protocol))
    return tuple(rows)


def _table(text: str, where: str, shift: int) -> dict[int, tuple[Decimal, ...]]:
    if ":" not in text and ";" not in text:
        return {0: (machines.time_s(text, where),)}
    table: dict[int, tuple[Decimal, ...]] = {}
    for entry in text.split(";"):
        if not entry.strip():
            continue
        start, *values = entry.split(":")
        threshold = machines.whole_number(start, f"{where}: a threshold")
        if not values:
            raise InputError(f"{where}: the entry {entry!r} has no value; write threshold:value")
        table[max(threshold - shift, 0)] = tuple(machines.time_s(value, f"{where}: a value") for value in values)
    return table


def _at(table: Mapping[int, tuple[Decimal, ...]], start: int) -> tuple[Decimal, ...]:
    """The values of the last threshold up to this size; none below the first one."""
    return table[max(below)] if (below := [threshold for threshold in table if threshold <= start]) else ()
