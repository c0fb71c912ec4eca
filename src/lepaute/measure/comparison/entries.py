"""What a campaign writes down: entries of its journals, the tables made of its raw files, its facts for the archive."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lepaute.archive.mpi_campaign import KIND, CampaignFacts, CaseFacts, LibraryFacts, call_table, settings_text
from lepaute.kit.json_values import to_json
from lepaute.kit.text import seconds
from lepaute.measure.comparison.cases import NOTHING, REDUCTIONS, Case, ComparisonRequest
from lepaute.measure.comparison.numbers import batches_of
from lepaute.measure.experiment.entries import Content, Entry
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.machine_load import disturbance_warnings
from lepaute.measure.node_agent.facts import cpuinfo_field
from lepaute.measure.raw_files import read_raw

if TYPE_CHECKING:
    import pandas

    from lepaute.measure.comparison.mpirun import Setting

COMPLETE, FAILED, INTERRUPTED = "complete", "failed", "interrupted"


@dataclass(frozen=True, slots=True)
class MpirunBegun(Entry):
    """A start of mpirun; its files are raw/mpirunNNNN.r<rank>.csv and raw/mpirunNNNN.clocks.r<rank>.csv.

    block  : -1 for trials, -2 for starts that try one operation alone
    place  : in the order of the block; attempt: at this place
    """

    JOURNAL: ClassVar[str] = "mpiruns_begun"
    mpirun: int
    library: str
    block: int
    place: int
    trial: bool
    attempt: int
    seed: int
    ranks: int

    @property
    def stem(self) -> str:
        return f"mpirun{self.mpirun:04d}"


@dataclass(frozen=True, slots=True)
class MpirunEnded(Entry):
    """How it ended; one that has no such entry was interrupted.

    library, block, place, attempt: as it was begun
    outcome: complete or failed; failure: why, in one line; started_s: since the epoch; wall_s: how long it took
    disturbed, causes: other programs used the machine; load: what it did meanwhile
    """

    JOURNAL: ClassVar[str] = "mpiruns"
    mpirun: int
    library: str
    block: int
    place: int
    attempt: int
    outcome: str
    failure: str
    disturbed: bool
    causes: tuple[str, ...]
    started_s: float
    wall_s: float
    load: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseNumbers(Entry):
    """What a case gets in each mpirun; decided once, from the trials."""

    JOURNAL: ClassVar[str] = "numbers"
    operation: str
    form: str
    size_bytes: int
    calls: int
    window_ns: int

    @property
    def case(self) -> Case:
        return Case(self.operation, self.form, self.size_bytes)


@dataclass(frozen=True, slots=True)
class FirstStage(Entry):
    """How many mpiruns of each library come before their number is decided, and what the trials decided, as sentences.

    planned_s: what the trials and these take together
    """

    JOURNAL: ClassVar[str] = "first_stage"
    mpiruns: int
    planned_s: float
    derivation: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MpirunsChosen(Entry):
    """How many mpiruns of each library there are, decided once; needed: by each case, None: more than counts."""

    JOURNAL: ClassVar[str] = "mpiruns_chosen"
    mpiruns: int
    capped: bool
    derivation: tuple[str, ...]
    needed: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lacking(Entry):
    """An operation that a library cannot be measured with, and why."""

    JOURNAL: ClassVar[str] = "lacking"
    library: str
    operation: str
    form: str
    why: str


@dataclass(frozen=True, slots=True)
class AlgorithmSeen(Entry):
    """What a library runs for a case, "unknown" where that is not seen."""

    JOURNAL: ClassVar[str] = "algorithms"
    library: str
    operation: str
    form: str
    size_bytes: int
    algorithm: str

    @property
    def case(self) -> Case:
        return Case(self.operation, self.form, self.size_bytes)


RAW = "raw"
_CALLS = (
    *("mpirun", "batch", "operation", "form", "size_bytes", "synchronisation", "call", "rank"),
    *("start_ns", "returned_ns", "end_ns", "marks", "window_ns"),
)
_CLOCKS = (
    *("mpirun", "rank", "before_batch", "method", "x0_ns", "y0_ns", "drift"),
    *("variance_ns2", "drift_variance", "covariance_ns", "bound_ns"),
)
_MPIRUNS = (
    *("mpirun", "library", "block", "place", "trial", "attempt", "outcome", "failure", "disturbed", "causes"),
    *("started_s", "wall_s", "seed"),
)
#: Columns that the probe names otherwise.
_RENAMED = {"design_row": "batch", "before_row": "before_batch"}
#: `before_row` of the model that is made when the last batch is over.
_END = "end"


def calls_and_clocks(workspace: Workspace, begun: Iterable[MpirunBegun]) -> "tuple[pandas.DataFrame, pandas.DataFrame]":
    """The rows of calls and of clock models of these starts of mpirun; a last line that was cut short is left out."""
    import pandas

    calls: list[pandas.DataFrame] = []
    clocks: list[pandas.DataFrame] = []
    for each in begun:
        for rank in range(each.ranks):
            calls.append(_rows(workspace.folder / RAW / f"{each.stem}.r{rank}.csv", each.mpirun))
            clocks.append(_rows(workspace.folder / RAW / f"{each.stem}.clocks.r{rank}.csv", each.mpirun))
    return _joined(calls, _CALLS), _joined(clocks, _CLOCKS)


def _rows(path: Path, mpirun: int) -> "pandas.DataFrame":
    frame, _ = read_raw(path)
    if frame.empty:
        return frame
    frame = frame.rename(columns=_RENAMED)
    if "before_batch" in frame:  # after all batches: for none of them
        last = frame["before_batch"].astype(str) == _END
        frame = frame.assign(before_batch=frame["before_batch"].mask(last, 1 << 30).astype("int64"))
    return frame.assign(mpirun=mpirun)


def _joined(parts: "list[pandas.DataFrame]", columns: tuple[str, ...]) -> "pandas.DataFrame":
    import pandas

    filled = [part for part in parts if not part.empty]
    return pandas.concat(filled, ignore_index=True)[list(columns)] if filled else pandas.DataFrame(columns=columns)


def mpirun_table(workspace: Workspace) -> "pandas.DataFrame":
    """A row a start of mpirun, as `archive.mpi_campaign.mpiruns` describes it."""
    import pandas

    ended = {entry.mpirun: entry for entry in workspace.noted(MpirunEnded)}
    rows = []
    for begun in workspace.noted(MpirunBegun):
        row = asdict(begun) | {"outcome": INTERRUPTED, "failure": "the campaign was interrupted", "disturbed": False}
        row |= {"causes": "", "started_s": float("nan"), "wall_s": float("nan")}
        if (end := ended.get(begun.mpirun)) is not None:
            row |= {name: getattr(end, name) for name in ("outcome", "failure", "disturbed", "started_s", "wall_s")}
            row["causes"] = "; ".join(end.causes)
        rows.append(row)
    return pandas.DataFrame(rows, columns=list(_MPIRUNS))


def tables(workspace: Workspace) -> "Iterator[tuple[str, pandas.DataFrame]]":
    """The tables `calls`, `clocks` and `mpiruns`, if mpirun was started at all."""
    begun = workspace.noted(MpirunBegun)
    if not begun:
        return
    calls, clocks = calls_and_clocks(workspace, begun)
    yield "calls", calls
    yield "clocks", clocks
    yield "mpiruns", mpirun_table(workspace)


def warnings(workspace: Workspace) -> list[str]:
    starts: dict[tuple[int, int], list[bool]] = {}
    for entry in workspace.noted(MpirunEnded):
        if entry.block >= 0 and entry.outcome == COMPLETE:
            starts.setdefault((entry.block, entry.place), []).append(entry.disturbed)
    return disturbance_warnings(starts.values(), "mpiruns", "mpiruns.json")


#: What the archive of a campaign holds.
COMPARISON = Content(KIND, ("mpiruns", "numbers", "mpiruns_chosen", "algorithms"), tables, warnings)


def measurable(workspace: Workspace, request: ComparisonRequest, labels: Sequence[str]) -> tuple[Case, ...]:
    """The cases that one of these libraries at least can be measured with."""
    lacking = {(each.library, each.operation, each.form) for each in workspace.noted(Lacking)}
    return tuple(
        case for case in request.cases if any((label, case.operation, case.form) not in lacking for label in labels)
    )


def trial_calls(workspace: Workspace, trial: int) -> "pandas.DataFrame":
    """The calls of the complete trials, `trial` being the number in the place of their block's."""
    ended = workspace.noted(MpirunEnded)
    return _calls(workspace, {each.mpirun for each in ended if (each.block, each.outcome) == (trial, COMPLETE)})


def first_stage_calls(workspace: Workspace, blocks: int) -> "pandas.DataFrame":
    """Calls of one complete mpirun at each place of the first blocks, an undisturbed one where there is."""
    chosen: dict[tuple[int, int], MpirunEnded] = {}
    for each in workspace.noted(MpirunEnded):
        if 0 <= each.block < blocks and each.outcome == COMPLETE:
            before = chosen.get((each.block, each.place))
            if before is None or (before.disturbed and not each.disturbed):
                chosen[each.block, each.place] = each
    return _calls(workspace, {each.mpirun for each in chosen.values()})


def _calls(workspace: Workspace, numbers: set[int]) -> "pandas.DataFrame":
    begun = [each for each in workspace.noted(MpirunBegun) if each.mpirun in numbers]
    table = call_table(*calls_and_clocks(workspace, begun), mpirun_table(workspace))
    return table[table["operation"] != NOTHING]


def facts_of(
    workspace: Workspace,
    setting: "Setting",
    libraries: Sequence[LibraryFacts],
    environment: Path,
    cores: int,
    seed: int,
) -> CampaignFacts:
    """What is known now.

    libraries: as far as they are known by themselves
    environment: the folder with what the node is and runs; cores: that the ranks may use
    """
    request = setting.request
    chosen, stage = workspace.noted(MpirunsChosen), workspace.noted(FirstStage)
    complete = [each for each in workspace.noted(MpirunEnded) if each.block >= 0 and each.outcome == COMPLETE]
    made = {(each.library, each.block, each.place) for each in complete}
    mpiruns = min((sum(label == each.label for label, _, _ in made) for each in libraries), default=0)
    libraries = tuple(_completed(workspace, library) for library in libraries)
    labels = [library.label for library in libraries]
    return CampaignFacts(
        ranks=request.ranks,
        oversubscribed=request.ranks > cores,
        libraries=libraries,
        cases=_case_facts(workspace, request, labels, chosen[0].needed if chosen else {}),
        precision=request.precision,
        budget_s=request.budget_s,
        blocks=len({block for _, block, _ in made}),
        mpiruns=mpiruns,
        planned_s=stage[0].planned_s if stage else 0.0,
        spent_s=sum(each.wall_s for each in workspace.noted(MpirunEnded)),
        capped=bool(chosen and chosen[0].capped),
        factors=factors_of(setting, libraries, environment, cores, mpiruns, seed),
        derivation=(*(stage[0].derivation if stage else ()), *(chosen[0].derivation if chosen else ())),
        primary=tuple((each.operation, each.form, each.size_bytes) for each in request.primary_cases),
        more={"asked": to_json(request)},
    )


def _completed(workspace: Workspace, library: LibraryFacts) -> LibraryFacts:
    lacking = {
        f"{each.operation} ({each.form})": each.why
        for each in workspace.noted(Lacking)
        if each.library == library.label
    }
    algorithms = {
        str(each.case): each.algorithm for each in workspace.noted(AlgorithmSeen) if each.library == library.label
    }
    return replace(library, lacking=lacking, algorithms=algorithms)


def _case_facts(
    workspace: Workspace, request: ComparisonRequest, labels: Sequence[str], needed: Mapping[str, float | None]
) -> tuple[CaseFacts, ...]:
    numbers = {entry.case: entry for entry in workspace.noted(CaseNumbers)}
    facts = []
    for case in measurable(workspace, request, labels):
        if (entry := numbers.get(case)) is None:
            continue
        counts = [count for label in labels if (count := needed.get(f"{label}: {case}")) is not None]
        facts.append(
            CaseFacts(
                operation=case.operation,
                form=case.form,
                size_bytes=case.size_bytes,
                calls=entry.calls,
                batches=batches_of(entry.calls),
                window_s=1e-9 * entry.window_ns,
                mpiruns=max(counts, default=None),
                reduction=str(request.reduction) if case.operation in REDUCTIONS else "",
            )
        )
    return tuple(facts)


UNKNOWN = "unknown"
#: Members of environment/NODE/ that a factor is read from.
_CLOCK_RATE = ("governor.txt", "frequency_driver.txt", "boost.txt", "no_turbo.txt")


def factors_of(
    setting: "Setting", libraries: Sequence[LibraryFacts], environment: Path, cores: int, mpiruns: int, seed: int
) -> dict[str, str]:
    """Name and level of each factor; mpiruns: of each library, the other arguments as of `facts_of`."""
    request = setting.request

    def read(name: str) -> str:
        path = environment / name
        return path.read_text(errors="replace").strip() if path.is_file() else ""

    rates = [f"{name.removesuffix('.txt')} {text}" for name in _CLOCK_RATE if (text := read(name))]
    cpu = read("cpuinfo.txt")
    megahertz = cpuinfo_field("cpu MHz", cpu)
    waits = {"window": "window-based", "round-time": "round-time (a moment of rank 0's clock, sent before each call)"}
    synchronisation = waits.get(setting.synchronisation, setting.synchronisation)
    oversubscribed = f"; {request.ranks} ranks share {cores} cores" if request.ranks > cores else ""
    bound = ",".join(map(str, setting.pus)) if setting.pus is not None else ""
    return {
        **{f"MPI implementation: {each.label}": each.text for each in libraries},
        **{f"configuration: {each.label}": each.build for each in libraries},
        **{f"compiler and flags: {each.label}": f"{each.compiler}: {each.flags}" for each in libraries},
        **{f"variables: {each.label}": settings_text(each.settings) or "none" for each in libraries},
        "network": "shared memory of one machine",
        "processes": f"{request.ranks} ranks on one node{oversubscribed}",
        "message sizes": f"{len(request.sizes_bytes)} from {request.sizes_bytes[0]} to {request.sizes_bytes[-1]} bytes",
        "reductions": str(request.reduction),
        "root": f"rank {request.root}",
        **(
            {"overlap": f"{seconds(request.compute_s)} of work before operations are waited for"}
            if request.compute_s
            else {}
        ),
        "synchronization method": synchronisation,
        "clock synchronization": request.clock_method,
        "clock source": f"{request.clock} (kernel: {read('clocksource.txt') or UNKNOWN})",
        "window size": "of each case, in the facts and in each row; adapted after the calls to warm up",
        "mpirun": f"{mpiruns} distinct calls for each library, shuffled in blocks of several of each; seed {seed}",
        "calls": "of each case, in the facts; in batches of all cases in shuffled order",
        "warm-up": f"{request.warm_up} calls before each batch, kept with negative numbers",
        "DVFS level": "; ".join(rates) or "unknown: this machine has no cpufreq",
        "clock rate": f"{megahertz} MHz when the campaign began" if megahertz else UNKNOWN,
        "cache": (
            f"cold: {setting.cold_bytes} bytes are overwritten before each call"
            if setting.cold_bytes
            else "warm: no cache control, buffers are reused"
        ),
        "pinning": f"rank r on hardware thread r of {bound}" if bound else "none",
        "outliers": "none removed; marks of late starts and of long calls are kept",
        "processor": cpuinfo_field("model name", cpu) or UNKNOWN,
        "operating system": read("uname.txt") or UNKNOWN,
        "disturbed mpiruns": "by CPU time of other processes and of the hypervisor, blind to durations; repeated, kept",
    }
