"""The topology of a node as hwloc's XML (lstopo) tells it: how many of each, how large, how threads are numbered."""

from collections import Counter
from xml.parsers import expat

from lepaute.archive.setups.facts import HARDWARE, Fact

#: hwloc nests about a dozen deep.
_MOST_DEPTH = 100
_SIZES = {"cache_size": "KiB", "local_memory": "GiB"}
#: Devices stand in lspci's list, and what the system makes of them is not hardware.
_LEFT_OUT = frozenset({"PCIDev", "OSDev", "Bridge", "Misc", "Group"})


class _Refused(Exception):
    """The document declares entities, or nests deeper than any topology."""


def lstopo(text: str) -> list[Fact]:
    """Facts of an XML document of hwloc; none where it is no such document."""
    count: Counter[str] = Counter()
    threads: list[str] = []
    depth = 0

    def opened(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_DEPTH:
            raise _Refused
        kind = attributes.get("type", "")
        if name != "object" or kind in _LEFT_OUT:
            return
        if kind == "PU":
            threads.append(attributes.get("os_index", "?"))
        count[kind + _size(attributes)] += 1

    def closed(_name: str) -> None:
        nonlocal depth
        depth -= 1

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
        return []
    parts = frozenset(f"{number} {kind}" for kind, number in count.items())
    facts = [Fact(HARDWARE, "topology", parts)] if parts else []
    if threads:
        facts.append(Fact(HARDWARE, "numbering of hardware threads along the topology", " ".join(threads)))
    return facts


def _size(attributes: dict[str, str]) -> str:
    for name, unit in _SIZES.items():
        digits = attributes.get(name, "")
        if digits.isascii() and digits.isdigit() and 0 < len(digits) < 19 and int(digits):
            # Memory of a NUMA node in whole GiB: the kernel's own share differs between boots.
            divisor = 1024 if unit == "KiB" else 1024**3
            return f" ({int(digits) / divisor:.0f} {unit})"
    return ""
