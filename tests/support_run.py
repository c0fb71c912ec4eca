"""`lepaute run` as a user starts it: a process of its own."""

import contextlib
import io
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from support_limits import HANG_S, wait_until

import lepaute
from lepaute.archive import Archive
from lepaute.cli.main import main


def lepaute_argv(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "lepaute.cli.main", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    source = str(Path(lepaute.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]), **more}


def run_lepaute(
    *arguments: object, folder: Path, limit_s: float = HANG_S, **more: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command of lepaute in a folder, to its end."""
    return subprocess.run(
        lepaute_argv(*arguments),
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )


def run_here(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """The same in this process: for what is refused before it begins, where a start of Python would take most time."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(each) for each in arguments])
    return subprocess.CompletedProcess(list(arguments), status, out.getvalue(), err.getvalue())


def start_lepaute(*arguments: object, folder: Path, **more: str) -> "subprocess.Popen[str]":
    """Starts it, and returns at once; its session is its own."""
    return subprocess.Popen(
        lepaute_argv(*arguments),
        cwd=folder,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def rows_of(archive: Archive) -> Counter[str]:
    """How many observations are of each node."""
    return Counter(archive.table("observations/observations.parquet")["node"])


def wait_for_rows(folder: Path, rows: int) -> None:
    """Until so many rows of the running experiment are on the disk."""
    table = folder / "x.work" / "raw" / "observations.csv"
    wait_until(lambda: table.is_file() and table.read_text().count("\n") >= rows + 3, "rows")
