"""Which of several points is the best: from runs with common random numbers, as many of a point as it deserved.

A point is judged by its differences to the best at seeds that both have. Two questions differ, and so do their spreads:
what further simulations could still change (the error of the means), and what the real machine may be (the spread over
machines and days that the layers allow, which no number of simulations narrows).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, fsum, hypot, inf, isfinite, nan, sqrt
from typing import Any

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.later import stats
from lepaute.kit.text import significant
from lepaute.simulate.prediction.comparing import Difference
from lepaute.simulate.prediction.prediction import Spread
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.control_variates import Adjusted, Controls, adjusted, controls_of_ratio
from lepaute.stats.expanding import Floats
from lepaute.stats.intervals import prediction_interval, runs_that_tell
from lepaute.stats.student import student_quantile
from lepaute.study.evaluation import Outcome, Point, label, sampling_sd_of_mean, sign_of, spread
from lepaute.study.trust import by_share

#: With fewer runs in common, a point's own spread counts for little: that of all points stands beside it, with as many
#: degrees of freedom as this.
FEW_RUNS, WORTH_OF_OTHERS = 4, 6.0
DRAWS = 4000


@dataclass(frozen=True, slots=True)
class Standing:
    """A point among the others.

    value       : the response: of the best that of a prediction from its runs, of another one that and the ratio, so
        that points with fewer seeds are seen on the same machines
    ratio       : to the best, at the seeds of both: above 1 is worse, for rates too; below 1, it is not comparable
    low, high   : 95 % prediction interval of that ratio for one further machine and day; None if there is too little
    probability : that it is the best on the machine of those comparable, together 1; NaN: not wanted
    near        : whether it cannot be told from the best
    enough      : runs of each that would tell it from the best; None if no number would, or there are too few to say
    spread      : of the response over its runs, as a prediction has it: of the best, and of those that are ahead of it
    rate        : in Gflop/s, of HPL whose response is the time; likewise with an interval of these alone
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
    spread: Spread | None = None
    rate: Spread | None = None

    @property
    def flagged(self) -> bool:
        """Whether it is not comparable."""
        return not self.trust.comparable

    @property
    def is_ahead(self) -> bool:
        """Whether it is certainly better than the best, and yet not comparable."""
        return self.flagged and self.high is not None and self.high < 1.0

    @property
    def chance(self) -> str:
        """The probability that it is the best, in whole per cents."""
        if not isfinite(self.probability):
            return "–"
        return f"{100.0 * self.probability:.0f} %" if self.probability >= 0.005 or self.flagged else "< 1 %"

    @property
    def figure(self) -> str:
        """The response, with the digits that its interval gives it, if it has one."""
        return significant(self.value, 4) if self.spread is None else self.spread.figure()

    @property
    def in_words(self) -> str:
        """Against the best: 1.5 % worse (95 %: 0.7 to 2.4 % worse)."""
        low, high = (nan if end is None else end for end in (self.low, self.high))
        return Difference(self.ratio, low, high, shared=True, run_noise=True).in_words("worse", "better")

    def to_dict(self) -> dict[str, Any]:
        return {
            "point": dict(self.point),
            "runs": self.runs,
            "value": self.value,
            "ratio": {"mean": self.ratio, "low": self.low, "high": self.high},
            "spread": None if self.spread is None else self.spread.to_dict(),
            "rate_gflops": None if self.rate is None else self.rate.mean,
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
        return tuple(one for one in self.standings if one.is_ahead)

    @property
    def rivals(self) -> tuple[Standing, ...]:
        """Those that are not comparable and cannot be told from the best, which is."""
        return tuple(one for one in self.standings if one.near and one.flagged and not self.best.flagged)

    @property
    def rows(self) -> list[tuple[Standing, str]]:
        """As tables have them, each with what is said of it: what is not comparable last, with the reason alone."""
        return [
            *((one, "the best" if one is self.best else one.in_words) for one in self.standings if not one.flagged),
            *((one, self._apart(one)) for one in self.standings if one.flagged),
        ]

    def figures(self, standing: Standing) -> dict[str, str]:
        """What tables have of it: the response by its title, and the rate of HPL."""
        rate = {} if standing.rate is None else {label("rate_gflops"): standing.rate.figure()}
        return {label(self.response): standing.figure, **rate}

    def _apart(self, one: Standing) -> str:
        words = f"not comparable: {one.trust.shortly}"
        if self.best.flagged:
            return f"{'the best' if one is self.best else one.in_words}; {words}"
        return f"certainly better, but {words}" if one.is_ahead else words

    def to_dict(self) -> dict[str, Any]:
        return {
            "response": self.response,
            "expected_loss": self.expected_loss if self.expected_loss < inf else None,
            "standings": [one.to_dict() for one in self.standings],
            "ahead": [dict(one.point) for one in self.ahead],
            "refused": [{"point": dict(point), "reason": reason} for point, reason in self.refused.items()],
        }


@dataclass(frozen=True)
class _Runs:
    """Logarithms and outcomes by seed, less is better; controls of the runs, in the order of their seeds."""

    point: Point
    logs: Mapping[int, float]
    outcomes: Mapping[int, Outcome]
    trust: Trust
    controls: Controls | None = None

    @cached_property
    def mean(self) -> float:
        """With the controls at their means."""
        return fsum(adjusted(list(self.logs.values()), self.controls).logs) / len(self.logs)

    @property
    def gflop(self) -> float:
        """Of a run, if that is HPL; else NaN."""
        responses = next(iter(self.outcomes.values())).responses
        return responses.get("time_s", nan) * responses.get("rate_gflops", nan)

    def spread(self, response: str) -> Spread:
        """As of a prediction from these runs."""
        return spread(list(self.outcomes.values()), response, self.controls)


@dataclass(frozen=True)
class _Gap:
    """Differences of logarithms to the best, run by run.

    sd : of one, but for what controls explain;  degrees : of freedom behind it, 0: unknown
    left : the differences as if the controls of each run were at their mean, and what these explain
    """

    logs: tuple[float, ...]
    controls: Controls | None
    left: Adjusted
    sd: float
    degrees: float
    sampling_sd: float

    @property
    def count(self) -> int:
        return len(self.logs)

    @cached_property
    def mean(self) -> float:
        return fsum(self.left.logs) / self.count

    @property
    def error_sd(self) -> float:
        """Of the mean."""
        return hypot(self.sd * sqrt(self.left.widening), self.sampling_sd)

    @property
    def prediction_sd(self) -> float:
        """Of a further difference about this mean."""
        return hypot(self.sd * sqrt(1.0 + self.left.widening), self.known_sd)

    @property
    def known_sd(self) -> float:
        """The part of that which no further run changes: what controls explain, and the error of sampling."""
        return hypot(sqrt(self.left.variance), self.sampling_sd)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of one further difference, 95 %: from few runs by the spread of all points, else that of all ratios."""
        if self.degrees == 0.0:
            return None
        if self.count < FEW_RUNS:
            reach = student_quantile(0.975, self.degrees) * self.prediction_sd
            return exp(max(self.mean - reach, -700.0)), exp(min(self.mean + reach, 700.0))
        return prediction_interval([exp(log) for log in self.logs], self.sampling_sd, self.controls).ends

    @property
    def enough(self) -> int | None:
        """Runs of each that would tell the difference; None if no number would do."""
        if self.degrees == 0.0:
            return None
        return runs_that_tell(self.mean, self.sd, self.known_sd, self.count, self.left.estimated)


def rank(
    outcomes: Iterable[Outcome],
    response: str = "time_s",
    *,
    seed: int = 1,
    probabilities: bool = True,
    trusts: Mapping[Point, Trust] | None = None,
    controls: Mapping[Point, Controls] | None = None,
    again: Sequence[Outcome] = (),
    controls_again: Controls | None = None,
) -> Ranking:
    """The ranking of the points of these outcomes.

    trusts : of points that were judged; of others by their shares;  controls : of those that were priced
    again  : the runs of the best with other noise, which two real runs have: ratios are then as of a `difference`
    seed : of the draws behind the probabilities;  probabilities : whether they are wanted, which takes longest
    Raises InputError if no point competes, or a response is not above 0.
    """
    runs, refused = _runs_of(outcomes, response, trusts or {}, controls or {})
    if not runs:
        why = next(iter(refused.values()), "there is none")
        raise InputError(f"no point can be compared: {why}")
    competing = [run for run in runs if run.trust.comparable] or runs
    most = max(len(one.logs) for one in competing)
    best = min((one for one in competing if len(one.logs) == most), key=lambda one: one.mean)
    gaps = _gaps(runs, best)
    chances = _probabilities(competing, best, gaps, seed) if probabilities else dict.fromkeys(gaps, nan)
    best_mean, stated = best.spread(response).mean, gaps
    best_rate = best.spread("rate_gflops").mean if response == "time_s" and isfinite(best.gflop) else None
    if again:
        (repeated,), _ = _runs_of(again, response, {}, {best.point: controls_again} if controls_again else {})
        stated = _gaps(runs, best, repeated)
    standings = []
    for run in runs:
        gap, chance = stated[run.point], chances.get(run.point, 0.0)
        value, ratio = best_mean * exp(gap.mean) ** sign_of(response), exp(gap.mean)
        low, high = (None, None) if run is best else gap.interval or (None, None)
        near = run is best or low is None or high is None or low <= 1.0 <= high
        made = Standing(run.point, len(run.logs), value, ratio, low, high, chance, near, run.trust, gap.enough)
        by_itself = run is best or made.is_ahead
        if best_rate is not None:
            rate = Spread(best_rate * run.gflop / best.gflop / ratio, nan, nan)
            made = replace(made, rate=run.spread("rate_gflops") if by_itself else rate)
        standings.append(replace(made, spread=run.spread(response)) if by_itself else made)
    standings.sort(key=lambda standing: (standing.point != best.point, standing.ratio))
    loss = fsum(_loss(gaps[one.point]) for one in competing if one is not best)
    return Ranking(response, tuple(standings), loss, refused)


def _runs_of(
    outcomes: Iterable[Outcome], response: str, trusts: Mapping[Point, Trust], controls: Mapping[Point, Controls]
) -> tuple[list[_Runs], dict[Point, str]]:
    from lepaute import _core

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
        logs = {one.trial.seed: sign_of(response) * _core.natural_log(one[response]) for one in each}
        trust = trusts.get(point) or replace(by_share(each), seen=False)
        runs.append(_Runs(point, logs, {one.trial.seed: one for one in each}, trust, controls.get(point)))
    return runs, refused


def _gap(one: _Runs, best: _Runs, repeated: _Runs | None = None) -> _Gap:
    """From seeds that both have; repeated : the best with other noise, which decides the spread about the same mean."""
    reference = repeated or best
    seeds = [seed for seed in one.logs if seed in reference.logs]
    if not seeds:
        raise InputError(
            f"{one.point} has no seed in common with {best.point}; simulate all points with the same seeds"
        )
    logs = tuple(one.logs[seed] - reference.logs[seed] for seed in seeds)
    controls = None
    if all(list(each.logs)[: len(seeds)] == seeds for each in (one, reference)):
        controls = controls_of_ratio(*(each.controls and each.controls.first(len(seeds)) for each in (reference, one)))
    residual = adjusted(logs, controls)
    mean, degrees = fsum(residual.logs) / len(logs), len(logs) - 1.0 - residual.estimated
    sd = sqrt(fsum((value - mean) ** 2 for value in residual.logs) / degrees) if degrees > 0.0 else 0.0
    sampling_sds = [sampling_sd_of_mean(runs.outcomes[seed] for seed in seeds) for runs in (one, reference)]
    gap = _Gap(logs, controls, residual, sd, degrees, hypot(*sampling_sds))
    if repeated is None:
        return gap
    moved = _gap(one, best).mean - gap.mean
    logs = tuple(log + moved for log in logs)
    return replace(gap, logs=logs, left=adjusted(logs, controls))


def _gaps(runs: Sequence[_Runs], best: _Runs, repeated: _Runs | None = None) -> dict[Point, _Gap]:
    """Of all points; the spread of those with few runs is moderated by that of all (Smyth 2004)."""
    gaps = {run.point: _gap(run, best, None if run is best else repeated) for run in runs}
    others = [gap for point, gap in gaps.items() if point != best.point]
    degrees = fsum(gap.degrees for gap in others)
    if degrees == 0.0:
        return gaps
    # Points with few runs have no controls: all of their spread is their own.
    common = fsum(gap.degrees * (gap.sd**2 + gap.left.variance) for gap in others) / degrees
    worth = min(WORTH_OF_OTHERS, degrees)
    for point, gap in list(gaps.items()):
        if point != best.point and gap.count < FEW_RUNS:
            variance = (worth * common + gap.degrees * gap.sd**2) / (worth + gap.degrees)
            gaps[point] = replace(gap, sd=sqrt(variance), degrees=worth + gap.degrees)
    return gaps


def _loss(gap: _Gap) -> float:
    """Expected shortfall of the best against this point: E max(0, -gap), its mean known as Student's t."""
    if gap.degrees == 0.0:
        return inf
    if gap.error_sd == 0.0:
        return max(0.0, -gap.mean)
    nu, scaled = max(gap.degrees, 1.01), gap.mean / gap.error_sd
    # of a t variable with nu degrees of freedom (Chick & Inoue, Operations Research 49, 2001)
    excess = (nu + scaled**2) / (nu - 1.0) * stats.t.pdf(scaled, nu) - scaled * stats.t.sf(scaled, nu)
    return float(gap.error_sd * max(excess, 0.0))


def _probabilities(runs: Sequence[_Runs], best: _Runs, gaps: Mapping[Point, _Gap], seed: int) -> dict[Point, float]:
    """How often each is the best in draws of a further machine.

    Points with all seeds are drawn together, as combinations of what each seed had: what they have in common stays in
    common. For those that were dropped early, with too few seeds for that, half of the variance is taken to be the
    best's own, which is in all differences to it.
    """
    if all(gaps[run.point].degrees == 0.0 for run in runs):
        return {run.point: 1.0 / len(runs) for run in runs}
    generator = np.random.default_rng(seed)
    count = len(best.logs)
    whole = {
        at: gaps[one.point]
        for at, one in enumerate(runs)
        if one is not best and len(one.logs) == count and gaps[one.point].count >= FEW_RUNS
    }
    dropped = [at for at, one in enumerate(runs) if one is not best and at not in whole]
    weights = generator.standard_normal((DRAWS, count))
    degrees = max(min((gap.degrees for gap in whole.values()), default=count - 1.0), 1.0)
    scale = np.sqrt(degrees / generator.chisquare(degrees, DRAWS))
    priced = generator.random(DRAWS) if any(gap.left.explained for gap in whole.values()) else np.zeros(DRAWS)
    samples: Floats = np.zeros((DRAWS, len(runs)))
    of_best: Floats = np.zeros(DRAWS)
    for at, gap in whole.items():
        unexplained = weights @ (np.array(gap.left.logs) - gap.mean) / sqrt(gap.degrees)
        explained = np.array(gap.left.explained or (0.0,))
        common = explained[(priced * len(explained)).astype(int)]  # the same draws of all points
        of_best += (unexplained + common) / max(hypot(gap.sd, sqrt(gap.left.variance)), 1e-300)
        spread = sqrt(1.0 + gap.left.widening) * scale * unexplained + common
        samples[:, at] = gap.mean + spread + gap.sampling_sd * generator.standard_normal(DRAWS)
    of_best = of_best / of_best.std() if of_best.any() else generator.standard_normal(DRAWS)
    for at in dropped:
        gap = gaps[runs[at].point]
        behind = max(gap.degrees, 1.0)
        normal = sqrt(0.5) * of_best + sqrt(0.5) * generator.standard_normal(DRAWS)
        samples[:, at] = gap.mean + gap.prediction_sd * normal * np.sqrt(behind / generator.chisquare(behind, DRAWS))
    counts = np.bincount(samples.argmin(axis=1), minlength=len(runs))
    return {one.point: float(times) / DRAWS for one, times in zip(runs, counts, strict=True)}
