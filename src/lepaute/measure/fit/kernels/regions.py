"""Where a kernel's model is cut into pieces (M' in the literature): fixed for dgemm, a tree of regions elsewhere.

A tree of regions: the range of a kernel's parameters is cut in two, and again, where a polynomial each fits better.

Greedy, as in regression trees (Breiman and others 1984) with linear models in the leaves. A cut is kept when it pays
for its parameters in Schwarz's criterion. Errors count relative to the time of a call and in proportion to it, as the
application's time does; those of copies, whose sizes in a run are others than in a design, count relative to it only.
"""

from dataclasses import dataclass

import numpy as np

from lepaute.measure.fit.kernels.polynomial import default_terms, design_matrix
from lepaute.measure.fit.numeric import (
    INDEPENDENCE,
    INDISTINCT,
    Booleans,
    Floats,
    Integers,
    first_of_largest,
    local_median,
)
from lepaute.measure.fit.observations.calls import WALKS_ROWS, Calls
from lepaute.stats import algebra

Box = dict[str, tuple[float, float]]
MAX_LEAVES = 7
CANDIDATES = 24
#: Upper bound of a parameter that has none.
MOST = float(2**31 - 1)
#: Durations beyond this many times the median of their neighbours are cut for the search.
CAP = 3.0
#: Fixed before any fit: the panel's recursion (narrow, few columns) by how much each column is used again. The updates
#: of all block sizes come after, between the depths of the shallowest and the deepest call of the application there:
#: time is linear in k where the rate saturates as k / (k + k0). What is beyond was measured alone, if at all.
DGEMM_PANEL: tuple[Box, ...] = ({"n": (0, 64), "k": (0, 2)}, {"n": (0, 64), "k": (3, 8)}, {"n": (0, 64), "k": (9, 64)})
#: An update of few rows costs more for each: one polynomial is 2 % off there. Any bound from 1500 to 3000 served as
#: well on the one machine that it was tried on; the tree sees too few calls to pay for a cut. So do the chunks of an
#: update, which are NB columns wide: where several NBs were measured, one polynomial for them and the rest was 4 to 8 %
#: too low for the long updates, in which a run spends its time.
MAX_ROWS_OF_SHORT = 2000.0
#: Lower bound of k in the updates where no wide call of the application is shallower.
UPDATE_DEPTH = 65.0
#: With this many calls timed inside steps of HPL, a piece is fitted to them alone.
ENOUGH_IN_CONTEXT = 30
#: A piece with fewer calls is left to the next one.
MIN_CALLS = 20
#: Kernels without pieces: nothing of theirs leaves a cache, or all does.
UNDIVIDED = frozenset({"pdupdate_glue", "first_touch"})


@dataclass(frozen=True, slots=True)
class _Cut:
    """The best cut of a leaf: where, and by how much the sum of squares falls."""

    letter: str
    edge: float
    gain: float


@dataclass(frozen=True, slots=True)
class _Leaf:
    box: Box
    rows: Integers
    cost: float
    cut: _Cut | None


def _boxes_of(calls: Calls, least: int, by: str = "mnk") -> list[Box]:
    """Regions that part the whole range of the parameters, each with `least` calls or more; [{}] if one is enough.

    by: the parameters that may be cut
    """
    y = calls.duration_s
    typical = np.maximum(local_median(calls.work(), y), 1e-3 * float(np.median(np.abs(y))) + 1e-12)
    terms = default_terms(calls.kernel)
    columns = design_matrix(((terms[0], terms[-1]) if calls.kernel in WALKS_ROWS else terms), calls.m, calls.n, calls.k)
    counted = np.ones(len(calls)) if calls.kernel in WALKS_ROWS else typical
    data = np.column_stack([columns, np.minimum(y, CAP * typical)]) * (np.sqrt(counted) / typical)[:, None]
    weight = np.ones(len(calls)) if calls.weight is None else calls.weight / float(np.mean(calls.weight))
    data = data * np.sqrt(weight)[:, None]
    data = data / np.maximum(np.sqrt(np.mean(data**2, axis=0)), 1e-300)
    sizes = {"m": calls.m, "n": calls.n, "k": calls.k}
    letters = {letter: values for letter, values in sizes.items() if letter in by and values.any()}
    # Calls that last long count for more, so that the sample is as good as a smaller one of equal calls.
    effective = float(np.sum(weight * counted)) ** 2 / float(np.sum((weight * counted) ** 2))
    price = (columns.shape[1] + 1) * np.log(max(effective, 2.0)) + INDISTINCT
    leaves = [_leaf({}, np.arange(len(calls)), data, letters, least)]
    while len(leaves) < MAX_LEAVES:
        total = max(sum(leaf.cost for leaf in leaves), 1e-300)
        best = leaves[first_of_largest(np.array([leaf.cut.gain if leaf.cut else -1.0 for leaf in leaves]), total)]
        if best.cut is None or effective * np.log(total / max(total - best.cut.gain, 1e-6 * total)) < price:
            break
        leaves.remove(best)
        leaves += _halves(best, best.cut, data, letters, least)
    return [leaf.box for leaf in leaves]


def _halves(leaf: _Leaf, cut: _Cut, data: Floats, letters: dict[str, Floats], least: int) -> list[_Leaf]:
    low, high = leaf.box.get(cut.letter, (0.0, MOST))
    below = letters[cut.letter][leaf.rows] <= cut.edge
    return [
        _leaf({**leaf.box, cut.letter: (low, cut.edge)}, leaf.rows[below], data, letters, least),
        _leaf({**leaf.box, cut.letter: (cut.edge + 1.0, high)}, leaf.rows[~below], data, letters, least),
    ]


def _leaf(box: Box, rows: Integers, data: Floats, letters: dict[str, Floats], least: int) -> _Leaf:
    inside = data[rows]
    whole = float(_residual(algebra.squares(inside)[None])[0])
    cuts = [cut for letter, values in letters.items() if (cut := _best_cut(letter, values[rows], inside, whole, least))]
    # Where two parameters go together their cuts are the same: the first parameter has it.
    best = first_of_largest(np.array([cut.gain for cut in cuts]), whole) if cuts else None
    return _Leaf(box, rows, whole, None if best is None else cuts[best])


def _best_cut(letter: str, values: Floats, data: Floats, whole: float, least: int) -> _Cut | None:
    """The edge at which two polynomials leave least, or None if no edge leaves enough calls on both sides."""
    distinct = np.unique(values)
    if len(distinct) < 2 or len(values) < 2 * least:
        return None
    at = np.linspace(0, len(distinct) - 1, CANDIDATES + 2).round().astype(np.int64)[1:-1]
    edges = np.unique(np.concatenate([distinct[at[at < len(distinct) - 1]], distinct[-2:-1]]))
    which = np.searchsorted(edges, values, side="left")
    below = np.cumsum([algebra.squares(data[which == number]) for number in range(len(edges))], axis=0)
    above = algebra.squares(data)[None] - below
    counts = np.cumsum(np.bincount(which, minlength=len(edges) + 1))[: len(edges)]
    left = np.where((counts >= least) & (len(values) - counts >= least), _residual(below) + _residual(above), np.inf)
    if not np.isfinite(left).any():
        return None
    best = first_of_largest(-left, whole)
    return _Cut(letter, float(np.floor(edges[best])), whole - float(left[best]))


def _residual(sums: Floats) -> Floats:
    """Residual sums of squares from products of (columns, target), shape (parts, p + 1, p + 1).

    A column that those before it explain is left out, as in the fit of a piece: what it would explain is rounding.
    """
    return algebra.residuals(sums, INDEPENDENCE**2)


@dataclass(frozen=True, slots=True)
class Region:
    """Inclusive bounds of parameters, by letter; None holds everywhere. Of several, the first that matches holds."""

    where: Box | None

    def contains(self, calls: Calls) -> Booleans:
        """Which calls lie inside, shape (calls,)."""
        inside = np.ones(len(calls), dtype=bool)
        letters = {"m": calls.m, "n": calls.n, "k": calls.k}
        for letter, (low, high) in (self.where or {}).items():
            inside &= (letters[letter] >= low) & (letters[letter] <= high)
        return inside


def regions_of(calls: Calls) -> tuple[Region, ...]:
    """Regions for a kernel, the last one without bounds; those with too few calls are left out.

    The regions of dgemm and dgemm_nn as HPL calls them are fixed, but for cuts of the largest updates by columns; those
    of the other kernels follow from the data, as caches do, and so do those of dgemm where only it was measured.
    """
    panel = tuple(Region(where) for where in DGEMM_PANEL)
    if calls.kernel == "dgemm" and calls.in_context.any():
        shallowest, deepest = _update_depths(calls)
        # Wide products of smaller block sizes than were measured: their time is that of moving the result.
        shallow = Region({"k": (0.0, shallowest - 1.0)})
        return _populated(calls, (*panel, *_updates(calls, {"k": (shallowest, deepest)}), shallow, Region(None)))
    if calls.kernel == "dgemm_nn" and calls.in_context.any():
        return _populated(calls, (*panel, *_updates(calls, {})[:-1], Region(None)))
    inside_u = (calls.k == calls.m) & (calls.kernel == "dlaswp00N")
    if inside_u.any():
        # Where U is not transposed, its rows are permuted in it, whose leading dimension is NB: a law of its own.
        u = Region({"k": (0.0, float(calls.k[inside_u].max()))})
        return _populated(calls, (u, *regions_of(calls.where(~u.contains(calls)))))
    if calls.kernel in UNDIVIDED or len(calls) < 4 * MIN_CALLS:
        return (Region(None),)
    # The region of the largest calls holds wherever nothing else does: that is where a model is asked to extrapolate.
    *bounded, _ = sorted(_boxes_of(calls, MIN_CALLS), key=lambda box: sum(high >= MOST for _, high in box.values()))
    return (*(Region(box) for box in bounded), Region(None))


def _updates(calls: Calls, depths: Box) -> tuple[Region, ...]:
    """The chunks of updates, the short ones and all others between these depths; all in one where one has few calls.

    The others are cut by columns where the data say so: each column of the matrix is on pages of its own, and where
    they are more than a core can hold the addresses of (its TLB), all of them cost more at once.
    """
    regions = Region({"n": (0.0, _update_depths(calls)[1])} | depths), Region({"m": (0.0, MAX_ROWS_OF_SHORT)} | depths)
    masks = first_match((*regions, Region(depths)), calls)
    if min(np.count_nonzero(mask & calls.in_context) for mask in masks) < ENOUGH_IN_CONTEXT:
        return (Region(depths),)
    others = as_called(calls.where(masks[-1]))
    *cuts, _ = sorted(_boxes_of(others, ENOUGH_IN_CONTEXT, "n"), key=lambda box: box.get("n", (0.0, MOST))[1])
    return (*regions, *(Region(box | depths) for box in cuts), Region(depths))


def as_called(calls: Calls) -> Calls:
    """The calls that an application made, where there are enough: alone, on cold operands, a small one takes
    several times as long. Of these the calls at full load, where there are enough: that is how an application runs."""
    if np.count_nonzero(calls.in_context) >= ENOUGH_IN_CONTEXT:
        calls = calls.where(calls.in_context)
    full = calls.at_full_load()
    return calls.where(full) if np.count_nonzero(full) >= ENOUGH_IN_CONTEXT else calls


def _update_depths(calls: Calls) -> tuple[float, float]:
    """Smallest and largest k of the application's calls that are as wide as no call of the panel's recursion is."""
    wide = calls.k[calls.in_context & (calls.n > max(high for _, high in (box["n"] for box in DGEMM_PANEL)))]
    deepest = float(calls.k[calls.in_context].max())
    return min(UPDATE_DEPTH, float(np.min(wide, initial=UPDATE_DEPTH))), max(UPDATE_DEPTH, deepest)


def first_match(regions: tuple[Region, ...], calls: Calls) -> tuple[Booleans, ...]:
    """For each region the calls that it holds for, each call in exactly one when the last has no bounds."""
    free = np.ones(len(calls), dtype=bool)
    masks = []
    for region in regions:
        mask = free & region.contains(calls)
        masks.append(mask)
        free = free & ~mask
    return tuple(masks)


def _populated(calls: Calls, regions: tuple[Region, ...]) -> tuple[Region, ...]:
    masks = first_match(regions, calls)
    kept = [piece for piece, mask in zip(regions[:-1], masks[:-1], strict=True) if np.count_nonzero(mask) >= MIN_CALLS]
    if np.count_nonzero(masks[-1]) < MIN_CALLS and kept:
        kept.pop()  # its calls fall to the piece that holds everywhere
    return (*kept, Region(None))
