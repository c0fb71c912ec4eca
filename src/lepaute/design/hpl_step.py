"""Design of steps of HPL: short pieces of the real factorisation, at sizes that a run passes through."""

import numpy as np

from lepaute.design.provenance import header_of
from lepaute.design.sizes import shuffled, stratified_log_uniform, stratified_uniform
from lepaute.design.table import Design
from lepaute.errors import DesignError

#: HPL cuts an update into pieces of NB columns while it waits for a panel, which costs more than the whole
#: at once: up to this many pieces come before the rest, 0 leaves the update whole.
MOST_CHUNKS = 4


def hpl_step_design(
    seed: int,
    *,
    rows: int = 24,
    nb: int = 128,
    max_n: int = 8000,
    steps: tuple[int, int] = (2, 3),
) -> Design:
    """Fully shuffled steps; m rows and n columns of the trailing matrix at the first of `steps` steps.

    Half of the m are uniform, as the steps of a run are; half log-uniform, for the end of a run, where the
    matrix is small and the copies and leaf kernels weigh most. The largest matrix and the smallest with room
    for the fewest steps are always among them: the step after the first, whose caches are those of a run, then
    covers nb to max_n - nb rows. n is m (one process column), m/2 (two), or between. More than the fewest
    steps are drawn only for the smaller half of the sizes, where they are cheap. In every row
    m >= n >= (steps + chunks) * nb.
    Raises DesignError when no matrix up to max_n has room for the steps, or the numbers make no sense.
    """
    fewest, most = steps
    smallest = fewest * nb
    if rows < 1 or nb < 1 or not 1 <= fewest <= most or smallest > max_n:
        raise DesignError(
            f"cannot draw {rows} rows of {fewest} to {most} steps of {nb} columns in matrices up to {max_n}; "
            "need rows >= 1, NB >= 1, 1 <= fewest steps <= most, and fewest steps * NB <= the largest size"
        )
    rng = np.random.default_rng(seed)
    extremes = [max_n, smallest][:rows]
    uniform = (rows - len(extremes) + 1) // 2
    logarithmic = rows - len(extremes) - uniform
    sizes = [
        *extremes,
        *stratified_uniform(rng, uniform, smallest, max_n),
        *(int(m) for m in stratified_log_uniform(rng, logarithmic, smallest, max_n)),
    ]
    table = [_step(rng, m, nb, fewest, most if m <= max_n // 2 else fewest) for m in shuffled(rng, sizes)]
    header = header_of("hpl_step", seed, rows=rows, nb=nb, max_n=max_n, steps=steps, bit_generator="PCG64")
    return Design(header, ("kind", "m", "n", "nb", "chunks", "steps"), tuple(table))


def _step(rng: np.random.Generator, m: int, nb: int, fewest: int, most: int) -> tuple[str, int, int, int, int, int]:
    """One row: the number of columns, chunks and steps drawn for m rows, as far as the matrix has room for them."""
    half = max(m // 2, fewest * nb)
    n = (m, half, int(rng.integers(half, m + 1)))[int(rng.integers(3))]
    steps = min(int(rng.integers(fewest, most + 1)), n // nb)
    chunks = min(int(rng.integers(MOST_CHUNKS + 1)), n // nb - steps)
    return ("hpl_step", m, n, nb, chunks, steps)
