"""The options that the documents name are those of the commands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lepaute.cli import COMMANDS
from lepaute.cli.commands import built

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: A command up to the end of its line or code span; what follows ` -- ` is another program's.
LINE = re.compile(r"lepaute ([a-z]+)((?: [^`\n|;]*)?)")


def options(command: Any) -> Iterator[str]:
    """All long options of a command and of those below it."""
    for parameter in command.params:
        yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


def documented(name: str) -> dict[str, str]:
    """Option -> the document that names it after this command."""
    result = {}
    for document in DOCUMENTS:
        for command, words in LINE.findall(document.read_text(encoding="utf-8")):
            if command == name:
                ours = words.partition(" -- ")[0]
                result |= dict.fromkeys(re.findall(r"(?<!\S)--[a-z][a-z-]+", ours), document.name)
    return result


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_option_in_the_documents_is_one_of_its_command(name: str) -> None:
    known = {"--help", *options(built(name)[0]), *(["--check"] if name == "predict" else [])}
    assert {option: where for option, where in documented(name).items() if option not in known} == {}


def test_the_documents_name_options() -> None:
    assert "--network-condition" in documented("fit")
    assert sum(len(documented(command.name)) for command in COMMANDS) > 40
