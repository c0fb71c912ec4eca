"""The topology of a node as hwloc's XML (lstopo) tells it: how many of each, how large, how threads are numbered."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from xml.parsers import expat

from lepaute.archive.setups.facts import HARDWARE, Fact

#: hwloc nests about a dozen deep.
_MOST_DEPTH = 100
_SIZES = {"cache_size": "KiB", "local_memory": "GiB"}
#: Devices stand in lspci's list, and what the system makes of them is not hardware.
_LEFT_OUT = frozenset({"PCIDev", "OSDev", "Bridge", "Misc", "Group"})


class _Refused(Exception):
    """The document declares entities, or nests deeper than any topology."""


@dataclass(slots=True)
class Object:
    """An element of the document; kind: "" unless it is a part of the machine; threads: hardware threads inside."""

    kind: str
    attributes: dict[str, str]
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache that holds data, as one hardware thread has it; threads: how many share it."""

    level: int
    size_bytes: int
    threads: int


def lstopo(text: str) -> list[Fact]:
    """Facts of an XML document of hwloc; none where it is no such document."""
    count: Counter[str] = Counter()
    threads: list[str] = []

    def seen(each: Object, _around: list[Object]) -> None:
        if each.kind in _LEFT_OUT:
            return
        if each.kind == "PU":
            threads.append(each.attributes.get("os_index", "?"))
        count[each.kind + _size(each.attributes)] += 1

    if not walk(text, seen):
        return []
    parts = frozenset(f"{number} {kind}" for kind, number in count.items())
    facts = [Fact(HARDWARE, "topology", parts)] if parts else []
    if threads:
        facts.append(Fact(HARDWARE, "numbering of hardware threads along the topology", " ".join(threads)))
    return facts


def data_caches(text: str, thread: int) -> tuple[Cache, ...]:
    """The caches on the way from a hardware thread (number of the system) to memory, the nearest first.

    Those for instructions alone are left out. Nothing where the text is no document of hwloc, has no such thread, or
    tells no sizes, as some virtual machines do not.
    """
    mine: list[Object] = []

    def seen(each: Object, around: list[Object]) -> None:
        if each.kind != "PU":
            return
        for outer in around:
            outer.threads += 1
        if each.attributes.get("os_index") == str(thread):
            mine.extend(around)

    if not walk(text, seen):
        return ()
    caches = []
    for outer in reversed(mine):
        about = outer.attributes
        level, size = about.get("depth", ""), about.get("cache_size", "")
        of_data = outer.kind.endswith("Cache") and about.get("cache_type") != "2"
        if of_data and _whole(level) and _whole(size) and int(size):
            caches.append(Cache(int(level), int(size), outer.threads))
    return tuple(caches)


def packages_of_threads(text: str) -> dict[int, int]:
    """Hardware thread (number of the system) -> its package, the processor; none where the text is no such document."""
    found: dict[int, int] = {}

    def seen(each: Object, around: list[Object]) -> None:
        if each.kind != "PU":
            return
        packages = [outer.attributes.get("os_index", "") for outer in around if outer.kind == "Package"]
        thread = each.attributes.get("os_index", "")
        if packages and _whole(packages[-1]) and _whole(thread):
            found[int(thread)] = int(packages[-1])

    return found if walk(text, seen) else {}


def _whole(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and 0 < len(digits) < 19


def walk(text: str, seen: "Callable[[Object, list[Object]], None]") -> bool:
    """Tells each object of a document and those around it, the outermost first; whether it was one to its end."""
    around: list[Object] = []

    def opened(name: str, attributes: dict[str, str]) -> None:
        if len(around) >= _MOST_DEPTH:
            raise _Refused
        each = Object(attributes.get("type", "") if name == "object" else "", attributes)
        if name == "object":
            seen(each, around)
        around.append(each)

    def closed(_name: str) -> None:
        around.pop()

    def refuse(*_declared: object) -> None:
        raise _Refused

    # The text is UTF-8 by now, whatever the document declares: no codec of its choice is looked up.
    parser = expat.ParserCreate("UTF-8")
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    # An entity of entities takes gigabytes from a few lines; hwloc declares none.
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode(errors="replace"), True)
    except (expat.ExpatError, ValueError, _Refused):
        return False
    return True


def _size(attributes: dict[str, str]) -> str:
    for name, unit in _SIZES.items():
        digits = attributes.get(name, "")
        if _whole(digits) and int(digits):
            # Memory of a NUMA node in whole GiB: the kernel's own share differs between boots.
            divisor = 1024 if unit == "KiB" else 1024**3
            return f" ({int(digits) / divisor:.0f} {unit})"
    return ""
