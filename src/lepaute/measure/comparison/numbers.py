"""How many calls and how many starts of mpirun a campaign takes, from its trials and its first mpiruns.

Calls. Two trials of each library have each case some twenty times. From the spread and the dependence of these
run-times follows how many calls give an mpirun's median within half of the wanted precision (95 %): more do not help.
By how much mpiruns differ, the mean over cases, and what an mpirun and a call take, tell how many calls give the least
error in a given time: where mpiruns differ much, fewer calls and more mpiruns. The smaller of both numbers counts, that
of the library which needs most, within MIN_CALLS and MAX_CALLS, all cut by one factor to half of the budget.

Starts of mpirun. Below a number that follows from how many rows are tested (stats/aligned_ranks.py), no difference can
be shown, however large; a budget that does not hold this many is refused. The first mpiruns, FIRST_MPIRUNS or that
number, are the first stage of Stein's procedure (stats/stopping.py), for each library and case, on the logarithms of
the medians of their mpiruns; the half-width is log(1 + precision). As many are made as SHARE_OF_CASES of the cases of
every library need, or as the budget allows. A mean over mpiruns is then within the precision in 95 % of campaigns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, log1p
from statistics import mean, variance

import numpy as np
import pandas

from lepaute.errors import InputError
from lepaute.kit.text import counted, seconds, significant
from lepaute.measure.comparison.cases import BLOCKING, NOTHING, OVERLAPPED, Case
from lepaute.measure.design.sizes import Draws
from lepaute.stats.aligned_ranks import BLOCK, values_to_decide
from lepaute.stats.stopping import calls_for_least_error, calls_for_median, median_sd_factor, values_needed

#: The calls of a case come in so many batches, far apart, each of at least so many calls: a moment's disturbance hits
#: few calls of many cases and not all calls of one.
MAX_BATCHES, MIN_IN_BATCH = 4, 5
#: Calls of nothing in each mpirun: their starts show how the synchronisation lets ranks go.
NOTHING_CALLS = 50
_COLUMNS = "design_row,operation,form,size_bytes,calls,synchronisation,compute_ns,window_ns"


@dataclass(frozen=True, slots=True)
class Batch:
    """Calls of one case in a row; window_ns: the probe's first window, or the lead of round-time."""

    case: Case
    calls: int
    window_ns: int


def library_order(labels: Sequence[str], mpiruns: int, block: int, seed: int) -> tuple[str, ...]:
    """The libraries of a block, each as often as `mpiruns` says, all in one random order.

    Every block is drawn by itself, so that all orders are equally likely, as the test takes them to be; a neighbour
    that comes back every few mpiruns is no difference then.
    """
    return tuple(Draws(seed, "libraries", str(block)).shuffled([label for label in labels for _ in range(mpiruns)]))


def batches_of(calls: int) -> int:
    return max(1, min(MAX_BATCHES, calls // MIN_IN_BATCH))


def shuffled_batches(
    calls: Mapping[Case, int], windows_ns: Mapping[Case, int], seed: int, *, split: bool = True
) -> tuple[Batch, ...]:
    """The batches of an mpirun, those of all cases in one random order; calls of nothing are among them.

    calls     : of each case in all, divided among its batches as evenly as can be
    windows_ns: of each case, and of NOTHING
    split     : False for one batch a case
    """
    batches = []
    for case, count in {**calls, Case(NOTHING, BLOCKING, 0): NOTHING_CALLS}.items():
        number = batches_of(count) if split else 1
        shares = [count // number + (place < count % number) for place in range(number)]
        batches += [Batch(case, share, windows_ns[case]) for share in shares]
    return tuple(Draws(seed, "batches").shuffled(batches))


def design_text(batches: Sequence[Batch], synchronisation: str, seed: int, compute_ns: int = 0) -> str:
    """The table that the probe reads; compute_ns: work of overlapped operations."""
    rows = [
        f"{number},{each.case.operation},{each.case.form},{each.case.size_bytes},{each.calls},{synchronisation},"
        f"{compute_ns if each.case.form == OVERLAPPED else 0},{each.window_ns}"
        for number, each in enumerate(batches)
    ]
    return "\n".join(["#@generator=lepaute compare", f"#@seed={seed}", _COLUMNS, *rows]) + "\n"


def mpirun_seed(seed: int, block: int, place: int, label: str, attempt: int) -> int:
    """The seed of a start: of its order, so that a repetition has another one."""
    return Draws(seed, "mpirun", str(block), str(place), label, str(attempt)).below(1 << 31)


TRIAL_CALLS = 24
MIN_CALLS, MAX_CALLS = 20, 500
#: However little time there is: fewer calls have no median to speak of.
MIN_CALLS_AFTER_CUT = 10
FIRST_MPIRUNS, MAX_MPIRUNS = 2 * BLOCK, 200
#: The corrected p-value from which on a difference counts as shown.
LEVEL = 0.05
#: Share of the budget for the first mpiruns; beyond it, for repetitions (validation/comparison_states.py).
FIRST_SHARE, REPEATED_SHARE = 0.5, 0.5
SHARE_OF_CASES = 0.9
#: A lead of round-time must let word of the start reach every rank: this many times what a small broadcast takes. A
#: longer one comes from a trial that the system's scheduler disturbed.
LEAD_FACTOR, MIN_LEAD_S, MAX_LEAD_S = 3.0, 20e-6, 1e-3
#: A window holds twice what 95 % of calls take.
WINDOW_FACTOR, MIN_WINDOW_S = 2.0, 10e-6
#: Memory that is overwritten in a window, a second: less than any machine of this century writes.
_COLD_BYTES_PER_S = 1e9
BY_WINDOWS, BY_LEAD = "window", "round-time"


@dataclass(frozen=True, slots=True)
class Numbers:
    """Calls of each case in an mpirun; mpiruns of the first stage.

    mpirun_s: what one of the slowest library takes
    """

    calls: Mapping[Case, int]
    first_mpiruns: int
    mpirun_s: float
    derivation: tuple[str, ...]


def first_windows_ns(
    trial: pandas.DataFrame, cases: Iterable[Case], synchronisation: str, cold_bytes: int, broadcast: Case
) -> dict[Case, int]:
    """The window of each case, or the lead, ns, for the probe to begin with; 0 for synchronisations without any.

    trial    : calls of all libraries, of `archive.mpi_campaign.call_table`
    broadcast: the case that tells the lead
    """
    cold_s = cold_bytes / _COLD_BYTES_PER_S
    every = [*cases, Case(NOTHING, BLOCKING, 0)]
    if synchronisation == BY_LEAD:
        lead_s = min(MAX_LEAD_S, max(MIN_LEAD_S, LEAD_FACTOR * _most(_of(trial, broadcast), 0.95)))
        return dict.fromkeys(every, round(1e9 * lead_s))
    if synchronisation == BY_WINDOWS:
        windows_s = {case: cold_s + MIN_WINDOW_S + WINDOW_FACTOR * _most(_of(trial, case), 0.95) for case in every}
        return {case: round(1e9 * window_s) for case, window_s in windows_s.items()}
    return dict.fromkeys(every, 0)


def numbers_of_trial(
    trial: pandas.DataFrame,
    trial_s: Mapping[str, float],
    cases: Sequence[Case],
    windows_ns: Mapping[Case, int],
    precision: float,
    left_s: float,
    *,
    tests: int,
    warm_up: int = 0,
    calls: int | None = None,
    mpiruns: int | None = None,
) -> Numbers:
    """The numbers that the trials give.

    trial_s: duration of each library's trial; left_s: of the budget
    tests  : whose p-values are corrected together
    warm_up: calls before each batch
    calls, mpiruns: as the user fixed them
    Raises InputError if the budget does not hold as many mpiruns as it takes to decide anything.
    """
    derivation = []
    most_s = {case: _most(_of(trial, case), None) for case in cases}
    between = _between(trial, precision)
    # What an mpirun of the slowest library takes beside its calls, such as its start; a tenth of its trial at least.
    start_s = 0.0
    for label, took_s in trial_s.items():
        mine = trial[trial["library"] == label]
        calls_s = float(mine["local_s"].sum()) / max(1, mine["mpirun"].nunique()) * (1 + warm_up / TRIAL_CALLS)
        start_s = max(start_s, took_s - calls_s, 0.1 * took_s)
    each_s = start_s / max(1, len(cases))
    if calls is not None:
        chosen = dict.fromkeys(cases, calls)
        derivation.append(f"{calls} calls of each case in an mpirun, as asked for")
    else:
        chosen = {}
        for case in cases:
            needed = _calls_needed(_of(trial, case), precision, between, each_s, most_s[case] + 1e-9 * windows_ns[case])
            chosen[case] = ceil(min(max(needed, MIN_CALLS), MAX_CALLS))
        derivation.append(
            f"calls of a case in an mpirun: so many that its median is within {50 * precision:g} % (95 %), or fewer "
            f"where these have the least error for their time, mpiruns differing by {significant(100 * between, 2)} %; "
            f"from trials of {TRIAL_CALLS} calls; {MIN_CALLS} to {MAX_CALLS}"
        )
    nothing_s = 1e-9 * max(windows_ns.values(), default=0) * NOTHING_CALLS

    def mpirun_s(factor: float) -> float:
        """Seconds of one start of the slowest library, with the calls cut by a factor."""
        each = {case: chosen[case] if calls is not None else _cut(chosen[case], factor) for case in cases}
        return start_s + nothing_s + sum(
            (count + warm_up * batches_of(count)) * (most_s[case] + 1e-9 * windows_ns[case])
            for case, count in each.items()
        )  # fmt: skip

    libraries, least = max(1, len(trial_s)), values_to_decide(LEVEL / max(1, tests))
    share = FIRST_SHARE if mpiruns is None else 1.0
    allowed_s, rows = share * left_s / libraries, counted(tests, "row")
    if mpiruns is not None:
        first = mpiruns
        derivation.append(f"{counted(mpiruns, 'mpirun')} of each library, as asked for")
    else:
        first = max(FIRST_MPIRUNS, least)
        if first * mpirun_s(0.0) > allowed_s:
            first = max(least, int(allowed_s // mpirun_s(0.0)))
        if (least_s := libraries * least * mpirun_s(0.0)) > left_s:
            raise InputError(
                f"the budget is too small: with {rows} nothing can be decided by fewer than {least} mpiruns of each "
                f"library, which take {seconds(least_s)} and {seconds(max(0.0, left_s))} are left after the trials; "
                f"give {seconds(1.2 * (least_s - left_s))} more, fewer sizes, or --primary with the rows that count"
            )
        derivation.append(
            f"{first} mpiruns of each library first: fewer than {least} could decide nothing, since the p-values of "
            f"{rows} are corrected together"
        )
    factor = 1.0
    if calls is None and first * mpirun_s(1.0) > allowed_s:
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if first * mpirun_s(middle) <= allowed_s else (low, middle)
        factor = low
        derivation.append(
            f"the numbers of calls were cut to {100 * low:.0f} %, {MIN_CALLS_AFTER_CUT} at least: {first} mpiruns of "
            f"each library would have taken more than {100 * share:.0f} % of the {seconds(left_s)} that were left"
        )
    if calls is None:
        chosen = {case: _cut(count, factor) for case, count in chosen.items()}
    return Numbers(chosen, first, mpirun_s(factor), tuple(derivation))


def mpiruns_needed(first_stage: pandas.DataFrame, column: str, precision: float) -> dict[tuple[str, Case], float]:
    """How many starts of mpirun each library and case needs; infinite where fewer than two were complete.
    | first_stage: calls of the mpiruns that count, without NOTHING; column: the run-time that is meant
    """
    names = ["library", "operation", "form", "size_bytes"]
    medians = np.log(first_stage.groupby([*names, "mpirun"], sort=True)[column].median())
    return {
        (str(library), Case(operation, form, int(size))): values_needed(values.tolist(), log1p(precision))
        for (library, operation, form, size), values in medians.groupby(names)
    }


def mpiruns_for(needed: Mapping[tuple[str, Case], float], first: int) -> float:
    """The mpiruns that SHARE_OF_CASES of the cases of each library need, at least those of the first stage."""
    mpiruns: float = first
    for label in {label for label, _ in needed}:
        counts = sorted(count for (library, _), count in needed.items() if library == label)
        mpiruns = max(mpiruns, counts[ceil(SHARE_OF_CASES * len(counts)) - 1])
    return mpiruns


def _calls_needed(rows: pandas.DataFrame, precision: float, between: float, mpirun_s: float, call_s: float) -> float:
    """Calls for the library that needs most; a case that no library could be tried with needs the least.

    mpirun_s: the share of the case in what an mpirun takes beside its calls; between: see `_between`
    """
    needed = [0.0]
    for _, mine in rows.groupby("library"):
        if effects := _mpiruns(mine):
            deviation = mean(deviation**2 for _, deviation, _ in effects) ** 0.5
            precise = calls_for_median(deviation, log1p(precision) / 2)
            needed.append(min(precise, calls_for_least_error(deviation, between, mpirun_s, call_s)))
    return max(count for count in needed if isfinite(count))


def _between(trial: pandas.DataFrame, precision: float) -> float:
    """Standard deviation of the effects of mpiruns, of the logarithm: the root of its mean square over libraries and
    cases, each from the medians of two trials less what their calls contribute; a tenth of the precision at least."""
    squares = []
    for _, mine in trial.groupby(["library", "operation", "form", "size_bytes"]):
        if len(effects := _mpiruns(mine)) >= 2:
            noise = mean(deviation**2 / calls for _, deviation, calls in effects)
            squares.append(variance(median for median, _, _ in effects) - noise)
    return max(0.1 * log1p(precision), max(0.0, mean(squares)) ** 0.5 if squares else 0.0)


def _mpiruns(rows: pandas.DataFrame) -> list[tuple[float, float, int]]:
    """For each mpirun of one case and library, for logarithms of the local run-times: median, deviation of a call (see
    median_sd_factor), calls."""
    logarithms = [np.log(values) for _, values in rows[rows["local_s"] > 0].groupby("mpirun")["local_s"]]
    return [
        (float(values.median()), median_sd_factor(values.tolist()), len(values))
        for values in logarithms
        if len(values) >= 4
    ]


def _cut(count: int, factor: float) -> int:
    return max(min(count, MIN_CALLS_AFTER_CUT), ceil(factor * count))


def _of(trial: pandas.DataFrame, case: Case) -> pandas.DataFrame:
    return trial[
        (trial["operation"] == case.operation) & (trial["form"] == case.form) & (trial["size_bytes"] == case.size_bytes)
    ]


def _most(rows: pandas.DataFrame, quantile: float | None) -> float:
    """The largest over libraries of a quantile of their local run-times, or of their means; 0 without rows, s."""
    if rows.empty:
        return 0.0
    groups = rows.groupby("library")["local_s"]
    return float((groups.mean() if quantile is None else groups.quantile(quantile)).max())
