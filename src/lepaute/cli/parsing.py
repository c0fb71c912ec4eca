"""Commands and their parameters, Typer's but for this: what `--help` shows, which values are refused, in which words.

Typer names values by Python's types (`<list[str]>`), cuts the summaries in a list of subcommands, takes an empty path
for the working folder, and does not say of a number that it refuses what it is.

The help has options under headings: what everybody needs first, the twelve options of HPL.dat last. An option has one
heading in all commands, and its place below it: by GROUPS, or by its own description (kit/options.py) in the order of
the command. It stands without one in a command of few options, and where it would be alone.
"""

import os
import re
from math import inf
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from lepaute.cli import SHOW_WAYS, WAYS
from lepaute.cli.examples import EXAMPLES
from lepaute.errors import InputError, LepauteError
from lepaute.kit.text import with_nonbreaking_units

_OF_A_TYPE = {int: "N", float: "X", bool: "0|1", Path: "PATH", str: "TEXT"}
#: Of a value that Typer has to convert.
NOT_PLAIN = object()
_NUMBERS = {
    int: re.compile(r"-?[0-9]{1,15}"),
    float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][-+]?[0-9]{1,2})?"),
}

#: Fewer options than this stand in one list, in the order of the command.
FEW_OPTIONS = 14
#: What an option without a heading stands under.
OTHER = "Options"
#: Headings in their order, with the options below them.
GROUPS: dict[str, tuple[str, ...]] = {
    heading: tuple(names.split())
    for heading, names in (
        ("Problem", "n memory-fraction nb grid cells iterations threads-per-rank dat np source make binary "
         "time-pattern solve"),
        ("Platform", "platform set lag any transfer like"),
        ("What is measured", "methods after simulate ops sizes datatype op root compute cold factor"),
        (OTHER, ""),
        ("How precisely", "precision budget sessions every mpiruns calls warm-up limit repeats"),
        ("Clocks", "clock-method clock synchronisation"),
        ("Verdict", "margin enough correction primary left right fail-if-slower strict measure-only tolerance "
         "level least-change confidence pooled window"),
        ("Nodes", "scheduler nodes count ranks-per-node job queue walltime constraint account image "
         "ssh-config python switches"),
        ("Where ranks run", "mapping mapping-seed hostfile rankfile map-hosts"),
        ("Simulated runs", "runs seed without fidelity against parts workers"),
        ("Program", "fold private shared-globals skip computing collectives contention memory-share stack stall "
         "timeout every-probe"),
        ("Output", "output report plot scaling json csv latex details quiet archive archives keep-folders "
         "resume force help"),
        ("Trace of a run", "trace perfetto gantt trace-ranks trace-steps"),
        ("HPL.dat", ""),
    )
}  # fmt: skip
#: Headings of commands that have the first of their options; elsewhere the others mean something of their own.
_NEEDS_FIRST = ("Clocks", "Nodes", "Simulated runs", "Program", "Trace of a run")
_PLACES = {name: (heading, at) for heading, names in GROUPS.items() for at, name in enumerate(names)}


class _Parameter:
    """What options and arguments have in common."""

    def process_value(self: Any, ctx: Any, value: Any) -> Any:
        """The value; raises InputError for a path or a number that cannot be, or for several with commas between."""
        types = _types_in(self.type_descriptor.annotation)
        if not types & {Path, float} and (int not in types or bool in types):
            return self.converted(ctx, value)
        name = _long_name(self)
        if Path in types and "" in (value if isinstance(value, list | tuple) else [value]):
            raise InputError(f"{name}: the path is empty; give one")
        if not types & {Path, float} and isinstance(value, str) and "," in value:
            raise InputError(f"{name} is {value[:80]!r}; it takes one whole number")
        try:
            converted = self.converted(ctx, value)
        except typer.BadParameter as refusal:
            if (requirement := _requirement(str(refusal.message))) is None:
                raise
            raise InputError(f"{name} is {value!r:.80}; it must be {requirement}") from None
        if isinstance(converted, float) and not -inf < converted < inf:
            raise InputError(f"{name} is {value:.80}; it must be a finite number")
        return converted

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

    def complete_help(self: Any) -> None:
        """Makes the help a sentence, capitalised unless it begins with a value; subclasses set the default metavar."""
        text = (self.help or "").strip()
        word = text.split(maxsplit=1)[0].rstrip(",:;") if text else ""
        is_value = "=" in word or "_" in word or word in {str(self.default), *(self.metavar or "").split("|")}
        first = text[:1] if is_value else text[:1].upper()
        self.help = text and f"{first}{text[1:]}{'' if text[-1] in '.:!?' else '.'}"


class Option(_Parameter, TyperOption):
    """An option, whose value has a name."""

    def complete_help(self) -> None:
        super().complete_help()
        if self.metavar is None and not self.is_flag:
            types = _types_in(self.type_descriptor.annotation)
            self.metavar = next((name for type_, name in _OF_A_TYPE.items() if type_ in types), "TEXT")


class Argument(_Parameter, TyperArgument):
    """An argument: its type says nothing that its name and help do not; required is what stands without brackets."""

    is_flag = multiple = False

    def complete_help(self) -> None:
        super().complete_help()
        self.metavar = self.metavar or self.name.upper()

    def display_type_rich(self, ctx: Any) -> None:  # noqa: ARG002
        return None

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        name = str(self.metavar)
        return [name if self.required else f"[{name.strip('[]')}]"]


def _continued(line: str, width: int) -> str:
    """A command line, broken before options by backslashes where it is wider."""
    first, *options = re.split(r" (?=-)", line)
    lines = [first]
    for option in options:
        if len(lines[-1]) + len(option) + 1 > width - 2:
            lines.append(f"      {option}")
        else:
            lines[-1] += f" {option}"
    return " \\\n".join(lines)


class _Help:
    """What commands and groups of them have in common."""

    def __init__(self: Any, **settings: Any) -> None:
        settings["params"] = [_adopted(parameter) for parameter in settings.get("params") or ()]
        super().__init__(**settings)
        for parameter in self.params:
            parameter.complete_help()

    def get_help_option(self: Any, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None and not isinstance(option, Option):
            self._help_option = option = _adopted(option)
        return option

    def get_help(self: Any, ctx: Any) -> str:
        """As Typer's, with no line that ends within a quantity."""
        formatter = ctx.make_formatter()
        write_text, write_dl = formatter.write_text, formatter.write_dl
        formatter.write_text = lambda text: write_text(with_nonbreaking_units(text))
        formatter.write_dl = lambda rows: write_dl([(name, with_nonbreaking_units(text)) for name, text in rows])
        self.format_help(ctx, formatter)
        return str(formatter.getvalue()).rstrip("\n").replace("\u00a0", " ")

    def get_short_help_str(self: Any, _limit: int = 0) -> str:
        """The first sentence, whole."""
        return " ".join((self.help or "").strip().split("\n\n")[0].split()).split(". ")[0].rstrip(".")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples of the command, and which way to go with a program of one's own."""
        words = ctx.command_path.removeprefix("lepaute ")
        if lines := EXAMPLES.get(words):
            formatter.write_paragraph()
            with formatter.indentation():
                # \b keeps the lines of a paragraph as they are.
                shown = [_continued(line, formatter.width - 4) for line in lines]
                formatter.write_text("\b\nExamples:\n" + "\n".join(f"  {line}" for line in shown))
        if words in SHOW_WAYS:
            formatter.write_paragraph()
            formatter.write_text(f"\b\n{WAYS}")


class Command(_Help, TyperCommand):
    """A command, whose options stand under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, in the place of Typer's one list."""
        arguments = [record for _, record in records_of(self, ctx, "argument")]
        for heading, records in (("Arguments", arguments), *grouped(self, ctx).items()):
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer's, which takes the last value of an option that is given twice; InputError for one, but a flag."""
        _, _, order = self.make_parser(ctx).parse_args([*args])
        again = [item for at, item in enumerate(order) if item in order[:at]]
        twice = [item for item in again if not (item.multiple or getattr(item, "is_flag", False))]
        if twice and not ctx.resilient_parsing:
            name, takes_list = _long_name(twice[0]), str(twice[0].metavar).endswith(",...")
            words = ((word.partition("="), after) for word, after in zip(args, [*args[1:], ""], strict=True))
            values = [value if is_ else after for (flag, is_, value), after in words if flag in twice[0].opts]
            once = f": {name} {','.join(values)}" if takes_list else ""
            raise InputError(f"{name} is given twice; give it once{once}")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """As Typer's; a refusal that begins with the Python name of an argument has the option instead."""
        try:
            return super().invoke(ctx)
        except LepauteError as error:
            name, is_, complaint = str(error).partition(" is ")
            if option := next((_long_name(item) for item in self.params if name in (item.name, *item.opts)), ""):
                error.args = (f"{option}{is_}{complaint}",)
            raise


class Group(_Help, TyperGroup):
    """A command with subcommands."""


def _adopted(parameter: Any) -> Any:
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


def records_of(command: Any, context: Any, type_name: str) -> list[tuple[Any, tuple[str, str]]]:
    """Parameters of a type, `argument` or `option`, with what is printed of them."""
    parameters = [param for param in command.get_params(context) if param.param_type_name == type_name]
    return [(param, record) for param in parameters if (record := param.get_help_record(context)) is not None]


def grouped(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """What is printed of the options of a command, by heading."""
    shown = records_of(command, context, "option")
    options = {name_of(param): record for param, record in shown}
    if len(options) < FEW_OPTIONS:
        return {OTHER: list(options.values())}
    places = {name_of(param): (getattr(param, "rich_help_panel", None) or OTHER, 0) for param, _ in shown} | _PLACES
    names: dict[str, list[str]] = {heading: [] for heading in GROUPS}
    for name in options:
        heading, _ = places[name]
        belongs = heading not in _NEEDS_FIRST or GROUPS[heading][0] in options
        names[heading if belongs else OTHER].append(name)
    alone = [below[0] for heading, below in names.items() if len(below) == 1 and heading != OTHER]
    return {
        heading: [options[name] for name in options if name in {*below, *alone}]
        if heading == OTHER
        else [options[name] for name in sorted(below, key=places.__getitem__) if name not in alone]
        for heading, below in names.items()
    }


def name_of(parameter: Any) -> str:
    """The first long spelling, without its dashes."""
    return _long_name(parameter).lstrip("-")


def _long_name(parameter: Any) -> str:
    """The first long spelling; of an argument its name."""
    return str(next((each for each in parameter.opts if each.startswith("--")), parameter.opts[0]))
