"""Text for people: durations, sizes and shares as numbers, the order of names, messages that are alike."""

import math
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

#: Units without a prefix of their own that get one.
_SCALED = frozenset({"W", "J", "cells/s"})
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")
_LEVEL = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*(?:([kKmMgGtT])(i?))?[bB]?\s*")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
#: A blank at which no line is broken: between a number and its unit, after a sign, in N = 2000, p = 0.03 or 1 x 2.
_UNBROKEN = re.compile(
    r"(?<=[0-9]) (?=(?:%|[mnµ]?s|min|h|[kMGTP]?(?:i?B|B/s|flop/s|W|J))(?:[\s,;:.)]|$))"
    r"|(?<=[±×]) (?=[0-9])|(?<=\b\w) (?=[=<] [0-9])|(?<=\b\w [=<]) (?=[0-9])"
    r"|(?<=[0-9]) (?=[x×] [0-9])|(?<=[0-9] x) (?=[0-9])"
)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
#: A number that is no part of a name, an option or a setting; a remark with one; sizes that a call had.
_FIGURE = re.compile(r"(?<![\w.=-])[0-9][0-9,]*(\.[0-9]+)?(e[+-]?[0-9]+)?(?![\w-])")
_IN_PARENTHESES = re.compile(r" \((?!--)[^()]*[0-9][^()]*\)")
_OF_SIZES = re.compile(r": [mnk] = [0-9].*$")
#: Names that are listed behind a message that stands for others.
MAX_NAMED = 6
#: Caveats of an answer whose beginnings are shown.
MAX_CAVEATS = 3
#: Two words of a sentence, which names of functions are not.
_WORDS = re.compile(r"\b[a-z]+,? [a-z]+\b")


def counted(count: int, noun: str) -> str:
    """1 job, 3 jobs: of nouns that take an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def tally(counts: Mapping[str, int]) -> list[str]:
    """How many there are of each: {"cell| without a value": 3} is 3 cells without a value."""
    parts = [(count, *what.partition("|")) for what, count in counts.items()]
    return [f"{counted(count, noun)}{tail}" for count, noun, _, tail in parts]


def ranks_text(ranks: int) -> str:
    return counted(ranks, "rank")


def seconds(value_s: float) -> str:
    """An estimated duration with three digits in the unit that suits it: 12.5 µs, 1.20 s; 0 below half a picosecond."""
    if abs(value_s) < 5e-13:
        return "0"
    unit, factor = time_unit(value_s, 0.9995)
    return f"{significant(value_s * factor)} {unit}"


def exact_seconds(value_s: float) -> str:
    """A duration that was set, without zeros at the end: 1 s, 2.5 ms."""
    unit, factor = time_unit(value_s)
    return f"{exact_number(value_s * factor)} {unit}" if value_s else "0 s"


def in_common_unit(
    titles: Sequence[str], rows: Iterable[Sequence[object]], *groups: Sequence[int]
) -> tuple[list[str], list[list[object]]]:
    """A table in which the columns of each group, estimates in seconds, have one unit: that of the least, unless the
    largest has seven digits; "-" for NaN, "< 0.001" for what is not 0."""
    titles, cells = list(titles), [list(row) for row in rows]
    for columns in groups:
        values_s = [float(row[column]) for row in cells for column in columns]  # type: ignore[arg-type]
        sizes = [abs(value_s) for value_s in values_s if math.isfinite(value_s) and abs(value_s) >= 5e-13] or [1.0]
        units = [time_unit(least) for least in (min(sizes), 1e-6, 1e-3, 1.0)]
        unit, factor = next((each for each in units if max(sizes) * each[1] < 1e6), units[-1])
        for column in columns:
            titles[column] += f", {unit}"
            for row in cells:
                row[column] = _cell(float(row[column]), factor)  # type: ignore[arg-type]
    return titles, cells


def _cell(value_s: float, factor: float) -> str:
    if math.isnan(value_s) or abs(value_s) < 5e-13:
        return "-" if math.isnan(value_s) else "0"
    return "< 0.001" if 0.0 < value_s * factor < 0.001 else significant(value_s * factor)


def time_unit(value_s: float, least: float = 1.0) -> tuple[str, float]:
    """The unit of a time, the largest in which it is not below `least`, and how many of it make a second."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if abs(value_s) * factor >= least:
            return unit, factor
    return "ns", 1e9


def duration(value_s: float) -> str:
    """About how long something takes, two digits: 8 s, 4.5 min, 2.1 h."""
    unit, unit_s = ("s", 1.0) if value_s < 90.0 else ("min", 60.0) if value_s < 5400.0 else ("h", 3600.0)
    return f"{float(f'{value_s / unit_s:.2g}'):g} {unit}"


def moment(time_s: float) -> str:
    """A time since a beginning: 3.25 s, 1 min 42 s, 2 h 0 min 5 s."""
    if time_s < 100:
        return f"{time_s:.3g} s"
    minutes, whole_s = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours} h " if hours else "") + f"{minutes} min {whole_s} s"


def quantity(value: float, unit: str) -> str:
    """A value with four digits and its unit, with the prefix that suits it: 411.8 Gflop/s, 2.600 Pflop/s."""
    scaled, factor = scaled_unit(unit, value)
    return f"{significant(value * factor, 4)} {scaled}"


def scaled_unit(unit: str, value: float) -> tuple[str, float]:
    """`unit` with the prefix that suits the value, and what the value is to be multiplied by.

    Of units that begin with G, as Gflop/s, from 10^4 on; of W, J and cells/s likewise; of s below; no other changes.
    """
    if unit == "s":
        return time_unit(value, 1e-3)
    letter, base = ("G", unit[1:]) if unit[:1] == "G" else ("", unit)
    if abs(value) < 9999.5 or not (letter or unit in _SCALED):
        return unit, 1.0
    ladder = _PREFIXES[_PREFIXES.index(letter) + 1 :]
    steps = next((step for step in range(1, len(ladder)) if abs(value) * 1000.0**-step < 999.95), len(ladder))
    return f"{ladder[steps - 1]}{base}", 1000.0**-steps


def size_text(size_bytes: float) -> str:
    """A number of bytes with three digits: 12 B, 1.5 KiB, 64 MiB."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(size_bytes) >= factor:
            return f"{exact_number(size_bytes / factor, 3)} {unit}"
    return f"{size_bytes:.0f} B"


def exact_size(size_bytes: int) -> str:
    """A number of bytes as `size_text` has it where that is exact, otherwise in bytes: 1.5 KiB, 100000 B."""
    number, unit = size_text(size_bytes).split()
    factor = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}[unit]
    return f"{number} {unit}" if float(number) * factor == size_bytes else f"{size_bytes} B"


def percent(share: float) -> str:
    """A share as per cent, one decimal; "-" where it is not known."""
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def signed_percent(share: float, low: float | None = None, high: float | None = None, basis: str = "95 %: ") -> str:
    """A change as per cent with its sign and two digits, or those that its interval gives it: +1.8 %, -12 %, -9.6 %
    (95 %: -9.9 to -9.4 %)."""
    percents = [math.nan if end is None else 100.0 * end for end in (share, low, high)]
    if not math.isfinite(sum(percents)) or not percents[2] > percents[1]:
        unlimited = ", interval unlimited" if math.inf in map(abs, percents) else ""
        return f"{'+' if share > 0.0 else ''}{significant(100.0 * share, 2)} %{unlimited}"
    decimals = _decimals(*percents[1:])
    signs = ["+" if round(percent, decimals) > 0 else "" for percent in percents]
    figure, least, most = (f"{sign}{_fixed(each, decimals)}" for sign, each in zip(signs, percents, strict=True))
    return f"{figure} % ({basis}{least} to {most} %)"


def significant(value: float, digits: int = 3) -> str:
    """An estimate with so many digits, zeros at the end too: 1.50, 0.0000123, 12,346; with an exponent below 1e-6."""
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else f"{value:g}"
    text = f"{value:.{digits - 1}e}"
    exponent = int(text.partition("e")[2])
    return _fixed(value, max(0, digits - 1 - exponent)) if exponent >= -6 else text


def exact_number(value: float, digits: int = 6) -> str:
    """What was set, or ticks of an axis, without zeros at the end: 0.5, 20,000."""
    text = significant(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _fixed(value: float, decimals: int) -> str:
    """With this many decimals, below 0 tens, hundreds and so on; from 10,000 on in groups of three."""
    rounded = round(value, decimals) + 0.0  # no -0.0
    return f"{rounded:{',' if abs(rounded) >= 9999.5 else ''}.{max(0, decimals)}f}"


def with_interval(value: float, low: float | None, high: float | None, unit: str = "", basis: str = "95 %: ") -> str:
    """A value with its 95 % interval: 54.9 s (95 %: 53.0 to 57.0 s); without bounds four digits.

    Of a value above 0 that has no digit, only the bound: less than 32 ms
    """
    figure, bounds = value_and_interval(value, low, high)
    unit = f" {unit}" if unit else ""
    if not bounds:
        return f"{figure}{unit}"
    return f"{figure}{unit} ({basis}{bounds}{unit})" if figure else f"less than {bounds.removeprefix('up to ')}{unit}"


def value_and_interval(value: float, low: float | None, high: float | None) -> tuple[str, str]:
    """A value and its interval, the last place of both the second digit of half its width: ("54.9", "53.0 to 57.0").

    No interval, or one without width, as of a price: four digits, and "". Of what is not below 0, a bound that has no
    digit: ("0.2", "up to 9.8"), and a value that has none: ("", "up to 32").
    """
    if low is None or high is None or not math.isfinite(low + high) or not high > low:
        return exact_number(value, 4) if low == high is not None else significant(value, 4), ""
    decimals, power, exponent = _decimals(low, high), "", 0
    if max(-low, high) < 1e-6:  # coefficients: all with one power of ten
        exponent = math.floor(math.log10(max(-low, high)))
        power = f"e{exponent:03d}"
    figure, least, most = (
        f"{_fixed(number * 10.0**-exponent, decimals + exponent)}{power}" for number in (value, low, high)
    )
    if low >= 0.0 and not least.removesuffix(power).strip("0."):
        return figure if figure.removesuffix(power).strip("0.") else "", f"up to {most}"
    return figure, f"{least} to {most}"


def change_in_words(
    ratio: float, more: str = "more", less: str = "less", low: float | None = None, high: float | None = None
) -> str:
    """A ratio as a change, with the digits that its interval gives it, or two: 3.1 % more."""
    percent = abs(100.0 * (ratio - 1.0))
    if low is None or high is None or not high - low > 0.0:
        figure = significant(percent, 2)
    else:
        figure = _fixed(percent, _decimals(100.0 * (low - 1.0), 100.0 * (high - 1.0)))
    return f"{figure} % {more if ratio >= 1.0 else less}" if figure.strip("0.") else f"{figure} %"


def _decimals(low: float, high: float) -> int:
    """Decimals with which half of an interval has two digits, at most six for its ends; below 0 tens and so on."""
    return min(1 - math.floor(math.log10((high - low) / 2.0)), 5 - math.floor(math.log10(max(abs(low), abs(high)))))


def p_text(value: float) -> str:
    """The chance of an observation where nothing is: p = 0.030, p = 6.6e-6, p < 0.000001."""
    if value < 1e-6:
        return "p < 0.000001"
    figure, _, exponent = f"{value:.1e}".partition("e")
    return f"p = {significant(value, 2) if value >= 1e-4 else f'{figure}e{int(exponent)}'}"


def with_nonbreaking_units(text: str) -> str:
    """The text, in which no line is broken within a quantity: 15.7 s, ± 16.5 %, N = 2000, 8 x 8."""
    return _UNBROKEN.sub("\u00a0", text)


def folded(text: str, width: int, indent: int = 0) -> str:
    """The text in lines of `width` columns, broken at blanks, never in a quantity; all but the first are indented."""
    if len(text) <= width:
        return text
    text = with_nonbreaking_units(text)
    lines = textwrap.wrap(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\u00a0", " ")


def caveat_line(caveats: Sequence[str], width: int) -> str:
    """3 caveats: the beginnings of some; --details"""
    shown = list(dict.fromkeys(map(_beginning, caveats)))[:MAX_CAVEATS]
    hidden = len(caveats) - len(shown)
    more = f"; and {hidden} more" if hidden > 0 else ""
    return folded(f"{counted(len(caveats), 'caveat')}: {'; '.join(shown)}{more}; --details", width, 2)


def _beginning(caveat: str) -> str:
    """A caveat up to its first colon, or the second where names alone precede the first."""
    head, _, rest = caveat.rstrip(".").partition(": ")
    return head if _WORDS.search(head) or not rest else f"{head}: {rest.partition(': ')[0]}"


def level_order(levels: Iterable[str]) -> list[str]:
    """The distinct levels of a factor in their order.

    Numbers and sizes (1e-6, 64KiB, 1M) by their value where all levels are such, else names by the numbers in them.
    """
    values: dict[str, float] = {}
    distinct = sorted(set(levels))
    for level in distinct:
        match = _LEVEL.fullmatch(level)
        if match is None:
            return sorted(distinct, key=natural_order)
        number, letter, binary = match.groups()
        values[level] = float(number) * (1024.0 if binary else 1000.0) ** _POWERS[(letter or "").lower()]
    return sorted(distinct, key=lambda level: (values[level], level))


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """A key to sort names by, in which the whole numbers in them count as numbers: node-2 before node-10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"[0-9]{1,18}|[^0-9]+", name)]


class Alike(NamedTuple):
    """Messages of which `text` stands for all.

    number: of all; identical: whether they are; names: those of the others, `text` left out
    """

    text: str
    number: int
    identical: bool
    names: tuple[str, ...]

    def line(self, of: int) -> str:
        """The message with its count; of: how many there would be if each case had it."""
        if self.identical:
            return self.text if self.number == of else f"{self.text} ({self.number} of {of})"
        more = ", ..." if len(self.names) > MAX_NAMED else ""
        named = f", of {', '.join(self.names[:MAX_NAMED])}{more}" if self.names else ""
        return f"{self.text} (and {self.number - 1} more like it{named})"


def without_figures(text: str) -> str:
    """What a message is about: the same for messages that differ in measured numbers alone.

    Bounds of sizes and parentheses with numbers are left out; numbers that are in no name or option become an ellipsis.
    """
    about = _OF_SIZES.sub("", _IN_PARENTHESES.sub("", text))
    about = _FIGURE.sub("…", about)
    return f"part of{about.removeprefix('… % of')}" if about.startswith("… % of") else about


def one_for_all(texts: Iterable[str], names: Collection[str] = ()) -> list[Alike]:
    """Groups of texts that are alike, in the order of the first ones.

    Alike are those equal up to the first colon but for numbers and `names`; the largest number stands for all.
    """
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    of_names = re.compile(rf"\b({words})\b" if names else r"(?!)")
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(_NUMBER.sub("#", of_names.sub("@", text.partition(":")[0])), []).append(text)
    groups = []
    for same in alike.values():
        chosen = max(same, key=lambda text: float(first[0]) if (first := _NUMBER.search(text)) else 0.0)
        named = dict.fromkeys(name for text in same for name in of_names.findall(text.partition(":")[0]))
        in_chosen = of_names.findall(chosen.partition(":")[0])
        others = tuple(name for name in named if name not in in_chosen)
        groups.append(Alike(chosen, len(same), len(set(same)) == 1, others))
    return groups
