"""What a diagnostic says: a check of one subject, and the flag that it becomes when something is wrong.

A flag wants two things. The check must be significant: with many tests in one fit (eight a subject), p-values are
adjusted by Holm's method, so that a calibration of which all is well gets any flag from a test in at most ALPHA of all
cases (Holm, Scandinavian Journal of Statistics 6, 1979: no assumption on how the tests depend on each other). And its
size must matter: with 10^4 calls everything is significant. The least sizes stand with each check, in `limits`; they
were set by what a prediction would be off by, before any calibration was looked at.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lepaute.errors import FitError
from lepaute.stats.multiple_tests import holm

#: Chance that a calibration of which all is well gets a flag from any test.
ALPHA = 0.01
#: Of the time of all kernels: below, nothing of a kernel is serious; below the second, nothing is worth a flag.
SERIOUS_SHARE, LEAST_SHARE = 0.01, 0.001

Severity = Literal["serious", "notable"]
SEVERITIES: tuple[Severity, ...] = ("serious", "notable")


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes from which on an effect is notable, and serious."""

    notable: float
    serious: float


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one diagnostic of one subject.

    kind      : of diagnostic, such as "drift"
    size      : of the effect, >= 0, in the unit of `limits`; 0 where there is none
    statistic : of the test, or the size again where there is nothing to test
    p_value   : before any adjustment; None for facts, which are no matter of chance (all durations are equal)
    wrong     : a sentence for when it is flagged: what is wrong, and what to do
    fine      : a sentence for when it is not
    able      : False where it was not testable; `fine` then says why
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
    statistic : of the test; p_value: adjusted for all tests of the fit, None where there was nothing to test
    size      : of the effect, in the unit of the sentence
    """

    subject: str
    kind: str
    severity: Severity
    statistic: float
    p_value: float | None
    size: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """The flag as a JSON object."""
        return asdict(self)


def unable(kind: str, limits: Limits, why: str) -> Check:
    """A check that could not be made."""
    return Check(kind, 0.0, 0.0, None, limits, "", why, able=False)


def flags_of(subjects: Sequence[tuple[str, float, Sequence[Check]]], alpha: float = ALPHA) -> list[Flag]:
    """The flags of the checks of all subjects: the serious ones first, then in the order of the subjects.

    subjects : name, share of the time of all kernels (1 where that says nothing), checks
    alpha    : chance of any flag from a test where all is well
    Raises FitError for a chance outside (0, 1).
    """
    if not 0 < alpha < 1:
        raise FitError(f"the chance of a false alarm is {alpha!r}; give one in (0, 1)")
    tested = [check.p_value for _, _, checks in subjects for check in checks if check.p_value is not None]
    adjusted = iter(holm(tested))
    flags = []
    for name, share, checks in subjects:
        for check in checks:
            p_value = None if check.p_value is None else next(adjusted)
            severity = severity_of(check, share)
            if severity is not None and (p_value is None or p_value <= alpha):
                flags.append(Flag(name, check.kind, severity, check.statistic, p_value, check.size, check.wrong))
    return sorted(flags, key=lambda flag: SEVERITIES.index(flag.severity))


def severity_of(check: Check, share: float = 1.0) -> Severity | None:
    """What the size of an effect amounts to in a subject with this share of the time; None: nothing."""
    if not check.able or check.size < check.limits.notable or share < LEAST_SHARE:
        return None
    return "serious" if check.size >= check.limits.serious and share >= SERIOUS_SHARE else "notable"
