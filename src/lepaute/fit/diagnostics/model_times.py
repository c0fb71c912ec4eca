"""Models of a platform evaluated for arrays of calls: what is judged is what simulations will use."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.fit.kernels.terms import term_column
from lepaute.fit.numeric.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    from lepaute.platform.schema import KernelModel, Piece, Segment


def kernel_seconds(
    model: "KernelModel", m: Floats, n: Floats, k: Floats, node: Integers, cpu: Integers
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of single calls in seconds, each of shape (calls,), neither below zero.

    node, cpu : numbers of the platform, as rows of `per_cpu` have them: sockets in the place of CPUs where these do
    Of the pieces the first that holds a call is taken.
    """
    mean, deviation = np.zeros(len(m)), np.zeros(len(m))
    free = np.ones(len(m), dtype=bool)
    for piece in model.pieces:
        inside = free & _inside(piece, m, n, k)
        free &= ~inside
        if not inside.any():
            continue
        at = np.flatnonzero(inside)
        letters = (m[at], n[at], k[at])
        mean[at], deviation[at] = _polynomial(piece.mean, *letters), _polynomial(piece.noise.sd, *letters)
        _single_cpus(piece, at, (m, n, k), (node, cpu), (mean, deviation))
    return np.maximum(mean, 0.0), np.maximum(deviation, 0.0)


def message_seconds(segments: "Sequence[Segment]", size_bytes: Floats) -> dict[str, Floats]:
    """Times of one message by what is measured: "one_way", "isend"; and "noise", a relative standard deviation."""
    bounds = np.array([segment.above_bytes for segment in segments[1:]], dtype=np.float64)
    which = np.searchsorted(bounds, size_bytes, side="left")

    def of_each(value: str) -> Floats:
        return np.array([float(getattr(segment, value)) for segment in segments])[which]

    def overhead(name: str) -> Floats:
        pairs = np.array([getattr(segment, name)[:2] for segment in segments], dtype=np.float64)[which]
        result: Floats = pairs[:, 0] + pairs[:, 1] * size_bytes
        return result

    one_way = overhead("send") + overhead("receive") + of_each("latency_s") + size_bytes / of_each("bandwidth_Bps")
    noise = np.array([_relative_sd(segment) for segment in segments])[which]
    return {"one_way": one_way, "isend": overhead("isend"), "noise": noise}


def _relative_sd(segment: "Segment") -> float:
    """Of one message; of modes of the logarithm, by the moments of lognormal variates."""
    noise: Any = getattr(segment, "noise", None)
    if noise is None:
        return float(segment.noise_relative_sd)
    first = sum(mode.weight * np.exp(mode.mean + mode.sd**2 / 2) for mode in noise.modes)
    second = sum(mode.weight * np.exp(2 * mode.mean + 2 * mode.sd**2) for mode in noise.modes)
    return float(np.sqrt(max(0.0, second / first**2 - 1.0)))


def _inside(piece: "Piece", m: Floats, n: Floats, k: Floats) -> Booleans:
    inside = np.ones(len(m), dtype=bool)
    for letter, (low, high) in (piece.where or {}).items():
        values = {"m": m, "n": n, "k": k}[letter]
        inside &= (values >= low) & (values <= high)
    return inside


def _polynomial(coefficients: "dict[str, float]", m: Floats, n: Floats, k: Floats) -> Floats:
    result = np.zeros(len(m))
    for term, value in coefficients.items():
        result += value * term_column(term, m, n, k)
    return result


def _single_cpus(
    piece: "Piece",
    at: Integers,
    letters: tuple[Floats, Floats, Floats],
    place: tuple[Integers, Integers],
    results: tuple[Floats, Floats],
) -> None:
    """Replaces mean and deviation of the calls on cpus that have a row of their own; `at`: the calls of the piece."""
    table = piece.per_cpu
    if table is None:
        return
    node, cpu = place[0][at], place[1][at]
    for row in table.rows:
        values = dict(zip(table.columns, row, strict=True))
        mine = at[(node == values["node"]) & (cpu == values[table.columns[1]])]
        if len(mine):
            sizes = tuple(values_of[mine] for values_of in letters)
            results[0][mine] = _polynomial({term: values[term] for term in table.mean_terms}, *sizes)
            results[1][mine] = _polynomial({term: values[f"sd:{term}"] for term in table.sd_terms}, *sizes)
