"""Machine control of processes that are killed: real processes, real signals, made-up control files."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import fake_machines as machines
import pytest
from support_limits import HANG_S, wait_until

from lepaute.measure.node_agent.control import Controls
from lepaute.measure.node_agent.system_files import SystemFiles

_HOLDER = """
import json, sys, time
from pathlib import Path
from lepaute.measure.node_agent.control import Controls
from lepaute.measure.node_agent.system_files import SystemFiles
control = Controls(SystemFiles(sys.argv[1]), Path(sys.argv[2]))
records = control.apply({"turbo": False, "governor": "performance", "hyper_threading": False})
print(json.dumps([one["status"] for one in records]), flush=True)
sys.stdin.read()
if "undo" in sys.argv:
    control.undo()
"""


def holder(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A process that has the node of `folder` under control when this returns."""
    argv = [sys.executable, "-c", _HOLDER, str(folder / "root"), str(folder / "journal"), *more]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert json.loads(process.stdout.readline()) == ["done", "done", "done"]
    return process


def watchdogs(folder: Path) -> list[int]:
    """Processes other than the holder's own that have the lock of `folder` open."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            links = [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()]
        except OSError:
            continue
        if folder / "journal.lock" in links:
            found.append(int(pid))
    return found


def ignored(pid: int) -> set[int]:
    """The signals that a process ignores."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn:")]
    mask = int(line.split()[1], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_values_come_back_when_the_process_in_control_is_killed(tmp_path: Path, number: int) -> None:
    files = machines.intel(tmp_path / "root")
    before = machines.tree(files.root)
    with holder(tmp_path) as process:
        assert machines.tree(files.root) != before
        process.send_signal(number)
        process.wait(HANG_S)
        assert process.stdout.read() == ""  # at once: the watchdog does not hold the output open
    wait_until(lambda: machines.tree(files.root) == before, "the values of before")
    wait_until(lambda: not (tmp_path / "journal").exists(), "the end of the journal")
    wait_until(lambda: watchdogs(tmp_path) == [], "the end of the watchdog")
    # The next experiment tells what the watchdog did.
    control = Controls(files, tmp_path / "journal", watchdog=False)
    records = control.apply({"turbo": False})
    assert records[0]["message"].startswith("by the watchdog of an earlier experiment that was killed")
    assert records[-1]["status"] == "done"
    control.undo()


def test_the_watchdog_survives_a_signal_to_the_whole_session_and_ends_with_an_ordinary_end(tmp_path: Path) -> None:
    files = machines.intel(tmp_path / "root")
    before = machines.tree(files.root)
    with holder(tmp_path, "undo") as process:
        (watchdog,) = set(watchdogs(tmp_path)) - {process.pid}
        assert os.getsid(watchdog) != os.getsid(process.pid)
        wait_until(
            lambda: {signal.SIGTERM, signal.SIGHUP, signal.SIGINT} <= ignored(watchdog),
            "the watchdog to ignore signals",
        )
        streams = [Path(f"/proc/{watchdog}/fd/{stream}").readlink() for stream in range(3)]
        assert streams == [Path("/dev/null")] * 3
        os.kill(watchdog, signal.SIGTERM)
        process.communicate("", timeout=HANG_S)
    assert process.returncode == 0
    assert machines.tree(files.root) == before
    wait_until(lambda: watchdogs(tmp_path) == [], "the end of the watchdog")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.lock", "root"]


def test_what_is_left_when_the_watchdog_is_killed_too_is_undone_by_the_next_experiment(tmp_path: Path) -> None:
    files = machines.intel(tmp_path / "root")
    before = machines.tree(files.root)
    with holder(tmp_path) as process:
        for pid in set(watchdogs(tmp_path)) - {process.pid}:
            os.kill(pid, signal.SIGKILL)
        process.kill()
    wait_until(lambda: watchdogs(tmp_path) == [], "the end of the watchdog")
    assert machines.tree(files.root) != before
    control = Controls(files, tmp_path / "journal", watchdog=False)
    records = control.apply({"turbo": False})
    left = [record for record in records if record["message"].startswith("left behind by an earlier experiment")]
    assert [(one["control"], one["status"]) for one in left] == [
        ("governor", "done"),
        ("turbo", "done"),
        ("hyper_threading", "done"),
    ]
    control.undo()
    assert machines.tree(files.root) == before


def test_a_second_experiment_on_a_node_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    files = machines.intel(tmp_path / "root")
    before = machines.tree(files.root)
    with holder(tmp_path, "undo") as process:
        second = Controls(SystemFiles(tmp_path / "root"), tmp_path / "journal")
        (governor,) = second.apply({"governor": "powersave"})
        assert governor["status"] == "warning"
        assert f"another experiment controls this node: process {process.pid} of user " in governor["message"]
        assert second.undo() == []  # and undoes nothing of the first
        assert files.setting("sys/devices/system/cpu/intel_pstate/no_turbo") == "1"
        process.communicate("", timeout=HANG_S)
    assert machines.tree(files.root) == before
    third = Controls(files, tmp_path / "journal", watchdog=False)
    assert third.apply({"turbo": False})[0]["status"] == "done"
    third.undo()
