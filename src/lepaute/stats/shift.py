"""A stretch of a series whose level differs from the rest, tested against values whose order says nothing.

`find_steps` takes neighbours that are alike for the series' usual state, and says when its level changed beyond that;
of thirty values it needs a third on either side. The question here is another: is there any order in time at all? So
the test is exact by permutation of the values, and the machine whose neighbouring values are alike is what it looks
for. The statistic is that of circular binary segmentation (Olshen et al., Biostatistics 5, 2004) on a line: the largest
standardised difference between the mean of a stretch and that of the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: A stretch and the rest have at least so many values: a single outlier is none.
SHORTEST = 2
#: Permutations; all of them only where the first ones leave it open.
FIRST, ALL = 200, 5000
#: Longer series are cut into so many means of neighbours: all stretches are compared.
MOST_VALUES = 60
_CHUNK = 1_000_000


@dataclass(frozen=True, slots=True)
class Shift:
    """The stretch values[first:last] of a series of `count`, and the chance of one as clear without any order."""

    first: int
    last: int
    count: int
    p_value: float

    @property
    def lasts(self) -> bool:
        """It is a step: it reaches the end of the series, or begins with it."""
        return self.first == 0 or self.last == self.count


def largest_shift(values: "Sequence[float] | Floats", seed: int = 1) -> Shift | None:
    """The stretch that differs most; None with fewer than 2 SHORTEST values, or where all are equal.

    values : in the order of time, in any unit
    seed   : of the permutations; the same arguments give the same result
    """
    import numpy as np

    every = np.asarray(values, dtype=np.float64)
    x = every
    bounds = np.arange(len(every) + 1)
    if len(every) > MOST_VALUES:
        parts = np.array_split(every, MOST_VALUES)
        x = np.array([part.mean() for part in parts])
        bounds = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    n = len(x)
    if n < 2 * SHORTEST or float(np.ptp(x)) == 0.0:
        return None
    first, last = np.triu_indices(n + 1, SHORTEST)
    kept = last - first <= n - SHORTEST
    first, last = first[kept], last[kept]
    length = (last - first).astype(np.float64)
    # |mean inside - mean outside| sqrt(L (n - L) / n) for values of mean 0.
    weight = np.sqrt(n / (length * (n - length)))
    x = x - x.mean()

    def statistics(rows: "Floats") -> "Floats":
        sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
        found: Floats = np.abs(sums[:, last] - sums[:, first]) * weight
        return found

    seen = statistics(x[None, :])[0]
    at = int(np.argmax(seen))
    largest = float(seen[at]) * (1 - 1e-12)
    rng = np.random.default_rng((seed, n))
    beyond = done = 0
    for count in (FIRST, ALL - FIRST):
        for begin in range(0, count, max(1, _CHUNK // len(first))):
            batch = min(count - begin, max(1, _CHUNK // len(first)))
            rows = rng.permuted(np.broadcast_to(x, (batch, n)), axis=1)
            beyond += int(np.count_nonzero(statistics(rows).max(axis=1) >= largest))
            done += batch
        if beyond > 0.05 * done:
            break
    return Shift(int(bounds[first[at]]), int(bounds[last[at]]), len(every), (1 + beyond) / (1 + done))
