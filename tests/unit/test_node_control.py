"""Machine control on made-up nodes: what is changed, and that all comes back, also where processes are killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_machines as machines
import pytest
from support_limits import HANG_S, wait_until

from lepaute.measure.node_agent.control import Controls, problems
from lepaute.measure.node_agent.control_journal import undo_journal
from lepaute.measure.node_agent.system_files import Ran, SystemFiles

CPU = machines.CPU
EVERYTHING = {"hyper_threading": False, "turbo": False, "c_states": False, "governor": "performance"}


def done(argv: list[str], limit_s: float) -> Ran:
    return Ran(0, b"")


def absent(argv: list[str], limit_s: float) -> Ran:
    return Ran(None, b"", b"", f"{argv[0]} is not installed")


def controls(files: SystemFiles, folder: Path, run: Any = done) -> Controls:
    return Controls(files, folder / "journal", run, watchdog=False)


@pytest.fixture
def files(tmp_path: Path) -> SystemFiles:
    return machines.intel(tmp_path / "root")


@pytest.fixture
def before(files: SystemFiles) -> dict[str, str]:
    return machines.tree(files.root)


@pytest.fixture
def control(files: SystemFiles, tmp_path: Path) -> Controls:
    return controls(files, tmp_path)


def by_control(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {record["control"]: record for record in records}


def test_an_intel_node_is_set_as_wanted_and_given_back_exactly(tmp_path, files, before, control):
    assert {record["status"] for record in control.apply(EVERYTHING)} == {"done"}
    during = machines.tree(files.root)
    assert (during[f"{CPU}/smt/control"], during[f"{CPU}/intel_pstate/no_turbo"]) == ("off", "1")
    assert during[f"{CPU}/cpufreq/policy3/scaling_governor"] == "performance"
    assert [during[f"{CPU}/cpu1/cpuidle/state{state}/disable"] for state in range(3)] == ["0", "1", "1"]
    undone = control.undo()
    assert machines.tree(files.root) == before
    assert {one["status"] for one in undone} == {"done"}
    assert not (tmp_path / "journal").exists()


def test_cpus_with_the_same_outcome_share_one_record(tmp_path: Path) -> None:
    records = controls(machines.intel(tmp_path / "root"), tmp_path).apply({"governor": "performance"})
    assert records == [
        {
            "control": "governor", "target": f"{CPU}/cpufreq/policy[0-3]/scaling_governor", "before": "powersave",
            "after": "performance", "status": "done", "message": "",
        }
    ]  # fmt: skip


def test_a_journal_that_cannot_be_written_leaves_the_node_as_it_is_and_its_folder_is_made(tmp_path, files):
    (tmp_path / "journal").mkdir()  # as good as a full disk: nothing can be written to it
    (record,) = [one for one in controls(files, tmp_path).apply({"turbo": False}) if one["control"] == "turbo"]
    assert "not done, since the journal" in record["message"]
    assert files.setting(f"{CPU}/intel_pstate/no_turbo") == "0"
    assert controls(files, tmp_path / "a/b").apply({"turbo": False})[0]["status"] == "done"
    (tmp_path / "file").touch()
    (record,) = controls(files, tmp_path / "file").apply({"governor": "performance"})
    assert record["status"] == "warning"
    assert "cannot be had" in record["message"]


def test_an_acpi_node_has_one_switch_for_boost(tmp_path: Path) -> None:
    files = machines.acpi(tmp_path / "root")
    before = machines.tree(files.root)
    control = controls(files, tmp_path)
    records = control.apply({"turbo": False, "governor": "performance"})
    assert {record["status"] for record in records} == {"done"}
    during = machines.tree(files.root)
    assert during[f"{CPU}/cpufreq/boost"] == "0"
    assert during[f"{CPU}/cpu3/cpufreq/scaling_governor"] == "performance"
    control.undo()
    assert machines.tree(files.root) == before


def test_an_amd_node_has_a_boost_switch_a_policy(tmp_path: Path) -> None:
    files = machines.amd(tmp_path / "root")
    assert by_control(controls(files, tmp_path).apply({"turbo": False}))["turbo"]["status"] == "done"
    assert machines.tree(files.root)[f"{CPU}/cpufreq/policy1/boost"] == "0"


def test_a_node_without_any_control_warns_of_each_in_a_sentence_and_changes_nothing(tmp_path: Path) -> None:
    files = machines.bare(tmp_path / "root")
    before = machines.tree(files.root)
    wanted = EVERYTHING | {"warm_up": {"duration_s": 1}, "hyper_threading": True}
    records = controls(files, tmp_path, absent).apply(wanted)
    assert {record["control"] for record in records if record["status"] == "warning"} == set(wanted)
    assert all(len(record["message"]) > 10 for record in records if record["status"] == "warning")
    assert machines.tree(files.root) == before


def test_without_rights_every_control_warns_and_nothing_is_left_to_undo(tmp_path: Path) -> None:
    machines.intel(tmp_path / "root")
    control = controls(machines.KernelThatRefuses(tmp_path / "root"), tmp_path)
    records = control.apply(EVERYTHING)
    assert {record["status"] for record in records} == {"warning"}
    assert all("permission denied" in at["message"] or "refused even to root" in at["message"] for at in records)
    assert control.undo() == []


def test_a_kernel_that_takes_a_value_and_ignores_it_is_found_out(tmp_path: Path) -> None:
    machines.intel(tmp_path / "root")
    control = controls(machines.KernelThatIgnores(tmp_path / "root"), tmp_path)
    (record,) = control.apply({"turbo": False})
    assert (record["status"], record["before"], record["after"]) == ("warning", "0", "0")
    assert "1 was asked for" in record["message"]


def test_a_value_that_somebody_else_changed_meanwhile_is_left_with_a_warning(files, control):
    control.apply({"turbo": False, "hyper_threading": False})
    files.write(f"{CPU}/smt/control", "notsupported")
    records = by_control(control.undo())
    assert records["turbo"]["status"] == "done"
    assert records["hyper_threading"]["status"] == "warning"
    assert "set it to notsupported in the meantime" in records["hyper_threading"]["message"]
    assert files.setting(f"{CPU}/smt/control") == "notsupported"


def test_demands_that_make_no_sense_are_refused_one_by_one_and_the_others_are_done(tmp_path, files):
    records = by_control(controls(files, tmp_path).apply({"turbo": "maybe", "overclock": 9, "governor": "performance"}))
    assert records["turbo"]["message"].startswith("not done: 'maybe' is not")
    assert records["overclock"]["message"].startswith("not done: no such control; there are: hyper_threading, turbo")
    assert records["governor"]["status"] == "done"


@pytest.mark.parametrize(
    "wanted",
    [{"c_states": {"max": 1}}, {"turbo": 1}, {"governor": "performance; reboot"}, {"pinning": [0]}, {"warm_up": 60}],
)
def test_nonsense_is_seen(wanted: dict[str, Any]) -> None:
    assert list(problems(wanted)) == list(wanted)


def test_the_warm_up_runs_in_slices_on_all_cpus_and_a_failure_is_told(tmp_path, monkeypatch):
    ran: list[list[str]] = []
    now_s = [100.0]
    monkeypatch.setattr("lepaute.measure.node_agent.control.time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def run(argv: list[str], limit_s: float) -> Ran:
        ran.append(argv)
        now_s[0] += 0.06
        return Ran(0, b"")

    files = machines.intel(tmp_path / "root")
    (record,) = controls(files, tmp_path, run).apply({"warm_up": {"duration_s": 0.1}})
    assert ran == [["stress-ng", "--cpu", "0", "--timeout", "1s"]] * 2
    assert record["status"] == "done"
    (record,) = controls(files, tmp_path / "other", absent).apply({"warm_up": {"duration_s": 60}})
    assert record["message"] == "the processor was not warmed up: stress-ng is not installed"


def test_a_second_demand_keeps_the_values_from_before_the_first(files, before, control):
    control.apply({"governor": "performance"})
    control.apply({"governor": "ondemand"})
    control.undo()
    assert machines.tree(files.root) == before


def test_a_journal_of_a_stranger_cannot_make_us_write_elsewhere(tmp_path: Path) -> None:
    files = machines.write(tmp_path / "root", {"etc/shadow": "kept", "sys/kernel/x": "kept"})
    lines = [
        {"journal": 1, "boot": ""},
        {"control": "turbo", "target": "etc/shadow", "wanted": "1", "before": "0"},
        {"control": "turbo", "target": f"{CPU}/cpu0/../../../../../etc/shadow", "wanted": "1", "before": "0"},
        {"control": "turbo", "target": f"{CPU}/smt/control", "wanted": "1", "before": "a b\nc"},
        [1, 2],
    ]
    journal = tmp_path / "journal"
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [record["status"] for record in undo_journal(journal, files)] == ["warning"] * 4
    assert machines.tree(files.root) == {"etc/shadow": "kept", "sys/kernel/x": "kept"}


def test_a_journal_from_before_the_last_boot_is_of_no_effect(tmp_path, files):
    controls(files, tmp_path).apply({"turbo": False})
    files.write("proc/sys/kernel/random/boot_id", "another")
    assert undo_journal(tmp_path / "journal", files) == []
    assert files.setting(f"{CPU}/intel_pstate/no_turbo") == "1"


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
