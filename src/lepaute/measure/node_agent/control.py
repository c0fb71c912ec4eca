"""Machine control: makes a node steady for an experiment, tells what it did, and gives the node back as it was."""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import control_settings
from .control_journal import (
    Change,
    Journal,
    NodeLock,
    Record,
    current_value,
    fold,
    guard,
    record,
    report_path,
    undo_journal,
    warning,
)
from .system_files import Run, SystemFiles, format_cpus, run_command, why

_WARM_UP_SLICE_S = 10.0
_LATENCY = "dev/cpu_dma_latency"
#: The order in which they are applied: CPUs that are taken off line need nothing else; a change of turbo or of the
#: governor resets the limits of the frequency.
_STAGES: dict[str, Callable[[SystemFiles, Any], control_settings.Plan]] = {
    "hyper_threading": control_settings.hyper_threading,
    "turbo": control_settings.turbo,
    "governor": control_settings.governor,
    "frequency": control_settings.frequency,
    "c_states": control_settings.c_states,
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
    "warning" says so in one sentence. `launch` says how to start commands under these controls (control_settings).
    """

    def __init__(self, files: SystemFiles, journal: Path, run: Run = run_command, watchdog: bool = True) -> None:
        self.launch: control_settings.Launch = {}
        self._files = files
        self._path = Path(journal)
        self._run = run
        self._watchdog = watchdog
        self._lock = NodeLock(self._path.with_name(self._path.name + ".lock"))
        self._journal = Journal(self._path, files)
        self._before: dict[str, str] = {}
        self._allowed: set[int] = set()
        self._pipe: int | None = None
        self._latency: int | None = None

    def apply(self, settings: Mapping[str, Any]) -> list[Record]:
        """Does what is wanted (control_settings tells what there is) and returns a record of each thing done or not."""
        strange = control_settings.problems(settings)
        records = [warning(name, "", f"not done: {message}") for name, message in strange.items()]
        fine = {name: value for name, value in settings.items() if name not in strange}
        shared = [name for name in control_settings.MACHINE if name in fine]
        if shared:
            refusal, leftovers = self._take_the_node()
            records += leftovers
            if refusal:
                records += [warning(name, "", f"not done: {refusal}") for name in shared]
                fine = {name: value for name, value in fine.items() if name not in shared}
        self._remember(fine)
        for name in _STAGES:
            if name in fine:
                records += self._stage(name, fine[name])
        self._settle()
        records += self._prepare_launch(fine)
        if "warm_up" in fine:
            records.append(self._warm_up(float(fine["warm_up"]["duration_s"])))
        return fold(records)

    def undo(self) -> list[Record]:
        """Gives the node back: values in reverse order, the request on idle states, the watchdog, the lock."""
        records: list[Record] = []
        self._journal.close()
        if self._latency is not None:
            os.close(self._latency)  # the kernel drops the request with its file
            self._latency = None
            records.append(record("c_states", _LATENCY, "done", "the request on wake-up time is withdrawn"))
        if self._lock.descriptor is not None:
            records += undo_journal(self._path, self._files)
        if self._pipe is not None:
            os.close(self._pipe)  # with nothing left in the journal the watchdog just ends
            self._pipe = None
        self._lock.release()
        records += self._lost_cpus()
        self._before.clear()
        self.launch = {}
        return fold(records)

    def _lost_cpus(self) -> list[Record]:
        """A control group of version 1 forgets a CPU that was off line: the processes in it never get it back."""
        before, after = self._allowed, control_settings.allowed_cpus(self._files)
        self._allowed = set()
        if not before - after:
            return []
        message = (
            f"this job may not use the CPUs {format_cpus(sorted(before - after))} any more, though they are on line "
            "again: its cpuset forgot them"
        )
        return [warning("hyper_threading", "proc/self/status", message)]

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

    def _remember(self, fine: Mapping[str, Any]) -> None:
        """Values before anything is changed: one control may change what the file of another one reads."""
        if "hyper_threading" in fine and not self._allowed:
            self._allowed = control_settings.allowed_cpus(self._files)
        for name, stage in _STAGES.items():
            if name in fine:
                for change in stage(self._files, fine[name])[0]:
                    with contextlib.suppress(OSError):  # told when it is to be changed
                        self._before.setdefault(change.target, self._files.setting(change.target))

    def _stage(self, name: str, value: Any) -> list[Record]:
        planned, records = _STAGES[name](self._files, value)
        todo: list[tuple[Change, str, str]] = []
        for change in planned:
            try:
                current = self._files.setting(change.target)
            except OSError as error:
                records.append(warning(name, change.target, f"not done: {why(error)}"))
                continue
            if current == change.wanted:
                records.append(record(name, change.target, "unchanged", "", current, current))
            else:
                todo.append((change, self._before.get(change.target, current), current))
        if todo:
            try:
                self._journal.intend([(change, before) for change, before, _ in todo])
            except OSError as error:
                message = f"not done, since the journal {self._path} cannot be written: {error.strerror}"
                return records + [warning(name, change.target, message) for change, _, _ in todo]
            records += [self._change(change, current) for change, _, current in todo]
        if name == "c_states" and not any(one["status"] in {"done", "unchanged"} for one in records):
            records.append(self._request_latency(value))
        return records

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

    def _settle(self) -> None:
        """Notes what the changed files read once all is set: at the end a different value is somebody else's."""
        values = [(target, current_value(self._files, target)) for target in self._journal.targets]
        # One that cannot be read is gone with its CPU; undo finds it again once the CPU is back. After a full disk undo
        # sets back whatever it finds.
        with contextlib.suppress(OSError):
            self._journal.settle([(target, value) for target, value in values if value is not None])

    def _request_latency(self, value: Any) -> Record:
        """The other way to shallow idle states: a request that holds as long as its file is open."""
        limit_us = control_settings.latency_us(self._files, value)
        if not self._files.glob("sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*"):
            return warning("c_states", _LATENCY, "no request either: without idle states it would change nothing")
        if self._latency is not None:
            return record("c_states", _LATENCY, "unchanged", "the request was made already")
        try:
            descriptor = self._files.open(_LATENCY, os.O_RDWR)
        except OSError as error:
            return warning("c_states", _LATENCY, f"not done this way either: {why(error)}")
        try:
            before = _microseconds(os.pread(descriptor, 4, 0))
            os.pwrite(descriptor, struct.pack("=i", limit_us), 0)
            after = _microseconds(os.pread(descriptor, 4, 0))
        except OSError as error:
            os.close(descriptor)
            return warning("c_states", _LATENCY, f"not done this way either: {why(error)}")
        self._latency = descriptor
        message = f"wake-up within {limit_us} us is requested as long as the experiment lasts"
        return record("c_states", _LATENCY, "done", message, before, after)

    def _prepare_launch(self, fine: Mapping[str, Any]) -> list[Record]:
        records = []

        def add(outcome: tuple[control_settings.Launch, Record]) -> None:
            self.launch.update(outcome[0])
            records.append(outcome[1])

        if "pinning" in fine:
            add(control_settings.pinning(self._files, fine["pinning"]))
        if "scheduling" in fine:
            add(control_settings.scheduling(fine["scheduling"]))
        return records

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
    """What an experiment that was killed left behind: undone now, or already by its watchdog (which left a report).

    Only to be called by who holds the node's lock: a journal in use is none that was left behind.
    """
    records: list[Record] = []
    report = report_path(Path(journal))
    # No report is the ordinary case, and half a one tells of nothing that needs doing.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        lines = report.read_text().splitlines()
        report.unlink()
        for line in lines:
            one = json.loads(line)
            one["message"] = f"by the watchdog of an earlier experiment that was killed: {one['message']}"
            records.append(one)
    for one in undo_journal(Path(journal), files):
        one["message"] = f"left behind by an earlier experiment that was killed: {one['message']}"
        records.append(one)
    return fold(records)


def _microseconds(data: bytes) -> str | None:
    return f"{struct.unpack('=i', data)[0]} us" if len(data) == 4 else None
