"""On a terminal of 80 columns no line of an answer or a refusal is wider: nothing is cut or folded by the terminal."""

import re
from typing import Any

import pytest
from effects.lines import all_lines
from hostile.cases import BASES, Case, _words, commands
from hostile.refusals import Server
from long_tests import long_but

from lepaute.cli import COMMANDS as PROGRAM
from lepaute.cli.commands import built
from lepaute.kit.printable import columns

COLUMNS = 80
#: A word that is longer than what is left of a line beside its indentation cannot be folded.
LONGEST_WORD = 60
#: Lines that are kept whole: command lines to copy, tables in HPL's own form, the progress that Rich draws.
_WHOLE = re.compile(r" +lepaute |T/V|W[RC]\d|.*\x1b")
#: What they print is for programs.
FOR_PROGRAMS = ("completion", "study schema")
#: At each change; the others in long tests.
QUICK = ("doctor", "predict stencil", "study check", "trace breakdown", "watch test")
COMMANDS = sorted(BASES.keys() - set(FOR_PROGRAMS))


def wide_lines(text: str) -> list[str]:
    """Lines that could have been folded."""
    return [
        line
        for line in text.splitlines()
        if columns(line) > COLUMNS and max(map(columns, line.split())) <= LONGEST_WORD and not _WHOLE.match(line)
    ]


def groups(words: str, command: Any) -> dict[str, Any]:
    """The command and all below it, by their words."""
    below = getattr(command, "commands", {})
    return {words: command} | {
        name: each for word in below for name, each in groups(f"{words} {word}", below[word]).items()
    }


@pytest.mark.parametrize("name", [command.name for command in PROGRAM])
def test_no_line_of_any_help_is_wider_not_even_an_example(name: str) -> None:
    for words, command in groups(name, built(name)[0]).items():
        help_text = command.get_help(
            command.context_class(command, info_name=f"lepaute {words}", terminal_width=COLUMNS)
        )
        assert not [line for line in help_text.splitlines() if columns(line) > COLUMNS], words


@pytest.mark.slow
@pytest.mark.parametrize("command", long_but(COMMANDS, *(name for name in COMMANDS if name.startswith(QUICK))))
def test_no_line_is_wider_than_a_terminal(command: str, server: Server) -> None:
    details = any("--details" in parameter.opts for parameter in commands()[command].params)
    more = [{}, {"--details": ""}] if details else [{}]
    cases = [line.case(server.inputs, *added) for line in all_lines() for added in more
             if line.command == command and not line.on_machine]  # fmt: skip
    cases += [Case(command, "", "", _words(command, BASES[command], server.inputs, added)) for added in more]
    for word in ("--help", "--no-such-option", f"--{'no-such-option ' * 10}"):
        cases.append(Case(command, "", "", (*command.split(), word)))
    cases += [Case(command, "", "", ("--help",))]  # of all commands
    found = []
    for case, answer in zip(cases, server.run(cases, "/nowhere", columns=COLUMNS), strict=True):
        found += [f"{' '.join(case.words)}: {line}" for line in wide_lines(answer["stdout"] + answer["stderr"])]
    assert not found, "\n".join(found)
