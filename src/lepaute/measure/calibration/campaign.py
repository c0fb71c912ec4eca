"""A calibration: every node's kernels and messages measured by the probes, through the controller of experiments."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic as now_s
from typing import Any, ClassVar

from lepaute.errors import EnvironmentProblem, InputError, LepauteError
from lepaute.kit.json_values import ABSENT_IF_NONE, from_json, to_json
from lepaute.kit.text import counted, percent
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.metadata import BlasFacts, MachineFacts, MpiFacts
from lepaute.measure.calibration import precision
from lepaute.measure.calibration.attempt import Attempts, Sentinels, Site, next_repetition
from lepaute.measure.calibration.entries import CALIBRATION, AttemptEntry, RawFile, SlowRun, tables
from lepaute.measure.calibration.machines import Measured, check_alike, equip, look_at
from lepaute.measure.calibration.reference import assessment
from lepaute.measure.calibration.send_completion import search
from lepaute.measure.calibration.speed import SpeedWitness
from lepaute.measure.design.hpl_step import DEFAULT_NBS
from lepaute.measure.experiment.closing import metadata_of, reopen_archive
from lepaute.measure.experiment.entries import Content
from lepaute.measure.experiment.life import (
    Announce,
    Campaign,
    campaign_options,
    check_begun_with,
    ignore_announcement,
    silent,
)
from lepaute.measure.experiment.life import Progress as Tell
from lepaute.measure.experiment.options import Options
from lepaute.measure.experiment.workspace import folder_of
from lepaute.measure.layout import ALL
from lepaute.measure.link_plan import Link, pair_cores, plan_links
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.nodes.group import Nodes, for_each_machine, side_by_side
from lepaute.measure.nodes.results import check_same_place
from lepaute.measure.plan import FULL, QUICK, SEMANTICS, PlannedRun, calibration_s, plan, reckoned_s, room
from lepaute.measure.probes import Probes, build_probes
from lepaute.measure.schedulers import Request, scheduler
from lepaute.measure.schedulers.types import Switches
from lepaute.measure.sentinel import SENTINEL


@dataclass(frozen=True, slots=True)
class CalibrationFacts:
    """Calibration asked for; and, once the nodes are known, what they are and how large the largest measurements are.

    nbs, threads: block sizes of HPL's steps, and BLAS threads of a process; archives of older versions have `nb`, one
    cores .. mpi: of the first node, as all are alike; memory_bytes: of the smallest
    blocks, most_n, most_message_bytes: of the plan
    switches: the nodes of each switch, empty if that is not known
    """

    quick: bool = False
    network_bytes: int | None = None
    nbs: tuple[int, ...] = DEFAULT_NBS
    threads: tuple[int, ...] = (1,)
    machines: Mapping[str, MachineFacts] | None = field(default=None, metadata=ABSENT_IF_NONE)
    cores: tuple[int, ...] | None = field(default=None, metadata=ABSENT_IF_NONE)
    node_cores: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    cpu_model: str | None = field(default=None, metadata=ABSENT_IF_NONE)
    memory_bytes: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    blas: BlasFacts | None = field(default=None, metadata=ABSENT_IF_NONE)
    mpi: MpiFacts | None = field(default=None, metadata=ABSENT_IF_NONE)
    blocks: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    most_n: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    most_message_bytes: int | None = field(default=None, metadata=ABSENT_IF_NONE)
    switches: tuple[tuple[str, ...], ...] = ()


#: Share of the progress bar for what comes before the first probe.
_PREPARED = 0.05


class Calibration(Campaign):
    """Measures each node by itself, machines side by side, and then in every block messages between pairs of them."""

    archive_content: ClassVar[Content] = CALIBRATION

    def __init__(
        self,
        options: Options,
        probes: Probes,
        asked: CalibrationFacts,
        switches: Switches | None,
        tell: Tell,
        goal: precision.Goal | None = None,
    ) -> None:
        """asked: what the user asked for, as long as nothing else is known;  goal: None: the planned blocks"""
        super().__init__(options, tell)
        if switches is not None:
            switches.check(scheduler(options.scheduler).known_nodes(options.request) or ())
        self._goal, self._begun_s, self._budget_s = goal, 0.0, 0.0
        self._assess = assessment()
        self._probes, self._asked, self._switches = probes, asked, switches
        self._witnesses: dict[str, SpeedWitness] = {}
        self._failed_links: set[str] = set()
        self._behind = 0

    def _more_metadata(self) -> dict[str, Any]:
        return dict(to_json(self._asked))

    def prepare_machine(self) -> None:
        """Also finds out what the nodes are and puts the probes there: what fails here leaves nothing behind."""
        self._begun_s = now_s()  # what a queue took is not of the budget
        self.tell("choosing the BLAS kernels", 0.02)
        super().prepare_machine()
        equip(self.nodes, self._probes.on_nodes, built_there=self.options.on_this_machine)
        self._measured = look_at(self.nodes, self.python_on_nodes)
        if not self._measured:
            raise NodeLost(self.nodes.none_left())
        check_alike(self._measured)
        self._note_machines()

    def _note_machines(self) -> None:
        first, state, asked = self._measured[0], self.workspace.state, self._asked
        begun = from_json(CalibrationFacts, dict(state.more), "state.json")
        names = tuple(about.name for about in self._measured)
        check_begun_with(
            "calibration",
            {**_options_of(begun), "nodes": names if begun.machines is None else tuple(begun.machines)},
            {**_options_of(asked), "nodes": names},
        )
        if (most := min(len(about.cores) for about in self._measured)) < max(asked.threads):
            given = max(asked.threads)
            raise InputError(f"--threads-per-rank {given} is more than the {most} cores of a node; give 1 to {most}")
        for about in self._measured:
            for warning in about.kernel_set.warnings:
                self.warn(warning if len(self._measured) == 1 else f"{about.name}: {warning}")
        if self._switches is not None:
            self._switches.check(names)
        known = self._switches or scheduler(self.options.scheduler).switches()
        self._switches = known.among(names) if begun.machines is None else Switches(begun.switches)
        self._scale = scale = QUICK if asked.quick else FULL
        memory_bytes = min(about.memory_bytes for about in self._measured)
        requested_bytes = scale.p2p_most_bytes if asked.network_bytes is None else asked.network_bytes
        self._limits = limits = room(scale, memory_bytes, len(first.cores), requested_bytes)
        if limits.most_n < scale.most_n:
            self.warn(f"measured matrices up to N = {limits.most_n} only: this machine has too little memory for more")
        if limits.most_message_bytes < requested_bytes:
            self.warn(
                f"measured messages up to {limits.most_message_bytes} bytes only: "
                "this machine has too little memory for more"
            )
        if max(asked.nbs) > limits.most_n:
            raise InputError(f"--nb {max(asked.nbs)} is too large for matrices up to N = {limits.most_n}; give less")
        facts = replace(
            asked,
            machines={about.name: about.facts for about in self._measured},
            cores=first.cores,
            node_cores=len(first.cores),
            cpu_model=first.cpu_model,
            memory_bytes=memory_bytes,
            blas=first.facts.blas,
            mpi=MpiFacts(first.mpi),
            blocks=begun.blocks or 0,
            most_n=limits.most_n,
            most_message_bytes=limits.most_message_bytes,
            switches=self._switches.nodes,
        )
        self._plan()
        self._links = plan_links(scale, self.seed, self._measured, limits, self._switches)
        if self._goal is not None:
            done_s = self._reckoned_s(min(begun.blocks, scale.least_blocks)) if begun.blocks else 0.0
            self._budget_s = self._goal.budget_for(self._reckoned_s(scale.least_blocks) - done_s, scale.least_blocks)
        state.more |= to_json(facts)
        self.workspace.save()

    def _plan(self, blocks: int = 0) -> None:
        """Plans each node, for at least this many blocks."""
        asked, place = self._asked, enumerate(self._measured)
        more: dict[str, Any] = {"nbs": asked.nbs, "threads": asked.threads, "blocks": blocks}
        self._plans = {
            about.name: plan(self._scale, self.seed, about.layout, self._limits, position, **more)
            for position, about in place
        }

    def _reckoned_s(self, blocks: int) -> float:
        rate = min(about.kernel_set.gflops for about in self._measured)
        nodes = ([run for run in runs if run.block < blocks] for runs in self._plans.values())
        links = [link.run for link in self._links if link.run.block < blocks]
        return max(calibration_s(runs, rate) for runs in nodes) + reckoned_s(links, rate)

    def run(self) -> None:
        """Block after block, and in each what was disturbed again at its end, until the goal is reached."""
        planned, goal = self._scale.blocks, self._goal
        cores = counted(len(self._measured[0].cores), "core")
        self.tell(f"measuring {cores}", _PREPARED)
        self._plan(1 + max(self._further, default=0))
        runs = [run for each in self._plans.values() for run in each]
        self._check_planned([*runs, *(link.run for link in self._links)])
        self._total = sum(run.block < planned for run in runs) + len(self._links)
        nodes = f" of each of {counted(len(self._measured), 'node')}" if len(self._measured) > 1 else ""
        what, seconds = f"{counted(self._total, 'run')} of probes on {cores}{nodes}", self._reckoned_s(planned)
        if goal is not None:
            what += f", fewer or more until a prediction is known to ± {percent(goal.precision)}"
            seconds = min(seconds, self._budget_s)
        self.announce(seconds, what)
        self._maker = Attempts(self.workspace, self.options)
        self._sentinels = Sentinels(self._maker, self.workspace, self.seed)
        by_name = {about.name: about for about in self._measured}
        self._block_s = self._reckoned_s(planned) / planned
        for block in itertools.count():
            if block >= self._scale.least_blocks and not self._goes_on(block):
                break
            began_s, made = now_s(), len(self._attempts())
            self._measure(block, by_name)
            if self._further.get(block) is None and len(self._attempts()) > made:
                self._block_s = now_s() - began_s
            if self.workspace.state.more["blocks"] < block + 1:
                self.workspace.state.more["blocks"] = block + 1
                self.workspace.save()

    def _measure(self, block: int, by_name: dict[str, Measured]) -> None:
        """One block; of one beyond those planned the probes that it is for, on all cores of a node at once."""
        further = self._further.get(block)

        def measure(node: Nodes, stopping: Event) -> None:
            name = node.names[0]
            runs = [run for run in self._plans[name] if run.block == block]
            if further is not None:
                runs = [run for run in runs if run.load == ALL and run.probe in further]
            self._block(Site((node,), (by_name[name],)), runs, stopping)

        for_each_machine(self.nodes, measure)
        self._links_of([link for link in self._links if link.run.block == block], by_name)
        if block == 0:
            self._find_semantics(by_name)
        if not len(self.nodes):
            raise EnvironmentProblem(f"{self.nodes.none_left()}; what was measured so far is kept")

    def _goes_on(self, block: int) -> bool:
        """Whether there is another block, this one; it is noted then, if it is beyond those planned."""
        planned = self._scale.blocks
        if self._goal is None:
            return block < planned
        if block in self._further or any(attempt.block >= block for attempt in self._planned_attempts()):
            return True
        reached: precision.Reached | None = None
        while True:
            last = next(reversed(self.workspace.noted(precision.Check)), None)
            probes = precision.PROBES_FOR.get("" if last is None else last.layer, precision.USUAL_PROBES)
            share = 1.0 if block < planned else self._share_of_block(probes)
            remaining_s = self._budget_s - (now_s() - self._begun_s)
            step = precision.next_step(self._goal, reached, block, remaining_s, share * self._block_s, last)
            if step != "check":
                break
            try:
                reached = self._check(block)
            except LepauteError as problem:
                self.warn(f"the precision remains unknown: {problem}")
                self._goal = None
                return block < planned
        if step == "measure" and block >= planned:
            self.workspace.note(precision.FurtherBlock(block, probes))
            self._plan(block + 1)
        return step == "measure"

    def _share_of_block(self, probes: Sequence[str]) -> float:
        """How long these probes on all cores take, in whole blocks."""
        rate = self._measured[0].kernel_set.gflops
        runs = self._plans[self._measured[0].name]
        further = [run for run in runs if run.load == ALL and run.probe in probes]
        return reckoned_s(further, rate) / reckoned_s(runs, rate)

    def _check(self, blocks: int) -> precision.Reached:
        """How precise a prediction is by what there is; raises what fit and prediction raise."""
        self.tell(f"how precise predictions are after {counted(blocks, 'block')}", self._share())
        began_s = now_s()
        path = self.workspace.folder / "so_far.zip"
        try:
            with ArchiveWriter(path, metadata_of(self.workspace, CALIBRATION)) as archive:
                for name, table in tables(self.workspace):
                    kept = precision.main_kernels(table) if name == "kernels" else table
                    archive.add_table(f"observations/{name}.parquet", kept)
            reached = self._assess(Archive.open(path))
        finally:
            path.unlink(missing_ok=True)
        ended_s = now_s()
        cost_s, elapsed_s = ended_s - began_s, ended_s - self._begun_s
        self.workspace.note(
            precision.Check(blocks, elapsed_s, cost_s, reached.half_width, reached.floor, reached.layer)
        )
        return reached

    @property
    def _further(self) -> dict[int, tuple[str, ...]]:
        """The probes of each block beyond those planned."""
        return {further.block: further.probes for further in self.workspace.noted(precision.FurtherBlock)}

    def _planned_attempts(self) -> list[AttemptEntry]:
        """Attempts at planned runs, also of interrupted sessions; rounds of a search, and sentinels, are run anew."""
        return [entry for entry in self.workspace.noted(AttemptEntry) if entry.probe not in (SEMANTICS, SENTINEL)]

    def _attempts(self, node: str | None = None) -> list[AttemptEntry]:
        """Attempts of a node by itself, or of all nodes."""
        return [entry for entry in self._planned_attempts() if entry.peer is None and node in (None, entry.node)]

    def _check_planned(self, runs: list[PlannedRun]) -> None:
        known = {(run.block, run.name) for run in runs}
        for entry in self._planned_attempts():
            if (entry.block, entry.name) not in known:
                raise InputError(
                    f"block {entry.block + 1} has a run {entry.name} that is not in the plan of this version; "
                    "calibrate anew"
                )

    def _block(self, site: Site, runs: list[PlannedRun], stopping: Event) -> None:
        """The runs of one block on one node that have not been made yet."""
        done = {(attempt.block, attempt.name) for attempt in self._attempts(site.name)}
        for run in runs:
            if stopping.is_set():
                return
            self._say_what(run, site, "")
            if (run.block, run.name) not in done:
                self._sentinels.watch(site, run.block)
                self._maker.make(run, self._begun(run, site), site)
            self._behind += 1
        if not stopping.is_set():
            self._witnesses.setdefault(site.name, SpeedWitness(self.workspace, site.name)).new_slow_runs()
        planned = {(run.block, run.name): run for run in self._plans[site.name]}
        while not stopping.is_set() and (again := self._next_repetition(site, runs[-1].block)) is not None:
            why = "it was disturbed" if again.disturbed else "the machine was slow"
            run = planned[again.block, again.name]
            self._say_what(run, site, f" again, {why}")
            self._sentinels.watch(site, run.block)
            self._maker.make(run, again.attempt + 1, site)
        if not stopping.is_set() and len(self._attempts(site.name)) > len(done):
            self._sentinels.watch(site, runs[-1].block)

    def _next_repetition(self, site: Site, block: int) -> AttemptEntry | None:
        slow = {entry.key for entry in self.workspace.noted(SlowRun)}
        return next_repetition(self._attempts(site.name), slow, block, self._scale.most_repetition_s)

    def _begun(self, run: PlannedRun, site: Site) -> int:
        """How many attempts at the run an interrupted session has begun: their files keep their names."""
        key = (site.name, run.block, run.name)
        return len({e.attempt for e in self.workspace.noted(RawFile) if (e.node, e.block, e.name) == key})

    def _links_of(self, links: list[Link], by_name: dict[str, Measured]) -> None:
        """Turn by turn; in a turn pairs side by side, each with one run after the other."""
        for turn in sorted({link.turn for link in links}):
            pairs: dict[tuple[str, str], list[Link]] = {}
            for link in links:
                if link.turn == turn:
                    pairs.setdefault((link.first, link.second), []).append(link)

            def measure(mine: list[Link], stopping: Event) -> None:
                for link in mine:
                    if not stopping.is_set():
                        self._link(link, by_name)

            side_by_side([partial(measure, mine) for mine in pairs.values()], self.nodes)

    def _link(self, link: Link, by_name: dict[str, Measured]) -> None:
        """Messages between two nodes, while nothing runs on them; where these fail, the nodes are still measured."""
        self._behind += 1
        key = _between(link.first, link.second)
        run = link.run.block, link.run.name
        done = any(attempt.peer and (attempt.block, attempt.name) == run for attempt in self._planned_attempts())
        if done or key in self._failed_links or not {link.first, link.second} <= set(self.nodes.names):
            return
        pair = (self.nodes[link.first], self.nodes[link.second])
        try:
            check_same_place(*(node.channels[0] for node in pair))
            self._make_link(link, Site(pair, (by_name[link.first], by_name[link.second]), link.distance))
        except NodeLost:
            return
        except LepauteError as problem:
            self._failed_links.add(key)
            self.warn(f"{key} were not measured: {problem}")

    def _make_link(self, link: Link, site: Site) -> None:
        """Tries twice: mpirun's daemons sometimes lose each other at the start."""
        self._say_what(link.run, site, "")
        try:
            self._maker.make(link.run, self._begun(link.run, site), site)
        except NodeLost:
            raise
        except LepauteError as problem:
            self.warn(f"{link.run.name} failed and was repeated: {problem}")
            self._maker.make(link.run, self._begun(link.run, site), site)

    def _find_semantics(self, by_name: dict[str, Measured]) -> None:
        """Send-completion semantics on the first node left, and between the first two: a property of the library."""
        for count in (1, 2):
            names = self.nodes.names[:count]
            if len(names) < count or (count == 2 and _between(*names) in self._failed_links):
                return
            self.tell(f"send-completion semantics on {' and '.join(names)}", self._share())
            measured = tuple(by_name[name] for name in names)
            site = Site(tuple(self.nodes[name] for name in names), measured)
            cores = (0, 1) if count == 1 else pair_cores(*measured)
            warn, silence = self.warn, not self._asked.quick
            try:
                if count == 2:
                    check_same_place(*(node.channels[0] for node in site.nodes))
                search(self._maker, self.workspace, site, cores, self.seed, warn, silence=silence)
            except NodeLost:
                continue
            except LepauteError as problem:
                warn(f"the send-completion semantics between {' and '.join(names)} remain unknown: {problem}")

    def _share(self) -> float:
        return _PREPARED + (0.98 - _PREPARED) * min(1.0, self._behind / self._total)

    def _say_what(self, run: PlannedRun, site: Site, more: str) -> None:
        where = "" if len(self._measured) == 1 else f" on {site.name}"
        blocks = max(self._scale.blocks, run.block + 1)
        self.tell(f"block {run.block + 1} of {blocks}: {run.name}{where}{more}", self._share())


def _between(first: str, second: str) -> str:
    return f"messages between {first} and {second}"


def _options_of(facts: CalibrationFacts) -> dict[str, object]:
    return {
        "--quick": facts.quick,
        "--network-bytes": facts.network_bytes,
        "--nb": facts.nbs,
        "--threads-per-rank": facts.threads,
    }


#: A network is not known without messages beyond its eager limit; the probes count bytes in an int.
MIN_MESSAGE_BYTES, MAX_MESSAGE_BYTES = 1 << 20, 1 << 30
#: The probe of HPL's steps takes block sizes up to this; more threads than this no node has.
MAX_NB, MAX_THREADS = 4096, 1024


def calibrate(
    out_archive: str | Path,
    *,
    quick: bool = False,
    network_bytes: int | None = None,
    nbs: Sequence[int] = DEFAULT_NBS,
    threads: Sequence[int] = (1,),
    switches: Switches | None = None,
    seed: int = 1,
    progress: Tell | None = None,
    goal: precision.Goal | None = None,
    announce: Announce | None = None,
    scheduler: str = "local",
    request: Request | None = None,
    python: str | None = None,
    resume: bool = False,
) -> Path:
    """Measures this machine, or the nodes of a request, and writes the archive; returns its path.

    The options are those of `lepaute calibrate`; a largest message is less on a node with little memory, and when
    resuming the seed of the beginning holds.
    progress : called with what is being done and the share of the work that is done
    goal     : how precise predictions shall be, and the time for that; none: seven blocks
    announce : called once, before the first probe, with the seconds that the measurements will take
    Raises EnvironmentProblem when something the probes need is missing, a probe fails or no node is left, InputError
    for a seed that no generator takes, a message that no probe sends, a block size beyond the matrices or more threads
    than a node has cores, KeyboardInterrupt. When measurements had begun they are archived beside as NAME.partial.zip,
    its metadata marked `partial`, the exception has a note that says so, and an older archive stays.
    """
    options, tell = campaign_options(out_archive, seed, scheduler, request, python), progress or silent
    if network_bytes is not None and not MIN_MESSAGE_BYTES <= network_bytes <= MAX_MESSAGE_BYTES:
        raise InputError(
            f"the largest message is {network_bytes} bytes; give {MIN_MESSAGE_BYTES} to {MAX_MESSAGE_BYTES}"
        )
    for option, values, most in (("--nb", nbs, MAX_NB), ("--threads-per-rank", threads, MAX_THREADS)):
        if not values or min(values) < 1 or max(values) > most or len(set(values)) < len(values):
            given = ",".join(map(str, values))
            raise InputError(f"{option} is {given[:40] or 'empty'}; give different numbers from 1 to {most}")
    tell("building the probes", 0.0)
    probes = build_probes(progress=lambda message: tell(message, 0.0))
    asked = CalibrationFacts(quick, network_bytes, tuple(nbs), tuple(threads))
    path = options.archive
    if resume and path.is_file() and not folder_of(path).exists():
        reopen_archive(path, CALIBRATION)
    calibration = Calibration(options, probes, asked, switches, tell, goal)
    calibration.announce = announce or ignore_announcement
    return calibration.to_the_end(resume=resume)
