"""Other values of HPL's options, from their declaration: tests use them to see whether each option has an effect."""

from dataclasses import MISSING, fields
from typing import Any

from lepaute.cli.options import flags_of
from lepaute.kit.options import options_of
from lepaute.simulate import Hpl


def other_values() -> dict[str, tuple[Any, ...]]:
    """Of each field with a default: its choices; or the default, and the next number or the other truth value."""
    choices = {name: option.choices for name, option in options_of(Hpl).items()}
    defaults = {field.name: field.default for field in fields(Hpl) if field.default is not MISSING}
    return {name: choices[name] or (default, _after(default)) for name, default in defaults.items()}


def _after(default: Any) -> int | bool:
    return not default if isinstance(default, bool) else (default or 0) + 1


def other_words() -> dict[str, str]:
    """Of each option that is given alone: its name on the command line, and a word for another value."""
    values = other_values()
    alone = {flag.name: flag.fields[0] for flag in flags_of(Hpl) if len(flag.fields) == 1}
    words = {
        name: [value for value in values[field.name] if value != field.default][-1]
        for name, field in alone.items()
        if field.name in values
    }
    return {name: str(int(value) if isinstance(value, bool) else value) for name, value in words.items()}
