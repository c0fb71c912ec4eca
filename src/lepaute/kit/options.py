"""What a field of a dataclass is on a command line: described beside the field, turned into options by `cli`.

@dataclass(frozen=True)
class Request:
    walltime_s: float | None = field(default=None, metadata=option("How long.", name="walltime", parse=seconds_of))
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from typing import Any

_KEY = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """One option, of a field whose default is the option's too.

    help    : one phrase
    name    : after the two dashes; the field's name, with hyphens, where it is empty
    metavar : what stands for the value in the help text; its type where it is empty
    choices : the values that the field takes; () where it is no choice
    unit    : of a number
    minimum, maximum: of a number; both are allowed
    parse   : from the text given to the field's value; raises InputError; None: Typer converts to the field's type
    given_as: the type on the command line, where it is not the field's (text where `parse` is given)
    """

    help: str
    name: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    parse: Callable[[Any], Any] | None = None
    given_as: type | None = None


def option(help: str, **more: Any) -> dict[str, Option]:  # noqa: A002 - as Typer calls it
    """The `metadata` of a dataclass field that is an option; `more` as the fields of `Option`."""
    return {_KEY: Option(help, **more)}


def option_of(field: "Field[Any]") -> Option | None:
    """How a field is described; None where it is no option."""
    described = field.metadata.get(_KEY)
    return described if isinstance(described, Option) else None


def options_of(described: type) -> Mapping[str, Option]:
    """The options of a dataclass, by field, in the order of its fields."""
    return {field.name: each for field in fields(described) if (each := option_of(field)) is not None}


def flag_of(described: type, field_name: str) -> str:
    """A field as the command line spells it: --ssh-config."""
    return f"--{options_of(described)[field_name].name or field_name.replace('_', '-')}"
