"""The diagnostics, one row each, with what they say; and the flag that a check becomes when something is wrong.

A flag wants two things. The check must be significant: with many tests in one fit (eight a subject), p-values are
adjusted by Holm's method, so that a calibration of which all is well gets any flag from a test in at most ALPHA of all
cases (Holm, Scandinavian Journal of Statistics 6, 1979: no assumption on how the tests depend on each other). And its
size must matter: with 10^4 calls everything is significant. The least sizes stand in KINDS; they were set by what a
prediction would be off by, before any calibration was looked at.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lepaute.errors import FitError
from lepaute.kit.text import p_text, percent
from lepaute.stats.multiple_tests import holm

#: Chance that a calibration of which all is well gets a flag from any test.
ALPHA = 0.01
#: Shares of the time of all kernels: below, nothing of a kernel is serious; below the second, nothing is worth a flag.
SERIOUS_SHARE, MIN_SHARE = 0.01, 0.001
#: Below 60 calls a mean is known to no better than some per cent; below 20 a kernel is a constant.
FEW_CALLS, TOO_FEW_CALLS = 60, 20

Severity = Literal["serious", "notable"]
SEVERITIES: tuple[Severity, ...] = ("serious", "notable")


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes from which on an effect is notable, and serious."""

    notable: float
    serious: float


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """title: on the page; limits; measure: what their sizes are of; graded: whether these are shares, to be listed.

    wrong, fine : the sentence where it is flagged (what is wrong), and where it is not; facts of a check are filled in
    remedy      : what it means and what to do, the same for all subjects; it ends the sentence of a flag
    several     : what is wrong, of several subjects at once
    """

    title: str
    limits: Limits
    measure: str
    wrong: str = ""
    fine: str = ""
    remedy: str = ""
    several: str = ""
    graded: bool = True

    def told(self, wrong: str) -> str:
        """The sentence of a flag, of what is wrong with its facts filled in."""
        if not self.remedy:
            return wrong
        return f"{wrong}{'. ' if self.remedy[0].isupper() else ': '}{self.remedy}"


#: 3 % is more than blocks of fresh processes differ by on a quiet machine; 10 % decides what a prediction says.
CHANGE = Limits(0.03, 0.10)
#: Between the slowest and the fastest: half of it is what the mean over places is off by on each.
PLACES = Limits(0.05, 0.20)
_PLACE = (
    "{slow} takes {by} longer than {fast}, beyond what the model says of each",
    "The {count} {what} take the same time: the slowest {by} longer than the fastest.",
    "look at its clock rate, its cooling and what else runs there; if it persists, give it a model of its own.",
)
_SCATTER = "Single calls are {by} off the model on average (R² = {squared:.3f})"
_OUTLIERS = "{count} of {calls} calls took far longer than others of their size, {by} of all time"
_AGAIN = "Find out what happened then (cron, another user, a changed clock rate), and measure again."

#: All diagnostics, in the order of the page.
KINDS: Mapping[str, Diagnostic] = {
    # A mean that is off by 5 % over part of the sizes moves a prediction by up to as much; 20 % is no model any more.
    "size": Diagnostic(
        "against size",
        Limits(0.05, 0.20),
        "error of the mean of a class of size",
        "Calls of {sizes} take {by} than the model says, beside the others",
        "The mean is right at all sizes that matter: calls of {sizes}, the class with the largest error, take {by}.",
        "its shape is wrong there; measure more sizes around them, or let the model have another piece.",
        "Calls of some sizes take longer or shorter than the model says, beside the others",
    ),
    # An interval of twice or half its width is worth a word; where the mean is right, predictions hardly change.
    "spread": Diagnostic(
        "heteroscedasticity",
        Limits(1.0, 4.0),
        "scatter of a class over the modelled one, less 1",
        "Calls of {sizes} scatter {factor:.2g} times as much as the model of the noise says, beside the others "
        "(heteroscedasticity)",
        "The scatter of single calls changes with size as the model says, within a factor of {within:.2g}.",
        "the noise of single calls is wrong there; means are not touched. Give the noise more terms, or measure more "
        "calls of these sizes.",
        "Calls of some sizes scatter more or less than the model of the noise says, beside the others "
        "(heteroscedasticity)",
    ),
    # Sums of many calls scatter more by root((1 + rho) / (1 - rho)): by half as much again at 0.4, by twice at 0.6.
    "autocorrelation": Diagnostic(
        "autocorrelation",
        Limits(0.4, 0.7),
        "rank correlation of successive calls",
        "Successive calls are correlated ({rho:.2f}): sums of many scatter {factor:.2g} times as much as if each were "
        "drawn for itself, as simulations do, so that intervals come out too narrow",
        "Successive calls are hardly correlated ({rho:.2f}).",
        "Measure in more blocks, whose spread covers part of it.",
        "Successive calls are correlated: sums of many scatter more than if each were drawn for itself, as simulations "
        "do, so that intervals come out too narrow",
    ),
    "drift": Diagnostic(
        "drift",
        CHANGE,
        "change from beginning to end",
        "Drift: calls took {by} at the end than at the beginning",
        "No drift: calls took {by} at the end than at the beginning.",
        "The machine was warming up or slowing down; let it run warm first, and measure again.",
        "Drift: calls took longer or shorter at the end than at the beginning",
    ),
    "step": Diagnostic(
        "step in time",
        CHANGE,
        "change of level",
        "The level changed during the measurement: calls took {what}",
        "A small change of level during the measurement: calls took {what}.",
        _AGAIN,
        "The level changed during the measurement",
    ),
    "perturbation": Diagnostic(
        "change inside a process",
        CHANGE,
        "change of level",
        "The level changed inside a process: calls took {what}",
        "A small change of level inside a process: calls took {what}.",
        _AGAIN,
        "The level changed inside a process",
    ),
    "sentinels": Diagnostic(
        "sentinels",
        CHANGE,
        "change of the machine's speed",
        "By the sentinels: {what}",
        "By the sentinels: {what}.",
        "The models hold for its mean; days.drift of the platform is what to expect later.",
        "By the sentinels, the speed of the machine changed",
    ),
    "episode": Diagnostic(
        "slow state",
        Limits(0.10, math.inf),
        "change of level meanwhile",
        "The machine was slow for a while: calls took {by} ({what})",
        "The machine was hardly slower for a while: calls took {by} ({what}).",
        "The models are of the rest; how often and how long it is slow is the layer slow_state of the platform.",
        "The machine was slow for a while",
    ),
    "cores": Diagnostic("cores", PLACES, "slowest over fastest, less 1", *_PLACE, "One core takes longer than another"),
    "hosts": Diagnostic("hosts", PLACES, "slowest over fastest, less 1", *_PLACE, "One host takes longer than another"),
    # Share of the time that interruptions took: of 2 %, a prediction is off by up to as much if they came by accident.
    "outliers": Diagnostic(
        "outliers",
        Limits(0.02, 0.10),
        "share of the time; of messages, of the calls",
        _OUTLIERS,
        f"{_OUTLIERS}.",
        "the machine was interrupted. Close other programs and measure again; if it is always so, it is part of the "
        "model.",
        "Part of the time went to calls that took far longer than others of their size",
    ),
    # The mean over all calls; a fit has it right by construction, another day's platform need not.
    "level": Diagnostic(
        "level",
        Limits(0.03, 0.10),
        "error of the sum of all calls",
        "All calls together take {by} than the model says",
        "All calls together take what the model says: {by}.",
        "a few sizes or interruptions decide the sum, or the model is of other calls; compare the pictures against "
        "size and time.",
        "All calls together take longer or shorter than the model says",
    ),
    "goodness": Diagnostic(
        "goodness",
        Limits(0.5, 2.0),
        "mean relative error of a call",
        _SCATTER,
        f"{_SCATTER}.",
        "rely on it for sums of many calls, not for single ones; something other than size matters: alignment, cache "
        "contents, the state of the library.",
        "Single calls are far off the model",
    ),
    "calls": Diagnostic(
        "number of calls",
        Limits(1.0, 3.0),
        f"fewer than {FEW_CALLS}; fewer than {TOO_FEW_CALLS}",
        "Only {count} calls were measured",
        "{count} calls were measured.",
        f"the model is little more than their mean; measure at least {FEW_CALLS}.",
        "Few calls were measured",
        graded=False,
    ),
    "sizes": Diagnostic(
        "sizes",
        Limits(1.0, 2.0),
        "two sizes; a single one",
        "Calls of only {count} were measured",
        "{count} were measured.",
        "the model does not cover others; measure more sizes, or use it for these only.",
        "Calls of only one or two sizes were measured",
        graded=False,
    ),
    # Equal durations among calls that should scatter: copied numbers, or a clock that does not tick.
    "constant": Diagnostic(
        "equal durations",
        Limits(1.0, 1.0),
        "all durations are equal",
        "All {calls} durations are exactly {first}",
        "{count} different durations were measured.",
        "these are not measurements, or the clock is too coarse; do not use this model.",
        "All durations are equal",
        graded=False,
    ),
    "clock": Diagnostic(
        "clock",
        Limits(0.2, 1.0),
        "resolution over the typical duration",
        "The typical duration is {usual}, the clock resolves {step}, and {zero} of the calls are no longer than "
        "reading it takes",
        "The clock resolves {step}, calls take {usual}.",
        "time several calls at once.",
        "The clock is coarse beside the durations",
    ),
    # Of durations between two levels: a content that changes them by a sixth makes a model of the other one useless.
    "factor": Diagnostic(
        "factors besides sizes",
        Limits(0.03, 0.15),
        "difference between two levels",
        "Durations depend on {factor}: with {level} calls take {by} than with {reference}",
        remedy="The model holds for one level: measure with that of the application.",
        several="Durations depend on something besides sizes",
    ),
    "dependence": Diagnostic(
        "dependence of calls",
        Limits(0.0, math.inf),
        "sums of calls scatter by a quarter more than the platform says",
        "{what}",
        several="Sums of successive calls scatter more than the platform makes them, a limit of the model: intervals "
        "of what such sums decide come out too narrow",
        graded=False,
    ),
    "no model": Diagnostic(
        "no model",
        Limits(1.0, 1.0),
        "no model",
        "{name} was called {calls} times and has no model",
        remedy="simulations assume that it costs nothing. Its durations are zero once the clock's cost is off, or it "
        "never had work to do; measure longer calls.",
        several="Kernels were called and have no model",
        graded=False,
    ),
}


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one diagnostic of one subject.

    kind      : of KINDS
    size      : of the effect, >= 0, in the unit of `limits`; 0 if there is none
    statistic : of the test, or the size again where there is nothing to test
    p_value   : before any adjustment; None for facts, which are no matter of chance (all durations are equal)
    wrong     : a sentence for when it is flagged: what is wrong, and what to do
    fine      : a sentence for when it is not
    able      : False if it was not testable; `fine` then says why
    """

    kind: str
    size: float
    statistic: float
    p_value: float | None
    limits: Limits
    wrong: str
    fine: str
    able: bool = True


@dataclass(frozen=True, slots=True)
class Flag:
    """Something is wrong with a model or with what it was fitted to.

    subject   : "kernel dgemm", "message pingpong local", "host here", "calibration"
    statistic : of the test; p_value: adjusted for all tests of the fit, None if there was nothing to test
    size      : of the effect, in the unit of the sentence
    """

    subject: str
    kind: str
    severity: Severity
    statistic: float
    p_value: float | None
    size: float
    sentence: str

    @property
    def wrong(self) -> str:
        """The sentence without what it means and what to do, which is the same for all flags of the kind."""
        remedy = KINDS[self.kind].remedy
        return self.sentence[: -len(remedy) - 2] if remedy and self.sentence.endswith(remedy) else self.sentence


def checked(
    kind: str, size: float, statistic: float, p_value: float | None, *, limits: Limits | None = None, **facts: Any
) -> Check:
    """A check with the sentences of its kind; limits: other ones than those of the kind."""
    about = KINDS[kind]
    return Check(
        kind,
        size,
        statistic,
        p_value,
        about.limits if limits is None else limits,
        about.told(about.wrong.format_map(facts)),
        about.fine.format_map(facts),
    )


def nothing(kind: str, fine: str, p_value: float | None = None) -> Check:
    """A check without any effect."""
    return Check(kind, 0.0, 0.0, p_value, KINDS[kind].limits, "", fine)


def unable(kind: str, why: str) -> Check:
    """A check that could not be made."""
    return Check(kind, 0.0, 0.0, None, KINDS[kind].limits, "", why, able=False)


def longer(relative: float) -> str:
    """A relative difference of durations in words: "12.0 % longer"."""
    return f"{percent(abs(relative))} {'longer' if relative > 0 else 'shorter'}"


def chance(probability: float | None) -> str:
    """A p-value as text; "" if there is none."""
    if probability is None or math.isnan(probability):
        return ""
    return p_text(probability)


def flags_of(subjects: Sequence[tuple[str, float, Sequence[Check]]], alpha: float = ALPHA) -> list[Flag]:
    """The flags of the checks of all subjects: the serious ones first, then in the order of the subjects.

    subjects : name, share of the time of all kernels (1 where that says nothing), checks
    alpha    : chance of any flag from a test where all is well
    Raises FitError for a chance outside (0, 1).
    """
    if not 0 < alpha < 1:
        raise FitError(f"the chance of a false alarm is {alpha!r}; give one in (0, 1)")
    adjusted = iter(holm([check.p_value for _, _, checks in subjects for check in checks if check.p_value is not None]))
    flags = []
    for name, share, checks in subjects:
        for check in checks:
            p_value = None if check.p_value is None else next(adjusted)
            severity = _severity(check.size, check.limits, share) if check.able else None
            if severity is not None and (p_value is None or p_value <= alpha):
                flags.append(Flag(name, check.kind, severity, check.statistic, p_value, check.size, check.wrong))
    return sorted(flags, key=lambda flag: SEVERITIES.index(flag.severity))


def factor_flags(tests: "Iterable[Any] | None", shares: Mapping[str, float], alpha: float) -> list[Flag]:
    """A flag for every factor that matters; `tests` as the fit's `factor_tests`, p-values corrected among themselves.

    shares : of the time of all kernels, by name of the kernel
    """
    flags = []
    for test in tests or ():
        if not test.matters or test.p_holm > alpha or not test.effects:
            continue
        worst = max(test.effects, key=lambda effect: abs(math.log(effect.ratio)))
        size = abs(worst.ratio - 1.0)
        severity = _severity(size, KINDS["factor"].limits, shares.get(test.kernel, 1.0))
        if severity is not None:
            by = longer(worst.ratio - 1.0)
            about = KINDS["factor"]
            text = about.told(
                about.wrong.format(factor=test.factor, level=worst.level, by=by, reference=test.reference)
            )
            p_value = float(test.p_holm)
            flags.append(Flag(f"kernel {test.kernel}", "factor", severity, float(test.statistic), p_value, size, text))
    return flags


def dependence_flags(reports: "Iterable[Any] | None", shares: Mapping[str, float]) -> list[Flag]:
    """A flag for every kernel whose sums of calls scatter more than the platform's layers say."""
    flags = []
    for report in reports or ():
        if report.is_limit and shares.get(report.kernel, 1.0) >= MIN_SHARE:
            size = report.width / max(report.width_modelled, 1e-12) - 1.0
            text = str(report.sentence).removeprefix(f"{report.kernel}: ")
            text = text[:1].upper() + text[1:]
            flags.append(
                Flag(f"kernel {report.kernel}", "dependence", "notable", float(report.width), None, size, text)
            )
    return flags


def _severity(size: float, limits: Limits, share: float) -> Severity | None:
    """What the size of an effect amounts to in a subject with this share of the time; None: nothing."""
    if size < limits.notable or share < MIN_SHARE:
        return None
    return "serious" if size >= limits.serious and share >= SERIOUS_SHARE else "notable"
