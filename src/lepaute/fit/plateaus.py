"""Several curves over the same points, cut at the same places into pieces on which all are constant."""

import math
from collections.abc import Sequence

import numpy as np

from lepaute.fit.arrays import Floats

#: Noise of a curve is taken to be no smaller than this: of what is more regular, each wiggle would be a piece.
_LEAST_NOISE = 0.005


def constant_pieces(x: Sequence[float] | Floats, y: Floats, most_pieces: int = 24) -> list[tuple[int, int]]:
    """(first, last) index of each piece, together all points.

    x : increasing, shape (points,); y : shape (curves, points)
    Noise is that of the differences of neighbours, the median of their absolute values; a piece costs log(points) for
    its end and for its level on each curve (Schwarz). The best cuts of all, by dynamic programming.
    """
    curves, points = y.shape
    noise = np.maximum(1.4826 * np.median(np.abs(np.diff(y, axis=1)), axis=1) / math.sqrt(2), _LEAST_NOISE)
    scaled = (y - y.mean(axis=1, keepdims=True)) / noise[:, None]
    first = np.concatenate([np.zeros((curves, 1)), np.cumsum(scaled, axis=1)], axis=1)
    second = np.concatenate([np.zeros((curves, 1)), np.cumsum(scaled**2, axis=1)], axis=1)
    penalty = (curves + 1) * math.log(curves * points)
    best = np.full(points + 1, np.inf)
    best[0] = 0.0
    origin = np.zeros(points + 1, dtype=np.int64)
    for end in range(1, points + 1):
        starts = np.arange(end)
        count = end - starts
        rss = (second[:, end, None] - second[:, :end]) - (first[:, end, None] - first[:, :end]) ** 2 / count
        total = best[:end] + rss.sum(axis=0) + penalty
        origin[end] = int(np.argmin(total))
        best[end] = total[origin[end]]
    pieces = []
    end = points
    while end:
        pieces.append((int(origin[end]), end - 1))
        end = int(origin[end])
    return pieces[::-1]
