"""Machine control on made-up nodes: what is changed, what is told, and that all comes back."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_machines as machines
import pytest

from lepaute.measure.node_agent.control import Controls
from lepaute.measure.node_agent.control_journal import undo_journal
from lepaute.measure.node_agent.control_settings import problems
from lepaute.measure.node_agent.system_files import Ran, SystemFiles

CPU = machines.CPU
EVERYTHING = {
    "hyper_threading": False,
    "turbo": False,
    "c_states": {"max": 1},
    "governor": "performance",
    "frequency": {"fixed_hz": 2.1e9},
}


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
    return {one["control"]: one for one in records}


def test_an_intel_node_is_set_as_wanted_and_given_back_exactly(tmp_path, files, before, control):
    records = control.apply(EVERYTHING)
    assert {one["status"] for one in records} == {"done"}
    during = machines.tree(files.root)
    assert (during[f"{CPU}/smt/control"], during[f"{CPU}/intel_pstate/no_turbo"]) == ("off", "1")
    assert during[f"{CPU}/cpufreq/policy3/scaling_governor"] == "performance"
    assert during[f"{CPU}/cpufreq/policy3/scaling_min_freq"] == "2100000"
    assert during[f"{CPU}/cpufreq/policy3/scaling_max_freq"] == "2100000"
    assert [during[f"{CPU}/cpu1/cpuidle/state{state}/disable"] for state in range(3)] == ["0", "0", "1"]
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


@pytest.mark.parametrize("hertz", [1.0e9, 3.7e9])
def test_limits_never_cross_on_the_way_to_a_fixed_frequency_and_back(tmp_path, hertz, files):
    for policy in range(4):
        (files.root / f"{CPU}/cpufreq/policy{policy}/scaling_min_freq").write_text("2000000")
        (files.root / f"{CPU}/cpufreq/policy{policy}/scaling_max_freq").write_text("3000000")
    before = machines.tree(files.root)
    control = controls(files, tmp_path)
    assert {one["status"] for one in control.apply({"frequency": {"fixed_hz": hertz}})} == {"done"}
    control.undo()
    assert machines.tree(files.root) == before


def test_a_limit_that_another_control_changes_too_comes_back_as_it_was_before_both(tmp_path: Path) -> None:
    machines.intel(tmp_path / "root")
    files = machines.KernelWithTurbo(tmp_path / "root")
    before = machines.tree(files.root)
    control = controls(files, tmp_path)
    records = by_control(control.apply({"turbo": False, "frequency": {"fixed_hz": 1.5e9}}))
    assert (records["frequency"]["status"], records["frequency"]["after"]) == ("done", "1500000")
    assert {one["status"] for one in control.undo()} == {"done"}
    assert machines.tree(files.root) == before


def test_cpus_that_a_job_does_not_get_back_are_told(files, control):
    control.apply({"hyper_threading": False})
    files.write("proc/self/status", "Cpus_allowed_list:\t0-1")
    (message,) = [one["message"] for one in control.undo() if one["status"] == "warning"]
    assert message.startswith("this job may not use the CPUs 2-3 any more")


def test_a_journal_that_cannot_be_written_leaves_the_node_as_it_is(tmp_path, files):
    (tmp_path / "journal").mkdir()  # as good as a full disk: nothing can be written to it
    (record,) = [one for one in controls(files, tmp_path).apply({"turbo": False}) if one["control"] == "turbo"]
    assert "not done, since the journal" in record["message"]
    assert files.setting(f"{CPU}/intel_pstate/no_turbo") == "0"


def test_the_folder_of_the_journal_is_made_or_the_reason_told(tmp_path, files):
    assert controls(files, tmp_path / "a/b").apply({"turbo": False})[0]["status"] == "done"
    (tmp_path / "file").touch()
    (record,) = controls(files, tmp_path / "file").apply({"governor": "performance"})
    assert record["status"] == "warning"
    assert "cannot be had" in record["message"]


def test_an_acpi_node_turns_threads_off_one_by_one_and_boost_by_its_switch(tmp_path: Path) -> None:
    files = machines.acpi(tmp_path / "root")
    before = machines.tree(files.root)
    control = controls(files, tmp_path)
    records = control.apply({"hyper_threading": False, "turbo": False, "governor": "performance"})
    assert {one["status"] for one in records} == {"done"}
    during = machines.tree(files.root)
    # cores are (0, 2) and (1, 3): the second threads go
    assert [during[f"{CPU}/cpu{cpu}/online"] for cpu in (1, 2, 3)] == ["1", "0", "0"]
    assert during[f"{CPU}/cpufreq/boost"] == "0"
    assert during[f"{CPU}/cpu3/cpufreq/scaling_governor"] == "performance"
    control.undo()
    assert machines.tree(files.root) == before


def test_an_amd_node_has_a_boost_switch_a_policy_and_hyper_threading_that_is_off_already(tmp_path: Path) -> None:
    files = machines.amd(tmp_path / "root")
    records = by_control(controls(files, tmp_path).apply({"hyper_threading": False, "turbo": False}))
    assert records["hyper_threading"]["status"] == "unchanged"
    assert records["turbo"]["status"] == "done"
    assert machines.tree(files.root)[f"{CPU}/cpufreq/policy1/boost"] == "0"


def test_a_node_without_any_control_warns_of_each_in_a_sentence_and_changes_nothing(tmp_path: Path) -> None:
    files = machines.bare(tmp_path / "root")
    before = machines.tree(files.root)
    wanted = EVERYTHING | {"warm_up": {"duration_s": 1}, "hyper_threading": True}
    records = controls(files, tmp_path, absent).apply(wanted)
    assert {one["control"] for one in records if one["status"] == "warning"} == set(wanted)
    assert all(len(one["message"]) > 10 for one in records if one["status"] == "warning")
    assert machines.tree(files.root) == before


def test_without_rights_every_control_warns_and_nothing_is_left_to_undo(tmp_path: Path) -> None:
    machines.intel(tmp_path / "root")
    files = machines.KernelThatRefuses(tmp_path / "root")
    control = controls(files, tmp_path)
    records = control.apply(EVERYTHING)
    assert {one["status"] for one in records} == {"warning"}
    assert all(
        "permission denied" in one["message"] or "refused even to root" in one["message"]
        for one in records
        if "cpu_dma" not in one["target"]
    )
    assert control.undo() == []


def test_a_kernel_that_takes_a_value_and_ignores_it_is_found_out(tmp_path: Path) -> None:
    machines.intel(tmp_path / "root")
    control = controls(machines.KernelThatIgnores(tmp_path / "root"), tmp_path)
    (record,) = control.apply({"turbo": False})
    assert (record["status"], record["before"], record["after"]) == ("warning", "0", "0")
    assert "1 was asked for" in record["message"]


def test_a_governor_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (record,) = controls(machines.intel(tmp_path / "root"), tmp_path).apply({"governor": "ondemand"})
    assert record["status"] == "warning"
    assert record["message"] == "there is no governor ondemand; there are: performance, powersave"


def test_idle_states_are_limited_by_name_too(tmp_path, files):
    controls(files, tmp_path).apply({"c_states": {"max": "C1"}})
    assert [files.setting(f"{CPU}/cpu0/cpuidle/state{k}/disable") for k in range(3)] == ["0", "0", "1"]


def test_idle_states_without_switches_are_limited_by_a_request_that_is_held_open(tmp_path, files):
    for name in files.glob(f"{CPU}/cpu*/cpuidle/state*/disable"):
        files.path(name).unlink()
    latency = tmp_path / "root/dev/cpu_dma_latency"
    latency.parent.mkdir()
    latency.write_bytes((2_000_000_000).to_bytes(4, "little"))
    control = controls(files, tmp_path)
    switches, request = control.apply({"c_states": {"max": "C1"}})
    assert switches["status"] == "warning"
    assert (request["status"], request["before"], request["after"]) == ("done", "2000000000 us", "2 us")
    assert latency in _held_open()
    assert control.undo()[0]["message"] == "the request on wake-up time is withdrawn"
    assert latency not in _held_open()


def _held_open() -> list[Path]:
    return [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]


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
    [
        {"c_states": True},
        {"c_states": {"max": -1}},
        {"frequency": {"fixed_hz": 2.1}},  # hertz, not gigahertz
        {"frequency": {"min_hz": 3e9, "max_hz": 2e9}},
        {"frequency": {}},
        {"governor": "performance; reboot"},
        {"pinning": []},
        {"pinning": "sockets"},
        {"scheduling": {"class": "fifo", "priority": 100}},
        {"scheduling": {"class": "other", "priority": 5}},
        {"warm_up": 60},
    ],
)
def test_nonsense_is_seen(wanted: dict[str, Any]) -> None:
    assert list(problems(wanted)) == list(wanted)


def test_pinning_takes_one_cpu_a_core_and_says_which_are_not_allowed(tmp_path: Path) -> None:
    files = machines.bare(tmp_path / "root")
    control = controls(files, tmp_path)
    (record,) = control.apply({"pinning": [0, 7]})
    assert control.launch == {"cpus": [0]}
    assert (record["status"], record["message"]) == ("warning", "not allowed to use the CPUs 7")
    machines.intel(tmp_path / "intel")
    assert SystemFiles(tmp_path / "intel").cores() == [0, 1]


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


def test_a_frequency_the_processor_does_not_have_is_told(tmp_path: Path) -> None:
    records = controls(machines.intel(tmp_path / "root"), tmp_path).apply({"frequency": {"max_hz": 9e9}})
    assert records[0]["status"] == "warning"
    assert "9 GHz is outside what the processor has: 1 to 3.7 GHz" in records[0]["message"]


def test_a_second_demand_keeps_the_values_from_before_the_first(files, before, control):
    control.apply({"frequency": {"max_hz": 2e9}})
    control.apply({"frequency": {"max_hz": 3e9}})
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
    records = undo_journal(journal, files)
    assert [one["status"] for one in records] == ["warning"] * 4
    assert machines.tree(files.root) == {"etc/shadow": "kept", "sys/kernel/x": "kept"}


def test_a_journal_from_before_the_last_boot_is_of_no_effect(tmp_path, files):
    controls(files, tmp_path).apply({"turbo": False})
    files.write("proc/sys/kernel/random/boot_id", "another")
    assert undo_journal(tmp_path / "journal", files) == []
    assert files.setting(f"{CPU}/intel_pstate/no_turbo") == "1"
