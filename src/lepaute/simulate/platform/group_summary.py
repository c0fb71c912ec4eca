"""Groups of nodes in words, and what they have together."""

from collections.abc import Iterator
from math import fsum

from lepaute.kit.text import counted, quantity, seconds, significant, size_text
from lepaute.simulate.platform.data_sheet import dgemm_rate
from lepaute.simulate.platform.nodes import NodeGroup, first_of
from lepaute.simulate.platform.schema import Platform

#: Groups that are described on a screen.
_SHOWN = 6


def group_facts(platform: Platform) -> Iterator[tuple[str, str]]:
    """Name and text of each group, of some of many: its nodes, cores, memory, rate of dgemm, link and power."""
    groups = platform.groups or ()
    for group, part in list(zip(groups, platform.parts, strict=False))[:_SHOWN]:
        yield f"group {group.name}", ", ".join(_details(group, part, platform))
    if len(groups) > _SHOWN:
        yield "more groups", f"{len(groups) - _SHOWN}, in platform show --yaml"


def sizes_and_rates(platform: Platform) -> str:
    """2 nodes of 8 cores at 44.7 Gflop/s a core in dgemm, 2 of 4 cores at 22.4"""
    texts: list[str] = []
    for part in platform.parts[:_SHOWN]:
        rate = dgemm_rate(part)
        nodes = str(part.nodes.count) if texts else counted(part.nodes.count, "node")
        unit = "" if texts else " Gflop/s a core in dgemm"
        speed = "" if rate is None else f" at {significant(rate / 1e9)}{unit}"
        texts.append(f"{nodes} of {counted(part.nodes.cores, 'core')}{speed}")
    return ", ".join(texts) + (" and others" if len(platform.parts) > _SHOWN else "")


def mean_dgemm_rate(platform: Platform) -> float | None:
    """Flop/s of a core in dgemm, as `dgemm_rate`, on a node as fast as the mean of all; None where it is not known."""
    rates = [(part.nodes.count, dgemm_rate(part)) for part in platform.parts]
    if len(rates) == 1:
        return rates[0][1]
    known = [count * rate for count, rate in rates if rate is not None]
    return fsum(known) / platform.nodes.count if len(known) == len(rates) else None


def core_memory_Bps(platform: Platform) -> float | None:  # noqa: N802 - the unit
    """A core's share of the memory bandwidth of its node; None where it is not known, or not the same everywhere."""
    shares = {
        None if part.nodes.memory_bandwidth_Bps is None else part.nodes.memory_bandwidth_Bps / part.nodes.cores
        for part in platform.parts
    }
    return shares.pop() if len(shares) == 1 else None


def _details(group: NodeGroup, part: Platform, platform: Platform) -> Iterator[str]:
    nodes, first = part.nodes, first_of(group, platform)
    last = f" to {group.name}-{first + group.nodes - 1}" if group.nodes > 1 else ""
    yield f"{counted(group.nodes, 'node')} {group.name}-{first}{last}"
    yield f"{counted(nodes.cores, 'core')} on {counted(nodes.cpus, 'CPU')}"
    if nodes.memory_bytes is not None:
        yield size_text(nodes.memory_bytes)
    rate = dgemm_rate(part)
    if rate is not None:
        yield f"dgemm {quantity(rate / 1e9, 'Gflop/s')} a core"
    elif group.speed is not None:
        yield f"{significant(group.speed)} times as fast"
    if group.kernels:
        yield f"{counted(len(group.kernels), 'kernel')} of its own"
    width = group.link and group.link.bandwidth_Bps
    if width:
        yield f"link {quantity(width / 1e9, 'GB/s')}"
    if group.link is not None and group.link.latency_s:
        yield f"{seconds(group.link.latency_s)} more for a message"
    if group.power is not None:
        yield f"{quantity(group.power.computing_W, 'W')} computing"
