"""Quantities as data sheets have them: 45G flop/s, 100Gb, 12.5GB/s, 1.5us, 192 GB of memory, 2:1."""

import math
import re

from lepaute.errors import InputError

_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_POWERS_OF_1024 = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{0,15})?(?:[eE][+-]?[0-9]{1,2})?) ?"
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}


def flops_of(text: str, name: str) -> float:
    """Flop/s of a rate such as 45G, 1.4T, 45GF or 45Gflop/s, from 10^6 to 10^16; InputError for anything else."""
    expected = "operations a second such as 45G or 1.4T"
    value = _rate(text, name, r"(?:[fF]|[fF][lL][oO][pP][sS]?(?:/s)?)?", expected)
    if value < 1e6:
        raise InputError(
            f"{name} is {text[:80]!r}, {value:g} operations a second; write {text[:80].strip()}G for Gflop/s"
        )
    if value > 1e16:
        raise InputError(f"{name} is {text[:80]!r}; no core has more than 10^16 operations a second")
    return value


def bandwidth_of(text: str, name: str) -> float:
    """Bytes a second of 100Gb (bits; also Gb/s, Gbps, Gbit/s) or 12.5GB (bytes; also GB/s); InputError for others."""
    expected = "bits or bytes a second such as 100Gb or 12.5GB"
    bits = re.fullmatch(r"(.*?)(?:b|bps|bits?|b/s|bits?/s)", text)
    if bits and not text.endswith(("B", "B/s", "Bps")):
        return _rate(bits[1], name, "", expected, shown=text) / 8.0
    return _rate(text, name, r"(?:B|B/s|Bps)", expected)


def memory_of(text: str, name: str) -> int:
    """Bytes of a memory such as 192G, 192GB, 192GiB or 1.5T; raises InputError for anything else, and below 1 MiB.

    The prefixes are powers of 1024 with and without the i: memory is sold so.
    """
    match = re.fullmatch(_NUMBER + "(?:([kKmMgGtT])i?)?B?", text, re.ASCII)
    value = float(match[1]) * _POWERS_OF_1024[(match[2] or "").upper()] if match else math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {text[:80]!r}; it must be a size such as 192G or 1.5T")
    if value < 1 << 20:
        raise InputError(f"{name} is {text[:80]!r}, {value:g} bytes; write it with its unit, such as 192G")
    return int(value)


def seconds_of(text: str, name: str) -> float:
    """Seconds of a short time such as 1.5us, 900ns or 1.5e-6s; raises InputError for anything else."""
    match = re.fullmatch(_NUMBER + "(s|ms|us|µs|μs|ns)", text)
    value = float(match[1]) * _SECONDS[match[2]] if match else math.nan
    if not math.isfinite(value):
        raise InputError(f"{name} is {text[:80]!r}; it must be a time such as 1.5us or 900ns")
    return value


def ratio_of(text: str, name: str) -> tuple[int, int]:
    """(2, 1) of 2:1, in lowest terms; raises InputError for anything else."""
    match = re.fullmatch(r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})", text, re.ASCII)
    if match is None:
        raise InputError(f"{name} is {text[:80]!r}; it must be a ratio such as 2:1")
    down, up = int(match[1]), int(match[2])
    common = math.gcd(down, up)
    return down // common, up // common


def _rate(text: str, name: str, unit: str, expected: str, shown: str | None = None) -> float:
    match = re.fullmatch(_NUMBER + "([kKMGTP]?)" + unit, text, re.ASCII)
    value = float(match[1]) * _PREFIX[match[2]] if match else math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {(shown or text)[:80]!r}; it must be {expected}")
    return value
