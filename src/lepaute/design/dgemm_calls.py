"""Design of dgemm calls with the sizes that an application uses, from a table of its calls."""

from collections.abc import Mapping, Sequence

import numpy as np

from lepaute.design.provenance import header_of
from lepaute.design.sizes import shuffled
from lepaute.design.table import Design
from lepaute.errors import DesignError

#: m, n, k, how often an application calls dgemm so, and the seconds that it spends in these calls.
SizeInUse = tuple[int, int, int, float, float]
#: Of the rows, the share drawn by time; the others are drawn by number of calls.
BY_TIME = 0.5


def dgemm_calls_design(
    seed: int, calls: Sequence[SizeInUse], *, rows: int = 400, about: Mapping[str, object] | None = None
) -> Design:
    """Fully shuffled dgemm calls, sizes drawn from those of an application.

    Half of the rows by share of the time, which is what a prediction must get right in sum; half by share of the calls,
    which is what it must get right where many small ones follow each other. Each half is spread evenly over the sizes,
    put in order of their product (systematic sampling), so that no part of the range is missed by bad luck.

    calls : sizes in use; those with a parameter below 1 are no calls and are left out
    about : further keys of the header: what the sizes are for
    Raises DesignError when there is no size, or there are fewer than two rows to draw.
    """
    used = sorted(
        ((m, n, k, often, time_s) for m, n, k, often, time_s in calls if min(m, n, k) >= 1 and often > 0),
        key=lambda size: (size[0] * size[1] * size[2], size[:3]),
    )
    if not used:
        raise DesignError("the application calls dgemm with no size; there is nothing to measure")
    if rows < 2:
        raise DesignError(f"cannot draw {rows} rows, half by time and half by calls; draw two or more")
    rng = np.random.default_rng(seed)
    by_time = round(rows * BY_TIME)
    chosen = [
        *_systematic(rng, np.array([size[4] for size in used]), by_time),
        *_systematic(rng, np.array([size[3] for size in used]), rows - by_time),
    ]
    header = header_of(
        "dgemm",
        seed,
        **{**(about or {}), "rows": rows, "rows_by_time": by_time, "distinct_sizes": len(used)},
        bit_generator="PCG64",
    )
    table = shuffled(rng, [("dgemm", *used[index][:3]) for index in chosen])
    return Design(header, ("kind", "m", "n", "k"), tuple(table))


def _systematic(
    rng: np.random.Generator, weight: "np.ndarray[tuple[int], np.dtype[np.float64]]", count: int
) -> list[int]:
    """`count` positions, each in proportion to its weight: every (sum / count)-th unit from a random start."""
    if float(weight.sum()) <= 0:
        weight = np.ones(len(weight))
    edges = np.cumsum(weight) / float(weight.sum())
    at = (np.arange(count) + rng.random()) / count
    return [int(index) for index in np.minimum(np.searchsorted(edges, at, side="right"), len(weight) - 1)]
