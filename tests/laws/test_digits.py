"""Figures that people read: as many digits as the interval gives, no answer that is none, one unit in a column."""

import re

import pytest
from effects.lines import all_lines
from hostile.cases import BASES, Case, _words, commands
from long_tests import long_but

_NUMBER = r"[+-]?(?:\d[\d,]*)(?:\.\d+)?(?:e[+-]\d+)?"
#: A value and its interval: 54.9 s (95 %: 53.0 to 57.0 s)
_INTERVAL = re.compile(
    rf"({_NUMBER})(?: (?!to\b)[^\s(]+)? \((?:95 %: )?({_NUMBER})(?! %:)(?: [^\s)]+)?(?: \w+)? to ({_NUMBER})"
)
_FIGURE = re.compile(rf"(?<![\w.=/:-]){_NUMBER}(?![\w/:=-]|\.\w)")
_TIME = re.compile(rf"{_NUMBER} (ns|µs|ms|s|min|h)")
#: Command lines that print coefficients, whose powers of ten are the field's, and others that copy what was measured.
_EXPONENTS = ("platform", "fit", "archive", "segment --objective")
#: At each change; the others in long tests.
QUICK = ("segment", "trace breakdown", "trace compare", "watch test", "platform show")


def decimals(number: str) -> tuple[int, str]:
    mantissa, _, power = number.partition("e")
    return len(mantissa.partition(".")[2]), power


def faults(text: str, *, exponents: bool = False) -> list[str]:
    """What is wrong with the figures of an answer; lines in HPL's own form are its programs'."""
    found = []
    text = "\n".join(line for line in text.splitlines() if not re.match("W[RC][0-9]{2}", line))
    for match in _INTERVAL.finditer(text):
        level = match[1].isdigit() and match[0].startswith(f"{match[1]} (")  # cpu 0, size 64: of which it is
        if not level and len({decimals(number) for number in match.groups()}) > 1:
            found.append(f"value and interval differ in their digits: {match[0]}")
        if not match[1].strip("0.+-") and not match[2].strip("0.+-") and match[3].strip("0.+-"):
            found.append(f"no answer, but a figure: {match[0]}")
    for figure in _FIGURE.findall(text):
        digits = re.sub(r"[^0-9]", "", figure.partition("e")[0]).lstrip("0")
        if "." in figure and len(digits) > 6:
            found.append(f"more than six digits: {figure}")
        if "e" in figure and not exponents:
            found.append(f"an exponent: {figure}")
    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    for above, below in zip(rows, rows[1:], strict=False):
        if len(above) == len(below) > 1:
            for one, other in zip(above, below, strict=True):
                units = [unit[1] if (unit := _TIME.fullmatch(cell)) else "" for cell in (one, other)]
                if all(units) and units[0] != units[1]:
                    found.append(f"two units in a column: {one}, {other}")
    return found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("0.123 s (95 %: 0.1 to 0.2 s)", "value and interval differ"),
        ("0.0 ms (95 %: 0.0 to 3.2 ms)", "no answer"),
        ("it takes 0.00000000000000332123 s or 1.234567 s", "more than six digits"),
        ("3.32e-15 ns", "an exponent"),
        ("bcast  12 µs  a\ngather  1.20 ms  b", "two units"),
        ("54.9 s (95 %: 53.0 to 57.0 s), 1.50 of 2026-11-29 10:12:13.123456\n1.2 ms  3\n1.3 ms  4", ""),
    ],
)
def test_faults_are_seen(text: str, fault: str) -> None:
    seen = faults(text)
    assert any(each.startswith(fault) for each in seen) if fault else not seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", long_but(sorted(BASES), *(name for name in sorted(BASES) if name.startswith(QUICK)))
)
def test_each_figure_has_the_digits_that_are_known(command, server):
    details = any("--details" in parameter.opts for parameter in commands()[command].params)
    more = [{}, {"--details": ""}] if details else [{}]
    cases = [line.case(server.inputs, *added) for line in all_lines() for added in more
             if line.command == command and not line.on_machine]  # fmt: skip
    cases += [Case(command, "", "", _words(command, BASES[command], server.inputs, added)) for added in more]
    found = []
    for case, answer in zip(cases, server.run(cases, "/nowhere"), strict=True):
        words = " ".join(case.words)
        printed = f"{answer['stdout']}\n{answer['stderr']}"
        found += [f"{words}: {fault}" for fault in faults(printed, exponents=words.startswith(_EXPONENTS))]
    assert not found, "\n".join(dict.fromkeys(found))
