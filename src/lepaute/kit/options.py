"""What a field of a dataclass is on a command line: described beside the field, turned into options by `cli`.

@dataclass(frozen=True)
class Request:
    walltime_s: float | None = field(default=None, metadata=option("How long.", name="walltime", parse=seconds_of))
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, NamedTuple

from lepaute.errors import InputError
from lepaute.kit.numbers import plain
from lepaute.kit.quantities import share_of, time_of

_KEY = "option"
#: No time, rate or size is larger; products of a few such numbers stay finite.
_LARGEST_REAL = 1e18
#: That lists of values may ask for; each has at least one simulated run.
MAX_COMBINATIONS = 100_000


class Option(NamedTuple):
    """One option, of a field whose default is the option's too.

    name    : after the two dashes; where it is empty the field's name, with hyphens, and without the unit of a quantity
    also    : other names, with their dashes: -o
    metavar : what stands for the value in the help text; its type where it is empty
    choices : the values that the field takes; () where it is no choice
    numbered: the file that numbers the choices from 0, for the help; none: a number is taken, but not told of
    aliases : (word, value): other words for the choices on the command line
    parse   : from the text given to the field's value; raises InputError; None: Typer converts to the field's type
    quantity: as `parse`, with the option's name for messages
    given_as: the type on the command line, where it is not the field's (text where `parse` is given)
    default : on the command line, where it is not the field's
    complete: words that a shell proposes, besides the choices
    argument: whether it is given by its place, without a name
    heading : what it stands under in help, where cli/parsing.py does not name it
    Fields that share a name are given together, in the order of the fields: 8x4.
    """

    help: str
    name: str = ""
    also: tuple[str, ...] = ()
    metavar: str = ""
    choices: tuple[str, ...] = ()
    numbered: str = ""
    aliases: tuple[tuple[str, str], ...] = ()
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    parse: Callable[[Any], Any] | None = None
    quantity: Callable[[str, str], Any] | None = None
    given_as: type | None = None
    default: Any = None
    hidden: bool = False
    complete: Callable[[], list[str]] | None = None
    argument: bool = False
    heading: str = ""


#: Of fields in seconds, and of shares of 1: `option_field(None, "How long.", **TIME)`.
TIME: Mapping[str, Any] = {"metavar": "TIME", "quantity": time_of}
SHARE: Mapping[str, Any] = {"metavar": "SHARE", "quantity": share_of}


def option(help: str, **more: Any) -> dict[str, Option]:  # noqa: A002 - as Typer calls it
    """The `metadata` of a dataclass field that is an option; `more` as the fields of `Option`."""
    return {_KEY: Option(help, **more)}


def option_field(default: Any, help: str, **more: Any) -> Any:  # noqa: A002
    """A dataclass field that is an option; a default that `quantity` reads is given as text, as on the command line."""
    if default is None or default is MISSING or "quantity" not in more:
        return dataclasses.field(default=default, metadata=option(help, **more))
    return dataclasses.field(default=more["quantity"](default, help), metadata=option(help, default=default, **more))


def option_of(field: "Field[Any]") -> Option | None:
    """How a field is described; None if it is no option."""
    described = field.metadata.get(_KEY)
    return described if isinstance(described, Option) else None


def options_of(described: type) -> Mapping[str, Option]:
    """The options of a dataclass, by field, in the order of its fields."""
    return {field.name: each for field in fields(described) if (each := option_of(field)) is not None}


def check_fields(value: object, *, largest: int) -> None:
    """Raises InputError if a field of a dataclass instance is not what its option allows; numbers become Python's.

    Checked are choices, bounds and truth values; numbers are finite and at most 1e18, those of fields of type int whole
    and at most `largest`. None is right where it is the default.
    """
    described_class: Any = type(value)
    for name, (described, default, number) in _limits_of(described_class).items():
        given = getattr(value, name)
        if given is None and default is None:
            continue
        if type(plain(given)) is not type(given):  # NumPy's become Python's
            given = plain(given)
            object.__setattr__(value, name, given)
        if described.choices:
            if given not in described.choices:
                raise InputError(f"{name} is {given!r}; it must be one of {', '.join(described.choices)}")
            continue
        whole = number is int
        kind = "true or false" if number is bool else "a whole number" if whole else "a finite number"
        least = "" if described.minimum is None else f" >= {described.minimum:g}"
        wrong_type = isinstance(given, bool) != (number is bool) or not isinstance(given, int if whole else int | float)
        too_small = not wrong_type and described.minimum is not None and given < described.minimum
        if wrong_type or too_small or not (whole or math.isfinite(given)):
            raise InputError(f"{name} is {given!r:.80}; it must be {kind}{least}")
        if whole and abs(given) > largest:
            raise InputError(f"{name} is {str(given)[:80]}; the largest value is {largest}")
        most = _LARGEST_REAL if described.maximum is None else described.maximum
        if abs(given) > most and not (whole and described.maximum is None):
            raise InputError(f"{name} is {given:g}; it must be at most {most:g}")


def word_of(given: str, choices: Sequence[str], name: str, aliases: Iterable[tuple[str, str]] = ()) -> str:
    """The choice that a word, in any case, an alias or its number stands for; raises InputError for anything else."""
    if given.isascii() and given.isdigit() and len(given) < 4 and int(given) < len(choices):
        return choices[int(given)]
    words = {word.casefold(): choice for word, choice in (*aliases, *zip(choices, choices, strict=True))}
    if given.casefold() in words:
        return words[given.casefold()]
    raise InputError(f"{name} is {given[:80]!r}; it must be one of {', '.join(choices)} (or 0 to {len(choices) - 1})")


@cache
def _limits_of(described: Any) -> Mapping[str, tuple[Option, Any, type | None]]:
    """Option, default, and type (bool, int or float), of each field that has one of these or has choices."""
    limits = {}
    for field in fields(described):
        option = option_of(field)
        number = next((each for each in (bool, int, float) if field.type in (each, each | None)), None)
        if option is not None and (option.choices or number is not None):
            limits[field.name] = (option, field.default, number)
    return limits


def flag_of(described: type, field_name: str) -> str:
    """A field as the command line spells it: --ssh-config."""
    described_option = options_of(described)[field_name]
    name = field_name if described_option.quantity is None else field_name.removesuffix("_s")
    return f"--{described_option.name or name.replace('_', '-')}"
