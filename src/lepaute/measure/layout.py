"""How the cores of a node lie: sockets, NUMA nodes, caches, hardware threads; and which of them compute at once."""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lepaute.errors import InputError
from lepaute.measure.archive.metadata import LayoutFacts
from lepaute.measure.archive.setups.topology import Object, walk
from lepaute.measure.node_agent.facts import layout_sources
from lepaute.measure.node_agent.system_files import SystemFiles

#: Environment variable of `lepaute calibrate` that makes a layout up, for tests: sockets x cores of each.
MADE_UP = "LEPAUTE_LAYOUT"
_MAX_CORES = 4096
#: Names of hwloc 2 and 1.
_SOCKETS = ("Package", "Socket")


@dataclass(frozen=True, slots=True)
class Core:
    """A physical core.

    number : 0, 1, ... among the cores that may be used, in hwloc's logical order, which is that in which `mpirun
             --map-by core` gives cores to ranks
    pu     : the hardware thread (the system's number) that its process is bound to: the first that may be used
    socket, numa, l3: numbers of the socket, NUMA node and last-level cache; without such a cache that of the socket
    smt_pus: all its hardware threads that may be used
    """

    number: int
    pu: int
    socket: int
    numa: int
    l3: int
    smt_pus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The cores of a node that may be used, by number; source: who told: hwloc, sysfs, or the variable MADE_UP."""

    cores: tuple[Core, ...]
    source: str

    @property
    def sockets(self) -> tuple[tuple[int, ...], ...]:
        numbers = dict.fromkeys(core.socket for core in self.cores)
        return tuple(tuple(core.number for core in self.cores if core.socket == socket) for socket in numbers)

    def pus(self, cores: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.cores[core].pu for core in cores)

    def active_beside(self, core: int, active: Collection[int]) -> int:
        """How many of the active cores are on the socket of this one, itself included."""
        return sum(self.cores[each].socket == self.cores[core].socket for each in active)

    def distance(self, first: int, second: int) -> str:
        """Nearest level that two cores share: same-l3, same-socket or other-socket."""
        one, other = self.cores[first], self.cores[second]
        if one.socket != other.socket:
            return "other-socket"
        return "same-l3" if one.l3 == other.l3 else "same-socket"

    @property
    def facts(self) -> LayoutFacts:
        numbers = [(core.pu, core.socket, core.numa, core.l3) for core in self.cores]
        return LayoutFacts(self.source, *zip(*numbers, strict=True))


def layout_of(sources: Mapping[str, Any], allowed: Collection[int], made_up: str | None = None) -> Layout:
    """The layout of the cores that may be used, from what the agent found on a node.

    sources: see `node_agent.facts.layout_sources`
    allowed: hardware threads that the affinity mask and the cpuset leave
    made_up: value of the variable MADE_UP, None if it is not set
    Raises InputError if that makes no sense.
    """
    if made_up is not None:
        return made_up_layout(made_up, sorted(allowed))
    xml = sources.get("lstopo")
    told = from_hwloc(xml, allowed) if isinstance(xml, str) else None
    return told or from_sysfs(sources.get("sysfs") or (), allowed)


def from_hwloc(xml: str, allowed: Collection[int]) -> Layout | None:
    """From the XML of lstopo; None if that is no such document, or does not have all the threads `allowed`."""
    found: list[_Thread] = []
    kept: list[Object] = []  # no two objects that are alive have one id

    def seen(each: Object, around: list[Object]) -> None:
        number = each.attributes.get("os_index", "")
        if each.kind != "PU" or not number.isdecimal() or int(number) not in allowed:
            return
        kept.extend(around)
        socket = _nearest(around, lambda outer: outer.kind in _SOCKETS)
        core = _nearest(around, lambda outer: outer.kind == "Core")
        l3 = _nearest(around, _is_l3)
        # hwloc 2 has a NUMA node beside the cores and names it in their nodeset, hwloc 1 has it around them.
        node = _nearest(around, lambda outer: outer.kind == "NUMANode")
        numa = id(node) if node is not None else _lowest_bit(each.attributes.get("nodeset", ""))
        thread = int(number)
        found.append(_Thread(thread, id(socket), numa, id(l3 or socket), id(core) if core is not None else -thread))

    if not walk(xml, seen) or {each.pu for each in found} != set(allowed):
        return None
    return Layout(_numbered(found), "hwloc")


def from_sysfs(places: Sequence[Mapping[str, Any]], allowed: Collection[int]) -> Layout:
    """From the kernel's numbers; a thread of which it tells nothing is a core of its own on socket 0.

    The order is hwloc's: sockets, NUMA nodes, caches and cores each by the lowest thread they have.
    """
    by_cpu = {int(place["cpu"]): place for place in places}
    found = []
    for thread in sorted(allowed):
        place = by_cpu.get(thread, {})
        package = place.get("package") or 0
        cache = place.get("cache") or [-1 - package]
        core = min(set(place.get("siblings") or ()) & set(allowed), default=thread)
        found.append(_Thread(thread, package, place.get("numa") or 0, min(cache), core))
    lowest: dict[tuple[int, int], int] = {}
    for each in found:
        for part in enumerate(each[1:]):
            lowest.setdefault(part, each.pu)
    found.sort(key=lambda each: [lowest[part] for part in enumerate(each[1:])])
    return Layout(_numbered(found), "sysfs")


def made_up_layout(text: str, pus: Sequence[int]) -> Layout:
    """`SxC`: S sockets of C cores, core c on the thread c modulo the number of those there are."""
    match = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,3})", text)
    count = int(match[1]) * int(match[2]) if match else 0
    if match is None or count > _MAX_CORES:
        raise InputError(
            f"{MADE_UP} is {text[:40]!r}; it makes up a layout for tests, sockets x cores of each such as 2x16 and at "
            f"most {_MAX_CORES} cores; unset it to measure the machine as it is"
        )
    each = int(match[2])
    cores = (
        Core(number, pus[number % len(pus)], number // each, number // each, number // each, (pus[number % len(pus)],))
        for number in range(count)
    )
    return Layout(tuple(cores), f"{MADE_UP}={text}")


class _Thread(NamedTuple):
    """A hardware thread, and what it is in, the largest part first: any numbers that are equal where the parts are."""

    pu: int
    socket: int
    numa: int
    l3: int
    core: int


def _numbered(threads: Sequence[_Thread]) -> tuple[Core, ...]:
    """The cores of threads in logical order; sockets, nodes and caches numbered in the order in which they occur."""
    by_core: dict[int, list[_Thread]] = {}
    for thread in threads:
        by_core.setdefault(thread.core, []).append(thread)
    numbers: tuple[dict[int, int], ...] = ({}, {}, {})
    cores = []
    for number, members in enumerate(by_core.values()):
        pu, *parts, _core = members[0]
        socket, numa, l3 = (known.setdefault(part, len(known)) for known, part in zip(numbers, parts, strict=True))
        cores.append(Core(number, pu, socket, numa, l3, tuple(member.pu for member in members)))
    return tuple(cores)


def _nearest(around: Sequence[Object], fits: Callable[[Object], bool]) -> Object | None:
    return next((outer for outer in reversed(around) if fits(outer)), None)


def _is_l3(each: Object) -> bool:
    return each.kind == "L3Cache" or (each.kind == "Cache" and each.attributes.get("depth") == "3")


def _lowest_bit(nodeset: str) -> int:
    """Lowest bit of a set as hwloc prints it, 32 bits a word and the highest first; 0 for an empty one."""
    try:
        words = [int(word, 16) if word.strip("0x") else 0 for word in nodeset.split(",")]
    except ValueError:
        return 0
    bits = 0
    for word in words:
        bits = bits << 32 | word
    return max((bits & -bits).bit_length() - 1, 0)


def layout_here() -> Layout:
    """Asks hwloc, or the kernel where it is not installed; raises InputError if the variable MADE_UP is wrong."""
    allowed = sorted(os.sched_getaffinity(0))
    return layout_of(layout_sources(SystemFiles("/"), allowed), allowed, os.environ.get(MADE_UP))


#: One process alone; one on each socket; as many as half of the cores of each socket; all that the node has room for.
ONE, ONE_A_SOCKET, HALF, ALL = "one", "one-a-socket", "half", "all"
#: With fewer cores on a socket, half of them is one or nearly all.
MIN_TO_HALVE = 4

#: The cores of each process.
Places = tuple[tuple[int, ...], ...]


def places(layout: Layout, threads: int) -> Places:
    """Where processes of that many threads fit: consecutive cores of a socket, of the node where a socket has too few.

    In the order of the cores; the last cores stay idle where they are too few for another process.
    """
    sockets: Sequence[Sequence[int]] = layout.sockets
    if all(len(socket) < threads for socket in sockets):
        sockets = [[core.number for core in layout.cores]]
    return tuple(
        tuple(socket[first : first + threads])
        for socket in sockets
        for first in range(0, len(socket) - threads + 1, threads)
    )


def loads(layout: Layout, threads: int = 1) -> tuple[str, ...]:
    """The loads to measure, from the least to the most.

    Between one process and all of them only with one thread each: memory and clock depend on the cores that compute.
    """
    if len(places(layout, threads)) == 1:
        return (ALL,)
    if threads > 1:
        return (ONE, ALL)
    sockets = layout.sockets
    between = [ONE_A_SOCKET] if 1 < len(sockets) < len(layout.cores) else []
    if any(len(socket) >= MIN_TO_HALVE for socket in sockets):
        between.append(HALF)
    return (ONE, *between, ALL)


def active(layout: Layout, load: str, threads: int, block: int, rng: np.random.Generator) -> Places:
    """The processes of a load in a block, in the order of their cores; which ones is drawn where it is not all.

    With load `one` consecutive blocks take different places, as long as there are any that had no turn.
    rng: one of the calibration's, the same state in each block for `one`
    """
    every = places(layout, threads)
    if load == ALL:
        return every
    if load == ONE:
        return (every[int(rng.permutation(len(every))[block % len(every)])],)
    chosen: list[int] = []
    for socket in layout.sockets:
        count = 1 if load == ONE_A_SOCKET else max(len(socket) // 2, 1)
        chosen += sorted(int(core) for core in rng.choice(socket, count, replace=False))
    return tuple((core,) for core in chosen)
