"""What a campaign of clocks measures, and its archive's facts and table.

Rows: observations/synchronisations.parquet (mpirun, method, rank but 0, moment), observations/mpiruns.parquet (starts).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any

import pandas

from lepaute.errors import ArchiveError, InputError
from lepaute.kit.json_values import from_json
from lepaute.kit.numbers import whole
from lepaute.kit.quantities import time_of
from lepaute.measure.archive.reader import Archive

#: `kind` in the metadata, and the member of the metadata that has the facts.
KIND = "clocks"
#: The first two learn offsets alone.
METHODS = ("SKaMPI", "Netgauge", "JK", "HCA", "HCA2", "HCA3")
CLOCKS = ("clock_gettime", "MPI_Wtime", "rdtscp")
DEFAULT_AFTER = "0,5,10,20"
#: As the probe has room for.
MAX_MOMENTS, MAX_AFTER_S, MAX_DRIFT_PPM = 8, 600.0, 10_000.0
MAX_RANKS, MAX_MPIRUNS = 1 << 20, 10_000
#: A median of fewer values has no 95 % interval; all pairs of six methods have one from this many on.
MIN_MPIRUNS, MPIRUNS_FOR_PAIRS = 6, 10
SYNCHRONISATIONS, MPIRUNS = "observations/synchronisations.parquet", "observations/mpiruns.parquet"
_COLUMNS = ("mpirun", "method", "rank", "after_s", "checked_s", "duration_s", "shortest_error_ns", "half_round_trip_ns")
_TRUE = "true_error_ns"
_JITTER_NS = 1000


@dataclass(frozen=True, slots=True)
class ClockRequest:
    """Request of a campaign of clocks.

    methods : of METHODS, each once; after_s: moments after a synchronisation, s, increasing, the first of them 0
    ranks   : None: two here, one on each slot of nodes
    mpiruns : None: as many as the budget allows
    drift_ppm: of clocks that are made from one which all ranks share, drawn evenly up to here, else None; wander_ppm:
               standard deviation by which such a drift has walked after a second
    """

    methods: tuple[str, ...] = METHODS
    after_s: tuple[float, ...] = (0.0, 5.0, 10.0, 20.0)
    ranks: int | None = None
    clock: str = CLOCKS[0]
    mpiruns: int | None = None
    budget_s: float = 300.0
    drift_ppm: float | None = None
    wander_ppm: float = 0.0

    def __post_init__(self) -> None:
        for name in self.methods:
            if name not in METHODS:
                raise InputError(f"--methods: {name[:40]!r} is none of {', '.join(METHODS)}")
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise InputError("--methods names none, or one twice; give each once, such as SKaMPI,HCA3")
        if self.clock not in CLOCKS:
            raise InputError(f"--clock is {self.clock[:40]!r}; it is one of {', '.join(CLOCKS)}")
        moments = self.after_s
        if (
            not 1 <= len(moments) <= MAX_MOMENTS
            or moments[0] != 0
            or not all(isfinite(moment) and moment <= MAX_AFTER_S for moment in moments)
            or any(later <= earlier for earlier, later in pairwise(moments))
        ):
            raise InputError(
                f"--after is {','.join(f'{moment:g}' for moment in moments)[:60]}; give 0 and up to {MAX_MOMENTS - 1} "
                f"increasing times of at most {MAX_AFTER_S:g} s, such as {DEFAULT_AFTER}"
            )
        if self.ranks is not None:
            whole(self.ranks, "--np", 2, MAX_RANKS + 1)
        if self.mpiruns is not None:
            whole(self.mpiruns, "--mpiruns", 1, MAX_MPIRUNS + 1)
        if not (isfinite(self.budget_s) and self.budget_s > 0):
            raise InputError(f"--budget is {self.budget_s:g} s; give a time above 0, such as 5min")
        for value in (self.drift_ppm or 0.0, self.wander_ppm):
            if not 0 <= value <= MAX_DRIFT_PPM:
                raise InputError(f"a drift of {value:g} ppm; give 0 to {MAX_DRIFT_PPM:g}")

    def order(self, block: int, seed: int) -> list[str]:
        methods = list(self.methods)
        random.Random(f"clocks {seed} {block}").shuffle(methods)
        return methods

    def words(self, order: Sequence[str], out: str, seed: int, *, simulated: bool = False) -> list[str]:
        """Arguments of the probe."""
        options: dict[str, object] = {
            "--out": out,
            "--seed": seed,
            "--methods": ",".join(order),
            "--in-order": 1,
            "--together": 1,
            "--clock": self.clock,
            "--after-s": ",".join(f"{each:g}" for each in self.after_s),
            "--made": int(self.drift_ppm is not None),
            "--drift": f"{1e-6 * (self.drift_ppm or 0.0):.9g}",
            "--wander": f"{1e-6 * self.wander_ppm:.9g}",
            # Simulated latencies do not scatter by themselves.
            "--jitter-ns": _JITTER_NS if simulated else 0,
        }
        return [str(word) for pair in options.items() for word in pair]


def design_text(order: Sequence[str]) -> str:
    """The design of a block: the methods in their order."""
    return "place,method\n" + "".join(f"{place},{method}\n" for place, method in enumerate(order))


def methods_of(text: str) -> tuple[str, ...]:
    """The methods that a text names, in any case; raises InputError for others."""
    known = {name.lower(): name for name in METHODS}
    return tuple(known.get(word.strip().lower(), word.strip()) for word in text.split(","))


def moments_of(text: str) -> tuple[float, ...]:
    """Seconds of 0,5,20 or 0,1min; raises InputError for anything else."""
    return tuple(0.0 if word.strip() == "0" else time_of(word.strip(), "--after") for word in text.split(","))


def simulated_of(text: str) -> tuple[int, float, float]:
    """Ranks, drift and wander, ppm, of 64,1 or 64,1,0.05; raises InputError for anything else."""
    words = text.split(",")
    try:
        if not 2 <= len(words) <= 3 or not words[0].strip().isdecimal() or len(words[0]) > 9:
            raise ValueError
        drift, wander = float(words[1]), float(words[2]) if len(words) > 2 else 0.0
        if not all(isfinite(each) for each in (drift, wander)):
            raise ValueError
    except ValueError:
        raise InputError(
            f"--simulate is {text[:40]!r}; give ranks and drift in ppm, such as 64,1, or also its wander: 64,1,0.05"
        ) from None
    return int(words[0]), drift, wander


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """Facts of a campaign of clocks from its archive.

    asked   : the request; ranks: of every mpirun; nodes: that they run on; library: what MPI says of itself
    shares_cores: there are more ranks than cores
    simulated: name of the platform, else empty; platform_sha256: its digest
    """

    asked: ClockRequest = field(default_factory=ClockRequest)
    ranks: int = 0
    nodes: tuple[str, ...] = ()
    library: str = ""
    launcher: str = ""
    shares_cores: bool = False
    simulated: str = ""
    platform_sha256: str = ""


def facts(archive: Archive) -> ClockFacts:
    """The facts; members of another type count as missing. Raises ArchiveError for an archive of another kind."""
    if archive.about.kind != KIND:
        raise ArchiveError(
            f"{archive.path}: is of kind {archive.about.kind[:40]!r}, not of clocks; give one that lepaute clocks wrote"
        )
    try:
        return from_json(ClockFacts, archive.metadata.get(KIND), lenient=True)
    except InputError as problem:
        raise ArchiveError(f"{archive.path}: its facts are not those of clocks ({problem})") from None


def synchronisations(archive: Archive) -> "pandas.DataFrame":
    """A row for each mpirun, method, rank and moment; raises ArchiveError if that is not what it holds.

    mpirun, method, rank, after_s: of the row; checked_s: when it really was; duration_s: of the synchronisation
    error_ns: as the publication takes it, the smallest difference of ten exchanges; shortest_error_ns: that of the
        shortest round trip, known to within half_round_trip_ns
    true_error_ns: where all ranks' clocks are one, or made from one; else missing
    deviation_ns, bound_ns: that the model itself states
    """
    facts(archive)
    return checked_table(archive.table(SYNCHRONISATIONS), str(archive.path))


def checked_table(frame: "pandas.DataFrame", where: str) -> "pandas.DataFrame":
    """The same table; raises ArchiveError if columns are missing or not numbers."""
    from pandas.api.types import is_numeric_dtype

    for name in (*_COLUMNS, _TRUE):
        if name not in frame:
            raise ArchiveError(f"{where}: {SYNCHRONISATIONS} has no column {name}; it is not that of clocks")
        if name != "method" and len(frame) and not is_numeric_dtype(frame[name]):
            raise ArchiveError(f"{where}: {name} of {SYNCHRONISATIONS} does not hold numbers")
    return frame.assign(method=frame["method"].astype(str))


def table_of(parts: "Sequence[tuple[int, pandas.DataFrame]]") -> "pandas.DataFrame":
    """The table of rows that the probe wrote in each mpirun."""
    frames: list[Any] = [part.assign(mpirun=mpirun) for mpirun, part in parts if not part.empty]
    if not frames:
        return pandas.DataFrame({name: [] for name in ("mpirun", "method", "rank", "after_s", _TRUE)})
    rows: pandas.DataFrame = pandas.concat(frames, ignore_index=True).drop(columns=["trial", "ranks"])
    rows = rows[rows["rank"] > 0].astype({_TRUE: "float64"})
    table: pandas.DataFrame = rows[["mpirun", *(name for name in rows if name != "mpirun")]]
    return table.reset_index(drop=True)
