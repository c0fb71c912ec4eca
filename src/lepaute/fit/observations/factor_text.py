"""Tests of factors for people: a table, and a sentence on each."""

import math
from collections.abc import Sequence

from lepaute.fit.observations.factors import FactorTest
from lepaute.kit.tables import text_table


def factor_table(tests: Sequence[FactorTest]) -> str:
    """The tests as lines of text, and a sentence on each that finds something."""
    header = ("factor", "kernel", "level", "time", "95 % interval", "p", "p (Holm)", "exchanged")
    lines: list[tuple[str, ...]] = []
    for test in tests:
        told = (f"{test.p_value:.2g}", f"{test.p_holm:.2g}", f"{test.n} {test.exchanged} in {test.strata} strata")
        for number, effect in enumerate(test.effects):
            interval = (
                "-" if effect.low is None or effect.high is None else f"{_sign(effect.low)} to {_sign(effect.high)}"
            )
            names = (test.factor, test.kernel) if number == 0 else ("", "")
            lines.append((*names, effect.level, _sign(effect.ratio), interval, *(told if number == 0 else ("",) * 3)))
    return "\n".join([*([text_table(header, lines, left=None)] if lines else []), *map(sentence, tests)])


def sentence(test: FactorTest) -> str:
    """What a test says, in words."""
    what = f"{test.factor} of {test.kernel}"
    if test.note:
        return f"{what}: {test.note}"
    if not test.matters:
        return f"{what}: no effect seen (p = {test.p_holm:.2g})"
    largest = max(test.effects, key=lambda effect: abs(math.log(effect.ratio)))
    return (
        f"{what} matters: {largest.level} takes {_sign(largest.ratio)} against {test.reference} "
        f"(p = {test.p_holm:.2g}, {'all' if test.exact else ''} {test.permutations} permutations)".replace("  ", " ")
    )


def _sign(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
