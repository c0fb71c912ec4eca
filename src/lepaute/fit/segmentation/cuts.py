"""Where to cut one or more series best, for each number of cuts."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lepaute import _core
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.segmentation.points import MOST_CANDIDATES, Points, common_x, merged, thinned

#: Times that each cut is moved to its best place between its neighbours.
SWEEPS = 2


def best_cuts(
    parts: Sequence[Points],
    scales: Sequence[float],
    constant: bool,
    least: int,
    most: int,
    most_exact: int = MOST_CANDIDATES,
) -> list[tuple[tuple[float, ...], float]]:
    """The cuts into 1, 2, ... segments whose lines leave least, as many as there can be up to `most`.

    Each with what it leaves: the sum over the series of their sums of squares times their scales.

    scales : factors on the sums of squares of the series
    Exact, but for the logarithmic objective with more than `most_exact` distinct x: there neighbours are merged into
    two fifths as many points first, and the cuts between these are exact; once more with the points next to these cuts
    as they are, `most_exact` in all; and each cut is then moved to the best of the x of the two merged points next to
    it.
    """
    fine = common_x(parts)
    if not parts[0].logarithmic or len(fine) <= most_exact:
        return _between(parts, scales, fine, constant, least, most)
    edges = thinned(fine, 2 * most_exact // 5)
    first = [one for one, _ in _between([merged(part, edges) for part in parts], scales, edges, constant, least, most)]
    opened = _opened(fine, edges, first, most_exact)
    cuts = [one for one, _ in _between([merged(part, opened) for part in parts], scales, opened, constant, least, most)]
    if not constant and len(parts) == 1:
        whole = parts[0].series(fine)
        cuts = [_sharpened(whole, fine, edges, one, least) for one in cuts]
    left = [
        [scale * residual_of(part, one, constant) for part, scale in zip(parts, scales, strict=True)] for one in cuts
    ]
    return [(one, sum(costs)) for one, costs in zip(cuts, left, strict=True)]


def _left(series: "_core.FitSeries", begin: int, place: int, end: int) -> float:
    """What two lines leave that meet before the point `place`."""
    return sum(_core.best_line(series, low, high, True, False)[2] for low, high in ((begin, place), (place, end)))


def _between(
    parts: Sequence[Points], scales: Sequence[float], edges: Floats, constant: bool, least: int, most: int
) -> list[tuple[tuple[float, ...], float]]:
    """The best cuts at `edges`, exactly."""
    scaled = [part.series(edges, scale) for part, scale in zip(parts, scales, strict=True)]
    partitions = _core.best_partitions(scaled, parts[0].logarithmic, constant, least, most)
    return [(tuple(float(edges[cut - 1]) for cut in one), float(cost)) for one, cost in partitions]


def _opened(fine: Floats, edges: Floats, cuts: Sequence[tuple[float, ...]], most: int) -> Floats:
    """The edges, and all x between those next to a cut, cuts of few first, `most` at most."""
    result = edges
    for cut in dict.fromkeys(place for one in cuts for place in one):
        at = int(np.searchsorted(edges, cut))
        low = edges[at - 1] if at else -np.inf
        inside = fine[(fine > low) & (fine <= edges[min(at + 1, len(edges) - 1)])]
        wider: Floats = np.union1d(result, inside)
        if len(wider) > most:
            break
        result = wider
    return result


def residual_of(part: Points, cuts: tuple[float, ...], constant: bool) -> float:
    """The sum of squares that the best lines between the cuts leave of one series."""
    bounds = [0, *np.searchsorted(part.x, cuts, side="right").tolist(), len(part)]
    series = part.series(part.x[-1:])
    lines = [_core.best_line(series, begin, end, part.logarithmic, constant) for begin, end in pairwise(bounds)]
    return float(sum(left for _, _, left in lines))


def _sharpened(
    series: "_core.FitSeries", fine: Floats, edges: Floats, cuts: tuple[float, ...], least: int
) -> tuple[float, ...]:
    """Each cut at the best x between the candidates next to it, its neighbours held."""
    places = [int(np.searchsorted(fine, cut)) + 1 for cut in cuts]  # of the first point above
    for _ in range(SWEEPS):
        for number, cut in enumerate(cuts):
            begin = places[number - 1] if number else 0
            end = places[number + 1] if number + 1 < len(places) else len(fine)
            at = int(np.searchsorted(edges, cut))
            low = int(np.searchsorted(fine, edges[max(0, at - 1)])) + 1
            high = int(np.searchsorted(fine, edges[min(at + 1, len(edges) - 1)])) + 1
            low, high = max(low, begin + least), min(high, end - least)
            if low > high:
                continue
            # It was sought by following lines from one end of the range: the old place may still be better.
            place = int(_core.best_log_cut(series, begin, end, low, high))
            if _left(series, begin, place, end) < _left(series, begin, places[number], end):
                places[number] = place
    return tuple(float(fine[place - 1]) for place in places)
