"""A run in which nothing has changed gets a cause in 5 % of the cases at most."""

import numpy as np
from scipy import stats

import lepaute as lp
from lepaute.study.slow_job.course import COMPUTE, MESSAGE
from lepaute.study.slow_job.matching import Pieces
from lepaute.study.slow_job.suspects import LEVEL, suspects_of

CASES, RANKS, STEPS = 1000, 12, 20


def test_false_accusations_are_no_more_than_promised() -> None:
    rng = np.random.default_rng(20261201)
    accused = sum(
        bool(suspects_of(pieces_of_chance(rng, 3 + case % 8), [r // 3 for r in range(RANKS)])) for case in range(CASES)
    )
    # 5 % of 1000 with all tests at their level, if these were independent; more is a chance of one in a million
    assert accused <= stats.binom.ppf(1 - 1e-6, CASES, LEVEL)


def pieces_of_chance(rng: np.random.Generator, usual: int) -> Pieces:
    """Runs that differ by noise alone: of all, of nodes, of ranks, of sites and of pieces."""
    rank = np.repeat(np.arange(RANKS), STEPS)
    what = np.tile(np.arange(STEPS) % 3, RANKS)
    runs = 1 + usual
    noise = 0.01 * rng.standard_normal(runs) + 0.01 * rng.standard_normal((RANKS // 3, runs))[rank // 3]
    noise = noise + 0.01 * rng.standard_normal((RANKS, runs))[rank] + 0.005 * rng.standard_normal((3, runs))[what]
    noise = noise + 0.05 * rng.standard_normal((len(rank), runs))
    weights = np.where(what == 2, 0.1, 1.0)[:, None] * np.exp(noise)
    messages = np.flatnonzero(what == 2)
    node = rank[messages] // 3
    return Pieces(
        graph=None,  # type: ignore[arg-type]  # nothing is replayed
        rank=rank,
        date_s=np.zeros(len(rank)),
        what=what,
        whats=((COMPUTE, "a"), (COMPUTE, "b"), (MESSAGE, "")),
        touched=messages,
        link=np.sort(np.stack((node, (node + 1) % (RANKS // 3)), axis=1), axis=1),
        weight_s=weights,
        node=np.arange(len(rank)),
        piece=np.arange(len(rank)),
        seconds=weights,
        time_s=np.full(runs, weights.sum() / runs / RANKS),
        followed=1.0,
    )


def test_the_public_function_is_the_one_that_is_tested() -> None:
    assert lp.why.__module__ == "lepaute.study.slow_job.explaining"
