"""The difference of two points, with an interval that holds the difference of two real runs; or nothing to be told.

Runs of equal seeds see one machine on one day, so that errors which both points have cancel in the ratio of their
times (simulate/comparing.py says which). Where the points place other ranks on the CPUs, the errors of a CPU weigh
otherwise in both, and less cancels: the interval is wider by itself, and `same_geometry` says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any

from lepaute.errors import InputError
from lepaute.simulate.prediction.comparing import what_narrows
from lepaute.stats.control_variates import Controls
from lepaute.stats.intervals import median_of_runs, prediction_interval, standard_deviation
from lepaute.study.evaluation import LESS_IS_BETTER, Outcome, Point, sampling_sd_of_mean

#: Factors, by the last word of their path, that decide which rank computes what on which CPU.
GEOMETRY = frozenset({"grid", "p", "q", "pmap", "mapping", "hostfile", "nodes", "count", "ranks", "threads_per_rank"})

#: A ratio this near to 1 in all runs is one of equal runs, but for rounding.
ROUNDING = 1e-9
NO_DIFFERENCE = "no difference"


@dataclass(frozen=True, slots=True)
class PairDifference:
    """How many times as large a response is at `other` as at `reference`.

    ratio     : geometric mean over the runs, with the controls at their means
    low, high : 95 % prediction interval for one further pair of runs on one machine and day; None for one run
    pairs     : of runs that both points have
    shared_variance : share of the variance of both logarithms that cancels, 0 to 1; below 0 it would be better to
        compare runs that have nothing in common
    same_geometry : whether ranks compute for the same parts of the problem on the same CPUs
    narrower  : what would make the interval narrower, in words
    """

    reference: Point
    other: Point
    response: str
    ratio: float
    low: float | None
    high: float | None
    pairs: int
    shared_variance: float
    same_geometry: bool
    narrower: str = ""

    @property
    def is_told_apart(self) -> bool:
        """Whether 1 is outside the interval."""
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high

    @property
    def better(self) -> Point | None:
        """The better one of both; None where they cannot be told apart."""
        if not self.is_told_apart:
            return None
        return self.other if (self.ratio < 1.0) == (self.response in LESS_IS_BETTER) else self.reference

    @property
    def text(self) -> str:
        """In words: 3.1 % less (95 %: 5 % to 1.2 % less)."""
        if self.low is None or self.high is None:
            return f"{_percent(self.ratio)} (one run: no interval)"
        if max(abs(end - 1.0) for end in (self.ratio, self.low, self.high)) < ROUNDING:
            return NO_DIFFERENCE
        note = "" if self.same_geometry else "; ranks on other CPUs, so that errors of single CPUs do not cancel"
        if self.is_told_apart:
            return f"{_percent(self.ratio)} (95 %: {self.bounds}){note}"
        narrower = f"; {self.narrower}" if self.narrower else ""
        return f"cannot be told apart (95 %: {self.bounds}){note}{narrower}"

    @property
    def bounds(self) -> str:
        """The interval in words: 5 % to 1.2 % less; empty for one run."""
        return "" if self.low is None or self.high is None else f"{_percent(self.low)} to {_percent(self.high)}"

    def to_dict(self) -> dict[str, Any]:
        """An entry of the JSON."""
        return {
            "reference": dict(self.reference),
            "other": dict(self.other),
            "response": self.response,
            "ratio": {"mean": self.ratio, "low": self.low, "high": self.high},
            "told_apart": self.is_told_apart,
            "pairs": self.pairs,
            "shared_variance": self.shared_variance,
            "same_geometry": self.same_geometry,
        }


def difference(
    reference: Sequence[Outcome],
    other: Sequence[Outcome],
    response: str = "time_s",
    *,
    own_sd: float = 0.0,
    controls: Controls | None = None,
    assumed: bool = False,
) -> PairDifference:
    """The difference of two points from the outcomes of each, paired by seed: those that both have, none refused.

    own_sd : relative standard deviation of the ratio by what the paired runs wrongly share
    controls : of the ratios, run by run
    assumed : whether the platforms rest on what was not measured
    Raises InputError where no seed is common, where a response is not above 0, or where runs of one seed have the same
    repeat: they would share the effect of the run, and two real runs do not.
    """
    one, two = (
        {outcome.trial.seed: outcome for outcome in each if outcome.refusal is None} for each in (reference, other)
    )
    seeds = [seed for seed in one if seed in two]
    if not seeds:
        raise InputError("two points have no seed in common; simulate both with the same seeds")
    if any(one[seed].trial.repeat == two[seed].trial.repeat for seed in seeds):
        raise InputError("both points have the same noise, and two real runs do not; give one of them another repeat")
    pairs = [(one[seed][response], two[seed][response]) for seed in seeds]
    if min(min(pair) for pair in pairs) <= 0.0:
        raise InputError(f"{response} is 0 in a run, and nothing is a multiple of it")
    ratios = [after / before for before, after in pairs]
    sampling_sd = hypot(own_sd, *(sampling_sd_of_mean(each[seed] for seed in seeds) for each in (one, two)))
    low, high = prediction_interval(ratios, sampling_sd, controls)
    points = reference[0].trial.point, other[0].trial.point
    return PairDifference(
        *points,
        response,
        median_of_runs(ratios, controls),
        low,
        high,
        len(seeds),
        _shared_variance(pairs),
        same_geometry(*points),
        what_narrows(ratios, sampling_sd, controls, assumed=assumed),
    )


def same_geometry(one: Point, other: Point) -> bool:
    """Whether no factor differs that decides where ranks are."""
    names = {name for name in {*one, *other} if name.rpartition(".")[2] in GEOMETRY}
    return all(one.get(name) == other.get(name) for name in names)


def _shared_variance(pairs: Sequence[tuple[float, float]]) -> float:
    from lepaute import _core

    if len(pairs) < 2:
        return 0.0
    one, other = ([_core.natural_log(pair[at]) for pair in pairs] for at in (0, 1))
    apart = standard_deviation([b - a for a, b in zip(one, other, strict=True)])
    both = standard_deviation(one) ** 2 + standard_deviation(other) ** 2
    return 1.0 - apart**2 / both if both > 0.0 else 0.0


def _percent(ratio: float) -> str:
    percent = 100.0 * (ratio - 1.0)
    digits = f"{abs(percent):.2g}" if abs(percent) < 99.5 else f"{abs(percent):,.0f}"
    return f"{digits} % {'more' if percent > 0 else 'less'}" if percent else "equal"
