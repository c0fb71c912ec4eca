"""Design of steps of HPL: short pieces of the real factorisation, at sizes that a run passes through."""

from collections.abc import Sequence

import numpy as np

from lepaute.design.cells import shortened
from lepaute.design.provenance import header_of
from lepaute.design.sizes import in_turn, log_uniform_at, shuffled, strata, uniform_at
from lepaute.design.table import Design
from lepaute.errors import DesignError

#: HPL cuts an update into pieces of NB columns while it waits for a panel, which costs more than the whole
#: at once: up to this many pieces come before the rest, 0 leaves the update whole.
MOST_CHUNKS = 4
#: From small to large among those that people run HPL with.
DEFAULT_NBS = (64, 128, 256)


def hpl_step_design(
    seed: int,
    *,
    rows: int = 24,
    nbs: Sequence[int] = DEFAULT_NBS,
    max_n: int = 8000,
    steps: tuple[int, int] = (2, 3),
    ranks: int = 2,
) -> Design:
    """Fully shuffled steps; m rows and n columns of the trailing matrix at the first of `steps` steps.

    ranks: of the process column that makes the steps; with more than two, m is ranks / 2 times what is said below, so
    that the work of a rank does not depend on their number.
    Each row has one of the block sizes `nbs`, each of which has as many rows as the others, or one more. Half of the m
    have a density that grows as m does, as the time of a run is spent in its large steps; half are log-uniform, for the
    end of a run, where the matrix is small and the copies and leaf kernels weigh most. The sizes are stratified, and
    neighbours in size take the block sizes in turn. The largest matrix and, for one block size, the smallest with room
    for the fewest steps are always among them: the step after the first, whose caches are those of a run, then covers
    nb to max_n - nb rows. n is m (one process column) in half of the rows, m/2 (two) or between in the others. More
    than the fewest steps are drawn only for the smaller half of the sizes, where they are cheap. In every row
    m >= n >= (steps + chunks) * nb.
    Raises DesignError when no matrix up to max_n has room for the steps, or the numbers make no sense.
    """
    fewest, most = steps
    if rows < 1 or ranks < 1 or not nbs or min(nbs) < 1 or not 1 <= fewest <= most or fewest * max(nbs) > max_n:
        columns = shortened(" or ".join(map(str, nbs)), 60) or "no"
        raise DesignError(
            f"cannot draw {rows} rows of {fewest} to {most} steps of {columns} columns in "
            f"matrices up to {max_n} for {ranks} ranks; need rows, ranks and NB >= 1, 1 <= fewest steps <= most, and "
            "fewest steps * NB <= the largest size"
        )
    rng = np.random.default_rng(seed)
    blocks = in_turn(rng, nbs, rows)
    smallest = [fewest * nb for nb in blocks]
    sizes = [max_n, *smallest[1:2]]
    by_time = (rows - len(sizes) + 1) // 2
    logarithmic = rows - len(sizes) - by_time
    sizes += [uniform_at(u**0.5, smallest[2 + i], max_n) for i, u in enumerate(strata(rng, by_time))]
    sizes += [int(log_uniform_at(u, smallest[len(sizes) + i], max_n)) for i, u in enumerate(strata(rng, logarithmic))]
    drawn = shuffled(rng, list(zip(sizes, blocks, strict=True)))
    table = [_step(rng, m, nb, fewest, most if m <= max_n // 2 else fewest, max(ranks, 2)) for m, nb in drawn]
    header = header_of(
        "hpl_step", seed, rows=rows, nbs=tuple(nbs), max_n=max_n, steps=steps, ranks=ranks, bit_generator="PCG64"
    )
    return Design(header, ("kind", "m", "n", "nb", "chunks", "steps"), tuple(table))


def _step(
    rng: np.random.Generator, m: int, nb: int, fewest: int, most: int, ranks: int
) -> tuple[str, int, int, int, int, int]:
    """One row: the number of columns, chunks and steps drawn for m rows of two ranks, as far as there is room."""
    half = max(m // 2, fewest * nb)
    n = (m, m, half, int(rng.integers(half, m + 1)))[int(rng.integers(4))]
    steps = min(int(rng.integers(fewest, most + 1)), n // nb)
    chunks = min(int(rng.integers(MOST_CHUNKS + 1)), n // nb - steps)
    return ("hpl_step", m * ranks // 2, n, nb, chunks, steps)
