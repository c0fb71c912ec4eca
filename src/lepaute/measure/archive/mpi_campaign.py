"""Campaigns that compare MPI libraries: the facts and the two tables of such an archive.

Raw rows, a row a call and rank, are in observations/calls.parquet, models of clocks in observations/clocks.parquet, the
starts of mpirun in observations/mpiruns.parquet. `calls` joins them to a row a call with both run-times of section 3.2
of "MPI Benchmarking Revisited" (Hunold and Carpen-Amarie).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

import numpy as np
import pandas
from pandas.api.types import is_numeric_dtype

from lepaute.errors import ArchiveError
from lepaute.kit.json_values import from_json
from lepaute.measure.archive.reader import Archive
from lepaute.stats.clock_models import ClockModels, exit_skew

#: `kind` in the metadata, and the member of the metadata that has the facts.
KIND = "comparison"
CALLS, CLOCKS, MPIRUNS = (f"observations/{name}.parquet" for name in ("calls", "clocks", "mpiruns"))
#: Marks of the probe (process_sync.h), as bits.
STARTED_LATE, TOOK_TOO_LONG = 1, 2

COLUMNS = {
    CALLS: (
        *("mpirun", "batch", "operation", "form", "size_bytes", "synchronisation", "call", "rank"),
        *("start_ns", "returned_ns", "end_ns", "marks", "window_ns"),
    ),
    CLOCKS: (
        *("mpirun", "rank", "before_batch", "x0_ns", "y0_ns", "drift"),
        *("variance_ns2", "drift_variance", "covariance_ns", "bound_ns"),
    ),
    MPIRUNS: ("mpirun", "library", "block", "place", "trial", "attempt", "outcome", "disturbed", "started_s"),
}
_TEXTS = ("library", "operation", "form", "synchronisation", "outcome", "levels")
#: Columns of newer campaigns.
_SENTINELS = "sentinel_before_s", "sentinel_after_s"
_LATER = ("ranks", "levels", *_SENTINELS)


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """An MPI library of a campaign.

    label  : its name in every table; spec: as the user named it
    text   : what MPI_Get_library_version says; build: what the library's own tool tells of its configuration
    flags  : what mpicc adds to the compiler's command line; variables: that its programs got beside the environment
    settings: variables that set it, of its specification and of the environment: OMPI_MCA_, MPIR_CVAR_, UCX_, FI_, ...
    lacking: operations that it could not be measured with, and why
    algorithms: of each case ("Bcast of 8 bytes"), what the library ran; "unknown" where that cannot be seen
    """

    label: str = ""
    spec: str = ""
    family: str = ""
    version: str = ""
    text: str = ""
    build: str = ""
    mpicc: str = ""
    mpirun: str = ""
    mpirun_version: str = ""
    compiler: str = ""
    flags: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    algorithms: Mapping[str, str] = field(default_factory=dict)


def algorithm_key(case: str, ranks: int) -> str:
    """Key of `LibraryFacts.algorithms`; ranks: 0 if a campaign has one number of them."""
    return f"{case}, {ranks} ranks" if ranks else case


def settings_text(settings: Mapping[str, str]) -> str:
    """As a shell takes them, with commas in between."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """An operation in a form with a size, which every library is measured with.

    calls: in each mpirun, in this many batches; mpiruns: that the wanted precision takes by the first blocks of the
    library that needs most, None if there were too few
    reduction: operator and datatype ("MPI_SUM of MPI_DOUBLE"), empty for other operations
    """

    operation: str = ""
    form: str = ""
    size_bytes: int = 0
    calls: int = 0
    batches: int = 0
    window_s: float = 0.0
    mpiruns: float | None = None
    reduction: str = ""


@dataclass(frozen=True, slots=True)
class CampaignFacts:
    """Facts of a campaign: what it compared, and how.

    ranks    : of the largest starts; fewer_ranks: of the others, which were in the same blocks
    varied   : levels of each factor that was varied beside the libraries, the first of them the reference
    nodes    : in the order in which ranks fill them, and slots, how many each takes; empty on one machine
    precision: wanted half-width of the 95 % interval of a library's mean over mpiruns, a share; budget_s: most seconds
    blocks   : inside which the mpiruns of all libraries are in random order
    mpiruns  : of each library, trials and repetitions of disturbed ones not counted; 0 in archives with one a block
    planned_s: of all starts of mpirun, the trials and the first stage, by the trials; spent_s: of all that were made
    capped   : the budget allowed no more
    factors  : name and level of every experimental factor (table VI of the paper)
    primary  : rows (operation, form, size) whose p-values were to be corrected apart from those of the others
    derivation: how the numbers of calls and of mpiruns came about, sentences
    """

    ranks: int = 0
    fewer_ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    varied: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    oversubscribed: bool = False
    libraries: tuple[LibraryFacts, ...] = ()
    cases: tuple[CaseFacts, ...] = ()
    precision: float = 0.0
    budget_s: float = 0.0
    blocks: int = 0
    mpiruns: int = 0
    planned_s: float = 0.0
    spent_s: float = 0.0
    capped: bool = False
    factors: Mapping[str, str] = field(default_factory=dict)
    derivation: tuple[str, ...] = ()
    primary: tuple[tuple[str, str, int], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The libraries, in the order in which the user named them."""
        return tuple(library.label for library in self.libraries)

    @property
    def all_ranks(self) -> tuple[int, ...]:
        """The numbers of ranks, increasing."""
        return *self.fewer_ranks, self.ranks

    def node_of(self, rank: int) -> str:
        """The name of its node, empty on one machine."""
        every = (name for name, count in zip(self.nodes, self.slots, strict=False) for _ in range(count))
        return next(islice(every, rank, None), "")


def facts(archive: Archive) -> CampaignFacts:
    """The facts; members of another type than expected count as missing. Raises ArchiveError for another kind."""
    if archive.about.kind != KIND:
        raise ArchiveError(
            f"{archive.path}: is of kind {archive.about.kind[:40]}, not of a comparison of MPI libraries; "
            "make one with lepaute compare"
        )
    return from_json(CampaignFacts, archive.metadata.get(KIND), lenient=True)


def network_of(about: CampaignFacts, label: str) -> str:
    """Network that joins the ranks of a library; empty if the campaign does not say."""
    text = about.factors.get("network", "")
    # Of each cell, its name before it, where not all are the same.
    names = "|".join(map(re.escape, sorted(about.labels, key=len, reverse=True)))
    parts = re.split(rf"(?:^|; )({names})(?: on \d+ ranks)?(?: with [^;:]*)?: ", text) if names else [text]
    of_label = [part for name, part in zip(parts[1::2], parts[2::2], strict=True) if name == label]
    return "; ".join(dict.fromkeys(of_label)) or parts[0]


def levels_of(text: object) -> dict[str, str]:
    """The levels of factors that a cell of the column `levels` holds; none where it holds something else."""
    try:
        levels = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return {name: str(level) for name, level in levels.items()} if isinstance(levels, dict) else {}


def mpiruns(archive: Archive) -> pandas.DataFrame:
    """A row a start of mpirun, in their order: failed, disturbed and trial ones too.

    mpirun  : number, from 0, unique in the archive; library: label; block: from 0, below 0 for trials
    place   : in the shuffled order of its block; attempt: 0, or more for repetitions of a disturbed or failed one
    trial   : made to find the numbers of calls; not meant for comparisons
    outcome : "complete", or "failed" where a rank died or the time was over; failure: why, else empty
    disturbed, causes: other programs used the machine, or a sentinel beside it was slow (the rule of calibrations,
              blind to the durations)
    sentinel_before_s, sentinel_after_s: what a call of the sentinels beside it took; NaN if there are none
    started_s: seconds since the epoch; wall_s: seconds it took; seed: of its order
    ranks   : that it started; levels: of each factor, a JSON object
    """
    about = facts(archive)
    table = _table(archive, MPIRUNS).sort_values("mpirun", ignore_index=True)
    if "ranks" not in table:  # before several could be measured
        table = table.assign(ranks=about.ranks)
    absent: dict[str, Any] = {"levels": "{}", "causes": "", **dict.fromkeys(_SENTINELS, float("nan"))}
    return table.assign(**{name: value for name, value in absent.items() if name not in table})


def begun_s(archive: Archive) -> float | None:
    """When its first start of mpirun was, seconds since the epoch; None if there is none."""
    started_s = mpiruns(archive)["started_s"]
    return float(started_s.min()) if len(started_s) else None


def calls(archive: Archive, *, warm_up: bool = False) -> pandas.DataFrame:
    """A row a call, in the order in which they were made, from every mpirun.

    library, ranks, levels, block, place, mpirun, attempt, trial, failed, disturbed: of the mpirun, see `mpiruns`
    batch     : place in the shuffled order of the mpirun; call: from 0 in the batch, below 0 for calls to warm up,
                which are there where `warm_up` is true
    operation, form, size_bytes, synchronisation: of the call; form: blocking or nonblocking; the operation `none` does
                nothing: its run-times are the cost of reading clocks, its start_skew_s that of the synchronisation
    local_s   : the longest time of a rank from start to end (section 3.2.1)
    returned_s: the longest time of a rank until the nonblocking call returned; that of the call where it is blocking
    global_s  : from the first start to the last end by rank 0's clock (3.2.2); global_deviation_s: its standard
                deviation by the models of the clocks, global_bound_s: greatest further error by latencies that differ
                by direction
    start_skew_s: last start less first start by rank 0's clock: the exit skew of the synchronisation; start_skew_low_s
                and start_skew_high_s: 95 % interval by the models of the clocks, one error for all calls of a model
    started_late, exceeded_window: marked on some rank; window_s: of the synchronisation, 0 if it has none
    since_start_s: from the first start in the mpirun

    Nothing is left out but calls of which not every rank wrote its row (a rank died). Raises ArchiveError if tables
    are missing or are not those of a campaign.
    """
    return call_table(_table(archive, CALLS), _table(archive, CLOCKS), mpiruns(archive), warm_up=warm_up)


def rank_times(archive: Archive, ranks: int | None = None) -> pandas.DataFrame:
    """A row a library, operation, form, size_bytes and rank: what a call takes on this rank, and when it is in it.

    ranks  : of the starts that count; the largest unless given
    own_s  : by the rank's own clock; medians over complete mpiruns, trials left out, of the median of an mpirun's
             calls; calls to warm up and those that started late on the rank are left out
    begin_s, end_s: when it begins and ends a call, after the first rank's begin, by rank 0's clock; medians in the same
             way, of calls that started late on no rank; begin_low_s, begin_high_s, end_low_s, end_high_s: between which
             half of the mpiruns lie. NaN if every call started late on some rank
    Raises ArchiveError as `calls` does.
    """
    raw, runs = _table(archive, CALLS), mpiruns(archive)
    wanted = runs["ranks"] == (facts(archive).ranks if ranks is None else ranks)
    runs = runs[~runs["trial"].astype(bool) & (runs["outcome"] == "complete") & wanted]
    raw = raw[raw["call"] >= 0].merge(runs[["mpirun", "library"]], on="mpirun")
    late = raw["marks"] & STARTED_LATE > 0
    raw = raw.assign(own_s=1e-9 * (raw["end_ns"] - raw["start_ns"]))
    case = ["library", "operation", "form", "size_bytes", "rank"]
    medians = raw[~late].groupby([*case, "mpirun"], observed=True)["own_s"].median()
    result = medians.groupby(case, observed=True).median().to_frame()
    of_call = [raw["mpirun"], raw["batch"], raw["call"]]
    clocks = _models(raw, _table(archive, CLOCKS))
    begin_ns = clocks.at(raw["start_ns"])
    first_ns = raw.assign(begin_ns=begin_ns)["begin_ns"].groupby(of_call).transform("min").to_numpy()
    kept = raw.assign(begin_s=1e-9 * (begin_ns - first_ns), end_s=1e-9 * (clocks.at(raw["end_ns"]) - first_ns))
    kept = kept[~late.groupby(of_call).transform("any")]
    in_mpiruns = kept.groupby([*case, "mpirun"], observed=True)[["begin_s", "end_s"]].median()
    over_mpiruns = in_mpiruns.groupby(case, observed=True)
    for name, share in (("s", 0.5), ("low_s", 0.25), ("high_s", 0.75)):
        names = {f"{which}_s": f"{which}_{name}" for which in ("begin", "end")}
        result = result.join(over_mpiruns.quantile(share).rename(columns=names))
    return result.reset_index()


def call_table(
    raw: pandas.DataFrame, models: pandas.DataFrame, runs: pandas.DataFrame, *, warm_up: bool = False
) -> pandas.DataFrame:
    """As `calls`, from the three tables, of which those of an archive are one source.

    Raises ArchiveError if a call has no model of its rank's clock.
    """
    if not warm_up:
        raw = raw[raw["call"] >= 0]
    # Without calls that have fewer rows than others of their batch.
    ranks = raw.groupby(["mpirun", "batch", "call"])["rank"].transform("size")
    raw = raw[ranks == ranks.groupby([raw["mpirun"], raw["batch"]]).transform("max")]
    raw = raw.sort_values(["mpirun", "batch", "call", "rank"], kind="stable", ignore_index=True)
    clocks = _models(raw, models)
    start_ns, end_ns = clocks.at(raw["start_ns"]), clocks.at(raw["end_ns"])
    keys = raw[["mpirun", "batch", "call"]].to_numpy()
    first = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]) if len(raw) else np.empty(0, np.intp)
    # Times of one call lie within seconds: as numbers relative to its first row they keep every nanosecond.
    origin = np.repeat(start_ns[first], np.diff(np.r_[first, len(raw)]))
    starts, ends = (start_ns - origin).astype(float), (end_ns - origin).astype(float)

    def reduced(function: Any, values: Any, dtype: type = float) -> Any:
        return function.reduceat(values, first) if len(first) else np.empty(0, dtype)

    begun, done = reduced(np.minimum, starts), reduced(np.maximum, ends)
    at_begin, at_end = _position(starts, begun, first), _position(ends, done, first)
    # One clock read twice has one error, of which only that of its rate remains.
    same = raw["rank"].to_numpy()[at_begin] == raw["rank"].to_numpy()[at_end]
    rate_error_ns = np.sqrt(clocks.drift_variance[at_begin]) * (done - begun)
    deviations = (clocks.deviation_ns(raw["start_ns"])[at_begin], clocks.deviation_ns(raw["end_ns"])[at_end])
    deviation = np.where(same, rate_error_ns, np.hypot(*deviations))
    bound = np.where(same, 0.0, clocks.bound_ns[at_begin] + clocks.bound_ns[at_end])
    marks = reduced(np.bitwise_or, raw["marks"].to_numpy(), int)
    took_ns = {name: (raw[f"{name}_ns"] - raw["start_ns"]).to_numpy(dtype=float) for name in ("end", "returned")}
    one = raw.iloc[first]
    of_call = ("mpirun", "batch", "operation", "form", "size_bytes", "synchronisation", "call")
    frame = pandas.DataFrame(
        {
            **{name: one[name].to_numpy() for name in of_call},
            "local_s": reduced(np.maximum, took_ns["end"]) * 1e-9,
            "returned_s": reduced(np.maximum, took_ns["returned"]) * 1e-9,
            "global_s": (done - begun) * 1e-9,
            "global_deviation_s": deviation * 1e-9,
            "global_bound_s": bound * 1e-9,
            **_skews(raw["start_ns"].to_numpy(), clocks, first),
            "started_late": (marks & STARTED_LATE) > 0,
            "exceeded_window": (marks & TOOK_TOO_LONG) > 0,
            "window_s": one["window_ns"].to_numpy() * 1e-9,
        }
    )
    begin_ns = pandas.Series(start_ns[first] + begun.astype(np.int64))
    frame["since_start_s"] = (begin_ns - begin_ns.groupby(frame["mpirun"]).transform("min")).to_numpy() * 1e-9
    about = runs[["mpirun", "library", "block", "place", "attempt", "trial", "disturbed", "ranks", "levels"]].assign(
        failed=runs["outcome"] != "complete"
    )
    joined = frame.merge(about, on="mpirun", how="left", validate="many_to_one")
    front = [
        *("library", "ranks", "levels", "block", "place", "mpirun"),
        *("attempt", "trial", "failed", "disturbed", "batch"),
    ]
    return joined[[*front, *(name for name in joined if name not in front)]]


def _skews(start_ns: Any, clocks: ClockModels, first: Any) -> dict[str, Any]:
    """start_skew_s with its interval, of each group of rows that begins at `first`."""
    sizes = np.diff(np.r_[first, len(start_ns)])
    columns = {name: np.empty(len(first)) for name in ("start_skew_s", "start_skew_low_s", "start_skew_high_s")}
    for size in np.unique(sizes):
        groups = np.flatnonzero(sizes == size)
        rows = first[groups][:, None] + np.arange(size)
        seen = exit_skew(start_ns[rows], ClockModels(*(getattr(clocks, each.name)[rows] for each in fields(clocks))))
        for name, values in zip(columns, (seen.spread_ns, seen.low_ns, seen.high_ns), strict=True):
            columns[name][groups] = values * 1e-9
    return columns


def _table(archive: Archive, name: str) -> pandas.DataFrame:
    frame = archive.table(name)
    if missing := [column for column in COLUMNS[name] if column not in frame]:
        raise ArchiveError(f"{archive.path}: {name} has no column {missing[0]}; it is not that of a campaign")
    later = [column for column in _LATER if name == MPIRUNS and column in frame]
    for column in (*COLUMNS[name], *later) if len(frame) else ():
        if is_numeric_dtype(frame[column]) == (column in _TEXTS):
            kind = "texts" if column in _TEXTS else "numbers"
            raise ArchiveError(f"{archive.path}: {column} of {name} does not hold {kind}; it is not that of a campaign")
    if name == MPIRUNS and (twice := frame["mpirun"][frame["mpirun"].duplicated()]).size:
        raise ArchiveError(f"{archive.path}: {name} has mpirun {twice.iloc[0]} twice; it is not that of a campaign")
    return frame


def _models(raw: pandas.DataFrame, models: pandas.DataFrame) -> ClockModels:
    """For each row, the last model of its rank's clock that was made before its batch."""
    joined = pandas.merge_asof(
        raw[["mpirun", "rank", "batch"]].reset_index().sort_values("batch", kind="stable").astype({"batch": "int64"}),
        models.astype({"before_batch": "int64"}).sort_values("before_batch", kind="stable"),
        left_on="batch",
        right_on="before_batch",
        by=["mpirun", "rank"],
        direction="backward",
    ).sort_values("index")
    if joined["x0_ns"].isna().any():
        raise ArchiveError("a call of the campaign has no model of its rank's clock: the tables are damaged")
    return ClockModels(**{each.name: joined[each.name].to_numpy() for each in fields(ClockModels)})


def _position(values: Any, extremes: Any, first: Any) -> Any:
    """In each group, the position of the first value equal to the group's extreme."""
    hits = np.flatnonzero(values == np.repeat(extremes, np.diff(np.r_[first, len(values)])))
    return hits[np.searchsorted(hits, first)]
