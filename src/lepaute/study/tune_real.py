"""Tuning with a few real runs: the simulation proposes, and each real run corrects it.

The model of log(real time) is a normal vector over the points: its mean is that of the simulations; its covariance is
that of the simulations over machines and days (equal seeds), and that of their error,

    log(real / simulated) = bias + sum over factors of an effect of the level + an error of the point,

each normal about 0, and a real run scatters about the mean of such runs. How large the effects, the errors and the
scatter are is not known: a grid of values, weighted by the likelihood of the real runs so far. A real run changes what
is known of all points that share something with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, fsum, log, pi
from typing import Any

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.text import change_in_words, counted, with_interval
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.expanding import Floats
from lepaute.study.evaluation import Outcome, Point, by_point

#: Standard deviation of the common bias; guesses of the others: of the effect of a level, of the error of a point.
BIAS_SD, LEVEL_SDS, POINT_SDS = 0.1, (0.003, 0.01, 0.03), (0.003, 0.01, 0.03)
#: What the simulated covariance is multiplied by: layers may be wider than what this machine shows.
SIMULATED_WEIGHTS = (0.25, 1.0)
#: Of a real run about the mean of such runs: a dedicated cluster, a workstation, a shared virtual machine.
RUN_SDS = (0.005, 0.02, 0.08)
#: Ends where the choice is expected to be worse by at most this share than the best.
TOLERANCE = 0.002
DRAWS = 4000
#: Variance that keeps what rounding leaves of a covariance positive.
ROUNDING = 1e-12
#: An early stop needs as many real runs, of two points at least: one alone tells only how far off the simulation is.
MIN_RUNS = 3
#: A point is run this often at most.
MAX_REPEATED = 3


@dataclass(frozen=True)
class Corrected:
    """The choice after the real runs.

    best        : the point of the smallest expected real time;  expected_s, low_s, high_s : of one real run of it, 95 %
    probability : that each point is the best;  expected_loss : of the choice, relative
    runs        : the real runs in their order: point and seconds
    bias        : what real runs take longer by than simulated ones, relative, on the average of the points
    ended       : "known well enough" or "all real runs made"
    flagged     : points that it chose among that are not comparable: what is simulated of them says less
    """

    best: Point
    expected_s: float
    low_s: float
    high_s: float
    probability: Mapping[Point, float]
    expected_loss: float
    runs: tuple[tuple[Point, float], ...]
    bias: float
    ended: str
    flagged: tuple[Point, ...] = ()

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        sure, flags = 100.0 * self.probability[self.best], ""
        if self.flagged:
            chosen = ", the chosen one among them" if self.best in self.flagged else ""
            flags = f"; {len(self.flagged)} of {len(self.probability)} are not comparable by simulation alone{chosen}"
        return (
            f"Best: {self.best}, {with_interval(self.expected_s, self.low_s, self.high_s, 's')} after "
            f"{counted(len(self.runs), 'real run')}, the best one with a probability of {sure:.0f} %; real runs take "
            f"{change_in_words(1.0 + self.bias, 'longer', 'less')} than simulated ones{flags}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "best": dict(self.best),
            "time_s": {"mean": self.expected_s, "low": self.low_s, "high": self.high_s},
            "expected_loss": self.expected_loss,
            "probability_best": [{"point": dict(point), "probability": p} for point, p in self.probability.items()],
            "real_runs": [{"point": dict(point), "time_s": seconds} for point, seconds in self.runs],
            "bias": self.bias,
            "ended": self.ended,
            "flagged": [dict(point) for point in self.flagged],
        }


@dataclass(frozen=True, slots=True)
class _Guess:
    """Its weight, standard deviation of a run, and mean and covariance of the logarithms of the mean real times."""

    weight: float
    run_sd: float
    mean: "Floats"
    covariance: "Floats"


class _RealModel:
    """Beliefs on the real times of points, from simulations with equal seeds and the real runs so far."""

    def __init__(self, simulated: Sequence[Outcome]) -> None:
        """Raises InputError if the points have fewer than two seeds in common."""
        runs = {point: {one.trial.seed: one["time_s"] for one in each if one.refusal is None}
                for point, each in by_point(simulated).items()}  # fmt: skip
        runs = {point: times for point, times in runs.items() if times}
        seeds = sorted(set.intersection(*map(set, runs.values()))) if runs else []
        if len(seeds) < 2:
            raise InputError("the points have fewer than 2 seeds in common; simulate all with the same seeds")
        self.points = list(runs)
        self._place = {point: at for at, point in enumerate(self.points)}
        logs = np.log([[times[seed] for seed in seeds] for times in runs.values()])
        self._mean: Floats = logs.mean(axis=1)
        spread = logs - self._mean[:, None]
        self._simulated: Floats = spread @ spread.T / (len(seeds) - 1)
        self._alike: Floats = np.zeros_like(self._simulated)
        for name in sorted({name for point in self.points for name in point}):
            levels = [point.get(name) for point in self.points]
            self._alike += np.array([[level == other for other in levels] for level in levels])
        self.runs: list[tuple[Point, float]] = []

    def add(self, point: Point, seconds: float) -> None:
        """Takes a real run in; raises InputError for a time that is not above 0."""
        if not seconds > 0.0:
            raise InputError(f"a real run of {point} took {seconds} s; a time is above 0")
        self.runs.append((point, seconds))

    def times_run(self, point: Point) -> int:
        return sum(one == point for one, _ in self.runs)

    def posterior(self) -> "list[_Guess]":
        """What is known for each guess of how large effects, errors and scatter are."""
        found = []
        for weight, level_sd, point_sd, run_sd in product(SIMULATED_WEIGHTS, LEVEL_SDS, POINT_SDS, RUN_SDS):
            covariance = (
                weight * self._simulated
                + BIAS_SD**2
                + level_sd**2 * self._alike
                + point_sd**2 * np.eye(len(self.points))
            )
            found.append((run_sd, *self._given_runs(covariance, run_sd)))
        largest = max(likelihood for _, likelihood, _, _ in found)
        weights = [exp(likelihood - largest) for _, likelihood, _, _ in found]
        return [
            _Guess(weight / fsum(weights), run_sd, mean, covariance)
            for weight, (run_sd, _, mean, covariance) in zip(weights, found, strict=True)
        ]

    def draws(self, seed: int) -> "tuple[Floats, Floats]":
        """Joint draws of the logarithms, shape (DRAWS, points), and the scatter of a run that goes with each."""
        generator = np.random.default_rng(seed)
        parts, scatter = [], []
        posterior = self.posterior()
        counts = generator.multinomial(DRAWS, [guess.weight for guess in posterior])
        for count, guess in zip(counts, posterior, strict=True):
            if count == 0:
                continue
            root = np.linalg.cholesky(guess.covariance + ROUNDING * np.eye(len(guess.mean)))
            parts.append(guess.mean + generator.standard_normal((count, len(guess.mean))) @ root.T)
            scatter.append(np.full(count, guess.run_sd))
        return np.concatenate(parts), np.concatenate(scatter)

    @property
    def bias(self) -> float:
        """Expected log(real / simulated), mean over the points."""
        return float(sum(guess.weight * (guess.mean - self._mean).mean() for guess in self.posterior()))

    def _given_runs(self, covariance: "Floats", run_sd: float) -> "tuple[float, Floats, Floats]":
        """Log-likelihood of the runs, and the distribution given them."""
        if not self.runs:
            return 0.0, self._mean, covariance
        at = [self._place[point] for point, _ in self.runs]
        factor = np.linalg.cholesky(covariance[np.ix_(at, at)] + run_sd**2 * np.eye(len(at)))
        residual = np.linalg.solve(factor, np.array([log(seconds) for _, seconds in self.runs]) - self._mean[at])
        gain = np.linalg.solve(factor, covariance[at])
        likelihood = -0.5 * residual @ residual - np.log(np.diag(factor)).sum() - 0.5 * len(at) * log(2.0 * pi)
        return float(likelihood), self._mean + gain.T @ residual, covariance - gain.T @ gain


def correct(
    simulated: Sequence[Outcome],
    real: Callable[[Point], float],
    runs: int,
    *,
    seed: int = 1,
    trusts: Mapping[Point, Trust] | None = None,
) -> Corrected:
    """The best point by simulations and at most `runs` real runs, each where it is expected to improve the choice most.

    simulated : time_s of all points that may be run, with equal seeds
    real      : runs a point and returns its seconds
    """
    if runs < 1:
        raise InputError(f"there are {runs} real runs; give one at least")
    model, ended = _RealModel(simulated), "all real runs made"
    for number in range(runs):
        drawn, _ = model.draws(seed + number)
        choice = int(drawn.mean(axis=0).argmin())
        loss = _loss(drawn, choice)
        if number >= MIN_RUNS and len({point for point, _ in model.runs}) > 1 and loss <= TOLERANCE:
            ended = "known well enough"
            break
        model.add(*_run(model, drawn, choice, real))
    drawn, scatter = model.draws(seed + runs)
    choice = int(drawn.mean(axis=0).argmin())
    noisy = drawn[:, choice] + scatter * np.random.default_rng(seed).standard_normal(len(drawn))
    low, middle, high = np.exp(np.quantile(noisy, [0.025, 0.5, 0.975]))
    counts = np.bincount(drawn.argmin(axis=1), minlength=len(model.points)) / len(drawn)
    return Corrected(
        model.points[choice],
        float(middle),
        float(low),
        float(high),
        {point: float(count) for point, count in zip(model.points, counts, strict=True)},
        _loss(drawn, choice),
        tuple(model.runs),
        float(np.expm1(model.bias)),
        ended,
        tuple(point for point in model.points if point in (trusts or {}) and not (trusts or {})[point].comparable),
    )


def _loss(drawn: "Floats", choice: int) -> float:
    """Expected logarithm of the time of the choice over the best."""
    return float((drawn[:, choice] - drawn.min(axis=1)).mean())


def _run(model: _RealModel, drawn: "Floats", choice: int, real: Callable[[Point], float]) -> tuple[Point, float]:
    """A real run of the choice where it has none, else of the point that is expected to beat it by most."""
    point = model.points[choice]
    if model.times_run(point) > 0:
        gains = np.maximum(drawn[:, choice][:, None] - drawn, 0.0).mean(axis=0)
        for at, one in enumerate(model.points):
            if model.times_run(one) > 0:  # what a further run of it could still change is its noise
                gains[at] = gains[at] / 4.0 if model.times_run(one) < MAX_REPEATED else -1.0
        gains[choice] = -1.0
        point = model.points[int(gains.argmax())]
    return point, real(point)
