"""The likely best of many points within a budget of simulations: not the luckiest, and no point chosen unsimulated.

`halve` spends it on few points by successive halving (Karnin, Koren & Somekh, ICML 2013) over replications: all points
with one common seed, the better half with another one, the better half of these with twice as many, and so on. Equal
seeds at all points are common random numbers: what the points share of a machine's errors does not reorder them.
`explore` finds points in spaces that are too large for that, and leaves the choice among the likely ones to `halve`.
`tune` is the question of a study file: which point of its space.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, isinf, log, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.later import later
from lepaute.kit.tables import text_table
from lepaute.simulate.prediction.sweep import remedy_of
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.control_variates import Controls
from lepaute.stats.decision import Decision
from lepaute.study.checking import USUAL_BUDGET, most_tuned
from lepaute.study.evaluation import (
    RESPONSES,
    SCENARIO,
    Evaluate,
    Further,
    Once,
    Outcome,
    Point,
    Value,
    answered,
    by_point,
    shown,
    sign_of,
    trials_of,
)
from lepaute.study.ranking import Ranking, Standing, rank
from lepaute.study.schema import Factor
from lepaute.study.trust import Judge, Pricing, decision_of
from lepaute.study.tune_real import Corrected

if TYPE_CHECKING:
    import optuna

    from lepaute.study.configuration import Configurations
    from lepaute.study.schema import Study
else:
    optuna = later("optuna")

#: Enough: the chosen point is expected to be worse by at most this share than the best, as far as simulations can tell.
TOLERANCE = 0.001
#: Survivors below which no point is dropped any more: further seeds go to all of them.
FEWEST = 2
#: An early stop needs as many runs of the survivors.
MIN_RUNS = 4
MAX_RUNS = 256
#: Points that real runs choose among.
MAX_CANDIDATES = 60
#: Points that the text shows.
MAX_ROWS = 12
#: Share of the budget that goes into finding points of a large space; the rest chooses among them.
EXPLORING_SHARE, EXPLORING_RUNS = 0.6, 1
#: With so much of the time behind no further runs begin: the next ones, and judging, take the rest.
ENOUGH_TIME = 0.7


#: Controls of the points that have enough runs (study/trust.py).
Price = Callable[[Mapping[Point, Sequence[Outcome]]], Mapping[Point, Controls]]


@dataclass(frozen=True)
class Tuned:
    """What tuning came to.

    ended       : why it ended: "known well enough", "budget spent", "all points simulated"
    points      : that were considered; there may have been more of them than were simulated
    method      : halving or exploring
    remedy      : the calibration after which fewer points are extrapolated, where one is known
    """

    ranking: Ranking
    simulations: int
    budget: int
    ended: str
    points: int
    method: str
    outcomes: tuple[Outcome, ...] = field(repr=False, default=())
    real: Corrected | None = None
    remedy: str | None = None
    trusts: Mapping[Point, Trust] = field(default_factory=dict)

    @property
    def best(self) -> Point:
        """The point to take: of those that are comparable, where any is."""
        return self.ranking.best.point if self.real is None else self.real.best

    @property
    def decision(self) -> Decision:
        """That a quarter of the points at most may be the best."""
        few = max(1, len(self.ranking.standings) // 4)
        clear = len(self.ranking.near) <= few if self.real is not None or self.ranking.best.runs > 1 else None
        return decision_of(clear, self.trusts.values())

    @property
    def text(self) -> str:
        """The answer, what it rests on, and a table of the first points."""
        titles, rows, rest = self.table()
        more = f"\nand {rest} more" if rest > 0 else ""
        said = "; ".join([answered(self), *(fact for _, fact in self.facts)])
        return f"{said}\n\n{text_table(titles, rows, left=(len(titles) - 1,))}{more}"

    @property
    def sentence(self) -> str:
        if self.real is not None:
            return self.real.text
        ranking = self.ranking
        best, ahead, near = ranking.best, ranking.ahead, len(ranking.near)
        alike = f", one of {near} that cannot be told apart" if near > 1 else ""
        among = " of those that are comparable" if ahead or ranking.rivals else ""
        answers = [f"Best{among}: {best.point}, {self._value_of(best)}{alike}"]
        if ahead:
            first = ahead[0]
            why = "; ".join(first.trust.reasons)
            answers.append(
                f"{first.point}, {self._value_of(first)}, is certainly better, by how much is not known: {why}"
            )
        if best.flagged:
            answers[0] += f", but neither it nor any other is comparable: {'; '.join(best.trust.reasons)}"
        return "; ".join(answers)

    @property
    def further(self) -> Further | None:
        """Runs that would tell the best from all others; none where no number would."""
        near = self.ranking.near
        enough = [one.enough for one in near[1:]]
        known = [each for each in enough if each is not None]
        if self.real is not None or not known or len(known) < len(enough):
            return None
        return Further(f"{max(known)} runs of each", sum(max(0, max(known) - one.runs) for one in near))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How sure the answer is and what would decide, each with a word for what it tells."""
        if self.real is not None:
            return []
        rivals, parts = self.ranking.rivals, [("sure", self._near_words())]
        if rivals:
            why = "; ".join(rivals[0].trust.reasons)
            parts.append(("rivals", f"{len(rivals)} more may be as good but cannot be compared: {why}"))
        if self.ranking.ahead or rivals or self.ranking.best.flagged:
            means = [*([f"`{self.remedy}`"] if self.remedy else []), "--real-runs N"]
            parts.append(("decide", f"to decide: {', or '.join(means)}"))
        return parts

    def _near_words(self) -> str:
        """How sure the choice is, and how many runs would tell the best from what cannot be told from it."""
        near = len(self.ranking.near)
        chance = f"on average the best with a probability of {100.0 * self.ranking.best.probability:.0f} %"
        if near == 1:
            return f"{chance}, and no other comes near" if len(self.ranking.standings) > 1 else "there is no other"
        if self.ranking.best.runs < 2:
            return f"one run of each tells these {near} not apart; raise budget.simulations"
        enough = [one.enough for one in self.ranking.near[1:]]
        more = max((each for each in enough if each is not None), default=None)
        never = sum(each is None for each in enough)
        if never == 0:
            return chance
        if more is None:
            why = "which is faster differs from machine to machine"
            return f"{chance}; no number of simulated runs would tell these {near} apart: {why}"
        count, stay = near - 1 - never, "other one stays" if never == 1 else f"other {never} stay"
        return f"{chance}; {more} runs of each would tell {'one' if count == 1 else count} more apart; the {stay} alike"

    def table(self) -> tuple[tuple[str, ...], list[tuple[object, ...]], int]:
        """Titles, and rows of the first points: runs, response, against the best, and remarks; how many more."""
        best_rows = self.ranking.rows[:MAX_ROWS]
        titles = (*self.ranking.best.point, "runs", *self.ranking.figures(best_rows[0][0]), "against the best")
        rows = [
            (*map(shown, row.point.values()), row.runs, *self.ranking.figures(row).values(), words)
            for row, words in best_rows
        ]
        return titles, rows, len(self.ranking.standings) - len(rows)

    def _value_of(self, one: Standing) -> str:
        name, unit = RESPONSES.get(self.ranking.response, (self.ranking.response, ""))
        assert one.spread is not None  # of the best, and of those that are ahead of it
        rate = "" if one.rate is None else f", {one.rate.amount('Gflop/s')}"
        return f"{name.removeprefix('the ')} {one.spread.text(unit)}{rate}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "best": dict(self.best),
            **{name: getattr(self, name) for name in "remedy simulations budget ended points method".split()},
            **self.ranking.to_dict(),
            **({} if self.real is None else {"real": self.real.to_dict()}),
        }

    def candidates(self, most: int = MAX_CANDIDATES) -> list[Point]:
        """What real runs may still be worth: the best, what is ahead of it or cannot be told from it, and what is not
        comparable and may be as good."""
        ranking = self.ranking
        near = sorted(ranking.near[1:], key=lambda one: (-one.probability, one.ratio))
        return list(dict.fromkeys(one.point for one in (ranking.best, *ranking.ahead, *near, *ranking.rivals)))[:most]


def halve(
    points: Sequence[Point],
    evaluate: Evaluate,
    budget: int,
    *,
    response: str = "time_s",
    seed: int = 1,
    tolerance: float = TOLERANCE,
    known: Sequence[Outcome] = (),
    judge: Judge | None = None,
    price: Price = lambda _: {},
    is_over: Callable[[float], bool] = lambda _: False,
) -> Tuned:
    """The likely best of finitely many points.

    budget : simulations at most; with fewer than half as many again as there are points, a random part of them is
        looked at, so that a third of the budget is left for a second seed
    seed   : of the runs, run i has seed + i at all points
    tolerance : ends where the expected loss is below this; 0 spends the budget
    known  : outcomes of some of these points, with seeds from `seed` on, which cost nothing
    judge  : of the points that come first; judging costs nothing of the budget, nor does pricing
    price  : tells the controls of the points; none unless given
    is_over : whether such a share of the time that there is has been spent: no further runs then
    Raises InputError without points or budget, or where no point can be compared.
    """
    distinct = list(dict.fromkeys(points))
    if not distinct or budget < 1:
        raise InputError(f"{len(distinct)} points and {budget} simulations; tuning needs one of each at least")
    once, judge = Once(evaluate, known), judge or Judge(evaluate)
    alive = distinct if known else _some(distinct, budget, seed)
    runs, ended = 1, "budget spent"
    while True:
        missing, left = len(once.missing(trials_of(alive, runs, seed))), budget - once.asked
        if missing > left:
            alive, runs = _affordable(once, alive, runs, left, seed)
        once(trials_of(alive, runs, seed))
        count = max(FEWEST, -(-len(alive) // 2))
        ranking = _judged(once, response, judge, set(alive), count, price)
        # What may not be named gets no further runs, but for one that is better than all that may be.
        standings = [one for one in ranking.standings if one.point in alive]
        second = () if ranking.best.flagged else ranking.standings[1:2]
        leader = {one.point for one in second if one.flagged and one.ratio < 1.0 and one in standings}
        alive = [one.point for one in standings if not one.flagged or ranking.best.flagged or one.point in leader]
        if not alive or len(distinct) == 1:
            ended = "all points simulated"
            break
        if runs >= MIN_RUNS and ranking.expected_loss <= tolerance:
            ended = "known well enough"
            break
        if once.asked >= budget or missing > left or is_over(ENOUGH_TIME):
            break
        if runs >= MAX_RUNS:
            ended = "all points simulated"
            break
        alive = alive[: max(count, FEWEST + len(leader))]
        runs = 2 * runs
    judge({one.point: by_point(once.outcomes)[one.point] for one in ranking.near})
    outcomes = tuple(once.outcomes)
    ranking = _ranked(outcomes, evaluate, response, seed, judge.known, price)
    return Tuned(ranking, once.asked, budget, ended, len(distinct), "halving", outcomes, trusts=dict(judge.known))


def _ranked(
    outcomes: Sequence[Outcome],
    evaluate: Evaluate,
    response: str,
    seed: int,
    trusts: Mapping[Point, Trust],
    price: Price,
) -> Ranking:
    """The final ranking: the best is simulated once more with other noise, which costs nothing of the budget."""
    controls = price(by_point(outcomes))
    best = rank(outcomes, response, seed=seed, probabilities=False, trusts=trusts, controls=controls).best
    again = evaluate(trials_of([best.point], best.runs, seed, repeat=1))
    return rank(
        outcomes,
        response,
        seed=seed,
        trusts=trusts,
        controls=controls,
        again=[one for one in again if one.refusal is None],
        controls_again=price(by_point(again)).get(best.point),
    )


def _judged(once: Once, response: str, judge: Judge, alive: set[Point], count: int, price: Price) -> Ranking:
    """The ranking after this many of those alive are known to be comparable, or all of them are judged."""
    groups = by_point(once.outcomes)
    controls = price(groups)
    while True:
        ranking = rank(once.outcomes, response, probabilities=False, trusts=judge.known, controls=controls)
        order = sorted((one for one in ranking.standings if one.point in alive), key=lambda one: one.ratio)
        left = [one.point for one in order if one.point not in judge.known]
        comparable = sum(not one.flagged and one.point in judge.known for one in order)
        if not left or comparable >= count:
            return ranking
        judge({point: groups[point] for point in left[: max(1, count - comparable)]})


def explore(
    propose: Callable[[Sequence[tuple[Point, float]]], Point | None],
    evaluate: Evaluate,
    budget: int,
    *,
    response: str = "time_s",
    seed: int = 1,
    tolerance: float = TOLERANCE,
    price: Price = lambda _: {},
    is_over: Callable[[float], bool] = lambda _: False,
) -> Tuned:
    """The likely best of a space: points that `propose` finds, then a choice among them by halving.

    propose : takes the points so far with what each came to (the smaller the better, infinite: refused), returns
        another point; None if there is none left (`Proposals`)
    price, is_over : as of `halve`
    """
    once, judge = Once(evaluate), Judge(evaluate)
    seen: list[tuple[Point, float]] = []
    exploring = max(1, int(EXPLORING_SHARE * budget)) if budget > FEWEST else budget
    while len(seen) < exploring and not (seen and is_over(EXPLORING_SHARE)):
        point = propose(seen)
        if point is None:
            break
        (outcome,) = once(trials_of([point], EXPLORING_RUNS, seed))
        seen.append((point, inf if outcome.refusal is not None else sign_of(response) * outcome[response]))
    if not seen:
        raise InputError("the space has no point; loosen a constraint")
    chosen = [point for point, _ in sorted(seen, key=lambda each: each[1])]
    left = budget - once.asked
    if left < 1:
        ranking = rank(once.outcomes, response, seed=seed)
        return Tuned(ranking, once.asked, budget, "budget spent", len(seen), "exploring", tuple(once.outcomes))
    contenders = chosen[: max(FEWEST, left // 4)]
    found = halve(
        contenders,
        evaluate,
        left,
        response=response,
        seed=seed,
        tolerance=tolerance,
        known=[outcome for point in contenders for outcome in by_point(once.outcomes)[point]],
        judge=judge,
        price=price,
        is_over=is_over,
    )
    outcomes = (*found.outcomes, *[outcome for outcome in once.outcomes if outcome.trial.point not in contenders])
    ranking = _ranked(outcomes, evaluate, response, seed, judge.known, price)
    spent = once.asked + found.simulations
    return Tuned(ranking, spent, budget, found.ended, len(seen), "exploring", outcomes, trusts=judge.known)


def _some(points: list[Point], budget: int, seed: int) -> list[Point]:
    """All points, or a random part that leaves a third of the budget for the better ones among them.

    One seed is one machine: what its draws favour, such as a block size, would be chosen on their word alone.
    """
    count = max(1, round(budget * 2 / 3))
    if count >= len(points):
        return points
    return [points[at] for at in sorted(np.random.default_rng(seed).permutation(len(points))[:count])]


def _affordable(once: Once, alive: list[Point], runs: int, left: int, seed: int) -> tuple[list[Point], int]:
    """As many of the best points as the rest of the budget suffices for, two at least with as many runs as possible."""
    while runs > 1:
        for count in range(len(alive), FEWEST - 1, -1):
            if len(once.missing(trials_of(alive[:count], runs, seed))) <= left:
                return alive[:count], runs
        runs -= 1
    return alive[: max(left, 1)], 1


#: Proposals that were there before are asked again so often, then drawn at random so often.
MAX_REPEATED, MAX_RANDOM = 20, 500
#: Points at random before the estimator has something to learn from.
START = 10
#: With more combinations than this, a space of levels is explored like one with ranges.
MAX_HALVED = 4000
#: So many of the best points decide which calibration is advised.
MAX_POINTS_CONSIDERED = 200


class Proposals:
    """What `tune.explore` asks for points: no point twice, none that is not allowed; the same for equal seeds.

    Raises InputError for a factor with a distribution without bounds.
    """

    def __init__(
        self, space: Mapping[str, Factor], seed: int = 1, allows: Callable[[Point], bool] = lambda _: True
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._allows = dict(space), allows
        self._distributions = {name: _distribution(name, factor) for name, factor in space.items()}
        self._generator = np.random.default_rng(seed)
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=START))
        self._open: dict[Point, optuna.trial.Trial] = {}
        self._proposed: set[Point] = set()

    def __call__(self, seen: Sequence[tuple[Point, float]]) -> Point | None:
        """Another point; None if none is found that is new and allowed."""
        for point, score in seen:
            if point in self._open:
                self._tell(self._open.pop(point), score)
        known = self._proposed | {point for point, _ in seen}
        for _ in range(MAX_REPEATED):
            trial = self._study.ask(self._distributions)
            point = self._point(trial.params)
            if point not in known and self._allows(point):
                self._open[point] = trial
                self._proposed.add(point)
                return point
            self._tell(trial, inf)
        for _ in range(MAX_RANDOM):
            point = self._point({name: self._drawn(distribution) for name, distribution in self._distributions.items()})
            if point not in known and self._allows(point):
                self._proposed.add(point)
                return point
        return None

    def _point(self, values: Mapping[str, Any]) -> Point:
        levels = {name: factor.levels for name, factor in self._space.items()}
        return Point({name: value if (of := levels[name]) is None else of[value] for name, value in values.items()})

    def _drawn(self, distribution: "optuna.distributions.BaseDistribution") -> Value:
        if isinstance(distribution, optuna.distributions.CategoricalDistribution):
            return int(self._generator.integers(len(distribution.choices)))
        if isinstance(distribution, optuna.distributions.IntDistribution):
            return int(self._generator.integers(distribution.low, distribution.high, endpoint=True))
        assert isinstance(distribution, optuna.distributions.FloatDistribution)
        if distribution.log:
            return exp(self._generator.uniform(log(distribution.low), log(distribution.high)))
        return float(self._generator.uniform(distribution.low, distribution.high))

    def _tell(self, trial: "optuna.trial.Trial", score: float) -> None:
        if isinf(score):
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, score)


def _distribution(name: str, factor: Factor) -> "optuna.distributions.BaseDistribution":
    """Levels are places in their list: Optuna stores plain values only, and null is none."""
    if factor.levels is not None:
        return optuna.distributions.CategoricalDistribution(list(range(len(factor.levels))))
    if factor.bounds is None:
        raise InputError(f"factors.{name} has a distribution without bounds; give a range or levels to tune over")
    low, high = factor.bounds
    is_log = factor.log or (factor.distribution is not None and factor.distribution.kind == "log-uniform")
    if factor.integer:
        return optuna.distributions.IntDistribution(round(low), round(high), log=is_log)
    return optuna.distributions.FloatDistribution(low, high, log=is_log)


def tune(
    study: "Study",
    configurations: "Configurations",
    evaluate: Evaluate,
    is_over: Callable[[float], bool] = lambda _: False,
) -> Tuned:
    """The likely best by the study's first response, within its budget of simulations: unless it has one, as many
    runs of each combination of levels as it names, or two. Raises InputError if no point can be.

    is_over : as of `halve`
    """
    budget = study.budget
    how: dict[str, Any] = {
        "response": study.responses[0], "seed": study.seed, "is_over": is_over,
        "tolerance": TOLERANCE if budget.precision is None else 0.01 * budget.precision,
        "price": Pricing(configurations, evaluate),
    }  # fmt: skip
    crossed = prod(len(levels) for levels in study.levels.values())
    if all(factor.levels is not None for factor in study.factors.values()) and crossed <= MAX_HALVED:
        points = configurations.points()
        tuned = halve(points, evaluate, most_tuned(study, len(points)), **how)
    else:
        space = dict(study.factors)
        if study.scenarios:
            space[SCENARIO] = Factor.model_construct(levels=tuple(study.scenarios))
        proposals = Proposals(space, study.seed, configurations.allows)
        tuned = explore(proposals, evaluate, budget.simulations or USUAL_BUDGET, **how)
    standings = tuned.ranking.standings[:MAX_POINTS_CONSIDERED]
    cases = [(at.application, at.conditions) for at in (configurations.at(one.point) for one in standings)]
    doubtful = [case for case, standing in zip(cases, standings, strict=True) if standing.flagged]
    return replace(tuned, remedy=remedy_of(cases, doubtful)) if doubtful else tuned
