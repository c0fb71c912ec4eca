"""Monitoring on a made-up node, where every value is known, and on this machine, where it must just work."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_machines as machines
import pytest
from support_limits import HANG_S, wait_until

from lepaute.measure.node_agent import monitor as monitor_module
from lepaute.measure.node_agent.monitor import Monitor, OtherProcesses, ReferenceKernel
from lepaute.measure.node_agent.sensors import Found
from lepaute.measure.node_agent.system_files import SystemFiles

RAPL = "sys/class/powercap"


def measured_node(root: Path) -> SystemFiles:
    """An Intel node with two packages' sensors."""
    machines.intel(root)
    files = {
        f"{machines.CPU}/cpu{cpu}/cpufreq/scaling_cur_freq": str(2_000_000 + cpu) for cpu in range(4)
    } | {
        "sys/class/hwmon/hwmon0/name": "coretemp",
        "sys/class/hwmon/hwmon0/temp1_input": "41000",
        "sys/class/hwmon/hwmon0/temp1_label": "Package id 0",
        "sys/class/hwmon/hwmon0/temp2_input": "40500",
        "sys/class/hwmon/hwmon0/temp2_label": "Core 0",
        "sys/class/hwmon/hwmon1/name": "coretemp",
        "sys/class/hwmon/hwmon1/temp2_input": "39000",
        "sys/class/hwmon/hwmon1/temp2_label": "Core 0",
        f"{RAPL}/intel-rapl:0/name": "package-0",
        f"{RAPL}/intel-rapl:0/energy_uj": "999000000",
        f"{RAPL}/intel-rapl:0/max_energy_range_uj": "999999999",
        f"{RAPL}/intel-rapl:0:0/name": "dram",
        f"{RAPL}/intel-rapl:0:0/energy_uj": "1000000",
        f"{RAPL}/intel-rapl:0:0/max_energy_range_uj": "999999999",
        f"{RAPL}/intel-rapl:1/name": "package-1",
        f"{RAPL}/intel-rapl:1/energy_uj": "0",
        f"{RAPL}/intel-rapl:1/max_energy_range_uj": "999999999",
        f"{RAPL}/intel-rapl-mmio:0/name": "package-0",
        f"{RAPL}/intel-rapl-mmio:0/energy_uj": "5",
        "proc/meminfo": "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   600 kB",
        "proc/loadavg": "1.25 0.5 0.1 1/100 99",
        "proc/stat": "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 1 1 1 1",
        "sys/class/net/lo/statistics/rx_bytes": "9",
        "sys/class/net/lo/statistics/tx_bytes": "9",
        "sys/class/net/eth0/statistics/rx_bytes": "1000",
        "sys/class/net/eth0/statistics/tx_bytes": "2000",
        "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "10",
        "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "20",
    }  # fmt: skip
    return machines.write(root, files)


def test_every_column_has_the_value_that_the_files_say(tmp_path: Path) -> None:
    files = measured_node(tmp_path)
    found = Found(files, now_s=100.0)
    assert found.absent == []
    for name, value in {
        f"{RAPL}/intel-rapl:0/energy_uj": "4000000",  # past the end of its range
        f"{RAPL}/intel-rapl:0:0/energy_uj": "9000000",
        f"{RAPL}/intel-rapl:1/energy_uj": "0",
        "proc/stat": "cpu  130 0 10 140 0 0 0 20 0 0",
        "sys/class/net/eth0/statistics/rx_bytes": "1500",
        "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "35",
    }.items():
        files.write(name, value)
    row: dict[str, Any] = {}
    for sensor in found.sensors:
        sensor.read(row, 102.0)
    found.close()
    assert row == {
        "frequency_core0_hz": 2.0e9,  # cores, not threads: CPUs 2 and 3 are second threads
        "frequency_core1_hz": 2.000001e9,
        "temperature_coretemp_package_id_0_celsius": 41.0,
        "temperature_coretemp_core_0_celsius": 40.5,
        "temperature_coretemp_core_0_2_celsius": 39.0,
        "power_package0_watt": pytest.approx(2.5),
        "power_dram0_watt": pytest.approx(4.0),
        "power_package1_watt": 0.0,
        "memory_used_bytes": 400 * 1024,
        "memory_available_bytes": 600 * 1024,
        "load1": 1.25,
        "cpu_busy_share": pytest.approx(0.4),
        "cpu_iowait_share": 0.0,
        "steal_share": pytest.approx(0.2),
        "network_eth0_received_bytes": 500,
        "network_eth0_sent_bytes": 0,
        "network_mlx5_0_port1_received_bytes": 100,  # its counter counts words of four bytes
        "network_mlx5_0_port1_sent_bytes": 0,
    }


def test_a_network_counter_that_starts_anew_goes_on_growing(tmp_path: Path) -> None:
    files = measured_node(tmp_path)
    found = Found(files, 0.0)
    seen = []
    for value in ("1500", "20", "50"):  # 500 more, then a new start: 20, then 30 more
        files.write("sys/class/net/eth0/statistics/rx_bytes", value)
        row: dict[str, Any] = {}
        for sensor in found.sensors:
            sensor.read(row, 1.0)
        seen.append(row["network_eth0_received_bytes"])
    found.close()
    assert seen == [500, 520, 550]


def test_a_receiver_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "_PATIENCE_S", 0.05)
    begun, release = threading.Event(), threading.Event()

    def hangs(row: dict[str, Any]) -> None:
        begun.set()
        release.wait(HANG_S)

    monitor = Monitor(SystemFiles(), 0.01, hangs)
    monitor.start()
    assert begun.wait(HANG_S)
    assert monitor.stop()["problem"] == "monitoring does not end: its last row is not taken"
    release.set()
    monkeypatch.setattr(monitor_module, "_PATIENCE_S", HANG_S)
    assert monitor.stop()["problem"] == ""


def test_sensors_that_a_node_does_not_show_are_named_with_the_reason(tmp_path: Path) -> None:
    absent = dict(Found(machines.bare(tmp_path), 0.0).absent)
    assert set(absent) == {"frequency", "temperature", "power", "memory", "load", "processors", "network"}
    assert absent["memory"] == "/proc/meminfo: the kernel or the hardware does not have it"


def stat(pid: int, name: str, parent: int, session: int, ticks: int, flags: int = 0) -> str:
    return f"{pid} ({name}) S {parent} {pid} {session} 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 1 0 77 0 0"


def put(root: Path, pid: int, user: int, *more: Any, **flags: Any) -> None:
    machines.write(root, {f"proc/{pid}/stat": stat(pid, *more, **flags), f"proc/{pid}/status": f"Uid:\t{user}\t{user}"})


def test_processes_of_the_experiment_its_user_and_other_users_are_told_apart(tmp_path: Path) -> None:
    files = machines.bare(tmp_path)
    busy = 300  # ticks: 3 s in 10 s on two CPUs are 15 %

    def scene(ticks: int) -> None:
        put(tmp_path, 10, 1000, "agent", 1, 10, ticks)
        put(tmp_path, 11, 1000, "bench ) (x", 10, 11, ticks)
        put(tmp_path, 12, 1000, "orphan", 1, 11, ticks)  # its parent is gone, its session is one of ours
        put(tmp_path, 20, 1000, "editor", 1, 20, ticks)
        put(tmp_path, 30, 1001, "matlab", 1, 30, ticks)
        put(tmp_path, 31, 1001, "idle", 1, 30, 0)
        put(tmp_path, 2, 0, "kthreadd", 0, 0, ticks, flags=0x00200000)

    scene(0)
    others = OtherProcesses(files, agent=10, user=1000, now_s=0.0, ticks_per_s=100)
    scene(busy)
    row: dict[str, Any] = {}
    others.read(row, 10.0)
    assert row == {
        "other_users_cpu_s": 3.0,
        "other_users_share": pytest.approx(0.15),
        "others_share": pytest.approx(0.15),
        "other_users": "1001:matlab 0.30",
    }
    others.read(repeated := {}, 10.5)
    assert repeated == row  # half a second later there is no new scan
    put(tmp_path, 40, 1002, "new", 1, 40, 100)  # began in between: all that it used counts
    others.read(row, 20.0)
    assert (row["other_users_cpu_s"], row["other_users"]) == (4.0, "1002:new 0.10")


def test_hidden_processes_of_other_users_are_told(tmp_path: Path) -> None:
    files = machines.write(tmp_path, {"proc/mounts": "proc /proc proc rw,relatime,hidepid=invisible 0 0"})
    assert "hidepid=invisible" in OtherProcesses(files, 1, 1000, 0.0).hidden()
    assert OtherProcesses(files, 1, 0, 0.0).hidden() == ""  # root sees all


def watch(files: SystemFiles, rows: int, emit: Callable[[dict[str, Any]], object] | None = None, **more: Any) -> Any:
    """(rows, summary) of a monitor with a period of 20 ms."""
    seen: list[dict[str, Any]] = []
    enough = threading.Event()

    def keep(row: dict[str, Any]) -> None:
        seen.append(row)
        if emit is not None:
            emit(row)
        if len(seen) >= rows:
            enough.set()

    monitor = Monitor(files, 0.02, keep, **more)
    monitor.start()
    assert enough.wait(HANG_S)
    return seen, monitor.stop()


class MadeUpTime:
    """A clock, of which a pause takes nobody's time; stands for the module `time` and for the event of the end."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.stopping = threading.Event()

    def monotonic(self) -> float:
        return self.now_s

    thread_time = monotonic

    def set(self) -> None:
        self.stopping.set()

    def wait(self, pause_s: float) -> bool:
        self.now_s += pause_s
        return self.stopping.is_set()


def scheduled(monkeypatch: pytest.MonkeyPatch, takes_s: float) -> tuple[list[float], int]:
    """Dates of five rows, of which each takes so long, with a period of 0.25 s; and how many were left out."""
    clock = MadeUpTime()
    dates: list[float] = []

    def keep(row: dict[str, Any]) -> None:
        dates.append(row["monotonic_s"])
        clock.now_s += takes_s
        if len(dates) == 5:
            clock.set()

    monkeypatch.setattr(monitor_module, "time", clock)
    monitor = Monitor(SystemFiles("/nowhere"), 0.25, keep, wall=clock.monotonic)
    monitor._stopping = clock
    monitor.start()
    assert clock.stopping.wait(HANG_S)
    return dates, monitor.stop()["missed"]


def test_samples_keep_to_their_schedule_and_those_left_out_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scheduled(monkeypatch, 0.0625) == ([0.25, 0.5, 0.75, 1.0, 1.25], 0)
    # Three periods and a half: every other row comes half a period late, and none a whole one.
    assert scheduled(monkeypatch, 0.875) == ([0.25, 1.125, 2.0, 2.875, 3.75], 2 + 3 + 2 + 3 + 2)


def test_a_step_of_the_wall_clock_changes_the_stamps_and_nothing_else() -> None:
    times = iter([1e9, 5e8, 2e9, *[3e9] * 1000])
    rows, _ = watch(SystemFiles(), 3, wall=lambda: next(times))
    assert [row["time_s"] for row in rows[:3]] == [1e9, 5e8, 2e9]
    assert rows[0]["monotonic_s"] < rows[1]["monotonic_s"] < rows[2]["monotonic_s"]


def test_a_receiver_that_fails_ends_monitoring_and_the_summary_says_so() -> None:
    def gone(row: dict[str, Any]) -> None:
        raise BrokenPipeError("the engine is gone")

    monitor = Monitor(SystemFiles(), 0.01, gone)
    monitor.start()
    wait_until(lambda: monitor.summary().get("problem"), "the end of monitoring")
    assert monitor.stop()["problem"] == "monitoring ended early: BrokenPipeError: the engine is gone"


def test_a_sensor_that_fails_in_the_middle_gives_nothing_for_its_column_only(tmp_path: Path) -> None:
    files = measured_node(tmp_path)

    def breaks(row: dict[str, Any]) -> None:
        (tmp_path / "sys/class/hwmon/hwmon0/temp1_input").write_text("")

    rows, summary = watch(files, 3, breaks)
    assert rows[0]["temperature_coretemp_package_id_0_celsius"] == 41.0
    assert rows[2]["temperature_coretemp_package_id_0_celsius"] is None
    assert rows[2]["temperature_coretemp_core_0_celsius"] == 40.5
    assert summary["failures"]["temperature_coretemp_package_id_0_celsius"] == len(rows) - 1


def test_the_reference_kernel_takes_time_in_both_its_parts() -> None:
    compute_s, memory_s = ReferenceKernel().measure()
    assert 0 < compute_s < 60
    assert 0 < memory_s < 60
