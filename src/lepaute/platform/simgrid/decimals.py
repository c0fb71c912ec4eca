"""Numbers as texts that say exactly what is meant.

A factor is a bandwidth over another; written as the quotient of two doubles it would not always give the first one
back. With 20 digits it does: the error is far below half a unit in the last place of a double.
"""

from decimal import Context, Decimal

_WRITTEN = Context(prec=20)
_EXACT = Context(prec=60)


def exact(number: float) -> Decimal:
    """`number` as it is, to the last bit."""
    return Decimal(number)


def quotient(number: Decimal, divisor: Decimal) -> Decimal:
    """`number` / `divisor`, 20 digits."""
    return _WRITTEN.divide(number, divisor)


def text_of(number: Decimal) -> str:
    """The shortest text of `number`, such as 0.795 or 1.5E-7."""
    return str(_WRITTEN.plus(number).normalize(_WRITTEN))


def product(*factors: Decimal) -> Decimal:
    """The product of `factors`, exact for as many digits as files have."""
    result = Decimal(1)
    for factor in factors:
        result = _EXACT.multiply(result, factor)
    return result
