"""Commands and their parameters, Typer's but for this: what `--help` shows, which values are refused, in which words.

Typer names values by Python's types (`<list[str]>`), cuts the summaries in a list of subcommands, takes an empty path
for the working folder, and does not say of a number that it refuses what it is.
"""

import os
import re
from math import inf
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from lepaute.cli.examples import EXAMPLES
from lepaute.cli.help_groups import long_name, write_parameters
from lepaute.errors import InputError

_OF_A_TYPE = {int: "N", float: "X", bool: "0|1", Path: "PATH", str: "TEXT"}
#: Of a value that Typer has to convert.
NOT_PLAIN = object()
_NUMBERS = {
    int: re.compile(r"-?[0-9]{1,15}"),
    float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][-+]?[0-9]{1,2})?"),
}


class _Parameter:
    """What options and arguments have in common."""

    def process_value(self: Any, context: typer.Context, given: Any) -> Any:
        """The value; raises InputError for a path or a number that cannot be, or for several with commas between."""
        types = _types_in(self.type_descriptor.annotation)
        if not types & {Path, float} and (int not in types or bool in types):
            return self.converted(context, given)
        name = long_name(self)
        if Path in types and "" in (given if isinstance(given, list | tuple) else [given]):
            raise InputError(f"{name}: the path is empty; give one")
        if not types & {Path, float} and isinstance(given, str) and "," in given:
            raise InputError(f"{name} is {given[:80]!r}; it takes one whole number{_elsewhere(name, context)}")
        try:
            value = self.converted(context, given)
        except typer.BadParameter as refusal:
            if (requirement := _requirement(str(refusal.message))) is None:
                raise
            raise InputError(f"{name} is {given!r:.80}; it must be {requirement}") from None
        if isinstance(value, float) and not -inf < value < inf:
            raise InputError(f"{name} is {given:.80}; it must be a finite number")
        return value

    def converted(self: Any, context: typer.Context, given: Any) -> Any:
        """As Typer converts it; what is plain without Pydantic, which takes longer to load than a prediction."""
        if self.callback is not None and self.is_flag:  # --help
            return self.callback(context, self, given)
        plain = self.plain(given)
        return super().process_value(context, given) if plain is NOT_PLAIN else plain  # type: ignore[misc]

    def plain(self: Any, given: Any) -> Any:
        """The value of usual texts, or of a default, which is of the type already; NOT_PLAIN for any other."""
        described = self.type_descriptor
        is_list, is_several = get_origin(described.annotation) is list, self.multiple or self.nargs == -1
        is_bare = given is None or (is_several and not given)
        if self.callback is not None or is_list != is_several or (is_bare and self.required):
            return NOT_PLAIN
        if given is None:
            return () if is_several else None
        type_ = get_args(described.annotation)[0] if is_list else described.annotation
        values = [_plain_value(type_, described.parameter_info, each) for each in (given if is_list else [given])]
        return NOT_PLAIN if NOT_PLAIN in values else values if is_list else values[0]

    def dress(self: Any) -> None:
        """A sentence as help, which leaves a value that it begins with as it is, and a name for the value."""
        text = (self.help or "").strip()
        word = text.split(maxsplit=1)[0].rstrip(",:;") if text else ""
        is_value = "=" in word or "_" in word or word in {str(self.default), *(self.metavar or "").split("|")}
        first = text[:1] if is_value else text[:1].upper()
        self.help = text and f"{first}{text[1:]}{'' if text[-1] in '.:!?' else '.'}"


class Option(_Parameter, TyperOption):
    """An option, whose value has a name."""

    def dress(self) -> None:
        super().dress()
        if self.metavar is None and not self.is_flag:
            types = _types_in(self.type_descriptor.annotation)
            self.metavar = next((name for type_, name in _OF_A_TYPE.items() if type_ in types), "TEXT")


class Argument(_Parameter, TyperArgument):
    """An argument: its type says nothing that its name and help do not; required is what stands without brackets."""

    is_flag = multiple = False

    def dress(self) -> None:
        super().dress()
        self.metavar = self.metavar or self.name.upper()

    def display_type_rich(self, ctx: Any) -> None:  # noqa: ARG002
        return None

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        name = str(self.metavar)
        return [name if self.required else f"[{name.strip('[]')}]"]


class _Help:
    """What commands and groups of them have in common."""

    def __init__(self: Any, **settings: Any) -> None:
        settings["params"] = [_own(parameter) for parameter in settings.get("params") or ()]
        super().__init__(**settings)
        for parameter in self.params:
            parameter.dress()

    def get_help_option(self: Any, ctx: typer.Context) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None and not isinstance(option, Option):
            self._help_option = option = _own(option)
        return option

    def get_short_help_str(self: Any, _limit: int = 0) -> str:
        """The first sentence, whole."""
        return " ".join((self.help or "").strip().split("\n\n")[0].split()).split(". ")[0].rstrip(".")

    def format_epilog(self: Any, ctx: typer.Context, formatter: Any) -> None:
        if lines := EXAMPLES.get(ctx.command_path.removeprefix("lepaute ")):
            # \b keeps the lines of a paragraph as they are.
            self.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
        super().format_epilog(ctx, formatter)  # type: ignore[misc]


class Command(_Help, TyperCommand):
    """A command, whose options stand under headings."""

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:
        write_parameters(self, ctx, formatter)

    def invoke(self, ctx: typer.Context) -> Any:
        """As Typer's; a refusal that begins with the Python name of an argument has the option instead."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            name, is_, complaint = str(error).partition(" is ")
            if option := next((long_name(each) for each in self.params if name in (each.name, *each.opts)), ""):
                error.args = (f"{option}{is_}{complaint}",)
            raise


class Group(_Help, TyperGroup):
    """A command with subcommands."""


def _own(parameter: Any) -> Any:
    """A parameter that Typer has made as one of ours: it has no way to name the class."""
    made: Any = object.__new__(Argument if parameter.param_type_name == "argument" else Option)
    made.__dict__.update(parameter.__dict__)
    return made


def _types_in(annotation: Any) -> set[Any]:
    return {annotation}.union(*map(_types_in, get_args(annotation)))


def _plain_value(type_: Any, limits: Any, given: Any) -> Any:
    """The value of a usual text, or of a default, which is of the type already; NOT_PLAIN for any other."""
    if type_ in (str, bool) and type(given) is type_:
        return given
    if type_ in _NUMBERS and (type(given) is type_ or (type(given) is str and _NUMBERS[type_].fullmatch(given))):
        number = type_(given)
        if (limits.min is None or number >= limits.min) and (limits.max is None or number <= limits.max):
            return number
    if type_ is Path and isinstance(given, str | Path) and _is_usual(limits):
        text = str(given)
        if "\0" not in text and (os.access(text, os.R_OK) or not os.path.exists(text)):  # noqa: PTH110 - raises for a long name
            return Path(given)
    return NOT_PLAIN


def _is_usual(path: Any) -> bool:
    """Whether an option takes any path, there or not."""
    return path.file_okay and path.dir_okay and not (path.exists or path.writable or path.resolve_path or path.parser)


def _requirement(message: str) -> str | None:
    """What a value must be, of Typer's message about one that is not; None where that speaks of something else."""
    if bound := re.search(r"(greater|less) than or equal to (\S+)", message):
        return f"at {'least' if bound[1] == 'greater' else 'most'} {bound[2]}"
    if kind := re.search(r"as an? (integer|number)", message):
        return "a whole number" if kind[1] == "integer" else "a number"
    return None


def _elsewhere(name: str, context: typer.Context) -> str:
    """Where several values of an option of HPL go, for a command that predicts all combinations of an HPL.dat."""
    options = {each for parameter in context.command.params for each in parameter.opts}
    if "--dat" not in options:
        return ""
    from lepaute.simulate.apps.hpl.parameters import SEVERAL, in_hpl_dat

    return f"; {SEVERAL}" if in_hpl_dat(name) else ""
