"""Numbers as people read them: durations, sizes, shares."""

import math


def counted(count: int, noun: str) -> str:
    """1 job, 3 jobs: of nouns that take an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def seconds(value_s: float) -> str:
    """A duration with three digits in the unit that suits it: 12.5 µs, 1.2 s."""
    if value_s == 0:
        return "0"
    unit, factor = time_unit(value_s, 0.9995)
    return f"{three_digits(value_s * factor)} {unit}"


def time_unit(value_s: float, least: float = 1.0) -> tuple[str, float]:
    """The unit of a time, the largest in which it is not below `least`, and how many of it make a second."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if abs(value_s) * factor >= least:
            return unit, factor
    return "ns", 1e9


def scaled_unit(unit: str, value: float) -> tuple[str, float]:
    """`unit` with the prefix that suits the value, and what the value is to be multiplied by.

    Of units that begin with G, as Gflop/s has it, from 10^4 on; of W, J and cells/s likewise; any other stays.
    """
    letter, base = ("G", unit[1:]) if unit[:1] == "G" else ("", unit)
    if abs(value) < 9999.5 or not (letter or unit in _SCALED):
        return unit, 1.0
    ladder = _PREFIXES[_PREFIXES.index(letter) + 1 :]
    steps = next((step for step in range(1, len(ladder)) if abs(value) * 1000.0**-step < 999.95), len(ladder))
    return f"{ladder[steps - 1]}{base}", 1000.0**-steps


#: Units without a prefix of their own that get one.
_SCALED = frozenset({"W", "J", "cells/s"})
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


def quantity(value: float, unit: str) -> str:
    """A value with four digits and its unit, with the prefix that suits it: 411.8 Gflop/s, 2.604 Pflop/s."""
    scaled, factor = scaled_unit(unit, value)
    return f"{four_digits(value * factor)} {scaled}"


def duration(value_s: float) -> str:
    """About how long something takes, two digits: 8 s, 4.5 min, 2.1 h."""
    for limit_s, unit_s, unit in ((90.0, 1.0, "s"), (5400.0, 60.0, "min")):
        if value_s < limit_s:
            return f"{float(f'{value_s / unit_s:.2g}'):g} {unit}"
    return f"{float(f'{value_s / 3600.0:.2g}'):g} h"


def moment(time_s: float) -> str:
    """A time since a beginning: 3.25 s, 1 min 42 s, 2 h 0 min 5 s."""
    if time_s < 100:
        return f"{time_s:.3g} s"
    minutes, rest = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours} h " if hours else "") + f"{minutes} min {rest} s"


def size_text(size_bytes: float) -> str:
    """A number of bytes with three digits: 12 B, 1.5 KiB, 64 MiB."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(size_bytes) >= factor:
            return f"{three_digits(size_bytes / factor)} {unit}"
    return f"{size_bytes:.0f} B"


def exact_size(size_bytes: int) -> str:
    """A number of bytes as `size_text` has it where that is exact, otherwise in bytes: 1.5 KiB, 100000 B."""
    number, unit = size_text(size_bytes).split()
    factor = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}[unit]
    return f"{number} {unit}" if float(number) * factor == size_bytes else f"{size_bytes} B"


def ranks_text(ranks: int) -> str:
    """ "1 rank", "2 ranks"."""
    return f"{ranks} rank{'' if ranks == 1 else 's'}"


def percent(share: float) -> str:
    """A share as per cent, one decimal; "-" where it is not known."""
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def signed_percent(share: float, digits: int = 3) -> str:
    """A change as per cent with its sign: +1.8 %, -12 %, 0 %."""
    value = 100.0 * share
    text = f"{value:+.{digits}g}" if abs(value) < 99.5 else f"{value:+,.0f}"
    return f"{text if value else '0'} %"


def two_digits(value: float) -> str:
    """With two digits; from 100 on, whole."""
    return f"{value:.2g}" if abs(value) < 99.5 else f"{value:.0f}"


def axis_unit(largest_s: float, seconds_from: float = 1.0) -> tuple[str, float]:
    """Unit of an axis of times that reaches so far, and how many of it make a second."""
    if largest_s >= seconds_from:
        return "s", 1.0
    return ("ms", 1e3) if largest_s >= 0.01 else ("µs", 1e6)


def three_digits(value: float) -> str:
    """Three digits, and never an exponent for what has more before the point."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def four_digits(value: float) -> str:
    """Four digits, and never an exponent: all digits before the point where there are more, zeros after it."""
    if abs(value) >= 9999.5:
        return f"{value:.0f}"
    text = f"{value:.4g}"
    return f"{value:.{3 - math.floor(math.log10(abs(value)))}f}" if "e" in text else text


def number(value: float, digits: int = 3) -> str:
    """So many digits, and from 1000 on all before the point, in groups of three: 0.0123, 12.3, 3,027."""
    return f"{value:.{digits}g}" if abs(value) < 999.5 else f"{value:,.0f}"
