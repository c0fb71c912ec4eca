"""Options of commands made of the fields of a dataclass, which carry default, help and bounds themselves.

@with_options_of(Request, "request")
def command(output: ..., request: Request, resume: ...) -> None:
    ...

has --nodes, --count, ... in the place of its argument `request`, and is called with a Request.
"""

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from lepaute.kit.options import Option, flag_of, option_of

Result = TypeVar("Result")


def with_options_of(
    described: type, argument: str, *, leave_out: Collection[str] = (), make: Callable[..., Any] | None = None
) -> "Callable[[Callable[..., Result]], Callable[..., Result]]":
    """Decorates a command: its `argument` becomes the options of a dataclass, of which it gets the value.

    leave_out: fields that the command has options of its own for
    make     : gets the values by field name; the dataclass itself unless given
    """
    chosen = {field.name: field for field in fields(described) if field.name not in leave_out}
    options = {name: each for name, field in chosen.items() if (each := option_of(field)) is not None}

    def decorate(command: "Callable[..., Result]") -> "Callable[..., Result]":
        @functools.wraps(command)
        def with_value(**given: Any) -> Result:
            values = {name: parsed(given.pop(name), each) for name, each in options.items()}
            return command(**given, **{argument: (make or described)(**values)})

        signature = inspect.signature(command)
        hints = get_type_hints(described)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name != argument:
                parameters.append(parameter)
                continue
            parameters += [_parameter(described, chosen[name], hints[name], each) for name, each in options.items()]
        with_value.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        )
        with_value.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_value

    return decorate


def parsed(value: Any, option: Option) -> Any:
    """The field's value of an option's; None, which says that it was not given, stays."""
    return value if value is None or option.parse is None else option.parse(value)


def _parameter(described: type, field: "Field[Any]", hint: Any, option: Option) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    given_as = option.given_as or (str if option.parse is not None else None)
    if given_as is not None:
        hint = given_as | None if default is None else given_as
        default = default if default is None or default is inspect.Parameter.empty else given_as(default)
    info = typer.Option(
        flag_of(described, field.name),
        help=option.help,
        metavar=option.metavar or None,
        min=option.minimum,
        max=option.maximum,
    )
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(field.name, kind, default=default, annotation=Annotated[hint, info])
