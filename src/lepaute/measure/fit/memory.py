"""Caches from bandwidths: plateaus of bandwidth against buffer size, where they end, and what hwloc says of that.

The rules below were fixed before any measurement was looked at (docs/reference/fit_output.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.errors import FitError
from lepaute.kit import picture
from lepaute.kit.later import pandas
from lepaute.kit.text import size_text, value_and_interval, with_interval
from lepaute.measure.archive.setups.topology import Cache
from lepaute.measure.fit.numeric import Floats
from lepaute.measure.fit.segmentation.points import BREAKPOINT_PARAMETERS, Points, best_cuts
from lepaute.stats.intervals import median_interval
from lepaute.stats.robust import robust_sd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BREAKPOINTS = 24
#: A cache may end within one step of the sizes, and then the size in between is a piece of its own.
MIN_SIZES_OF_PLATEAU = 1
COLUMNS = ("size_bytes", "stride", "element_bytes", "unroll", "read_bytes", "duration_s")
#: A plateau reaches over a factor of two in size; the first and the last one, which the design cuts, over three sizes.
MIN_OCTAVES, MIN_SIZES_AT_ENDS = 1.0, 3
#: Bandwidth falls by this share at least where a cache ends, in the mean over the curves.
MIN_DROP = 0.05
MIN_FALL = -math.log1p(-MIN_DROP)
#: A size of hwloc's agrees with a found interval when it lies in it, or beyond its ends by less than this factor.
TOLERANCE = math.sqrt(2.0)
MIN_SIZES = 8
#: Noise grows with the size of the buffer, where other cores and machines share what is used: it is that of the
#: measurements of a size and of this many on either side; a median is taken to be known no better than the least.
NOISE_NEIGHBOURS, MIN_NOISE = 3, 0.005


def _constant_pieces(x: Sequence[float] | Floats, y: Floats, sd: Floats) -> list[tuple[int, int]]:
    """(first, last) index of each piece, together all points.

    x : increasing, shape (points,); y : shape (curves, points); sd : standard errors of y, of the same shape
    The best cuts for each number of pieces; of these the number with the least sum of squares over variances plus
    log(points of all curves) for each level on each curve, BREAKPOINT_PARAMETERS times that for each cut (known noise).
    """
    curves, points = y.shape
    xs = np.asarray(x, dtype=np.float64)
    ones = np.ones(points, dtype=np.int64)
    parts = [Points("ordinary", xs, at, by**-2.0, ones, ones) for at, by in zip(y, sd, strict=True)]
    partitions = best_cuts(parts, [1.0] * curves, True, MIN_SIZES_OF_PLATEAU, MAX_BREAKPOINTS + 1)
    charge = (curves + BREAKPOINT_PARAMETERS) * math.log(curves * points)
    cuts = partitions[int(np.argmin([left + charge * len(cut) for cut, left in partitions]))][0]
    ends = [int(np.searchsorted(xs, cut, side="right")) for cut in cuts]
    return [(first, end - 1) for first, end in zip([0, *ends], [*ends, points], strict=True)]


@dataclass(frozen=True, slots=True)
class Curve:
    """Bandwidth against size for one way to read: medians, in bytes read per second, at increasing sizes.

    error: relative standard error of each median, from the spread of its measurements
    """

    element_bytes: int
    stride: int
    unroll: int
    size_bytes: tuple[int, ...]
    bandwidth: tuple[float, ...]
    error: tuple[float, ...]

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

    Where no plateau follows, high_bytes is the size from which on bandwidth stays lower, and `open` is true.
    drop   : share of its bandwidth that the mean curve loses
    known  : what hwloc says, the cache it was matched with; None if it has none left
    agrees : whether the two agree within TOLERANCE; None if hwloc says nothing at all
    """

    low_bytes: int
    high_bytes: int
    open: bool
    drop: float
    known: Cache | None
    agrees: bool | None


@dataclass(frozen=True)
class MemoryHierarchy:
    """Memory of one node; known: what hwloc says; notes: what a reader should know, one sentence each."""

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
    Raises FitError if there are too few sizes, or a duration is none.
    """
    if (table["duration_s"] <= 0).any() or (table["read_bytes"] <= 0).any():
        raise FitError("a measurement of memory has no duration or reads nothing; measure again with larger batches")
    curves = _curves(table)
    unroll = max(curve.unroll for curve in curves)
    chosen = [curve for curve in curves if curve.unroll == unroll]
    sizes = sorted(set.intersection(*(set(curve.size_bytes) for curve in chosen)))
    if len(sizes) < MIN_SIZES:
        raise FitError(f"memory was measured at {len(sizes)} sizes only; plateaus need {MIN_SIZES} at least")
    logs, sd = _medians(chosen, sizes)
    spans = _plateaus(sizes, logs, _constant_pieces(np.log2(sizes), logs, sd))
    plateaus = tuple(
        Plateau(sizes[first], sizes[last], _bandwidths(table, curves, sizes[first], sizes[last]))
        for first, last in spans
    )
    levels, notes = _levels(sizes, logs, spans, caches)
    if not levels:
        notes.append("no drop of bandwidth was found: measure up to larger buffers, or wider elements")
    if not caches:
        notes.append("hwloc reports no caches of this node; there is nothing to compare with")
    if virtual:
        notes.append("a virtual machine: hwloc reports what the hypervisor exposes, and other guests may share caches")
    return MemoryHierarchy(node, curves, plateaus, levels, tuple(caches), tuple(notes))


def _curves(table: "pandas.DataFrame") -> tuple[Curve, ...]:
    groups: dict[tuple[int, int, int, int], list[float]] = {}
    columns = [table[name].tolist() for name in ("element_bytes", "stride", "unroll", "size_bytes")]
    for element, stride, unroll, size, read, spent in zip(
        *columns, table["read_bytes"].tolist(), table["duration_s"].tolist(), strict=True
    ):
        groups.setdefault((int(element), int(stride), int(unroll), int(size)), []).append(math.log(read / spent))
    curves: dict[tuple[int, int, int], list[tuple[int, float, float]]] = {}
    for (element, stride, unroll, size), values in sorted(groups.items()):
        median = float(np.median(values))
        # Of a median of n normal values: sqrt(pi / 2) times that of their mean.
        error = robust_sd(np.array(values), median) * math.sqrt(math.pi / 2 / len(values))
        curves.setdefault((element, stride, unroll), []).append((size, math.exp(median), error))
    return tuple(Curve(*key, *zip(*points, strict=True)) for key, points in sorted(curves.items()))


def _medians(curves: Sequence[Curve], sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """Logarithms of the medians and their standard errors, shape (curves, sizes) each."""
    at = [[curve.size_bytes.index(size) for size in sizes] for curve in curves]
    logs = np.array(
        [[math.log(curve.bandwidth[place]) for place in places] for curve, places in zip(curves, at, strict=True)]
    )
    errors = np.array([[curve.error[place] for place in places] for curve, places in zip(curves, at, strict=True)])
    near = [range(max(0, i - NOISE_NEIGHBOURS), min(len(sizes), i + NOISE_NEIGHBOURS + 1)) for i in range(len(sizes))]
    smooth = np.stack([np.median(errors[:, list(around)], axis=1) for around in near], axis=1)
    return logs, np.maximum(smooth, MIN_NOISE)


def _plateaus(sizes: Sequence[int], logs: Floats, pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(first, last) index of each plateau: wide pieces, neighbours between which bandwidth does not fall taken as one.

    To either side a plateau goes on as long as single sizes differ from it by less than a fall.
    """
    last_piece = len(pieces) - 1
    wide = []
    for number, (first, last) in enumerate(pieces):
        octaves = math.log2(sizes[last] / sizes[first])
        at_end = number in (0, last_piece) and last - first + 1 >= MIN_SIZES_AT_ENDS
        if octaves >= MIN_OCTAVES * (1 - 1e-3) or at_end:
            wide.append((first, last))
    merged: list[tuple[int, int]] = []
    for first, last in wide:
        if merged and _fall(logs, merged[-1], (first, last)) < MIN_FALL:
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    grown: list[tuple[int, int]] = []
    for number, plateau in enumerate(merged):
        first, last = plateau
        before = grown[-1][1] if grown else -1
        beyond = merged[number + 1][0] if number + 1 < len(merged) else len(sizes)
        while last + 1 < beyond and _fall(logs, plateau, (last + 1, last + 1)) < MIN_FALL:
            last += 1
        while first - 1 > before and _fall(logs, (first - 1, first - 1), plateau) < MIN_FALL:
            first -= 1
        grown.append((first, last))
    return grown


def _fall(logs: Floats, upper: tuple[int, int], lower: tuple[int, int]) -> float:
    """By how much the logarithm of bandwidth falls from one range of sizes to the next, in the mean over the curves."""
    one = np.median(logs[:, upper[0] : upper[1] + 1], axis=1)
    return float(np.mean(one - np.median(logs[:, lower[0] : lower[1] + 1], axis=1)))


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
        values = (mine["read_bytes"] / mine["duration_s"]).to_numpy(dtype=np.float64)
        if len(values) > 0:
            low, high = median_interval(values, 0.05) or (float(values.min()), float(values.max()))
            result.append(Bandwidth(curve.name, float(np.median(values)), low, high))
    return tuple(result)


def _levels(
    sizes: Sequence[int], logs: Floats, spans: Sequence[tuple[int, int]], caches: Sequence[Cache]
) -> tuple[tuple[Level, ...], list[str]]:
    """Caches between the plateaus, matched with those of hwloc in the order of their sizes."""
    left = sorted(caches, key=lambda cache: cache.size_bytes)
    levels, notes = [], []
    count = logs.shape[1]
    first = count
    while spans and first - 1 > spans[-1][1] and _fall(logs, spans[-1], (first - 1, first - 1)) >= MIN_FALL:
        first -= 1
    after = [(first, count - 1)] if first < count else []
    for upper, lower in zip(spans, [*spans[1:], *after], strict=False):
        low, high = sizes[upper[1]], sizes[lower[0]]
        fitting = [cache for cache in left if low / TOLERANCE <= cache.size_bytes <= high * TOLERANCE]
        # Where two fit, the end of the plateau is the end of the nearer one.
        known = min(fitting, key=lambda cache: abs(math.log(cache.size_bytes / low)), default=None)
        if known is not None:
            notes += [_unseen(cache) for cache in left if cache.size_bytes < known.size_bytes]
            left = [cache for cache in left if cache.size_bytes > known.size_bytes]
        drop = 1 - math.exp(-_fall(logs, upper, lower))
        levels.append(Level(low, high, lower in after, drop, known, (known is not None) if caches else None))
    notes += [_unseen(cache) for cache in left]
    return tuple(levels), notes


def _unseen(cache: Cache) -> str:
    return f"hwloc's L{cache.level} of {size_text(cache.size_bytes)} was not seen: no plateau ends there"


def hierarchy_text(hierarchy: MemoryHierarchy) -> str:
    title = f"memory hierarchy of {hierarchy.node}" if hierarchy.node else "memory hierarchy"
    return "\n".join([title, *hierarchy_lines(hierarchy)])


def hierarchy_lines(hierarchy: MemoryHierarchy) -> list[str]:
    """A line a plateau, a line a cache, and the notes."""
    lines = []
    for number, plateau in enumerate(hierarchy.plateaus):
        best = _fastest(plateau)
        lines.append(
            f"  {size_text(plateau.first_bytes)} to {size_text(plateau.last_bytes)}: "
            f"{with_interval(best.median * 1e-9, best.low * 1e-9, best.high * 1e-9, 'GB/s')}, {best.curve}"
        )
        if number < len(hierarchy.levels):
            lines.append(f"    {_level_text(hierarchy.levels[number])}")
    return [*lines, *(f"  note: {note}" for note in hierarchy.notes)]


def _level_text(level: Level) -> str:
    """One end of a plateau in a line: where it is, and what hwloc says of a cache there."""
    text = f"falls between {size_text(level.low_bytes)} and {size_text(level.high_bytes)}"
    text += " (no plateau follows)" if level.open else f" ({-100 * level.drop:+.0f} %)"
    if level.agrees is None:
        return text
    if level.known is None:
        return f"{text}; hwloc reports no cache of this size (a TLB may have this reach)"
    return f"{text}; hwloc reports L{level.known.level} of {size_text(level.known.size_bytes)}: agrees"


def finding(hierarchy: MemoryHierarchy) -> str:
    """What one core reads from the first and from the last plateau, in a line: figures of `hierarchy_text`."""
    core = f"one core of {hierarchy.node}" if hierarchy.node else "one core"
    plateaus = hierarchy.plateaus
    if not plateaus:
        return f"No plateau of bandwidth was found ({core})"
    ends = [
        f"{value_and_interval(best.median * 1e-9, best.low * 1e-9, best.high * 1e-9)[0]} GB/s {_place(hierarchy, at)}"
        for at, best in enumerate(map(_fastest, plateaus))
    ]
    return f"{ends[0]} ({core})" if len(ends) == 1 else f"From {ends[0]} to {ends[-1]} ({core})"


def _place(hierarchy: MemoryHierarchy, number: int) -> str:
    """Where the buffers of a plateau are, by the sizes that hwloc reports; their sizes where that is not known."""
    plateau = hierarchy.plateaus[number]
    ended_by = hierarchy.levels[number].known if number < len(hierarchy.levels) else None
    holds = [cache for cache in hierarchy.known if cache.size_bytes >= plateau.last_bytes]
    if ended_by is not None or holds:
        return f"in L{(ended_by or min(holds, key=lambda cache: cache.size_bytes)).level}"
    if hierarchy.known and plateau.first_bytes >= max(cache.size_bytes for cache in hierarchy.known):
        return "in memory"
    return f"up to {size_text(plateau.last_bytes)}"


def plot_hierarchies(hierarchies: tuple[MemoryHierarchy, ...], path: Path | None, source: str = "") -> "Figure":
    """One panel a node: medians as lines, a colour a curve, plateaus thick; where bandwidth falls is shaded, sizes that
    hwloc reports are dashed, and between them stands which cache holds the buffer. Returns the figure.

    path : of `kit.picture.picture_files`;  source : where the measurements are from, for the foot
    """
    figure = picture.new_figure((9.0, 0.7 + 4.8 * len(hierarchies)), for_file=path is not None)
    axes = figure.subplots(len(hierarchies), 1, squeeze=False)[:, 0]
    for axis, hierarchy in zip(axes, hierarchies, strict=True):
        _lines(axis, hierarchy)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        sizes = [size for curve in hierarchy.curves for size in curve.size_bytes]
        ends = min(sizes) / 1.15, max(sizes) * 1.15
        picture.sizes_of_memory(axis.xaxis, (min(sizes), max(sizes)))
        values = [value * 1e-9 for curve in hierarchy.curves for value in curve.bandwidth]
        picture.plain_decades(axis.yaxis, (min(values), max(values)))
        _ends(axis, hierarchy, ends)
        axis.set_xlim(*ends)
        axis.set_xlabel("size of the buffer")
        axis.set_ylabel("bandwidth of reading, median (GB/s)")
        if len(hierarchies) > 1:
            axis.set_title(finding(hierarchy), loc="left", fontsize=9)
        axis.grid(color=picture.RULE, lw=0.8, which="major")
        picture.bare(axis)
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    whole = finding(hierarchies[0]) if len(hierarchies) == 1 else f"Bandwidth of reading on {len(hierarchies)} nodes"
    picture.entitle(figure, whole, picture.measured_origin(source or "measurements of memory"))
    if path is not None:
        picture.write_picture(figure, path)
    return picture.shown_once(figure, path)


def _fastest(plateau: Plateau) -> Bandwidth:
    return max(plateau.bandwidths, key=lambda bandwidth: bandwidth.median)


def _lines(axis: Any, hierarchy: MemoryHierarchy) -> None:
    ways = sorted({(curve.element_bytes, curve.stride) for curve in hierarchy.curves})
    most = max(curve.unroll for curve in hierarchy.curves)
    for curve in hierarchy.curves:
        way = ways.index((curve.element_bytes, curve.stride))
        colour, marker = picture.SERIES[way % len(picture.SERIES)], "osD^vPX"[way % 7]
        axis.plot(
            curve.size_bytes,
            [value * 1e-9 for value in curve.bandwidth],
            "-" if curve.unroll == most else ":",
            color=colour,
            lw=1.1,
            alpha=1.0 if curve.unroll == most else 0.45,
            marker=marker,
            ms=3.5,
            markevery=0.08,
            label=curve.name,
        )
        if curve.unroll != most:
            continue
        for plateau in hierarchy.plateaus:
            (bandwidth_of_curve,) = [bandwidth for bandwidth in plateau.bandwidths if bandwidth.curve == curve.name]
            level = bandwidth_of_curve.median * 1e-9
            axis.plot([plateau.first_bytes, plateau.last_bytes], [level, level], color=colour, linewidth=4, alpha=0.3)


def _ends(axis: Any, hierarchy: MemoryHierarchy, ends: tuple[float, float]) -> None:
    """Where bandwidth falls, the sizes of caches, and above the lines the level that a buffer of each size fits in."""
    for number, level in enumerate(hierarchy.levels):
        axis.axvspan(
            level.low_bytes, level.high_bytes, color="0.88", zorder=0, label=None if number else "bandwidth falls here"
        )
    caches = sorted(hierarchy.known, key=lambda cache: cache.size_bytes)
    for number, cache in enumerate(caches):
        label = None if number else "size of a cache (hwloc)"
        axis.axvline(cache.size_bytes, color=picture.BLACK, linestyle="--", linewidth=0.9, label=label)
    limits = [ends[0], *(cache.size_bytes for cache in caches), math.inf]
    names = [*(f"L{cache.level}\n{size_text(cache.size_bytes)}" for cache in caches), "memory"]
    for name, low, high in zip(names, limits[:-1], limits[1:], strict=True):
        if caches and min(high, ends[1]) > 1.3 * low:
            middle = math.sqrt(low * min(high, ends[1]))
            axis.text(middle, 1.01, name, transform=axis.get_xaxis_transform(), ha="center", va="bottom", fontsize=8)
