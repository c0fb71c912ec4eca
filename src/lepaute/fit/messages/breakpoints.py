"""Sizes at which the costs of messages change, the same for all operations."""

import math
from collections.abc import Sequence

import numpy as np

from lepaute.fit.messages.series import Series
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.segmentation import segment_jointly

#: Of one protocol; the information criterion mostly asks for fewer.
MOST_BREAKPOINTS = 5
#: Distinct sizes of every series in a segment.
LEAST_SIZES = 5
#: A series with fewer points says nothing of where it changes.
FEWEST_POINTS = 12
#: Distinct sizes of all series together that are told apart: the time of the search grows with their square.
MOST_SIZES = 250


def shared_breakpoints(parts: list[Series]) -> list[float]:
    """Sizes that cut all series at once, by the logarithmic errors of a line each; how many, by the criterion.

    Exact where the series have MOST_SIZES distinct sizes together; else a breakpoint is one of so many of them, at
    equal shares of the points.
    """
    pairs = _told_apart([part for part in parts if len(part) >= FEWEST_POINTS])
    pairs = [pair for pair in pairs if np.ptp(pair[0]) > 0]  # one size says nothing of where its series changes
    if not pairs:
        return []
    joint = segment_jointly(pairs, objective="log", most_breakpoints=MOST_BREAKPOINTS, least_points=LEAST_SIZES)
    return [math.floor(size) for size in joint.breakpoints]


def _told_apart(parts: Sequence[Series]) -> list[tuple[Floats, Floats]]:
    """Sizes and durations; where there are too many sizes, each becomes the largest of its group, and its duration what
    it would be there, by the local medians."""
    pooled = np.concatenate([part.size_bytes for part in parts]) if parts else np.zeros(0)
    if len(np.unique(pooled)) <= MOST_SIZES:
        return [(part.size_bytes, part.capped_s) for part in parts]
    shares = np.linspace(0, 1, MOST_SIZES + 1)[1:]
    largest = np.unique(np.quantile(pooled, shares, method="higher"))
    pairs = []
    for part in parts:
        there = largest[np.searchsorted(largest, part.size_bytes, side="left")]
        known, first = np.unique(part.size_bytes, return_index=True)
        typical_s = np.interp(np.log1p(there), np.log1p(known), part.typical_s[first])
        pairs.append((there, part.capped_s * typical_s / part.typical_s))
    return pairs
