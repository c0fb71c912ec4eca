"""`lepaute COMMAND ...`: finds the module of the command and runs it.

Only the module of the command that was asked for is imported, and Typer only for a command: a small prediction has 0.15
seconds from the shell, and the imports of the other commands would take more than that.
"""

import atexit
import contextlib
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from lepaute.cli import COMMANDS, HELP, QUESTIONS, WAYS
from lepaute.cli.entry import BAD_INPUT, DONE, complain, guarded


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status; `arguments` are those after the program's name."""
    # Pydantic otherwise searches all installed packages for plugins of its own: 11 ms of every start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and not (sys.warnoptions or os.environ.get("LEPAUTE_DEBUG")):
        # Python's own, about code and not about what was asked.
        warnings.simplefilter("ignore")
    if arguments is None:
        gc.disable()  # until the work begins: modules are no garbage, and 15 ms are spent to find none
    status = guarded(lambda: dispatch(words))
    if arguments is None:
        _end_quietly(status)
    return status


def _end_quietly(status: int) -> None:
    """Ends the process; from now on Ctrl-C does, too, as it ends any other.

    Without taking modules apart, a tenth of a short command; where a thread or profiler works, the interpreter goes on.
    """
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading = sys.modules.get("threading")
    if (threading is not None and threading.active_count() > 1) or sys.getprofile() or sys.gettrace():
        return
    atexit._run_exitfuncs()  # noqa: SLF001 - temporary folders, logs, processes of a pool
    with contextlib.suppress(OSError, ValueError):
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed by who started this process
            stream.flush()
        os._exit(status)


def dispatch(arguments: list[str]) -> int:
    """The exit status of the command named first in `arguments`; lets its exceptions through."""
    if not arguments:
        print(usage(sys.stderr), file=sys.stderr)
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
    from lepaute.kit.extras import missing_extra, need

    extra = next(command.extra for command in COMMANDS if command.name == name)
    if extra and not {*HELP} & {*arguments}:
        need(extra, name)
    try:
        command, default = built(name, arguments)
        if default is not None and arguments and arguments[0] not in (*getattr(command, "commands", ()), *HELP):
            arguments = [default, *arguments]
        # Not command.main(): it has its own ideas about interrupts and closed pipes, and those are guarded()'s.
        with command.make_context(f"lepaute {name}", arguments, help_option_names=list(HELP)) as context:
            gc.enable()
            result = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        complain(misuse(name, error))
        return BAD_INPUT
    except ImportError as error:
        if (missing := missing_extra(error, name, extra)) is None:
            raise
        raise missing from error
    return result if isinstance(result, int) else DONE


def unknown(name: str) -> str:
    """One line for a word that is not a command, with the nearest one that is."""
    from difflib import get_close_matches

    what = "option" if name.startswith("-") else "command"
    near = get_close_matches(name, [command.name for command in COMMANDS], n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    return f"there is no {what} '{name}'; {guess}'lepaute --help' lists them"


def usage(stream: TextIO | None = None) -> str:
    """The help of the program as a whole, for the terminal that a stream is, or standard output."""
    from lepaute.kit.printable import terminal_columns
    from lepaute.kit.text import folded

    width = terminal_columns(stream)

    def rows(lines: Sequence[tuple[str, str]]) -> str:
        widest = max(len(first) for first, _ in lines)
        return "\n".join(folded(f"  {first:<{widest}}  {text}", width, widest + 4) for first, text in lines)

    commands = [(command.name, command.summary) for command in COMMANDS]
    options = [
        ("-V, --version", "print the version"),
        ("-h, --help", "print this; 'lepaute help COMMAND' explains a command"),
    ]
    return (
        "usage: lepaute COMMAND [ARGUMENTS]   (see lepaute COMMAND --help)\n\n"
        f"{folded('Measures a machine, fits models, and predicts how long an application will run on it.', width)}\n\n"
        f"{rows(QUESTIONS)}\n\ncommands:\n{rows(commands)}\n\noptions:\n{rows(options)}\n\n"
        + "\n".join(folded(line, width, 28) for line in WAYS.split("\n"))
    )


if __name__ == "__main__":
    sys.exit(main())
