"""Fleets whose machines may change a little, and when that is worth a look; beside it, a CUSUM of the same level.

The same streams serve tests/promises/test_worth_a_look.py and validation/alarms.py: noise of one standard deviation,
and an effect of each day of half of that, which all machines of a fleet share.
"""

import numpy as np
import numpy.typing as npt

from lepaute.stats.group_effects import CommonEffect
from lepaute.stats.small_changes import CHANCE, DAYS, MEMORY, SmallChanges, enough

from .null_streams import autoregressive

Floats = npt.NDArray[np.float64]

NOISES = ("independent", "AR(1) 0.5", "Student t, 4 df", "AR(1) 0.5 of t, 4 df")
#: Days before a change.
BEFORE = 100
#: Of Page's CUSUM: half of the change that it is for, and how far out a value counts.
ALLOWANCE, WINSOR = 0.5, 3.0


def fleets_of(noise: str, size: int, fleets: int, values: int, seed: int) -> Floats:
    """Shape (fleets * size, values), one fleet after the other."""
    rng = np.random.default_rng((20261127, seed, size))
    shape = (fleets * size, values)
    own = rng.standard_t(4, size=shape) / np.sqrt(2) if "t, 4 df" in noise else rng.normal(size=shape)
    own = autoregressive(own, 0.5) if "AR(1)" in noise else own
    return 100 + own + np.repeat(0.5 * rng.normal(size=(fleets, values)), size, axis=0)


def changed(change: float | None, size: int, fleets: int, jobs: int, seed: int, days: int) -> Floats:
    """The first machine of each fleet changes after BEFORE days: by standard deviations, or to three times these."""
    values = fleets_of("independent", size, fleets, (BEFORE + days) * jobs, seed)
    hit, begun = np.arange(fleets) * size, BEFORE * jobs
    if change is None:
        values[hit, begun:] += np.random.default_rng(seed).normal(size=(fleets, days * jobs)) * np.sqrt(8)
    else:
        values[hit, begun:] -= change
    return values


def shown(values: Floats, size: int, jobs: int = 1) -> npt.NDArray[np.bool_]:
    """Where the evidence of each stream is enough for its fleet, shape (streams, values); so many jobs a day."""
    groups = np.arange(len(values)) // size
    state, effect = SmallChanges.start(len(values), MEMORY), CommonEffect(groups)
    found = np.zeros(values.shape, np.bool_)
    for at in range(values.shape[1]):
        if at % jobs == 0:
            state.begin_day()
        common = effect.take(state.deviations(values[:, at]))
        state.update(values[:, at], groups, common)
        found[:, at] = state.evidence() >= enough(np.array([size]))
    return found


def days_until(found: npt.NDArray[np.bool_], size: int, jobs: int = 1) -> Floats:
    """Of the machine of each fleet that changed, inf where it is never found; a value of the first day is a part."""
    after = found[::size, -(found.shape[1] - BEFORE * jobs) :]
    return np.where(after.any(axis=1), (after.argmax(axis=1) + 1) / jobs, np.inf)


def cusums(values: Floats, size: int, jobs: int = 1) -> Floats:
    """The larger of both CUSUMs of each stream after BEFORE days, of residuals to the median of its fleet.

    Level and scale are those of the BEFORE days, for ever.
    """
    begun = BEFORE * jobs
    by_fleet = values.reshape(-1, size, values.shape[1])
    z = (by_fleet - np.median(by_fleet, axis=1, keepdims=True)).reshape(values.shape)
    z = (z - z[:, :begun].mean(axis=1, keepdims=True)) / z[:, :begun].std(axis=1, keepdims=True)
    z = np.clip(z, -WINSOR, WINSOR)[:, begun:]
    sums = np.zeros((2, len(values)))
    largest = np.empty(z.shape)
    for at in range(z.shape[1]):
        sums = np.maximum(0.0, sums + np.stack([z[:, at], -z[:, at]]) - ALLOWANCE)
        largest[:, at] = sums.max(axis=0)
    return largest


def cusum_bound(size: int, fleets: int, seed: int, jobs: int = 1) -> float:
    """What the CUSUM of any machine exceeds within DAYS in CHANCE of the fleets, of independent noise."""
    largest = cusums(fleets_of("independent", size, fleets, (BEFORE + DAYS) * jobs, seed), size, jobs)
    return float(np.quantile(largest.reshape(fleets, -1).max(axis=1), 1 - CHANCE))
