"""Noise of several modes: what a mixture looks like in a platform, for kernels and for messages."""

from typing import Annotated

from pydantic import AfterValidator, Field

from lepaute.platform.values import NonNegative, Number, Positive, Value, fault

MOST_MODES = 8
#: How exactly weights must add up to 1, the mean to 0 and the variance to 1.
TOLERANCE = 1e-6


class Mode(Value):
    """A normal mode: the share of draws that come from it, and their mean and standard deviation."""

    weight: Annotated[Positive, Field(le=1)]
    mean: Number
    sd: NonNegative


def _standardised(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    total = sum(mode.weight for mode in modes)
    if abs(total - 1.0) > TOLERANCE:
        raise fault(f"has weights that add up to {total:.9g} instead of 1", remedy="Divide each by their sum.")
    mean = sum(mode.weight * mode.mean for mode in modes)
    variance = sum(mode.weight * (mode.mean**2 + mode.sd**2) for mode in modes)
    if abs(mean) > TOLERANCE or abs(variance - 1.0) > TOLERANCE:
        raise fault(
            f"has the mean {mean:.9g} and the variance {variance:.9g}; a mixture is in units of sigma, with "
            "mean 0 and variance 1",
            remedy="Subtract the mean from each mode's mean, divide means and sd by the square root of the variance.",
        )
    return modes


#: Modes whose mixture has mean 0 and variance 1, so that it stands wherever another noise of variance 1 could.
Modes = Annotated[tuple[Mode, ...], Field(min_length=1, max_length=MOST_MODES), AfterValidator(_standardised)]


def core_modes(modes: tuple[Mode, ...] | None) -> list[tuple[float, float, float]]:
    """(cumulative weight, mean, sd) of each mode as the engine takes them; empty for None."""
    rows, cumulative = [], 0.0
    for mode in modes or ():
        cumulative += mode.weight
        rows.append((cumulative, mode.mean, mode.sd))
    return rows
