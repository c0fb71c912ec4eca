"""Where a kernel's model is cut into pieces (M' in the notation of the literature)."""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.kernels.region_tree import MOST, Box, boxes_of
from lepaute.fit.numeric.arrays import Booleans
from lepaute.fit.observations.calls import Calls

#: Fixed before any fit: the panel's recursion (narrow, few columns) by how much each column is used again. The update,
#: at the depth of a block, comes after; its bound is the deepest call of the application.
DGEMM_PANEL: tuple[Box, ...] = (
    {"n": (0, 64), "k": (0, 2)},
    {"n": (0, 64), "k": (3, 8)},
    {"n": (0, 64), "k": (9, 64)},
)
#: Few rows cost more each: one polynomial is 2 % off there. Any bound from 1500 to 3000 served as well on the one
#: machine that it was tried on; the tree sees too few calls to pay for a cut.
DGEMM_NN_SHORT: Box = {"m": (0, 2000)}
#: A piece with fewer calls is left to the next one.
FEWEST_CALLS = 20
#: Kernels without pieces: nothing of theirs leaves a cache.
UNDIVIDED = frozenset({"pdupdate_glue"})


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

    The regions of dgemm and dgemm_nn as HPL calls them are fixed; those of the other kernels follow from the data,
    since they depend on the caches, and so do those of dgemm where it was measured by itself only.
    """
    if calls.kernel == "dgemm" and calls.in_context.any():
        deepest = float(calls.k[calls.in_context].max())
        fixed = tuple(Region(where) for where in DGEMM_PANEL)
        return _populated(calls, (*fixed, Region({"k": (65.0, max(65.0, deepest))}), Region(None)))
    if calls.kernel == "dgemm_nn" and calls.in_context.any():
        return _populated(calls, (Region(DGEMM_NN_SHORT), Region(None)))
    if calls.kernel in UNDIVIDED or len(calls) < 4 * FEWEST_CALLS:
        return (Region(None),)
    boxes = boxes_of(calls, FEWEST_CALLS)
    # The region of the largest calls holds wherever nothing else does: that is where a model is asked to extrapolate.
    *bounded, _ = sorted(boxes, key=lambda box: sum(high >= MOST for _, high in box.values()))
    return (*(Region(box) for box in bounded), Region(None))


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
    kept = [
        region for region, mask in zip(regions[:-1], masks[:-1], strict=True) if np.count_nonzero(mask) >= FEWEST_CALLS
    ]
    if np.count_nonzero(masks[-1]) < FEWEST_CALLS and kept:
        kept.pop()  # its calls fall to the piece that holds everywhere
    return (*kept, Region(None))
