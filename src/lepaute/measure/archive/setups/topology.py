"""The topology of a node as hwloc's XML (lstopo) tells it: objects inside each other, caches, processors of threads."""

from collections.abc import Callable
from dataclasses import dataclass
from xml.parsers import expat

#: hwloc nests about a dozen deep.
_MAX_DEPTH = 100


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


def data_caches(text: str, thread: int) -> tuple[Cache, ...]:
    """The caches on the way from a hardware thread (number of the system) to memory, the nearest first.

    Those for instructions alone are left out. Nothing where the text has no sizes, as on some virtual machines.
    """
    outside: list[Object] = []

    def seen(each: Object, around: list[Object]) -> None:
        if each.kind != "PU":
            return
        for outer in around:
            outer.threads += 1
        if each.attributes.get("os_index") == str(thread):
            outside.extend(around)

    if not walk(text, seen):
        return ()
    caches = []
    for outer in reversed(outside):
        about = outer.attributes
        level, size = about.get("depth", ""), about.get("cache_size", "")
        of_data = outer.kind.endswith("Cache") and about.get("cache_type") != "2"
        if of_data and whole(level) and whole(size) and int(size):
            caches.append(Cache(int(level), int(size), outer.threads))
    return tuple(caches)


def packages_of_threads(text: str) -> dict[int, int]:
    """Hardware thread (number of the system) -> its package, the processor; none where the text is no such document."""
    package_of: dict[int, int] = {}

    def seen(each: Object, around: list[Object]) -> None:
        if each.kind != "PU":
            return
        packages = [outer.attributes.get("os_index", "") for outer in around if outer.kind == "Package"]
        thread = each.attributes.get("os_index", "")
        if packages and whole(packages[-1]) and whole(thread):
            package_of[int(thread)] = int(packages[-1])

    return package_of if walk(text, seen) else {}


def whole(digits: str) -> bool:
    """Whether a text is a whole number of 64 bits."""
    return digits.isascii() and digits.isdigit() and 0 < len(digits) < 19


def walk(text: str, seen: "Callable[[Object, list[Object]], None]") -> bool:
    """Tells each object of a document and those around it, the outermost first; whether it was one to its end."""
    around: list[Object] = []

    def opened(name: str, attributes: dict[str, str]) -> None:
        if len(around) >= _MAX_DEPTH:
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
