"""From an archive to how far off each method's clocks are, for how long, what it costs, and which to take.

docs/concepts/clocks.md has the method, which was fixed before any figure was looked at.
"""

from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import median
from typing import Any

import pandas

from lepaute.errors import ArchiveError, InputError
from lepaute.kit.text import counted, seconds
from lepaute.measure.archive.reader import Archive
from lepaute.measure.clocks.request import MIN_MPIRUNS, MPIRUNS_FOR_PAIRS, ClockFacts, facts, synchronisations
from lepaute.stats.intervals import median_interval

LEVEL = 0.05
MARGIN = 0.25
#: A tenth of what the fastest message takes: less is not seen of an operation between ranks.
ENOUGH_S = 1e-7
#: Resolution of ratios: clocks are read in nanoseconds.
RESOLUTION_S = 1e-9
#: A look later than asked by more is told.
MAX_LATE_S = 0.5


@dataclass(frozen=True, slots=True)
class Error:
    """The error of a method for measurements up to a length: the median over mpiruns of the largest error of a rank,
    with its 95 % interval (None: too few mpiruns); largest_s: of all mpiruns."""

    method: str
    length_s: float
    error_s: float
    low_s: float | None
    high_s: float | None
    largest_s: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Duration of a synchronisation by a method: median over mpiruns, and its 95 % interval."""

    method: str
    duration_s: float
    low_s: float | None
    high_s: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Median over mpiruns of a method's error over another's, with an interval; those of a length hold together."""

    length_s: float
    method: str
    other: str
    ratio: float
    low: float | None
    high: float | None

    def turned(self) -> "Pair":
        low, high = (None if end is None else 1 / end for end in (self.high, self.low))
        return Pair(self.length_s, self.other, self.method, 1 / self.ratio, low, high)


@dataclass(frozen=True, slots=True)
class Choice:
    """Method to take for measurements up to a length.

    least : the method with the smallest median error; front: those than which no other is both better and cheaper
    as_good: shown to be at most the margin worse than it, or good enough, method among them unless it is `least`
    worse  : shown to be worse; open: neither shown
    """

    length_s: float
    method: str
    least: str
    as_good: tuple[str, ...]
    worse: tuple[str, ...]
    open: tuple[str, ...]
    front: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """What messages say of the error, where it is known: the median and the largest difference, s, and the share of
    looks whose difference is within half of the round trip."""

    median_s: float
    largest_s: float
    held: float


@dataclass(frozen=True, slots=True)
class Found:
    """All that an archive says.

    known: errors are known exactly; else by messages, which say them to within trip_s (median)
    methods: as asked for; file, id: of the archive
    """

    about: ClockFacts
    mpiruns: int
    margin: float
    enough_s: float
    known: bool
    trip_s: float
    errors: tuple[Error, ...]
    costs: tuple[Cost, ...]
    pairs: tuple[Pair, ...]
    choices: tuple[Choice, ...]
    reference: Reference | None
    caveats: tuple[str, ...]
    file: str
    id: str
    seed: int

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(cost.method for cost in self.costs)

    @property
    def lengths_s(self) -> tuple[float, ...]:
        return tuple(choice.length_s for choice in self.choices)

    def error(self, method: str, length_s: float) -> Error:
        return next(one for one in self.errors if (one.method, one.length_s) == (method, length_s))

    def cost(self, method: str) -> Cost:
        return next(one for one in self.costs if one.method == method)

    def to_dict(self) -> dict[str, Any]:
        return {
            "archive": {"file": self.file, "id": self.id, "seed": self.seed},
            "ranks": self.about.ranks,
            "nodes": list(self.about.nodes),
            "library": self.about.library,
            "simulated": asdict(self.about)["simulated"] or None,
            "drift_ppm": self.about.asked.drift_ppm,
            "wander_ppm": self.about.asked.wander_ppm if self.about.asked.drift_ppm is not None else None,
            "mpiruns": self.mpiruns,
            "margin": self.margin,
            "enough_s": self.enough_s,
            "error_is_known": self.known,
            "half_round_trip_s": self.trip_s,
            "choices": [asdict(choice) for choice in self.choices],
            "errors": [asdict(error) for error in self.errors],
            "costs": [asdict(cost) for cost in self.costs],
            "pairs": [asdict(pair) for pair in self.pairs],
            "reference": None if self.reference is None else asdict(self.reference),
            "caveats": list(self.caveats),
        }


def compared(archive: Archive, *, margin: float = MARGIN, enough_s: float = ENOUGH_S) -> Found:
    """Comparison of the clocks of an archive that `measure_clocks` or `simulate_clocks` wrote.

    margin  : a method that is shown to be worse by at most this share counts as good as the best
    enough_s: so does one whose error is shown to be at most this
    Raises ArchiveError if it holds no complete mpirun of clocks, InputError for a margin below 0.
    """
    if not margin >= 0:
        raise InputError(f"--margin is {100 * margin:g} %; it must be 0 or more, such as 25%")
    about, rows = facts(archive), synchronisations(archive)
    known = bool(len(rows)) and bool(rows["true_error_ns"].notna().all())
    worst = largest_errors(rows.assign(error_s=1e-9 * rows["true_error_ns" if known else "shortest_error_ns"].abs()))
    if worst.empty:
        raise ArchiveError(f"{archive.path}: holds no mpirun in which every method was looked at at every moment")
    durations = rows[rows["mpirun"].isin(worst["mpirun"].unique())].groupby(["mpirun", "method"])["duration_s"].first()
    costs = tuple(
        Cost(str(method), float(values.median()), *_interval(values.tolist(), LEVEL))
        for method, values in durations.groupby("method")
    )
    costs = tuple(sorted(costs, key=lambda one: one.duration_s))
    errors, pairs, choices = judged(worst, costs, margin, enough_s)
    mpiruns = int(worst["mpirun"].nunique())
    return Found(
        about=about,
        mpiruns=mpiruns,
        margin=margin,
        enough_s=enough_s,
        known=known,
        trip_s=1e-9 * float(rows["half_round_trip_ns"].median()),
        errors=errors,
        costs=costs,
        pairs=pairs,
        choices=choices,
        reference=_reference(rows) if known else None,
        caveats=(*_caveats(rows, mpiruns, len(costs)), *archive.about.warnings),
        file=archive.path.name,
        id=archive.id,
        seed=archive.about.seed or 0,
    )


def largest_errors(rows: pandas.DataFrame) -> pandas.DataFrame:
    """For each mpirun, method and length, the largest error of a rank at any moment up to it.

    rows: with mpirun, method, rank, after_s, error_s; an mpirun counts where all methods have all moments
    Returns columns mpirun, method, length_s, error_s.
    """
    worst = rows.groupby(["mpirun", "method", "after_s"], sort=True)["error_s"].max().reset_index()
    each = worst.groupby("mpirun")["error_s"].agg(["size", "count"])
    whole = each.index[(each["size"] == each["size"].max()) & (each["count"] == each["size"])] if len(each) else []
    worst = worst[worst["mpirun"].isin(whole)].reset_index(drop=True)
    worst["error_s"] = worst.groupby(["mpirun", "method"])["error_s"].cummax()
    return worst.rename(columns={"after_s": "length_s"})


def judged(
    worst: pandas.DataFrame, costs: tuple[Cost, ...], margin: float, enough_s: float
) -> tuple[tuple[Error, ...], tuple[Pair, ...], tuple[Choice, ...]]:
    """Judgement of `largest_errors`: the errors, all pairs, and what to take for each length."""
    errors: list[Error] = []
    pairs: list[Pair] = []
    choices: list[Choice] = []
    methods = [cost.method for cost in costs]
    for length_s, part in worst.groupby("length_s", sort=True):
        values = {method: mine.sort_values("mpirun")["error_s"].tolist() for method, mine in part.groupby("method")}
        of_length = {
            name: Error(name, float(length_s), median(mine), *_interval(mine, LEVEL), max(mine))  # type: ignore[arg-type]
            for name, mine in values.items()
        }
        found = _pairs(float(length_s), {name: values[name] for name in methods})  # type: ignore[arg-type]
        errors += [of_length[name] for name in methods]
        pairs += found
        # Shown for all methods together, as the pairs are.
        ends = {name: _interval(mine, LEVEL / len(methods))[1] for name, mine in values.items()}
        enough = {name for name, end in ends.items() if end is not None and end <= enough_s}
        choices.append(_choice(float(length_s), of_length, found, costs, margin, enough))  # type: ignore[arg-type]
    return tuple(errors), tuple(pairs), tuple(choices)


def _pairs(length_s: float, values: dict[str, list[float]]) -> list[Pair]:
    every = list(combinations(values, 2))
    found = []
    for one, other in every:
        ratios = [
            max(mine, RESOLUTION_S) / max(its, RESOLUTION_S)
            for mine, its in zip(values[one], values[other], strict=True)
        ]
        found.append(Pair(length_s, one, other, median(ratios), *_interval(ratios, LEVEL / len(every))))
    return found


def _choice(
    length_s: float,
    errors: dict[str, Error],
    pairs: list[Pair],
    costs: tuple[Cost, ...],
    margin: float,
    enough: set[str],
) -> Choice:
    duration_s = {cost.method: cost.duration_s for cost in costs}
    least = min(errors, key=lambda name: (errors[name].error_s, duration_s[name]))
    against = {each.method: each for pair in pairs for each in (pair, pair.turned()) if each.other == least}
    as_good = tuple(
        name for name, each in against.items() if (each.high is not None and each.high <= 1 + margin) or name in enough
    )
    worse = tuple(
        name for name, each in against.items() if each.low is not None and each.low > 1 and name not in as_good
    )
    return Choice(
        length_s=length_s,
        method=min((least, *as_good), key=lambda name: duration_s[name]),
        least=least,
        as_good=as_good,
        worse=worse,
        open=tuple(name for name in against if name not in (*as_good, *worse)),
        front=tuple(
            name
            for name in duration_s
            if not any(
                errors[other].error_s < errors[name].error_s and duration_s[other] < duration_s[name]
                for other in duration_s
            )
        ),
    )


def _interval(values: list[float], miss: float) -> tuple[float | None, float | None]:
    return median_interval(values, miss) or (None, None)


def _reference(rows: pandas.DataFrame) -> Reference:
    off_ns = (rows["shortest_error_ns"] - rows["true_error_ns"]).abs()
    held = off_ns <= rows["half_round_trip_ns"] + 1
    return Reference(1e-9 * float(off_ns.median()), 1e-9 * float(off_ns.max()), float(held.mean()))


def _caveats(rows: pandas.DataFrame, mpiruns: int, methods: int) -> list[str]:
    found = []
    if mpiruns < MIN_MPIRUNS:
        found.append(f"{counted(mpiruns, 'mpirun')} give no interval: {MIN_MPIRUNS} do, give --mpiruns or --budget")
    elif mpiruns < MPIRUNS_FOR_PAIRS and methods > 2:
        found.append(
            f"methods may not be told apart by {mpiruns} mpiruns: {MPIRUNS_FOR_PAIRS} tell six apart, give --mpiruns"
        )
    late_s = float((rows["checked_s"] - rows["after_s"]).max())
    if late_s > MAX_LATE_S:
        found.append(
            f"looks at the errors came late, by up to {seconds(late_s)}: other programs, or long synchronisations"
        )
    return found
