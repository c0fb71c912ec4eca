"""The test of Chew (1966), one observation after the other, as the formulas have it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Slow:
    """n and the rest of one test; None where there are fewer than p + 2 observations, or S has no inverse."""

    n: int
    t: float
    p_value: float


def slow_tests(values: np.ndarray, kept: Sequence[bool], r: int) -> list[Slow | None]:
    """A test for each row of `values`, shape (rows, p), of one series in the order of time."""
    found: list[Slow | None] = []
    earlier: list[np.ndarray] = []
    for value, is_kept in zip(values, kept, strict=True):
        window = [value, *earlier[len(earlier) - (r - 1) :]] if r > 1 else [value]
        reference = earlier[: len(earlier) - (r - 1)] if len(earlier) >= r - 1 else []
        found.append(_slow_test(np.array(reference), np.mean(window, axis=0), r))
        if is_kept:
            earlier.append(value)
    return found


def _slow_test(reference: np.ndarray, m: np.ndarray, r: int) -> Slow | None:
    n, p = len(reference), len(m)
    if n < p + 2:
        return None
    s = np.atleast_2d(np.cov(reference, rowvar=False))
    if np.linalg.matrix_rank(s) < p:
        return None
    d = m - reference.mean(axis=0)
    t = n * r * (n - p) / ((n + r) * (n - 1) * p) * float(d @ np.linalg.inv(s) @ d)
    return Slow(n, t, float(stats.f.sf(t, p, n - p)))
