"""The order in which a person expects names and levels: by the numbers in them, not letter by letter."""

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*(?:([kKmMgGtT])(i?))?[bB]?\s*")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def level_order(levels: Iterable[str]) -> list[str]:
    """The distinct levels of a factor in their order.

    Numbers and sizes (1e-6, 64KiB, 1M) by their value where all levels are such, else names by the numbers in them.
    """
    distinct = sorted(set(levels))
    values = [_value(level) for level in distinct]
    if any(value is None for value in values):
        return sorted(distinct, key=natural_order)
    of_level = dict(zip(distinct, values, strict=True))
    return sorted(distinct, key=lambda level: (of_level[level] or 0.0, level))


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """A key to sort names by, in which the whole numbers in them count as numbers: node-2 before node-10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]


def _value(level: str) -> float | None:
    """The number that a level is, None where it is none; k is 1000, Ki 1024."""
    match = _NUMBER.fullmatch(level)
    if match is None:
        return None
    number, letter, binary = match.groups()
    return float(number) * (1024.0 if binary else 1000.0) ** _POWERS[(letter or "").lower()]
