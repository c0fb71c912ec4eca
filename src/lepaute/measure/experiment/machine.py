"""What an experiment does to its nodes besides the measurement, and how it sees that they stay the same."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from lepaute.measure.experiment.entries import MonitorEvent, ReferenceRun
from lepaute.measure.experiment.record import Record, now
from lepaute.measure.node_agent.wire import WireError
from lepaute.measure.nodes.channel import Channel, NodeLost, NodeRefused
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.pool import clock_offset

_ENVIRONMENT_S = 120.0
#: Names that a node may give the files of its environment.
_MEMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CONTROL_S = 60.0
#: Most bytes of all files of one node; its agent cuts each at some megabytes.
_MAX_ENVIRONMENT_BYTES = 1 << 28


class Machine:
    """The nodes as machines: environment, clocks, settings, monitor, reference kernel.

    reference_period_s: between runs of the reference kernel; 0 for none
    """

    def __init__(self, nodes: Nodes, record: Record, reference_period_s: float) -> None:
        self._nodes, self._record = nodes, record
        self._reference_period_s = reference_period_s
        self._checked = float("-inf")
        self._unkept: dict[str, str] = {}  # why samples of a node were not written down

    def record_environment(self) -> None:
        """Records what every node is and runs, as files environment/<node>/<name>."""
        asked = []
        for channel in self._nodes.channels:
            members: dict[str, bytearray] = {}

            def on_piece(
                _event: str, fields: Mapping[str, Any], piece: bytes, members: dict[str, bytearray] = members
            ) -> None:
                if sum(map(len, members.values())) > _MAX_ENVIRONMENT_BYTES:
                    raise WireError("more than an environment may have")
                members.setdefault(str(fields["name"]), bytearray()).extend(piece)

            asked.append((channel, channel.ask({"do": "environment"}, on_piece=on_piece)[1], members))
        for channel, answer, members in asked:
            try:
                channel.result(answer, _ENVIRONMENT_S)
            except NodeLost:
                continue
            except NodeRefused as problem:
                self._record.warn(f"the environment was not recorded: {problem}")
            for name, content in members.items():
                if _MEMBER.fullmatch(name):
                    self._record.keep(f"environment/{channel.name}/{name}", bytes(content))

    def record_clocks(self) -> None:
        """How far each node's clock is from this machine's."""
        for channel in self._nodes.channels:
            try:
                offset = clock_offset(channel)
            except NodeLost:
                continue
            except NodeRefused as problem:
                self._record.warn(f"the clock was not compared: {problem}")
                continue
            self._record.workspace.journal("clock").add(asdict(offset))

    def control(self, settings: Mapping[str, Any]) -> frozenset[str]:
        """Sets the nodes' machines; what could not be set is a warning. Undone by `undo`, or when the agents end.

        The names of the nodes on which something could not be set.
        """
        if not settings:
            return frozenset()
        return self._note_controls(self._nodes.call("control", _CONTROL_S, wanted=dict(settings)))

    def undo(self) -> None:
        self._note_controls(self._nodes.call("undo", _CONTROL_S, self._refused("undone")))

    def _refused(self, what: str) -> Callable[[str], None]:
        return lambda problem: self._record.warn(f"not {what}: {problem}")

    def warm_up(self, duration_s: float) -> None:
        if duration_s > 0:
            self._record.log(f"warming up for {duration_s:g} s")
            settings = {"warm_up": {"duration_s": duration_s}}
            self._note_controls(self._nodes.call("control", _CONTROL_S + 2 * duration_s, wanted=settings))

    def _note_controls(self, records: Mapping[str, Any]) -> frozenset[str]:
        refused: dict[str, list[str]] = {}
        for channel in self._nodes.channels:
            node, entries = channel.name, records.get(channel.name, [])
            if not _are_controls(entries):
                channel.give_up("its agent sent no records of its settings")
                continue
            for entry in entries:
                self._record.workspace.journal("controls").add({"node": node, "date": now(), **entry})
                if entry["status"] == "warning":
                    refused.setdefault(f"{entry['control']}: {entry['message']}", []).append(node)
        for message, nodes in refused.items():
            where = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes ({nodes[0]}, ...)"
            self._record.warn(f"{where}: {message}")
        return frozenset(node for nodes in refused.values() for node in nodes)

    def start_monitoring(self, period_s: float) -> None:
        """Begins to sample every node; 0 for not at all."""
        if period_s <= 0:
            return
        for channel in self._nodes.channels:
            channel.on_monitor = self._kept(channel.name)
        for node, facts in self._nodes.call("monitor", period_s=period_s).items():
            self._record.workspace.note(MonitorEvent(node, now(), "start", facts))

    def _kept(self, node: str) -> Callable[[dict[str, Any]], None]:
        """Writes down the samples of a node. Called by the thread that reads from the node, which must go on."""
        journal = self._record.workspace.journal(f"monitoring/{node}")

        def keep(row: dict[str, Any]) -> None:
            try:
                journal.add(row)
            except OSError as problem:
                self._unkept[node] = problem.strerror or str(problem)

        return keep

    def stop_monitoring(self) -> None:
        """Ends the sampling; its own cost is written down."""
        for node, why in self._unkept.items():
            self._record.warn(f"{node}: samples of the monitor could not be written down: {why}")
        for node, summary in self._nodes.call("unmonitor", refused=self._refused("monitored to the end")).items():
            if summary is not None:
                self._record.workspace.note(MonitorEvent(node, now(), "stop", summary))

    def check_if_due(self) -> None:
        if time.monotonic() - self._checked >= self._reference_period_s > 0:
            self.check()

    def check(self) -> None:
        """Runs the reference kernel on all nodes at once: a step in it tells that a machine has changed."""
        if self._reference_period_s <= 0:
            return
        asked: list[tuple[Channel, Any]] = [
            (channel, channel.ask({"do": "call", "what": "reference"})[1]) for channel in self._nodes.channels
        ]
        for channel, answer in asked:
            try:
                result = channel.result(answer, _CONTROL_S)
                compute_s, memory_s = float(result["compute_s"]), float(result["memory_s"])
            except (NodeLost, NodeRefused):
                continue
            except (LookupError, TypeError, ValueError):
                self._record.warn(f"{channel.name}: the reference kernel gave no times")
                continue
            self._record.workspace.note(ReferenceRun(channel.name, time.time(), compute_s, memory_s))
        self._checked = time.monotonic()


def _are_controls(entries: object) -> bool:
    return isinstance(entries, list) and all(
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), str) for name in ("control", "status"))
        and isinstance(entry.get("message", ""), str)
        and not {"node", "date"} & entry.keys()
        for entry in entries
    )
