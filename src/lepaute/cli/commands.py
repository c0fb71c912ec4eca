"""Commands by name, what is said of a command line that fits none, and how shells complete one."""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command, get_group

from lepaute.cli import COMMANDS
from lepaute.cli.options import App, argument
from lepaute.errors import InputError

#: What Typer says of a command or an option that is none, with the nearest ones.
_NO_SUCH = re.compile(
    r"no such (command|option):? '?([^' ]+?)'?\.?(?: did you mean ([^?]+)\?| \(possible options: (.+)\))?",
    re.IGNORECASE,
)
#: What is asked of a replay and cannot be.
_OTHER_RANKS = ("--np", "-np", "-n", "--ranks", "--grid")
#: Those that run a program of the user's, with options of its own.
RUN_PROGRAMS = ("emulate", "record")


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
        app.command(cls=getattr(module, "COMMAND", None))(target)
    # Not get_command() for a group: it drops the name of an only subcommand ("predict hpl" -> "predict").
    return get_group(app) if is_group else get_command(app), getattr(module, "DEFAULT", None)


def misuse(name: str, error: typer.TyperException) -> str:
    """One line for a command line that Typer refused: what is wrong, and where help is."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else f"lepaute {name}"
    message = error.format_message().strip().splitlines()[0].rstrip(".")
    if missing := _NO_SUCH.fullmatch(message):
        kind, word, nearest, near = missing.groups()
        if path.endswith(" predict trace") and word in _OTHER_RANKS:
            ways = "record the program with others, emulate it (lepaute emulate --np), or describe it in Python"
            return f"there is no option '{word}': a recording has the ranks it was made with; {ways}"
        guess = f"did you mean {nearest or ' or '.join(near.rsplit(', ', 1))}? " if nearest or near else ""
        message = f"there is no {kind} '{word}'; {guess}'{path} --help' lists them"
        after = "; options of the program come after two dashes: -- PROGRAM ARGS"
        return f"{message}{after}" if name in RUN_PROGRAMS and kind == "option" else message
    where = "'lepaute platform list' lists them" if "'--platform'" in message else f"see '{path} --help'"
    return f"{message[:1].lower()}{message[1:]}; {where}"


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
    shell: Annotated[str, argument("SHELL", "The shell: bash, zsh or fish.", autocompletion=lambda: [*SCRIPTS])],
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
    asked = next((param for param in command.params if before and before[-1] in _spellings(param)), None)
    if asked is not None and not asked.is_flag:
        yield from _values(command, asked, current)
        return
    yield from ("--help", *(word for param in command.params for word in _spellings(param) if word.startswith("--")))
    for param in command.params:
        if param.param_type_name == "argument":
            yield from _values(command, param, current)


def _spellings(parameter: Any) -> tuple[str, ...]:
    return (*parameter.opts, *parameter.secondary_opts) if parameter.param_type_name == "option" else ()


def _values(command: Any, parameter: Any, current: str) -> Iterator[str]:
    context = command.context_class(command, info_name="lepaute", resilient_parsing=True)
    yield from (item.value for item in parameter.shell_complete(context, current))
