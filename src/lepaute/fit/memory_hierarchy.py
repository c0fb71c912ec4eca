"""Caches from bandwidths: plateaus of bandwidth against buffer size, where they end, and what hwloc says of that.

The rules below were fixed before any measurement was looked at (docs/fit.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.archive.setups.topology import Cache
from lepaute.errors import FitError
from lepaute.fit.arrays import Floats
from lepaute.fit.plateaus import constant_pieces
from lepaute.stats.rank_interval import median_rank

if TYPE_CHECKING:
    import pandas

COLUMNS = ("size_bytes", "stride", "element_bytes", "unroll", "read_bytes", "duration_s")
#: A plateau reaches over a factor of two in size at least; the first and the last one over three sizes: the range of
#: the design cuts them off.
LEAST_OCTAVES, LEAST_SIZES_AT_ENDS = 1.0, 3
#: Bandwidth falls by this share at least where a cache ends, in the mean over the curves.
LEAST_DROP = 0.05
#: A size of hwloc's agrees with a found interval when it lies in it, or beyond its ends by less than this factor.
TOLERANCE = math.sqrt(2.0)
FEWEST_SIZES = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """Bandwidth against size for one way to read: medians, in bytes read per second, at increasing sizes."""

    element_bytes: int
    stride: int
    unroll: int
    size_bytes: tuple[int, ...]
    bandwidth: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.element_bytes} B, stride {self.stride}, unrolled {self.unroll}"


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Median of all single measurements of a curve on a plateau, bytes/s, with its 95 % interval (order statistics)."""

    curve: str
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Plateau:
    """Sizes from the first to the last one measured on it, and the bandwidth of each curve there, in their order."""

    first_bytes: int
    last_bytes: int
    bandwidths: tuple[Bandwidth, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """A cache that was found: between the last size of a plateau and the first of the next, lower one.

    drop   : share of its bandwidth that the mean curve loses
    known  : what hwloc says, the cache it was matched with; None where it has none left
    agrees : whether the two agree within TOLERANCE; None where hwloc says nothing at all
    """

    low_bytes: int
    high_bytes: int
    drop: float
    known: Cache | None
    agrees: bool | None


@dataclass(frozen=True)
class MemoryHierarchy:
    """Of one node; known: what hwloc says; notes: what a reader should know, one sentence each."""

    node: str
    curves: tuple[Curve, ...]
    plateaus: tuple[Plateau, ...]
    levels: tuple[Level, ...]
    known: tuple[Cache, ...]
    notes: tuple[str, ...]


def is_memory(table: "pandas.DataFrame") -> bool:
    return set(COLUMNS) <= set(table.columns)


def memory_hierarchy(
    table: "pandas.DataFrame", caches: Sequence[Cache] = (), *, node: str = "", virtual: bool = False
) -> MemoryHierarchy:
    """The hierarchy that the measurements of one node show.

    table  : a row a measurement, with COLUMNS
    caches : data caches of the core that was measured, as hwloc has them; none where nothing is known
    virtual: whether the node is a virtual machine, which may hide or misreport caches
    All curves of the largest unrolling are segmented together, so that they share the sizes at which they change: with
    one element an iteration the loop, not the cache, is what bounds (paper of the pitfalls, section IV-A-1).
    Raises FitError where there are too few sizes, or a duration is none.
    """
    if (table["duration_s"] <= 0).any() or (table["read_bytes"] <= 0).any():
        raise FitError("a measurement of memory lasts no time or reads nothing; measure again with larger batches")
    curves = _curves(table)
    unroll = max(curve.unroll for curve in curves)
    chosen = [curve for curve in curves if curve.unroll == unroll]
    sizes = sorted(set.intersection(*(set(curve.size_bytes) for curve in chosen)))
    if len(sizes) < FEWEST_SIZES:
        raise FitError(f"memory was measured at {len(sizes)} sizes only; plateaus need {FEWEST_SIZES} at least")
    logs = np.array(
        [
            [math.log(dict(zip(curve.size_bytes, curve.bandwidth, strict=True))[size]) for size in sizes]
            for curve in chosen
        ]
    )
    pieces = constant_pieces(np.log2(sizes), logs)
    found = _plateaus(sizes, logs, pieces)
    plateaus = tuple(
        Plateau(sizes[first], sizes[last], _bandwidths(table, curves, sizes[first], sizes[last]))
        for first, last in found
    )
    levels, notes = _levels(sizes, logs, found, caches)
    if len(found) < 2:
        notes.append("no drop of bandwidth was found: measure up to larger buffers, or wider elements")
    if not caches:
        notes.append("hwloc says nothing of this node's caches, so nothing was compared")
    if virtual:
        notes.append(
            "a virtual machine: what hwloc says is what its host chose to tell, and other guests may share caches"
        )
    return MemoryHierarchy(node, curves, plateaus, levels, tuple(caches), tuple(notes))


def _curves(table: "pandas.DataFrame") -> tuple[Curve, ...]:
    bandwidth = table["read_bytes"] / table["duration_s"]
    keys = ["element_bytes", "stride", "unroll", "size_bytes"]
    medians = bandwidth.groupby([table[key] for key in keys]).median()
    curves: dict[tuple[int, int, int], list[tuple[int, float]]] = {}
    for (element, stride, unroll, size), median in medians.items():
        curves.setdefault((int(element), int(stride), int(unroll)), []).append((int(size), float(median)))
    return tuple(
        Curve(*key, tuple(size for size, _ in points), tuple(median for _, median in points))
        for key, points in sorted(curves.items())
    )


def _plateaus(sizes: Sequence[int], logs: Floats, pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(first, last) index of each plateau; neighbours between which bandwidth does not fall are one."""
    last_piece = len(pieces) - 1
    wide = []
    for number, (first, last) in enumerate(pieces):
        octaves = math.log2(sizes[last] / sizes[first])
        at_end = number in (0, last_piece) and last - first + 1 >= LEAST_SIZES_AT_ENDS
        if octaves >= LEAST_OCTAVES * (1 - 1e-3) or at_end:
            wide.append((first, last))
    merged: list[tuple[int, int]] = []
    for first, last in wide:
        if merged and _fall(logs, merged[-1], (first, last)) < -math.log1p(-LEAST_DROP):
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return merged


def _fall(logs: Floats, upper: tuple[int, int], lower: tuple[int, int]) -> float:
    """By how much the logarithm of bandwidth falls from one range of sizes to the next, in the mean over the curves."""
    one = np.median(logs[:, upper[0] : upper[1] + 1], axis=1)
    other = np.median(logs[:, lower[0] : lower[1] + 1], axis=1)
    return float(np.mean(one - other))


def _bandwidths(
    table: "pandas.DataFrame", curves: Sequence[Curve], first_bytes: int, last_bytes: int
) -> tuple[Bandwidth, ...]:
    result = []
    inside = table[(table["size_bytes"] >= first_bytes) & (table["size_bytes"] <= last_bytes)]
    for curve in curves:
        mine = inside[
            (inside["element_bytes"] == curve.element_bytes)
            & (inside["stride"] == curve.stride)
            & (inside["unroll"] == curve.unroll)
        ]
        values = np.sort((mine["read_bytes"] / mine["duration_s"]).to_numpy(dtype=np.float64))
        if len(values) == 0:
            continue
        rank = max(1, median_rank(len(values), 0.05))
        result.append(
            Bandwidth(curve.name, float(np.median(values)), float(values[rank - 1]), float(values[len(values) - rank]))
        )
    return tuple(result)


def _levels(
    sizes: Sequence[int], logs: Floats, found: Sequence[tuple[int, int]], caches: Sequence[Cache]
) -> tuple[tuple[Level, ...], list[str]]:
    """Caches between the plateaus, matched with those of hwloc in the order of their sizes."""
    left = sorted(caches, key=lambda cache: cache.size_bytes)
    levels, notes = [], []
    for upper, lower in zip(found[:-1], found[1:], strict=True):
        low, high = sizes[upper[1]], sizes[lower[0]]
        fitting = [cache for cache in left if low / TOLERANCE <= cache.size_bytes <= high * TOLERANCE]
        # Where two fit, the end of the plateau is the end of the nearer one.
        known = min(fitting, key=lambda cache: abs(math.log(cache.size_bytes / low)), default=None)
        if known is not None:
            notes += [_unseen(cache) for cache in left if cache.size_bytes < known.size_bytes]
            left = [cache for cache in left if cache.size_bytes > known.size_bytes]
        drop = 1 - math.exp(-_fall(logs, upper, lower))
        levels.append(Level(low, high, drop, known, (known is not None) if caches else None))
    notes += [_unseen(cache) for cache in left]
    return tuple(levels), notes


def _unseen(cache: Cache) -> str:
    return f"hwloc's L{cache.level} of {size_text(cache.size_bytes)} was not seen: no plateau ends there"


def size_text(size_bytes: float) -> str:
    """Bytes in the unit that a person would take: 48 KiB, 1.2 MiB."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.3g} {unit}"
    return f"{size_bytes:g} B"


def hierarchy_text(hierarchy: MemoryHierarchy) -> str:
    """What was found, for people: a line a plateau, a line a cache, and the notes."""
    lines = [f"memory hierarchy of {hierarchy.node}" if hierarchy.node else "memory hierarchy"]
    for number, plateau in enumerate(hierarchy.plateaus):
        best = max(plateau.bandwidths, key=lambda bandwidth: bandwidth.median)
        lines.append(
            f"  {size_text(plateau.first_bytes)} to {size_text(plateau.last_bytes)}: {best.median * 1e-9:.3g} GB/s "
            f"({best.low * 1e-9:.3g} to {best.high * 1e-9:.3g}; {best.curve})"
        )
        if number < len(hierarchy.levels):
            lines.append(f"    {level_text(hierarchy.levels[number], number + 1)}")
    return "\n".join([*lines, *(f"  note: {note}" for note in hierarchy.notes)])


def level_text(level: Level, number: int) -> str:
    """One cache in a line: where it ends, and what hwloc says."""
    said = f"cache {number} ends between {size_text(level.low_bytes)} and {size_text(level.high_bytes)}"
    said += f" ({-100 * level.drop:+.0f} %)"
    if level.agrees is None:
        return said
    if level.known is None:
        return f"{said}; hwloc has no cache of such a size"
    return f"{said}; hwloc says L{level.known.level} of {size_text(level.known.size_bytes)}: agrees"
