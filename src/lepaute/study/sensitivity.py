"""The question sensitivity: analysis of variance where all factors have levels, Sobol indices otherwise (`sobol`).

Main effects and interactions by analysis of variance: factors crossed, runs with common random numbers as blocks.

A seed is a machine on a day, and a factor may matter otherwise on each: the effect of a block size depends on how far
off the kernel model of that size is. So an effect is judged against its own variation between seeds, as in an analysis
of repeated measures, and not against the noise of all: with the latter, everything would be significant that the
errors of a model make so. Greenhouse and Geisser's correction (Psychometrika 24, 1959) takes unequal variation of the
levels into account. Sums of squares are of type II: those of a term after all others that do not contain it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from math import exp, inf, log, nan, sqrt
from typing import Any

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.later import stats
from lepaute.kit.text import change_in_words, value_and_interval, with_interval
from lepaute.simulate.prediction.comparing import Difference
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.decision import Decision
from lepaute.stats.expanding import Floats
from lepaute.stats.student import student_quantile
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import (
    LESS_IS_BETTER,
    LITTLE,
    Evaluate,
    Further,
    Outcome,
    Point,
    Value,
    answered,
    by_point,
    common_table,
    noun,
    shown,
    trials_of,
)
from lepaute.study.schema import Study
from lepaute.study.sobol import FEWEST, SobolIndices, of_levels, quantile_of, simulations_of, sobol
from lepaute.study.trust import Judge, decision_of

#: A term of smaller p-value is called significant.
LEVEL = 0.05
#: Of the variance: of an interaction that explains as much, the best combination is named.
MUCH = 0.1
#: Runs of each configuration that are advised where there is one, and the most that are.
USUAL_SEEDS, MAX_SEEDS = 5, 100
#: Trials of all points and seeds that an analysis takes.
MAX_TRIALS = 200_000
#: Rows of the base sample of Sobol indices where the study names no budget.
USUAL_ROWS = 256


@dataclass(frozen=True, slots=True)
class LevelEffect:
    """A level against the mean of all points: how many times as large the response is there (or by how much larger).

    low, high : 95 % confidence interval of the mean over machines; None for one seed
    """

    level: Value
    effect: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Term:
    """A factor, or an interaction of two.

    share   : of the variance between points that it explains
    p_value : chance of at least such an F where it has no effect; None for one seed
    enough  : seeds that would show the effect if it is as large as it seems; None if it is no larger than chance has
              it, or MAX_SEEDS would not do
    levels  : of a factor, or combinations of those of two;  widest : the level of the largest response, against that of
              the smallest, of a factor alone
    """

    factors: tuple[str, ...]
    share: float
    degrees: int
    f: float | None
    p_value: float | None
    levels: tuple[LevelEffect, ...] = ()
    enough: int | None = None
    widest: tuple[LevelEffect, Value] | None = None

    @property
    def name(self) -> str:
        return " × ".join(self.factors)

    @property
    def is_significant(self) -> bool:
        return self.p_value is not None and self.p_value < LEVEL

    def to_dict(self) -> dict[str, Any]:
        return {
            "term": list(self.factors),
            **{name: getattr(self, name) for name in ("share", "degrees", "f", "p_value")},
            "levels": [asdict(level) for level in self.levels],
        }


@dataclass(frozen=True, slots=True)
class Effects:
    """What the factors do to a response, the largest term first.

    logarithm : whether effects multiply
    unexplained : share of the variance between points that no term has: interactions of more factors
    between_seeds, noise : standard deviations of a single run: common to all points of a seed, and of a point; of the
        logarithm, or in the unit of the response
    left_out  : points that were refused at some seed, so that their levels were compared without them
    """

    response: str
    logarithm: bool
    terms: tuple[Term, ...]
    unexplained: float
    between_seeds: float
    noise: float
    points: int
    seeds: int
    left_out: tuple[Point, ...]
    trusts: Mapping[Point, Trust] = field(default_factory=dict)

    @property
    def decision(self) -> Decision:
        """That a factor is shown to matter."""
        clear = any(term.is_significant for term in self.terms) if self.is_known else None
        return decision_of(clear, self.trusts.values())

    @property
    def text(self) -> str:
        """The sentence, and a line for each factor: its best and its worst level, and whether it goes up or down."""
        return "\n".join([answered(self), *(f"  {term.name}: {self.direction_of(term)}" for term in self.told_terms)])

    @property
    def told_terms(self) -> list[Term]:
        """What has a line of its own: every factor, and interactions that are shown to explain much."""
        return [
            term
            for term in self.terms
            if term in self.single_terms or (len(term.factors) > 1 and term.is_significant and term.share >= MUCH)
        ]

    @property
    def single_terms(self) -> list[Term]:
        """Of one factor with several levels."""
        return [term for term in self.terms if len(term.factors) == 1 and len(term.levels) > 1]

    def best_of(self, term: Term) -> tuple[LevelEffect, LevelEffect]:
        """The best and the worst level of a factor."""
        ordered = sorted(term.levels, key=lambda one: one.effect)
        return (ordered[0], ordered[-1]) if self.response in LESS_IS_BETTER else (ordered[-1], ordered[0])

    def direction_of(self, term: Term) -> str:
        """In words: 192 is the best level (5.1 % less than the mean of all), 64 the worst (8 % more)."""
        best, worst = self.best_of(term)
        what = "level" if len(term.factors) == 1 else "combination"
        words = (
            f"{best.level} is the best {what} ({self._change(best)}), {worst.level} the worst ({self._change(worst)})"
        )
        if all(isinstance(at.level, int | float) and not isinstance(at.level, bool) for at in term.levels):
            effects_up = [at.effect for at in sorted(term.levels, key=lambda at: float(at.level or 0))]
            if effects_up in (sorted(effects_up), sorted(effects_up, reverse=True)):
                words += f"; {noun(self.response)} {'grows' if effects_up[-1] > effects_up[0] else 'falls'} with it"
        return words if term.is_significant else f"{words}; no more than chance has it, as far as these runs tell"

    def _change(self, level: LevelEffect) -> str:
        """Against the mean of all points."""
        if not self.logarithm:
            sign = "+" if level.effect > 0.0 else ""
            return f"{sign}{value_and_interval(level.effect, level.low, level.high)[0]} against the mean of all"
        return f"{change_in_words(level.effect, low=level.low, high=level.high)} than the mean of all"

    @property
    def sentence(self) -> str:
        found = [term for term in self.terms if term.is_significant]
        if not found:
            return self._nothing
        shares = ", ".join(f"{term.name} {100.0 * term.share:.0f} %" for term in found[:4])
        largest, of = self.terms[0], f"of the variance of {noun(self.response)} between the points"
        if largest is not found[0]:
            seeming = f"{largest.name} explains the most, {100.0 * largest.share:.0f} % {of}, but that may be chance"
            return f"{seeming}; shown to matter: {shares}"
        explained = f"{of.removesuffix(' between the points')}: {shares}"
        widths = [(term.widest[0].high or inf) if self.logarithm and term.widest else inf for term in self.single_terms]
        if len(largest.factors) == 1 and max(widths, default=0.0) <= 1.0 + LITTLE:
            return f"No factor matters much: {largest.name} the most, {self._width(largest)}{explained}"
        return f"{largest.name} matters most: {self._width(largest)}{explained}"

    def _width(self, term: Term) -> str:
        """By how much its levels change the response: time 25 % more (95 %: 24 to 27 % more) at 256 than at 128;"""
        if term.widest is None:
            return ""
        most, least = term.widest
        if self.logarithm:
            low, high = (nan if end is None else end for end in (most.low, most.high))
            change = Difference(most.effect, low, high, shared=True, run_noise=True).in_words()
        else:
            change = f"+{with_interval(most.effect, most.low, most.high)}"
        return f"{noun(self.response).removeprefix('the ')} {change} at {shown(most.level)} than at {shown(least)}; "

    @property
    def further(self) -> Further | None:
        """Runs that would show the largest effect of those that are not chance, where none is shown."""
        if not self.is_known or any(term.is_significant for term in self.terms):
            return None
        enough = next((term.enough for term in self.terms if term.enough is not None), None)
        return None if enough is None else Further(f"--runs {enough}", self.points * (enough - self.seeds))

    @property
    def is_known(self) -> bool:
        """Whether an effect could have stood out at all."""
        return self.seeds > 1

    @property
    def _nothing(self) -> str:
        """What can be said where no effect stands out."""
        first = self.terms[0] if self.terms else None
        if first is not None and not self.is_known:
            return (
                f"With one run of each configuration nothing tells an effect on {noun(self.response)} from what "
                f"machines differ by; {first.name} explains the most, {100.0 * first.share:.0f} % of the variance "
                f"between the points; {USUAL_SEEDS} runs may tell"
            )
        effect, runs = f"effect on {noun(self.response)}", f"{self.seeds} runs of each configuration"
        none = f"No factor is shown to matter: no {effect} stands out from what machines differ by"
        likely = next((term.name for term in self.terms if term.enough is not None), None)
        return (
            f"{none} with {runs}; {likely} seems to have one" if likely else f"{none}, and {runs} give no sign of one"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "response": self.response,
            "logarithm": self.logarithm,
            "terms": [term.to_dict() for term in self.terms],
            "unexplained": self.unexplained,
            "between_seeds_sd": self.between_seeds,
            "noise_sd": self.noise,
            "points": self.points,
            "seeds": self.seeds,
            "left_out": [dict(point) for point in self.left_out],
            "best_levels": {term.name: self.best_of(term)[0].level for term in self.single_terms},
        }


def effects(outcomes: Iterable[Outcome], response: str = "time_s", *, logarithm: bool = True) -> Effects:
    """The analysis of points that have all the same seeds.

    logarithm : of the response, which must then be above 0: effects are ratios; otherwise they are differences
    Raises InputError if no factor has two levels, or the points have no seed in common.
    """
    points, table, refused = common_table(outcomes, (response,))
    values = table[:, 0]
    if values.size > MAX_TRIALS:
        raise InputError(
            f"{len(points)} points with {values.shape[1]} seeds are more than {MAX_TRIALS} runs; take fewer levels"
        )
    if logarithm and values.min() <= 0.0:
        raise InputError(f"{response} is not above 0 in a run, and has no logarithm; take differences")
    values = np.log(values) if logarithm else values
    names = [name for name in points[0] if len({point[name] for point in points}) > 1]
    if not names:
        raise InputError("no factor has two levels among the points that can be compared; nothing varies")
    terms: list[tuple[str, ...]] = [*((name,) for name in names), *combinations(names, 2)]
    dummies = {term: _dummies(points, term) for term in terms}
    means = values.mean(axis=1)
    total = float(((means - means.mean()) ** 2).sum())
    found = []
    for term in terms:
        others = [dummies[other] for other in terms if other != term and not set(term) <= set(other)]
        before = _orthonormal(np.hstack([np.ones((len(points), 1)), *others]))
        basis, size, _ = np.linalg.svd(dummies[term] - before @ (before.T @ dummies[term]), full_matrices=False)
        basis = np.asarray(basis[:, size > 1e-6])  # of what the term adds to the others and the mean
        if basis.shape[1] == 0:  # other terms say the same, as in a fraction of a factorial
            continue
        found.append(_term(term, points, basis, values, total, logarithm))
    whole = _orthonormal(np.hstack([np.ones((len(points), 1)), *dummies.values()]))
    rest = means - whole @ (whole.T @ means)
    centred = values - values.mean(axis=0)
    seeds = values.shape[1]
    degrees = (seeds - 1) * (len(points) - 1)
    return Effects(
        response,
        logarithm,
        tuple(sorted(found, key=lambda term: -term.share)),
        float((rest**2).sum() / total) if total > 0.0 else 0.0,
        float(values.mean(axis=0).std(ddof=1)) if seeds > 1 else 0.0,
        sqrt(float(((centred - centred.mean(axis=1, keepdims=True)) ** 2).sum()) / degrees) if degrees > 0 else 0.0,
        len(points),
        seeds,
        tuple(refused),
    )


def _dummies(points: Sequence[Point], term: tuple[str, ...]) -> Floats:
    """A column for each combination of levels."""
    keys = [Point({name: point[name] for name in term}) for point in points]
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    columns = np.zeros((len(points), len(place)))
    columns[np.arange(len(points)), [place[key] for key in keys]] = 1.0
    return columns


def _orthonormal(columns: Floats) -> Floats:
    """A basis of what the columns span."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(basis[:, size > 1e-9 * max(size.max(), 1e-300)])


def _term(
    term: tuple[str, ...], points: Sequence[Point], basis: Floats, values: Floats, total: float, logarithm: bool
) -> Term:
    """Its sum of squares, and its F against its own variation between seeds."""
    contrasts = basis.T @ values  # (degrees, seeds)
    mean = contrasts.mean(axis=1)
    squares, degrees, seeds = float(mean @ mean), basis.shape[1], values.shape[1]
    f = p_value = enough = None
    if seeds > 1:
        apart = contrasts - mean[:, None]
        covariance = apart @ apart.T / (seeds - 1)
        spread = float(covariance.trace())
        if spread > 1e-24 * max(squares, 1e-300):
            f = seeds * squares / spread
            alike = spread**2 / (degrees * float((covariance**2).sum()))  # 1/degrees to 1
            p_value = float(stats.f.sf(f, alike * degrees, alike * degrees * (seeds - 1)))
            enough = _enough(f, alike * degrees, seeds)
        else:
            p_value = 0.0 if squares > 1e-20 else 1.0
    share = squares / total if total > 0.0 else 0.0
    at = [Point({name: point[name] for name in term}) for point in points]
    # Of each level, or combination, the mean of its points at each seed, the other factors as the points have them.
    at_levels: dict[Value, Floats] = {
        level[term[0]] if len(term) == 1 else str(level): values[[there == level for there in at]].mean(axis=0)
        for level in dict.fromkeys(at)
    }
    common = values.mean(axis=0)
    levels = tuple(_against(level, of_seeds - common, logarithm) for level, of_seeds in at_levels.items())
    least, most = (extreme(at_levels, key=lambda level: float(at_levels[level].mean())) for extreme in (min, max))
    widest = (_against(most, at_levels[most] - at_levels[least], logarithm), least) if len(term) == 1 else None
    return Term(term, share, degrees, f, p_value, levels, enough, widest)


def _enough(f: float, degrees: float, seeds: int) -> int | None:
    """The number of seeds of which the term's F is expected to be significant; f : with `seeds`.

    The expected F of n seeds is 1 + n times a constant of the effect, which f tells.
    """
    of_effect = (f - 1.0) / seeds
    if of_effect <= 0.0:
        return None
    tried = range(max(seeds, 2), MAX_SEEDS + 1)
    return next((n for n in tried if stats.f.sf(1.0 + n * of_effect, degrees, degrees * (n - 1)) < LEVEL), None)


def _against(level: Value, differences: Floats, logarithm: bool) -> LevelEffect:
    """A level against something else, from the differences at each seed."""
    effect, low, high, seeds = float(differences.mean()), None, None, len(differences)
    if seeds > 1:
        half = student_quantile(0.975, seeds - 1) * float(differences.std(ddof=1)) / sqrt(seeds)
        low, high = effect - half, effect + half
    ends = (effect, low, high)
    scaled = [exp(min(end, log(1e300))) if logarithm and end is not None else end for end in ends]
    return LevelEffect(level, *scaled)  # type: ignore[arg-type]


def sensitivity(study: Study, configurations: Configurations, evaluate: Evaluate) -> Effects | SobolIndices:
    """What the factors do to the study's first response: of levels alone by analysis of variance of all combinations
    with the study's runs, otherwise by Sobol indices within its budget of simulations.

    Raises InputError if the budget is too small, or constraints stand beside ranges.
    """
    response = study.responses[0]
    if all(factor.levels is not None for factor in study.factors.values()):
        outcomes = evaluate(trials_of(configurations.points(), study.runs, study.seed))
        return replace(effects(outcomes, response), trusts=Judge(evaluate)(by_point(outcomes)))
    if study.constraints:
        raise InputError("Sobol indices need factors that vary independently: constraints do not go with ranges")
    quantiles = {name: quantile_of(factor) for name, factor in study.factors.items()}
    if study.scenarios:
        quantiles["scenario"] = of_levels(tuple(study.scenarios))
    return sobol(quantiles, evaluate, rows_of(study), response=response, seed=study.seed)


def rows_of(study: Study) -> int:
    """The largest power of two that the budget suffices for."""
    if study.budget.simulations is None:
        return USUAL_ROWS
    factors = len(study.factors) + bool(study.scenarios)
    rows = study.budget.simulations // simulations_of(factors, 1)
    if rows < FEWEST:
        raise InputError(
            f"budget.simulations, or budget.seconds, allows {study.budget.simulations}; Sobol indices of {factors} "
            f"factors take {simulations_of(factors, FEWEST)} at least"
        )
    return 1 << (rows.bit_length() - 1)
