"""When a measurement was disturbed: by what counters of CPU time say, and by the machine's own speed.

A cause is a short phrase that begins with its witness: "steal: the hypervisor took 0.20 s of CPU in 2.00 s"; archives
hold it so. `validation/episodes.py` says how the constants of speed were fixed, and when.

CPU time of others, time that the hypervisor took and time that a rank was off its core are blind to durations: a run
that is left out because it was slow would make results too good.

A neighbour behind the hypervisor takes no CPU time that a counter shows; what shows is that the same work takes longer
on all cores at once: sentinels, and steps that repeat. The level of a step is the mean, over the cores of its launch,
of what their steps took longer meanwhile. It is slow where that is above the median by more than the larger of MAX_SD
robust standard deviations and MIN_SLOWER, and where the cores themselves are: what slows one core alone is no state
of the machine. Steps next to a slow one are partly in the episode where their level is above half that limit.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lepaute.stats.expanding import Booleans, Floats, Integers
from lepaute.stats.robust import robust_sd

MAX_SD, MIN_SLOWER = 3.5, 0.15
#: A stretch of slow steps that is shorter is what single cores do by themselves, where its level is that of the limit;
#: of one at twice the limit a quarter is enough. Nor does one slow sentinel make an episode where there is no stretch.
SHORTEST_EPISODE_S, MIN_SENTINELS = 0.5, 2
#: Slow steps of a launch no further apart are of one stretch.
APART_S = 0.5
#: Share of the cores of a launch that have to be slow at the same time.
ALL_CORES = 0.75
#: What is next to a slow step counts as slow above this part of the limit.
EDGE = 0.5
#: Calls of a probe without steps are taken together until they last so long; shorter parts show the errors of what is
#: expected of small calls rather than the state of the core.
CHUNK_S, SHORTEST_PART_S = 0.1, 0.02

#: What saw a disturbance; causes of older versions name none.
WITNESSES = CPU, STEAL, OFF_CORE, SENTINELS, STEPS = "cpu", "steal", "off core", "sentinels", "steps"
_SHOWN = ("other programs", "the hypervisor", "loss of a core", "a change of speed", "steps in speed")
_WORDS = dict(zip(WITNESSES, _SHOWN, strict=True))
#: Share of the CPU time of all cores that others may use: the kernel's own housekeeping stays below 1 %.
MAX_OTHERS_SHARE = 0.03
MAX_STEAL_SHARE = 0.01
#: /proc/stat counts in hundredths of a second, from samples at the kernel's tick.
GRANULARITY_S = 0.03
#: Of one core, what processes that are known to be other users' may use: a person or a daemon of theirs was active.
OTHER_USERS_CORES = 0.05
MINIMUM_CPU_SHARE = 0.97  # of a rank's wall time: Open MPI polls while it waits (in 64 quiet runs at least 0.996)
CPU_TIME_TOLERANCE_S = 0.005  # a little more than one tick of a 250 Hz kernel: below it a short run cannot be judged
#: Until this many sentinels are known as make a `slow_limit`, one may differ from another by this.
MAX_SENTINEL_CHANGE = 0.10
SENTINELS_OF_A_LIMIT = 6
#: Sentinels of a campaign before one is slow among them.
_SENTINELS_TO_COMPARE = 4


def disturbers(causes: Iterable[str]) -> str:
    """What disturbed how many measurements, as "by other programs (3), the hypervisor (1)"; "by other load" where no
    witness is named.

    causes: of each measurement all causes in one text
    """
    seen = Counter(witness for text in causes for witness in WITNESSES if f"; {witness}: " in f"; {text}")
    counts = ", ".join(f"{words} ({seen[witness]})" for witness, words in _WORDS.items() if seen[witness])
    return f"by {counts or 'other load'}"


def load_causes(wall_s: float, cores: int, others_cpu_s: float, steal_s: float) -> tuple[str, ...]:
    """Why a time counts as disturbed by the counters of its machine; CPU seconds are those of all cores together."""
    causes = []
    if others_cpu_s > MAX_OTHERS_SHARE * wall_s * cores + GRANULARITY_S:
        causes.append(f"{CPU}: other processes used {others_cpu_s:.2f} s of CPU in {wall_s:.2f} s")
    if steal_s > MAX_STEAL_SHARE * wall_s * cores + GRANULARITY_S:
        causes.append(f"{STEAL}: the hypervisor took {steal_s:.2f} s of CPU in {wall_s:.2f} s")
    return tuple(causes)


def off_core_causes(rank: int, cpu_s: float, wall_s: float) -> tuple[str, ...]:
    """Why a run counts as disturbed by what a polling rank got from its core."""
    if cpu_s >= MINIMUM_CPU_SHARE * wall_s - CPU_TIME_TOLERANCE_S:
        return ()
    return (f"{OFF_CORE}: rank {rank} was on its core for only {cpu_s:.3f} of {wall_s:.3f} s",)


def sentinel_causes(before_s: float, after_s: float, earlier_s: Sequence[float]) -> tuple[str, ...]:
    """Why a run counts as disturbed by the sentinels around it, with the seconds that they took; mostly empty.

    earlier_s: all sentinels of the campaign before this run, in any order. A machine that became faster again is no
    cause by these, since it is the earlier ones that were slow then.
    """
    causes, most, usual_s = [], MAX_SENTINEL_CHANGE, 0.0
    if len(earlier_s) >= SENTINELS_OF_A_LIMIT:
        usual_s = float(np.median(earlier_s))
        most = float(np.expm1(slow_limit(np.log(np.asarray(earlier_s, dtype=np.float64) / usual_s))))
    change = after_s / before_s - 1.0
    if abs(change) > most:
        way = "slower" if change > 0 else "faster"
        causes.append(f"{SENTINELS}: the machine was {100 * abs(change):.0f} % {way} after the run than before")
    if usual_s and (slower := (before_s + after_s) / 2.0 / usual_s - 1.0) > most:
        causes.append(f"{SENTINELS}: the machine was {100 * slower:.0f} % slower than in the campaign until then")
    return tuple(causes)


def slow_sentinels(duration_s: Iterable[float]) -> dict[float, float]:
    """By what share each that is slow among all sentinels of a campaign, in any order, took longer than the median."""
    seconds = np.fromiter(duration_s, dtype=np.float64)
    if len(seconds) < _SENTINELS_TO_COMPARE:
        return {}
    logs = np.log(seconds)
    above = logs - np.median(logs)
    slow = above > slow_limit(logs)
    return dict(zip(seconds[slow].tolist(), np.expm1(above[slow]).tolist(), strict=True))


def beside_slow_causes(slower: Sequence[float]) -> tuple[str, ...]:
    """Why a run counts as disturbed next to slow sentinels, these having taken longer by such shares; mostly empty."""
    return (f"{SENTINELS}: {100 * max(slower):.1f} % longer beside it",) if slower else ()


class Parts(NamedTuple):
    """Steps, or chunks of calls, each of one process; vectors of shape (parts,), but for that of its rows.

    first : row of the first call;  of_row : the part of each row
    """

    start_s: Floats
    end_s: Floats
    measured_s: Floats
    expected_s: Floats
    first: Integers
    of_row: Integers


def parts_of(process: Integers, start_s: Floats, duration_s: Floats, expected_s: Floats, step: Integers) -> Parts:
    """Cuts calls into their steps, and those of step -1 into chunks of CHUNK_S; all of one shape.

    expected_s : 0 of a call of which nothing is known but its dates
    """
    by_date = np.lexsort((start_s, process))
    passed_s = np.cumsum(np.where(step < 0, expected_s, 0.0)[by_date])
    number = step.copy()
    number[by_date] = np.where(step[by_date] < 0, passed_s / CHUNK_S, step[by_date])
    keys = (number, step >= 0, process)
    by_part = np.lexsort(keys)
    is_first = np.concatenate([[True], np.any([np.diff(key[by_part]) != 0 for key in keys], axis=0)])[: len(step)]
    of_row = np.empty(len(step), dtype=np.int64)
    of_row[by_part] = np.cumsum(is_first) - 1
    count = int(np.count_nonzero(is_first))
    begin_s, end_s = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(begin_s, of_row, start_s)
    np.maximum.at(end_s, of_row, start_s + duration_s)
    measured_s, predicted_s = (
        np.bincount(of_row, seconds, count).astype(np.float64)
        for seconds in (np.where(expected_s > 0.0, duration_s, 0.0), expected_s)
    )
    return Parts(begin_s, end_s, measured_s, predicted_s, by_part[is_first].astype(np.int64), of_row)


def slow_limit(log_ratio: Floats) -> float:
    """The logarithm above which a duration is slow, `log_ratio` being those of all durations over their median."""
    spread = robust_sd(log_ratio) if len(log_ratio) else 0.0
    return max(MAX_SD * spread, float(np.log1p(MIN_SLOWER)))


def centred(log_ratio: Floats, kind: Integers) -> Floats:
    """Each value less the median of its kind."""
    result = log_ratio.copy()
    for number in np.unique(kind):
        same = kind == number
        result[same] -= np.median(log_ratio[same])
    return result


def _slow_levels(
    start_s: Floats, duration_s: Floats, log_ratio: Floats, launch: Integers, core: Integers, work: Integers | int = 0
) -> Floats:
    """By how many times the limit the level of a slow step is above the median, 0 for the others; shape (steps,).

    log_ratio : log(measured / expected), see `centred`
    launch, core : where each step ran; cores of a launch run at the same time
    work : what scatters alike: the limit is that of launches of this many cores with this work
    """
    level, share, cores = _levels(start_s, duration_s, log_ratio, launch, core)
    result = np.zeros(len(level))
    work = np.broadcast_to(np.asarray(work, dtype=np.int64), level.shape)
    for count, number_of_work in sorted(set(zip(cores.tolist(), work.tolist(), strict=True))):
        same = (cores == count) & (work == number_of_work)
        limit = slow_limit(level[same])
        slow = same & (level > limit) & (share >= ALL_CORES)
        near = same & (level > EDGE * limit) & (share >= ALL_CORES)
        for number in np.unique(launch[slow]):
            inside = np.flatnonzero(launch == number)
            for one in np.unique(core[inside]):
                own = inside[core[inside] == one]
                own = own[np.argsort(start_s[own], kind="stable")]
                slow[own] |= _grown(slow[own], near[own])
        result[slow] = level[slow] / limit
    return result


class SlowStretch(NamedTuple):
    """Slow steps of a launch one after the other; log_factor : of their durations;  lasts : too long to be chance."""

    launch: int
    start_s: float
    end_s: float
    log_factor: float
    lasts: bool


def slow_stretches(
    start_s: Floats, duration_s: Floats, log_ratio: Floats, launch: Integers, core: Integers, work: Integers | int = 0
) -> list[SlowStretch]:
    """Steps that are slow by `_slow_levels` and follow each other no more than APART_S apart, together."""
    limits, end_s, result = _slow_levels(start_s, duration_s, log_ratio, launch, core, work), start_s + duration_s, []
    for number in np.unique(launch[limits > 0.0]):
        slow = np.flatnonzero((limits > 0.0) & (launch == number))
        slow = slow[np.argsort(start_s[slow], kind="stable")]
        cut = np.flatnonzero(start_s[slow][1:] > np.maximum.accumulate(end_s[slow])[:-1] + APART_S) + 1
        for steps in np.split(slow, cut):
            factor, limit = (float(np.average(of[steps], weights=duration_s[steps])) for of in (log_ratio, limits))
            first_s, last_s = float(start_s[steps].min()), float(end_s[steps].max())
            lasts = (last_s - first_s) * limit**2 >= SHORTEST_EPISODE_S
            result.append(SlowStretch(int(number), first_s, last_s, factor, lasts))
    return result


def _grown(slow: Booleans, near: Booleans) -> Booleans:
    """Runs of `near` steps that hold a slow one, in the order of time."""
    run = np.cumsum(np.concatenate([[True], near[1:] != near[:-1]]))
    return near & np.isin(run, run[slow])


def _levels(
    start_s: Floats, duration_s: Floats, log_ratio: Floats, launch: Integers, core: Integers
) -> tuple[Floats, Floats, Integers]:
    """Of each step the mean level of the cores of its launch meanwhile, the share of them that were slower than
    MIN_SLOWER, and how many cores they are."""
    level, share, cores = log_ratio.copy(), np.zeros(len(log_ratio)), np.ones(len(log_ratio), dtype=np.int64)
    end_s, least = start_s + duration_s, float(np.log1p(MIN_SLOWER))
    for number in np.unique(launch):
        inside = np.flatnonzero(launch == number)
        names = np.unique(core[inside])
        cores[inside] = len(names)
        start, end = start_s[inside], end_s[inside]
        total, seen_cores, slow, known = np.zeros((4, len(inside)))
        for name in names:
            own = inside[core[inside] == name]
            own = own[np.argsort(start_s[own], kind="stable")]
            dates = np.maximum.accumulate(np.column_stack([start_s[own], end_s[own]]).ravel())
            busy_s, logs_s = (
                np.cumsum(np.column_stack([np.zeros(len(own)), values]).ravel())
                for values in (duration_s[own], duration_s[own] * log_ratio[own])
            )
            weight, above = (np.interp(end, dates, of) - np.interp(start, dates, of) for of in (busy_s, logs_s))
            seen = weight > 0.0
            mean = np.divide(above, weight, out=np.zeros_like(above), where=seen)
            total += mean
            seen_cores += seen
            slow += seen & (mean > least)
            # A core that has ended is not slow; what one does between two steps is not known.
            known += seen | (end <= dates[0]) | (start >= dates[-1])
        level[inside], share[inside] = total / seen_cores, slow / known
    return level, share, cores


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
    """Share of the time, length of an episode and factor, from moments at which a machine was slow or not.

    Two states alternate, each for an exponential time: mean length L of an episode, share p of the time. What is seen
    are moments, in launches and sentinels with gaps between them, so that the state at a moment, given that at the one
    before, has the probabilities of a Markov chain in continuous time; episodes that begin or end unseen need no other
    care. The posterior of (log L, logit p) is worked out on a grid; its means and standard deviations are the result.
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
