"""Bandwidths, times and lists of numbers as SimGrid writes them."""

import re
from decimal import Decimal, InvalidOperation

from lepaute.errors import InputError
from lepaute.kit.quantities import count_of, ranges_of

_POWERS_OF_TEN = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SECONDS = {
    "w": Decimal(604800),
    "d": Decimal(86400),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
    "ps": Decimal("1e-12"),
}
#: Decimal's exponents are bounded, and the time that it takes grows with the digits.
_NUMBER = r"\s*([+-]?(?:[0-9]{1,60}\.?[0-9]{0,60}|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,4})?)\s*"


def bandwidth_Bps(text: str, where: str) -> Decimal:  # noqa: N802 - the unit
    """Bytes a second of a text such as 10Gbps, 1.25GBps or 125000000; `where` begins the message of a refusal."""
    number, unit = _split(text, where, "a bandwidth such as 10Gbps or 1.25GBps")
    match = re.fullmatch(r"(?:([kKMGTPE]?|[KMGTPE]i)([bB])ps)?", unit)
    if match is None:
        raise InputError(f"{where} is {text[:80]!r}; a bandwidth such as 10Gbps or 1.25GBps is wanted")
    prefix, kind = match[1] or "", match[2] or "B"
    scale = Decimal(2) ** _POWERS_OF_TWO[prefix] if prefix.endswith("i") else Decimal(10) ** _POWERS_OF_TEN[prefix]
    return number * scale / (8 if kind == "b" else 1)


def time_s(text: str, where: str) -> Decimal:
    """Seconds of a text such as 24us or 1E-6; `where` begins the message of a refusal."""
    number, unit = _split(text, where, "a time such as 24us")
    if unit and unit not in _SECONDS:
        raise InputError(f"{where} is {text[:80]!r}; a time such as 24us is wanted")
    return number * _SECONDS[unit or "s"]


def numbers(text: str, where: str) -> tuple[int, ...]:
    """The numbers of a radical such as 0-3,7, as they are written; `where` begins the message of a refusal."""
    return tuple(number for each in ranges_of(text, where) for number in each)


def whole_number(text: str, where: str) -> int:
    """The whole number >= 0 that `text` is; `where` begins the message of a refusal."""
    return count_of(text.strip(), where)


def _split(text: str, where: str, expected: str) -> tuple[Decimal, str]:
    match = re.fullmatch(_NUMBER + r"([A-Za-z]*)\s*", text)
    try:
        number = Decimal(match[1]) if match else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if match is None or not number.is_finite() or number < 0 or not -400 < number.adjusted() < 200:
        raise InputError(f"{where} is {text[:80]!r}; {expected} is expected")
    return number, match[2]
