"""Several predictions side by side: which are comparable, the best of these, what is ahead of it or may be, what each
parameter changes, how a problem scales, and what to calibrate for those that are not comparable."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import fsum, hypot, inf
from typing import TYPE_CHECKING, Any

from lepaute import _core
from lepaute.errors import InputError
from lepaute.simulate.prediction.comparing import Difference, difference
from lepaute.simulate.prediction.predicting import repeated
from lepaute.simulate.prediction.prediction import Prediction, Spread
from lepaute.simulate.prediction.warnings import caveats
from lepaute.stats.control_variates import Controls, controls_of_mean, controls_of_ratio
from lepaute.stats.intervals import median_of_runs, prediction_interval

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions

    #: What is simulated, and under which conditions, where they are known.
    Case = tuple[Application, Conditions | None]

#: A calibration takes this many block sizes at most, this far apart at least: those between are interpolated.
MAX_BLOCK_SIZES, MIN_RATIO = 6, 1.4
#: Kernels whose k is the block size in the update, where nearly all of HPL's time goes.
UPDATES = ("dgemm", "dgemm_nn")
#: A calibration reaches matrices of order 8000, one with --quick 1200: one that does not reach this is of that kind.
MIN_ORDER = 2000
#: What is advised then.
LARGER = "lepaute calibrate, without --quick, which measures small matrices only"
#: Predictions that differ in one parameter alone, by its value.
Block = Mapping[Any, Prediction]


@dataclass(frozen=True)
class Sweep:
    """Predictions of combinations on one platform, in their order.

    comparable : those whose time extrapolation does not decide (trust.py);  apart : the others
    """

    predictions: tuple[Prediction, ...]

    @cached_property
    def problems(self) -> tuple["Sweep", ...]:
        """A sweep for each problem, such as each N of HPL, in their order: there is a best of each."""
        by_problem: dict[str, list[Prediction]] = {}
        for prediction in self.predictions:
            by_problem.setdefault(prediction.application.problem.words, []).append(prediction)
        return tuple(Sweep(tuple(each)) for each in by_problem.values())

    @property
    def problem(self) -> str:
        """Problem of the first prediction, for a sweep of one problem."""
        return self.predictions[0].application.problem.words

    @property
    def by_speed(self) -> list[Prediction]:
        """The fastest first."""
        return sorted(self.predictions, key=log_time)

    @property
    def comparable(self) -> tuple[Prediction, ...]:
        return tuple(prediction for prediction in self.predictions if prediction.comparable)

    @property
    def apart(self) -> tuple[Prediction, ...]:
        return tuple(prediction for prediction in self.predictions if not prediction.comparable)

    @cached_property
    def best(self) -> Prediction | None:
        """The fastest of those that are comparable, of a sweep of one problem; None if none is."""
        return min(self.comparable, key=log_time, default=None)

    @cached_property
    def bests(self) -> tuple[Prediction, ...]:
        """The best and all that cannot be told from it, the fastest first; empty if none is comparable."""
        best = self.best
        if best is None:
            return ()
        others = (each for each in self.by_speed if each.comparable and each is not best)
        return best, *(each for each in others if not _distinguishable(best, each))

    @property
    def ahead(self) -> tuple[Prediction, ...]:
        """Predictions that are not comparable and yet certainly faster than all that are, the fastest first.

        Where none is comparable, the one that is certainly faster than each other one, if there is such a one.
        """
        fastest, best = sorted(self.apart, key=log_time), self.best
        if best is not None:
            return tuple(each for each in fastest if _distinguishable(best, each) and log_time(each) < log_time(best))
        first, *others = fastest
        return (first,) if others and all(_distinguishable(first, each) for each in others) else ()

    @property
    def rivals(self) -> tuple[Prediction, ...]:
        """Predictions that are not comparable and may be as fast as the best, the fastest first."""
        best = self.best
        if best is None:
            return ()
        return tuple(each for each in sorted(self.apart, key=log_time) if not _distinguishable(best, each))

    def _places(self, predictions: Sequence[Prediction]) -> list[int]:
        places = {id(each): place for place, each in enumerate(self.predictions)}
        return [places[id(prediction)] for prediction in predictions]

    def to_dict(self) -> dict[str, Any]:
        """Entries of the JSON: the places of all that may be the best, and the caveats; by problem these places, those
        of what is ahead of the best or may be as fast, and the parameters."""
        return {
            "best": [place for problem in self.problems for place in self._places(problem.bests)],
            "caveats": caveats(self.predictions),
            "problems": [
                {
                    "problem": problem.problem,
                    "best": self._places(problem.bests),
                    "ahead": self._places(problem.ahead),
                    "rivals": self._places(problem.rivals),
                    "parameters": [parameter.to_dict() for parameter in effects(problem.predictions)],
                }
                for problem in self.problems
            ],
        }

    @property
    def scaling_points(self) -> "list[ScalingPoint]":
        """Points of one problem on several numbers of ranks, where nothing else is chosen; else empty."""
        several = len({prediction.application.ranks for prediction in self.predictions}) > 1
        choices = [prediction.application.problem.choices for prediction in self.predictions]
        varied = [name for name in choices[0] if len({chosen[name] for chosen in choices}) > 1]
        return scaling(self.predictions) if several and len(self.problems) == 1 and len(varied) < 2 else []

    def repeat_references(self, tell: Callable[[str, float], None]) -> None:
        """Simulates what others are compared with once more, with other noise: the fastest of each problem, and what
        runs on the fewest ranks; tell : called with what is simulated, and the share that is done."""
        references = [problem.best for problem in self.problems if len(problem.comparable) > 1]
        if len({prediction.application.ranks for prediction in self.predictions}) > 1:
            references.append(min(self.predictions, key=lambda prediction: prediction.application.ranks))
        for reference in filter(None, references):
            repeated(reference, lambda share: tell("simulating the fastest once more, with other noise", share))

    @property
    def remedy(self) -> str | None:
        """The calibration that makes more of them comparable: one of these block sizes, or of larger matrices; None
        if neither is what is extrapolated."""
        cases, apart = (
            [(each.application, each.conditions) for each in group] for group in (self.predictions, self.apart)
        )
        return remedy_of(cases, apart)


def _distinguishable(reference: Prediction, other: Prediction) -> bool:
    """Whether the two cannot be the other way round; False if a time is 0."""
    if min(run.time_s for each in (reference, other) for run in each.run_list) <= 0.0:
        return False
    return difference(reference, other).is_told_apart


def log_time(prediction: Prediction) -> float:
    """Logarithm of the typical time, which ranks predictions of one problem: in the order of their `difference`."""
    times_s = [run.time_s for run in prediction.run_list]
    return _core.natural_log(median_of_runs(times_s, prediction.controls)) if min(times_s) > 0.0 else -inf


@dataclass(frozen=True, slots=True)
class Effect:
    """A value of a parameter against the reference, from pairs that differ in this parameter alone.

    change    : how much longer it takes, on average over the pairs; None if no pair is comparable
    pairs     : that are comparable, both of them;  all_pairs : with those that are mostly extrapolated
    faster_in : pairs in which this value is the faster one, outside of their own interval
    """

    value: Any
    change: Difference | None
    pairs: int
    all_pairs: int
    faster_in: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "ratio": None if self.change is None else self.change.to_dict()["ratio"],
            "comparable": self.pairs > 0,
            "pairs": self.pairs,
            "all_pairs": self.all_pairs,
            "faster_in": self.faster_in,
        }


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that varies: `reference`, the fastest of its values on average; others : the shortest first."""

    name: str
    reference: Any
    others: tuple[Effect, ...]

    def to_dict(self) -> dict[str, Any]:
        others = [effect.to_dict() for effect in self.others]
        return {"parameter": self.name, "reference": self.reference, "others": others}


def effects(predictions: Sequence[Prediction]) -> list[Parameter]:
    """Effect of each parameter that varies among predictions of one problem, with the same runs and seed.

    Empty where nothing varies alone, where the applications differ, or where a time is 0.
    """
    types = {type(prediction.application) for prediction in predictions}
    if len(types) != 1 or min(run.time_s for prediction in predictions for run in prediction.run_list) <= 0.0:
        return []
    choices = [prediction.application.problem.choices for prediction in predictions]
    parameters = (_parameter(name, predictions, choices) for name in choices[0])
    return [parameter for parameter in parameters if parameter is not None]


def _parameter(
    name: str, predictions: Sequence[Prediction], choices: Sequence[Mapping[str, Hashable]]
) -> Parameter | None:
    """One parameter; None if it has one value, no two predictions differ in it alone, or none is comparable."""
    values = list(dict.fromkeys(choice[name] for choice in choices))
    if len(values) < 2:
        return None
    by_others: dict[tuple[Hashable, ...], dict[Any, Prediction]] = {}
    for prediction, each in zip(predictions, choices, strict=True):
        by_others.setdefault(tuple(value for key, value in each.items() if key != name), {})[each[name]] = prediction
    comparable = [each for each in predictions if each.comparable]
    if not comparable:
        return None
    blocks = by_others.values()
    reference = _reference(values, blocks)
    if reference is None:
        reference = min(comparable, key=log_time).application.problem.choices[name]
    against = (_effect(value, reference, blocks) for value in values if value != reference)
    others = sorted(
        (effect for effect in against if effect.all_pairs),
        key=lambda effect: inf if effect.change is None else effect.change.ratio,
    )
    return Parameter(name, reference, tuple(others)) if others else None


def _reference(values: Sequence[Any], blocks: Collection[Block]) -> Any:
    """The value that is fastest on average, where all others are equal; None if no block has all of them.

    Values that are comparable nowhere do not count.
    """
    usable = [value for value in values if any(value in block and block[value].comparable for block in blocks)]
    whole = [block for block in blocks if all(value in block and block[value].comparable for value in usable)]
    if not whole:
        return None
    return min(usable, key=lambda value: fsum(log_time(block[value]) for block in whole))


def _effect(value: Any, reference: Any, blocks: Collection[Block]) -> Effect:
    """From the pairs of this value and the reference, run by run: equal seeds are one machine on one day."""
    pairs = [(block[reference], block[value]) for block in blocks if reference in block and value in block]
    usable = [pair for pair in pairs if all(each.comparable for each in pair)]
    if not usable:
        return Effect(value, None, 0, len(pairs), 0)
    if len(usable) == 1:
        change = replace(difference(*usable[0]), narrower="")
        return Effect(value, change, 1, len(pairs), int(change.is_told_apart and change.ratio < 1.0))
    logs = [
        [
            _core.natural_log(run.time_s / of_reference.time_s)
            for of_reference, run in zip(at_reference.run_list, at_value.run_list, strict=True)
        ]
        for at_reference, at_value in usable
    ]
    of_runs = [fsum(of_run) / len(usable) for of_run in zip(*logs, strict=True)]
    sampling = [hypot(at_reference.sampling_sd, at_value.sampling_sd) for at_reference, at_value in usable]
    controls = [controls_of_ratio(at_reference.controls, at_value.controls) for at_reference, at_value in usable]
    # Windows of like runs are off alike: the error of sampling does not become less with the number of pairs.
    common_sd, of_all = fsum(sampling) / len(sampling), controls_of_mean(controls)
    ratios = [_core.exponential(log) for log in of_runs]
    ends = prediction_interval(ratios, common_sd, of_all).ends
    change = Difference(median_of_runs(ratios, of_all), *ends, shared=True, run_noise=False)
    return Effect(value, change, len(usable), len(pairs), sum(map(_is_faster, logs, sampling, controls)))


def _is_faster(logs: Sequence[float], sampling_sd: float, controls: Controls | None) -> bool:
    """Whether the ratios of a pair are below 1 with their interval; only those of which each run is are looked at."""
    if max(logs) >= 0.0:
        return False
    high = prediction_interval([_core.exponential(log) for log in logs], sampling_sd, controls).high
    return high is not None and high < 1.0


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One prediction in relation to that on the fewest ranks.

    speed_up   : time there / time here, the inverse of their `difference`
    efficiency : speed_up x ranks there / ranks here
    """

    prediction: Prediction
    speed_up: Spread
    efficiency: Spread

    @property
    def ranks(self) -> int:
        return self.prediction.application.ranks

    def to_dict(self) -> dict[str, Any]:
        return {"ranks": self.ranks, "speed_up": asdict(self.speed_up), "efficiency": asdict(self.efficiency)}


def scaling(predictions: Sequence[Prediction]) -> list[ScalingPoint]:
    """The predictions in the order of their ranks, relative to the first of those on the fewest.

    Raises InputError if their runs are not of the same seeds, or a time is 0.
    """
    ordered = sorted(predictions, key=lambda each: each.application.ranks)
    reference = ordered[0]
    seeds = [run.seed for run in reference.run_list]
    if any([run.seed for run in each.run_list] != seeds for each in ordered):
        raise InputError("speed-ups are of runs with equal seeds; predict all with the same runs and seed")
    if min(run.time_s for prediction in ordered for run in prediction.run_list) <= 0.0:
        raise InputError("a predicted time is 0 s, and nothing is faster than that; predict a larger problem")
    points = []
    for prediction in ordered:
        ends = (1.0, 1.0, 1.0)
        if prediction is not reference:
            ratio = difference(reference, prediction)
            ends = (1.0 / ratio.ratio, 1.0 / ratio.high, 1.0 / ratio.low)
        share = reference.application.ranks / prediction.application.ranks
        points.append(ScalingPoint(prediction, Spread(*ends), Spread(*(share * end for end in ends))))
    return points


def remedy_of(cases: Sequence["Case"], apart: Sequence["Case"]) -> str | None:
    """The calibration that makes more of the cases comparable of which those `apart` are not; None as for Sweep."""
    sizes = {getattr(application, "nb", None) for application, _ in cases}
    if any(_is_new_block_size(case) for case in apart):
        return _calibration_of(sorted(size for size in sizes if size is not None))
    return LARGER if any(_is_of_quick_calibration(case) for case in apart) else None


def _calibration_of(block_sizes: Sequence[int]) -> str:
    """The command that covers these block sizes, in increasing order, the smallest and the largest among them."""
    chosen = [block_sizes[0]]
    ratio = max(MIN_RATIO, (block_sizes[-1] / block_sizes[0]) ** (1.0 / (MAX_BLOCK_SIZES - 1)))
    for size in block_sizes[1:-1]:
        if size >= 0.99 * ratio * chosen[-1] and block_sizes[-1] >= MIN_RATIO * size:
            chosen.append(size)
    chosen += block_sizes[-1:] if len(block_sizes) > 1 else []
    return f"lepaute calibrate --nb {','.join(map(str, chosen))}"


def _is_new_block_size(case: "Case") -> bool:
    """Whether HPL's update was calibrated for other block sizes only: larger ones, or smaller ones."""
    order = getattr(case[0], "n", None)
    return order is not None and any(depth != 0.0 for _, _, depth in _distances_of_updates(case, order))


def _is_of_quick_calibration(case: "Case") -> bool:
    """Whether the platform is of a calibration whose largest update is smaller than any without --quick."""
    if case[1] is None or case[1].platform.archive_id is None:
        return False
    return any(rows > 0.0 and columns > 0.0 for rows, columns, _ in _distances_of_updates(case, MIN_ORDER))


def _distances_of_updates(case: "Case", order: int) -> list[tuple[float, float, float]]:
    """How far an update of a matrix of that order is from the fitted sizes, in m, n and k, by model of a dgemm."""
    from lepaute.simulate.machine.core import per_cpu_models

    application, conditions = case
    size = getattr(application, "nb", None)
    if size is None or conditions is None:
        return []
    updates = [model for model in conditions.platform.kernels if model.kernel in UPDATES]
    logs = [
        per_cpu_models(model, conditions.platform)[0].distance(_core.Size(order, order, size)).log for model in updates
    ]
    return [(rows, columns, depth) for rows, columns, depth in logs]
