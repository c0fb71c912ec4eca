"""What a scheduler of repetitions measures in its next round, within what is left of its budget."""

from collections.abc import Hashable, Mapping, Sequence
from math import fsum, inf, isfinite
from typing import TypeVar

from lepaute.errors import InputError
from lepaute.stats.stopping import Progress, Target, assess

Key = TypeVar("Key", bound=Hashable)


def next_round(
    levels: Mapping[Key, Sequence[float]],
    target: Target,
    *,
    observations: int | None = None,
    seconds: float | None = None,
    costs_s: Mapping[Key, float] | None = None,
) -> dict[Key, int]:
    """How many further observations of each level the next round takes; the caller shuffles them together.

    levels       : the values of each level so far, as they came; empty for a new one
    observations : how many the round may have at most, over all levels; None: as many as are needed
    seconds      : how long the round may take at most
    costs_s      : how long an observation of each level takes, of those where that is known; None: the values are
                   durations, in s, and an observation takes the mean of its level
    Every level of `levels` is a key of the result, with 0 where it needs nothing or gets nothing; all 0: it is over, as
    `assess(..., ended=True)` then says for each level. The level furthest from its target (relative half-width over
    target; those without an interval before all) gets what it needs, then the next one. A level of which no duration is
    known costs, when seconds count, as much as the longest level; where none is known, every level gets one observation
    (as far as `observations` allows), and the next round is planned with what these took. Raises InputError for a
    negative or undefined budget, or values that cannot be.
    """
    if observations is not None and observations < 0:
        raise InputError(f"the budget is {observations!r} observations; it must be >= 0")
    if seconds is not None and not (isfinite(seconds) and seconds >= 0):
        raise InputError(f"the budget is {seconds!r} seconds; it must be finite and >= 0")
    progress = {key: assess(values, target) for key, values in levels.items()}
    # sorted() keeps the order of equals, so the plan depends on nothing but the arguments
    order = sorted(progress, key=lambda key: _distance(progress[key]), reverse=True)
    costs = costs_s
    if costs is None:
        costs = {key: fsum(values) / len(values) for key, values in levels.items() if values}
    longest = max(costs.values(), default=None)
    left, left_s = inf if observations is None else observations, inf if seconds is None else seconds
    plan = dict.fromkeys(levels, 0)
    for key in order:
        count = progress[key].more
        if seconds is not None and longest is None:
            count = min(count, 1 if seconds > 0 else 0)
        cost_s = costs.get(key, longest or 0.0) if seconds is not None else 0.0
        affordable = left_s / cost_s if cost_s > 0 else inf
        # a whole number of observations; what 0.1 + 0.1 + 0.1 loses to rounding must not cost one
        plan[key] = int(min(count, left, affordable * (1 + 1e-12)))
        left -= plan[key]
        left_s -= plan[key] * cost_s
    return plan


def _distance(progress: Progress) -> float:
    return progress.relative_half_width / progress.target.relative_half_width
