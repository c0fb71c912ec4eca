"""The ratio of two predictions, with an interval of its own: what they share cancels.

Run i of both has the same seed, so that it sees the same machine on the same day: coefficients, discrepancies, days and
the state of the network are the same draws where both have the same models, of each cpu, kernel and class of links.
Draws of single runs (noise of calls and messages, the effect of a run on all CPUs) are others in each, as in reality.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum, hypot, isnan, sqrt
from typing import Any, NamedTuple

from lepaute import _core
from lepaute.errors import InputError
from lepaute.kit.notebook import facts_html
from lepaute.kit.numbers import none_if_nan, of_type
from lepaute.kit.text import change_in_words
from lepaute.simulate.application import Application
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.machine.population import drawn_alike
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.predicting import repeated
from lepaute.simulate.prediction.prediction import Prediction
from lepaute.stats.control_variates import Controls, adjusted, controls_of_ratio
from lepaute.stats.intervals import median_of_runs, prediction_interval, runs_that_tell, standard_deviation

#: A ratio this near to 1 in all runs is one of equal runs, but for rounding.
ROUNDING = 1e-9
NO_DIFFERENCE = "no difference"


@dataclass(frozen=True, slots=True, repr=False)
class Difference:
    """How many times as large what is predicted (the time, unless a study asks for another) is as of a reference.

    ratio     : geometric mean over the runs of value / value of the reference
    low, high : 95 % prediction interval of that ratio for one further pair of runs, both on one machine and one day;
                NaN for one run, which JSON has as null
    shared    : whether errors of the models cancel; not where the two have other kernels or days: then each ratio is of
                two machines that have nothing to do with each other
    run_noise : whether the interval holds what differs between two runs of one day
    shared_variance : share of the variance of both logarithms that cancels, 0 to 1; below 0 it would be better to
        compare runs that have nothing in common
    enough    : pairs of runs, more than there are, that would tell it from 1; None if no number would
    """

    ratio: float
    low: float
    high: float
    shared: bool
    run_noise: bool
    narrower: str = ""
    pairs: int = 1
    shared_variance: float = 0.0
    enough: int | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"<Difference {self.text}>"

    def _repr_html_(self) -> str:
        facts = [
            ("other / reference", self.text),
            ("errors of the models", "shared: they cancel" if self.shared else "not shared"),
            ("noise of single runs", "in the interval" if self.run_noise else "not in the interval"),
        ]
        return facts_html("Difference of two predictions", facts)

    @property
    def is_told_apart(self) -> bool:
        """Whether 1 is outside the interval."""
        return self.low > 1.0 or self.high < 1.0

    @property
    def text(self) -> str:
        """In words: 3.1 % slower (95 %: 1.2 to 5.0 % slower)."""
        return self.in_words("slower", "faster")

    def in_words(self, more: str = "more", less: str = "less") -> str:
        """The difference in words: 3.1 % more (95 %: 1.2 to 5.0 % more)."""
        if isnan(self.low):
            return f"{change_in_words(self.ratio, more, less)} (one run: no interval)"
        if max(abs(end - 1.0) for end in (self.ratio, self.low, self.high)) < ROUNDING:
            return NO_DIFFERENCE
        if self.high - self.low < ROUNDING:
            return f"{change_in_words(self.ratio, more, less)} in all runs"
        bounds = f"(95 %: {self.bounds(more, less)})"
        if self.is_told_apart:
            return f"{change_in_words(self.ratio, more, less, self.low, self.high)} {bounds}"
        return f"cannot be told apart {bounds}{f'; {self.narrower}' if self.narrower else ''}"

    def bounds(self, more: str = "more", less: str = "less") -> str:
        """The interval in words: 1.2 to 5.0 % more; empty for one run."""
        if isnan(self.low):
            return ""
        ends = (self.high, self.low) if self.high < 1.0 else (self.low, self.high)
        low, high = (change_in_words(end, more, less, self.low, self.high) for end in ends)
        figure, _, of_low = low.partition(" ")
        return f"{figure} to {high}" if of_low in (high.partition(" ")[2], "%") else f"{low} to {high}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "ratio": {"mean": self.ratio, "low": none_if_nan(self.low), "high": none_if_nan(self.high)},
            "told_apart": self.is_told_apart,
            "shared_errors": self.shared,
            "run_noise": self.run_noise,
            "pairs": self.pairs,
            "shared_variance": self.shared_variance,
        }


def difference(reference: Prediction, other: Prediction) -> Difference:
    """How many times as long `other` takes as `reference`, with an interval in which what they share has cancelled.

    Both have the same runs, seeds and layers. Noise of single runs is not shared: where both have the same `repeat`,
    the reference is simulated once more with other noise.

    Parameters
    ----------
    reference, other : of the same application

    Returns
    -------
    A `Difference`: ratio, low and high are times over times of the reference, without a unit

    Raises
    ------
    InputError : one line, where the two cannot be compared

    Examples
    --------
    >>> import lepaute as lp
    >>> small, large = (lp.Hpl(n=20_000, nb=nb, p=4, q=4) for nb in (128, 256))
    >>> larger = lp.difference(lp.predict(small, "dahu", runs=5), lp.predict(large, "dahu", runs=5))
    >>> larger.low < larger.ratio < larger.high
    True
    """
    before, after = _comparable(reference, other)
    pair = Pairing.of(reference.application, before, other.application, after)
    again = repeated(reference) if pair.needs_other_noise and before.repeat == after.repeat else None
    return pair.difference(Runs.of(reference), Runs.of(other), None if again is None else Runs.of(again))


class Runs(NamedTuple):
    """Values of runs, all above 0; the relative standard deviation of their common error of sampling; controls."""

    values: Sequence[float]
    sampling_sd: float = 0.0
    controls: Controls | None = None

    @classmethod
    def of(cls, prediction: Prediction) -> "Runs":
        return cls([run.time_s for run in prediction.run_list], prediction.sampling_sd, prediction.controls)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairing of two configurations in runs of equal seeds.

    shared    : whether the same draws mean the same errors of models on both
    own_sd    : relative standard deviation of the ratio by what runs of equal seeds wrongly share
    assumed   : whether the two are machines that rest on what was not measured
    """

    shared: bool
    run_noise: bool
    own_sd: float
    assumed: bool

    @classmethod
    def of(cls, reference: Application, before: Conditions, other: Application, after: Conditions) -> "Pairing":
        """Pairing of an application under its conditions and another one under others."""
        one, two = before.platform, after.platform
        shared = share_errors(one, two, reference, other)
        own_sd = _run_relative_sd(one, two) if shared and before.layers.days else 0.0
        assumed = one.models != two.models and bool(one.assumed or two.assumed)
        return cls(shared, _runs_differ(before) or _runs_differ(after), own_sd, assumed)

    @property
    def needs_other_noise(self) -> bool:
        """Whether runs of equal seeds have to differ in their noise."""
        return self.shared and self.run_noise

    def difference(self, reference: Runs, other: Runs, again: Runs | None = None) -> Difference:
        """Difference of runs with equal seeds: every difference that is stated comes from here.

        again : those of the reference with other noise, where both others have the same: the ratio is that of the two,
            as their values are stated, and these tell how far that of two real runs is from it
        """
        stated, _, controls_of_stated = self._ratios(reference, other)
        ratios, common_sd, controls = self._ratios(again or reference, other)
        middle = median_of_runs(stated, controls_of_stated)
        moved = middle / median_of_runs(ratios, controls)
        low, high = prediction_interval(ratios, common_sd, controls).ends
        enough = _enough(middle, ratios, common_sd, controls)
        narrower = [f"--runs {enough} would decide"] if enough else []
        if self.assumed:
            narrower.append("a calibration instead of what is assumed would narrow it")
        return Difference(
            middle,
            low * moved,
            high * moved,
            self.shared,
            self.run_noise,
            "; ".join(narrower),
            len(ratios),
            _shared_variance((again or reference).values, other.values),
            enough,
        )

    def _ratios(self, reference: Runs, other: Runs) -> tuple[list[float], float, Controls | None]:
        """Run by run, as `prediction_interval` takes them; where nothing is shared, to the next seed."""
        values = list(other.values) if self.shared else [*other.values[1:], *other.values[:1]]
        ratios = [value / of_reference for value, of_reference in zip(values, reference.values, strict=True)]
        controls = controls_of_ratio(reference.controls, other.controls, shared=self.shared)
        return ratios, hypot(reference.sampling_sd, other.sampling_sd, self.own_sd), controls


def _shared_variance(reference: Sequence[float], other: Sequence[float]) -> float:
    if len(reference) < 2:
        return 0.0
    one, two = ([_core.natural_log(value) for value in values] for values in (reference, other))
    of_differences = standard_deviation([b - a for a, b in zip(one, two, strict=True)])
    both = standard_deviation(one) ** 2 + standard_deviation(two) ** 2
    return 1.0 - of_differences**2 / both if both > 0.0 else 0.0


def sd_on_one_day(one: Prediction, again: Prediction) -> float:
    """Standard deviation of the logarithm of a run's time among runs on the same machine and day.

    again : the same prediction as `one` with another `repeat`; of any number of runs, the first of which are compared
    """
    pairs = list(zip(one.run_list, again.run_list, strict=False))
    squares = [_core.natural_log(a.time_s / b.time_s) ** 2 for a, b in pairs if min(a.time_s, b.time_s) > 0.0]
    return sqrt(fsum(squares) / 2.0 / len(squares)) if squares else 0.0


def _comparable(one: Prediction, other: Prediction) -> tuple[Conditions, Conditions]:
    """The conditions of both; raises InputError if a ratio of the two would mean nothing."""
    for prediction in (one, other):
        of_type(prediction, "a prediction to compare", Prediction, "what lepaute.predict() returned")
    if one.conditions is None or other.conditions is None:
        raise InputError("a prediction that was not made by predict() here has no conditions to compare")
    if type(one.application) is not type(other.application):
        raise InputError(
            f"the applications are {one.application.title} and {other.application.title}; compare one with itself"
        )
    layers = (
        f"all but {', '.join(off)}" if (off := conditions.layers.off) else "all"
        for conditions in (one.conditions, other.conditions)
    )
    for what, a, b in (
        ("runs", len(one.run_list), len(other.run_list)),
        ("first seed", one.seed, other.seed),
        ("layers", *layers),
        ("state", one.state, other.state),
    ):
        if a != b:
            raise InputError(
                f"the predictions differ in {what}, {a} and {b}: predict both with the same, or nothing cancels"
            )
    if min(run.time_s for both in (one, other) for run in both.run_list) <= 0.0:
        raise InputError("a predicted time is 0 s, and nothing is a multiple of it; predict a larger problem")
    return one.conditions, other.conditions


def _runs_differ(conditions: Conditions) -> bool:
    """Whether two runs on the same machine and day differ."""
    days, slow = conditions.platform.days, conditions.platform.slow_state
    of_days = conditions.layers.days and days is not None and bool(days.run_relative_sd)
    return conditions.layers.noise or of_days or (conditions.state == "any" and slow is not None)


def share_errors(one: Platform, other: Platform, *applications: Application) -> bool:
    """Whether the same draws mean the same errors on both: one set of kernels, fitted or guessed once, and one layer of
    days, or variants of such; applications : what runs on either."""
    same = one is other or any(
        (_fitted_together(*pair) or _guessed_alike(*pair))
        and pair[0].days == pair[1].days
        and drawn_alike(pair[0].population, pair[1].population)
        for pair in ((one, other), (one.models, other.models))
    )
    threads = {application.threads_per_rank for application in applications}
    return same and (len(threads) == 1 or not any(application.on().kernels.modelled for application in applications))


def _fitted_together(one: Platform, other: Platform) -> bool:
    """Whether the kernels of both are the same, or were before their speeds were changed."""
    return one.kernels == other.kernels or one.models.kernels == other.models.kernels


def _guessed_alike(one: Platform, other: Platform) -> bool:
    """Whether the kernels of both are the same guesses at two speeds: nothing was measured, the same kernel lends each
    its form, and what is assumed of each has the same error.

    Not where the speed itself is guessed, as a share of two nominal peaks: that share differs from core to core.
    """
    if not (one.assumed and other.assumed) or one.archive_id is not None or other.archive_id is not None:
        return False
    if any("of the nominal peak" in (each.source or "") for each in one.assumed):
        return False
    errors_of_one, errors_of_other = (  # of each kernel, what decides its errors
        [
            (
                *(model.kernel, model.threads, model.discrepancy_relative_sd),
                *(piece.discrepancy_relative_sd for piece in model.pieces),
            )
            for model in platform.kernels
        ]
        for platform in (one, other)
    )
    return errors_of_one == errors_of_other


def _run_relative_sd(one: Platform, other: Platform) -> float:
    """Standard deviation of the ratio of times on two machines that are guessed alike, by what differs between them
    whatever was guessed: the effect of the day, which the same draw gives both. 0 if it is one machine."""
    if _fitted_together(one, other):
        return 0.0
    return hypot(*(0.0 if each.days is None else each.days.common_relative_sd for each in (one, other)))


def _enough(middle: float, ratios: Sequence[float], common_sd: float, controls: Controls | None) -> int | None:
    """`Difference.enough`, of ratios about another middle."""
    if len(ratios) < 2:
        return None
    left = adjusted([_core.natural_log(ratio) for ratio in ratios], controls)
    degrees = len(ratios) - 1
    sd = standard_deviation(left.logs) * sqrt(degrees / (degrees - left.estimated))
    known_sd = hypot(sqrt(left.variance), common_sd)
    return runs_that_tell(_core.natural_log(middle), sd, known_sd, len(ratios) + 1, left.estimated)
