"""Help and completion: values, summaries, examples that parse, and what a shell offers at the tab key."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_limits import ran

from lepaute.cli import COMMANDS, HELP, QUESTIONS, commands
from lepaute.cli.commands import built
from lepaute.cli.examples import EXAMPLES
from lepaute.cli.main import main


def each_command(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from each_command(f"{words} {name}", below)


ALL = [each for command in COMMANDS for each in each_command(command.name, built(command.name)[0])]


@pytest.mark.parametrize("words", [words for words, _ in ALL])
def test_help_names_values_and_cuts_nothing(words, output_of):
    shown = output_of(*words.split(), "-h")
    assert not re.search(r"<[a-z]|list\[|\bINTEGER\b", shown), "a type of Python instead of a name"
    assert "..." not in shown.partition("\nCommands:\n")[2].partition("\nExamples:")[0], "a summary that was cut"
    assert output_of(*words.split(), "--help") == shown


@pytest.mark.parametrize(
    "line", [*(line for lines in EXAMPLES.values() for line in lines), *(line for _, line in QUESTIONS)]
)
def test_an_example_of_the_help_is_a_command_line_that_parses(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    assert program == "lepaute"
    command, default = built(name, arguments)
    if default is not None and arguments[0] not in command.commands:
        arguments = [default, *arguments]
    context = command.make_context(name, list(arguments), help_option_names=list(HELP))
    while getattr(command, "commands", {}):
        word, *arguments = arguments
        command = command.commands[word]
        context = command.make_context(word, list(arguments), parent=context)
    assert context.params or not context.command.params


def test_every_command_that_does_something_has_an_example() -> None:
    assert EXAMPLES.keys() <= {words for words, _ in ALL}
    assert {words for words, command in ALL if not getattr(command, "commands", None)} <= EXAMPLES.keys()


def headings(words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Long options in the help of a command, by the heading that they stand under."""
    assert main([*words.split(), "--help"]) == 0
    found: dict[str, list[str]] = {}
    heading = ""
    for line in capsys.readouterr().out.partition("\n  Examples:")[0].splitlines():
        if re.fullmatch(r"\S.*:", line):
            heading = line[:-1]
        elif heading and (option := re.match(r"  (?:-\w+, )*--([\w-]+)", line)):
            found.setdefault(heading, []).append(option[1])
    return found


def test_every_option_is_shown_once_whatever_the_headings(capsys: pytest.CaptureFixture[str]) -> None:
    for words, command in ALL:
        if not getattr(command, "commands", None):
            shown = [name for names in headings(words, capsys).values() for name in names]
            long = [next((w for w in p.opts if w.startswith("--")), None) for p in command.params if not p.hidden]
            assert sorted(shown) == sorted(
                [
                    "help",
                    *(w[2:] for w, p in zip(long, command.params, strict=True) if w and p.param_type_name == "option"),
                ]
            ), words


def offered(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["__complete", *words]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pla",), ["platform"]),
        (("help", "pla"), ["platform"]),
        (("help", "platform", "sh"), ["show"]),
        (("-",), ["--help", "--version"]),
        (("predict", ""), ["hpl", "stencil", "trace"]),
        (("predict", "hpl", "--pf"), ["--pfact"]),
        (("predict", "hpl", "--pfact", ""), ["crout", "left", "right"]),
        (("predict", "hpl", "-p", "stam"), ["stampede-like"]),
        (("predict", "hpl", "--swap", "=", "mi"), ["mix"]),  # bash's three words for --swap=mi
        (("predict", "hpl", "--swap", "="), ["binary-exchange", "mix", "spread-roll"]),
        (("emulate", "-p", "stam"), ["stampede-like"]),  # of the program, the subcommand that is meant
        (("completion", ""), ["bash", "fish", "zsh"]),
        (("platform", "show", "stam"), ["stampede-like"]),
        (("trace", "show", ""), []),  # files, which the shell knows
        (("nothing", ""), []),
        (("predict", "nothing", ""), []),
        (("help", "trace", "show", ""), []),
    ],
)
def test_what_fits_is_offered(words: tuple[str, ...], expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert offered(capsys, *words) == expected


def test_every_command_is_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert offered(capsys) == offered(capsys, "") == sorted([*(command.name for command in COMMANDS), "help"])


def test_bash_completes_by_the_script_that_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    command = tmp_path / "lepaute"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m lepaute.cli.main "$@"\n')
    command.chmod(0o755)
    words = f"COMP_WORDS=(lepaute trace sh) COMP_CWORD=2; . {script}; _lepaute; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = ran(["bash", "-c", f"PATH={tmp_path}:$PATH; {words}"], check=True)
    assert (done.stdout, done.stderr) == ("show\n", "")


@pytest.mark.parametrize("shell", commands.SCRIPTS)
def test_the_shell_itself_understands_its_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=commands.SCRIPTS[shell], text=True, check=True)
