"""Which of several points is the best: from runs with common random numbers, as many of a point as it deserved.

A point is judged by its differences to the best at seeds that both have. Two questions differ, and so do their spreads:
what further simulations could still change (the error of the means), and what the real machine may be (the spread over
machines and days that the layers allow, which no number of simulations narrows).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, inf, nan, sqrt
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.student import student_quantile
from lepaute.study.evaluation import LESS_IS_BETTER, Outcome, Point
from lepaute.study.trust import by_share

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: With fewer runs in common, a point's own spread counts for little: that of all points stands beside it, with as many
#: degrees of freedom as this.
FEW_RUNS, WORTH_OF_OTHERS = 4, 6.0
DRAWS = 4000
#: More runs of each point than these are not advised.
MOST_ADVISED = 1000


@dataclass(frozen=True, slots=True)
class Standing:
    """A point among the others.

    value       : the response: of the best its geometric mean over its runs, of another one that mean and the ratio, so
        that points with fewer seeds are seen on the same machines
    ratio       : to the best, at the seeds of both: above 1 is worse, for rates too; below 1, it is not comparable
    low, high   : 95 % prediction interval of that ratio for one further machine and day; None where there is too little
    probability : that it is the best one on the machine of those that are comparable, of all of them together 1; NaN
        where that was not wanted
    near        : whether it cannot be told from the best
    enough      : runs of each that would tell it from the best; None where no number would, or there are too few to say
    """

    point: Point
    runs: int
    value: float
    ratio: float
    low: float | None
    high: float | None
    probability: float
    near: bool
    trust: Trust
    enough: int | None = None

    @property
    def flagged(self) -> bool:
        """Whether it is not comparable."""
        return not self.trust.comparable

    @property
    def ratio_text(self) -> str:
        return f"{100.0 * (self.ratio - 1.0):+.2f} %"

    @property
    def interval_text(self) -> str:
        """Of the ratio; empty where there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"{100.0 * (self.low - 1.0):+.1f} to {100.0 * (self.high - 1.0):+.1f} %"

    def to_dict(self) -> dict[str, Any]:
        """An entry of the JSON."""
        return {
            "point": dict(self.point),
            "runs": self.runs,
            "value": self.value,
            "ratio": {"mean": self.ratio, "low": self.low, "high": self.high},
            "probability_best": self.probability,
            "near_best": self.near,
            "comparable": self.trust.comparable,
            "trust": self.trust.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Ranking:
    """All points: the best of those that are comparable first (of all where none is), the others by their ratio to it.

    expected_loss : how much worse than the best the first one is expected to be, as far as further simulations could
        tell: relative, an upper bound; infinite while every point has one run
    refused : points that cannot be, with the reason
    """

    response: str
    standings: tuple[Standing, ...]
    expected_loss: float
    refused: Mapping[Point, str]

    @property
    def best(self) -> Standing:
        return self.standings[0]

    @property
    def near(self) -> tuple[Standing, ...]:
        """The best and all comparable ones that cannot be told from it; where none is comparable, all of these."""
        return tuple(one for one in self.standings if one.near and (not one.flagged or self.best.flagged))

    @property
    def ahead(self) -> tuple[Standing, ...]:
        """Those that are not comparable and yet certainly better than the best, the best of them first."""
        return tuple(one for one in self.standings if one.flagged and one.high is not None and one.high < 1.0)

    @property
    def rivals(self) -> tuple[Standing, ...]:
        """Those that are not comparable and cannot be told from the best, which is."""
        return tuple(one for one in self.standings if one.near and one.flagged and not self.best.flagged)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON."""
        return {
            "response": self.response,
            "expected_loss": self.expected_loss if self.expected_loss < inf else None,
            "standings": [one.to_dict() for one in self.standings],
            "ahead": [dict(one.point) for one in self.ahead],
            "refused": [{"point": dict(point), "reason": reason} for point, reason in self.refused.items()],
        }


@dataclass(frozen=True)
class _Runs:
    """Logarithms by seed, less is better; and what else is known of a point."""

    point: Point
    logs: Mapping[int, float]
    sampling_sd: float
    trust: Trust

    @property
    def mean(self) -> float:
        return sum(self.logs.values()) / len(self.logs)


@dataclass(frozen=True)
class _Gap:
    """Differences to the best: mean, standard deviation of one, degrees of freedom behind it (0: unknown)."""

    mean: float
    sd: float
    degrees: float
    count: int
    sampling_sd: float

    @property
    def error_sd(self) -> float:
        """Of the mean."""
        return hypot(self.sd / sqrt(self.count), self.sampling_sd)

    @property
    def prediction_sd(self) -> float:
        """Of a further difference about this mean."""
        return hypot(self.sd * sqrt(1.0 + 1.0 / self.count), self.sampling_sd)

    @property
    def enough(self) -> int | None:
        """Runs of each with which 0 would be outside the 95 % interval of a further difference, if mean and standard
        deviation are what they seem; None where no number would do."""
        if self.degrees == 0.0 or abs(self.mean) <= 1.96 * hypot(self.sd, self.sampling_sd):
            return None
        for runs in range(max(self.count, 2), MOST_ADVISED + 1):
            reach = student_quantile(0.975, runs - 1) * hypot(self.sd * sqrt(1.0 + 1.0 / runs), self.sampling_sd)
            if reach < abs(self.mean):
                return runs
        return None


def rank(
    outcomes: Iterable[Outcome],
    response: str = "time_s",
    *,
    seed: int = 1,
    probabilities: bool = True,
    trusts: Mapping[Point, Trust] | None = None,
) -> Ranking:
    """The ranking of the points of these outcomes.

    trusts : of points that were judged; of others by their shares
    seed : of the draws behind the probabilities;  probabilities : whether they are wanted, which takes longest
    Raises InputError where no point competes, or a response is not above 0.
    """
    runs, refused = _runs_of(outcomes, response, trusts or {})
    if not runs:
        why = next(iter(refused.values()), "there is none")
        raise InputError(f"no point can be compared: {why}")
    competing = [one for one in runs if one.trust.comparable] or runs
    most = max(len(one.logs) for one in competing)
    best = min((one for one in competing if len(one.logs) == most), key=lambda one: one.mean)
    gaps = _gaps(runs, best)
    chances = _probabilities(competing, best, gaps, seed) if probabilities else dict.fromkeys(gaps, nan)
    sign = 1.0 if response in LESS_IS_BETTER else -1.0
    standings = [_standing(one, gaps[one.point], chances.get(one.point, 0.0), best, sign) for one in runs]
    standings.sort(key=lambda one: (one.point != best.point, one.ratio))
    loss = sum(_loss(gaps[one.point]) for one in competing if one is not best)
    return Ranking(response, tuple(standings), loss, refused)


def _runs_of(
    outcomes: Iterable[Outcome], response: str, trusts: Mapping[Point, Trust]
) -> tuple[list[_Runs], dict[Point, str]]:
    from lepaute import _core

    sign = 1.0 if response in LESS_IS_BETTER else -1.0
    groups: dict[Point, list[Outcome]] = {}
    refused: dict[Point, str] = {}
    for outcome in outcomes:
        if outcome.refusal is not None:
            refused[outcome.trial.point] = outcome.refusal
        else:
            groups.setdefault(outcome.trial.point, []).append(outcome)
    runs = []
    for point, each in groups.items():
        if point in refused:
            continue
        if min(one[response] for one in each) <= 0.0:
            raise InputError(f"{response} is 0 at {point}, and nothing is a multiple of it")
        logs = {one.trial.seed: sign * _core.natural_log(one[response]) for one in each}
        trust = trusts.get(point) or by_share(each)
        runs.append(_Runs(point, logs, max(one.sampling_sd for one in each), trust))
    return runs, refused


def _gap(one: _Runs, best: _Runs) -> _Gap:
    """From seeds that both have; the spread is that of these alone."""
    shared = [value - best.logs[seed] for seed, value in one.logs.items() if seed in best.logs]
    if not shared:
        raise InputError(
            f"{one.point} has no seed in common with {best.point}; simulate all points with the same seeds"
        )
    mean, count = sum(shared) / len(shared), len(shared)
    squares = sum((value - mean) ** 2 for value in shared)
    sd = sqrt(squares / (count - 1)) if count > 1 else 0.0
    return _Gap(mean, sd, count - 1.0, count, hypot(one.sampling_sd, best.sampling_sd))


def _gaps(runs: Sequence[_Runs], best: _Runs) -> dict[Point, _Gap]:
    """Of all points; the spread of those with few runs is moderated by that of all (Smyth 2004)."""
    own = {one.point: _gap(one, best) for one in runs}
    others = [gap for point, gap in own.items() if point != best.point]
    degrees = sum(gap.degrees for gap in others)
    if degrees == 0.0:
        return own
    common = sum(gap.degrees * gap.sd**2 for gap in others) / degrees

    def moderated(gap: _Gap) -> _Gap:
        if gap.count >= FEW_RUNS:
            return gap
        worth = min(WORTH_OF_OTHERS, degrees)
        variance = (worth * common + gap.degrees * gap.sd**2) / (worth + gap.degrees)
        return _Gap(gap.mean, sqrt(variance), worth + gap.degrees, gap.count, gap.sampling_sd)

    return {point: gap if point == best.point else moderated(gap) for point, gap in own.items()}


def _standing(one: _Runs, gap: _Gap, probability: float, best: _Runs, sign: float) -> Standing:
    low = high = None
    is_best = one.point == best.point
    if gap.degrees > 0.0 and not is_best:
        reach = student_quantile(0.975, gap.degrees) * gap.prediction_sd
        low, high = exp(max(gap.mean - reach, -700.0)), exp(min(gap.mean + reach, 700.0))
    near = is_best or low is None or high is None or low <= 1.0 <= high
    value = exp(sign * (best.mean + gap.mean))
    return Standing(one.point, len(one.logs), value, exp(gap.mean), low, high, probability, near, one.trust, gap.enough)


def _loss(gap: _Gap) -> float:
    """Expected shortfall of the best against this point: E max(0, -gap), its mean known as Student's t."""
    if gap.degrees == 0.0:
        return inf
    if gap.error_sd == 0.0:
        return max(0.0, -gap.mean)
    from scipy.stats import t as student

    nu, scaled = max(gap.degrees, 1.01), gap.mean / gap.error_sd
    # of a t variable with nu degrees of freedom (Chick & Inoue, Operations Research 49, 2001)
    excess = (nu + scaled**2) / (nu - 1.0) * student.pdf(scaled, nu) - scaled * student.sf(scaled, nu)
    return float(gap.error_sd * max(excess, 0.0))


def _probabilities(runs: Sequence[_Runs], best: _Runs, gaps: Mapping[Point, _Gap], seed: int) -> dict[Point, float]:
    """How often each is the best in draws of a further machine.

    Points with all seeds are drawn together, as combinations of what each seed had: what they have in common stays in
    common. For those that were dropped early, with too few seeds for that, half of the variance is taken to be the
    best's own, which is in all differences to it.
    """
    import numpy as np

    if all(gaps[one.point].degrees == 0.0 for one in runs):
        return {one.point: 1.0 / len(runs) for one in runs}
    generator = np.random.default_rng(seed)
    seeds, count = list(best.logs), len(best.logs)
    weights = generator.standard_normal((DRAWS, count))
    scale = np.sqrt((count - 1) / generator.chisquare(max(count - 1, 1), DRAWS) * (1.0 + 1.0 / count))
    drawn: Floats = np.zeros((DRAWS, len(runs)))
    of_best: Floats = np.zeros(DRAWS)
    dropped = []
    for at, one in enumerate(runs):
        gap = gaps[one.point]
        if one is best:
            continue
        if len(one.logs) < count or gap.count < FEW_RUNS:
            dropped.append(at)
            continue
        own = np.array([one.logs[each] - best.logs[each] for each in seeds]) - gap.mean
        spread = weights @ own / sqrt(count - 1)
        of_best += spread / max(gap.sd, 1e-300)
        drawn[:, at] = gap.mean + scale * spread + gap.sampling_sd * generator.standard_normal(DRAWS)
    of_best = of_best / of_best.std() if of_best.any() else generator.standard_normal(DRAWS)
    for at in dropped:
        gap = gaps[runs[at].point]
        degrees = max(gap.degrees, 1.0)
        normal = sqrt(0.5) * of_best + sqrt(0.5) * generator.standard_normal(DRAWS)
        drawn[:, at] = gap.mean + gap.prediction_sd * normal * np.sqrt(degrees / generator.chisquare(degrees, DRAWS))
    counts = np.bincount(drawn.argmin(axis=1), minlength=len(runs))
    return {one.point: float(times) / DRAWS for one, times in zip(runs, counts, strict=True)}
