"""The route between every two hosts of a file of SimGrid's: through its zones, by their rules, gateways and bypasses.

A route is a list of links in the order of the way; a SPLITDUPLEX link is two, NAME_UP and NAME_DOWN.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, permutations, product
from typing import NamedTuple

from lepaute.errors import InputError
from lepaute.simulate.platform.simgrid.machines import Element, Machine, Reader, bandwidth_Bps, cores_of, numbers

#: There is a row of a table for every two.
MAX_HOSTS = 256
#: Begins the names of links that are of the messages between two hosts alone.
FLOW = "flow "
#: Of the latency: less than this, the 16 bytes that SMPI adds to each message are left out.
_NOTICED = Decimal("0.002")
_NAMED = 12
_DEEPEST = 64
WIDE_BPS = Decimal("1e18")  # of a link that limits nothing
_ZONES = ("zone", "AS", "cluster")
ZONE_ROUTES = ("zoneRoute", "ASroute", "bypassZoneRoute", "bypassASroute")
BYPASSES = ("bypassRoute", "bypassZoneRoute", "bypassASroute")
_JOINS = ("host_link", "route", "bypassRoute", *ZONE_ROUTES)
_ROUTINGS = ("full", "floyd", "dijkstra", "dijkstracache", "cluster", "none")
_OPPOSITE = {"UP": "DOWN", "DOWN": "UP"}
#: What a flow takes, on its way back, of what it takes on its way (network/crosstraffic).
_BACK = Decimal("0.05")


class Link(NamedTuple):
    """A link as messages meet it; `pipe`: each has all of its bandwidth."""

    name: str
    bandwidth_Bps: Decimal  # noqa: N815 - the unit
    latency_s: Decimal
    pipe: bool = False


class Step(NamedTuple):
    """A route that the file gives; between zones from gateway to gateway."""

    links: tuple[Link, ...]
    gateways: tuple[str, str] | None = None


@dataclass(eq=False)
class Zone:
    """A zone, or a cluster, and what it says of the ways between its points: hosts, routers and zones."""

    name: str
    routing: str
    parent: "Zone | None"
    backbone: tuple[Link, ...] = ()
    points: dict[str, int] = field(default_factory=dict)  # in the order of the file
    steps: dict[str, dict[str, Step]] = field(default_factory=dict)
    bypasses: dict[tuple[str, str], Step] = field(default_factory=dict)
    ups: dict[str, tuple[Link, ...]] = field(default_factory=dict)
    downs: dict[str, tuple[Link, ...]] = field(default_factory=dict)
    _shortest: dict[str, dict[str, list[Step]]] = field(default_factory=dict)

    def outwards(self) -> "list[Zone]":
        """This zone, and those that it is in."""
        return [self, *(self.parent.outwards() if self.parent else [])]

    def steps_between(self, source: str, destination: str) -> list[Step]:
        """What leads from one point to another; empty if nothing does."""
        if self.routing == "cluster":
            return [Step(tuple(dict.fromkeys((*self.ups.get(source, ()), *self.downs.get(destination, ())))))]
        if self.routing in ("full", "none"):
            return [step] if (step := self.steps.get(source, {}).get(destination)) else []
        if source not in self._shortest:
            self._shortest[source] = dict(self._paths(source))
        return self._shortest[source].get(destination, [])

    def _paths(self, source: str) -> Iterator[tuple[str, list[Step]]]:
        """The shortest path to each point, by number of links."""
        done = set()
        opened: list[tuple[int, int, str, list[Step]]] = [(0, 0, source, [])]
        while opened:
            links, _, point, path = heapq.heappop(opened)
            if point not in done:
                done.add(point)
                yield point, path
                for after, step in self.steps.get(point, {}).items():
                    heapq.heappush(opened, (links + len(step.links), self.points[after], after, [*path, step]))


class Map:
    """What a file says of hosts, links and ways between them; raises InputError for what does not fit together."""

    def __init__(self, platform: Element, origin: str) -> None:
        self.origin = origin
        self.hosts: dict[str, Element] = {}
        self.links: dict[str, Link] = {}
        self.loopbacks: dict[str, Link] = {}
        self._zone_of: dict[str, Zone] = {}
        self._depth = 0
        joins: list[tuple[Zone, Element]] = []
        for element in platform.inside:
            if element.tag in _ZONES:
                self._enter(element, None, joins)
        for zone, element in joins:  # now that all names are known
            self._join(zone, element)

    def between(self, source: str, destination: str) -> tuple[Link, ...]:
        """The links from one host or router to another, as SimGrid 3.32 finds them."""
        from_zones, to_zones = (self._zone_of[point].outwards() for point in (source, destination))
        around = next((zone for zone in from_zones if zone in to_zones), None)
        self._depth += 1
        if around is None or self._depth > _DEEPEST:
            raise InputError(f"{self.origin}: gateways lead nowhere on the way from '{source}' to '{destination}'")
        pairs = product(range(len(from_zones)), range(len(to_zones)))
        # SimGrid looks for a bypass from the inside
        for i, j in sorted(pairs, key=lambda at: (max(at), at[0] == at[1], min(at), at[0])):
            key = (from_zones[i].name, to_zones[j].name) if from_zones[0] is not to_zones[0] else (source, destination)
            if bypass := around.bypasses.get(key):
                return self._through([bypass], source, destination)
        ends = [
            point if zones[0] is around else zones[zones.index(around) - 1].name
            for point, zones in ((source, from_zones), (destination, to_zones))
        ]
        if steps := around.steps_between(*ends):
            return self._through(steps, source, destination)
        raise InputError(
            f"{self.origin}: zone '{around.name}' has no route from '{ends[0]}' to '{ends[1]}'; a platform needs one "
            "between every two hosts"
        )

    def _through(self, steps: list[Step], source: str, destination: str) -> tuple[Link, ...]:
        """The links of `steps`, and those to, between and from their gateways."""
        links: tuple[Link, ...] = ()
        at = source
        for step in steps:
            if step.gateways is not None and at != step.gateways[0]:
                links += self.between(at, step.gateways[0])
            links += step.links
            at = destination if step.gateways is None else step.gateways[1]
        links += () if at == destination else self.between(at, destination)
        self._depth -= 1
        return links

    def _enter(self, element: Element, parent: Zone | None, joins: list[tuple[Zone, Element]]) -> None:
        routing = "cluster" if element.tag == "cluster" else element.attributes.get("routing", "").lower()
        if routing not in _ROUTINGS or element.attributes.get("topology", "FLAT") != "FLAT":
            element.refuse(self.origin, "its routing or topology cannot be imported together with other zones or hosts")
        zone = Zone(element.attributes.get("id", ""), routing, parent)
        if parent is not None:
            self._point(parent, zone.name)
        if element.tag == "cluster":
            if any(element.attributes.get(name) for name in ("bb_bw", "bb_lat")):
                policy = element.attributes.get("bb_sharing_policy", "SHARED")
                zone.backbone = self._link(element, f"{zone.name}_backbone", policy, "bb_bw", "bb_lat")
            suffix = element.attributes.get("suffix", "")
            router = f"{element.attributes.get('prefix', '')}{zone.name}_router{suffix}"
            self._fill(zone, element)
            self._point(zone, element.attributes.get("router_id") or router)
            return
        for inner in element.inside:
            if inner.tag == "backbone":  # cabinets may stand before it
                zone.backbone += self._link(inner, inner.attributes.get("id", ""), _policy_of(inner))
        for inner in element.inside:
            self._define(zone, inner, joins)

    def _define(self, zone: Zone, element: Element, joins: list[tuple[Zone, Element]]) -> None:
        name = element.attributes.get("id", "")
        if element.tag in _ZONES:
            self._enter(element, zone, joins)
        elif element.tag in _JOINS:
            joins.append((zone, element))
        elif element.tag == "host":
            self._host(zone, name, element)
        elif element.tag == "router":
            self._point(zone, name)
        elif element.tag == "link":
            self._link(element, name, _policy_of(element))
        elif element.tag == "cabinet":
            self._fill(zone, element)

    def _point(self, zone: Zone, name: str) -> None:
        zone.points[name] = len(zone.points)
        self._zone_of[name] = zone

    def _host(self, zone: Zone, name: str, element: Element) -> None:
        if name in self.hosts:
            element.refuse(self.origin, f"is a second host of the name '{name}'; give it another")
        self.hosts[name] = element
        self._point(zone, name)
        if len(self.hosts) > MAX_HOSTS:
            element.refuse(self.origin, f"routes between every two of more than {MAX_HOSTS} hosts cannot be imported")

    def _link(
        self, element: Element, name: str, policy: str, width: str = "bandwidth", delay: str = "latency"
    ) -> tuple[Link, ...]:
        """The link, or the two of a SPLITDUPLEX one, whose attributes have the names `width` and `delay`."""
        at = Reader(element, self.origin)
        value = bandwidth_Bps(at.text(width), at.where(width)), at.time_or_0(delay)
        if not value[0]:
            raise InputError(f"{at.where(width)} is 0; no message passes then")
        if policy not in ("SHARED", "FATPIPE", "SPLITDUPLEX", "FULLDUPLEX"):
            raise InputError(f"{at.where('sharing_policy')} is {policy[:40]!r}, which cannot be imported")
        ways = ("_UP", "_DOWN") if policy in ("SPLITDUPLEX", "FULLDUPLEX") else ("",)
        made = tuple(Link(f"{name}{way}", *value, policy == "FATPIPE") for way in ways)
        self.links.update((link.name, link) for link in made)
        return made

    def _fill(self, zone: Zone, element: Element) -> None:
        """The hosts of a cluster or a cabinet, with their links."""
        at = Reader(element, self.origin)
        policy = element.attributes.get("sharing_policy", "SPLITDUPLEX") if element.tag == "cluster" else "SPLITDUPLEX"
        limit, loopback = at.optional_Bps("limiter_link"), at.optional_Bps("loopback_bw")
        for number in numbers(at.text("radical"), at.where("radical")):
            host = f"{element.attributes.get('prefix', '')}{number}{element.attributes.get('suffix', '')}"
            self._host(zone, host, element)
            ways = self._link(element, f"{zone.name}_link_{host}", policy, "bw", "lat")
            limits = () if limit is None else (Link(f"{zone.name}_link_{host}_limiter", limit, Decimal(0)),)
            zone.ups[host] = (*limits, ways[0], *zone.backbone)
            zone.downs[host] = (*zone.backbone, ways[-1], *limits)
            if loopback is not None:
                self.loopbacks[host] = Link("loopback", loopback, at.time_or_0("loopback_lat"))

    def _named(self, element: Element, name: str) -> Link:
        if name not in self.links:
            hint = "give it a direction" if f"{name}_UP" in self.links else "define it, or correct the name"
            element.refuse(self.origin, f"there is no link '{name}'; {hint}")
        return self.links[name]

    def _links_of(self, element: Element, *, back: bool) -> tuple[Link, ...]:
        made = []
        for step in element.all("link_ctn"):
            name, way = step.attributes.get("id", ""), step.attributes.get("direction", "NONE").upper()
            way = _OPPOSITE.get(way, way) if back else way
            made.append(self._named(step, name if way == "NONE" else f"{name}_{way}"))
        return tuple(reversed(made)) if back else tuple(made)

    def _join(self, zone: Zone, element: Element) -> None:
        if element.tag == "host_link":
            host = element.attributes.get("id", "")
            up, down = (self._named(element, element.attributes.get(way, "")) for way in ("up", "down"))
            zone.ups[host], zone.downs[host] = (up, *zone.backbone), (*zone.backbone, down)
            return
        source, destination = ends = tuple(element.attributes.get(way, "") for way in ("src", "dst"))
        names, gateways = ends, None
        if element.tag in ZONE_ROUTES:
            gateways = (element.attributes.get("gw_src", ""), element.attributes.get("gw_dst", ""))
            names += gateways
        if unknown := next((name for name in names if name not in self._zone_of), None):
            element.refuse(self.origin, f"no host, router or zone is named '{unknown}'; correct the name")
        step = Step(self._links_of(element, back=False), gateways)
        if not step.links:
            element.refuse(self.origin, "has no link; add one")
        if element.tag in BYPASSES:
            zone.bypasses[source, destination] = step
        elif source == destination:
            self.loopbacks[source] = step.links[0]
        elif zone.routing == "cluster":
            element.refuse(
                self.origin, "is a route in a zone of routing Cluster, which cannot be imported; use host_link"
            )
        else:
            zone.steps.setdefault(source, {})[destination] = step
            if element.attributes.get("symmetrical", "YES").upper() == "YES":
                turned = None if gateways is None else (gateways[1], gateways[0])
                zone.steps.setdefault(destination, {})[source] = Step(self._links_of(element, back=True), turned)


def _policy_of(link: Element) -> str:
    return link.attributes.get("sharing_policy", "SHARED")


def routes_of(
    platform: Element, origin: str, *, crosstraffic: bool, tcp_gamma: Decimal, envelope_bytes: Decimal
) -> Machine:
    """The routes between the hosts of `platform`; raises InputError for hosts that cannot be nodes of one platform.

    crosstraffic : a flow takes 5 % of its bandwidth on its way back as well, also of a link of both directions
    tcp_gamma    : window of a flow, in bytes, that bounds its bandwidth by 1 / (2 latency); 0: none
    envelope_bytes : what the latency that SMPI multiplies by its factors leaves out of a message, in bytes of a link
    """
    read = Map(platform, origin)
    hosts = tuple(read.hosts)
    if not hosts:
        raise InputError(f"{origin}: has neither a cluster nor a host in a zone; a platform needs one of them")
    loopbacks = [read.loopbacks[host]._replace(name="") if host in read.loopbacks else None for host in hosts]
    loopback = max(loopbacks, key=loopbacks.count)
    ways = {pair: read.between(*pair) for pair in permutations(hosts, 2)}
    for (a, b), links in ways.items():
        if not 0 < len(set(links)) == len(links):
            raise InputError(f"{origin}: the route from '{a}' to '{b}' has no link, or one twice; correct it")
    back = {pair: ways[pair[::-1]] if crosstraffic else () for pair in ways}
    sometimes = {link for pair, links in ways.items() for link in links if link not in back[pair]}
    places = {link: at for at, link in enumerate(dict.fromkeys(chain.from_iterable(ways.values())))}
    shared = (WIDE_BPS if x.pipe else x.bandwidth_Bps / (1 + _BACK * (x not in sometimes)) for x in places)
    made = [(link.name, width, link.latency_s) for link, width in zip(places, shared, strict=True)]
    rows = []
    for number, (pair, links) in enumerate(ways.items()):
        row = [*map(hosts.index, pair), *(places[link] for link in links)]
        shared_Bps = min(made[place][1] for place in row[2:])
        latency_s = sum(link.latency_s for link in links)
        alone = [link.bandwidth_Bps / (1 + _BACK * (link in back[pair] and not link.pipe)) for link in links]
        window_Bps = tcp_gamma / (2 * latency_s) if tcp_gamma and latency_s else WIDE_BPS
        alone_Bps = min(window_Bps, *alone)
        envelope_s = envelope_bytes / alone_Bps
        if alone_Bps < shared_Bps or envelope_s > _NOTICED * latency_s:
            row.append(len(made))
            made.append((f"{FLOW}{number}", alone_Bps if alone_Bps < shared_Bps else WIDE_BPS, envelope_s))
        rows.append(tuple(row))
    names = ", ".join(hosts) if len(hosts) <= _NAMED else f"{hosts[0]} to {hosts[-1]}, in the order of the file"
    notes = [f"hosts: their names are left out; nodes 0 to {len(hosts) - 1} are {names}."]
    if others := [host for host, link in zip(hosts, loopbacks, strict=True) if link != loopback]:
        notes.append(f"loopback: inside {', '.join(others)} messages take as long as inside the other hosts.")
    if any(name.startswith(FLOW) and width < WIDE_BPS for name, width, _ in made):
        notes.append(
            "FATPIPE, network/TCP-gamma, network/crosstraffic: what one message can have at most, messages at once "
            "between the same two hosts share."
        )
    return Machine(
        name=next((zone.attributes.get("id", "") for zone in platform.all(*_ZONES)), "") or "platform",
        numbers=tuple(range(len(hosts))),
        cores=max(cores_of(element, origin) for element in read.hosts.values()),
        hosts=read.hosts,
        kind="routes",
        link_Bps=max((width for _, width, _ in made if width < WIDE_BPS), default=Decimal(10**10)),
        link_latency_s=Decimal(0),
        loopback_Bps=None if loopback is None else loopback.bandwidth_Bps,
        loopback_latency_s=Decimal(0) if loopback is None else loopback.latency_s,
        links=tuple(made),
        routes=tuple(rows),
        notes=tuple(notes),
    )
