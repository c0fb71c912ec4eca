"""Watches a node while an experiment runs on it: samples of its sensors, their cost, and a reference kernel."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from .sensors import Absent, Found, Row, Sensor
from .system_files import SystemFiles

_PATIENCE_S = 10.0
#: Two looks at clocks are one within this.
_APART_S = 1e-3
#: Fits the second-level cache of every processor in use: no memory traffic in the first part.
_COMPUTE_BYTES = 128 * 1024
_COMPUTE_PASSES = 40
_COMPRESSED_BYTES = 64 * 1024
_COMPRESSION_PASSES = 3
#: More than a core's share of most last-level caches, little enough for a node that is full of ranks.
_MEMORY_BYTES = 24 * 1024 * 1024
_MEMORY_PASSES = 4
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of the kernel's sched.h
#: After this many scans the numbers of kernel threads are looked at again: one may have ended, its number be reused.
_FORGET_EVERY = 60
_NAMED = 3
#: Below this share of one CPU a process is not worth a name.
_MIN_NAMED_SHARE = 0.01


class Process(NamedTuple):
    """From /proc/PID/stat."""

    name: str
    parent: int
    session: int
    flags: int
    ticks: int
    start: int


class OtherProcesses:
    """CPU time of processes that are neither the agent's descendants nor in one of their sessions.

    Columns: other_users_cpu_s (since the start of monitoring), other_users_share (of all CPUs, since the sample
    before), others_share (the same of processes of our own user that are not the experiment's), other_users (the
    busiest: "uid:name share-of-one-CPU", joined by "; "). What a process used between the last sample and its end is
    not seen; threads of the kernel are nobody's. Ranks that a launcher's daemon starts count as `others` unless they
    are in a session of ours. A scan costs one file a process: at most one each `least_s`; rows between repeat it.
    """

    columns = ("other_users_cpu_s", "other_users_share", "others_share", "other_users")

    def __init__(
        self, files: SystemFiles, agent: int, user: int, now_s: float, ticks_per_s: int = 0, least_s: float = 1.0
    ) -> None:
        self._files = files
        self._agent = agent
        self._user = user
        self._ticks_per_s = ticks_per_s or os.sysconf("SC_CLK_TCK")
        self._cpus = max(1, len(files.cpus()))
        self._kernel: set[int] = set()
        self._sessions: set[int] = set()
        self._scans = 0
        self._last_s = now_s
        self._total_s = 0.0
        self._least_s = least_s
        self._shown: Row = dict.fromkeys(self.columns)
        self._last = self._scan()

    def hidden(self) -> str:
        """Why other users' processes cannot be seen; empty when they can."""
        for line in self._files.read_or("proc/mounts").splitlines():
            words = line.split()
            options = words[3].split(",") if len(words) > 3 and words[1] == "/proc" else []
            hidden = {
                option for option in options if re.fullmatch(r"hidepid=(1|2|4|noaccess|invisible|ptraceable)", option)
            }
            if hidden and self._user != 0:
                return f"/proc is mounted with {hidden.pop()}: other users' processes do not show"
        return ""

    def read(self, row: Row, now_s: float) -> None:
        """The four columns."""
        if now_s - self._last_s >= self._least_s:
            self._look(now_s)
        row.update(self._shown)

    def _look(self, now_s: float) -> None:
        before, self._last = self._last, self._scan()
        passed_s = now_s - self._last_s
        self._last_s = now_s
        ours = self._ours()
        others_s = strangers_s = 0.0
        named: list[tuple[float, str]] = []
        for pid, process in self._last.items():
            if pid in ours:
                continue
            old = before.get(pid)
            ticks = process.ticks - (old.ticks if old is not None and old.start == process.start else 0)
            if ticks <= 0:
                continue
            used_s = ticks / self._ticks_per_s
            match = re.search(r"^Uid:\s*([0-9]+)", self._files.read_or(f"proc/{pid}/status"), re.MULTILINE)
            user = int(match.group(1)) if match else None
            if user == self._user or user is None:
                others_s += used_s
                continue
            strangers_s += used_s
            if passed_s > 0 and used_s / passed_s >= _MIN_NAMED_SHARE:
                named.append((used_s / passed_s, f"{user}:{process.name}"))
        self._total_s += strangers_s
        capacity_s = passed_s * self._cpus
        self._shown = {
            "other_users_cpu_s": self._total_s,
            "other_users_share": strangers_s / capacity_s if capacity_s > 0 else None,
            "others_share": others_s / capacity_s if capacity_s > 0 else None,
            "other_users": "; ".join(f"{who} {share:.2f}" for share, who in sorted(named, reverse=True)[:_NAMED]),
        }

    def _scan(self) -> dict[int, Process]:
        if self._scans % _FORGET_EVERY == 0:
            self._kernel.clear()
        self._scans += 1
        processes = {}
        folder = self._files.path("proc")
        for name in os.listdir(folder):
            if not name.isdecimal() or int(name) in self._kernel:
                continue
            try:
                with open(f"{folder}/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123  half the time of Path
                    process = parse_stat(file.read(4096))
            except (OSError, ValueError, IndexError):
                continue  # it ended in the meantime
            if process.flags & _KERNEL_THREAD:
                self._kernel.add(int(name))
            else:
                processes[int(name)] = process
        return processes

    def _ours(self) -> set[int]:
        """Descendants of the agent, and all in a session that one of them was ever seen in."""
        processes = self._last
        known: dict[int, bool] = {self._agent: True}
        for pid in processes:
            chain = []
            current = pid
            while current not in known and current in processes and current not in chain:
                chain.append(current)
                current = processes[current].parent
            known.update(dict.fromkeys(chain, known.get(current, False)))
        descendants = {pid for pid, mine in known.items() if mine}
        self._sessions.update(processes[pid].session for pid in descendants if pid in processes)
        self._sessions.discard(0)
        return descendants | {pid for pid, process in processes.items() if process.session in self._sessions}


def parse_stat(data: bytes) -> Process:
    """A line of /proc/PID/stat; the name in it may hold spaces and brackets, so fields count from the last one."""
    name = data[data.index(b"(") + 1 : data.rindex(b")")].decode(errors="replace")
    fields = data[data.rindex(b")") + 2 :].split()
    parent, session, flags, user, system, start = (int(fields[place]) for place in (1, 3, 6, 11, 12, 19))
    return Process(name, parent, session, flags, user + system, start)


class Monitor:
    """A thread that emits one row each period, on a schedule that does not drift.

    files   : the root of the system's files
    period_s: from 0.01 to 3600 s
    emit    : takes a row; called in the monitor's thread. If it raises, monitoring ends and the summary says so
    wall    : the clock of time_s; no other time is taken from it, so a step of it changes nothing else

    A row has time_s (wall clock), monotonic_s, monitor_cpu_s (CPU time of the monitor up to the row before), and the
    columns of the sensors that were found at start(); a value is None if a sensor failed for once. `absent` lists
    those that the node does not have, and why. A sample that would be a period late is left out, counted as missed.
    """

    def __init__(
        self, files: SystemFiles, period_s: float, emit: Callable[[Row], object], wall: Callable[[], float] = time.time
    ) -> None:
        if not 0.01 <= period_s <= 3600:
            raise ValueError(f"the period is {period_s!r} s; it is from 0.01 s to an hour")
        self.absent: list[Absent] = []
        self.columns: list[str] = []
        self._files = files
        self._period_s = period_s
        self._emit = emit
        self._wall = wall
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._found: Found | None = None
        self._sensors: list[Sensor | OtherProcesses] = []
        self._summary: dict[str, Any] = {}
        self._failures: dict[str, int] = {}

    def start(self) -> None:
        """Finds the sensors and begins; the first row comes after one period, since a power takes two readings."""
        now_s = time.monotonic()
        self._found = Found(self._files, now_s)
        self._sensors = list(self._found.sensors)
        self.absent = list(self._found.absent)
        try:
            others = OtherProcesses(self._files, os.getpid(), os.getuid(), now_s)
        except OSError as error:
            self.absent.append(Absent("processes", f"/proc cannot be listed: {error.strerror}"))
        else:
            self._sensors.append(others)
            if others.hidden():
                self.absent.append(Absent("other users' processes", others.hidden()))
        self.columns = [column for sensor in self._sensors for column in sensor.columns]
        self._thread = threading.Thread(target=self._watch, args=(now_s,), name="monitor", daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, Any]:
        """Ends the thread and returns the summary; a second call returns it again.

        A thread that hangs in emit() is left alone, with its files, after ten seconds; the summary says so.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)
            if self._thread.is_alive():
                return {**self.summary(), "problem": "monitoring does not end: its last row is not taken"}
            self._thread = None
        if self._found is not None:
            self._found.close()
            self._found = None
        return self.summary()

    def summary(self) -> dict[str, Any]:
        """Samples, missed, duration and what it cost: monitor_cpu_s, of it a sample, and as share of one CPU."""
        absent = [one._asdict() for one in self.absent]
        return {**self._summary, "period_s": self._period_s, "absent": absent, "failures": dict(self._failures)}

    def _watch(self, start_s: float) -> None:
        begin_cpu_s = time.thread_time()
        samples = missed = slot = 0
        problem = ""
        cpu_s = 0.0
        while True:
            slot += 1
            behind = int((time.monotonic() - start_s) / self._period_s) - slot
            if behind > 0:
                missed += behind
                slot += behind
            if self._stopping.wait(max(0.0, start_s + slot * self._period_s - time.monotonic())):
                break
            row = self._sample(cpu_s)
            samples += 1
            try:
                self._emit(row)
            except Exception as error:  # noqa: BLE001  whatever it is, it is told at the end
                problem = f"monitoring ended early: {type(error).__name__}: {error}"
                break
            cpu_s = time.thread_time() - begin_cpu_s
            self._summarise(samples, missed, cpu_s, start_s, problem)
        self._summarise(samples, missed, time.thread_time() - begin_cpu_s, start_s, problem)

    def _sample(self, cpu_s: float) -> Row:
        for _ in range(5):  # again where this thread was held up in between, as if the clock had been set meanwhile
            now_s, wall_s = time.monotonic(), self._wall()
            if time.monotonic() - now_s < _APART_S:
                break
        row: Row = {"time_s": wall_s, "monotonic_s": now_s, "monitor_cpu_s": cpu_s}
        for sensor in self._sensors:
            try:
                sensor.read(row, now_s)
            except (OSError, ValueError, IndexError):
                for column in sensor.columns:
                    row[column] = None
                    self._failures[column] = self._failures.get(column, 0) + 1
        return row

    def _summarise(self, samples: int, missed: int, cpu_s: float, start_s: float, problem: str) -> None:
        duration_s = time.monotonic() - start_s
        self._summary = {
            "samples": samples,
            "missed": missed,
            "duration_s": duration_s,
            "monitor_cpu_s": cpu_s,
            "monitor_cpu_s_per_sample": cpu_s / samples if samples else None,
            "monitor_share_of_one_cpu": cpu_s / duration_s if duration_s > 0 else None,
            "problem": problem,
        }


class ReferenceKernel:
    """The work and its buffers: made once, so that no measurement pays for first touches of pages."""

    def __init__(self) -> None:
        self._small = bytes(range(256)) * (_COMPUTE_BYTES // 256)
        self._text = b"".join(hashlib.sha256(b"%d" % i).hexdigest().encode() for i in range(_COMPRESSED_BYTES // 64))
        self._source = bytearray(b"\x5a") * _MEMORY_BYTES
        self._destination = bytearray(_MEMORY_BYTES)
        self.measure()  # the first pass touches the pages and fills the caches

    def measure(self) -> tuple[float, float]:
        """(compute_s, memory_s): wall time of hashing and compressing within the cache, and of copies through memory.

        Two kinds of computing, since a hash may run in an instruction of its own. Wall time, not CPU time: another
        process on the core is one of the changes to be seen. 10 to 40 ms together on the processors of ten years.
        """
        start = time.perf_counter()
        for _ in range(_COMPUTE_PASSES):
            hashlib.sha256(self._small).digest()
        for _ in range(_COMPRESSION_PASSES):
            zlib.compress(self._text, 6)
        middle = time.perf_counter()
        for _ in range(_MEMORY_PASSES):
            memoryview(self._destination)[:] = self._source
        return middle - start, time.perf_counter() - middle
