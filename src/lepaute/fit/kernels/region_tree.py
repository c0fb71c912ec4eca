"""A tree of regions: the range of a kernel's parameters is cut in two, and again, where a polynomial each fits better.

Greedy, as in regression trees (Breiman and others 1984) with linear models in the leaves. A cut is kept when it pays
for its parameters in Schwarz's criterion. Errors count relative to the time of a call and in proportion to it, as the
application's time does; those of copies, whose sizes in a run are others than in a design, count relative to it only.
"""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.kernels.terms import default_terms, design_matrix
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.numeric.local import local_median
from lepaute.fit.observations.calls import WALKS_ROWS, Calls

Box = dict[str, tuple[float, float]]

MOST_LEAVES = 7
CANDIDATES = 24
#: Upper bound of a parameter that has none.
MOST = float(2**31 - 1)
#: Durations beyond this many times the median of their neighbours are cut for the search.
CAP = 3.0


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


def boxes_of(calls: Calls, least: int, by: str = "mnk") -> list[Box]:
    """Regions that part the whole range of the parameters, each with `least` calls or more; [{}] if one is enough.

    by: the parameters that may be cut
    """
    y = calls.duration_s
    typical = np.maximum(local_median(calls.work(), y), 1e-3 * float(np.median(np.abs(y))) + 1e-12)
    columns = design_matrix(_terms(calls.kernel), calls.m, calls.n, calls.k)
    counted = np.ones(len(calls)) if calls.kernel in WALKS_ROWS else typical
    data = np.column_stack([columns, np.minimum(y, CAP * typical)]) * (np.sqrt(counted) / typical)[:, None]
    weight = np.ones(len(calls)) if calls.weight is None else calls.weight / float(np.mean(calls.weight))
    data = data * np.sqrt(weight)[:, None]
    data = data / np.maximum(np.sqrt(np.mean(data**2, axis=0)), 1e-300)
    sizes = {"m": calls.m, "n": calls.n, "k": calls.k}
    letters = {letter: values for letter, values in sizes.items() if letter in by and values.any()}
    # Calls that last long count for more, so that the sample is as good as a smaller one of equal calls.
    effective = float(np.sum(weight * counted)) ** 2 / float(np.sum((weight * counted) ** 2))
    price = (columns.shape[1] + 1) * np.log(max(effective, 2.0))
    leaves = [_leaf({}, np.arange(len(calls)), data, letters, least)]
    while len(leaves) < MOST_LEAVES:
        total = max(sum(leaf.cost for leaf in leaves), 1e-300)
        best = max(leaves, key=lambda leaf: leaf.cut.gain if leaf.cut else -1.0)
        if best.cut is None or effective * np.log(total / max(total - best.cut.gain, 1e-6 * total)) < price:
            break
        leaves.remove(best)
        leaves += _halves(best, best.cut, data, letters, least)
    return [leaf.box for leaf in leaves]


def _terms(kernel: str) -> tuple[str, ...]:
    """What a leaf has to fit: of copies, whose time for an element grows from cache to cache, only that and a constant,
    so that a cut costs little and there may be several."""
    terms = default_terms(kernel)
    return (terms[0], terms[-1]) if kernel in WALKS_ROWS else terms


def _halves(leaf: _Leaf, cut: _Cut, data: Floats, letters: dict[str, Floats], least: int) -> list[_Leaf]:
    low, high = leaf.box.get(cut.letter, (0.0, MOST))
    below = letters[cut.letter][leaf.rows] <= cut.edge
    return [
        _leaf({**leaf.box, cut.letter: (low, cut.edge)}, leaf.rows[below], data, letters, least),
        _leaf({**leaf.box, cut.letter: (cut.edge + 1.0, high)}, leaf.rows[~below], data, letters, least),
    ]


def _leaf(box: Box, rows: Integers, data: Floats, letters: dict[str, Floats], least: int) -> _Leaf:
    inside = data[rows]
    whole = float(_residual((inside.T @ inside)[None])[0])
    cuts = [cut for letter, values in letters.items() if (cut := _best_cut(letter, values[rows], inside, whole, least))]
    return _Leaf(box, rows, whole, max(cuts, key=lambda cut: cut.gain, default=None))


def _best_cut(letter: str, values: Floats, data: Floats, whole: float, least: int) -> _Cut | None:
    """The edge at which two polynomials leave least, or None where no edge leaves enough calls on both sides."""
    distinct = np.unique(values)
    if len(distinct) < 2 or len(values) < 2 * least:
        return None
    at = np.linspace(0, len(distinct) - 1, CANDIDATES + 2).round().astype(np.int64)[1:-1]
    edges = np.unique(np.concatenate([distinct[at[at < len(distinct) - 1]], distinct[-2:-1]]))
    which = np.searchsorted(edges, values, side="left")
    parts = []
    for number in range(len(edges)):
        part = data[which == number]
        parts.append(part.T @ part)
    below = np.cumsum(parts, axis=0)
    above = (data.T @ data)[None] - below
    counts = np.cumsum(np.bincount(which, minlength=len(edges) + 1))[: len(edges)]
    left = np.where((counts >= least) & (len(values) - counts >= least), _residual(below) + _residual(above), np.inf)
    best = int(np.argmin(left))
    if not np.isfinite(left[best]):
        return None
    return _Cut(letter, float(np.floor(edges[best])), whole - float(left[best]))


def _residual(sums: Floats) -> Floats:
    """Residual sums of squares from products of (columns, target), shape (parts, p + 1, p + 1)."""
    p = sums.shape[1] - 1
    gram, moment = sums[:, :p, :p], sums[:, :p, p]
    ridge = 1e-9 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(p) + 1e-300 * np.eye(p)
    solved = np.linalg.solve(gram + ridge, moment[:, :, None])[:, :, 0]
    result: Floats = np.maximum(sums[:, p, p] - np.einsum("ij,ij->i", solved, moment), 0.0)
    return result
