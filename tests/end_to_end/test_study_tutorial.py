"""The first five minutes of docs/studies.md: its commands print what stands there, and its file is the example."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"[0-9][0-9.]*(?:e[+-]?[0-9]+)?")
BEGIN, END = "<!-- begin tutorial", "<!-- end tutorial"


def tutorial() -> str:
    text = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    return text[text.index(BEGIN) : text.index(END)]


@pytest.mark.slow
@pytest.mark.long
def test_the_commands_of_the_tutorial_print_what_the_document_shows(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    steps = 0
    for block in tutorial().split("```console\n")[1:]:
        for step in block.partition("```")[0].split("$ lepaute ")[1:]:
            words, shown = step.split("\n", 1)
            argv = [sys.executable, "-m", "lepaute.cli.main", *words.split()]
            done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            # How long it takes differs between machines, and so do workers.
            usual = [re.sub(r"about .* worker(s?)", "about", NUMBER.sub("N", text)) for text in (done.stdout, shown)]
            assert usual[0].split() == usual[1].split(), words
            steps += 1
    assert steps == 5
    assert (tmp_path / "blocks.results" / "HPL.dat").is_file()


def test_the_file_of_the_tutorial_is_the_example() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", tutorial(), re.DOTALL)
    assert shown == (ROOT / "examples" / "studies" / "network.yaml").read_text(encoding="utf-8")
