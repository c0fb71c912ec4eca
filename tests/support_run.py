"""`lepaute run` as a user starts it: a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from support_limits import HANG_S

import lepaute


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
