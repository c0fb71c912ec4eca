"""The slow state of a machine, along the time of a run: what engines simulate is the undisturbed run.

On a node, episodes of mean L alternate with gaps of mean L (1 - p) / p, both exponential in wall-clock time; p is the
share of time that is slow, and the chance to begin so. A run on k nodes is slow while any of them is: the number n of
slow nodes is a birth-death chain, binomial(k, p) at first, with the rates (k - n) / gap up and n / L down. While slow,
the run gets on at 1 / factor, and the factor is drawn when the first node becomes slow. It ends when as much is done as
it takes undisturbed. All draws are of the core's counter-based generator, and the same on every processor.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from lepaute import _core

if TYPE_CHECKING:
    from lepaute.platform.schema import SlowState

#: Streams of the draws of a machine, of a run, and of the courses that stand for all runs.
_OF_MACHINE, _OF_RUN, _OF_COURSE = 0x534C4F4D, 0x534C4F52, 0x534C4F43
#: Changes of the number of slow nodes, 10,000 episodes of a node: a run that would see more takes what is expected.
MOST_CHANGES = 20_000
#: A machine of which no node is slow for a smaller share of the time is slow always.
LEAST_QUICK = 1e-12
#: Undisturbed times that stand for all, machines, and changes of the course of each machine.
POINTS, MACHINES, LEAST_COURSE, MOST_COURSE = 4096, 32, 512, 4096
_GOLDEN = 0.6180339887498949
_NORMAL_975 = 1.959963984540054


class Effect(NamedTuple):
    """What the slow state makes of the time of any run, relative to the undisturbed one.

    mean, low, high : of mean and ends of the interval of the time;  mean_of_rate : of the mean of its inverse
    share : of runs that meet the slow state;  most : times as long as 95 % of these take at most; None where hardly
        any run meets it
    """

    mean: float
    low: float
    high: float
    mean_of_rate: float
    share: float
    most: float | None


@dataclass(frozen=True, slots=True)
class SlowNodes:
    """The slow state of so many nodes that a run computes on."""

    state: "SlowState"
    nodes: int

    def slowed_s(self, time_s: float, day_seed: int, run_seed: int) -> float:
        """How long the run of this seed takes that takes `time_s` undisturbed, on the machine of the day's seed."""
        if not self.nodes or time_s <= 0.0:
            return time_s
        machine = _Machine.of(self, _core.normals(day_seed, _OF_MACHINE, 1, 3))
        changes = machine.changes_in(time_s)
        if machine.is_steady(changes):
            return time_s / machine.pace
        course = _Course.of(machine, run_seed, _OF_RUN, int(2.0 * changes) + 64, time_s)
        seen_s = min(time_s, course.progress_s[-1])
        return time_s + course.lost_until(seen_s) + (time_s - seen_s) * (1.0 / machine.pace - 1.0)

    def effect(self, median_s: float, low_s: float, high_s: float) -> Effect:
        """On runs whose undisturbed time is log-normal to either side of the median, with this 95 % interval: at
        quantiles of it, each on one of some machines that stand for its errors, from a date of their course on."""
        machines = _machines(self)
        if not machines or not 0.0 < low_s <= median_s <= high_s:
            return Effect(1.0, 1.0, 1.0, 1.0, 0.0, None)
        below, above = (_core.natural_log(end_s / median_s) / _NORMAL_975 for end_s in (low_s, high_s))
        normals = _quantiles(POINTS)
        usual = [median_s * _core.exponential(_limited(z * (above if z > 0.0 else -below))) for z in normals]
        most = max(machine.changes_in(high_s) for machine in machines)
        changes = min(MOST_COURSE, max(LEAST_COURSE, 1 << int(4.0 * min(most, MOST_COURSE)).bit_length()))
        slowed, ratios, meets = [], [], []
        for point, time_s in enumerate(usual):
            machine = machines[point % MACHINES]
            if machine.is_steady(machine.changes_in(time_s)):
                lost_s = time_s / machine.pace - time_s
            else:
                lost_s = _course(self, point % MACHINES, changes).lost_in(time_s, (point * _GOLDEN) % 1.0)
            slowed.append(time_s + lost_s)
            meets.append(1.0 - machine.quick * _core.exponential(_limited(-time_s * self.nodes / machine.gap_s)))
            if lost_s > 0.0:
                ratios.append(slowed[-1] / time_s)
        ordered, last = sorted(slowed), POINTS - 1
        place = int(0.025 * POINTS)
        return Effect(
            fsum(slowed) / fsum(usual),
            ordered[place] / usual[place],
            ordered[last - place] / usual[last - place],
            fsum(1.0 / value for value in slowed) / fsum(1.0 / value for value in usual),
            fsum(meets) / POINTS,
            sorted(ratios)[int(0.95 * len(ratios))] if ratios else None,
        )


@dataclass(frozen=True, slots=True)
class _Machine:
    """Of a day: the figures of the slow state as they are drawn within their errors.

    gap_s, length_s : means of a gap and of an episode of one node;  quick : share of the time without a slow node
    """

    nodes: int
    share: float
    length_s: float
    factor: float
    factor_sd: float
    quick: float

    @classmethod
    def of(cls, slow: SlowNodes, normals: Sequence[float]) -> "_Machine":
        state, (of_share, of_length, of_factor) = slow.state, normals
        # The odds, of whose logarithm the error is so much larger, stay odds whatever is drawn.
        odds = state.share / (1.0 - state.share)
        odds *= _core.exponential(_limited(of_share * state.share_error / (1.0 - state.share)))
        share = min(max(odds / (1.0 + odds), 1e-12), 1.0 - 1e-12)
        length_s = state.length_s * _core.exponential(_limited(of_length * state.length_error))
        factor = min(max(1.0, state.factor * _core.exponential(_limited(of_factor * state.factor_error))), 1e9)
        quick = _core.exponential(max(-700.0, slow.nodes * _core.natural_log(1.0 - share)))
        return cls(slow.nodes, share, min(max(length_s, 1e-30), 1e30), factor, state.factor_relative_sd, quick)

    @property
    def gap_s(self) -> float:
        return self.length_s * (1.0 - self.share) / self.share

    @property
    def pace(self) -> float:
        """What a long run gets done in a second."""
        inverse = min(1.0, _core.exponential(_limited(0.5 * self.factor_sd * self.factor_sd)) / self.factor)
        return self.quick + (1.0 - self.quick) * inverse

    def changes_in(self, time_s: float) -> float:
        """Of the number of slow nodes, about, in a run that takes so long undisturbed."""
        return 2.0 * self.nodes * self.share / self.length_s * time_s / self.pace

    def is_steady(self, changes: float) -> bool:
        """Whether a run of so many changes is as slow as any."""
        return changes > MOST_CHANGES or self.quick < LEAST_QUICK

    def first(self, uniform: float) -> int:
        """Slow nodes at the beginning: binomial, by inversion."""
        count, chance, odds = 0, self.quick, self.share / (1.0 - self.share)
        while uniform > chance and count < self.nodes:
            uniform -= chance
            chance *= (self.nodes - count) / (count + 1.0) * odds
            count += 1
        return count

    def drawn(self, normal: float) -> float:
        """The factor of an episode."""
        return max(1.0, self.factor * _core.exponential(_limited(normal * self.factor_sd)))


@dataclass(frozen=True, slots=True)
class _Course:
    """What a run has done, and has lost to the slow state, at the beginning and at each change; from there on it loses
    `slopes` for each second's work. A run that goes on beyond the end begins anew."""

    progress_s: list[float]
    lost_s: list[float]
    slopes: list[float]

    @classmethod
    def of(cls, machine: _Machine, seed: int, stream: int, changes: int, enough_s: float | None = None) -> "_Course":
        """Of so many changes, fewer where enough is done before."""
        up, down = 1.0 / machine.gap_s, 1.0 / machine.length_s
        uniforms = iter(_core.uniforms(seed, stream, 1, 2 * changes + 1))
        normals = _core.normals(seed, stream ^ 1, 1, changes)
        count, factor, is_new = machine.first(next(uniforms)), machine.factor, True
        progress, lost, slopes = [0.0], [0.0], list[float]()
        for of_wait, of_way, normal in zip(uniforms, uniforms, normals, strict=True):
            factor = machine.drawn(normal) if is_new else factor
            rising, slope = (machine.nodes - count) * up, factor - 1.0 if count else 0.0
            rate = rising + count * down
            done_s = -_core.natural_log(of_wait) / rate / (1.0 + slope)
            progress.append(progress[-1] + done_s)
            lost.append(lost[-1] + done_s * slope)
            slopes.append(slope)
            if enough_s is not None and progress[-1] >= enough_s:
                break
            is_new = count == 0
            count += 1 if of_way * rate < rising else -1
        return cls(progress, lost, slopes)

    def lost_until(self, progress_s: float) -> float:
        """To the slow state, when so much is done."""
        at = min(bisect_right(self.progress_s, progress_s), len(self.slopes)) - 1
        return self.lost_s[at] + (progress_s - self.progress_s[at]) * self.slopes[at]

    def lost_in(self, time_s: float, start: float) -> float:
        """By a run that takes so long undisturbed and begins at this share of the wall-clock time of the course."""
        date_s = start * (self.progress_s[-1] + self.lost_s[-1])
        at = (
            bisect_right(range(len(self.slopes)), date_s, key=lambda each: self.progress_s[each] + self.lost_s[each])
            - 1
        )
        here_s = self.progress_s[at] + (date_s - self.progress_s[at] - self.lost_s[at]) / (1.0 + self.slopes[at])
        laps, end_s = divmod(here_s + time_s, self.progress_s[-1])
        return laps * self.lost_s[-1] + self.lost_until(end_s) - self.lost_until(here_s)


def _limited(exponent: float) -> float:
    return min(max(exponent, -60.0), 60.0)


@lru_cache(maxsize=2)
def _quantiles(count: int) -> list[float]:
    """Of the normal distribution, in the middle of so many equal shares; the last digits depend on the processor."""
    return [float(f"{NormalDist().inv_cdf((at + 0.5) / count):.12g}") for at in range(count)]


@lru_cache(maxsize=64)
def _machines(slow: SlowNodes) -> list[_Machine]:
    """That stand for the errors of the figures: each at all quantiles, in orders that have nothing in common."""
    normals = _quantiles(MACHINES)
    orders = [(normals[at], normals[(11 * at + 7) % MACHINES], normals[(19 * at + 13) % MACHINES])
              for at in range(MACHINES)]  # fmt: skip
    return [_Machine.of(slow, order) for order in orders] if slow.nodes else []


@lru_cache(maxsize=8 * MACHINES)
def _course(slow: SlowNodes, number: int, changes: int) -> _Course:
    return _Course.of(_machines(slow)[number], number, _OF_COURSE, changes)
