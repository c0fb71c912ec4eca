"""How much longer calls take because some are interrupted, when few calls tell.

A short kernel is called for milliseconds in all; one interruption of ten milliseconds among its calls says nothing
about its rate, but would make it ten times as slow. Interruptions are a property of the machine and come by time, so a
kernel that has met few of them takes the share of all kernels together.
"""

from collections.abc import Iterable

from lepaute.fit.kernels.polynomial import PolynomialFit

#: As many interruptions of a kernel's own count as much as all others together.
OWN_CALLS = 20.0


def machine_excess(fits: Iterable[PolynomialFit]) -> float:
    """Time above the cut over time below it, of all fits together."""
    above = below = 0.0
    for fit in fits:
        part = fit.time_s / (1.0 + fit.excess)
        below += part
        above += part * fit.excess
    return above / below if below > 0 else 0.0


def settled(fit: PolynomialFit, machine: float) -> PolynomialFit:
    """The fit with a tail between its own (many interruptions) and that of the machine (few)."""
    own = fit.excess_calls / (fit.excess_calls + OWN_CALLS)
    return fit.grown(1.0 + own * fit.excess + (1.0 - own) * machine)
