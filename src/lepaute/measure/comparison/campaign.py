"""A campaign that compares MPI libraries: mpirun of each in turn, through the controller of experiments."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from lepaute.archive.documents import MOST_MEMBERS
from lepaute.archive.mpi_campaign import KIND, CampaignFacts, settings_text
from lepaute.errors import EnvironmentProblem
from lepaute.kit.json_values import from_json, to_json
from lepaute.kit.mpi_launcher import binding_works
from lepaute.kit.text import counted, seconds
from lepaute.measure.calibration.machines import layouts_of
from lepaute.measure.comparison import numbers as counting
from lepaute.measure.comparison.cases import (
    DATATYPE,
    OPERATOR,
    Case,
    ComparisonRequest,
    operations_of,
    reduction_in,
    reduction_of,
    rows_of,
    sizes_of,
    with_overlapped,
)
from lepaute.measure.comparison.entries import (
    COMPARISON,
    COMPLETE,
    FAILED,
    AlgorithmSeen,
    CaseNumbers,
    FirstStage,
    MpirunBegun,
    MpirunEnded,
    MpirunsChosen,
    facts_of,
    first_stage_calls,
    measurable,
    trial_calls,
)
from lepaute.measure.comparison.libraries import (
    NamedLibrary,
    ReadyLibrary,
    doubts,
    named_libraries,
    ready_library,
)
from lepaute.measure.comparison.mpirun import (
    BROADCAST,
    TRIAL,
    Mpiruns,
    Setting,
    Trials,
    algorithms_of,
    check_start,
    private_cache_bytes,
)
from lepaute.measure.comparison.numbers import library_order, mpirun_seed, shuffled_batches
from lepaute.measure.experiment.campaign import Campaign, Progress, campaign_options, check_begun_with, silent
from lepaute.measure.experiment.entries import Content
from lepaute.measure.experiment.options import Options
from lepaute.measure.machine_load import MOST_REPETITIONS
from lepaute.measure.node_agent.system_files import SystemFiles
from lepaute.stats.aligned_ranks import block_sizes, values_to_decide

#: Repetitions of a start that failed, before its block goes without it; after so many such places in a row it ends.
MOST_RETRIES, MOST_LOST = 2, 2
#: Of the budget, what the mpiruns may take without which nothing could be decided.
MOST_OVERRUN = 1.5
#: A start is ended after this much more than the trial took: far beyond any disturbance, so that only a hang is cut.
LIMIT_BASE_S, LIMIT_FACTOR = 60.0, 10.0
#: Of the raw files and designs, among all members of an archive.
MOST_FILES = 4 * MOST_MEMBERS // 5


class Comparison(Campaign):
    """Trials of each library, the first mpiruns, and as many more as these say; in blocks, each in one random order."""

    archive_content: ClassVar[Content] = COMPARISON

    def __init__(
        self, options: Options, libraries: Sequence[ReadyLibrary], request: ComparisonRequest, tell: Progress
    ) -> None:
        super().__init__(options, tell)
        self._libraries = {library.label: library for library in libraries}
        self._request = request
        self._texts: dict[str, str] = {}

    def _more_metadata(self) -> dict[str, Any]:
        return {KIND: {"asked": to_json(self._request)}}

    def prepare_machine(self) -> None:
        """Also trials, and the plan: what cannot be measured or decided is refused here, and leaves nothing behind."""
        self.tell("looking at the machine", 0.0)
        super().prepare_machine()
        check_same(self.workspace.state.more.get(KIND, {}), self._request, self._libraries.values())
        (name,) = self.nodes.names
        self._layout = layouts_of(self.nodes)[name]
        self._node_pus = self.nodes.call("facts")[name]["node_cores"]
        self._setting = self._chosen_setting()
        for label, library in self._libraries.items():
            self.tell(f"starting {label}", 0.0)
            self._texts[label], ignored = check_start(self.nodes, library, self._setting)
            for line in doubts(library, ignored):
                self.warn(line)
        self._maker = Mpiruns(self.workspace, self.nodes, self._setting, self._node_pus)
        self._trials = Trials(self._maker, self.workspace, self._libraries, self._request, self.seed, self.warn)
        self._trials.make(lambda text: self.tell(text, 0.02))
        self._numbers = self._chosen_numbers()
        self._save_facts()

    def _chosen_setting(self) -> Setting:
        request, cores = self._request, len(self._layout.cores)
        shared = request.ranks > cores
        if shared:
            self.warn(
                f"{request.ranks} ranks share {counted(cores, 'core')}: run-times are mostly those of the system's "
                "scheduler, and ranks are not bound to cores"
            )
        binds = not shared and all(binding_works(library.named.launcher) for library in self._libraries.values())
        if not binds and not shared:
            self.warn("ranks are not bound to cores: this machine does not allow it")
        cold_bytes = private_cache_bytes(SystemFiles(self.options.system_root)) if request.cold else 0
        pus = self._layout.pus(range(request.ranks)) if binds else None
        synchronisation = request.synchronisation or ("dissemination" if shared else counting.BY_LEAD)
        return Setting(request, pus, synchronisation, cold_bytes)

    def run(self) -> None:
        stage = self.workspace.noted(FirstStage)[0]
        self._sizes = block_sizes(stage.mpiruns)
        first, self._lost = len(self._sizes), dict.fromkeys(self._libraries, 0)
        block = 0
        while block < len(self._sizes) and not self._is_over():
            self._block(block)
            block += 1
            if block == first and not self._is_over():
                chosen = self._chosen_mpiruns(stage.mpiruns, first)
                self._sizes += block_sizes(chosen - stage.mpiruns) if chosen > stage.mpiruns else ()
                self._save_facts()
        if self._is_over() and self._made < sum(self._sizes):
            self.warn(
                f"the budget of {seconds(self._request.budget_s)} was over after {self._made} mpiruns of each library; "
                f"{sum(self._sizes)} were planned"
            )
        self._find_algorithms()
        self._save_facts()

    def _find_algorithms(self) -> None:
        known = {each.library for each in self.workspace.noted(AlgorithmSeen)}
        for label, library in self._libraries.items():
            if label in known:
                continue
            self.tell(f"which algorithms {label} runs", 0.98)
            for case, algorithm in algorithms_of(self.nodes, library, self._setting, self._cases(label)).items():
                entry = AlgorithmSeen(label, case.operation, case.form, case.size_bytes, algorithm)
                self.workspace.note(entry)

    # ---- what was decided ------------------------------------------------------------------------------------------

    def _chosen_numbers(self) -> dict[Case, CaseNumbers]:
        """Of every case, and of nothing; decided once."""
        if not self.workspace.noted(FirstStage):
            request, cases = self._request, self._cases(None)
            trial = trial_calls(self.workspace, TRIAL)
            windows = counting.first_windows_ns(
                trial, cases, self._setting.synchronisation, self._setting.cold_bytes, BROADCAST
            )
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
                entry = CaseNumbers(case.operation, case.form, case.size_bytes, calls, window_ns)
                self.workspace.note(entry)
            planned_s = self._spent_s + len(self._libraries) * chosen.first_mpiruns * chosen.mpirun_s
            self.workspace.note(FirstStage(chosen.first_mpiruns, planned_s, chosen.derivation))
        return {entry.case: entry for entry in self.workspace.noted(CaseNumbers)}

    def _chosen_mpiruns(self, first: int, blocks: int) -> int:
        """How many of each library in all, the first ones in so many blocks; decided once."""
        if not self.workspace.noted(MpirunsChosen):
            self.workspace.note(self._decision(first, blocks))
        return self.workspace.noted(MpirunsChosen)[0].mpiruns

    def _decision(self, first: int, blocks: int) -> MpirunsChosen:
        if self._request.mpiruns is not None:
            return MpirunsChosen(self._request.mpiruns, False, ())
        column = counting.run_time_column(self._setting.synchronisation)
        needed = counting.mpiruns_needed(first_stage_calls(self.workspace, blocks), column, self._request.precision)
        wanted = counting.mpiruns_for(needed, first)
        left_s = max(0.0, self._request.budget_s - self._spent_s)
        each_s = max(1e-3, sum(self._wall_s(label) for label in self._libraries))
        # An archive has room for the files of so many, each of which may be repeated.
        most = MOST_FILES // (len(self._libraries) * (2 * self._request.ranks + 1) * (1 + MOST_REPETITIONS))
        allowed = min(counting.MOST_MPIRUNS, most, first + int(left_s / each_s))
        mpiruns = int(min(wanted, allowed))
        number = f"{wanted:g}" if wanted <= counting.MOST_MPIRUNS else f"more than {counting.MOST_MPIRUNS}"
        text = (
            f"{first} mpiruns tell that {100 * counting.SHARE_OF_CASES:g} % of the cases of each library need "
            f"{number} for a mean within {100 * self._request.precision:g} % (95 %, Stein's procedure)"
        )
        capped = wanted > allowed
        if capped:
            text += f"; with a budget of {seconds(self._request.budget_s)} there are {mpiruns}"
            self.warn(text)
        return MpirunsChosen(
            mpiruns,
            capped,
            (text,),
            {f"{label}: {case}": count if isfinite(count) else None for (label, case), count in needed.items()},
        )

    def _cases(self, label: str | None) -> tuple[Case, ...]:
        """Those that a library can be measured with; None: any of them."""
        return measurable(self.workspace, self._request, tuple(self._libraries) if label is None else (label,))

    # ---- blocks ----------------------------------------------------------------------------------------------------

    def _block(self, block: int) -> None:
        """Every library as often as the block says, each as often as it failed again, and what was disturbed again."""
        order = library_order(tuple(self._libraries), self._sizes[block], block, self.seed)
        for place, label in enumerate(order):
            if self._is_over():
                return
            while self._is_open(block, place):
                self._start(block, place, label)
            self._check_lost(block, place, label)
        while (again := self._next_repetition(block)) is not None:
            self._start(block, again, order[again])

    def _at(self, block: int, place: int) -> list[MpirunEnded]:
        return [each for each in self._ended if (each.block, each.place) == (block, place)]

    def _is_open(self, block: int, place: int) -> bool:
        outcomes = [each.outcome for each in self._at(block, place)]
        return COMPLETE not in outcomes and outcomes.count(FAILED) <= MOST_RETRIES

    def _next_repetition(self, block: int) -> int | None:
        """The place whose start is to be repeated next; those with the fewest attempts first.

        Never at the cost of the mpiruns without which nothing could be decided.
        """
        spent_s = sum(each.wall_s for each in self._ended if each.block >= 0 and each.attempt > 0)
        reserved_s = max(0, self._least - self._made) * sum(self._wall_s(label) for label in self._libraries)
        due: dict[int, int] = {}
        for place in range(len(self._libraries) * self._sizes[block]):
            made = [each for each in self._at(block, place) if each.outcome == COMPLETE]
            if made and all(each.disturbed for each in made) and len(made) <= MOST_REPETITIONS:
                wall_s = made[-1].wall_s
                allowed_s = counting.REPEATED_SHARE * self._request.budget_s
                if spent_s + wall_s <= allowed_s and self._spent_s + reserved_s + wall_s <= self._request.budget_s:
                    due[place] = len(made)
        return min(due, key=lambda place: due[place], default=None)

    def _start(self, block: int, place: int, label: str) -> None:
        attempt = sum((each.block, each.place) == (block, place) for each in self.workspace.noted(MpirunBegun))
        again = f", attempt {attempt + 1}" if attempt else ""
        number = len(self._libraries) * sum(self._sizes[:block]) + place
        total = len(self._libraries) * sum(self._sizes)
        self.tell(f"mpirun {number + 1} of {total}: {label}{again}", min(0.98, 0.05 + 0.93 * number / total))
        seed = mpirun_seed(self.seed, block, place, label, attempt)
        calls = {case: self._numbers[case].calls for case in self._cases(label)}
        windows = {case: entry.window_ns for case, entry in self._numbers.items()}
        ended = self._maker.make(
            self._libraries[label],
            shuffled_batches(calls, windows, seed),
            block=block,
            place=place,
            attempt=attempt,
            seed=seed,
            limit_s=self._limit_s(label),
        )
        if ended.outcome == FAILED:
            self.warn(f"{label}: mpirun {ended.mpirun} failed and is kept: {ended.failure}")

    def _limit_s(self, label: str) -> float:
        if self._request.limit_s is not None:
            return self._request.limit_s
        return LIMIT_BASE_S + LIMIT_FACTOR * max(each.wall_s for each in self._complete(label))

    def _check_lost(self, block: int, place: int, label: str) -> None:
        made = self._at(block, place)
        if any(each.outcome == COMPLETE for each in made):
            self._lost[label] = 0
            return
        self._lost[label] += 1
        self.warn(f"{label}: block {block + 1} goes without its mpirun {place + 1}, which failed {len(made)} times")
        if self._lost[label] >= MOST_LOST:
            raise EnvironmentProblem(f"{label}: one mpirun after the other failed, the last one: {made[-1].failure}")

    # ---- what is known meanwhile -------------------------------------------------------------------------------------

    @property
    def _ended(self) -> list[MpirunEnded]:
        return self.workspace.noted(MpirunEnded)

    def _complete(self, label: str) -> list[MpirunEnded]:
        return [each for each in self._ended if (each.library, each.outcome) == (label, COMPLETE)]

    @property
    def _spent_s(self) -> float:
        """Of the budget, by all sessions of the campaign."""
        return sum(each.wall_s for each in self._ended)

    @property
    def _made(self) -> int:
        """Complete mpiruns of the library that has fewest; repetitions are not counted."""
        return min(
            len({(each.block, each.place) for each in self._complete(label) if each.block >= 0})
            for label in self._libraries
        )

    @property
    def _least(self) -> int:
        """Mpiruns of each library below which nothing can be decided."""
        return values_to_decide(counting.LEVEL / self._tests)

    @property
    def _tests(self) -> int:
        return len(self._request.primary) or max(1, len(self._cases(None)))

    def _is_over(self) -> bool:
        """Whether the budget is spent; for what it takes to decide anything, it may take half as much again."""
        if self._request.mpiruns is not None:
            return False
        budget_s = self._request.budget_s * (1.0 if self._made >= self._least else MOST_OVERRUN)
        return self._spent_s >= budget_s

    def _wall_s(self, label: str) -> float:
        """Of a complete mpirun of the campaign, the median; of the trial before there is one."""
        ended = self._complete(label)
        return median([each.wall_s for each in ended if each.block >= 0] or [each.wall_s for each in ended])

    def _save_facts(self) -> None:
        facts = facts_of(
            self.workspace,
            self._setting,
            tuple(replace(each.facts, text=self._texts.get(each.label, "")) for each in self._libraries.values()),
            self.workspace.folder / "environment" / self.nodes.names[0],
            len(self._layout.cores),
            self.seed,
        )
        self.workspace.state.more[KIND] = to_json(facts)
        self.workspace.save()


def check_same(begun: Mapping[str, Any], request: ComparisonRequest, libraries: Iterable[ReadyLibrary]) -> None:
    """Raises InputError where a campaign was begun with another request, or a library is set by other variables now."""
    check_same_request(begun, request)
    facts = from_json(CampaignFacts, dict(begun), lenient=True).libraries
    check_begun_with(
        "comparison",
        {f"variables of {each.label}": settings_text(each.settings) for each in facts},
        {f"variables of {each.facts.label}": settings_text(each.facts.settings) for each in libraries},
    )


def check_same_request(begun: Mapping[str, Any], request: ComparisonRequest) -> None:
    """Raises InputError where a campaign, or another session of it, was begun with another request."""
    before = from_json(ComparisonRequest, dict(begun.get("asked", {})), "state.json")
    check_begun_with(
        "comparison",
        *({name.replace("_", " "): value for name, value in to_json(each).items()} for each in (before, request)),
    )


DEFAULT_OPERATIONS = "bcast,allreduce"
DEFAULT_SIZES = "1:1M"


def measure_libraries(
    libraries: Sequence[str],
    out_archive: str | Path,
    *,
    ops: str = DEFAULT_OPERATIONS,
    sizes: str = DEFAULT_SIZES,
    ranks: int = 2,
    precision: float = 0.02,
    budget_s: float = 300.0,
    synchronisation: str | None = None,
    clock: str = "clock_gettime",
    clock_method: str = "HCA",
    cold: bool = False,
    warm_up: int = 5,
    calls: int | None = None,
    mpiruns: int | None = None,
    limit_s: float | None = None,
    primary: Sequence[str] = (),
    datatype: str = DATATYPE,
    op: str = OPERATOR,
    root: int = 0,
    compute_s: float | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    resume: bool = False,
) -> Path:
    """Measures MPI libraries side by side on this machine and writes the archive; returns its path.

    libraries : SPEC or LABEL=SPEC each: openmpi, mpich, a prefix, a compiler wrapper, module:NAME
    ops, sizes: lists as `operations_of` and `sizes_of` read them
    precision .. root: see `ComparisonRequest`; datatype, op: with or without MPI_ before
    primary   : OP:SIZE each; the campaign is planned for these rows, see `ComparisonRequest`
    compute_s : nonblocking operations are measured again with so much work before they are waited for
    progress  : called with what is being done and the share of the work that is done
    resume    : go on with a campaign of that archive that did not end
    Raises InputError for what makes no sense, for a budget in which nothing could be decided, and for an mpirun that is
    not its library's, EnvironmentProblem where a library is missing or cannot be measured, KeyboardInterrupt. When
    measurements had begun they are archived beside as NAME.partial.zip, and the exception has a note that says so.
    """
    options, tell = campaign_options(out_archive, seed), progress or silent
    named = named_libraries(libraries)
    request = request_of(
        named,
        seed,
        ops=ops,
        sizes=sizes,
        ranks=ranks,
        precision=precision,
        budget_s=budget_s,
        synchronisation=synchronisation,
        clock=clock,
        clock_method=clock_method,
        cold=cold,
        warm_up=warm_up,
        calls=calls,
        mpiruns=mpiruns,
        limit_s=limit_s,
        primary=primary,
        datatype=datatype,
        op=op,
        root=root,
        compute_s=compute_s,
    )
    ready = [ready_library(each, lambda message: tell(message, 0.0)) for each in named]
    return Comparison(options, ready, request, tell).to_the_end(resume=resume)


def request_of(
    named: Sequence[NamedLibrary],
    seed: int,
    *,
    ops: str = DEFAULT_OPERATIONS,
    sizes: str = DEFAULT_SIZES,
    ranks: int = 2,
    primary: Sequence[str] = (),
    datatype: str = DATATYPE,
    op: str = OPERATOR,
    compute_s: float | None = None,
    **more: Any,
) -> ComparisonRequest:
    """The request that arguments of `measure_libraries` make; raises InputError for what makes no sense."""
    operations, reduction = operations_of(ops), reduction_of(datatype, op)
    if compute_s is not None:
        operations = with_overlapped(operations)
    return ComparisonRequest(
        libraries=tuple((each.label, each.spec) for each in named),
        operations=operations,
        sizes_bytes=sizes_of(sizes, seed, reduction_in(operations, reduction)),
        ranks=ranks,
        primary=rows_of(primary),
        datatype=reduction.datatype,
        op=reduction.op,
        compute_s=compute_s or 0.0,
        **more,
    )
