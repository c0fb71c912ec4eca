"""`lepaute run` as a user starts it: a process of its own."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from unittest import mock

from support_limits import HANG_S, ran, wait_until, within

import lepaute
from lepaute.cli.main import main
from lepaute.measure.archive import Archive


def lepaute_argv(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "lepaute.cli.main", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    source = str(Path(lepaute.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]), **more}


def run_lepaute(
    *arguments: object, folder: Path, limit_s: float = HANG_S, **more: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command of lepaute in a folder, to its end."""
    return ran(lepaute_argv(*arguments), cwd=folder, env=environment(**more), timeout=limit_s)


def run_here(
    *arguments: object, folder: Path, limit_s: float = HANG_S, **more: str
) -> subprocess.CompletedProcess[str]:
    """The same in this process, where a start of Python would take most time."""
    words = [str(argument) for argument in arguments]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+", buffering=1)) for _ in range(2)]
        # What programs print that it starts is among it.
        for number, file in enumerate(files, 1):
            stack.callback(os.close, before := os.dup(number))
            stack.callback(os.dup2, before, number)
            os.dup2(file.fileno(), number)
        stack.enter_context(contextlib.redirect_stdout(files[0]))
        stack.enter_context(contextlib.redirect_stderr(files[1]))
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(mock.patch.dict(os.environ, more))
        stack.enter_context(within(" ".join(words), limit_s))
        status = main(words)
        texts = []
        for file in files:
            file.flush()
            file.seek(0)
            texts.append(file.read())
    return subprocess.CompletedProcess(words, status, *texts)


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
