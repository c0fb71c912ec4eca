"""Design of steps of HPL: short pieces of the real factorisation, at sizes that a run passes through, and the options
with which they are made: a fraction of all combinations that calls every kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from lepaute.errors import DesignError
from lepaute.measure.design.columns import shortened
from lepaute.measure.design.sizes import in_turn, log_uniform_at, shuffled, strata, uniform_at
from lepaute.measure.design.table import Design, probe_design

#: HPL cuts an update into pieces of NB columns while it waits for a panel, which costs more than the whole
#: at once: up to this many pieces come before the rest, 0 leaves the update whole.
MAX_CHUNKS = 4
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
    about = {"rows": rows, "nbs": tuple(nbs), "max_n": max_n, "steps": steps, "ranks": ranks}
    return probe_design("hpl_step", seed, ("kind", "m", "n", "nb", "chunks", "steps"), table, **about)


def _step(
    rng: np.random.Generator, m: int, nb: int, fewest: int, most: int, ranks: int
) -> tuple[str, int, int, int, int, int]:
    """One row: the number of columns, chunks and steps drawn for m rows of two ranks, as far as there is room."""
    half = max(m // 2, fewest * nb)
    n = (m, m, half, int(rng.integers(half, m + 1)))[int(rng.integers(4))]
    steps = min(int(rng.integers(fewest, most + 1)), n // nb)
    return ("hpl_step", m * ranks // 2, n, nb, min(int(rng.integers(MAX_CHUNKS + 1)), n // nb - steps), steps)


_TRANSPOSED, _NOT = "transposed", "no-transposed"
#: Forms of U and the swap: the three that call other kernels than the defaults do.
_FORMS = ((_NOT, "binary-exchange"), (_NOT, "spread-roll"), (_TRANSPOSED, "spread-roll"))
#: Values of PFACT and NBMIN. dger is called where PFACT is right and a leaf has three columns or more.
_LEAVES = (("right", 8), ("left", 4), ("crout", 1), ("right", 4), ("left", 2), ("crout", 8))
#: With this many runs, every kernel that HPL calls under any option is called.
MIN_RUNS = len(_FORMS)


@dataclass(frozen=True, slots=True)
class StepOptions:
    """Options of HPL that change which kernels a step calls, and on which sizes; the defaults are those of `Hpl`."""

    nbmin: int = 2
    ndiv: int = 2
    pfact: str = "crout"
    rfact: str = "right"
    l1: str = _TRANSPOSED
    u: str = _TRANSPOSED
    swap: str = "binary-exchange"
    equil: int = 1

    def words(self) -> tuple[str, ...]:
        """As arguments of the step probe."""
        return tuple(word for field in fields(self) for word in (f"--{field.name}", str(getattr(self, field.name))))


def drawn_step_options(rng: np.random.Generator, runs: int) -> list[StepOptions]:
    """Options for this many runs, balanced: each level of each factor comes as often as the others, or once more.

    Of MIN_RUNS or more, the runs together with some of the default options call every kernel of HPL.
    """
    columns = (
        in_turn(rng, _FORMS, runs),
        in_turn(rng, _LEAVES[: len(_FORMS)] if runs < len(_LEAVES) else _LEAVES, runs),
        in_turn(rng, ("left", "crout", "right"), runs),
        in_turn(rng, (_NOT, _TRANSPOSED), runs),
        in_turn(rng, (2, 3), runs),
        in_turn(rng, (0, 1), runs),
    )
    return [
        StepOptions(nbmin=nbmin, ndiv=ndiv, pfact=pfact, rfact=rfact, l1=l1, u=u, swap=swap, equil=equil)
        for (u, swap), (pfact, nbmin), rfact, l1, ndiv, equil in zip(*columns, strict=True)
    ]
