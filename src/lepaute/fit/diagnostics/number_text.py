"""Numbers in sentences: shares, durations, times, p-values."""

import math


def percent(share: float) -> str:
    """0.0123 -> "1.2 %"; small ones keep two digits."""
    value = 100.0 * share
    return f"{value:.0f} %" if abs(value) >= 10 else f"{value:.2g} %"


def chance(p_value: float | None) -> str:
    """A p-value as text; "" where there is none."""
    if p_value is None or math.isnan(p_value):
        return ""
    return "p < 0.000001" if p_value < 1e-6 else f"p = {p_value:.2g}"
