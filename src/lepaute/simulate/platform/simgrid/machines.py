"""SimGrid's XML, read safely, and the machine in it: a cluster element, or hosts with the links and routes of a switch.

No entity is expanded, nothing outside the text is read, size and depth are bounded.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Never
from xml.parsers import expat

from lepaute.errors import InputError
from lepaute.kit.quantities import count_of, ranges_of

LARGEST_TEXT_BYTES = 64 * 2**20
_DEEPEST = 32
_MAX_ELEMENTS = 1_000_000
_LONGEST_NAME = 200
#: Encodings that are read: of others expat asks Python for a table, which for many of them it cannot have.
_ENCODINGS = ("utf-8", "us-ascii", "ascii", "iso-8859-1", "latin-1")
#: SimGrid reads a file whose declaration is not at its very beginning; expat does not.
_LATE_DECLARATION = re.compile(rb"(?P<before>(?:\xef\xbb\xbf)?\s+)(?P<declaration><\?xml\s[^>]{0,200}\?>)")
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)["']""")


@dataclass(slots=True)
class Element:
    """An element: its tag and attributes, the elements inside, and the line (from 1) where it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    inside: list["Element"] = field(default_factory=list)

    def everything(self) -> Iterator["Element"]:
        """This element and all inside it, at any depth, in the order of the text."""
        yield self
        for element in self.inside:
            yield from element.everything()

    def all(self, *tags: str) -> Iterator["Element"]:
        """The elements with one of `tags` inside this one, at any depth, in the order of the text."""
        return (element for element in self.everything() if element.tag in tags and element is not self)

    def properties(self) -> dict[str, str]:
        """Values of the prop elements directly inside, by id."""
        return {e.attributes.get("id", ""): e.attributes.get("value", "") for e in self.inside if e.tag == "prop"}

    def refuse(self, origin: str, problem: str) -> Never:
        name = self.attributes.get("id") or self.attributes.get("src", "")
        raise InputError(f"{origin}:{self.line}: {self.tag} '{name}': {problem}")


def parse(text: bytes, origin: str) -> Element:
    """The root element of the XML `text`; `origin` is its name in messages.

    Raises InputError, with the line, for what is not XML, declares entities or an inner DTD, is too large or deep, or
    is in another encoding than UTF-8, ASCII or Latin-1.
    """
    if len(text) > LARGEST_TEXT_BYTES:
        raise InputError(f"{origin}: has {len(text)} bytes; at most {LARGEST_TEXT_BYTES} are read")
    parser = expat.ParserCreate(_encoding(text, origin))
    root = Element("", {}, 0)
    open_elements = [root]
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _MAX_ELEMENTS:
            raise InputError(f"{origin}:{parser.CurrentLineNumber}: has more than {_MAX_ELEMENTS} elements")
        if len(open_elements) > _DEEPEST:
            raise InputError(f"{origin}:{parser.CurrentLineNumber}: elements are nested more than {_DEEPEST} deep")
        if any(len(attributes.get(name, "")) > _LONGEST_NAME for name in ("id", "src", "dst")):
            raise InputError(f"{origin}:{parser.CurrentLineNumber}: a name has more than {_LONGEST_NAME} characters")
        element = Element(tag, attributes, parser.CurrentLineNumber)
        open_elements[-1].inside.append(element)
        open_elements.append(element)

    def refuse(*_declared: object) -> Never:
        raise InputError(
            f"{origin}:{parser.CurrentLineNumber}: declares an internal DTD or entities, which are not supported; "
            "remove the declarations"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: open_elements.pop()
    parser.StartDoctypeDeclHandler = lambda _name, _system, _public, has_inner: refuse() if has_inner else None
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    if late := _LATE_DECLARATION.match(text):  # lines keep their numbers, and the encoding is known
        text = late["before"] + b"\n" * late["declaration"].count(b"\n") + text[late.end() :]
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        problem = expat.errors.messages.get(error.code, "damaged")
        raise InputError(f"{origin}:{error.lineno}: is not XML ({problem}); correct the line") from None
    return root.inside[0]


def _encoding(text: bytes, origin: str) -> str:
    """The encoding that the parser is told, whatever the text declares; raises InputError for one that is not read."""
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:4]:
        raise InputError(f"{origin}: is in UTF-16 or UTF-32; convert it to UTF-8")
    declared = _DECLARED.match(text.removeprefix(b"\xef\xbb\xbf"))
    name = declared[1].decode("ascii", errors="replace").strip().lower() if declared else "utf-8"
    if name not in _ENCODINGS:
        raise InputError(f"{origin}:1: declares the encoding {name[:40]!r}; convert it to UTF-8")
    return "iso-8859-1" if name in ("iso-8859-1", "latin-1") else "utf-8"


_POWERS_OF_TEN = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SECONDS = {
    "w": Decimal(604800),
    "d": Decimal(86400),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
    "ps": Decimal("1e-12"),
}
#: Decimal's exponents are bounded, and the time that it takes grows with the digits.
_NUMBER = r"\s*([+-]?(?:[0-9]{1,60}\.?[0-9]{0,60}|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,4})?)\s*"


def bandwidth_Bps(text: str, where: str) -> Decimal:  # noqa: N802 - the unit
    """Bytes a second of a text such as 10Gbps, 1.25GBps or 125000000; `where` begins the message of a refusal."""
    number, unit = decimal_of(text, where, "a bandwidth such as 10Gbps or 1.25GBps")
    match = re.fullmatch(r"(?:([kKMGTPE]?|[KMGTPE]i)([bB])ps)?", unit)
    if match is None:
        raise InputError(f"{where} is {text[:80]!r}; a bandwidth such as 10Gbps or 1.25GBps is expected")
    prefix, letter = match[1] or "", match[2] or "B"
    scale = Decimal(2) ** _POWERS_OF_TWO[prefix] if prefix.endswith("i") else Decimal(10) ** _POWERS_OF_TEN[prefix]
    return number * scale / (8 if letter == "b" else 1)


def time_s(text: str, where: str) -> Decimal:
    """Seconds of a text such as 24us or 1E-6; `where` begins the message of a refusal."""
    number, unit = decimal_of(text, where, "a time such as 24us")
    if unit and unit not in _SECONDS:
        raise InputError(f"{where} is {text[:80]!r}; a time such as 24us is expected")
    return number * _SECONDS[unit or "s"]


def numbers(text: str, where: str) -> tuple[int, ...]:
    """The numbers of a radical such as 0-3,7, as they are written; `where` begins the message of a refusal."""
    return tuple(number for each in ranges_of(text, where) for number in each)


def whole_number(text: str, where: str) -> int:
    """The whole number >= 0 that `text` is; `where` begins the message of a refusal."""
    return count_of(text.strip(), where)


def decimal_of(text: str, where: str, expected: str) -> tuple[Decimal, str]:
    match = re.fullmatch(_NUMBER + r"([A-Za-z]*)\s*", text)
    try:
        number = Decimal(match[1]) if match else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if match is None or not number.is_finite() or number < 0 or not -400 < number.adjusted() < 200:
        raise InputError(f"{where} is {text[:80]!r}; {expected} is expected")
    return number, match[2]


_KINDS = {"FLAT": "switch", "FAT_TREE": "fat-tree", "DRAGONFLY": "dragonfly", "TORUS": "torus"}


@dataclass(frozen=True, slots=True)
class Machine:
    """Hosts and links of a file; `backbone_latency_s` counts once a route, `link_latency_s` once a link.

    names : prefix and number of each host;  loopback_* : None if the file has no loopback link
    hosts : elements by the names of hosts, where these may differ; cores : the most of any
    links, routes : of kind routes, name, bandwidth and latency; a row for each two hosts: from, to, places of links
    """

    name: str
    numbers: tuple[int, ...]
    cores: int
    kind: str
    link_Bps: Decimal  # noqa: N815 - the unit
    link_latency_s: Decimal
    parameters: str | None = None
    shared: bool = False
    backbone_latency_s: Decimal = Decimal(0)
    loopback_Bps: Decimal | None = None  # noqa: N815 - the unit
    loopback_latency_s: Decimal = Decimal(0)
    node_limit_Bps: Decimal | None = None  # noqa: N815 - the unit
    switch_limit_Bps: Decimal | None = None  # noqa: N815 - the unit
    links: tuple[tuple[str, Decimal, Decimal], ...] = ()
    routes: tuple[tuple[int, ...], ...] = ()
    notes: tuple[str, ...] = ()
    hosts: Mapping[str, Element] = field(default_factory=dict)


class NoSwitch(Exception):
    """Hosts are not around one switch, in a file that says so with host_link elements."""


def machine_of(platform: Element, origin: str) -> Machine:
    """The hosts of the file with root element `platform`: of its cluster, or around one switch.

    Raises NoSwitch for hosts that are not around one switch.
    """
    if cluster := next(platform.all("cluster"), None):
        return _of_cluster(cluster, origin)
    return _of_hosts(platform, list(platform.all("host")), origin)


def mesh_of(platform: Element, origin: str) -> Machine:
    """The hosts of a file of ours that has every route; its topology stands in a property.

    Raises InputError if the file was changed so that hosts or the links of their latencies are missing.
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
        cores=max(cores_of(host, origin) for host in hosts),
        kind="graph",
        link_Bps=Decimal(1),
        link_latency_s=_values(links[f"{ids[0]}_latency"], origin)[1],
        loopback_Bps=loopback_Bps,
        loopback_latency_s=loopback_latency_s,
    )


def _of_cluster(element: Element, origin: str) -> Machine:
    at = Reader(element, origin)
    topology = _KINDS.get(element.attributes.get("topology", "FLAT"))
    if topology is None:
        raise InputError(f"{at.where('topology')}; it must be one of {', '.join(_KINDS)}")
    policy = element.attributes.get("sharing_policy", "SPLITDUPLEX")
    notes: tuple[str, ...] = ()
    if policy not in ("SHARED", "SPLITDUPLEX", "FULLDUPLEX"):
        raise InputError(f"{at.where('sharing_policy')} is {policy[:40]!r}, which cannot be imported; SPLITDUPLEX can")
    node_limit, switch_limit = at.optional_Bps("limiter_link"), at.optional_Bps("bb_bw")
    if element.attributes.get("bb_sharing_policy") == "FATPIPE":
        if switch_limit is not None and switch_limit < bandwidth_Bps(at.text("bw"), at.where("bw")):
            raise NoSwitch
        switch_limit = None
    if element.attributes.get("suffix"):
        notes += (f"suffix '{element.attributes['suffix']}': hosts are numbered, and have no other name.",)
    return Machine(
        name=element.attributes.get("id") or "platform",
        numbers=numbers(at.text("radical"), at.where("radical")),
        cores=whole_number(element.attributes.get("core", "1"), at.where("core")),
        kind=topology,
        parameters=None if topology == "switch" else re.sub(r"\s", "", at.text("topo_parameters")),
        shared=policy == "SHARED",
        link_Bps=bandwidth_Bps(at.text("bw"), at.where("bw")),
        link_latency_s=time_s(at.text("lat"), at.where("lat")),
        backbone_latency_s=at.time_or_0("bb_lat"),
        loopback_Bps=at.optional_Bps("loopback_bw"),
        loopback_latency_s=at.time_or_0("loopback_lat"),
        node_limit_Bps=node_limit,
        # in a cluster of several switches, the limit of nodes holds for switches too
        switch_limit_Bps=node_limit if topology in ("fat-tree", "dragonfly") else switch_limit,
        notes=notes,
    )


def _of_hosts(platform: Element, hosts: list[Element], origin: str) -> Machine:
    """Hosts that one switch joins, each by a link or a pair of links of its own; raises NoSwitch for others."""
    links = {link.attributes.get("id", ""): link for link in platform.all("link")}
    ends = {entry.attributes.get("id", ""): entry for entry in platform.all("host_link")}
    ids = [host.attributes.get("id", "") for host in hosts]
    names = [
        re.sub("_(UP|DOWN)$", "", ends[x].attributes.get(way, "")) for x in ids if x in ends for way in ("up", "down")
    ]
    if len(names) < 2 * len(ids) or not ids or any(name not in links for name in names):
        raise NoSwitch
    pairs = [(links[up], links[down]) for up, down in zip(names[::2], names[1::2], strict=True)]
    routes = list(platform.all("route"))
    loops = [route for route in routes if route.attributes.get("src") == route.attributes.get("dst")]
    loopbacks = [links[name] for r in loops for e in r.all("link_ctn") if (name := e.attributes.get("id", "")) in links]
    first_up, first_down = pairs[0]
    alike = {
        (_values(up, origin), _values(down, origin), up.attributes.get("sharing_policy", "SHARED"), up is down)
        for up, down in pairs
    }
    up_Bps, up_latency = _values(first_up, origin)
    down_Bps, down_latency = _values(first_down, origin)
    policy = first_up.attributes.get("sharing_policy", "SHARED")
    backbones = [
        (*_values(e, origin), e.attributes.get("sharing_policy") == "FATPIPE") for e in platform.all("backbone")
    ]
    if (
        len(alike) > 1
        or up_Bps != down_Bps
        or policy == "FATPIPE"
        or any(is_pipe and width < up_Bps for width, _, is_pipe in backbones)
        or len({_values(link, origin) for link in loopbacks}) > 1
        or (routes and not len(loopbacks) == len(loops) == len(routes) == len(hosts))
    ):
        raise NoSwitch
    matches = [re.fullmatch(r"(.*?)([0-9]{1,9})", name) for name in ids]
    numbered = all(matches) and len({match[1] for match in matches if match}) == 1
    notes = (
        () if numbered else ("hosts: their names are left out; nodes have numbers from 0 in the order of the file.",)
    )
    loopback_Bps, loopback_latency_s = _values(loopbacks[0], origin) if loopbacks else (None, Decimal(0))
    return Machine(
        name=(matches[0][1] if matches[0] and numbered else "").strip(" -._") or "platform",
        numbers=tuple(int(match[2]) for match in matches if match) if numbered else tuple(range(len(hosts))),
        cores=max(cores_of(host, origin) for host in hosts),
        kind="switch",
        shared=first_up is first_down and policy == "SHARED",
        link_Bps=up_Bps,
        link_latency_s=(up_latency + down_latency) / 2,
        backbone_latency_s=sum((latency for _, latency, _ in backbones), Decimal(0)),
        loopback_Bps=loopback_Bps,
        loopback_latency_s=loopback_latency_s,
        switch_limit_Bps=min((width for width, _, is_pipe in backbones if not is_pipe), default=None),
        notes=notes,
        hosts=dict(zip(ids, hosts, strict=True)),
    )


def cores_of(host: Element, origin: str) -> int:
    return whole_number(host.attributes.get("core", "1"), Reader(host, origin).where("core"))


def _values(link: Element, origin: str) -> tuple[Decimal, Decimal]:
    at = Reader(link, origin)
    return bandwidth_Bps(at.text("bandwidth"), at.where("bandwidth")), at.time_or_0("latency")


@dataclass(frozen=True, slots=True)
class Reader:
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

    def optional_Bps(self, name: str) -> Decimal | None:  # noqa: N802 - the unit
        text = self.element.attributes.get(name, "")
        return (bandwidth_Bps(text, self.where(name)) or None) if text else None
