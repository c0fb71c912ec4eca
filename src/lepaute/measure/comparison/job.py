"""A campaign as a job of the controller: mpirun of each library in turn, in the place of a script's commands."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar

from lepaute.archive.manifest import MOST_MEMBERS
from lepaute.archive.mpi_campaign import KIND
from lepaute.errors import EnvironmentProblem
from lepaute.kit.json_values import to_json
from lepaute.kit.mpi_launcher import binding_works
from lepaute.kit.text import counted, seconds
from lepaute.measure.calibration.machines import layouts_of
from lepaute.measure.calibration.repetition import MOST_REPETITIONS
from lepaute.measure.comparison import numbers as counting
from lepaute.measure.comparison import variables
from lepaute.measure.comparison.about import facts_of
from lepaute.measure.comparison.algorithms import algorithms_of
from lepaute.measure.comparison.asked import Asked
from lepaute.measure.comparison.caches import private_cache_bytes
from lepaute.measure.comparison.cases import Case
from lepaute.measure.comparison.entries import (
    COMPLETE,
    FAILED,
    AlgorithmSeen,
    BlocksChosen,
    CaseNumbers,
    FirstStage,
    MpirunBegun,
    MpirunEnded,
)
from lepaute.measure.comparison.libraries import ReadyLibrary
from lepaute.measure.comparison.mpirun import Mpiruns, Setting, check_start
from lepaute.measure.comparison.order import library_order, mpirun_seed, shuffled_batches
from lepaute.measure.comparison.planning import first_stage_calls, measurable, trial_calls
from lepaute.measure.comparison.tables import COMPARISON
from lepaute.measure.comparison.trials import BROADCAST, TRIAL, Trials
from lepaute.measure.experiment.content import Content
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.options import Options
from lepaute.measure.node_agent.system_files import SystemFiles

#: Called with what is being done and the share of the work that is done, from 0 to 1.
Progress = Callable[[str, float], None]

#: Repetitions of a start that failed, before its block goes without it; after so many such blocks in a row it ends.
MOST_RETRIES, MOST_LOST_BLOCKS = 2, 2
#: A start is ended after this much more than the trial took: far beyond any disturbance, so that only a hang is cut.
LIMIT_BASE_S, LIMIT_FACTOR = 60.0, 10.0
#: Of the raw files and designs, among all members of an archive.
MOST_FILES = 4 * MOST_MEMBERS // 5


class Comparison(Job):
    """Trials of each library, the first blocks, and as many more as these say; in each block every library once."""

    archive_content: ClassVar[Content] = COMPARISON
    monitor_period_s: ClassVar[float | None] = 5.0
    #: Every block has the same calls: they are the reference.
    reference_period_s: ClassVar[float | None] = 0.0

    def __init__(self, options: Options, libraries: Sequence[ReadyLibrary], asked: Asked, tell: Progress) -> None:
        super().__init__(options, say=_silent)
        self._libraries = {library.label: library for library in libraries}
        self._asked, self._tell = asked, tell
        self._texts: dict[str, str] = {}

    def _more_metadata(self) -> dict[str, Any]:
        return {KIND: {"asked": self._asked.to_json()}}

    def prepare_machine(self) -> None:
        """Also sees that every mpirun starts ranks that see each other: what fails here leaves nothing behind."""
        self._tell("looking at the machine", 0.0)
        super().prepare_machine()
        begun = self.workspace.state.more.get(KIND, {})
        self._asked.check_same(begun.get("asked", {}))
        variables.check_same(begun, self._libraries.values())
        (name,) = self.nodes.names
        self._layout = layouts_of(self.nodes)[name]
        self._node_pus = self.nodes.call("facts")[name]["node_cores"]
        self._setting = self._chosen_setting()
        for label, library in self._libraries.items():
            self._tell(f"starting {label}", 0.0)
            self._texts[label], ignored = check_start(self.nodes, library, self._setting)
            for line in variables.doubts(library, ignored):
                self._warn(line)
        self._save_facts()

    def _chosen_setting(self) -> Setting:
        asked, cores = self._asked, len(self._layout.cores)
        shared = asked.ranks > cores
        if shared:
            self.record_of_run.warn(
                f"{asked.ranks} ranks share {counted(cores, 'core')}: run-times are mostly those of the system's "
                "scheduler, and ranks are not bound to cores"
            )
        binds = not shared and all(binding_works(library.named.launcher) for library in self._libraries.values())
        if not binds and not shared:
            self.record_of_run.warn("ranks are not bound to cores: this machine does not allow it")
        cold_bytes = private_cache_bytes(SystemFiles(self.options.system_root)) if asked.cold else 0
        return Setting(
            ranks=asked.ranks,
            pus=self._layout.pus(range(asked.ranks)) if binds else None,
            synchronisation=asked.synchronisation or ("dissemination" if shared else counting.BY_LEAD),
            clock=asked.clock,
            clock_method=asked.clock_method,
            warm_up=asked.warm_up,
            cold_bytes=cold_bytes,
            reduction=asked.reduction,
            root=asked.root,
            compute_ns=round(1e9 * asked.compute_s),
        )

    def run(self) -> None:
        """Trials, first blocks, and the others."""
        self._maker = Mpiruns(self.workspace, self.nodes, self._setting, self._node_pus)
        self._trials = Trials(self._maker, self.workspace, self._libraries, self._asked, self.seed, self._warn)
        self._trials.make(lambda text: self._tell(text, 0.02))
        self._numbers = self._chosen_numbers()
        self._save_facts()
        first = self.workspace.noted(FirstStage)[0].blocks
        self._blocks = first
        lost: dict[str, int] = {}
        block = 0
        while block < self._blocks:
            self._block(block)
            block += 1
            self._check_lost(lost, block - 1)
            if block == first:
                self._blocks = self._chosen_blocks(first)
                self._save_facts()
            if block >= first and block < self._blocks and self._spent_s + self._block_s(block) > self._asked.budget_s:
                self.record_of_run.warn(
                    f"the budget of {seconds(self._asked.budget_s)} was over after {block} of {self._blocks} blocks"
                )
                break
        self._find_algorithms()
        self._save_facts()

    def _find_algorithms(self) -> None:
        """What each library runs for each case; a failure leaves it unknown."""
        known = {each.library for each in self.workspace.noted(AlgorithmSeen)}
        for label, library in self._libraries.items():
            if label in known:
                continue
            self._tell(f"which algorithms {label} runs", 0.98)
            for case, algorithm in algorithms_of(self.nodes, library, self._setting, self._cases(label)).items():
                entry = AlgorithmSeen(label, case.operation, case.form, case.size_bytes, algorithm)
                self.workspace.note(entry)

    # ---- what was decided ------------------------------------------------------------------------------------------

    def _chosen_numbers(self) -> dict[Case, CaseNumbers]:
        """Of every case, and of nothing; decided once."""
        if not self.workspace.noted(FirstStage):
            asked, cases = self._asked, self._cases(None)
            trial = trial_calls(self.workspace, TRIAL)
            windows = counting.first_windows_ns(
                trial, cases, self._setting.synchronisation, self._setting.cold_bytes, BROADCAST
            )
            chosen = counting.numbers_of_trial(
                trial,
                self._trials.durations_s,
                cases,
                windows,
                asked.precision,
                asked.budget_s - self._spent_s,
                calls=asked.calls,
                blocks=asked.mpiruns,
            )
            for case, window_ns in windows.items():
                calls = chosen.calls.get(case, 0)
                entry = CaseNumbers(case.operation, case.form, case.size_bytes, calls, window_ns)
                self.workspace.note(entry)
            self.workspace.note(FirstStage(chosen.first_blocks, chosen.derivation))
        return {entry.case: entry for entry in self.workspace.noted(CaseNumbers)}

    def _chosen_blocks(self, first: int) -> int:
        """How many in all; decided once."""
        if not self.workspace.noted(BlocksChosen):
            self.workspace.note(self._decision(first))
        return self.workspace.noted(BlocksChosen)[0].blocks

    def _decision(self, first: int) -> BlocksChosen:
        if self._asked.mpiruns is not None:
            return BlocksChosen(self._asked.mpiruns, False, ())
        column = counting.run_time_column(self._setting.synchronisation)
        needed = counting.mpiruns_needed(first_stage_calls(self.workspace, first), column, self._asked.precision)
        wanted = counting.blocks_for(needed, first)
        left_s = max(0.0, self._asked.budget_s - self._spent_s)
        allowed = min(self._most_blocks, first + int(left_s / self._block_s(first)))
        blocks = int(min(wanted, allowed))
        number = f"{wanted:g}" if wanted <= counting.MOST_BLOCKS else f"more than {counting.MOST_BLOCKS}"
        text = (
            f"{first} blocks tell that {100 * counting.SHARE_OF_CASES:g} % of the cases of each library need "
            f"{number} mpiruns for a mean within {100 * self._asked.precision:g} % (95 %, Stein's procedure)"
        )
        capped = wanted > allowed
        if capped:
            text += f"; with a budget of {seconds(self._asked.budget_s)} there are {blocks}"
            self.record_of_run.warn(text)
        return BlocksChosen(
            blocks,
            capped,
            (text,),
            {f"{label}: {case}": count if isfinite(count) else None for (label, case), count in needed.items()},
        )

    def _cases(self, label: str | None) -> tuple[Case, ...]:
        """Those that a library can be measured with; None: any of them."""
        return measurable(self.workspace, self._asked, tuple(self._libraries) if label is None else (label,))

    # ---- blocks ----------------------------------------------------------------------------------------------------

    def _block(self, block: int) -> None:
        """Every library once, as often as it failed again, and at the end what other load has disturbed."""
        order = library_order(tuple(self._libraries), block, self.seed)
        for place, label in enumerate(order):
            while self._is_open(block, label):
                self._start(block, place, label)
        while (again := self._next_repetition(block)) is not None:
            self._start(block, order.index(again), again)

    def _of_block(self, block: int, label: str) -> list[MpirunEnded]:
        return [each for each in self.workspace.noted(MpirunEnded) if (each.block, each.library) == (block, label)]

    def _is_open(self, block: int, label: str) -> bool:
        made = self._of_block(block, label)
        failed = sum(each.outcome == FAILED for each in made)
        return not any(each.outcome == COMPLETE for each in made) and failed <= MOST_RETRIES

    def _next_repetition(self, block: int) -> str | None:
        """The library whose start is to be repeated next; those with the fewest attempts first."""
        spent_s = sum(each.wall_s for each in self.workspace.noted(MpirunEnded) if each.block >= 0 and each.attempt > 0)
        due: dict[str, int] = {}
        for label in self._libraries:
            made = [each for each in self._of_block(block, label) if each.outcome == COMPLETE]
            if made and all(each.disturbed for each in made) and len(made) <= MOST_REPETITIONS:
                allowed_s = counting.REPEATED_SHARE * self._asked.budget_s
                if spent_s + made[-1].wall_s <= allowed_s and self._spent_s + made[-1].wall_s <= self._asked.budget_s:
                    due[label] = len(made)
        return min(due, key=lambda label: due[label], default=None)

    def _start(self, block: int, place: int, label: str) -> None:
        begun = [e for e in self.workspace.noted(MpirunBegun) if (e.block, e.library) == (block, label)]
        attempt = len(begun)
        again = f", attempt {attempt + 1}" if attempt else ""
        self._tell(f"block {block + 1} of {self._blocks}: {label}{again}", self._share(block, place))
        seed = mpirun_seed(self.seed, block, label, attempt)
        calls = {case: self._numbers[case].calls for case in self._cases(label)}
        windows = {case: entry.window_ns for case, entry in self._numbers.items()}
        _, ended = self._maker.make(
            self._libraries[label],
            shuffled_batches(calls, windows, seed),
            block=block,
            place=place,
            attempt=attempt,
            seed=seed,
            limit_s=self._limit_s(label),
        )
        if ended.outcome == FAILED:
            self._warn(f"{label}: mpirun {ended.mpirun} failed and is kept: {ended.failure}")

    def _limit_s(self, label: str) -> float:
        if self._asked.limit_s is not None:
            return self._asked.limit_s
        ended = self.workspace.noted(MpirunEnded)
        complete = [each.wall_s for each in ended if (each.library, each.outcome) == (label, COMPLETE)]
        return LIMIT_BASE_S + LIMIT_FACTOR * max(complete)

    def _check_lost(self, lost: dict[str, int], block: int) -> None:
        """Raises EnvironmentProblem where a library fails in one block after the other."""
        for label in self._libraries:
            made = self._of_block(block, label)
            if any(each.outcome == COMPLETE for each in made):
                lost[label] = 0
                continue
            lost[label] = lost.get(label, 0) + 1
            self._warn(f"{label}: block {block + 1} has no complete mpirun of it")
            if lost[label] >= MOST_LOST_BLOCKS:
                raise EnvironmentProblem(
                    f"{label}: every mpirun of {lost[label]} blocks failed, the last one: {made[-1].failure}"
                )

    # ---- what is known meanwhile -------------------------------------------------------------------------------------

    @property
    def _spent_s(self) -> float:
        """Of the budget, by all sessions of the campaign."""
        return sum(each.wall_s for each in self.workspace.noted(MpirunEnded))

    def _block_s(self, blocks: int) -> float:
        """How long a block takes, from those that were made."""
        made = sum(each.wall_s for each in self.workspace.noted(MpirunEnded) if each.block >= 0)
        return max(made / max(1, blocks), 1e-3)

    @property
    def _most_blocks(self) -> int:
        """An archive has room for the files of so many, each of whose mpiruns may be repeated."""
        files = len(self._libraries) * (2 * self._asked.ranks + 1) * (1 + MOST_REPETITIONS)
        return min(counting.MOST_BLOCKS, MOST_FILES // files)

    def _share(self, block: int, place: int) -> float:
        behind = (block + place / len(self._libraries)) / self._blocks
        return min(0.98, 0.05 + 0.93 * behind)

    def _warn(self, text: str) -> None:
        self.record_of_run.warn(text)

    def _save_facts(self) -> None:
        facts = facts_of(
            self.workspace,
            self._asked,
            tuple(replace(each.facts, text=self._texts.get(each.label, "")) for each in self._libraries.values()),
            self._setting,
            self.workspace.folder / "environment" / self.nodes.names[0],
            len(self._layout.cores),
            self.seed,
        )
        self.workspace.state.more[KIND] = to_json(facts)
        self.workspace.save()


def _silent(_line: str) -> None:
    """The log is in the archive; on the way a bar is shown."""
