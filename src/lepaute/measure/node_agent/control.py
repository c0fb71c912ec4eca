"""Machine control: makes a node steady for an experiment, tells what it did, and gives the node back as it was.

Sources: the kernel's admin-guide/pm/{cpufreq,cpuidle,intel_pstate} and ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .control_journal import Change, Journal, NodeLock, Record, fold, guard, record, report_path, undo_journal, warning
from .system_files import Run, SystemFiles, run_command, why

_WARM_UP_SLICE_S = 10.0
_CPU = "sys/devices/system/cpu"


def problems(settings: Mapping[str, Any]) -> dict[str, str]:
    """Name of each control whose demand cannot be understood, and what is wrong with it; empty when all are fine."""
    complaints = {}
    for name, value in settings.items():
        if name not in _RULES:
            complaints[name] = f"no such control; there are: {', '.join(_RULES)}"
        elif not _RULES[name][1](value):
            complaints[name] = f"{value!r} is not {_RULES[name][0]}"
    return complaints


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_governor(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-z_]{1,15}", value) is not None


def _is_warm_up(value: Any) -> bool:
    seconds = value.get("duration_s") if isinstance(value, Mapping) and len(value) == 1 else None
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0.1 <= seconds <= 86400


#: What a value of each control must be, in words and as a test.
_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "hyper_threading": ("true or false", _is_flag),
    "turbo": ("true or false", _is_flag),
    "c_states": ("true or false", _is_flag),
    "governor": ("the name of a governor, such as performance", _is_governor),
    "warm_up": ("a mapping with duration_s, from 0.1 s to a day", _is_warm_up),
}


def _hyper_threading(files: SystemFiles, enabled: bool) -> list[Change]:
    switch = f"{_CPU}/smt/control"
    able = files.read_or(switch) in {"on", "off"}
    return [Change("hyper_threading", switch, "on" if enabled else "off")] if able else []


def _turbo(files: SystemFiles, enabled: bool) -> list[Change]:
    """intel_pstate counts the other way round; newer drivers have a switch a policy."""
    no_turbo, boost = f"{_CPU}/intel_pstate/no_turbo", f"{_CPU}/cpufreq/boost"
    if files.exists(no_turbo):
        return [Change("turbo", no_turbo, "0" if enabled else "1")]
    switches = [boost] if files.exists(boost) else [f"{policy}/boost" for policy in _policies(files)]
    return [Change("turbo", switch, "1" if enabled else "0") for switch in switches if files.exists(switch)]


def _c_states(files: SystemFiles, enabled: bool) -> list[Change]:
    """All idle states but state 0, which always remains."""
    states = files.glob(f"{_CPU}/cpu[0-9]*/cpuidle/state[0-9]*/disable")
    return [Change("c_states", state, "0" if enabled else "1") for state in states if "/state0/" not in state]


def _governor(files: SystemFiles, chosen: str) -> list[Change]:
    """The same for all CPUs."""
    return [Change("governor", f"{policy}/scaling_governor", chosen) for policy in _policies(files)]


def _policies(files: SystemFiles) -> list[str]:
    """The folders of cpufreq: one a group of CPUs that share a clock, in older kernels one a CPU."""
    return files.glob(f"{_CPU}/cpufreq/policy[0-9]*") or files.glob(f"{_CPU}/cpu[0-9]*/cpufreq")


#: The order in which they are applied: CPUs that are taken off line need nothing else.
_STAGES: dict[str, Callable[[SystemFiles, Any], list[Change]]] = {
    "hyper_threading": _hyper_threading,
    "turbo": _turbo,
    "c_states": _c_states,
    "governor": _governor,
}


class Controls:
    """The controls of one experiment on one node.

    files   : the root of the system's control files
    journal : where the values from before are kept (made when needed, removed by undo). All experiments on a node
              must name the same one, on a disk of the node itself: the lock beside it (the suffix .lock) lets one of
              them at a time change the node, and a journal that is found was left behind by one that was killed.
    run     : runs stress-ng
    watchdog: whether a process of its own undoes everything if this one dies; made at the first change

    Nothing here raises for want of permission, hardware or sense in what is wanted: a record with the status
    "warning" says so in one sentence.
    """

    def __init__(self, files: SystemFiles, journal: Path, run: Run = run_command, watchdog: bool = True) -> None:
        self._files = files
        self._path = Path(journal)
        self._run = run
        self._watchdog = watchdog
        self._lock = NodeLock(self._path.with_name(self._path.name + ".lock"))
        self._journal = Journal(self._path, files)
        self._pipe: int | None = None

    def apply(self, settings: Mapping[str, Any]) -> list[Record]:
        """Does what is wanted and returns a record of each thing done or not."""
        strange = problems(settings)
        records = [warning(name, "", f"not done: {message}") for name, message in strange.items()]
        fine = {name: value for name, value in settings.items() if name not in strange}
        if fine:
            refusal, leftovers = self._take_the_node()
            records += leftovers
            if refusal:
                return fold(records + [warning(name, "", f"not done: {refusal}") for name in fine])
        for name in _STAGES:
            if name in fine:
                records += self._stage(name, fine[name])
        if "warm_up" in fine:
            records.append(self._warm_up(float(fine["warm_up"]["duration_s"])))
        return fold(records)

    def undo(self) -> list[Record]:
        """Gives the node back: values in reverse order, the watchdog, the lock."""
        self._journal.close()
        records = undo_journal(self._path, self._files) if self._lock.descriptor is not None else []
        if self._pipe is not None:
            os.close(self._pipe)  # with nothing left in the journal the watchdog just ends
            self._pipe = None
        self._lock.release()
        return fold(records)

    def _take_the_node(self) -> tuple[str, list[Record]]:
        """(why the node cannot be ours, or ""; what was undone of experiments that were killed)."""
        if self._lock.descriptor is not None:
            return "", []
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            refusal = self._lock.acquire()
        except OSError as error:
            return f"the lock {self._lock.path} cannot be had: {error.strerror}", []
        if refusal:
            return refusal, []
        records = undo_leftover(self._path, self._files)
        if self._watchdog:
            try:
                self._pipe = guard(self._path, self._files, (self._lock.descriptor or 0,))
            except OSError as error:
                self._lock.release()
                return f"no watchdog can be started to undo it: {error.strerror}", records
        return "", records

    def _stage(self, name: str, value: Any) -> list[Record]:
        planned = _STAGES[name](self._files, value)
        if not planned:
            message = f"this node has no switch for {name} (a virtual machine, or left to its firmware)"
            return [warning(name, _CPU, message)]
        records: list[Record] = []
        todo: list[tuple[Change, str]] = []
        for change in planned:
            try:
                current = self._files.setting(change.target)
            except OSError as error:
                records.append(warning(name, change.target, f"not done: {why(error)}"))
                continue
            if current == change.wanted:
                records.append(record(name, change.target, "unchanged", "", current, current))
            else:
                todo.append((change, current))
        try:
            self._journal.intend(todo)
        except OSError as error:
            message = f"not done, since the journal {self._path} cannot be written: {error.strerror}"
            return records + [warning(name, change.target, message) for change, _ in todo]
        return records + [self._change(change, current) for change, current in todo]

    def _change(self, change: Change, current: str) -> Record:
        try:
            self._files.write(change.target, change.wanted)
        except OSError as error:
            return record(change.control, change.target, "warning", f"not done: {why(error)}", current, current)
        try:
            after = self._files.setting(change.target)
        except OSError as error:
            message = f"written, but it cannot be read back: {why(error)}"
            return record(change.control, change.target, "warning", message, current)
        fine = after == change.wanted
        message = "" if fine else f"{change.wanted} was asked for; the kernel took it and keeps {after}"
        return record(change.control, change.target, "done" if fine else "warning", message, current, after)

    def _warm_up(self, duration_s: float) -> Record:
        """In slices: if the agent is killed, what it started for this ends soon by itself."""
        start_s = time.monotonic()
        while (left_s := duration_s - (time.monotonic() - start_s)) > 0:
            slice_s = math.ceil(min(left_s, _WARM_UP_SLICE_S))
            ran = self._run(["stress-ng", "--cpu", "0", "--timeout", f"{slice_s}s"], slice_s + 30.0)
            if ran.returncode != 0:
                tail = ran.stderr.decode(errors="replace").strip().split("\n")[-1]
                reason = ran.problem or tail or f"exit status {ran.returncode}"
                return warning("warm_up", "stress-ng", f"the processor was not warmed up: {reason}")
        return record("warm_up", "stress-ng", "done", f"all CPUs at work for {time.monotonic() - start_s:.0f} s")


def undo_leftover(journal: Path, files: SystemFiles) -> list[Record]:
    """Changes that a killed experiment left behind: undone now, or already by its watchdog (which left a report).

    Only to be called by who holds the node's lock: a journal in use is none that was left behind.
    """
    records: list[Record] = []
    report = report_path(Path(journal))
    # No report is the ordinary case, and half a one tells of nothing that needs doing.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        lines = report.read_text().splitlines()
        report.unlink()
        for line in lines:
            undone = json.loads(line)
            undone["message"] = f"by the watchdog of an earlier experiment that was killed: {undone['message']}"
            records.append(undone)
    for undone in undo_journal(Path(journal), files):
        undone["message"] = f"left behind by an earlier experiment that was killed: {undone['message']}"
        records.append(undone)
    return fold(records)
