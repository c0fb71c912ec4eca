"""`lepaute COMMAND ...`: finds the module of the command and runs it.

Only the module of the command that was asked for is imported, and Typer only for a command: a prediction has half a
second from the shell, and the imports of the other commands would take more than that.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from lepaute.cli.entry import BAD_INPUT, DONE, complain, guarded


class Command(NamedTuple):
    """A command. place: where in `lepaute.cli` it is, MODULE:NAME; that of the command and `app` unless given.

    `app` is a `typer.Typer` with subcommands, `app_for` makes one for given arguments; anything else is a function with
    Typer's annotations.
    """

    name: str
    summary: str
    place: str = ""


COMMANDS = (
    Command("doctor", "what is installed, what is missing, what would disturb a measurement", "doctor:command"),
    Command("calibrate", "measure this machine and fit its models: an archive and a platform", "fit:calibrate"),
    Command("platform", "list, show, check, import and export platforms; new ones from a data sheet"),
    Command("predict", "how long an application will take on a platform", "predict:app_for"),
    Command("emulate", "run the code of an MPI program, or of HPL, on a simulated machine"),
    Command("verify", "predict, run the real application here, show both and the error"),
    Command("design", "tables of what will be measured"),
    Command("run", "an experiment on one node or many: from a script to an archive", "run:command"),
    Command("archive", "show, verify, compare and extract archives of measurements"),
    Command("fit", "models from archives: a platform", "fit:fit"),
    Command(
        "segment",
        "at which sizes durations change their line, of OSU's and Intel's benchmarks or CSV",
        "segment:command",
    ),
    Command("study", "questions that take many simulations: tune, what if, sensitivity, capacity"),
    Command("compare", "MPI libraries, measured side by side", "compare:command"),
    Command("watch", "has a machine changed: jobs of months, tests, events, and what it costs"),
    Command("record", "run a program under MPI and record its kernels and messages", "trace:record"),
    Command("trace", "show, draw, break down and compare traces"),
    Command("completion", "the script with which bash, zsh or fish completes command lines", "commands:completion"),
)

#: What asks for the help of any command.
HELP = ("-h", "--help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status; `arguments` are those after the program's name."""
    # Pydantic otherwise searches all installed packages for plugins of its own: 11 ms of every start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and not (sys.warnoptions or os.environ.get("LEPAUTE_DEBUG")):
        # Python's own, about code and not about what was asked.
        warnings.simplefilter("ignore")
    status = guarded(lambda: dispatch(given))
    if arguments is None:
        _end_quietly()
    return status


def _end_quietly() -> None:
    """From now on Ctrl-C ends the process as it does any other: what is left is the interpreter's own end."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def dispatch(arguments: list[str]) -> int:
    """The exit status of the command named first in `arguments`; lets its exceptions through."""
    if not arguments:
        print(usage(), file=sys.stderr)
        return BAD_INPUT
    first, *rest = arguments
    if first == "help" and rest:  # `help COMMAND` is `COMMAND --help`
        first, rest = rest[0], [*rest[1:], "--help"]
    if first in (*HELP, "help"):
        print(usage())
        return DONE
    if first in ("-V", "--version"):
        from lepaute import __version__

        print(f"lepaute {__version__}")
        return DONE
    if first == "__complete":  # of the script of `lepaute completion`: what the last word may become
        with contextlib.suppress(Exception):  # who presses a key wants no message
            from lepaute.cli.commands import candidates

            print("".join(f"{word}\n" for word in candidates(rest)), end="")
        return DONE
    if not any(first == command.name for command in COMMANDS):
        complain(unknown(first))
        return BAD_INPUT
    return run_command(first, rest)


def run_command(name: str, arguments: list[str]) -> int:
    """Imports the module of command `name` and runs it on `arguments`; the exit status."""
    import typer

    from lepaute.cli.commands import built, misuse

    command, default = built(name, arguments)
    if default is not None and arguments and arguments[0] not in (*getattr(command, "commands", ()), *HELP):
        arguments = [default, *arguments]
    try:
        # Not command.main(): it has its own ideas about interrupts and closed pipes, and those are guarded()'s.
        with command.make_context(f"lepaute {name}", arguments, help_option_names=list(HELP)) as context:
            result = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        complain(misuse(name, error))
        return BAD_INPUT
    return result if isinstance(result, int) else DONE


def unknown(name: str) -> str:
    """One line for a word that is not a command, with the nearest one that is."""
    from difflib import get_close_matches

    kind = "option" if name.startswith("-") else "command"
    near = get_close_matches(name, [command.name for command in COMMANDS], n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    return f"there is no {kind} '{name}'; {guess}'lepaute --help' lists them"


def usage() -> str:
    """The help of the program as a whole."""
    width = max(len(command.name) for command in COMMANDS)
    rows = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    return (
        "usage: lepaute COMMAND [ARGUMENTS]   (lepaute COMMAND --help tells more)\n\n"
        "Measures a machine, fits models, and predicts how long an application will run on it.\n\n"
        f"commands:\n{rows}\n\noptions:\n"
        "  -V, --version   print the version\n  -h, --help      print this; 'lepaute help COMMAND' tells of a command"
    )


if __name__ == "__main__":
    sys.exit(main())
