"""When a machine was slow for a moment: all cores of a launch at once, by steps that repeat.

A neighbour behind the hypervisor takes no CPU time that a counter shows; what shows is that the same work takes longer
on all cores at once. The level of a step is the mean, over the cores of its launch, of what their steps took longer
meanwhile. It is slow where that is above the median by more than the larger of MOST_SD robust standard deviations and
LEAST_SLOWER, and where the cores themselves are: what slows one core alone is no state of the machine. Steps next to a
slow one are partly in the episode where their level is above half that limit. The constants were fixed by simulation
(`validation/episodes.py`) before any archive was looked at.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

MOST_SD, LEAST_SLOWER = 3.5, 0.15
#: A stretch of slow steps that is shorter is what single cores do by themselves. Nor does one slow sentinel make an
#: episode where no step was slow for so long.
SHORTEST_EPISODE_S, FEWEST_SENTINELS = 0.5, 2
#: Share of the cores of a launch that have to be slow at the same time.
ALL_CORES = 0.75
#: What is next to a slow step counts as slow above this part of the limit.
EDGE = 0.5
SD_OF_MAD = 1.4826


def slow_limit(log_ratio: Floats) -> float:
    """The logarithm above which a duration is slow, `log_ratio` being those of all durations over their median."""
    spread = SD_OF_MAD * float(np.median(np.abs(log_ratio - np.median(log_ratio)))) if len(log_ratio) else 0.0
    return max(MOST_SD * spread, float(np.log1p(LEAST_SLOWER)))


def centred(log_ratio: Floats, kind: Integers) -> Floats:
    """Each value less the median of its kind."""
    result = log_ratio.copy()
    for number in np.unique(kind):
        same = kind == number
        result[same] -= np.median(log_ratio[same])
    return result


def slow_steps(
    start_s: Floats, duration_s: Floats, log_ratio: Floats, launch: Integers, core: Integers, work: Integers | int = 0
) -> Booleans:
    """Which steps were slow on all cores of their launch at once; vectors of shape (steps,).

    log_ratio : log(measured / expected), see `centred`
    launch, core : where each step ran; cores of a launch run at the same time
    work : what scatters alike: the limit is that of launches of so many cores with this work
    """
    level, share, cores = _levels(start_s, duration_s, log_ratio, launch, core)
    result = np.zeros(len(level), dtype=np.bool_)
    work = np.broadcast_to(np.asarray(work, dtype=np.int64), level.shape)
    for count, number_of_work in sorted(set(zip(cores.tolist(), work.tolist(), strict=True))):
        same = (cores == count) & (work == number_of_work)
        limit = slow_limit(level[same])
        result |= same & (level > limit) & (share >= ALL_CORES)
        near = same & (level > EDGE * limit) & (share >= ALL_CORES)
        for number in np.unique(launch[result & same]):
            inside = np.flatnonzero(launch == number)
            for one in np.unique(core[inside]):
                own = inside[core[inside] == one]
                own = own[np.argsort(start_s[own], kind="stable")]
                result[own] |= _grown(result[own], near[own])
    return result


def _grown(slow: Booleans, near: Booleans) -> Booleans:
    """Runs of `near` steps that hold a slow one, in the order of time."""
    run = np.cumsum(np.concatenate([[True], near[1:] != near[:-1]]))
    return near & np.isin(run, run[slow])


def _levels(
    start_s: Floats, duration_s: Floats, log_ratio: Floats, launch: Integers, core: Integers
) -> tuple[Floats, Floats, Integers]:
    """Of each step the mean level of the cores of its launch meanwhile, the share of them that were slower than
    LEAST_SLOWER, and how many cores they are."""
    level, share, cores = log_ratio.copy(), np.zeros(len(log_ratio)), np.ones(len(log_ratio), dtype=np.int64)
    end_s, least = start_s + duration_s, float(np.log1p(LEAST_SLOWER))
    for number in np.unique(launch):
        inside = np.flatnonzero(launch == number)
        codes = np.unique(core[inside], return_inverse=True)[1]
        cores[inside] = count = int(codes.max()) + 1
        start, end, of_core = start_s[inside], end_s[inside], codes[:, None] == np.arange(count)
        overlap = np.maximum(np.minimum(end[:, None], end) - np.maximum(start[:, None], start), 0.0)
        weight, total = overlap @ of_core, (overlap * log_ratio[inside]) @ of_core
        seen = weight > 0.0
        mean = np.divide(total, weight, out=np.zeros_like(total), where=seen)
        level[inside] = mean.sum(axis=1) / seen.sum(axis=1)
        # A core that has ended is not slow; what one does between two steps is not known.
        first, last = (
            np.array([side(at[codes == one]) for one in range(count)]) for side, at in ((np.min, start), (np.max, end))
        )
        known = seen | (end[:, None] <= first) | (start[:, None] >= last)
        share[inside] = (seen & (mean > least)).sum(axis=1) / known.sum(axis=1)
    return level, share, cores
