"""What if: scenarios, or levels of a factor, each against the base, run by run with the same random numbers.

Runs of equal seeds see one machine on one day, so that errors which both points have cancel in the ratio of their
times (simulate/prediction/comparing.py says which, and makes the difference as it does for predictions). Where the
points place other ranks on the CPUs, the errors of a CPU weigh otherwise in both, and less cancels: the interval is
wider by itself, and `Configuration.geometry` says why.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isnan, log
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.tables import text_table
from lepaute.kit.text import counted, significant
from lepaute.simulate.prediction.comparing import NO_DIFFERENCE, ROUNDING, Difference, Pairing, Runs
from lepaute.simulate.prediction.prediction import Spread
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.control_variates import Controls
from lepaute.stats.decision import Decision, Weakness
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import (
    LITTLE,
    SCENARIO,
    Evaluate,
    Further,
    Outcome,
    Point,
    answered,
    by_point,
    called,
    label,
    noun,
    same,
    sampling_sd_of_mean,
    sign_of,
    spread,
    trials_of,
)
from lepaute.study.schema import PublishedResult, Study
from lepaute.study.trust import Judge, Pricing, decision_of

#: With more of the time behind runs are not doubled: that takes as long again.
HALF_OF_TIME = 0.45
#: Of points of one machine.
ONE_MACHINE = Pairing(shared=True, run_noise=True, own_sd=0.0, assumed=False)


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    level    : of the factor that is compared;  point : where it was simulated, the best of those of the level
    spreads  : of each response, over the runs, as a prediction has them; empty if all were refused
    refusal  : why, then;  trust : whether it is comparable
    """

    level: Any
    point: Point
    spreads: dict[str, Spread]
    trust: Trust = Trust(0.0)  # noqa: RUF009 - immutable
    refusal: str | None = None

    @property
    def means(self) -> dict[str, float]:
        """Of each response, over the runs."""
        return {name: each.mean for name, each in self.spreads.items()}

    def to_dict(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "point": dict(self.point),
            "means": self.means,
            "responses": {name: each.to_dict() for name, each in self.spreads.items()},
            "extrapolated_share": self.trust.computing,
            "comparable": self.trust.comparable,
            "trust": self.trust.to_dict(),
            **({"refusal": self.refusal} if self.refusal else {}),
        }


@dataclass(frozen=True)
class LevelComparison:
    """A level against the base, the other factors being as `setting` has them.

    differences : of each response that both have;  shared : whether errors of the models cancel
    same_geometry : whether ranks compute for the same parts of the problem on the same CPUs
    published   : figures of others, of the base and of the level; None if there are none
    """

    setting: Point
    reference: Side
    other: Side
    differences: dict[str, Difference]
    shared: bool
    same_geometry: bool = True
    published: tuple[PublishedResult | None, PublishedResult | None] = (None, None)

    def published_of(self, side: Side) -> PublishedResult | None:
        """What others published of one of the two sides."""
        return self.published[side is self.other]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the two are not comparable, in words, of one that is why; none where they are."""
        side = self.weakest
        return (f"at {side.level} {'; '.join(side.trust.reasons)}",) if side.trust.reasons else ()

    @property
    def weakest(self) -> Side:
        """The side that is not comparable, or is extrapolated further."""
        return max((self.other, self.reference), key=lambda side: (not side.trust.comparable, side.trust.computing))

    def decision(self, response: str) -> Decision:
        """That a response differs: known where both sides are comparable, whatever the figures are."""
        side = self.weakest
        weaknesses = [
            Weakness(weakness.cause, f"at {side.level} {weakness.text}") for weakness in side.trust.decision.weaknesses
        ]
        found = self.differences.get(response)
        low, high = (None, None) if found is None else (found.low, found.high)
        return Decision.of_ratio(low, high, weaknesses, margin=ROUNDING)

    def to_dict(self) -> dict[str, Any]:
        points = {"reference": dict(self.reference.point), "other": dict(self.other.point)}
        decisions = {name: self.decision(name) for name in self.differences}
        return {
            "setting": dict(self.setting),
            "reference": self.reference.to_dict(),
            "other": self.other.to_dict(),
            "differences": {
                name: points
                | {"response": name}
                | found.to_dict()
                | {"same_geometry": self.same_geometry, "told_apart": decisions[name].is_shown}
                | decisions[name].to_dict()
                for name, found in self.differences.items()
            },
            "comparable": not self.reasons,
            "shared_errors": self.shared,
            **{
                f"published_{side}": {"change_percent": figure.change, "value": figure.value}
                for side, figure in zip(("reference", "other"), self.published, strict=True)
                if figure is not None
            },
        }


@dataclass(frozen=True)
class WhatIfAnswer:
    """All comparisons, one at least; text : for a person;  source : of published figures, where there are some."""

    factor: str
    base: Any
    runs: int
    responses: tuple[str, ...]
    comparisons: tuple[LevelComparison, ...]
    same_noise: bool
    source: str | None = None

    @property
    def told_apart(self) -> int:
        """Comparable ones of which the first response differs by more than their interval."""
        return sum(pair.decision(self.responses[0]).is_shown for pair in self.comparisons)

    @property
    def _changes(self) -> list[tuple[LevelComparison, Difference]]:
        """Of the first response where both have it, the largest first."""
        known = [(pair, change) for pair in self.comparisons if (change := self._difference(pair)) is not None]
        return sorted(known, key=lambda item: -abs(log(item[1].ratio)))

    @property
    def decision(self) -> Decision:
        """That half of the changes can be told from the base."""
        clear = 2 * self.told_apart >= len(self.comparisons)
        return decision_of(clear if self.runs > 1 else None, [pair.weakest.trust for pair in self.comparisons])

    @property
    def trusts(self) -> dict[Point, Trust]:
        """Of all points that were compared."""
        return {side.point: side.trust for pair in self.comparisons for side in (pair.reference, pair.other)}

    @property
    def sentence(self) -> str:
        known, count, of = self._changes, len(self.comparisons), noun(self.responses[0])
        comparable, shown, response = self._comparable, self._shown, of.removeprefix("the ")
        if not known:
            return "Nothing could be compared: every configuration was refused"
        if not comparable:
            first = known[0][0]
            if count == 1:
                return f"{self.name_of(first)} cannot be judged: {response} {self.change_of(first)}"
            return f"None of {count} changes can be judged: not comparable, {first.reasons[0]}"
        others = f"; {count - len(comparable)} of {count} cannot be compared" if len(comparable) < count else ""
        largest, change = (shown or comparable)[0]
        name, change_there = self.name_of(largest), f"{response} {self.change_of(largest)}"
        if all(change.text == NO_DIFFERENCE for _, change in comparable):
            none = f"{name} makes no" if count == 1 else f"None of {len(comparable)} makes any"
            return f"{none} difference to {of}{others}"
        if self.runs == 1:
            return f"{name} seems to matter{' most' if count > 1 else ''}: {change_there}{others}"
        bounds = [bound for _, known_change in comparable for bound in (known_change.low, known_change.high)]
        is_little = min(bounds) >= 1.0 / (1.0 + LITTLE) and max(bounds) <= 1.0 + LITTLE and len(comparable) == count
        if is_little and not shown:
            most = significant(100.0 * max(abs(bound - 1.0) for bound in bounds), 2)
            none = f"{name} matters little" if count == 1 else f"None of {count} changes matters much"
            return f"{none}: {response} differs by {most} % at most (95 %)"
        if not shown:
            seems = f"{response} {change.bounds()}, 95 %"
            if len(comparable) == 1:
                return f"{name} cannot be told from {self.base_name}: {seems}{self._undecided}{others}"
            return (
                f"None of {len(comparable)} changes can be told from {self.base_name}: the largest seems to be {name} "
                f"({seems}){self._undecided}{others}"
            )
        if is_little and count > 1:
            return f"None of {count} changes matters much: with {name}, the largest shown, {change_there}"
        of_shown = [end for _, one in shown for end in (one.low, one.high)]
        little = " little" if min(of_shown) >= 1.0 / (1.0 + LITTLE) and max(of_shown) <= 1.0 + LITTLE else ""
        if len(shown) > 1:
            return f"{len(shown)} of {count} changes matter{little}, {name} most: {change_there}{others}"
        untold = len(comparable) - 1
        others = f"; {untold} other{'s' * (untold > 1)} cannot be told from {self.base_name}" * bool(untold) + others
        return f"{name} matters{little}: {change_there}{others}"

    @property
    def further(self) -> Further | None:
        """Runs that would tell the largest change from the base, where none can be."""
        if self._shown or not self._comparable or (enough := self._comparable[0][1].enough) is None:
            return None
        return Further(f"--runs {enough}", len(self.trusts) * (enough - self.runs))

    @property
    def _comparable(self) -> list[tuple[LevelComparison, Difference]]:
        return [(pair, change) for pair, change in self._changes if not pair.reasons]

    @property
    def _shown(self) -> list[tuple[LevelComparison, Difference]]:
        return [(pair, change) for pair, change in self._comparable if change.is_told_apart]

    @property
    def _undecided(self) -> str:
        """Where no number of runs is likely to decide, that this is so, or what might."""
        if self.further is not None:
            return ""
        return "; ".join(["", "more runs would hardly decide", *filter(None, [self._comparable[0][1].narrower])])

    @property
    def text(self) -> str:
        """The sentence, and a table of the comparisons."""
        return f"{answered(self)}.\n\n{text_table(*self.table(), left=None)}\n({self.pairing})"

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Titles, and a row for each level of each setting, the base first."""
        first = self.comparisons[0]
        titles = (*first.setting, self.factor, *self.best_of(first), label(self.responses[0]), f"against {self.base}")
        if self.source is not None:
            titles = (*titles[:-1], "published", titles[-1])
        return titles, [self._row(comparison, side) for comparison, side in self.sides]

    @property
    def pairing(self) -> str:
        """Which runs were compared, in words."""
        both = (
            "both of a pair have the same machine, day and noise: the effect of the change alone"
            if self.same_noise
            else "both of a pair are on the same machine on the same day, each with its own noise"
        )
        return f"{counted(self.runs, 'pair')} of runs; {both}"

    @property
    def base_name(self) -> str:
        """The level that the others are compared with."""
        return str(self.base) if self.factor == SCENARIO else f"{self.factor} {self.base}"

    @property
    def sides(self) -> list[tuple[LevelComparison, Side]]:
        """As tables have them: the base of each setting, and all that is compared with it."""
        first = {comparison.setting: comparison for comparison in reversed(self.comparisons)}
        bases = [[pair.reference] * (pair is first[pair.setting]) for pair in self.comparisons]
        return [
            (pair, side) for pair, base in zip(self.comparisons, bases, strict=True) for side in (*base, pair.other)
        ]

    def name_of(self, comparison: LevelComparison) -> str:
        """The level that is compared, and where."""
        where = f" at {called(comparison.setting)}" if comparison.setting else ""
        what = "" if self.factor == SCENARIO else f"{self.factor} "
        return f"{what}{comparison.other.level}{where}"

    def change_of(self, comparison: LevelComparison) -> str:
        """The change of the first response in words, and why it is not to be relied on."""
        difference = self._difference(comparison)
        words = [] if difference is None else [difference.in_words()]
        if difference is not None and not comparison.same_geometry and difference.text != NO_DIFFERENCE:
            words.append("ranks on other CPUs, so that errors of single CPUs do not cancel")
        return "; ".join([*words, *(f"not comparable, {reason}" for reason in comparison.reasons)])

    def best_of(self, comparison: LevelComparison) -> list[str]:
        """Factors of which the best level was taken."""
        return [name for name in comparison.reference.point if name not in (self.factor, *comparison.setting)]

    def to_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("factor", "base", "runs", "same_noise", "told_apart")},
            **({} if self.source is None else {"published_source": self.source}),
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
        }

    def _difference(self, comparison: LevelComparison) -> Difference | None:
        return comparison.differences.get(self.responses[0])

    def _row(self, comparison: LevelComparison, side: Side) -> tuple[str, ...]:
        change = side.refusal or "the base"
        if side is comparison.other:
            change = side.refusal or comparison.reference.refusal or self.change_of(comparison)
            change += "" if comparison.shared else "; no errors in common"
        values = side.spreads.get(self.responses[0])
        chosen = [str(side.point[name]) for name in self.best_of(comparison)]
        shown = ["" if values is None else values.figure()]
        if self.source is not None:
            figure = comparison.published_of(side)
            shown.append("" if figure is None else figure.text)
        return (*map(str, comparison.setting.values()), str(side.level), *chosen, *shown, change)


def whatif(
    study: Study, configurations: Configurations, evaluate: Evaluate, is_over: Callable[[float], bool] = lambda _: False
) -> WhatIfAnswer:
    """Each level against the base, at each combination of the levels of the other factors.

    With a wanted precision, runs are doubled until all intervals of the first response are as narrow, or the budget of
    simulations, or of time (is_over : whether such a share of it is spent), would not suffice.
    """
    runs, budget, judge, pricing = study.runs, study.budget, Judge(evaluate), Pricing(configurations, evaluate)
    while True:
        trials = trials_of(configurations.points(), runs, study.seed)
        answer = _answer(study, configurations, evaluate, evaluate(trials), runs, judge, pricing)
        most = budget.simulations or 64 * len(trials) * study.runs // runs
        is_narrow = budget.precision is None or _width_percent(answer) <= budget.precision
        if is_narrow or 2 * len(trials) > most or is_over(HALF_OF_TIME):
            return answer
        runs *= 2


def _answer(
    study: Study,
    configurations: Configurations,
    evaluate: Evaluate,
    outcomes: Sequence[Outcome],
    runs: int,
    judge: Judge,
    pricing: Pricing,
) -> WhatIfAnswer:
    section, levels = study.compared, study.levels
    of_point = by_point(outcomes)
    controls = pricing(of_point)
    others = [name for name in levels if name != section.factor and name not in section.best_of]
    compared: list[tuple[Point, Side, Side]] = []
    for values in product(*(levels[name] for name in others)):
        setting = Point(dict(zip(others, values, strict=True)))
        sides = []
        for level in levels[section.factor]:
            fixed = Point({**setting, section.factor: level})
            candidates = [point for point in of_point if all(point[name] == fixed[name] for name in fixed)]
            if candidates:  # none where no constraint holds
                sides.append(_side(level, candidates, of_point, controls, study.responses))
        base = next((side for side in sides if same(side.level, section.base)), None)
        if base is not None:
            compared += [(setting, base, side) for side in sides if side is not base]
    if not compared:
        raise InputError("nothing can be compared: the constraints leave no level beside the base")
    trusts = judge({side.point: of_point[side.point] for _, *sides in compared for side in sides})
    pairs = [_paired(study, configurations, reference, other) for _, reference, other in compared]
    again = dict.fromkeys(
        reference.point
        for pair, (_, reference, _) in zip(pairs, compared, strict=True)
        if pair is not None and pair.needs_other_noise
    )
    repeated = by_point(evaluate(trials_of(again, runs, study.seed, repeat=1)))
    controls_again = pricing(repeated)
    comparisons = []
    for pair, (setting, *sides) in zip(pairs, compared, strict=True):
        reference, other = (replace(side, trust=trusts[side.point]) for side in sides)
        published = _published(study, setting, reference), _published(study, setting, other)
        differences = {}
        if pair is not None:
            again_there = repeated.get(reference.point) if pair.needs_other_noise else None
            runs_of = of_point[reference.point], of_point[other.point]
            priced = controls.get(reference.point), controls.get(other.point), controls_again.get(reference.point)
            differences = {
                name: difference(*runs_of, name, again=again_there, pair=pair, controls=priced)
                for name in reference.means
                if name in other.means and min(reference.means[name], other.means[name]) > 0.0
            }
        shared = pair is None or pair.shared
        places = {configurations.at(side.point).geometry for side in (reference, other) if pair is not None}
        comparisons.append(LevelComparison(setting, reference, other, differences, shared, len(places) < 2, published))
    return WhatIfAnswer(
        section.factor,
        section.base,
        runs,
        study.responses,
        tuple(comparisons),
        section.same_noise,
        study.published.source if study.published else None,
    )


def _side(
    level: Any,
    candidates: Sequence[Point],
    of_point: dict[Point, list[Outcome]],
    controls: dict[Point, Controls],
    responses: Sequence[str],
) -> Side:
    """The best of the candidates for the first response; of equal ones the first."""
    judged = responses[0]
    known = [point for point in candidates if all(each.refusal is None for each in of_point[point])]
    if not known:
        return Side(level, candidates[0], {}, refusal=next(each.refusal for each in of_point[candidates[0]]))
    best = min(known, key=lambda point: sign_of(judged) * spread(of_point[point], judged, controls.get(point)).mean)
    runs = of_point[best]
    given = [name for name in responses if all(name in run.responses for run in runs)]
    return Side(level, best, {name: spread(runs, name, controls.get(best)) for name in given})


def _paired(study: Study, configurations: Configurations, reference: Side, other: Side) -> Pairing | None:
    """What two sides have in common, noise of single runs too if the study asks for it; None if one was refused."""
    if reference.refusal or other.refusal:
        return None
    before, after = configurations.at(reference.point), configurations.at(other.point)
    pair = Pairing.of(before.application, before.conditions, after.application, after.conditions)
    return replace(pair, run_noise=pair.run_noise and not study.compared.same_noise)


def _published(study: Study, setting: Point, side: Side) -> PublishedResult | None:
    """The figure that others published of a level at a setting; None if there is none."""
    of_side = {**setting, study.compared.factor: side.level}
    for result in study.published.results if study.published else ():
        if all(name in of_side and same(level, of_side[name]) for name, level in result.at.items()):
            return result
    return None


def _width_percent(answer: WhatIfAnswer) -> float:
    """Half the widest interval of a ratio of the first response; 100 where there is none."""
    known = [comparison.differences.get(answer.responses[0]) for comparison in answer.comparisons]
    widths = [50.0 * (found.high - found.low) / found.ratio for found in known if found is not None]
    return max(widths) if len(widths) == len(known) and not any(map(isnan, widths)) else 100.0


def difference(
    reference: Sequence[Outcome],
    other: Sequence[Outcome],
    response: str = "time_s",
    *,
    again: Sequence[Outcome] | None = None,
    pair: Pairing = ONE_MACHINE,
    controls: Sequence[Controls | None] = (None, None, None),
) -> Difference:
    """The difference of two points from the outcomes of each, paired by seed: those that both have, none refused.

    again : of the reference, with other noise, where both have the same
    pair : what the two have in common;  controls : of all, run by run
    Raises InputError if no seed is common, where a response is not above 0, or where runs of one seed have the same
    repeat: they would share the effect of the run, and two real runs do not.
    """
    all_runs = [
        {outcome.trial.seed: outcome for outcome in outcomes if outcome.refusal is None}
        for outcomes in (reference, other, *([] if again is None else [again]))
    ]
    seeds = [seed for seed in all_runs[0] if all(seed in runs for runs in all_runs)]
    if not seeds:
        raise InputError("two points have no seed in common; simulate both with the same seeds")
    same_noise = any(all_runs[-2][seed].trial.repeat == all_runs[-1][seed].trial.repeat for seed in seeds)
    if pair.needs_other_noise and same_noise:
        raise InputError("both points have the same noise, and two real runs do not; give one of them another repeat")
    made = []
    for runs, of_runs in zip(all_runs, controls, strict=False):
        values = [runs[seed][response] for seed in seeds]
        if min(values) <= 0.0:
            raise InputError(f"{response} is 0 in a run, and nothing is a multiple of it")
        made.append(Runs(values, sampling_sd_of_mean(runs[seed] for seed in seeds), of_runs))
    return pair.difference(*made)
