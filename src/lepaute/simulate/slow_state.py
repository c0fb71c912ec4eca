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
from typing import NamedTuple

from lepaute import _core
from lepaute.stats.student import NORMAL_975

#: Streams of the draws of a machine, of a run, and of the courses that stand for all runs.
_OF_MACHINE, _OF_RUN, _OF_COURSE = 0x534C4F4D, 0x534C4F52, 0x534C4F43
#: Changes of the number of slow nodes, 10,000 episodes of a node: a run that would see more takes what is expected; so
#: does one on this many nodes that none is slow for a smaller share of the time only.
MAX_CHANGES, MIN_QUICK = 20_000, 1e-12
#: Undisturbed times that stand for all, machines, and changes of the course of each machine.
POINTS, MACHINES, MIN_COURSE, MAX_COURSE = 4096, 32, 512, 4096
_GOLDEN = 0.6180339887498949


class Effect(NamedTuple):
    """Effect on the time of any run: mean, ends and mean of the inverse over those of undisturbed runs.

    share : of runs that meet the slow state;  most : times as long as 95 % of these take at most; None: too few do
    """

    mean: float
    low: float
    high: float
    mean_of_inverse: float
    share: float
    most: float | None


@dataclass(frozen=True, slots=True)
class SlowNodes:
    """The nodes of a run that have the slow state, whose figures a machine draws within their errors.

    errors : standard errors of the logarithms of the odds of `share`, of `length_s` and of `factor`
    """

    nodes: int
    share: float
    length_s: float
    factor: float
    factor_sd: float = 0.0
    errors: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def slowed_s(self, time_s: float, day_seed: int, run_seed: int) -> float:
        """How long the run of this seed takes that takes `time_s` undisturbed, on the machine of the day's seed."""
        if not self.nodes or time_s <= 0.0:
            return time_s
        machine = self.on_machine(_core.normals(day_seed, _OF_MACHINE, 1, 3))
        if machine.is_steady(time_s):
            return time_s / machine.pace
        course = _Course.of(machine, run_seed, _OF_RUN, int(2.0 * machine.changes_in(time_s)) + 64, time_s)
        seen_s = min(time_s, course.done_s[-1])
        return time_s + course.lost_until(seen_s) + (time_s - seen_s) * (1.0 / machine.pace - 1.0)

    def effect(self, median_s: float, low_s: float, high_s: float) -> Effect:
        """On runs whose undisturbed time is log-normal to either side of the median, with this 95 % interval: at
        quantiles of it, each on one of some machines that stand for the errors, from a date of its course on."""
        if not self.nodes or not 0.0 < low_s <= median_s <= high_s:
            return Effect(1.0, 1.0, 1.0, 1.0, 0.0, None)
        machines, normals = _machines(self), _quantiles(POINTS)
        below, above = (_core.natural_log(end_s / median_s) / NORMAL_975 for end_s in (low_s, high_s))
        usual = [median_s * _exponential(z * (above if z > 0.0 else -below)) for z in normals]
        most = min(MAX_COURSE, max(machine.changes_in(high_s) for machine in machines))
        changes = min(MAX_COURSE, max(MIN_COURSE, 1 << int(4.0 * most).bit_length()))
        slowed, ratios, missed = [], [], []
        for point, time_s in enumerate(usual):
            machine = machines[point % MACHINES]
            if machine.is_steady(time_s):
                lost_s = time_s / machine.pace - time_s
            else:
                lost_s = _course(machine, point % MACHINES, changes).lost_in(time_s, (point * _GOLDEN) % 1.0)
            slowed.append(time_s + lost_s)
            missed.append(machine.quick * _exponential(-time_s * self.nodes / machine.gap_s))
            ratios += [slowed[-1] / time_s] if lost_s > 0.0 else []
        ordered, place = sorted(slowed), int(0.025 * POINTS)
        return Effect(
            fsum(slowed) / fsum(usual),
            ordered[place] / usual[place],
            ordered[-1 - place] / usual[-1 - place],
            fsum(1.0 / value for value in slowed) / fsum(1.0 / value for value in usual),
            1.0 - fsum(missed) / POINTS,
            sorted(ratios)[int(0.95 * len(ratios))] if ratios else None,
        )

    def on_machine(self, normals: Sequence[float]) -> "SlowNodes":
        """With what a machine draws; odds stay odds, whatever it is."""
        of_share, of_length, of_factor = (_exponential(z * sd) for z, sd in zip(normals, self.errors, strict=True))
        odds = self.share / (1.0 - self.share) * of_share
        share = min(max(odds / (1.0 + odds), 1e-12), 1.0 - 1e-12)
        length_s, factor = min(max(self.length_s * of_length, 1e-30), 1e30), min(max(1.0, self.factor * of_factor), 1e9)
        return SlowNodes(self.nodes, share, length_s, factor, self.factor_sd)

    @property
    def gap_s(self) -> float:
        """Mean of a gap of one node."""
        return self.length_s * (1.0 - self.share) / self.share

    @property
    def quick(self) -> float:
        """Share of the time in which no node is slow."""
        return _core.exponential(max(-700.0, self.nodes * _core.natural_log(1.0 - self.share)))

    @property
    def pace(self) -> float:
        """Work that a long run gets done in a second."""
        slow = min(1.0, _exponential(0.5 * self.factor_sd * self.factor_sd) / self.factor)
        return self.quick + (1.0 - self.quick) * slow

    def changes_in(self, time_s: float) -> float:
        """About how many changes the number of slow nodes makes in a run that takes this long undisturbed."""
        return 2.0 * self.nodes * self.share / self.length_s * time_s / self.pace

    def is_steady(self, time_s: float) -> bool:
        """Whether a run that takes so long undisturbed takes what is expected."""
        return self.changes_in(time_s) > MAX_CHANGES or self.quick < MIN_QUICK


class _Course(NamedTuple):
    """What a run has done, and has lost to the slow state, at the beginning and at each change; from there on it loses
    `slopes` for a second's work. A run that goes on beyond the end begins anew."""

    done_s: list[float]
    lost_s: list[float]
    slopes: list[float]

    @classmethod
    def of(cls, machine: SlowNodes, seed: int, stream: int, changes: int, enough_s: float | None = None) -> "_Course":
        """Course of this many changes, fewer if enough is done before."""
        uniforms = iter(_core.uniforms(seed, stream, 1, 2 * changes + 1))
        up, down, log = 1.0 / machine.gap_s, 1.0 / machine.length_s, _core.natural_log
        # Slow nodes at first: binomial, by inversion.
        uniform, chance, count = next(uniforms), machine.quick, 0
        while uniform > chance and count < machine.nodes:
            uniform -= chance
            chance *= (machine.nodes - count) / (count + 1.0) * machine.share / (1.0 - machine.share)
            count += 1
        course, factor, is_new = cls([0.0], [0.0], []), machine.factor, True
        normals = _core.normals(seed, stream ^ 1, 1, changes)
        for of_wait, of_way, normal in zip(uniforms, uniforms, normals, strict=True):
            if is_new:
                factor = max(1.0, machine.factor * _exponential(normal * machine.factor_sd))
            rising, slope = (machine.nodes - count) * up, factor - 1.0 if count else 0.0
            rate = rising + count * down
            done_s = -log(of_wait) / rate / (1.0 + slope)
            course.done_s.append(course.done_s[-1] + done_s)
            course.lost_s.append(course.lost_s[-1] + done_s * slope)
            course.slopes.append(slope)
            if enough_s is not None and course.done_s[-1] >= enough_s:
                break
            is_new = count == 0
            count += 1 if of_way * rate < rising else -1
        return course

    def lost_until(self, done_s: float) -> float:
        """To the slow state, when so much is done."""
        at = min(bisect_right(self.done_s, done_s), len(self.slopes)) - 1
        return self.lost_s[at] + (done_s - self.done_s[at]) * self.slopes[at]

    def lost_in(self, time_s: float, start: float) -> float:
        """By a run that takes so long undisturbed and begins at this share of the wall-clock time of the course."""
        date_s = start * (self.done_s[-1] + self.lost_s[-1])
        at = bisect_right(range(len(self.slopes)), date_s, key=lambda each: self.done_s[each] + self.lost_s[each]) - 1
        here_s = self.done_s[at] + (date_s - self.done_s[at] - self.lost_s[at]) / (1.0 + self.slopes[at])
        laps, end_s = divmod(here_s + time_s, self.done_s[-1])
        return laps * self.lost_s[-1] + self.lost_until(end_s) - self.lost_until(here_s)


def _exponential(exponent: float) -> float:
    return _core.exponential(min(max(exponent, -60.0), 60.0))


@lru_cache(maxsize=2)
def _quantiles(count: int) -> list[float]:
    """Normal quantiles, in the middle of this many equal shares; the last digits depend on the processor."""
    return [float(f"{NormalDist().inv_cdf((at + 0.5) / count):.12g}") for at in range(count)]


@lru_cache(maxsize=64)
def _machines(slow: SlowNodes) -> list[SlowNodes]:
    """Machines for the errors of the figures: each at all quantiles, in orders that have nothing in common."""
    z, orders = _quantiles(MACHINES), ((1, 0), (7, 18), (11, 3))
    return [slow.on_machine([z[(step * at + first) % MACHINES] for step, first in orders]) for at in range(MACHINES)]


@lru_cache(maxsize=8 * MACHINES)
def _course(machine: SlowNodes, number: int, changes: int) -> _Course:
    return _Course.of(machine, number, _OF_COURSE, changes)
