"""Numbers and texts as Python has them, whatever library they come from."""

import operator
from numbers import Real
from typing import Any

from lepaute.errors import InputError


def plain(value: Any) -> Any:
    """The numbers and texts of NumPy as Python's own; anything else as it is, to be refused by what comes next."""
    if isinstance(value, bool):
        return value
    for python_type in (int, float, str):
        if isinstance(value, python_type):
            return python_type(value)
    try:
        return operator.index(value)
    except TypeError:
        return float(value) if isinstance(value, Real) else value


def whole(value: Any, name: str, low: int, below: int, bounds: str = "") -> int:
    """A whole number >= low and < below, also one of NumPy's; raises InputError for anything else.

    name, bounds: for the message; "0 to 2^63 - 1"
    """
    given = plain(value)
    if type(given) is not int or not low <= given < below:
        raise InputError(f"{name} is {value!r:.80}; it is a whole number from {bounds or f'{low} to {below - 1}'}")
    return given


def texts(value: Any, name: str, example: str) -> tuple[str, ...]:
    """The texts of a sequence; raises InputError for a text by itself, whose letters nobody means."""
    if isinstance(value, str | bytes):
        raise InputError(f"{name} is {value!r:.80}, one text; give a list of them, such as {example}")
    return tuple(map(str, value))
