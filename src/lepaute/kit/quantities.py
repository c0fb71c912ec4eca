"""Quantities as people type them (500k, 64Ki, 8x8, 0,5-7), of data sheets (45G flop/s, 1.5us), times of programs.

Functions take the text and the quantity's name for messages, and raise InputError for anything else.
"""

import math
import re
from collections.abc import Sequence
from typing import Never

from lepaute.errors import InputError

#: A list of ranges has at most this many numbers.
MAX_NUMBERS = 10**6
#: No quantity is larger: it would not fit the 64 bits of the engine.
MOST = 2**63 - 1
DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9}
BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}

_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_POWERS_OF_1024 = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SECONDS |= {"µs": 1e-6, "μs": 1e-6}  # two characters that look alike
_DIGITS = "([0-9]{1,18})"
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{0,15})?) ?"
_REAL = r"([0-9]{1,15}(?:\.[0-9]{0,15})?(?:[eE][+-]?[0-9]{1,2})?) ?"


def whole_of(text: str, name: str, low: int | None = None, high: int | None = None) -> int:
    """A whole number, low to high, with an optional suffix: k, M or G (powers of ten), Ki, Mi or Gi (of 1024)."""
    suffixes = {suffix.lower(): factor for suffix, factor in (DECIMAL | BINARY).items()}
    return _bounded(_scaled(text, suffixes), text, name, "a whole number such as 20000 or 20k", low, high)


def count_of(text: str, name: str, low: int = 0, high: int = MOST) -> int:
    """A whole number, low to high, as files have it: digits of ASCII, without sign and suffix."""
    _match(_DIGITS, text, name, f"a whole number, in digits, of at most {high}")
    return _bounded(int(text), text, name, "a whole number", low, high)


def parse_size(text: str, name: str) -> int:
    """A size above 0 with an optional suffix: K or Ki, M or Mi, G or Gi, all powers of 1024."""
    suffixes = {form: factor for suffix, factor in BINARY.items() for form in (suffix.lower(), suffix[0].lower())}
    expected = "a size in bytes such as 4096, 64K, 1M or 1G"
    _match(_DIGITS + "(?:[kmgKMG][iI]?)?", text, name, expected)
    return _bounded(_scaled(text, suffixes), text, name, expected, 1, None)


def grid_of(text: str, name: str) -> tuple[int, int]:
    """(p, q) of PxQ, each with an optional suffix."""
    p, q = product_of(text, name, "P x Q such as 8x8")
    return p, q


def box_of(text: str, name: str, such_as: str) -> tuple[int, int, int]:
    """(x, y, z) of XxYxZ, each with an optional suffix;  such_as : an example of one."""
    x, y, z = product_of(text, name, f"X x Y x Z such as {such_as}")
    return x, y, z


def product_of(text: str, name: str, form: str) -> tuple[int, ...]:
    """The numbers of a text such as 8x4; `form` says how many, in words: P x Q such as 8x8."""
    parts = text.lower().split("x")
    if len(parts) != form.count(" x ") + 1 or not all(parts):
        _refuse(text, name, form)
    return tuple(whole_of(part, name) for part in parts)


def factor_of(text: str, name: str) -> float:
    """A factor of 0 or more such as 2x, 2 or 0.5."""
    try:
        value = float(text[:-1] if text[-1:].lower() == "x" else text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        _refuse(text, name, "a factor of 0 or more such as 2x or 0.5")
    return value


def lag_of(text: str) -> float:
    """Seconds of --lag; see time_of."""
    return time_of(text, "--lag")


def time_of(text: str, name: str) -> float:
    """Seconds of a time such as 90, 90s, 50us, 20ms, 30min, 2h or 3d."""
    match = _match(_NUMBER + "(us|ms|s|min|h|d)?", text, name, "a time such as 90s, 30min, 2h or 3d")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def seconds_of(text: str, name: str) -> float:
    """Seconds of a short time such as 1.5us, 900ns or 1.5e-6s."""
    match = _match(_REAL + "(s|ms|us|µs|μs|ns)", text, name, "a time such as 1.5us or 900ns")
    return float(match[1]) * _SECONDS[match[2]]


def share_of(text: str, name: str) -> float:
    """The share that a text such as 2% or 0.02 says."""
    match = _match(_NUMBER + "(%?)", text, name, "a share such as 2% or 0.02")
    return float(match[1]) * (0.01 if match[2] else 1.0)


def ratio_of(text: str, name: str) -> tuple[int, int]:
    """(2, 1) of 2:1, in lowest terms."""
    match = _match("([1-9][0-9]{0,3}):([1-9][0-9]{0,3})", text, name, "a ratio such as 2:1")
    down, up = int(match[1]), int(match[2])
    return down // math.gcd(down, up), up // math.gcd(down, up)


def flops_of(text: str, name: str) -> float:
    """Flop/s of a rate such as 45G, 1.4T, 45GF or 45Gflop/s, from 10^6 to 10^16."""
    unit = r"(?:[fF]|[fF][lL][oO][pP][sS]?(?:/s)?)?"
    value = _rate(text, text, name, unit, "operations a second such as 45G or 1.4T")
    if value < 1e6:
        raise InputError(
            f"{name} is {text[:80]!r}, {value:g} operations a second; write {text[:80].strip()}G for Gflop/s"
        )
    if value > 1e16:
        raise InputError(f"{name} is {text[:80]!r}; no core has more than 10^16 operations a second")
    return value


def bandwidth_of(text: str, name: str) -> float:
    """Bytes a second of 100Gb (bits; also Gb/s, Gbps, Gbit/s) or 12.5GB (bytes; also GB/s)."""
    expected = "bits or bytes a second such as 100Gb or 12.5GB"
    bits = re.fullmatch(r"(.*?)(?:b|bps|bits?|b/s|bits?/s)", text)
    if bits and not text.endswith(("B", "B/s", "Bps")):
        return _rate(bits[1], text, name, "", expected) / 8.0
    return _rate(text, text, name, "(?:B|B/s|Bps)", expected)


def memory_of(text: str, name: str) -> int:
    """Bytes, from 1 MiB on, of a memory such as 192G, 192GB, 192GiB or 1.5T: powers of 1024, as memory is sold."""
    expected = "a size such as 192G or 1.5T"
    match = _match(_REAL + "(?:([kKmMgGtT])i?)?B?", text, name, expected)
    value = float(match[1]) * _POWERS_OF_1024[(match[2] or "").upper()]
    if value <= 0.0:
        _refuse(text, name, expected)
    if value < 1 << 20:
        raise InputError(f"{name} is {text[:80]!r}, {value:g} bytes; write it with its unit, such as 192G")
    return int(value)


def settings_of(texts: list[str]) -> dict[str, str]:
    """FIELD=VALUE texts by field."""
    settings = {}
    for text in texts:
        field, separator, value = text.partition("=")
        if not separator or not re.fullmatch(r"[A-Za-z0-9_:.\[\]-]{1,200}", field):
            raise InputError(f"--set {text[:80]!r}: write FIELD=VALUE, such as network.flow_factor=scale")
        settings[field] = value
    return settings


def ranges_of(text: str, name: str) -> list[range]:
    """The ranges, each going up, of a list such as 0,5-7, as they are written; at most MAX_NUMBERS numbers in all."""
    ranges = []
    for item in text.split(","):
        match = re.fullmatch(rf"\s*{_DIGITS}\s*(?:-\s*{_DIGITS}\s*)?", item)
        if match is None:
            _refuse(text, name, "a list of whole numbers and ranges such as 0,5-7")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise InputError(f"{name} is {text[:80]!r}; a range must increase, such as {high}-{low}")
        ranges.append(range(low, high + 1))
    if sum(map(len, ranges)) > MAX_NUMBERS:
        raise InputError(f"{name} is {text[:80]!r}; at most {MAX_NUMBERS} numbers are allowed")
    return ranges


def numbers_of(text: str, name: str) -> tuple[int, ...]:
    """The whole numbers of a list such as 0,5-7, each once, increasing."""
    return tuple(sorted({number for each in ranges_of(text, name) for number in each}))


def span_of(text: str, name: str) -> tuple[int, int]:
    """(10, 12) of 10-12 or 10:12, (10, 10) of 10."""
    expected = "a step, or the first and the last such as 10-12"
    match = _match(rf"\s*{_DIGITS}(?:[-:]{_DIGITS})?\s*", text, name, expected)
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        _refuse(text, name, expected)
    return first, last


def _match(pattern: str, text: str, name: str, expected: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text)
    return _refuse(text, name, expected) if match is None else match


def _refuse(text: str, name: str, expected: str) -> Never:
    raise InputError(f"{name} is {text[:80]!r}; it must be {expected}")


def _rate(number: str, text: str, name: str, unit: str, expected: str) -> float:
    match = re.fullmatch(_REAL + "([kKMGTP]?)" + unit, number)
    value = float(match[1]) * _PREFIX[match[2]] if match else 0.0
    return value if value > 0.0 else _refuse(text, name, expected)


def _scaled(text: str, suffixes: dict[str, int]) -> float:
    """The number times what its suffix stands for; NaN if it is none."""
    suffix = next((end for end in (text[-2:].lower(), text[-1:].lower()) if end in suffixes), "")
    digits, factor = text[: len(text) - len(suffix)], suffixes.get(suffix, 1)
    for convert in (int, float):
        try:
            return convert(digits) * factor
        except ValueError:
            pass
    return math.nan


def _bounded(value: float, text: str, name: str, expected: str, low: int | None, high: int | None) -> int:
    if isinstance(value, float) and not value.is_integer():  # neither are NaN and infinity
        _refuse(text, name, expected)
    low, high = -MOST if low is None else low, MOST if high is None else high
    if not low <= value <= high:
        if -low == high == MOST:
            raise InputError(f"{name} is {text[:80]!r}; it does not fit in 64 bits")
        bounds = f"{low} or more" if high == MOST else f"{high} or less" if low == -MOST else f"{low} to {high}"
        _refuse(text, name, bounds)
    return int(value)


#: Of the option that takes it.
PATTERN_HELP = r"regular expression for the seconds that the program prints: 'time: (\S+) s'"

#: What launchers put before each line of a rank: [0] of -prepend-rank, [1,0]<stdout>: of --tag-output, 0: of srun -l.
_OF_A_RANK = re.compile(r"(\[(?:[^\]\s,]*,)?\d+\](?:<std(?:out|err)>:|(?=\s|$))|\s*\d+:(?=\s)) ?")


def checked_pattern(pattern: str) -> str:
    """`pattern`, a regular expression with one group; raises InputError for anything else."""
    try:
        groups = re.compile(pattern).groups
    except re.error as problem:
        raise InputError(f"the pattern '{pattern}' is no regular expression: {problem}") from None
    if groups != 1:
        raise InputError(
            f"the pattern '{pattern}' has {groups} groups; it needs one, around the seconds: 'time: (\\S+) s'"
        )
    return pattern


def value_in(lines: Sequence[str], pattern: str) -> float:
    """The number that the last match of `pattern` in `lines` holds; raises ValueError, a line, where there is none."""
    matches = [match[1] for line in lines for match in [re.search(pattern, line)] if match]
    if not matches:
        raise ValueError(f"the program printed nothing that matches '{pattern}' on standard output")
    try:
        value = float(matches[-1])
    except (TypeError, ValueError):  # None: of a group that an alternative leaves out
        raise ValueError(f"the program printed {matches[-1]!r:.80} for '{pattern}', which is not a number") from None
    if not 0.0 <= value < math.inf:
        raise ValueError(f"the program printed {matches[-1]!r:.80} for '{pattern}', which is no time")
    return value


def without_prefix(lines: list[str], heading: re.Pattern[str]) -> tuple[list[str], tuple[str, ...]]:
    """Lines without what a launcher put before each, where it did so before a heading; a sentence on those left out.

    heading : begins with it. What other ranks printed, or that one on standard error, becomes a comment.
    """
    matches = [_OF_A_RANK.match(line) for line in lines]
    first = next((match for match in matches if match and heading.match(match.string[match.end() :].strip())), None)
    if first is None or any(heading.match(line.strip()) for line in lines):
        return lines, ()
    others = [at for at, match in enumerate(matches, 1) if match and match[1].strip() != first[1].strip()]
    plain = [line[match.end() :] if match else line for line, match in zip(lines, matches, strict=True)]
    for at in others:
        plain[at - 1] = "#"
    text = f"{lines_text(others)} left out, as the launcher's {first[1].strip()} is not before them"
    return plain, (text,) if others else ()


def lines_text(numbers: Sequence[int]) -> str:
    """Lines 4, 5, ...: of many the first ones."""
    return f"line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:5]))}{', ...' * (len(numbers) > 5)}"
