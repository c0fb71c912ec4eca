"""What if: scenarios, or levels of a factor, each against the base, run by run with the same random numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import fsum, log, nan
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.kit.tables import text_table
from lepaute.kit.text import counted, number
from lepaute.simulate.prediction.prediction import Spread, spread_of
from lepaute.simulate.prediction.trust import Trust
from lepaute.stats.control_variates import Controls, controls_of_ratio
from lepaute.stats.decision import Decision, Weakness
from lepaute.study.difference import NO_DIFFERENCE, ROUNDING, PairDifference, difference
from lepaute.study.evaluation import (
    LESS_IS_BETTER,
    SCENARIO,
    Evaluate,
    Outcome,
    Point,
    Trial,
    begun,
    by_point,
    called,
    label,
    noun,
    same,
    sampling_sd_of_mean,
    trials_of,
)
from lepaute.study.pricing import Pricing
from lepaute.study.trust import Judge, by_share, decision_of

if TYPE_CHECKING:
    from lepaute.study.configuration import Configurations
    from lepaute.study.schema import PublishedResult, Study


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    level    : of the factor that is compared;  point : where it was simulated, the best of those of the level
    spreads  : of each response, over the runs, as a prediction has them; empty where all were refused
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
        """An entry of the JSON."""
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
    published   : figures of others, of the base and of the level; None where there are none
    """

    setting: Point
    reference: Side
    other: Side
    differences: dict[str, PairDifference]
    shared: bool
    published: "tuple[PublishedResult | None, PublishedResult | None]" = (None, None)

    def published_of(self, side: Side) -> "PublishedResult | None":
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
        ends = (None, None) if found is None else (found.low, found.high)
        return Decision.of_ratio(*ends, weaknesses, margin=ROUNDING)

    def to_dict(self) -> dict[str, Any]:
        """An entry of the JSON."""
        decisions = {name: self.decision(name) for name in self.differences}
        return {
            "setting": dict(self.setting),
            "reference": self.reference.to_dict(),
            "other": self.other.to_dict(),
            "differences": {
                name: each.to_dict() | {"told_apart": decisions[name].is_shown, **decisions[name].to_dict()}
                for name, each in self.differences.items()
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
        return sum(each.decision(self.responses[0]).is_shown for each in self.comparisons)

    @property
    def decision(self) -> Decision:
        """That half of the changes can be told from the base."""
        clear = 2 * self.told_apart >= len(self.comparisons)
        return decision_of(clear if self.runs > 1 else None, [each.weakest.trust for each in self.comparisons])

    @property
    def trusts(self) -> dict[Point, Trust]:
        """Of all points that were compared."""
        return {side.point: side.trust for each in self.comparisons for side in (each.reference, each.other)}

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        known = [(each, one) for each in self.comparisons if (one := self._difference(each)) is not None]
        if not known:
            return "Nothing could be compared: every configuration was refused."
        if len(self.comparisons) == 1:
            return f"{begun(noun(self.responses[0]))} with {self._named_change(known[0][0])}."
        if all(one.text == NO_DIFFERENCE for _, one in known):
            return f"None of {len(self.comparisons)} makes any difference to {noun(self.responses[0])}."
        farthest, _ = max(known, key=lambda pair: (not pair[0].reasons, abs(log(pair[1].ratio))))
        if self.runs > 1 and not self.told_apart:
            return self._none_told(farthest)
        changed = f"the largest change of {noun(self.responses[0])} is that of {self._named_change(farthest)}."
        if self.runs == 1:
            return begun(changed)
        return f"{self.told_apart} of {len(self.comparisons)} can be told from the base; {changed}"

    def _none_told(self, farthest: LevelComparison) -> str:
        """That no change can be shown, how large the largest may be, and what would tell more."""
        found = self._difference(farthest)
        assert found is not None
        size = f"; the largest seems to be that of {self.name_of(farthest)}" + (
            f" (95 %: {found.bounds})" if found.bounds else ""
        )
        more = "".join(f"; {each}" for each in (found.narrower, *self._doubts(farthest)) if each)
        count, of = len(self.comparisons), noun(self.responses[0])
        return f"None of {count} changes makes a difference to {of} that can be shown{size}{more}."

    @property
    def text(self) -> str:
        """The sentence, and a table of the comparisons."""
        return f"{self.sentence}\n\n{text_table(*self.table(), left=None)}\n({self.pairing})"

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Titles, and a row for each level of each setting, the base first."""
        first = self.comparisons[0]
        titles = (*first.setting, self.factor, *self.best_of(first), label(self.responses[0]), f"against {self.base}")
        if self.source is not None:
            titles = (*titles[:-1], "published", titles[-1])
        rows: list[tuple[str, ...]] = []
        for each, is_first in self.by_setting():
            if is_first:
                rows.append(self._row(each, each.reference, each.reference.refusal or "the base"))
            change = each.other.refusal or each.reference.refusal or self.change_of(each)
            rows.append(self._row(each, each.other, change if each.shared else f"{change}; no errors in common"))
        return titles, rows

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

    def by_setting(self) -> list[tuple[LevelComparison, bool]]:
        """All comparisons, and whether each is the first one of its setting."""
        first = {each.setting: each for each in reversed(self.comparisons)}
        return [(each, each is first[each.setting]) for each in self.comparisons]

    def name_of(self, comparison: LevelComparison) -> str:
        """The level that is compared, and where."""
        where = f" at {called(comparison.setting)}" if comparison.setting else ""
        what = "" if self.factor == SCENARIO else f"{self.factor} "
        return f"{what}{comparison.other.level}{where}"

    def change_of(self, comparison: LevelComparison) -> str:
        """The change of the first response in words, and why it is not to be relied on."""
        difference = self._difference(comparison)
        words = [] if difference is None else [difference.text]
        return "; ".join([*words, *self._doubts(comparison)])

    def _doubts(self, comparison: LevelComparison) -> list[str]:
        return [f"not comparable, {each}" for each in comparison.reasons]

    def best_of(self, comparison: LevelComparison) -> list[str]:
        """Factors of which the best level was taken."""
        return [name for name in comparison.reference.point if name not in (self.factor, *comparison.setting)]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "question": "whatif",
            "answer": self.sentence,
            "factor": self.factor,
            "base": self.base,
            "runs": self.runs,
            "same_noise": self.same_noise,
            "told_apart": self.told_apart,
            **({} if self.source is None else {"published_source": self.source}),
            "comparisons": [each.to_dict() for each in self.comparisons],
        }

    def _difference(self, comparison: LevelComparison) -> PairDifference | None:
        return comparison.differences.get(self.responses[0])

    def _named_change(self, comparison: LevelComparison) -> str:
        return f"{self.name_of(comparison)}: {self.change_of(comparison)}"

    def _row(self, comparison: LevelComparison, side: Side, change: str) -> tuple[str, ...]:
        value = side.means.get(self.responses[0])
        chosen = [str(side.point[name]) for name in self.best_of(comparison)]
        shown = ["" if value is None else number(value, 4)]
        if self.source is not None:
            figure = comparison.published_of(side)
            shown.append("" if figure is None else figure.text)
        return (*map(str, comparison.setting.values()), str(side.level), *chosen, *shown, change)


def whatif_trials(study: "Study", configurations: "Configurations", runs: int) -> list[Trial]:
    """All trials, the base's first at each setting; other levels have another repeat, unless the noise is the same."""
    section = study.compared
    return [
        trial
        for point in configurations.points()
        for trial in trials_of(
            [point],
            runs,
            study.seed,
            repeat=int(not section.same_noise and not same(point[section.factor], section.base)),
        )
    ]


def whatif(study: "Study", configurations: "Configurations", evaluate: Evaluate) -> WhatIfAnswer:
    """Each level against the base, at each combination of the levels of the other factors.

    With a wanted precision, runs are doubled until all intervals of the first response are as narrow, or the budget of
    simulations would not suffice. Raises InputError where the budget does not suffice for the first runs.
    """
    runs, budget, judge, pricing = study.runs, study.budget, Judge(evaluate), Pricing(configurations, evaluate)
    while True:
        trials = whatif_trials(study, configurations, runs)
        if budget.simulations is not None and len(trials) > budget.simulations:
            raise InputError(
                f"{len(trials)} simulations are needed ({runs} runs of {len(trials) // runs} configurations) and the "
                f"budget is {budget.simulations}; raise it, or ask for fewer runs or levels"
            )
        answer = _answer(study, configurations, evaluate(trials), runs, judge, pricing)
        most = budget.simulations or 64 * len(trials) * study.runs // runs
        if budget.precision is None or _width_percent(answer) <= budget.precision or 2 * len(trials) > most:
            return answer
        runs *= 2


def _answer(
    study: "Study",
    configurations: "Configurations",
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
    chosen = {side.point: of_point[side.point] for _, *sides in compared for side in sides}
    trusts = judge(chosen) if runs > 1 else {point: by_share(each) for point, each in chosen.items()}

    def trusted(side: Side) -> Side:
        return replace(side, trust=trusts[side.point])

    comparisons = [
        _compared(setting, trusted(reference), trusted(other), of_point, controls, configurations, study)
        for setting, reference, other in compared
    ]
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
    sign = 1.0 if judged in LESS_IS_BETTER else -1.0
    best = min(known, key=lambda point: sign * _spread(of_point[point], judged, controls.get(point)).mean)
    runs = of_point[best]
    given = [name for name in responses if all(name in each.responses for each in runs)]
    return Side(level, best, {name: _spread(runs, name, controls.get(best)) for name in given})


def _compared(
    setting: Point,
    reference: Side,
    other: Side,
    of_point: dict[Point, list[Outcome]],
    controls: dict[Point, Controls],
    configurations: "Configurations",
    study: "Study",
) -> LevelComparison:
    if reference.refusal or other.refusal:
        return LevelComparison(setting, reference, other, {}, shared=True)
    before, changed = configurations.at(reference.point), configurations.at(other.point)
    shared = before.shares_errors(changed)
    own_sd = before.own_relative_sd(changed) if shared else 0.0
    after = of_point[other.point]
    if not shared:  # the next seed: nothing in common
        after = [replace(b, trial=a.trial) for a, b in zip(after, [*after[1:], *after[:1]], strict=True)]
    if study.compared.same_noise:
        after = [replace(each, trial=replace(each.trial, repeat=1)) for each in after]
    assumed = before.models is not changed.models and bool(before.models.assumed or changed.models.assumed)
    of_ratio = controls_of_ratio(controls.get(reference.point), controls.get(other.point), shared=shared)
    differences = {
        name: difference(of_point[reference.point], after, name, own_sd=own_sd, controls=of_ratio, assumed=assumed)
        for name in study.responses
        if name in reference.means and name in other.means and min(reference.means[name], other.means[name]) > 0.0
    }
    published = _published(study, setting, reference), _published(study, setting, other)
    return LevelComparison(setting, reference, other, differences, shared, published)


def _published(study: "Study", setting: Point, side: Side) -> "PublishedResult | None":
    """The figure that others published of a level at a setting; None where there is none."""
    of_side = {**setting, study.compared.factor: side.level}
    for result in study.published.results if study.published else ():
        if all(name in of_side and same(level, of_side[name]) for name, level in result.at.items()):
            return result
    return None


def _spread(outcomes: Sequence[Outcome], response: str, controls: Controls | None) -> Spread:
    """As of a prediction; no interval where a derived response is below 0."""
    values = [outcome[response] for outcome in outcomes]
    if min(values) < 0.0:
        return Spread(fsum(values) / len(values), nan, nan)
    return spread_of(values, sampling_sd_of_mean(outcomes), controls)


def _width_percent(answer: WhatIfAnswer) -> float:
    """Half the widest interval of a ratio of the first response; 100 where there is none."""
    known = [one for each in answer.comparisons if (one := each.differences.get(answer.responses[0])) is not None]
    widths = [50.0 * (one.high - one.low) / one.ratio for one in known if one.low is not None and one.high is not None]
    return max(widths) if widths and len(widths) == len(known) else 100.0
