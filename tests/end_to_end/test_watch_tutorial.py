"""The first ten minutes of docs/watch.md: its commands print what stands there.

After a change of what they print: python tests/end_to_end/test_watch_tutorial.py, and read the difference.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support_limits import HANG_S

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"[0-9][0-9.]*(?:e-?[0-9]+)?")
BEGIN, END = "<!-- begin tutorial", "<!-- end tutorial"

pytestmark = [pytest.mark.slow, pytest.mark.long]


def steps() -> list[tuple[str, str]]:
    """(command line, output) in the order of the document."""
    text = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
    blocks = text[text.index(BEGIN) : text.index(END)].split("```console\n")[1:]
    found: list[tuple[str, str]] = []
    for line in "".join(block.partition("```")[0] for block in blocks).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, output = found[-1]
            found[-1] = (command, f"{output}{line}\n")
    return found


def outputs(folder: Path) -> list[tuple[str, str, str]]:
    """(command line, output in the document, output now), in a folder with the examples."""
    (folder / "examples").symlink_to(ROOT / "examples")
    program = folder / "bin" / "lepaute"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lepaute.cli.main "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    found = []
    for command, shown in steps():
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            environment[name] = value
            continue
        words = ["bash", "-c", command]
        run = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
        )
        assert not run.stderr, f"{command}: {run.stderr}"
        found.append((command, shown, run.stdout))
    return found


def test_the_commands_of_the_tutorial_print_what_the_document_shows(tmp_path: Path) -> None:
    found = outputs(tmp_path)
    assert len(found) == 7
    for command, shown, printed in found:
        # A better estimate changes digits, which other tests check, but no words, lines or exit status.
        assert NUMBER.sub("N", printed) == NUMBER.sub("N", shown), command
        assert "status" not in command or printed.splitlines()[-1] == shown.splitlines()[-1]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        document = ROOT / "docs" / "watch.md"
        text = document.read_text(encoding="utf-8")
        for line, before, now in outputs(Path(place)):
            text = text.replace(f"$ {line}\n{before}", f"$ {line}\n{now}", 1) if before != now else text
        document.write_text(text, encoding="utf-8")
