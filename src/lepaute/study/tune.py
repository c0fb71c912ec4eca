"""The likely best of many points within a budget of simulations: not the luckiest, and no point chosen unsimulated.

`halve` spends it on few points by successive halving (Karnin, Koren & Somekh, ICML 2013) over replications: all points
with one common seed, the better half with another one, the better half of these with twice as many, and so on. Equal
seeds at all points are common random numbers: what the points share of a machine's errors does not reorder them.
`explore` finds points in spaces that are too large for that, and leaves the choice among the likely ones to `halve`.
`crossed` is the check: all points with all seeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lepaute.errors import InputError
from lepaute.study.evaluation import Evaluate, Once, Outcome, Point, by_point, trials_of
from lepaute.study.ranking import MOST_EXTRAPOLATED, Ranking, Standing, rank

#: Enough: the chosen point is expected to be worse by at most this share than the best, as far as simulations can tell.
TOLERANCE = 0.001
#: Survivors below which no point is dropped any more: further seeds go to all of them.
FEWEST = 2
#: An early stop needs as many runs of the survivors.
LEAST_RUNS = 4
MOST_RUNS = 256
#: Share of the budget that goes into finding points of a large space; the rest chooses among them.
EXPLORING_SHARE, EXPLORING_RUNS = 0.6, 1


@dataclass(frozen=True)
class Tuned:
    """What tuning came to.

    simulations : that were spent;  budget : that there were
    ended       : why it ended: "known well enough", "budget spent", "all points simulated"
    points      : that were considered; there may have been more of them than were simulated
    method      : halving, exploring or crossed
    """

    ranking: Ranking
    simulations: int
    budget: int
    ended: str
    points: int
    method: str
    outcomes: tuple[Outcome, ...] = field(repr=False, default=())

    @property
    def best(self) -> Point:
        """The point to take."""
        return self.ranking.best.point

    @property
    def near(self) -> tuple[Standing, ...]:
        """The best and all that cannot be told from it."""
        return self.ranking.near

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        best, near = self.ranking.best, len(self.near) - 1
        sure = f"the best one with a probability of {100.0 * best.probability:.0f} %"
        others = f"; {near} more cannot be told from it" if near else "; no other comes near"
        flagged = len(self.ranking.apart)
        apart = f"; {flagged} lie too far outside of the calibrated ranges to be compared" if flagged else ""
        return f"{best.point}: {self.ranking.response} {best.value:.4g}, {sure}{others}{apart}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "best": dict(self.best),
            "simulations": self.simulations,
            "budget": self.budget,
            "ended": self.ended,
            "points": self.points,
            "method": self.method,
            **self.ranking.to_dict(),
        }


def halve(
    points: Sequence[Point],
    evaluate: Evaluate,
    budget: int,
    *,
    response: str = "time_s",
    seed: int = 1,
    tolerance: float = TOLERANCE,
    known: Sequence[Outcome] = (),
    most_extrapolated: float = MOST_EXTRAPOLATED,
) -> Tuned:
    """The likely best of finitely many points.

    budget : simulations at most; with fewer than there are points, a random part of them is looked at
    seed   : of the runs, run i has seed + i at all points
    tolerance : ends where the expected loss is below this; 0 spends the budget
    known  : outcomes of some of these points, with seeds from `seed` on, which cost nothing
    most_extrapolated : share of the time above which a point does not compete
    Raises InputError without points or budget, or where no point can be compared.
    """
    distinct = list(dict.fromkeys(points))
    if not distinct or budget < 1:
        raise InputError(f"{len(distinct)} points and {budget} simulations; tuning needs one of each at least")
    once = Once(evaluate)
    spent_before = len(known)
    if spent_before:
        once = Once(_with_known(evaluate, known))
        once([outcome.trial for outcome in known])
    alive = _some(distinct, budget, seed) if not known else distinct
    runs, ended = 1, "budget spent"
    while True:
        missing = _missing(once, alive, runs, seed)
        left = budget - (once.asked - spent_before)
        if missing > left:
            alive, runs = _affordable(once, alive, runs, left, seed)
        once(trials_of(alive, runs, seed))
        ranking = rank(once.outcomes, response, probabilities=False, most_extrapolated=most_extrapolated)
        alive = [one.point for one in ranking.standings if one.point in set(alive)]
        if not alive or len(distinct) == 1:
            ended = "all points simulated"
            break
        if runs >= LEAST_RUNS and ranking.expected_loss <= tolerance:
            ended = "known well enough"
            break
        if once.asked - spent_before >= budget or missing > left:
            break
        if runs >= MOST_RUNS:
            ended = "all points simulated"
            break
        alive = alive[: max(FEWEST, -(-len(alive) // 2))]
        runs = 2 * runs
    spent = once.asked - spent_before
    ranking = rank(once.outcomes, response, seed=seed, most_extrapolated=most_extrapolated)
    return Tuned(ranking, spent, budget, ended, len(distinct), "halving", tuple(once.outcomes))


def crossed(
    points: Sequence[Point], evaluate: Evaluate, runs: int, *, response: str = "time_s", seed: int = 1
) -> Tuned:
    """All points with all seeds: what the other ways are checked against."""
    outcomes = evaluate(trials_of(points, runs, seed))
    ranking = rank(outcomes, response, seed=seed)
    count = len(outcomes)
    return Tuned(ranking, count, count, "all points simulated", len(points), "crossed", tuple(outcomes))


def explore(
    propose: Callable[[Sequence[tuple[Point, float]]], Point | None],
    evaluate: Evaluate,
    budget: int,
    *,
    response: str = "time_s",
    seed: int = 1,
    tolerance: float = TOLERANCE,
) -> Tuned:
    """The likely best of a space: points that `propose` finds, then a choice among them by halving.

    propose : takes the points so far with what each came to (the smaller the better, infinite: refused), returns
        another point; None where there is none left (study/tune_space.py)
    """
    once = Once(evaluate)
    seen: list[tuple[Point, float]] = []
    exploring = max(1, int(EXPLORING_SHARE * budget)) if budget > FEWEST else budget
    while len(seen) < exploring:
        point = propose(seen)
        if point is None:
            break
        (outcome,) = once(trials_of([point], EXPLORING_RUNS, seed))
        seen.append((point, _score(outcome, response)))
    if not seen:
        raise InputError("the space has no point; loosen a constraint")
    chosen = [point for point, _ in sorted(seen, key=lambda each: each[1])]
    left = budget - once.asked
    if left < 1:
        ranking = rank(once.outcomes, response, seed=seed)
        return Tuned(ranking, once.asked, budget, "budget spent", len(seen), "exploring", tuple(once.outcomes))
    contenders = chosen[: max(FEWEST, left // 4)]
    known = [outcome for point in contenders for outcome in by_point(once.outcomes)[point]]
    found = halve(contenders, evaluate, left, response=response, seed=seed, tolerance=tolerance, known=known)
    rest = [outcome for outcome in once.outcomes if outcome.trial.point not in set(contenders)]
    outcomes = (*found.outcomes, *rest)
    ranking = rank(outcomes, response, seed=seed)
    return Tuned(ranking, once.asked + found.simulations, budget, found.ended, len(seen), "exploring", outcomes)


def write_hpl_dat(path: Any, application: Any) -> None:
    """An HPL.dat of the chosen run; raises InputError for an application that is not HPL."""
    from lepaute.kit.files import write_whole
    from lepaute.simulate import Hpl
    from lepaute.simulate.apps.hpl.hpl_dat import HplDat

    if not isinstance(application, Hpl):
        raise InputError(f"{path}: an HPL.dat is of HPL, and the application is {application.name}")
    write_whole(path, HplDat.of(application).text())


def _score(outcome: Outcome, response: str) -> float:
    from math import inf

    from lepaute.study.evaluation import LESS_IS_BETTER

    if outcome.refusal is not None or outcome.extrapolated > MOST_EXTRAPOLATED:
        return inf
    return outcome[response] if response in LESS_IS_BETTER else -outcome[response]


def _some(points: list[Point], budget: int, seed: int) -> list[Point]:
    """All points, or a random part that leaves a third of the budget for the better ones among them."""
    if budget >= len(points):
        return points
    import numpy as np

    count = max(1, round(budget * 2 / 3))
    return [points[at] for at in sorted(np.random.default_rng(seed).permutation(len(points))[:count])]


def _with_known(evaluate: Evaluate, known: Sequence[Outcome]) -> Evaluate:
    found = {outcome.trial: outcome for outcome in known}

    def look_up(trials: Sequence[Any]) -> list[Outcome]:
        new = [trial for trial in trials if trial not in found]
        fresh = dict(zip(new, evaluate(new), strict=True)) if new else {}
        return [found.get(trial) or fresh[trial] for trial in trials]

    return look_up


def _missing(once: Once, points: Sequence[Point], runs: int, seed: int) -> int:
    """Trials that have not been evaluated."""
    known = {outcome.trial for outcome in once.outcomes}
    return sum(trial not in known for trial in trials_of(points, runs, seed))


def _affordable(once: Once, alive: list[Point], runs: int, left: int, seed: int) -> tuple[list[Point], int]:
    """As many of the best points as the rest of the budget suffices for, two at least with as many runs as possible."""
    while runs > 1:
        for count in range(len(alive), FEWEST - 1, -1):
            if _missing(once, alive[:count], runs, seed) <= left:
                return alive[:count], runs
        runs -= 1
    return alive[: max(left, 1)], 1
