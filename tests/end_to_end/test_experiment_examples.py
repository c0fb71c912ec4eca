"""The examples' README: its commands run, and say what it says they say."""

import re
import shlex
from pathlib import Path

from support_run import run_lepaute

from lepaute.measure.archive import Archive

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "examples" / "experiments" / "README.md"


def documented_command(script: str) -> list[str]:
    """The words of the first command of the README that runs the script here."""
    (line, *_) = [line for line in README.read_text().splitlines() if line.startswith("    lepaute") and script in line]
    return shlex.split(line)[1:]


def general(lines: list[str]) -> list[str]:
    """Without what differs from run to run: times, and the host's name."""
    return [re.sub(r"^\S+: |machine, \S+$|: \S+$|\([0-9.e-]+ s\)", "", line.strip()) for line in lines]


def test_memory_copy_runs_as_documented_and_says_what_is_documented(tmp_path: Path) -> None:
    words = documented_command("memory_copy.py")
    done = run_lepaute(*[str(ROOT / word) if word.endswith(".py") else word for word in words], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = README.read_text().split("The first says, times aside:")[1].split("and leaves")[0]
    wanted = [line for line in shown.splitlines() if line.strip()]
    said = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert general(said[:5]) == general(wanted[:5])
    assert general(said[-1:]) == general(wanted[-2:-1])
    assert done.stdout.strip() == wanted[-1].strip()
    table = Archive.open(tmp_path / "copy.zip").table("observations/observations.parquet")
    assert table.groupby("size_bytes")["duration_s"].median().gt(0).sum() == 8
