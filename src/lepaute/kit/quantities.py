"""Quantities as people type them: 500k, 64Ki, 8x8, 0,5-7."""

import math
import re

from lepaute.errors import InputError

#: A list of ranges has at most so many numbers.
MOST_NUMBERS = 10**6
#: No quantity is larger: it would not fit the 64 bits of the engine.
MOST = 2**63 - 1
DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9}
BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}

_SIZE = r"[0-9]{1,18}(?:[kmgKMG][iI]?)?"
_COUNT = r"[0-9]{1,18}"
_RANGE = r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?"
_FIELD = r"[A-Za-z0-9_:.\[\]-]{1,200}"
_SPAN = r"\s*([0-9]{1,18})(?:[-:]([0-9]{1,18}))?\s*"


def whole_of(text: str, name: str, low: int | None = None, high: int | None = None) -> int:
    """A whole number with an optional suffix: k, M or G (powers of ten), Ki, Mi or Gi (powers of 1024).

    name: of the quantity, for messages; low, high: bounds, both allowed
    Raises InputError for anything else.
    """
    suffixes = {suffix.lower(): factor for suffix, factor in (DECIMAL | BINARY).items()}
    return _bounded(_scaled(text, suffixes), text, name, "a whole number such as 20000 or 20k", low, high)


def count_of(text: str, name: str, low: int = 0, high: int = MOST) -> int:
    """A whole number as files have it: digits of ASCII, without sign and suffix; raises InputError for anything else.

    name: of the quantity, for messages; low, high: bounds, both allowed
    """
    if not re.fullmatch(_COUNT, text):
        raise InputError(f"{name} is {text[:80]!r}; it must be a whole number, in digits, of at most {high}")
    return _bounded(int(text), text, name, "a whole number", low, high)


def size_of(text: str, name: str) -> int:
    """A size above 0 with an optional suffix: K or Ki, M or Mi, G or Gi, all powers of 1024; raises InputError."""
    suffixes = {form: factor for suffix, factor in BINARY.items() for form in (suffix.lower(), suffix[0].lower())}
    size = _scaled(text, suffixes) if re.fullmatch(_SIZE, text) else math.nan
    return _bounded(size, text, name, "a size in bytes such as 4096, 64K, 1M or 1G", 1, None)


def grid_of(text: str) -> tuple[int, int]:
    """(p, q) of PxQ, each with an optional suffix; raises InputError for anything else."""
    p, q = product_of(text, "grid", "P x Q such as 8x8")
    return p, q


def box_of(text: str, name: str) -> tuple[int, int, int]:
    """(x, y, z) of XxYxZ, each with an optional suffix; raises InputError for anything else."""
    x, y, z = product_of(text, name, "X x Y x Z such as 4x4x2")
    return x, y, z


def product_of(text: str, name: str, form: str) -> tuple[int, ...]:
    """The numbers of a text such as 8x4; `form` says how many, in words: P x Q such as 8x8."""
    parts = text.lower().split("x")
    if len(parts) != form.count(" x ") + 1 or not all(parts):
        raise InputError(f"{name} is {text!r}; it must be {form}")
    return tuple(whole_of(part, name) for part in parts)


def factor_of(text: str, name: str) -> float:
    """A factor such as 2x, 2 or 0.5; raises InputError for anything else, or one below 0."""
    try:
        value = float(text[:-1] if text[-1:].lower() == "x" else text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0.0):
        raise InputError(f"{name} is {text!r}; it must be a factor of 0 or more such as 2x or 0.5")
    return value


def lag_of(text: str) -> float:
    """Seconds of --lag; see time_of."""
    return time_of(text, "--lag")


def time_of(text: str, name: str) -> float:
    """Seconds of a time such as 90, 90s, 50us, 20ms, 30min, 2h or 3d; raises InputError for anything else."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{0,15})?) ?(us|ms|s|min|h|d)?", text, re.ASCII)
    if match is None:
        raise InputError(f"{name} is {text[:80]!r}; it must be a time such as 90s, 30min, 2h or 3d")
    return (
        float(match[1])
        * {None: 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}[match[2]]
    )


def share_of(text: str, name: str) -> float:
    """The share that a text such as 2% or 0.02 says; raises InputError for anything else."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{0,15})?) ?(%?)", text, re.ASCII)
    if match is None:
        raise InputError(f"{name} is {text[:80]!r}; it must be a share such as 2% or 0.02")
    return float(match[1]) * (0.01 if match[2] else 1.0)


def settings_of(texts: list[str]) -> dict[str, str]:
    """FIELD=VALUE texts by field; raises InputError for a text without a value."""
    settings = {}
    for text in texts:
        field, separator, value = text.partition("=")
        if not separator or not re.fullmatch(_FIELD, field):
            raise InputError(f"--set {text[:80]!r}: write FIELD=VALUE, such as network.flow_factor=scale")
        settings[field] = value
    return settings


def ranges_of(text: str, name: str) -> list[range]:
    """The ranges of a list such as 0,5-7, as they are written; raises InputError for anything else.

    A range goes up, and all together have at most MOST_NUMBERS numbers.
    """
    ranges = []
    for item in text.split(","):
        match = re.fullmatch(_RANGE, item)
        if match is None:
            raise InputError(f"{name} is {text[:80]!r}; it must be a list of whole numbers and ranges such as 0,5-7")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise InputError(f"{name} is {text[:80]!r}; a range must increase, such as {high}-{low}")
        ranges.append(range(low, high + 1))
    if sum(map(len, ranges)) > MOST_NUMBERS:
        raise InputError(f"{name} is {text[:80]!r}; at most {MOST_NUMBERS} numbers are allowed")
    return ranges


def numbers_of(text: str, name: str) -> tuple[int, ...]:
    """The whole numbers of a list such as 0,5-7, each once, increasing; raises InputError for anything else."""
    return tuple(sorted({number for each in ranges_of(text, name) for number in each}))


def span_of(text: str, name: str) -> tuple[int, int]:
    """(10, 12) of 10-12 or 10:12, (10, 10) of 10; raises InputError for anything else."""
    match = re.fullmatch(_SPAN, text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise InputError(f"{name} is {text[:80]!r}; it must be a step, or the first and the last such as 10-12")
    return int(match[1]), int(match[2] or match[1])


def _scaled(text: str, suffixes: dict[str, int]) -> float:
    """The number times what its suffix stands for; NaN where it is none."""
    suffix = next((end for end in (text[-2:].lower(), text[-1:].lower()) if end in suffixes), "")
    digits, factor = text[: len(text) - len(suffix)], suffixes.get(suffix, 1)
    try:
        return int(digits) * factor
    except ValueError:
        pass
    try:
        return float(digits) * factor
    except ValueError:
        return math.nan


def _bounded(value: float, text: str, name: str, kind: str, low: int | None, high: int | None) -> int:
    if isinstance(value, float) and not value.is_integer():  # neither are NaN and infinity
        raise InputError(f"{name} is {text[:80]!r}; it must be {kind}")
    low, high = -MOST if low is None else low, MOST if high is None else high
    if not low <= value <= high:
        if -low == high == MOST:
            raise InputError(f"{name} is {text[:80]!r}; it does not fit in 64 bits")
        bounds = f"{low} or more" if high == MOST else f"{high} or less" if low == -MOST else f"{low} to {high}"
        raise InputError(f"{name} is {text[:80]!r}; it must be {bounds}")
    return int(value)
