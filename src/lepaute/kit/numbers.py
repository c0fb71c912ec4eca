"""Arguments as callers from Python give them: numbers and texts of any library, and refusals of other types."""

import math
import operator
import os
from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from typing import Any

from lepaute.errors import InputError, WrongType


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
        truth = getattr(getattr(value, "dtype", None), "kind", "") == "b" and getattr(value, "shape", None) == ()
        return bool(value) if truth else float(value) if isinstance(value, Real) else value


def none_if_nan(value: float) -> float | None:
    """A number as JSON has it, which knows no NaN."""
    return None if math.isnan(value) else value


def of_type(value: Any, name: str, kind: type | tuple[type, ...], example: str) -> Any:
    """The value itself where it is a `kind`; raises WrongType for anything else, a class among it.

    name, example: for the message; "application", "lepaute.Hpl(n=20_000, nb=128, p=4, q=4)"
    """
    if not isinstance(value, kind):
        raise WrongType(f"{name} is {value!r:.80}, a {type(value).__name__}; give {example}")
    return value


def path_of(value: Any, name: str) -> Path:
    """A path that is given as a text or a path; raises WrongType for anything else."""
    if not isinstance(value, str | os.PathLike):
        raise WrongType(f"{name} is {value!r:.80}, a {type(value).__name__}; give the name of a file, a text or a path")
    return Path(value)


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
    return tuple(map(str, of_type(value, name, Iterable, f"a list of texts, such as {example}")))
