"""Ctrl-C and SIGTERM end every long command with a line and exit status 130, and leave no process behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from long_tests import long_but
from support_limits import HANG_S, wait_until

EXPERIMENT = Path(__file__).parents[2] / "examples" / "experiments" / "memory_copy.py"
HPL = ("-p", "dahu", "--n", "20k")
#: Each with what it has done, in a file, when it is under way; or what it has said.
COMMANDS = {
    "predict": (["predict", "hpl", *HPL, "--nb", "128", "--grid", "8x8", "--runs", "5000"], "will take about"),
    "study": (["study", "ready", "nb-and-grid", *HPL, "--runs", "500", "--scheduler", "threads"], " simulations"),
    "study of processes": (
        ["study", "ready", "nb-and-grid", *HPL, "--runs", "500", "--scheduler", "local"],
        "nb-and-grid.results/store/data/*/*",
    ),
    "run": (["run", str(EXPERIMENT), "--set", "replications=2000", "-o", "x.zip"], "x.work/done.jsonl"),
    "calibrate": (["calibrate", "-o", "c.yaml", "--quick"], "calibration.work/blocks.jsonl"),
    "compare": (["compare", "openmpi", "--ops", "bcast", "--sizes", "8", "--mpiruns", "200"], "comparison.work/*"),
}
#: What the end is said with.
LINE = re.compile(r"lepaute: interrupted(;.*)?")


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", long_but(COMMANDS, "predict", "study"))
def test_a_signal_ends_it_with_a_line_and_leaves_no_process(tmp_path: Path, name: str, number: signal.Signals) -> None:
    words, sign = COMMANDS[name]
    said = tmp_path / "said"
    folder = tmp_path / "here"
    folder.mkdir()
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "lepaute.cli.main", *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        wait_until(lambda: process.poll() is not None or sign in said.read_text() or any(folder.glob(sign)), "its work")
        assert process.poll() is None, said.read_text()
        begun = [each for each in psutil.process_iter() if os_session(each.pid) == process.pid]
        # A terminal sends Ctrl-C to all processes, a batch system SIGTERM often to the first alone.
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
        assert process.wait(HANG_S) == 130, said.read_text()
    told = said.read_text()
    assert "Traceback" not in told
    assert "resource_tracker" not in told
    assert [line for line in told.splitlines() if LINE.fullmatch(line)], told
    wait_until(lambda: not any(alive(each) for each in begun), "the end of what it started")
    assert not list(folder.rglob(".lepaute-*"))


def os_session(pid: int) -> int:
    """The session of a process; 0 where it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
