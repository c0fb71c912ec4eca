"""Axes of a picture: from values to places, and the numbers that are written beside them."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_TICKS = 5
MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class Axis:
    """From low to high, linear or logarithmic; `label` with its unit; `names`: texts to write at 0, 1, 2, ...

    numbered: whether numbers are written beside it
    """

    label: str
    low: float
    high: float
    log: bool = False
    names: tuple[str, ...] = ()
    numbered: bool = True

    def place(self, values: Floats) -> Floats:
        """Share of the axis, 0 at low and 1 at high; what is beyond is put at the end."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        scaled = np.log10(np.maximum(values, 1e-300)) if self.log else values
        result: Floats = np.clip((scaled - low) / (high - low), 0.0, 1.0)
        return result

    def ticks(self) -> list[tuple[float, str]]:
        """Values to write, with their texts."""
        if not self.numbered:
            return []
        if self.names:
            every = -(-len(self.names) // MOST_NAMES)
            return [(float(at), name) for at, name in enumerate(self.names) if at % every == 0]
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            if last - first >= 2:
                every = max(1, -(-(last - first + 1) // MOST_TICKS))
                return [(10.0**power, _power(power)) for power in range(first, last + 1, every)]
            # Few decades: 1, 2, 5, or steps where even these are too far apart.
            values = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) >= 3:
                return [(value, f"{value:g}" if value < 1000 else _thousands(value)) for value in inside]
        step = _nice((self.high - self.low) / MOST_TICKS)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [((first + number) * step, f"{round((first + number) * step, 12):g}") for number in range(count)]


def axis(label: str, values: Floats, *, log: bool = False, include: tuple[float, ...] = ()) -> Axis:
    """An axis that holds the values, which may be empty, with a little room; `include`: these as well."""
    held = np.concatenate([np.asarray(values, dtype=np.float64), np.array(include, dtype=np.float64)])
    held = held[np.isfinite(held) & (held > 0)] if log else held[np.isfinite(held)]
    low, high = (float(held.min()), float(held.max())) if len(held) else (1.0, 10.0)
    if log:
        room = max(high / low, 1.0) ** 0.04 * 1.05
        return Axis(label, low / room, high * room, log=True)
    room = 0.05 * (high - low) or 0.5 * max(abs(high), 1e-9)
    return Axis(label, low - room, high + room)


def _power(power: int) -> str:
    plain = {0: "1", 1: "10", 2: "100", 3: "1 k", 4: "10 k", 5: "100 k", 6: "1 M", 7: "10 M", 8: "100 M", 9: "1 G"}
    return plain.get(power, f"1e{power}")


def _thousands(value: float) -> str:
    """2 k, 500 k, 5 M; as powers of ten are written."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g} {letter}"
    return f"{value:g}"


def _nice(step: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is no smaller than `step`."""
    scale = 10.0 ** math.floor(math.log10(step))
    return next(factor * scale for factor in (1.0, 2.0, 5.0, 10.0) if factor * scale >= step * (1 - 1e-9))
