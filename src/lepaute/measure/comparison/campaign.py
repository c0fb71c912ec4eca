"""A campaign that compares MPI libraries: mpirun of each in turn, through the controller of experiments."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from statistics import median
from typing import Any, ClassVar

from lepaute.errors import EnvironmentProblem, InputError, LibraryFailure
from lepaute.kit.json_values import from_json, to_json
from lepaute.kit.mpi_launcher import binding_works
from lepaute.kit.text import counted, exact_seconds
from lepaute.measure.archive.documents import MAX_MEMBERS
from lepaute.measure.archive.mpi_campaign import KIND, CampaignFacts, settings_text
from lepaute.measure.comparison import entries, factors, mpirun
from lepaute.measure.comparison import numbers as counting
from lepaute.measure.comparison.cases import Case, ComparisonRequest
from lepaute.measure.comparison.facts import facts_of
from lepaute.measure.comparison.libraries import ReadyLibrary, doubts
from lepaute.measure.comparison.mpirun import algorithms_of
from lepaute.measure.comparison.numbers import library_order, mpirun_seed, shuffled_batches
from lepaute.measure.comparison.places import NodeFiles, place_of
from lepaute.measure.experiment.entries import Content
from lepaute.measure.experiment.life import Campaign, Progress, check_begun_with
from lepaute.measure.experiment.options import Options
from lepaute.measure.machine_load import MAX_REPETITIONS
from lepaute.measure.node_agent.system_files import SystemFiles
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.nodes.results import CommandFailed
from lepaute.measure.probes import DGEMM_PROGRAM, build_programs
from lepaute.measure.sentinel import NodeSentinel, short_guard
from lepaute.measure.toolchain import find_toolchain
from lepaute.stats.aligned_ranks import block_sizes, values_to_decide

#: Repetitions of a start that failed, before its block goes without it; after this many such places in a row it ends.
MAX_RETRIES, MAX_LOST = 2, 2
#: Multiple of the budget that those mpiruns may take without which nothing could be decided.
MAX_OVERRUN = 1.5
#: A start is ended after this much more than the trial took: far beyond any disturbance, so that only a hang is cut.
LIMIT_BASE_S, LIMIT_FACTOR = 60.0, 10.0
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
#: Most raw files and designs among all members of an archive.
MAX_FILES = 4 * MAX_MEMBERS // 5


class Comparison(Campaign):
    """Trials of each library, the first mpiruns, and as many more as these say; in blocks, each in one random order."""

    archive_content: ClassVar[Content] = entries.COMPARISON

    def __init__(
        self,
        options: Options,
        libraries: Mapping[factors.Build, Sequence[ReadyLibrary]],
        request: ComparisonRequest,
        tell: Progress,
    ) -> None:
        """libraries: with the probe of each build"""
        super().__init__(options, tell)
        self._builds = libraries
        self._libraries = {library.label: library for library in next(iter(libraries.values()))}
        self._request = request
        self._texts: dict[str, str] = {}
        self._networks: dict[str, str] = {}

    def _more_metadata(self) -> dict[str, Any]:
        return {KIND: {"asked": to_json(self._request)}}

    def prepare_machine(self) -> None:
        """Also trials, and the plan: what cannot be measured or decided is refused here, and leaves nothing behind."""
        self.tell("looking at the machine", 0.0)
        super().prepare_machine()
        check_same(self.workspace.state.more.get(KIND, {}), self._request, self._libraries.values())
        launch = None if self.options.on_this_machine else self.options.rank_launch()
        self._place = place_of(self.nodes, launch, self._request.ranks_per_node, dict(self._request.slots))
        self._place.check(self._request.ranks)
        self._cells = self._chosen_cells()
        self._place.equip([library for libraries in self._builds.values() for library in libraries])
        self._check_controls()
        checked: dict[tuple[object, ...], mpirun.Started] = {}
        for name, cell in self._cells.items():
            alike = (cell.library.key, cell.setting.ranks, cell.setting.pus, cell.setting.pages)
            if alike not in checked:
                self.tell(f"starting {name}", 0.0)
                checked[alike] = mpirun.check_start(self._place, cell)
            started = checked[alike]
            self._texts.setdefault(cell.label, started.text)
            self._networks[name] = started.network
            said = doubts(cell.library, started.ignored) if cell.setting.ranks == self._request.ranks else []
            for line in [each for each in said if each not in self.workspace.state.warnings]:
                self.warn(line)
        self._maker = mpirun.Mpiruns(self.workspace, self._place, mpirun.Watch(self._sentinel()), self._prepare)
        self._trials = mpirun.Trials(self._maker, self.workspace, self._cells, self._request, self.seed, self.warn)
        self._trials.make(lambda text: self.tell(text, 0.02))
        self._numbers = self._chosen_numbers()
        self._save_facts()

    def _chosen_cells(self) -> dict[str, mpirun.Cell]:
        """Every library on every number of ranks, with every combination of levels, by name."""
        request, place = self._request, self._place
        shared = [ranks for ranks in request.all_ranks if place.shares_cores(ranks)]
        for ranks in shared:
            self.warn(
                f"{ranks} ranks share {counted(place.cores(ranks), 'core')}: run-times are mostly those of the "
                "system's scheduler, and ranks are not bound to cores"
            )
        binds = not place.is_here or len(shared) == len(request.all_ranks)
        binds = binds or all(binding_works(library.named.launcher) for library in self._libraries.values())
        if not binds:
            self.warn("ranks are not bound to cores: this machine does not allow it")
        if any(name == factors.PINNING for name, _ in request.factors):
            if shared or not binds:
                raise InputError(
                    f"--factor {factors.PINNING}: ranks cannot be bound here, or share cores; give fewer to --np"
                )
            if any(place.pus(ranks) == place.pus(ranks, spread=True) for ranks in request.all_ranks):
                self.warn(f"{factors.PINNING}: the levels core and spread are the same places for these ranks")
        if len(place.names) > 1 and len(set(place.nodes_of(request.ranks))) == 1:
            self.warn(
                f"all ranks fit on {place.names[0]}: nothing is sent between nodes; give a smaller --ranks-per-node, "
                "or more ranks (--np)"
            )
        files = SystemFiles(self.options.system_root) if place.is_here else NodeFiles(self.nodes)
        every = factors.combinations(request.varied)
        is_cold = [levels.get(factors.CACHE, "cold" if request.cold else "warm") == "cold" for levels in every]
        cold_bytes = mpirun.private_cache_bytes(files) if any(is_cold) else 0
        synchronisation = request.synchronisation or ("dissemination" if shared else counting.BY_LEAD)
        cells = {}
        for levels, cold in zip(every, is_cold, strict=True):
            for library in self._builds[factors.build_of(levels)]:
                own = factors.variables_of(levels, library.named.library.family)
                if own:
                    named = replace(library.named, variables=(*library.named.variables, *own.items()))
                    facts = replace(library.facts, settings=named.settings(os.environ))
                    library = replace(library, named=named, facts=facts)  # noqa: PLW2901
                for ranks in request.all_ranks:
                    pinning = levels.get(factors.PINNING, "core")
                    bound = binds and ranks not in shared and pinning != "none"
                    pus = place.pus(ranks, spread=pinning == "spread") if bound else None
                    words = [f"on {ranks} ranks"] if request.fewer_ranks else []
                    words += [f"with {settings_text(levels)}"] if levels else []
                    name = " ".join([library.label, *words])
                    setting = mpirun.Setting(
                        *(request, ranks, pus, synchronisation, cold_bytes if cold else 0),
                        levels.get(factors.PAGES, "default"),
                        levels,
                    )
                    cells[name] = mpirun.Cell(name, library, setting)
        return cells

    def _sentinel(self) -> NodeSentinel | None:
        """None, with a warning, where it cannot be compiled or run: a comparison needs no BLAS."""
        try:
            tools = find_toolchain(next(iter(self._libraries.values())).named.library)
            built = build_programs([DGEMM_PROGRAM], lambda message: self.tell(message, 0.0), tools)
            cores = max(len(layout.cores) for layout in self._place.layouts.values())
            sentinel = NodeSentinel(self.nodes, self._place.layouts, short_guard(built / DGEMM_PROGRAM, cores))
            sentinel.watch()
        except NodeLost:
            raise
        except (EnvironmentProblem, CommandFailed) as problem:
            self.warn(f"no sentinels, so that a machine that is slow for a while is not seen: {problem}")
            return None
        return sentinel

    def _check_controls(self) -> None:
        """Raises EnvironmentProblem if a machine cannot be set to a level, or has no pages of it."""
        for levels in factors.combinations(self._request.varied):
            if (control := factors.control_of(levels)) and self.set_conditions(**control):
                why = self.workspace.state.warnings[-1:] or ["it has no such control"]
                level = levels[factors.FREQUENCY]
                raise EnvironmentProblem(f"--factor {factors.FREQUENCY}: {level} cannot be set: {why[0]}")
        if any(levels.get(factors.PAGES) == "huge" for levels in factors.combinations(self._request.varied)):
            for name, result in self.nodes.run("cat", _HUGE_PAGES, check=False).items():
                if not result.ok or "[never]" in result.stdout:
                    raise EnvironmentProblem(
                        f"--factor {factors.PAGES}: {name} has no transparent huge pages ({_HUGE_PAGES})"
                    )

    def _prepare(self, cell: mpirun.Cell) -> None:
        if control := factors.control_of(cell.setting.levels):
            self.set_conditions(**control)

    @property
    def _synchronisation(self) -> str:
        return next(iter(self._cells.values())).setting.synchronisation

    def run(self) -> None:
        stage = self.workspace.noted(entries.FirstStage)[0]
        # As long as the budget says, or as the mpiruns that were asked for take by the trial
        several, mpiruns = len(self._libraries), self._request.mpiruns
        of = f"{several} libraries side by side" if several > 1 else "one library"
        wall_s = (self._request.budget_s if mpiruns is None else stage.planned_s) - self._spent_s
        what = f"{of}, half more if disturbed" if mpiruns is None else f"{of}, {counted(mpiruns, 'mpirun')} each"
        self.announce(max(0.0, wall_s), what)
        self._sizes = block_sizes(stage.mpiruns)
        first, self._lost = len(self._sizes), dict.fromkeys(self._cells, 0)
        block = 0
        while block < len(self._sizes) and not self._is_over():
            self._block(block)
            block += 1
            if block == first and not self._is_over():
                # How many of each library in all is decided once.
                if not self.workspace.noted(entries.MpirunsChosen):
                    self.workspace.note(self._decision(stage.mpiruns, first))
                chosen = self.workspace.noted(entries.MpirunsChosen)[0].mpiruns
                self._sizes += block_sizes(chosen - stage.mpiruns) if chosen > stage.mpiruns else ()
                self._save_facts()
        if self._is_over() and self._made < sum(self._sizes):
            self.warn(
                f"the budget of {exact_seconds(self._request.budget_s)} was over after "
                f"{counted(self._made, 'mpirun')} of each library; {sum(self._sizes)} were planned"
            )
        self._find_algorithms()
        self._save_facts()

    def _find_algorithms(self) -> None:
        known = {(each.library, each.ranks) for each in self.workspace.noted(entries.AlgorithmSeen)}
        reference = factors.combinations(self._request.varied)[0]
        for name, cell in self._cells.items():
            ranks = cell.setting.ranks if self._request.fewer_ranks else 0
            if (cell.label, ranks) in known or cell.setting.levels != reference:
                continue
            self.tell(f"which algorithms {name} runs", 0.98)
            for case, algorithm in algorithms_of(self._place, cell, self._cases(name)).items():
                entry = entries.AlgorithmSeen(cell.label, case.operation, case.form, case.size_bytes, algorithm, ranks)
                self.workspace.note(entry)

    def _chosen_numbers(self) -> dict[Case, entries.CaseNumbers]:
        """Numbers for every case, decided once."""
        if not self.workspace.noted(entries.FirstStage):
            request, cases = self._request, self._cases(None)
            trial = entries.trial_calls(self.workspace, mpirun.TRIAL)
            cold_bytes = max(cell.setting.cold_bytes for cell in self._cells.values())
            windows = counting.first_windows_ns(trial, cases, self._synchronisation, cold_bytes, mpirun.BROADCAST)
            chosen = counting.numbers_of_trial(
                trial,
                self._trials.durations_s,
                cases,
                windows,
                request.precision,
                request.budget_s - self._spent_s,
                tests=self._tests,
                warm_up=request.warm_up,
                calls=request.calls,
                mpiruns=request.mpiruns,
            )
            for case, window_ns in windows.items():
                calls = chosen.calls.get(case, 0)
                entry = entries.CaseNumbers(case.operation, case.form, case.size_bytes, calls, window_ns)
                self.workspace.note(entry)
            planned_s = self._spent_s + len(self._cells) * chosen.first_mpiruns * chosen.mpirun_s
            self.workspace.note(entries.FirstStage(chosen.first_mpiruns, planned_s, chosen.derivation))
        return {entry.case: entry for entry in self.workspace.noted(entries.CaseNumbers)}

    def _decision(self, first: int, blocks: int) -> entries.MpirunsChosen:
        if self._request.mpiruns is not None:
            return entries.MpirunsChosen(self._request.mpiruns, False, ())
        # The run-time where ranks start by the global clock (section 3.2) is the global one.
        column = "global_s" if self._synchronisation in (counting.BY_WINDOWS, counting.BY_LEAD) else "local_s"
        needed = counting.mpiruns_needed(
            entries.first_stage_calls(self.workspace, blocks), column, self._request.precision
        )
        wanted = counting.mpiruns_for(needed, first)
        left_s = max(0.0, self._request.budget_s - self._spent_s)
        each_s = max(1e-3, sum(self._wall_s(label) for label in self._cells))
        # An archive has room for the files of this many, each of which may be repeated.
        most = MAX_FILES // (sum(2 * cell.setting.ranks + 1 for cell in self._cells.values()) * (1 + MAX_REPETITIONS))
        allowed = min(counting.MAX_MPIRUNS, most, first + int(left_s / each_s))
        mpiruns = int(min(wanted, allowed))
        number = f"{wanted:g}" if wanted <= counting.MAX_MPIRUNS else f"more than {counting.MAX_MPIRUNS}"
        text = (
            f"{first} mpiruns tell that {100 * counting.SHARE_OF_CASES:g} % of the cases of each library need "
            f"{number} for a mean within {100 * self._request.precision:g} % (95 %, Stein's procedure)"
        )
        capped = wanted > allowed
        if capped:
            text += f"; with a budget of {exact_seconds(self._request.budget_s)} there are {mpiruns}"
            self.warn(text)
        return entries.MpirunsChosen(
            mpiruns,
            capped,
            (text,),
            {f"{label}: {case}": count if isfinite(count) else None for (label, case), count in needed.items()},
        )

    def _cases(self, label: str | None) -> tuple[Case, ...]:
        """Cases that a library can be measured with; None: any of them."""
        return entries.measurable(self.workspace, self._request, tuple(self._cells) if label is None else (label,))

    def _block(self, block: int) -> None:
        """Every library as often as the block says, each as often as it failed again, and what was disturbed again."""
        order = library_order(tuple(self._cells), self._sizes[block], block, self.seed)
        for place, label in enumerate(order):
            if self._is_over():
                return
            while self._is_open(block, place):
                self._start(block, place, label)
            self._check_lost(block, place, label)
        while (again := self._next_repetition(block)) is not None:
            self._start(block, again, order[again])

    def _at(self, block: int, place: int) -> list[entries.MpirunEnded]:
        return [each for each in self._ended if (each.block, each.place) == (block, place)]

    def _is_open(self, block: int, place: int) -> bool:
        outcomes = [each.outcome for each in self._at(block, place)]
        return entries.COMPLETE not in outcomes and outcomes.count(entries.FAILED) <= MAX_RETRIES

    def _next_repetition(self, block: int) -> int | None:
        """The place whose start is to be repeated next; those with the fewest attempts first."""
        allowed_s = counting.REPEATED_SHARE * self._request.budget_s - self._repeated_s
        due: dict[int, int] = {}
        for place in range(len(self._cells) * self._sizes[block]):
            made = [start for start in self._at(block, place) if start.outcome == entries.COMPLETE]
            disturbed = bool(made) and all(start.disturbed for start in made)
            if disturbed and len(made) <= MAX_REPETITIONS and made[-1].wall_s <= allowed_s:
                due[place] = len(made)
        return min(due, key=lambda place: due[place], default=None)

    def _start(self, block: int, place: int, label: str) -> None:
        attempt = sum((each.block, each.place) == (block, place) for each in self.workspace.noted(entries.MpirunBegun))
        again = f", attempt {attempt + 1}" if attempt else ""
        number = len(self._cells) * sum(self._sizes[:block]) + place
        total = len(self._cells) * sum(self._sizes)
        self.tell(f"mpirun {number + 1} of {total}: {label}{again}", min(0.98, 0.05 + 0.93 * number / total))
        seed = mpirun_seed(self.seed, block, place, label, attempt)
        calls = {case: self._numbers[case].calls for case in self._cases(label)}
        ended = self._maker.make(
            self._cells[label],
            shuffled_batches(calls, {case: entry.window_ns for case, entry in self._numbers.items()}, seed),
            block=block,
            place=place,
            attempt=attempt,
            seed=seed,
            limit_s=self._limit_s(label),
        )
        if ended.outcome == entries.FAILED:
            self.warn(f"{label}: mpirun {ended.mpirun} failed and is kept: {ended.failure}")

    def _limit_s(self, label: str) -> float:
        if self._request.limit_s is not None:
            return self._request.limit_s
        return LIMIT_BASE_S + LIMIT_FACTOR * max(each.wall_s for each in self._complete(label))

    def _check_lost(self, block: int, place: int, label: str) -> None:
        made = self._at(block, place)
        if any(each.outcome == entries.COMPLETE for each in made):
            self._lost[label] = 0
            return
        self._lost[label] += 1
        self.warn(f"{label}: block {block + 1} goes without its mpirun {place + 1}, which failed {len(made)} times")
        if self._lost[label] >= MAX_LOST:
            raise LibraryFailure(f"{label}: one mpirun after the other failed, the last one: {made[-1].failure}")

    @property
    def _ended(self) -> list[entries.MpirunEnded]:
        return entries.ended_mpiruns(self.workspace)

    def _complete(self, label: str) -> list[entries.MpirunEnded]:
        return [each for each in self._ended if (each.cell, each.outcome) == (label, entries.COMPLETE)]

    @property
    def _spent_s(self) -> float:
        """Seconds of the budget spent by all sessions of the campaign; repetitions have a share of their own."""
        return sum(each.wall_s for each in self._ended) - self._repeated_s

    @property
    def _repeated_s(self) -> float:
        """Seconds of starts at places that had a complete one already."""
        complete: set[tuple[int, int]] = set()
        repeated_s = 0.0
        for start in self._ended:
            place = (start.block, start.place)
            repeated_s += start.wall_s if start.block >= 0 and place in complete else 0.0
            complete |= {place} if start.outcome == entries.COMPLETE else set()
        return repeated_s

    @property
    def _made(self) -> int:
        """Complete mpiruns of the library that has fewest; repetitions are not counted."""
        return min(
            len({(each.block, each.place) for each in self._complete(label) if each.block >= 0})
            for label in self._cells
        )

    @property
    def _tests(self) -> int:
        return len(self._request.all_ranks) * (len(self._request.primary) or max(1, len(self._cases(None))))

    def _is_over(self) -> bool:
        """Whether the budget is spent; for what it takes to decide anything, it may take half as much again."""
        if self._request.mpiruns is not None:
            return False
        is_decidable = self._made >= values_to_decide(counting.LEVEL / self._tests)
        return self._spent_s >= self._request.budget_s * (1.0 if is_decidable else MAX_OVERRUN)

    def _wall_s(self, label: str) -> float:
        """Wall time of a complete mpirun of the campaign, the median; of the trial before there is one."""
        ended = self._complete(label)
        return median([each.wall_s for each in ended if each.block >= 0] or [each.wall_s for each in ended])

    def _save_facts(self) -> None:
        facts = facts_of(
            self.workspace,
            list(self._cells.values()),
            self._place,
            self._networks,
            tuple(replace(lib.facts, text=self._texts.get(lib.label, "")) for lib in self._libraries.values()),
            self.workspace.folder / "environment" / self._place.names[0],
            self.seed,
        )
        self.workspace.state.more[KIND] = to_json(facts)
        self.workspace.save()


def check_same(begun: Mapping[str, Any], request: ComparisonRequest, libraries: Iterable[ReadyLibrary]) -> None:
    """Raises InputError if a campaign was begun with another request, or a library is set by other variables now."""
    check_same_request(begun, request)
    before = from_json(CampaignFacts, dict(begun), lenient=True).libraries
    check_begun_with(
        "comparison",
        {f"variables of {library.label}": settings_text(library.settings) for library in before},
        {f"variables of {library.facts.label}": settings_text(library.facts.settings) for library in libraries},
    )


def check_same_request(begun: Mapping[str, Any], request: ComparisonRequest) -> None:
    """Raises InputError if a campaign, or another session of it, was begun with another request."""
    check_begun_with("comparison", from_json(ComparisonRequest, dict(begun.get("asked", {})), "state.json"), request)
