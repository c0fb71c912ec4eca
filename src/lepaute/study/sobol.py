"""Sobol's indices of factors with ranges or distributions: SALib's samples and estimators, bootstrap intervals.

Simulations are noisy. The seed, which is the machine and the day, is one more input of the design: rows that differ in
a factor alone have the same seed, and the seed has indices of its own, which are the share of everything that the
layers of uncertainty draw. What a run has of its own even so (two points with one seed do not share the noise of their
calls) would count as an effect of every factor in the total indices: a second run of each row measures it, and it is
taken off. Every run of a row is another repeat on its machine and day.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from math import ceil, exp, floor, log, log1p, log2, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.text import with_interval
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.decision import Decision
from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.student import NORMAL_975
from lepaute.study.evaluation import Evaluate, Further, Point, Trial, Value, answered, noun
from lepaute.study.schema import Distribution, Factor
from lepaute.study.trust import decision_of

#: From a probability to the value of a factor.
Quantile = Callable[[float], Value]
#: The input that the seed is.
SEED = "machine and day"
RESAMPLES = 1000
#: Of the table, in all resamples that are computed together: 1 MiB.
_VALUES_AT_ONCE = 2**17
#: Rows of the base sample, and no more seeds than this.
FEWEST, MOST = 8, 2**20


@dataclass(frozen=True, slots=True)
class Index:
    """A share of the variance of the response, and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        value, low, high = (100.0 * max(share, 0.0) for share in (self.value, self.low, self.high))
        return with_interval(value, low, high, "%", "")


@dataclass(frozen=True, slots=True)
class SobolIndices:
    """Of each factor, the largest total first.

    first : what the factor explains by itself;  total : with all its interactions
    machine_first, machine : what machines and days differ by, by itself and with its interactions
    noise : share of a run's own noise
    trusts : none: points of one run each are not judged
    rows  : of the base sample;  refused : rows that were left out since one of their runs was refused
    """

    response: str
    first: Mapping[str, Index]
    total: Mapping[str, Index]
    machine_first: Index
    machine: Index
    noise: float
    rows: int
    refused: int
    simulations: int
    trusts: Mapping[Point, Trust] = field(default_factory=dict)

    def is_null(self, name: str) -> bool:
        """Whether nothing shows that the factor has an effect."""
        return self.total[name].low <= 0.0

    @property
    def decision(self) -> Decision:
        """That a factor shows an effect."""
        return decision_of(not all(map(self.is_null, self.total)), self.trusts.values())

    @property
    def sentence(self) -> str:
        found = [name for name in self.total if not self.is_null(name)]
        parts = [f"{name} {self.total[name].text}" for name in found]
        said = ", ".join([*parts, f"{SEED} {self.machine.text}", f"a run's own noise {100.0 * self.noise:.1f} %"])
        if not found:
            first = "No factor shows an effect"
        elif self.machine.low > self.total[found[0]].high:
            first = f"{SEED} matter more than any factor"
        else:
            first = f"{found[0]} {'matters most' if found[0] == next(iter(self.total)) else 'is shown to matter'}"
        return f"{first}: of the variance of {noun(self.response)}, with interactions, {said}"

    @property
    def further(self) -> Further | None:
        """The simulations that would show the largest total index, where none shows."""
        first, index = next(iter(self.total.items()))
        if not self.is_null(first) or index.value <= 0.0:
            return None
        rows = 1 << ceil(log2(self.rows * ((index.value - index.low) / index.value) ** 2) + 1e-9)
        needed = simulations_of(len(self.total), rows)
        return Further(f"budget.simulations {needed}", needed) if rows <= MOST else None

    @property
    def text(self) -> str:
        return answered(self)

    def to_dict(self) -> dict[str, Any]:
        return {
            "response": self.response,
            "factors": [
                {"factor": name, "first": asdict(self.first[name]), "total": asdict(self.total[name])}
                for name in self.total
            ],
            "machine_and_day": {"first": asdict(self.machine_first), "total": asdict(self.machine)},
            "noise_share": self.noise,
            "rows": self.rows,
            "refused_rows": self.refused,
            "simulations": self.simulations,
        }


def simulations_of(factors: int, rows: int) -> int:
    """How many simulations the indices take."""
    return rows * (factors + 4)


def sobol(
    factors: Mapping[str, Quantile], evaluate: Evaluate, rows: int, *, response: str = "time_s", seed: int = 1
) -> SobolIndices:
    """First and total indices of each factor from `rows` x (factors + 4) simulations; rows is a power of two.

    Raises InputError for another number of rows, no factor, or where hardly any row could be simulated.
    """
    from SALib.sample import sobol as sampler

    if not factors or rows < FEWEST or rows > MOST or rows & (rows - 1):
        raise InputError(
            f"{len(factors)} factors and {rows} rows; give a factor, and a power of two from {FEWEST} rows"
        )
    names = [*factors, SEED]
    problem = {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
    step = len(names) + 2
    trials = []
    for at, row in enumerate(sampler.sample(problem, rows, calc_second_order=False, scramble=True, seed=seed % 2**32)):
        point = Point({name: quantile(float(u)) for (name, quantile), u in zip(factors.items(), row, strict=False)})
        # Each of a row's own repeat: their noise is as independent as that of the second run by which it is measured.
        trials.append(Trial(point, (seed + int(row[-1] * 2**52)) % 2**63, at % step))
    outcomes = evaluate([*trials, *[Trial(trial.point, trial.seed, step) for trial in trials[::step]]])
    values = np.array([(float("nan") if outcome.refusal is not None else outcome[response]) for outcome in outcomes])
    table, second = values[: len(trials)].reshape(rows, step), values[len(trials) :]
    usable = np.isfinite(table).all(axis=1) & np.isfinite(second)
    if usable.sum() < FEWEST:
        reason = next((one.refusal for one in outcomes if one.refusal), "")
        raise InputError(f"only {usable.sum()} of {rows} rows could be simulated: {reason}")
    first, total, noise = _indices(table[usable], second[usable], seed)
    order = sorted(factors, key=lambda name: -total[names.index(name)].value)
    return SobolIndices(
        response,
        {name: first[names.index(name)] for name in order},
        {name: total[names.index(name)] for name in order},
        first[-1],
        total[-1],
        noise,
        rows,
        int((~usable).sum()),
        len(outcomes),
    )


def _indices(table: Floats, second: Floats, seed: int) -> tuple[list[Index], list[Index], float]:
    """Of the rows A, AB_1, ..., B of the design: first and total of each input, the share of noise."""
    from SALib.analyze.sobol import first_order, total_order

    count, inputs = len(table), table.shape[1] - 2

    def estimates(rows: Integers) -> Floats:
        """Of each resample, a line of `rows`: all first indices, all total ones, the noise."""
        # shape (inputs + 2, count, resamples): SALib takes samples along its first axis, and others beside it
        part, again = table.T[:, rows.T], second[rows.T]
        both = np.concatenate([part[0], part[-1]])
        mean, scale = both.mean(axis=0), both.std(axis=0)
        varies = scale > 0.0
        scale[~varies] = 1.0
        part, again = (part - mean) / scale, (again - mean) / scale
        noise = ((part[0] - again) ** 2).mean(axis=0) / 2.0
        firsts = [first_order(part[0], part[at], part[-1]) for at in range(1, inputs + 1)]
        totals = [total_order(part[0], part[at], part[-1]) - noise for at in range(1, inputs + 1)]
        totals[-1] += noise  # a run's own noise is drawn from the seed as well
        return np.asarray(np.where(varies, np.array([*firsts, *totals, noise]), 0.0).T)

    generator = np.random.default_rng(seed)
    (middle,) = estimates(np.arange(count)[None, :])
    at_once = max(1, _VALUES_AT_ONCE // table.size)
    half = NORMAL_975 * np.concatenate(
        [
            estimates(generator.integers(count, size=(min(at_once, RESAMPLES - begin), count)))
            for begin in range(0, RESAMPLES, at_once)
        ]
    ).std(axis=0, ddof=1)
    indices = [Index(float(v), float(v - h), float(v + h)) for v, h in zip(middle, half, strict=True)]
    return indices[:inputs], indices[inputs : 2 * inputs], float(middle[-1])


def quantile_of(factor: Factor) -> Quantile:
    """From a probability to a value of the factor."""
    if factor.levels is not None:
        return of_levels(tuple(factor.levels))
    spread = factor.distribution
    of_values = _of_distribution(spread) if spread is not None else _of_range(*(factor.range or (0.0, 1.0)), factor.log)
    return (lambda u: round(float(of_values(u)))) if factor.integer else of_values  # type: ignore[arg-type]


def of_levels(levels: tuple[Value, ...]) -> Quantile:
    return lambda u: levels[min(floor(u * len(levels)), len(levels) - 1)]


def _of_range(low: float, high: float, logarithm: bool) -> Quantile:
    if logarithm:
        return lambda u: exp(log(low) + u * (log(high) - log(low)))
    return lambda u: low + u * (high - low)


def _of_distribution(spread: Distribution) -> Quantile:
    if spread.low is not None and spread.high is not None:
        return _of_range(spread.low, spread.high, spread.kind == "log-uniform")
    assert spread.mean is not None
    assert spread.sd is not None
    if spread.kind == "normal":
        return _of_normal(NormalDist(spread.mean, spread.sd))
    variance = log1p((spread.sd / spread.mean) ** 2)
    of_logarithm = _of_normal(NormalDist(log(spread.mean) - variance / 2.0, sqrt(variance)))
    return lambda u: exp(float(of_logarithm(u)))  # type: ignore[arg-type]


def _of_normal(distribution: NormalDist) -> Quantile:
    return lambda u: distribution.inv_cdf(min(max(u, 1e-9), 1.0 - 1e-9))
