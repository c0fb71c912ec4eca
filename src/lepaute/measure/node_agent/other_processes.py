"""How much of the CPUs the processes take that are not the experiment's own, and whose they are."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .sensors import Row
from .system_files import SystemFiles

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of the kernel's sched.h
#: After so many scans the numbers of kernel threads are looked at again: one may have ended, its number be reused.
_FORGET_EVERY = 60
_NAMED = 3
#: Below this share of one CPU a process is not worth a name.
_LEAST_NAMED_SHARE = 0.01


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
    are in a session of ours. A scan costs one file a process: there is at most one each `least_s`; rows in between
    repeat the one before.
    """

    columns = ("other_users_cpu_s", "other_users_share", "others_share", "other_users")

    def __init__(
        self,
        files: SystemFiles,
        agent: int,
        user: int,
        now_s: float,
        ticks_per_s: int = 0,
        least_s: float = 1.0,
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
            user = self._owner(pid)
            if user == self._user or user is None:
                others_s += used_s
                continue
            strangers_s += used_s
            if passed_s > 0 and used_s / passed_s >= _LEAST_NAMED_SHARE:
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
            verdict = known.get(current, False)
            known.update(dict.fromkeys(chain, verdict))
        descendants = {pid for pid, mine in known.items() if mine}
        self._sessions.update(processes[pid].session for pid in descendants if pid in processes)
        self._sessions.discard(0)
        return descendants | {pid for pid, process in processes.items() if process.session in self._sessions}

    def _owner(self, pid: int) -> int | None:
        match = re.search(r"^Uid:\s*([0-9]+)", self._files.read_or(f"proc/{pid}/status"), re.MULTILINE)
        return int(match.group(1)) if match else None


def parse_stat(data: bytes) -> Process:
    """A line of /proc/PID/stat; the name in it may hold spaces and brackets, so fields count from the last one."""
    name = data[data.index(b"(") + 1 : data.rindex(b")")].decode(errors="replace")
    fields = data[data.rindex(b")") + 2 :].split()
    return Process(
        name=name,
        parent=int(fields[1]),
        session=int(fields[3]),
        flags=int(fields[6]),
        ticks=int(fields[11]) + int(fields[12]),
        start=int(fields[19]),
    )
