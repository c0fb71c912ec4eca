"""The ratio of two predictions, with an interval of its own: what they share cancels.

Run i of both has the same seed, so that it sees the same machine on the same day: coefficients, discrepancies, days and
the state of the network are the same draws where both have the same models, of each cpu, kernel and class of links.
Draws of single runs (the noise of calls and messages, the effect of a run on all CPUs) are others in each, as they are
between two real runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, hypot, isnan, sqrt
from typing import Any

from lepaute.errors import InputError
from lepaute.kit.notebook import facts_html
from lepaute.kit.numbers import none_if_nan, of_type
from lepaute.kit.text import percent, two_digits
from lepaute.platform.schema import Platform
from lepaute.simulate.application import Application
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.machine.population import drawn_alike
from lepaute.simulate.prediction.prediction import Prediction
from lepaute.stats.control_variates import Controls, adjusted, controls_of_ratio
from lepaute.stats.intervals import median_of_runs, prediction_interval, standard_deviation
from lepaute.stats.student import student_quantile

#: Runs that are advised where more would narrow an interval, and how much they would have to.
USUAL_RUNS, WORTH_NARROWING = 30, 0.1
_NORMAL_975 = 1.959963984540054


@dataclass(frozen=True, slots=True, repr=False)
class Difference:
    """How many times as long one application takes as another.

    ratio     : geometric mean over the runs of time / time of the reference
    low, high : 95 % prediction interval of that ratio for one further pair of runs, both on one machine and one day;
                NaN for one run, which JSON has as null
    shared    : whether errors of the models cancel; not where the two have other kernels or days: then each ratio is of
                two machines that have nothing to do with each other
    run_noise : whether the interval holds what differs between two runs of one day
    narrower  : what would make the interval narrower, in words
    """

    ratio: float
    low: float
    high: float
    shared: bool
    run_noise: bool
    narrower: str = ""

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
        return excludes_one(self.low, self.high)

    @property
    def text(self) -> str:
        """In words: 1.031 (95 %: 1.012 to 1.050), 3.1 % slower."""
        change = 100.0 * (self.ratio - 1.0)
        how = f"{two_digits(abs(change))} % {'slower' if change > 0 else 'faster'}" if change else "equally fast"
        if isnan(self.low):
            return f"{_decimal(self.ratio)} (one run: no interval), {how}"
        if self.low == self.high == 1.0:
            return "1.000, no difference"
        if not self.is_told_apart:
            how = f"cannot be told apart{f' ({self.narrower})' if self.narrower else ''}"
        return f"{_decimal(self.ratio)} (95 %: {_decimal(self.low)} to {_decimal(self.high)}), {how}"

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of a prediction."""
        return {
            "ratio": {"mean": self.ratio, "low": none_if_nan(self.low), "high": none_if_nan(self.high)},
            "shared_errors": self.shared,
            "run_noise": self.run_noise,
        }


def excludes_one(low: float | None, high: float | None) -> bool:
    """Whether 1 is outside the interval of a ratio; False without one."""
    return low is not None and high is not None and (low > 1.0 or high < 1.0)


def difference(reference: Prediction, other: Prediction, *, one_machine: bool = False) -> Difference:
    """How many times as long `other` takes as `reference`, with an interval in which what they share has cancelled.

    Parameters
    ----------
    reference, other : of the same application, runs, seeds and layers, and of another `repeat` each, so that their
        noise differs: predict(..., repeat=1)
    one_machine : whether the platforms are variants of one, whose models have the same errors though their
        coefficients differ (platform.cpu_factors); else that is so only where the models are the same

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
    >>> found = lp.difference(lp.predict(small, "dahu", runs=5), lp.predict(large, "dahu", runs=5, repeat=1))
    >>> found.low < found.ratio < found.high
    True
    """
    before, after = _comparable(reference, other)
    shared = one_machine or share_errors(before.platform, after.platform, reference.application, other.application)
    run_noise = _runs_differ(before) or _runs_differ(after)
    times_s = [run.time_s for run in other.run_list]
    if not shared:  # the next seed: nothing in common
        times_s = [*times_s[1:], *times_s[:1]]
    elif run_noise and before.repeat == after.repeat:
        raise InputError(
            f"both predictions are run {before.repeat} of each day, with the same noise, and two real runs are not; "
            "predict one of them with repeat=1"
        )
    own_sd = 0.0  # on one machine the day is the same, also where its coefficients are others
    if shared and not one_machine and before.layers.days:
        own_sd = own_relative_sd(before.platform, after.platform)
    ratios = [time_s / run.time_s for time_s, run in zip(times_s, reference.run_list, strict=True)]
    assumed = not one_machine and bool(before.platform.assumed or after.platform.assumed)
    controls = controls_of_ratio(reference.controls, other.controls, shared=shared)
    common_sd = hypot(reference.sampling_sd, other.sampling_sd, own_sd)
    return Difference(
        median_of_runs(ratios, controls),
        *prediction_interval(ratios, common_sd, controls).ends,
        shared,
        run_noise,
        what_narrows(ratios, common_sd, controls, assumed=assumed),
    )


def may_be_as_fast(best: Prediction, other: Prediction) -> bool:
    """Whether two predictions of one sweep may be the other way round.

    Runs of equal seeds are of one machine on one day: 1 is inside the 95 % interval of the ratios of their speeds,
    which holds errors of models that the two do not share, noise, and the error of sampling. True for a single run.
    """
    return not excludes_one(*_ends_of_speeds(best, other))


def is_certainly_faster(one: Prediction, other: Prediction) -> bool:
    """Whether the 95 % interval of the ratio of their speeds, as above, is above 1 as a whole; False for one run."""
    low, _ = _ends_of_speeds(other, one)
    return low is not None and low > 1.0


def _ends_of_speeds(reference: Prediction, other: Prediction) -> tuple[float | None, float | None]:
    """The 95 % interval of speed / speed of the reference, run by run; None where there is none.

    A speed is the rate, or what is in the place of one.
    """
    if min(run.time_s for both in (reference, other) for run in both.run_list) <= 0.0:
        return None, None
    speeds, of_reference = (
        [1.0 / run.time_s if run.rate is None else run.rate for run in both.run_list] for both in (other, reference)
    )
    ratios = [speed / reference_speed for speed, reference_speed in zip(speeds, of_reference, strict=True)]
    sampling_sd = hypot(reference.sampling_sd, other.sampling_sd)
    return prediction_interval(ratios, sampling_sd, controls_of_ratio(reference.controls, other.controls))


def sd_on_one_day(one: Prediction, again: Prediction) -> float:
    """Standard deviation of the logarithm of a run's time among runs on the same machine and day.

    again : the same prediction as `one` with another `repeat`; of any number of runs, the first of which are compared
    """
    from lepaute import _core

    pairs = list(zip(one.run_list, again.run_list, strict=False))
    squares = [_core.natural_log(a.time_s / b.time_s) ** 2 for a, b in pairs if min(a.time_s, b.time_s) > 0.0]
    return sqrt(fsum(squares) / 2.0 / len(squares)) if squares else 0.0


def _decimal(ratio: float) -> str:
    return f"{ratio:.3f}" if 0.1 <= ratio < 10.0 else f"{ratio:.4g}"


def _comparable(one: Prediction, other: Prediction) -> tuple[Conditions, Conditions]:
    """The conditions of both; raises InputError where a ratio of the two would mean nothing."""
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
    days = conditions.platform.days
    return conditions.layers.noise or (conditions.layers.days and days is not None and bool(days.run_relative_sd))


def share_errors(one: Platform, other: Platform, *applications: Application) -> bool:
    """Whether the same draws mean the same errors on both: one set of kernels, fitted or guessed once, and one layer of
    days; applications : what runs on either."""
    same = one is other or (
        (one.kernels == other.kernels or guessed_alike(one, other))
        and one.days == other.days
        and drawn_alike(one.population, other.population)
    )
    threads = {each.threads_per_rank for each in applications}
    return same and (len(threads) == 1 or not any(each.kernel_models for each in applications))


def guessed_alike(one: Platform, other: Platform) -> bool:
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


def own_relative_sd(one: Platform, other: Platform) -> float:
    """Standard deviation of the ratio of times on two machines that are guessed alike, by what differs between them
    whatever was guessed: the effect of the day, which the same draw gives both. 0 where it is one machine."""
    if one.kernels == other.kernels:
        return 0.0
    return hypot(*(0.0 if each.days is None else each.days.common_relative_sd for each in (one, other)))


def what_narrows(
    ratios: Sequence[float], common_sd: float = 0.0, controls: Controls | None = None, *, assumed: bool
) -> str:
    """What makes the interval of a difference narrower, in words; empty where nothing known.

    ratios, common_sd, controls : as `prediction_interval` takes them: more runs narrow what these leave
    assumed : whether the platforms rest on what was not measured
    """
    words = []
    if 1 < len(ratios) < USUAL_RUNS:
        less = _narrowed(ratios, common_sd, controls)
        if less >= WORTH_NARROWING:
            words.append(f"--runs {USUAL_RUNS} would narrow this by {percent(less)}")
    if assumed:
        words.append("a calibration instead of what is assumed would narrow it" + (" further" if words else ""))
    return "; ".join(words)


def _narrowed(ratios: Sequence[float], common_sd: float, controls: Controls | None) -> float:
    """The share by which the usual runs would narrow the interval, if all spreads are what they seem."""
    from lepaute import _core

    count = len(ratios)
    left = adjusted([_core.natural_log(ratio) for ratio in ratios], controls)
    variance = standard_deviation(left.logs) ** 2 * (count - 1) / (count - 1 - left.estimated)
    known = _NORMAL_975**2 * (left.variance + common_sd**2)

    def reach(runs: int) -> float:
        own = student_quantile(0.975, runs - 1 - left.estimated) ** 2 * (1.0 + left.widening * count / runs)
        return sqrt(own * variance + known)

    before = reach(count)
    return 1.0 - reach(USUAL_RUNS) / before if before > 0.0 else 0.0
