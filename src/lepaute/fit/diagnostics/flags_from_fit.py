"""Flags of what the fit has tested itself: factors besides the sizes, and how successive calls depend on each other.

Both are optional parts of what is judged; a platform has neither.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from lepaute.fit.diagnostics.flag import LEAST_SHARE, SERIOUS_SHARE, Flag, Limits, Severity
from lepaute.fit.diagnostics.number_text import percent

#: Of durations between two levels: a content that changes them by a sixth makes a model of the other one useless.
FACTOR = Limits(0.03, 0.15)


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
        severity = _severity(size, FACTOR, shares.get(test.kernel, 1.0))
        if severity is None:
            continue
        way = "longer" if worst.ratio > 1 else "shorter"
        flags.append(
            Flag(
                f"kernel {test.kernel}",
                "factor",
                severity,
                float(test.statistic),
                float(test.p_holm),
                size,
                f"Durations depend on {test.factor}: with {worst.level} calls take {percent(size)} {way} than with "
                f"{test.reference}. The model holds for one level: measure with that of the application.",
            )
        )
    return flags


def dependence_flags(reports: "Iterable[Any] | None", shares: Mapping[str, float]) -> list[Flag]:
    """A flag for every kernel whose sums of calls scatter more than the platform's layers say."""
    flags = []
    for report in reports or ():
        if report.is_limit and shares.get(report.kernel, 1.0) >= LEAST_SHARE:
            size = report.width / max(report.width_modelled, 1e-12) - 1.0
            sentence = str(report.sentence).removeprefix(f"{report.kernel}: ")
            text = sentence[:1].upper() + sentence[1:]
            flags.append(
                Flag(f"kernel {report.kernel}", "dependence", "notable", float(report.width), None, size, text)
            )
    return flags


def _severity(size: float, limits: Limits, share: float) -> Severity | None:
    if size < limits.notable or share < LEAST_SHARE:
        return None
    return "serious" if size >= limits.serious and share >= SERIOUS_SHARE else "notable"
