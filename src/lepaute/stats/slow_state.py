"""A machine that is slow for a while now and then: share of the time, length of an episode, factor.

Two states alternate, each for an exponential time: mean length L of an episode, share p of the time. What is seen are
moments, in launches and sentinels with gaps between them, so that the state at a moment, given that at the one before,
has the probabilities of a Markov chain in continuous time; episodes that begin or end unseen need no other care. The
posterior of (log L, logit p) is worked out on a grid; its means and standard deviations are the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lepaute.stats.expanding import Booleans, Floats

#: Priors: of the length, median and standard deviation of the logarithm; of the odds of the share, the same.
LENGTH_S, LENGTH_LOG_SD = 2.0, 1.2
ODDS, ODDS_LOG_SD = 0.03, 1.5
GRID, SPAN_SD = 61, 3.5
#: Of the logarithm of the factor, where few episodes were seen: with how many values like this it is shrunk.
FACTOR_LOG_SD, PRIOR_VALUES = 0.2, 1.0


@dataclass(frozen=True, slots=True)
class SlowStateEstimate:
    """share, length_s, factor: medians;  odds_error, length_error, factor_error : standard errors of the logarithms

    factor_relative_sd : standard deviation of the logarithm of the factor between episodes
    """

    share: float
    length_s: float
    factor: float
    odds_error: float
    length_error: float
    factor_error: float
    factor_relative_sd: float
    episodes: int


def fit_slow_state(series: Sequence[tuple[Floats, Booleans]], factors: Floats) -> SlowStateEstimate:
    """From moments at which a machine was slow or not.

    series : of each machine and session the dates in seconds, rising, and whether it was slow then
    factors : of each episode that was seen, > 1, shape (episodes,)
    Raises ValueError if no episode was seen.
    """
    if not any(slow.any() for _, slow in series) or not len(factors):
        raise ValueError("no slow moment")
    length = np.log(LENGTH_S) + LENGTH_LOG_SD * np.linspace(-SPAN_SD, SPAN_SD, GRID)[:, None]
    odds = np.log(ODDS) + ODDS_LOG_SD * np.linspace(-SPAN_SD, SPAN_SD, GRID)[None, :]
    share = 1.0 / (1.0 + np.exp(-odds))
    density = -0.5 * ((length - np.log(LENGTH_S)) / LENGTH_LOG_SD) ** 2
    density = density - 0.5 * ((odds - np.log(ODDS)) / ODDS_LOG_SD) ** 2
    rate = np.exp(-length) / (1.0 - share)  # of forgetting: 1 / L + 1 / gap
    moves: dict[tuple[bool, bool, float], int] = {}
    for date_s, slow in series:
        if len(slow):
            density = density + np.log(share if slow[0] else 1.0 - share)
        for before, after, gap_s in zip(slow[:-1], slow[1:], np.diff(date_s), strict=True):
            key = (bool(before), bool(after), float(f"{max(gap_s, 1e-3):.2g}"))
            moves[key] = moves.get(key, 0) + 1
    for (before, after, gap_s), count in moves.items():
        kept = np.exp(-rate * gap_s)
        becomes = share if after else 1.0 - share
        density = density + count * np.log(becomes * (1.0 - kept) + (kept if before == after else 0.0))
    weight = np.exp(density - density.max())
    weight /= weight.sum()

    def moments(values: Floats) -> tuple[float, float]:
        mean = float(np.sum(weight * values))
        return mean, float(np.sqrt(np.sum(weight * (values - mean) ** 2)))

    (log_length, length_error), (log_odds, odds_error) = moments(length), moments(odds)
    logs = np.log(factors)
    count = len(logs)
    mean = float(logs.mean())
    between = float(
        np.sqrt((PRIOR_VALUES * FACTOR_LOG_SD**2 + np.sum((logs - mean) ** 2)) / (PRIOR_VALUES + max(count - 1, 0)))
    )
    return SlowStateEstimate(
        1.0 / (1.0 + float(np.exp(-log_odds))),
        float(np.exp(log_length)),
        float(np.exp(mean)),
        odds_error,
        length_error,
        between / float(np.sqrt(count)),
        between,
        count,
    )
