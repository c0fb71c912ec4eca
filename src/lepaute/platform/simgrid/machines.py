"""The hosts of a SimGrid platform and how they are joined: a cluster element, or the links and routes of a switch."""

import re
from dataclasses import dataclass, replace
from decimal import Decimal

from lepaute.errors import InputError
from lepaute.kit.quantities import MOST_NUMBERS
from lepaute.platform.simgrid.quantities import bandwidth_Bps, numbers, time_s, whole_number
from lepaute.platform.simgrid.reading import Element

_KINDS = {"FLAT": "switch", "FAT_TREE": "fat-tree", "DRAGONFLY": "dragonfly", "TORUS": "torus"}


@dataclass(frozen=True, slots=True)
class Machine:
    """What a file says of its hosts and links; `backbone_latency_s` counts once a route, `link_latency_s` once a link.

    names : prefix and number of each host;  loopback_* : None where the file has no loopback link
    notes : what of the file this does not hold, a sentence each
    """

    name: str
    numbers: tuple[int, ...]
    cores: int
    kind: str
    parameters: str | None
    shared: bool
    link_Bps: Decimal  # noqa: N815 - the unit
    link_latency_s: Decimal
    backbone_latency_s: Decimal
    loopback_Bps: Decimal | None  # noqa: N815 - the unit
    loopback_latency_s: Decimal
    node_limit_Bps: float | None  # noqa: N815 - the unit
    switch_limit_Bps: float | None  # noqa: N815 - the unit
    notes: tuple[str, ...] = ()


def machine_of(platform: Element, origin: str) -> Machine:
    """The hosts of the file with root element `platform`; clusters or cabinets that are alike are one machine.

    Raises InputError for none, for clusters that are not alike, and for routes that are not those of one switch.
    """
    clusters = list(platform.all("cluster", "cabinet"))
    hosts = list(platform.all("host"))
    if clusters and hosts:
        raise InputError(
            f"{origin}:{hosts[0].line}: host '{hosts[0].attributes.get('id', '')}' stands beside a cluster; a platform "
            "has only one kind of node. Keep the cluster alone in the file"
        )
    if clusters:
        return _of_clusters(platform, clusters, origin)
    if hosts:
        return _of_hosts(platform, hosts, origin)
    raise InputError(f"{origin}: has neither a cluster nor a host; a platform needs one of them")


def mesh_of(platform: Element, origin: str) -> Machine:
    """The hosts of a file of ours that has every route; its topology stands in a property.

    Raises InputError where the file was changed so that hosts or the links of their latencies are missing.
    """
    hosts = list(platform.all("host"))
    links = {link.attributes.get("id", ""): link for link in platform.all("link")}
    ids = [host.attributes.get("id", "") for host in hosts]
    matches = [re.fullmatch(r"(.*?)([0-9]{1,9})", name) for name in ids]
    if not hosts or not all(matches) or f"{ids[0]}_latency" not in links:
        raise InputError(f"{origin}: lepaute wrote this topology, but its hosts or links were changed; export it again")
    loopback = links.get(f"{ids[0]}_loopback")
    loopback_Bps, loopback_latency_s = (None, Decimal(0)) if loopback is None else _values(loopback, origin)
    return Machine(
        name="platform",
        numbers=tuple(int(match[2]) for match in matches if match),
        cores=whole_number(hosts[0].attributes.get("core", "1"), _Reader(hosts[0], origin).where("core")),
        kind="graph",
        parameters=None,
        shared=False,
        link_Bps=Decimal(1),
        link_latency_s=_values(links[f"{ids[0]}_latency"], origin)[1],
        backbone_latency_s=Decimal(0),
        loopback_Bps=loopback_Bps,
        loopback_latency_s=loopback_latency_s,
        node_limit_Bps=None,
        switch_limit_Bps=None,
    )


def _of_clusters(platform: Element, clusters: list[Element], origin: str) -> Machine:
    """One machine of them all: nodes of several clusters are around one switch, whatever joins the clusters."""
    machines: list[Machine] = []
    for element in clusters:
        machines.append(_of_cluster(element, origin))
        if sum(len(each.numbers) for each in machines) > MOST_NUMBERS:
            raise InputError(f"{origin}:{element.line}: has more than {MOST_NUMBERS} hosts up to here; import fewer")
    first = machines[0]
    for element, machine in zip(clusters[1:], machines[1:], strict=True):
        alike = replace(machine, name=first.name, numbers=first.numbers, notes=first.notes) == first
        if (
            first.kind != "switch"
            or not alike
            or element.attributes.get("speed") != clusters[0].attributes.get("speed")
        ):
            raise InputError(
                f"{origin}:{element.line}: is a second {element.tag}, '{element.attributes.get('id', '')}', "
                + ("not like the first" if first.kind == "switch" else f"where each is a {first.kind} of its own")
                + "; a platform has only one kind of node. Keep one cluster in the file"
            )
    if all(element.tag == "cabinet" for element in clusters):  # their switch is the zone's
        backbones = [_values(_as_link(each), origin) for each in platform.all("backbone")]
        first = replace(
            first,
            backbone_latency_s=sum((latency for _, latency in backbones), Decimal(0)),
            switch_limit_Bps=min((float(width) for width, _ in backbones), default=None),
        )
    if len(machines) == 1:
        return first
    names = ", ".join(element.attributes.get("id", "") for element in clusters)
    notes = (*first.notes, f"{clusters[0].tag}s {names}: alike, and taken as one; all nodes are around one switch.")
    if first.switch_limit_Bps and clusters[0].tag == "cluster":
        notes += ("backbone: that of each cluster limits only its own nodes, and is left out.",)
        first = replace(first, switch_limit_Bps=None)
    return replace(first, numbers=tuple(number for each in machines for number in each.numbers), notes=notes)


def _of_cluster(element: Element, origin: str) -> Machine:
    at = _Reader(element, origin)
    kind = _KINDS.get(element.attributes.get("topology", "FLAT"))
    if kind is None:
        raise InputError(f"{at.where('topology')}; it must be one of {', '.join(_KINDS)}")
    policy = element.attributes.get("sharing_policy", "SPLITDUPLEX")
    notes = _policy_notes(policy, "cluster")
    backbone = element.attributes.get("bb_sharing_policy", "SHARED") == "SHARED"
    node_limit, switch_limit = at.optional_Bps("limiter_link"), at.optional_Bps("bb_bw")
    if element.attributes.get("suffix"):
        notes += (f"suffix '{element.attributes['suffix']}': hosts are numbered, and have no other name.",)
    return Machine(
        name=element.attributes.get("id") or "platform",
        numbers=numbers(at.text("radical"), at.where("radical")),
        cores=whole_number(element.attributes.get("core", "1"), at.where("core")),
        kind=kind,
        parameters=None if kind == "switch" else re.sub(r"\s", "", at.text("topo_parameters")),
        shared=policy == "SHARED",
        link_Bps=bandwidth_Bps(at.text("bw"), at.where("bw")),
        link_latency_s=time_s(at.text("lat"), at.where("lat")),
        backbone_latency_s=at.time_or_0("bb_lat"),
        loopback_Bps=at.optional_decimal_Bps("loopback_bw"),
        loopback_latency_s=at.time_or_0("loopback_lat"),
        node_limit_Bps=node_limit,
        # in a cluster of several switches, the limit of nodes holds for switches too
        switch_limit_Bps=node_limit if kind in ("fat-tree", "dragonfly") else switch_limit if backbone else None,
        notes=notes,
    )


def _of_hosts(platform: Element, hosts: list[Element], origin: str) -> Machine:
    """Hosts that one switch joins, each by a link or a pair of links of its own."""
    links = {link.attributes.get("id", ""): link for link in platform.all("link")}
    host_links, between, loopback = _own_links(platform, hosts, links, origin)
    notes: tuple[str, ...] = ()
    first_up, first_down = host_links[hosts[0].attributes.get("id", "")]
    if len({(_values(up, origin), _values(down, origin)) for up, down in host_links.values()}) > 1:
        notes += ("links: all nodes have the link of the first; in the file they differ.",)
    up_Bps, up_latency = _values(first_up, origin)
    down_Bps, down_latency = _values(first_down, origin)
    if up_Bps != down_Bps:
        notes += ("links: both ways have the bandwidth of the way up.",)
    ids = [host.attributes.get("id", "") for host in hosts]
    matches = [re.fullmatch(r"(.*?)([0-9]{1,9})", name) for name in ids]
    numbered = all(matches) and len({match[1] for match in matches if match}) == 1
    cores = [whole_number(h.attributes.get("core", "1"), _Reader(h, origin).where("core")) for h in hosts]
    if len(set(cores)) > 1:
        raise InputError(f"{origin}:{hosts[0].line}: hosts have different numbers of cores; all nodes must be alike")
    if not numbered:
        notes += ("hosts: their names are left out; nodes have numbers from 0 in the order of the file.",)
    prefix = matches[0][1] if matches[0] and numbered else ""
    policy = first_up.attributes.get("sharing_policy", "SHARED")
    backbones = [_values(link, origin) for link in between]
    loop = None if loopback is None else _values(loopback, origin)
    return Machine(
        name=prefix.strip(" -._") or "platform",
        numbers=tuple(int(match[2]) for match in matches if match) if numbered else tuple(range(len(hosts))),
        cores=cores[0],
        kind="switch",
        parameters=None,
        shared=first_up is first_down and policy == "SHARED",
        link_Bps=up_Bps,
        link_latency_s=(up_latency + down_latency) / 2,
        backbone_latency_s=sum((latency for _, latency in backbones), Decimal(0)),
        loopback_Bps=None if loop is None else loop[0],
        loopback_latency_s=Decimal(0) if loop is None else loop[1],
        node_limit_Bps=None,
        switch_limit_Bps=min((float(width) for width, _ in backbones), default=None),
        notes=notes,
    )


def _own_links(
    platform: Element, hosts: list[Element], links: dict[str, Element], origin: str
) -> tuple[dict[str, tuple[Element, Element]], list[Element], Element | None]:
    """The links (up, down) of each host, those that all routes share, and a loopback link."""

    def link(name: str, user: Element) -> Element:
        element = links.get(name) or links.get(re.sub("_(UP|DOWN)$", "", name))
        if element is None:
            raise InputError(f"{origin}:{user.line}: link '{name}' is not defined; define it, or correct the name")
        return element

    routes: dict[tuple[str, str], list[str]] = {}
    loopback = None
    for route in platform.all("route"):
        ends = (route.attributes.get("src", ""), route.attributes.get("dst", ""))
        names = [e.attributes.get("id", "") for e in route.all("link_ctn")]
        if ends[0] == ends[1]:
            loopback = link(names[0], route) if names else loopback
            continue
        routes[ends] = names
        if route.attributes.get("symmetrical", "YES").upper() == "YES":
            routes.setdefault(ends[::-1], names[::-1])
    host_links: dict[str, tuple[Element, Element]] = {}
    for entry in platform.all("host_link"):
        up, down = (link(entry.attributes.get(way, ""), entry) for way in ("up", "down"))
        host_links[entry.attributes.get("id", "")] = (up, down)
    ids = [host.attributes.get("id", "") for host in hosts]
    if host_links:
        if missing := next((name for name in ids if name not in host_links), None):
            raise InputError(f"{origin}: host '{missing}' has no host_link; give it one")
        between = [_as_link(e) for e in platform.all("backbone")]
        return host_links, between, loopback
    return _from_routes(ids, routes, links, loopback, origin)


def _from_routes(
    ids: list[str],
    routes: dict[tuple[str, str], list[str]],
    links: dict[str, Element],
    loopback: Element | None,
    origin: str,
) -> tuple[dict[str, tuple[Element, Element]], list[Element], Element | None]:
    """Of routes such as a's link, a backbone, b's link: each host's own link, and the backbone."""
    common = set.intersection(*(set(names) for names in routes.values())) if len(routes) > 2 else set()
    ups_of: dict[str, set[tuple[str, ...]]] = {}
    downs_of: dict[str, set[tuple[str, ...]]] = {}
    for (a, b), names in routes.items():
        others = tuple(x for x in names if x not in common)
        ups_of.setdefault(a, set()).add(others[:1])
        downs_of.setdefault(b, set()).add(others[-1:])
    host_links: dict[str, tuple[Element, Element]] = {}
    for name in ids:
        ups, downs = ups_of.get(name, set()), downs_of.get(name, set())
        if len(ups) != 1 or len(downs) != 1 or () in ups | downs:
            raise InputError(
                f"{origin}: the routes of host '{name}' do not all begin (and end) with one link of its own; only "
                "hosts around one switch are imported, and clusters"
            )
        up, down = ups.pop()[0], downs.pop()[0]
        if up not in links or down not in links:
            raise InputError(f"{origin}: link '{up if up not in links else down}' is not defined; define it")
        host_links[name] = (links[up], links[down])
    expected = 2 + len(common)
    for (a, b), names in routes.items():
        if len(names) != expected:
            raise InputError(
                f"{origin}: the route from '{a}' to '{b}' has {len(names)} links where one switch makes {expected}; "
                "only clusters and hosts around a single switch can be imported"
            )
    return host_links, [links[name] for name in sorted(common) if name in links], loopback


def _as_link(backbone: Element) -> Element:
    return Element("link", backbone.attributes, backbone.line)


def _values(link: Element, origin: str) -> tuple[Decimal, Decimal]:
    at = _Reader(link, origin)
    return bandwidth_Bps(at.text("bandwidth"), at.where("bandwidth")), at.time_or_0("latency")


def _policy_notes(policy: str, what: str) -> tuple[str, ...]:
    if policy in ("SHARED", "SPLITDUPLEX", "FULLDUPLEX"):
        return ()
    return (f"sharing_policy {policy} of the {what}: its links are shared by the flows of each way.",)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The attributes of an element as values, and where they stand."""

    element: Element
    origin: str

    def where(self, name: str) -> str:
        value = self.element.attributes.get("id", "")
        return f"{self.origin}:{self.element.line}: {name} of {self.element.tag} '{value}'"

    def text(self, name: str) -> str:
        if name not in self.element.attributes:
            raise InputError(f"{self.where(name)} is missing; add it")
        return self.element.attributes[name]

    def time_or_0(self, name: str) -> Decimal:
        text = self.element.attributes.get(name, "")
        return time_s(text, self.where(name)) if text else Decimal(0)

    def optional_decimal_Bps(self, name: str) -> Decimal | None:  # noqa: N802 - the unit
        text = self.element.attributes.get(name, "")
        return (bandwidth_Bps(text, self.where(name)) or None) if text else None

    def optional_Bps(self, name: str) -> float | None:  # noqa: N802 - the unit
        value = self.optional_decimal_Bps(name)
        return None if value is None else float(value)
