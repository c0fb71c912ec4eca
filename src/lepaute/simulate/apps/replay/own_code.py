"""How long a program's own code takes on another machine than the one that it was recorded on."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, pvariance

from lepaute.errors import InputError
from lepaute.kit.text import significant
from lepaute.simulate.platform.group_summary import core_memory_Bps, mean_dgemm_rate
from lepaute.simulate.platform.schema import Platform

#: Half the width of 95 % of a normal distribution, in standard deviations.
_HALF_95 = NormalDist().inv_cdf(0.975)
LARGEST = 1e3
#: Own code on a machine over that on another one, if neither is known: as far apart as one factor may be.
_UNKNOWN = (0.5, 1.5)


@dataclass(frozen=True, slots=True)
class Factor:
    """Time of own code on the platform over that recorded: 95 % of the draws, one a run, are from low to high.

    words    : where it comes from, in a prediction's warning
    speed_sd : relative standard deviation of the speeds that a recording does not tell of, which is drawn besides
    known    : whether the machine of the recording is, or the factor was given
    same     : recorded on this platform: what its cores differ by is in the recording, and not drawn again
    """

    low: float
    high: float
    words: str
    speed_sd: float = 0.0
    same: bool = False
    known: bool = True

    @property
    def middle(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def relative_sd(self) -> float:
        return math.hypot(0.5 * (self.high - self.low) / _HALF_95 / self.middle, self.speed_sd)


def bounds_of(text: str) -> tuple[float, float]:
    """LOW..HIGH, or one factor; raises InputError for anything else."""
    low, separator, high = text.partition("..")
    try:
        found = float(low), float(high if separator else low)
    except ValueError:
        found = (0.0, 0.0)
    return checked_bounds(found, text)


def checked_bounds(bounds: tuple[float, float], said: object) -> tuple[float, float]:
    """The same; raises InputError."""
    low, high = bounds
    if not 0.0 < low <= high <= LARGEST or high > 3.0 * low:
        raise InputError(
            f"own_code is {said!r:.80}; it is the time of the program's own code over that recorded, from LOW to HIGH: "
            f"0.8..1.0, above 0, at most {LARGEST:g}, and HIGH at most three times LOW"
        )
    return low, high


def of_anywhere(machine: str, options: str = "--recorded-on, --own-code") -> Factor:
    """Factor of code that was recorded on a machine of which nothing is known: cores of a decade lie within it."""
    low, high = _UNKNOWN
    words = f"{low:g} to {high:g} times as long as recorded, on {machine} ({options})"
    return Factor(low, high, words, known=False)


def between(recorded: Platform, platform: Platform, ranks: int, length_s: float, waiting_share: float = 0.0) -> Factor:
    """Factor from two platforms' cores: own code is bound by computing at one end, by memory at the other.

    Own code that computes is as much faster as dgemm is, that waiting for memory as much as a core's share of the
    node's memory bandwidth, all cores busy. The recording was made on one day, in one run, on cores of some speed, and
    is longer or shorter for it, as the run to be predicted is: the ranks of both wait for the slowest. On the same
    platform the recording stands for what the ranks differ by; so for the run that of its slowest is drawn, too, which
    may wait for a core as the recorded one did for waiting_share of its time outside of MPI.
    """
    if recorded.sha256 == platform.sha256 or recorded.name == platform.name:
        together, slowest = _speed_variances(platform, ranks, length_s)
        words = "as recorded, on the same platform"
        high = min(3.0, 1.0 / (1.0 - min(waiting_share, 0.9)))
        if high > 1.01:
            words += f", or up to {significant(high)} times as long where it waits for a core as it did"
        return Factor(1.0, high, words, math.sqrt(together + 2.0 * slowest), same=True)
    speed_sd = math.sqrt(sum(_speed_variances(recorded, ranks, length_s)))
    found = dict(_ratios(recorded, platform))
    if not found:
        return of_anywhere(f"{recorded.name}, of which no rate is known that {platform.name} has, too")
    ratios = ", ".join(f"{significant(ratio, 3)} by {what}" for what, ratio in found.items())
    low, high = min(found.values()), max(found.values())
    if len(found) == 1:
        low, high = low * _UNKNOWN[0], high * _UNKNOWN[1]
        ratios += ", and by what bounds it else no rate is known"
    if high > 3.0 * low:
        ratios += ", which are too far apart for one factor: give own_code"
        high = 3.0 * low
    words = f"{significant(low)} to {significant(high)} times as long as recorded on {recorded.name} ({ratios})"
    return Factor(low, high, words, speed_sd)


def _speed_variances(platform: Platform, ranks: int, length_s: float) -> tuple[float, float]:
    """Relative variances of a run of that length: of day and run, all cores alike; of the slowest of so many cores."""
    days, wandering = platform.days, platform.wandering
    together, core = 0.0, 0.0
    if days is not None:
        together = days.common_relative_sd**2 + (days.run_relative_sd or 0.0) ** 2
        core = days.cpu_relative_sd**2
    if wandering is not None and length_s > 0.0:
        # Of the mean of an Ornstein-Uhlenbeck process over that time.
        share = wandering.correlation_s / length_s
        core += wandering.relative_sd**2 * 2.0 * share * (1.0 + share * math.expm1(-1.0 / share))
    return together, core * _variance_of_largest(ranks)


@cache
def _variance_of_largest(count: int) -> float:
    """Variance of the largest of this many independent standard normal values, by 1,000 quantiles."""
    return pvariance([NormalDist().inv_cdf(((place + 0.5) / 1000) ** (1.0 / count)) for place in range(1000)])


def of_flops(rate: float, platform: Platform) -> Factor:
    """Factor of amounts of flop, which the trace has as seconds at `rate` flop/s: they take the rate of dgemm."""
    found = mean_dgemm_rate(platform)
    if found is None:
        words = f"its flop at {significant(rate / 1e9, 3)} Gflop/s: {platform.name} has no dgemm (--own-code)"
        return Factor(1.0, 1.0, words)
    words = f"its flop at the {significant(found / 1e9, 3)} Gflop/s of dgemm, which most code does not reach"
    return Factor(rate / found, rate / found, f"{words} (--own-code; trace convert --flop-rate)")


def _ratios(recorded: Platform, platform: Platform) -> Iterator[tuple[str, float]]:
    rates = [mean_dgemm_rate(each) for each in (recorded, platform)]
    if rates[0] and rates[1]:
        yield "the rate of dgemm", rates[0] / rates[1]
    shares = [core_memory_Bps(each) for each in (recorded, platform)]
    if shares[0] and shares[1]:
        yield "the memory bandwidth of a core's share", shares[0] / shares[1]
