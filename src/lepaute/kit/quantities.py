"""Quantities as people type them: 500k, 8x8."""

import re

from lepaute.errors import InputError

LONGEST_RANGE = 10**6
#: Of numbers; of bytes, where k, M and G are powers of 1024 as well.
SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
BYTE_SUFFIXES = SUFFIXES | {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def count(text: str, name: str) -> int:
    """A whole number with an optional suffix k, M or G, or Ki, Mi or Gi; raises InputError for anything else."""
    match = re.fullmatch(r"(.*?)([kmg]i?)?", text, re.IGNORECASE | re.DOTALL)
    assert match is not None  # whatever the text
    try:
        value = float(match[1]) * SUFFIXES[(match[2] or "").lower()]
    except ValueError:
        value = 0.5  # not a number: refused like one that is not whole
    if not value.is_integer():
        raise InputError(f"{name} is {text!r}; it is a whole number such as 20000 or 20k")
    return int(value)


def size_of(text: str, name: str) -> int:
    """Bytes, at least 1, with an optional suffix K, M or G, or Ki, Mi or Gi: powers of 1024 both.

    Raises InputError for anything else.
    """
    match = re.fullmatch(r"([0-9]+)([kmg]i?)?", text, re.IGNORECASE)
    size = int(match[1]) * BYTE_SUFFIXES[(match[2] or "").lower()] if match else 0
    if size < 1:
        raise InputError(f"{name} {text!r} is not a size; write bytes, or 64K, 1M, 1Gi")
    return size


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
        raise InputError(f"{name} is {text!r}; it is {form}")
    return tuple(count(part, name) for part in parts)


def factor_of(text: str, name: str) -> float:
    """A factor such as 2x, 2 or 0.5; raises InputError for anything else, or one below 0."""
    import math

    try:
        value = float(text[:-1] if text[-1:].lower() == "x" else text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0.0):
        raise InputError(f"{name} is {text!r}; it is a factor of 0 or more such as 2x or 0.5")
    return value


def settings_of(texts: list[str]) -> dict[str, str]:
    """FIELD=VALUE texts by field; raises InputError for a text without a value."""
    settings = {}
    for text in texts:
        field, separator, value = text.partition("=")
        if not separator or not field:
            raise InputError(f"--set {text}: write FIELD=VALUE, such as network.flow_factor=scale")
        settings[field] = value
    return settings


def numbers_of(text: str, name: str) -> tuple[int, ...]:
    """The whole numbers of a list such as 0,5-7, each once, increasing; raises InputError for anything else."""
    numbers: set[int] = set()
    for item in text.split(","):
        first, dash, last = item.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(f"{name} is {text!r}; it is a list of whole numbers and ranges such as 0,5-7")
        low, high = int(first), int(last or first)
        if high < low:
            raise InputError(f"{name} is {text!r}; a range goes up, such as {high}-{low}")
        if high - low >= LONGEST_RANGE:
            raise InputError(f"{name} is {text!r}; a range has at most {LONGEST_RANGE} numbers")
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


def span_of(text: str, name: str) -> tuple[int, int]:
    """(10, 12) of 10-12 or 10:12, (10, 10) of 10; raises InputError for anything else."""
    match = re.fullmatch(r"([0-9]+)(?:[-:]([0-9]+))?", text.strip())
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise InputError(f"{name} is {text!r}; it is a step, or the first and the last such as 10-12")
    return int(match[1]), int(match[2] or match[1])


def duration_of(seconds: float) -> str:
    """A duration as a person says it, two digits: 8 s, 4.5 min, 2.1 h."""
    for limit_s, unit_s, unit in ((90.0, 1.0, "s"), (5400.0, 60.0, "min")):
        if seconds < limit_s:
            return f"{float(f'{seconds / unit_s:.2g}'):g} {unit}"
    return f"{float(f'{seconds / 3600.0:.2g}'):g} h"
