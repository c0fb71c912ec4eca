"""A row over sessions: campaigns of both libraries that are apart in time, each in its own state of the machine.

What is estimated: the expectation over sessions of the mean over mpiruns of log(right) - log(left), each inside its
block; as a ratio, geometric means over mpiruns, then over sessions. Student's t over the means of the sessions, which
are independent where their blocks are not; why: docs/design/decisions/clocks_and_comparisons.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from lepaute.stats.expanding import Booleans, Floats

#: Sessions below which there is no verdict, and below which a state of the machine may well be missed.
LEAST, FEW = 3, 6


@dataclass(frozen=True, slots=True)
class SessionsTest:
    """Student's t over the means of sessions; nothing is known (p 1, no bounds) of fewer than LEAST, or of equal ones.

    error : standard error of the mean; inf if it is not known
    lower, higher: one-sided p-values, that the expectation is below, above 0
    """

    sessions: int
    mean: float
    error: float
    low: float
    high: float
    two_sided: float
    lower: float
    higher: float


def session_means(values: Floats, second: Booleans, blocks: npt.ArrayLike, sessions: npt.ArrayLike) -> Floats:
    """How far the second sample lies above the first one, mean of each session that has both; shape (sessions,).

    values, second, blocks, sessions: shape (n,); a block belongs to one session. A block counts by its values, n1 n2 /
    (n1 + n2), which is least squares with an effect of each block; blocks that lack a sample say nothing.
    """
    keys = np.stack([np.unique(one, return_inverse=True)[1] for one in (sessions, blocks)])
    names, at = np.unique(keys, axis=1, return_inverse=True)
    count, total = np.zeros((2, names.shape[1])), np.zeros((2, names.shape[1]))
    side = second.astype(int)
    np.add.at(count, (side, at.ravel()), 1.0)
    np.add.at(total, (side, at.ravel()), values)
    both = (count > 0).all(axis=0)
    count, total, session = count[:, both], total[:, both], names[0, both]
    weight = count[0] * count[1] / count.sum(axis=0)
    sums = np.bincount(session, weight * (total[1] / count[1] - total[0] / count[0]))
    weights = np.bincount(session, weight)
    return np.asarray(sums[weights > 0] / weights[weights > 0])


def student_test(means: Floats, confidence: float = 0.95) -> SessionsTest:
    """means: of each session, shape (n,), n >= 1"""
    n, mean = len(means), float(means.mean())
    error = float(means.std(ddof=1)) / sqrt(n) if n > 1 else inf
    if error <= 1e-12 * abs(mean):
        error = inf
    if n < LEAST or error == inf:
        return SessionsTest(n, mean, error, -inf, inf, 1.0, 1.0, 1.0)
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * error
    lower, higher = (float(stdtr(n - 1, sign * mean / error)) for sign in (1, -1))
    return SessionsTest(n, mean, error, mean - half, mean + half, min(1.0, 2 * min(lower, higher)), lower, higher)


def sessions_to_decide(truths: Floats, spread: float, made: int, most: int, level: float, margin: float) -> Floats:
    """Sessions in all that show each true shift, or that none above the margin is left; most + 1 where most do not.

    truths : absolute values, shape (n,); spread : standard deviation of the means of sessions
    level  : two-sided p-value at which a difference counts as shown; margin : logarithm of a ratio
    """
    counts = np.arange(max(LEAST, made + 1), most + 1)
    error = spread / np.sqrt(counts)
    shown, none_left = (error * stdtrit(counts - 1, 1 - each / 2) for each in (level, 0.05))
    decided = (truths[:, None] >= shown) | (margin - truths[:, None] >= none_left)
    return np.asarray(np.where(decided.any(axis=1), counts[decided.argmax(axis=1)], most + 1.0))


def doubts(sessions: int, seeds: Sequence[int | None], hosts: Sequence[str]) -> list[str]:
    """Doubts about a comparison over sessions of these seeds and on these machines, sentences."""
    lines = []
    if LEAST <= sessions < FEW:
        lines.append(
            f"{sessions} sessions miss one of two equally frequent states of the machine, where a state lasts for a "
            f"whole session, with a chance of {100 * 2 ** (1 - sessions):.0f} %; {FEW} sessions with 3 %"
        )
    if len(set(known := [seed for seed in seeds if seed is not None])) < len(known):
        lines.append("sessions were measured in the same order (--seed): what it does to a library is in all of them")
    if len(names := sorted(set(filter(None, hosts)))) > 1:
        lines.append(
            f"sessions were measured on {len(names)} machines ({', '.join(names)}); the verdict averages over them"
        )
    return lines
