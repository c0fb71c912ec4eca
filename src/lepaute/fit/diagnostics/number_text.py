"""Numbers in sentences: shares, durations, times, p-values."""

import math


def percent(share: float) -> str:
    """0.0123 -> "1.2 %"; small ones keep two digits."""
    value = 100.0 * share
    return f"{value:.0f} %" if abs(value) >= 10 else f"{value:.2g} %"


def seconds(value_s: float) -> str:
    """1.2e-5 -> "12 us"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value_s) >= scale:
            return f"{value_s / scale:.3g} {unit}"
    return f"{value_s / 1e-9:.3g} ns"


def moment(time_s: float) -> str:
    """A time of a measurement, from its first call: "1 min 42 s", "3.25 s"."""
    if time_s < 100:
        return f"{time_s:.3g} s"
    minutes, rest = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours} h " if hours else "") + f"{minutes} min {rest} s"


def chance(p_value: float | None) -> str:
    """A p-value as text; "" where there is none."""
    if p_value is None or math.isnan(p_value):
        return ""
    return "p < 0.000001" if p_value < 1e-6 else f"p = {p_value:.2g}"
