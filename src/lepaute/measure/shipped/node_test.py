"""The node test: is a node as it was? What `lepaute watch ingest` takes factors from.

After a warm-up dgemm of random sizes on all cores at once, with the steady window of Cornebize's thesis, section 9.2.1.
Then, in an order drawn anew, the memory of every NUMA node, a disk, messages, and workloads (section 9.3): stressors of
stress-ng and a user's own commands. What a node does not offer is in the table `absent`.
Parameters: warm_up_s, dgemm_s, disk_folder, workloads, workload_s, workload.NAME, workload_pattern.NAME, quick.
"""

import secrets
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Lock

import numpy as np

import lepaute as lp
from lepaute.errors import EnvironmentProblem
from lepaute.kit.json_values import to_json
from lepaute.measure import node_test, node_test_disk
from lepaute.measure import node_test_workloads as workloads
from lepaute.measure.archive.metadata import MachineFacts
from lepaute.measure.calibration.machines import equip, layouts_of
from lepaute.measure.design import Design, p2p_design
from lepaute.measure.layout import Layout
from lepaute.measure.nodes.group import Nodes, for_each_machine
from lepaute.measure.nodes.results import CommandFailed
from lepaute.measure.probes import DGEMM_PROGRAM, MEMORY_PROGRAM, P2P_PROGRAM, build_programs
from lepaute.measure.raw_files import rows_of
from lepaute.measure.toolchain import find_toolchain

MEMORY_LIMIT_S, DISK_LIMIT_S = 120.0, 60.0
DISK_FILES, DISK_FILE_BYTES, QUICK_DISK_FILES, QUICK_DISK_FILE_BYTES = 4, 256 << 20, 1, 16 << 20
#: Columns of probe-memory beside those of its design.
_PASSES = {"passes": int, "read_bytes": int, "start_s": float, "duration_s": float}


class NodeTest(lp.Job):
    monitor_period_s = 5.0
    reference_period_s = 0.0  # the test is the reference

    def design(self) -> Design:
        self._chosen = node_test.Parameters.of(self.parameters)
        begun = self.workspace.design  # of a run that is resumed: its order was drawn
        scale = node_test.QUICK if self._chosen.quick else node_test.FULL
        return begun if begun is not None else node_test.node_test_design(self.seed, scale, secrets.randbelow(2**31))

    def setup(self) -> None:
        names = (DGEMM_PROGRAM, P2P_PROGRAM, MEMORY_PROGRAM)
        built = build_programs(names, self.record_of_run.log, find_toolchain())
        equip(self.nodes, [built / name for name in names], built_there=self.options.on_this_machine)
        self._layouts = layouts_of(self.nodes)
        # How the cores lie, so that factors can be of processors
        facts = self.nodes.call("facts")
        self.workspace.state.more["machines"] = {
            channel.name: to_json(_machine(channel.hello.boot, self._layouts[channel.name], facts[channel.name]))
            for channel in self.nodes.channels
            if channel.name in self._layouts and channel.name in facts
        }
        self.workspace.save()
        self._find_stress()
        warm_up_s = self._chosen.warm_up_s
        if warm_up_s > 0:
            self.record_of_run.log(f"warming up for {warm_up_s:g} s")
        until_s = time.monotonic() + warm_up_s
        part = self._block(0)
        while time.monotonic() < until_s and len(self.nodes):
            self._on_all_cores(part)

    def run(self) -> None:
        self._dgemm()
        for part in self._shuffled_parts():
            part()
        for node in self.nodes.names:
            for what in node_test.absent_sensors(self.workspace.entries(f"monitoring/{node}")):
                self._absent(node, what, "the node has no such sensor, or does not let us read it")

    def _dgemm(self) -> None:
        """At least two whole blocks: each size is called as often as any other, and has a standard deviation."""
        began_s, block, length = time.monotonic(), -1, 0
        calls: dict[str, list[node_test.CoreCalls]] = {}
        for row in self.rows():
            if row["block"] != block:
                block = int(str(row["block"]))
                if block >= 2 and time.monotonic() - began_s >= self._chosen.dgemm_s:
                    break
                part = self._block(block)
                calls, length = self._on_all_cores(part), len(part.rows)
            number = int(str(row["design_row"])) % length  # the first one of a resumed run may be any
            for node, cores in calls.items():
                for core in cores:
                    self.record(
                        "dgemm",
                        node=node,
                        cpu=core.cpu,
                        start_s=core.start_s[number],
                        duration_s=core.duration_s[number],
                        clock_cost_s=core.clock_cost_s,
                    )

    def _block(self, block: int) -> Design:
        """The calls of a block, as the probe reads them."""
        design = self.workspace.design
        assert design is not None
        at = design.columns.index("block")
        rows = tuple(row[:at] for row in design.rows if row[at] == block)
        return Design({"generator": "lepaute node test"}, design.columns[:at], rows)

    def _on_all_cores(self, block: Design) -> dict[str, list[node_test.CoreCalls]]:
        """The calls of each node that made them; machines side by side. A node that fails is given up."""
        calls: dict[str, list[node_test.CoreCalls]] = {}
        lock, seed = Lock(), secrets.randbelow(2**31)

        def work(node: Nodes, _stopping: Event) -> None:
            name = node.names[0]
            try:
                made = node_test.run_block(node, self._layouts[name], block, seed)
            except CommandFailed as problem:
                if len(self.nodes) < 2:
                    raise
                node.channels[0].abandon(str(problem))
                return
            with lock:
                calls[name] = made

        for_each_machine(self.nodes, work)
        if not calls:
            raise EnvironmentProblem(self.nodes.none_left())
        return calls

    def _shuffled_parts(self) -> list[Callable[[], None]]:
        """Everything but dgemm, which has the steady window; the order is drawn as that of its calls."""
        design = self.workspace.design
        assert design is not None
        repetitions = workloads.QUICK_REPETITIONS if self._chosen.quick else workloads.REPETITIONS
        parts: list[Callable[[], None]] = [self._memory, self._disk, self._messages]
        parts += [
            partial(self._workload, workload, number) for workload in self._workloads for number in range(repetitions)
        ]
        order = np.random.default_rng([1, int(design.header["order_seed"])]).permutation(len(parts))
        return [parts[at] for at in order.tolist()]

    def _memory(self) -> None:
        design = node_test.memory_rows(self.seed, quick=self._chosen.quick)
        self.record_of_run.keep("designs/memory.csv", design.to_csv().encode())
        rows: list[tuple[str, int, dict[str, str]]] = []

        def work(node: Nodes, _stopping: Event) -> None:
            (name,) = node.names
            node.write("memory.csv", design.to_csv())
            for numa, threads in node_test.numa_threads(self._layouts[name]).items():
                node.shell(node_test.together(threads, "memory.csv", self.seed), timeout_s=MEMORY_LIMIT_S)
                for thread in threads:
                    (content,) = node.read(f"memory.{thread}.csv").values()
                    rows.extend((name, numa, row) for row in rows_of(content.decode()))

        self._part("memory", work)
        levels = {name: design.column(name) for name in design.columns if name != "block"}
        for name, numa, row in rows:
            number = int(row["design_row"])
            self.record(
                "memory",
                node=name,
                cpu=int(row["cpu"]),
                numa=numa,
                **{level: values[number] for level, values in levels.items()},
                **{column: kind(row[column]) for column, kind in _PASSES.items()},
            )

    def _disk(self) -> None:
        script = Path(node_test_disk.__file__).read_text(encoding="utf-8")
        quick = self._chosen.quick
        rows: list[tuple[str, dict[str, str]]] = []
        files, file_bytes = (QUICK_DISK_FILES, QUICK_DISK_FILE_BYTES) if quick else (DISK_FILES, DISK_FILE_BYTES)

        def work(node: Nodes, _stopping: Event) -> None:
            node.write("disk.py", script)
            folder = self._chosen.disk_folder or "."
            words = (self.python_on_nodes, "disk.py", folder, files, file_bytes, DISK_LIMIT_S / 2)
            result = node.run(*words, timeout_s=DISK_LIMIT_S * 2).only
            rows.extend((node.names[0], row) for row in rows_of(result.stdout))

        self._part("disk", work)
        for name, row in rows:
            self.record(
                "disk",
                node=name,
                operation=row["operation"],
                size_bytes=int(row["size_bytes"]),
                start_s=float(row["start_s"]),
                duration_s=float(row["duration_s"]),
            )

    def _messages(self) -> None:
        count = node_test.QUICK_PINGPONGS if self._chosen.quick else node_test.PINGPONGS
        design = p2p_design(self.seed, counts={"pingpong": count}, size_range_bytes=(1, node_test.MAX_BYTES))
        self.record_of_run.keep("designs/p2p.csv", design.to_csv().encode())
        found: list[tuple[str, str, str, list[dict[str, float | str]]]] = []

        def work(node: Nodes, _stopping: Event) -> None:
            (name,) = node.names
            layout = self._layouts[name]
            if len(layout.cores) < 2:
                self._absent(name, "messages inside the node", "it lends one core only")
                return
            rows = node_test.messages_inside(node, layout, design, self.seed)
            found.append((name, name, layout.distance(0, 1), rows))

        self._part("messages inside the node", work)
        for first, second in node_test.neighbours(self.nodes.names):
            if not {first, second} <= set(self.nodes.names):
                continue
            pair = (self.nodes[first], self.nodes[second])
            if not node_test.have_a_core_each(pair, self._layouts):
                self._absent(first, f"messages to {second}", "both are one machine, which lends one core only")
                continue
            try:
                rows = node_test.messages_between(pair, self._layouts, self.options.rank_launch(), design, self.seed)
                found.append((first, second, "", rows))
            except CommandFailed as problem:
                self._absent(first, f"messages to {second}", str(problem))
        for first, second, distance, rows in found:
            link = "local" if first == second else "remote"
            for row in rows:
                self.record("p2p", node=first, peer=second, link=link, distance=distance, block=0, **row)

    def _find_stress(self) -> None:
        """The version of stress-ng on each node that has it, where it is needed; the others lack its workloads."""
        chosen = self._chosen
        self._workloads = workloads.chosen_workloads(chosen.workloads, chosen.workload_s, self.parameters)
        self._stress: dict[str, str] = {}
        self._given_up: set[tuple[str, str]] = set()
        names = [workload.name for workload in self._workloads if workload.stressor is not None]
        if not names:
            return
        lacking: list[str] = []
        for node in self.nodes:
            if (version := workloads.stress_version(node)) is not None:
                self._stress[node.names[0]] = version
                continue
            lacking += node.names
            self._given_up |= {(node.names[0], name) for name in names}
            self._absent(node.names[0], f"workloads {', '.join(names)}", workloads.INSTALL)
        if lacking:
            self.record_of_run.log(f"no workloads of stress-ng on {', '.join(lacking)[:200]}: {workloads.INSTALL}")

    def _workload(self, workload: workloads.Workload, repetition: int) -> None:
        """One run on each node; of a node where it failed once, no more."""
        rows: list[tuple[str, float, list[tuple[str, float]]]] = []
        chosen = self._chosen

        def work(node: Nodes, _stopping: Event) -> None:
            (name,) = node.names
            if (name, workload.name) in self._given_up:
                return
            try:
                result = workloads.run_workload(
                    node, self._layouts[name], workload, chosen.workload_s, chosen.disk_folder
                )
                rows.append((name, result.duration_s, workloads.figures_of(workload, result)))
            except (CommandFailed, EnvironmentProblem):
                self._given_up.add((name, workload.name))
                raise

        self._part(f"workload {workload.name}", work)
        for name, duration_s, figures in rows:
            for figure, value in figures:
                self.record(
                    "workloads",
                    node=name,
                    workload=workload.name,
                    repetition=repetition,
                    figure=figure,
                    value=value,
                    duration_s=duration_s,
                    cores=len(self._layouts[name].cores),
                    command=workload.command,
                    pattern="" if workload.pattern is None else workload.pattern.pattern,
                    stress_ng="" if workload.stressor is None else self._stress[name],
                )

    def _part(self, what: str, work: Callable[[Nodes, Event], None]) -> None:
        """Does it on each node; where it fails, the rest of the test goes on, and the node's archive says so."""

        def guarded(node: Nodes, stopping: Event) -> None:
            try:
                work(node, stopping)
            except (CommandFailed, EnvironmentProblem) as problem:
                self._absent(node.names[0], what, str(problem))

        self.record_of_run.log(what)
        for_each_machine(self.nodes, guarded)

    def _absent(self, node: str, what: str, reason: str) -> None:
        self.record("absent", node=node, what=what, reason=" ".join(reason.split())[:500])


def _machine(boot: str, layout: Layout, facts: dict[str, object]) -> MachineFacts:
    return MachineFacts(
        machine=boot,
        cores=tuple(core.number for core in layout.cores),
        cpus=tuple(core.pu for core in layout.cores),
        node_cores=len(layout.cores),
        cpu_model=str(facts["cpu_model"]),
        memory_bytes=int(str(facts["memory_bytes"])),
        mpi=None if facts["mpi"] is None else str(facts["mpi"]),
        layout=layout.facts,
    )
