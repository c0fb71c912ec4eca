"""The help of every command: names of values that say something, whole summaries, examples that parse."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from lepaute.cli.commands import EXAMPLES, built
from lepaute.cli.main import COMMANDS, HELP, main


def each_command(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from each_command(f"{words} {name}", below)


ALL = [each for command in COMMANDS for each in each_command(command.name, built(command.name)[0])]


@pytest.mark.parametrize("words", [words for words, _ in ALL])
def test_help_names_values_and_cuts_nothing(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "-h"]) == 0
    shown = capsys.readouterr().out
    assert not re.search(r"<[a-z]|list\[|\bINTEGER\b", shown), "a type of Python instead of a name"
    commands = shown.partition("\nCommands:\n")[2].partition("\nExamples:")[0]
    assert "..." not in commands, "a summary that was cut"
    assert main([*words.split(), "--help"]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
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
    assert context.params


def test_examples_are_of_commands_that_exist() -> None:
    assert EXAMPLES.keys() <= {words for words, _ in ALL}
