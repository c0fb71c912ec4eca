"""Commands as Typer has them, set to what all share: what `--help` shows, which values are refused, and in what words;
and how shells complete them.

Typer names values by Python's types (`<list[str]>`), cuts the summaries in a list of subcommands, takes an empty path
for the working folder, and does not say of a number that it refuses what it is.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.main import get_command, get_group

from lepaute.cli import COMMANDS
from lepaute.cli.examples import EXAMPLES
from lepaute.cli.help_groups import write_parameters
from lepaute.cli.options import App
from lepaute.errors import InputError

#: Those that run a program of the user's, with options of its own.
RUN_PROGRAMS = ("emulate", "record")
_OF_A_TYPE = {int: "N", float: "X", bool: "0|1", Path: "PATH", str: "TEXT"}


def built(name: str, arguments: Sequence[str] = ()) -> tuple[Any, str | None]:
    """The command `name` from its module, and which of its subcommands is meant where none is named."""
    place = next(command.place for command in COMMANDS if command.name == name) or f"{name}:app"
    module_name, _, attribute = place.partition(":")
    module = import_module(f"lepaute.cli.{module_name}")
    target = getattr(module, attribute)
    app = target(arguments) if attribute == "app_for" else target
    is_group = isinstance(app, typer.Typer)
    if not is_group:
        app = App()
        app.command()(target)
    # Not get_command() for a group: it drops the name of an only subcommand ("predict hpl" -> "predict").
    command = get_group(app) if is_group else get_command(app)
    _set_up(command, name)
    return command, getattr(module, "DEFAULT", None)


def _set_up(command: Any, words: str) -> None:
    """Sets a command and all below it; `words` are those after `lepaute`, such as `predict hpl`."""
    for parameter in command.params:
        types = _types_in(parameter.type_descriptor.annotation)
        _dress(parameter, types)
        parameter.process_value = partial(_converted, parameter, parameter.process_value)
        if types & {Path, float} or (int in types and bool not in types):
            name = next((word for word in parameter.opts if word.startswith("--")), parameter.opts[0])
            parameter.process_value = partial(_checked, name, types, parameter.process_value)
    command.get_help_option = partial(_help_option, command.get_help_option)
    command.get_short_help_str = lambda *_limit: _first_sentence(command.help or "")
    if not getattr(command, "commands", None):
        command.format_options = partial(write_parameters, command)
    if words in EXAMPLES:
        # \b keeps the lines of a paragraph as they are.
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[words])
    for name, below in getattr(command, "commands", {}).items():
        _set_up(below, f"{words} {name}")


def _help_option(find: Callable[..., Any], context: typer.Context) -> Any:
    """--help, whose value needs no conversion."""
    if (option := find(context)) is not None:
        option.process_value = lambda context, given: option.callback(context, option, given)
    return option


def _types_in(annotation: Any) -> set[Any]:
    return {annotation}.union(*map(_types_in, get_args(annotation)))


def _dress(parameter: Any, types: set[Any]) -> None:
    """A sentence as help, which leaves a value that it begins with as it is, and a name for the value."""
    text = (parameter.help or "").strip()
    word = text.split(maxsplit=1)[0].rstrip(",:;") if text else ""
    is_value = "=" in word or "_" in word or word in {str(parameter.default), *(parameter.metavar or "").split("|")}
    first = text[:1] if is_value else text[:1].upper()
    parameter.help = text and f"{first}{text[1:]}{'' if text[-1] in '.:!?' else '.'}"
    if parameter.param_type_name == "argument":
        # Its type says nothing that its name and its help do not; required is what stands without brackets.
        parameter.display_type_rich = lambda **_context: None
        parameter.metavar = name = parameter.metavar or parameter.name.upper()
        in_usage = name if parameter.required else f"[{name.strip('[]')}]"
        parameter.get_usage_pieces = lambda *_context: [in_usage]
    elif parameter.metavar is None and not parameter.is_flag:
        parameter.metavar = next((name for type_, name in _OF_A_TYPE.items() if type_ in types), "TEXT")


def _first_sentence(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def _checked(name: str, types: set[Any], convert: Callable[..., Any], context: typer.Context, given: Any) -> Any:
    """The value of a path or a number; raises InputError for one that cannot be, or for several with commas between."""
    if Path in types and "" in (given if isinstance(given, list | tuple) else [given]):
        raise InputError(f"{name}: the path is empty; give one")
    if not types & {Path, float} and isinstance(given, str) and "," in given:
        raise InputError(f"{name} is {given[:80]!r}; it takes one whole number{_elsewhere(name, context)}")
    try:
        value = convert(context, given)
    except typer.BadParameter as refusal:
        if (requirement := _requirement(str(refusal.message))) is None:
            raise
        raise InputError(f"{name} is {given!r:.80}; it must be {requirement}") from None
    if isinstance(value, float) and not -inf < value < inf:
        raise InputError(f"{name} is {given:.80}; it must be a finite number")
    return value


def _converted(parameter: Any, convert: Callable[..., Any], context: typer.Context, given: Any) -> Any:
    """As Typer converts it; what is plain without Pydantic, which takes longer to load than a prediction."""
    described = parameter.type_descriptor
    is_list, is_several = get_origin(described.annotation) is list, parameter.multiple or parameter.nargs == -1
    is_bare = given is None or (is_several and not given)
    if parameter.callback is not None or is_list != is_several or (is_bare and parameter.required):
        return convert(context, given)
    if given is None:
        return () if is_several else None
    type_ = get_args(described.annotation)[0] if is_list else described.annotation
    values = [_plain_value(type_, described.parameter_info, each) for each in (given if is_list else [given])]
    if _NOT_PLAIN in values:
        return convert(context, given)
    return values if is_list else values[0]


_NOT_PLAIN = object()
_NUMBERS = {
    int: re.compile(r"-?[0-9]{1,15}"),
    float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][-+]?[0-9]{1,2})?"),
}


def _plain_value(type_: Any, limits: Any, given: Any) -> Any:
    """The value of a usual text, or of a default, which is of the type already; _NOT_PLAIN for any other."""
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
    return _NOT_PLAIN


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


def misuse(name: str, error: typer.TyperException) -> str:
    """One line for a command line that Typer refused: what is wrong, and where help is."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else f"lepaute {name}"
    message = error.format_message().strip().splitlines()[0].rstrip(".")
    if name in RUN_PROGRAMS and message.lower().startswith("no such option"):
        message += "; options of the program come after two dashes: -- PROGRAM ARGS"
    return f"{message[:1].lower()}{message[1:]}; see '{path} --help'"


_BASH = """\
_lepaute() {
    local IFS=$'\\n'
    COMPREPLY=($(lepaute __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _lepaute lepaute
"""
_ZSH = """\
#compdef lepaute
_lepaute() {
    local -a found
    found=("${(@f)$(lepaute __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _lepaute lepaute
"""
_FISH = """\
function __lepaute_complete
    set -l words (commandline -opc) (commandline -ct)
    lepaute __complete $words[2..-1] 2>/dev/null
end
complete -c lepaute -a '(__lepaute_complete)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(
    shell: Annotated[
        str, typer.Argument(metavar="SHELL", help="The shell: bash, zsh or fish.", autocompletion=lambda: [*SCRIPTS])
    ],
) -> None:
    """Prints the script with which a shell completes commands, options and names of platforms.

    For bash: `source <(lepaute completion bash)`, in ~/.bashrc for all sessions to come; for zsh the same in ~/.zshrc,
    after compinit; for fish: `lepaute completion fish | source`.
    """
    if shell not in SCRIPTS:
        raise InputError(f"there is no completion for '{shell}'; it is one of {', '.join(SCRIPTS)}")
    print(SCRIPTS[shell], end="")


def candidates(words: list[str]) -> list[str]:
    """What the last of the words after `lepaute` may become, sorted; none where it may be any text, or a file."""
    # Bash takes --option=value for three words.
    *before, current = [word for word in words[:-1] if word != "="] + [words[-1] if words and words[-1] != "=" else ""]
    names = [command.name for command in COMMANDS]
    helped = before[:1] == ["help"]
    before = before[helped:]
    if not before:
        return _beginning(current, names if helped else [*names, "help", *_FIRST_OPTIONS])
    if before[0] not in names:
        return []
    return _beginning(current, _after(before[0], before[1:], current, helped))


_FIRST_OPTIONS = ("--help", "--version")


def _beginning(current: str, words: Iterable[str]) -> list[str]:
    """Those that begin so; options only where a dash is there already."""
    return sorted(word for word in words if word.startswith(current) and (current or not word.startswith("-")))


def _after(name: str, before: list[str], current: str, helped: bool) -> Iterator[str]:
    """What may follow the command of that name and the words before; helped: names of subcommands alone."""
    command, default = built(name, before)
    while subcommands := getattr(command, "commands", None):
        if before and before[0] in subcommands:
            command = subcommands[before[0]]
            before = before[1:]
        elif not before:
            yield from (*subcommands, "--help")
            return
        elif default is not None:
            command = subcommands[default]
        else:
            return
    if helped:
        return
    asked = next((each for each in command.params if before and before[-1] in _spellings(each)), None)
    if asked is not None and not asked.is_flag:
        yield from _values(command, asked, current)
        return
    yield from ("--help", *(word for each in command.params for word in _spellings(each) if word.startswith("--")))
    for each in command.params:
        if each.param_type_name == "argument":
            yield from _values(command, each, current)


def _spellings(parameter: Any) -> tuple[str, ...]:
    return (*parameter.opts, *parameter.secondary_opts) if parameter.param_type_name == "option" else ()


def _values(command: Any, parameter: Any, current: str) -> Iterator[str]:
    context = command.context_class(command, info_name="lepaute", resilient_parsing=True)
    yield from (item.value for item in parameter.shell_complete(context, current))
