"""Options of commands: those that many have, and those made of the fields of a dataclass (`kit.options`).

@app.command()
def measure(output: ..., request: Request, resume: ...) -> None:
    ...

of an App has --nodes, --count, ... instead of its argument `request`, and is called with a Request.
"""

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import typer

from lepaute.cli.parsing import Command, Group
from lepaute.errors import InputError
from lepaute.kit.options import MAX_COMBINATIONS, Option, flag_of, option_of, options_of, word_of
from lepaute.kit.quantities import product_of

FORCE_HELP = "overwrite existing files"
Force = Annotated[bool, typer.Option("--force", help=FORCE_HELP)]
JSON_HELP = "one JSON object on standard output"
AsJson = Annotated[bool, typer.Option("--json", help=JSON_HELP)]
#: Of --json where the file itself would go to standard output.
TELLS_OF_A_FILE = "tells what was written to a file; name it with --output"
DETAILS_HELP = "show everything behind the answer, and every warning in full"
PictureFile = Annotated[Path, typer.Option("--output", "-o", help="The picture, .png or .svg.", show_default=False)]
Details = Annotated[bool, typer.Option("--details", help=DETAILS_HELP)]


def option(help: str, *names: str, **more: Any) -> Any:  # noqa: A002
    """An option; names: with their dashes, unless it has that of the parameter; more: as of typer.Option."""
    return typer.Option(*names, help=help, **more)


def argument(metavar: str, help: str, *, show_default: bool = False, **more: Any) -> Any:  # noqa: A002
    """An argument; more: as of typer.Argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=show_default, **more)


def page_option(help: str) -> Any:  # noqa: A002
    """The option --report."""
    return option(help, "--report", metavar="FILE.html")


Result = TypeVar("Result")
#: Key of the values of an option that may be given several of.
COMBINATIONS = "*"


def with_options_of(
    described: type,
    argument: str,
    *,
    leave_out: Collection[str] = (),
    may_lack: Collection[str] = (),
    several: Collection[str] = (),
    make: Callable[..., Any] | None = None,
) -> "Callable[[Callable[..., Result]], Callable[..., Result]]":
    """Decorates a command: its `argument` becomes the options of a dataclass, of which it gets the value.

    leave_out: fields that the command has options of its own for
    may_lack : fields without a default that need not be given all the same; they are None then
    several  : arguments of which several values may be given, with commas in between; `make` gets their combinations
               as a list of dictionaries under COMBINATIONS, besides the values of the first one
    make     : gets the values by field name; default: the dataclass itself
    """
    flags, hints = flags_of(described, leave_out), get_type_hints(described)

    def values_of(options: dict[str, Any]) -> dict[str, Any]:
        """The values of the fields; takes their options out of those of the command."""
        values: dict[str, Any] = {}
        each: list[dict[str, Any]] = [{}]
        for flag in flags:
            given = options.pop(flag.argument)
            if flag.argument in several and given is not None:
                parts = [flag.values(flag.converted(part, hints)) for part in given.split(",")]
                if len(each) * len(parts) > MAX_COMBINATIONS:
                    raise InputError(f"the lists ask for more than {MAX_COMBINATIONS} combinations; shorten them")
                each = [one | part for one in each for part in parts]
            else:
                values |= flag.values(given)
        return values | each[0] | ({COMBINATIONS: each} if several else {})

    def decorate(command: "Callable[..., Result]") -> "Callable[..., Result]":
        @functools.wraps(command)
        def with_value(**options: Any) -> Result:
            value = (make or described)(**values_of(options))  # which takes them out of the options
            return command(**options, **{argument: value})

        signature = inspect.signature(command)
        made = [flag.parameter(hints, flag.fields[0].name in may_lack, flag.argument in several) for flag in flags]
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in signature.parameters.values()
            for each in (made if parameter.name == argument else [parameter])
        ]
        with_value.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_value.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_value

    return decorate


class App(typer.Typer):
    """Commands with the options of all dataclasses that annotate their parameters."""

    def __init__(self, **settings: Any) -> None:
        # Without Rich, which takes 40 ms to load, and without options about completion by shells.
        super().__init__(cls=Group, rich_markup_mode=None, add_completion=False, **settings)

    def command(self, name: str | None = None, cls: Any = None) -> Callable[..., Any]:  # type: ignore[override]
        """As Typer's."""
        register = super().command(name, cls=cls or Command)

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            for parameter in inspect.signature(function).parameters.values():
                if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation):
                    function = with_options_of(parameter.annotation, parameter.name)(function)
            return register(function)

        return add


class Flag(NamedTuple):
    """One option of the command line: of a field, or of several that are given together, as 8x4."""

    name: str  # with its dashes
    fields: "tuple[Field[Any], ...]"
    option: Option

    @property
    def argument(self) -> str:
        """The name of the command's parameter."""
        return self.fields[0].name if len(self.fields) == 1 else self.option.name

    @property
    def is_required(self) -> bool:
        return self.option.default is None and self.fields[0].default is MISSING

    @property
    def is_text(self) -> bool:
        """Whether we parse the value from a string, rather than Typer."""
        return len(self.fields) > 1 or self.option.parse is not None or self.option.quantity is not None

    def values(self, given: Any) -> dict[str, Any]:
        """The values of the fields; None, which says that the option was not given, stays."""
        names, option = [field.name for field in self.fields], self.option
        if given is None:
            return dict.fromkeys(names)
        if len(names) > 1 and option.quantity is None:
            form = f"{' x '.join(name.upper() for name in names)} such as {'x'.join('8' for _ in names)}"
            return dict(zip(names, product_of(given, option.name, form), strict=True))
        if option.quantity is not None:
            value = option.quantity(given, self.name)
            return dict(zip(names, value if len(names) > 1 else [value], strict=True))
        if option.parse is not None:
            return {names[0]: option.parse(given)}
        return {names[0]: word_of(given, option.choices, names[0], option.aliases) if option.choices else given}

    def converted(self, text: str, hints: dict[str, Any]) -> Any:
        """What `values` takes, of a text that Typer has not converted; hints: annotations of the dataclass."""
        hint = str if self.is_text else self.option.given_as or hints[self.fields[0].name]
        type_ = next((part for part in get_args(hint) if part is not type(None)), hint)
        if type_ is bool:
            if text not in ("yes", "no"):
                raise InputError(f"{self.name} is {text[:80]!r}; it is yes or no")
            return text == "yes"
        try:
            return type_(text) if type_ in (int, float, Path) else text
        except ValueError:
            number = "whole number" if type_ is int else "number"
            raise InputError(f"{self.name} is {text[:80]!r}; it must be a {number}") from None

    def parameter(self, hints: dict[str, Any], may_lack: bool, several: bool = False) -> inspect.Parameter:
        """The parameter of a command, as Typer takes it."""
        first, option, metavar = self.fields[0], self.option, self.option.metavar
        default, hint = first.default if option.default is None else option.default, hints[first.name]
        if default is MISSING:
            default = None if may_lack else inspect.Parameter.empty
        elif len(self.fields) > 1:
            default = "x".join(str(field.default) for field in self.fields)
        if option.choices:
            hint = str if default is not None else str | None  # a word in any case, an alias or a code, too
        if several:
            metavar = f"{metavar or ('N' if hint in (int, int | None) else 'TEXT')},..."
        if option.given_as is not None or self.is_text or several:
            given_as = option.given_as or str
            hint = given_as | None if default is None else given_as
            default = default if default is None or default is inspect.Parameter.empty else given_as(default)
        explained = option.help
        if option.choices:
            *words, last = option.choices
            numbered = f", or its number in {option.numbered}, from 0" if option.numbered else ""
            explained += f": {', '.join(words)} or {last}{numbered}"
        kind = inspect.Parameter.KEYWORD_ONLY
        if option.argument:
            place = typer.Argument(help=explained, metavar=option.metavar or None, show_default=False)
            return inspect.Parameter(self.argument, kind, default=default, annotation=Annotated[hint, place])
        info = typer.Option(
            self.name,
            *option.also,
            help=explained,
            metavar=metavar or None,
            min=None if self.is_text or several else option.minimum,
            max=None if self.is_text or several else option.maximum,
            rich_help_panel=option.heading or None,
            autocompletion=option.complete or ((lambda: list(option.choices)) if option.choices else None),
        )
        return inspect.Parameter(self.argument, kind, default=default, annotation=Annotated[hint, info])


def flags_of(described: type, leave_out: Collection[str] = ()) -> list[Flag]:
    """The options of a dataclass, in the order of its fields; those that share a name are one."""
    together: dict[str, list[Field[Any]]] = {}
    for field in fields(described):
        option = option_of(field)
        if option is not None and not option.hidden and field.name not in leave_out:
            together.setdefault(flag_of(described, field.name), []).append(field)
    options = options_of(described)
    return [Flag(name, tuple(each), options[each[0].name]) for name, each in together.items()]


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the command line has the option, rather than its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def arguments_of(*described: type) -> frozenset[str]:
    """The parameters that a command has of dataclasses."""
    return frozenset(flag.argument for cls in described for flag in flags_of(cls))


def refuse_options(context: typer.Context, arguments: Collection[str], why: str) -> None:
    """Raises InputError, naming them, where the command line has any of these parameters, which nothing would use."""
    words = [
        next((word for word in parameter.opts if word.startswith("--")), (parameter.metavar or "").strip("[]"))
        for parameter in context.command.params
        if parameter.name in arguments and is_given(context, parameter.name)
    ]
    if words:
        raise InputError(f"{why}; leave out {', '.join(words)}")


def reject_other_options(context: typer.Context, used: Collection[str], why: str) -> None:
    """As `refuse_options`, of all parameters but these."""
    refuse_options(context, {parameter.name for parameter in context.command.params} - {*used}, why)
