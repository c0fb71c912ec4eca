"""What each parameter of a sweep changes: its values against the best of them, all other parameters being equal."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, hypot, inf
from typing import TYPE_CHECKING, Any

from lepaute.stats.intervals import prediction_interval

if TYPE_CHECKING:
    from lepaute.simulate.prediction import Prediction

#: Predictions that differ in one parameter alone, by its value.
Block = Mapping[Any, "Prediction"]


@dataclass(frozen=True, slots=True)
class Effect:
    """A value of a parameter against the reference, from pairs that differ in this parameter alone.

    ratio     : how many times as long it takes, geometric mean over pairs and runs; None where no pair is comparable
    low, high : 95 % interval of that ratio; None without a ratio, or for one run
    pairs     : that are comparable, both of them;  all_pairs : with those that are mostly extrapolated
    faster_in : pairs in which this value is the faster one, outside of their own interval
    """

    value: Any
    ratio: float | None
    low: float | None
    high: float | None
    pairs: int
    all_pairs: int
    faster_in: int

    @property
    def is_told_apart(self) -> bool:
        """Whether 1 is outside the interval."""
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high

    def to_dict(self) -> dict[str, Any]:
        """An entry of the JSON."""
        return {
            "value": self.value,
            "ratio": None if self.ratio is None else {"mean": self.ratio, "low": self.low, "high": self.high},
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
        """An entry of the JSON."""
        others = [effect.to_dict() for effect in self.others]
        return {"parameter": self.name, "reference": self.reference, "others": others}


def effects(predictions: "Sequence[Prediction]") -> list[Parameter]:
    """What each parameter does that varies among predictions of one problem, with the same runs and seed.

    Empty where nothing varies alone, where the applications differ, or where a time is 0.
    """
    kinds = {type(one.application) for one in predictions}
    if len(kinds) != 1 or min(run.time_s for one in predictions for run in one.run_list) <= 0.0:
        return []
    choices = [one.application.choices() for one in predictions]
    found = [_parameter(name, predictions, choices) for name in choices[0]]
    return [parameter for parameter in found if parameter is not None]


def _parameter(
    name: str, predictions: "Sequence[Prediction]", choices: Sequence[Mapping[str, Hashable]]
) -> Parameter | None:
    """One parameter; None where it has one value, no two predictions differ in it alone, or none is comparable."""
    values = list(dict.fromkeys(each[name] for each in choices))
    if len(values) < 2:
        return None
    blocks: dict[tuple[Hashable, ...], dict[Any, Prediction]] = {}
    for one, each in zip(predictions, choices, strict=True):
        blocks.setdefault(tuple(value for key, value in each.items() if key != name), {})[each[name]] = one
    comparable = [one for one in predictions if one.comparable]
    if not comparable:
        return None
    reference = _reference(values, blocks.values())
    if reference is None:
        reference = min(comparable, key=_log_time).application.choices()[name]
    found = [_effect(value, reference, blocks.values()) for value in values if value != reference]
    others = sorted(
        (effect for effect in found if effect.all_pairs),
        key=lambda effect: inf if effect.ratio is None else effect.ratio,
    )
    return Parameter(name, reference, tuple(others)) if others else None


def _reference(values: Sequence[Any], blocks: Collection[Block]) -> Any:
    """The value that is fastest on average, where all others are equal; None where no block has all of them.

    Values that are comparable nowhere do not count.
    """
    usable = [value for value in values if any(value in block and block[value].comparable for block in blocks)]
    whole = [block for block in blocks if all(value in block and block[value].comparable for value in usable)]
    if not whole:
        return None
    return min(usable, key=lambda value: fsum(_log_time(block[value]) for block in whole))


def _effect(value: Any, reference: Any, blocks: Collection[Block]) -> Effect:
    """From the pairs of this value and the reference, run by run: equal seeds are one machine on one day."""
    from lepaute import _core

    pairs = [(block[reference], block[value]) for block in blocks if reference in block and value in block]
    usable = [pair for pair in pairs if all(one.comparable for one in pair)]
    if not usable:
        return Effect(value, None, None, None, 0, len(pairs), 0)
    logs = [
        [
            _core.natural_log(mine.time_s / its.time_s)
            for its, mine in zip(at_reference.run_list, one.run_list, strict=True)
        ]
        for at_reference, one in usable
    ]
    of_runs = [fsum(of_run) / len(usable) for of_run in zip(*logs, strict=True)]
    sampling = [hypot(at_reference.sampling_sd, one.sampling_sd) for at_reference, one in usable]
    # Windows of like runs are off alike: the error of sampling does not become less with the number of pairs.
    low, high = prediction_interval([_core.exponential(log) for log in of_runs], fsum(sampling) / len(sampling))
    faster = sum(_is_faster(of_pair, sd) for of_pair, sd in zip(logs, sampling, strict=True))
    ratio = _core.exponential(fsum(of_runs) / len(of_runs))
    return Effect(value, ratio, low, high, len(usable), len(pairs), faster)


def _is_faster(logs: Sequence[float], sampling_sd: float) -> bool:
    """Whether the ratios of a pair are below 1 with their interval; only those of which each run is are looked at."""
    from lepaute import _core

    if max(logs) >= 0.0:
        return False
    high = prediction_interval([_core.exponential(log) for log in logs], sampling_sd).high
    return high is not None and high < 1.0


def _log_time(prediction: "Prediction") -> float:
    """Mean logarithm of the time of the runs."""
    from lepaute import _core

    runs = prediction.run_list
    return fsum(_core.natural_log(run.time_s) for run in runs) / len(runs)
