"""Quantities as people type them: 500k, 8x8."""

from lepaute.errors import InputError

SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9}


def count(text: str, name: str) -> int:
    """A whole number with an optional suffix k, M or G (powers of ten); raises InputError for anything else."""
    digits, factor = (text[:-1], SUFFIXES[text[-1].lower()]) if text[-1:].lower() in SUFFIXES else (text, 1)
    try:
        value = float(digits) * factor
    except ValueError:
        value = 0.5  # no number: refused like one that is not whole
    if not value.is_integer():
        raise InputError(f"{name} is {text!r}; it is a whole number such as 20000 or 20k")
    return int(value)


def grid_of(text: str) -> tuple[int, int]:
    """(p, q) of PxQ; raises InputError for anything else."""
    p, separator, q = text.lower().partition("x")
    if not separator or not p.isdigit() or not q.isdigit():
        raise InputError(f"grid is {text!r}; it is P x Q such as 8x8")
    return int(p), int(q)


def settings_of(texts: list[str]) -> dict[str, str]:
    """FIELD=VALUE texts by field; raises InputError for a text without a value."""
    settings = {}
    for text in texts:
        field, separator, value = text.partition("=")
        if not separator or not field:
            raise InputError(f"--set {text}: write FIELD=VALUE, such as network.flow_factor=scale")
        settings[field] = value
    return settings
