"""Tests of factors as text: a table, and a sentence on each."""

import math
from collections.abc import Sequence

from lepaute.fit.observations.factors import ANY_KERNEL, DURATION, SIGNIFICANT, FactorTest
from lepaute.kit.tables import text_table
from lepaute.kit.text import three_digits

#: From this ratio on a sentence says times as much, not per cent more.
MANIFOLD = 2.0


def factor_table(tests: Sequence[FactorTest]) -> str:
    """The tests as lines of text, and a sentence on each that finds something."""
    what = {test.column for test in tests}
    header = (
        "factor",
        "kernel",
        "level",
        "time" if what <= {DURATION} else ", ".join(sorted(what)),
        "95 % interval",
        "p",
        "p (Holm)",
        "exchanged",
    )
    lines: list[tuple[str, ...]] = []
    for test in tests:
        test_cells = (f"{test.p_value:.2g}", f"{test.p_holm:.2g}", f"{test.n} {test.exchanged} in {test.strata} strata")
        for number, effect in enumerate(test.effects):
            interval = (
                "-" if effect.low is None or effect.high is None else f"{_sign(effect.low)} to {_sign(effect.high)}"
            )
            names = (test.factor, test.kernel) if number == 0 else ("", "")
            lines.append(
                (*names, effect.level, _sign(effect.ratio), interval, *(test_cells if number == 0 else ("",) * 3))
            )
    return "\n".join([*([text_table(header, lines, left=None)] if lines else []), *map(sentence, tests)])


def sentence(test: FactorTest) -> str:
    """What a test says, in words."""
    if test.note:
        return f"{test.factor} of {test.kernel}: {test.note}"
    if not test.matters:
        on = "" if test.column == DURATION else f" on {test.column}"
        return f"{test.kernel}: no significant effect of {test.factor}{on} (p = {test.p_holm:.2g}){_though(test)}"
    largest = max(test.effects, key=lambda effect: abs(math.log(effect.ratio)))
    subject, more, less, high = f"{test.kernel} takes", "more time", "less time", "long"
    if test.column != DURATION:
        of = "" if test.kernel == ANY_KERNEL else f" of {test.kernel}"
        subject, more, less, high = f"{test.column}{of} is", "higher", "lower", "high"
    if largest.ratio >= MANIFOLD:
        how, than = f"{three_digits(largest.ratio)} times as {high}", "as"
    else:
        how, than = f"{100 * abs(largest.ratio - 1):.1f} % {more if largest.ratio > 1 else less}", "than"
    return (
        f"{subject} {how} with {test.factor}={largest.level} {than} with {test.factor}={test.reference} "
        f"(p = {test.p_holm:.2g}, {'all ' if test.exact else ''}{test.permutations} permutations)"
    )


def _though(test: FactorTest) -> str:
    """The ranks, of which p is, see no effect that goes either way; the mean, of which the interval is, may."""
    clear = [e for e in test.effects if e.low is not None and e.high is not None and not e.low <= 1.0 <= e.high]
    if test.p_value <= SIGNIFICANT or not clear:
        return ""
    return (
        f"; {clear[0].level} differs in the mean, not in the ranks: it may matter for some sizes only, "
        "or a few values are far off"
    )


def _sign(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
