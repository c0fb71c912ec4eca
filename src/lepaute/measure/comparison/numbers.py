"""How many calls and how many starts of mpirun a campaign takes, from its trials and its first blocks.

Calls. Two trials of each library have each case some twenty times. From the spread and the dependence of these
run-times follows how many calls give an mpirun's median within half of the wanted precision (95 %): more do not help.
By how much mpiruns differ, the mean over cases, and what an mpirun and a call take, tell how many calls give the least
error in a given time: where mpiruns differ much, fewer calls and more mpiruns. The smaller of both numbers counts, that
of the library which needs most, within FEWEST_CALLS and MOST_CALLS, and all are cut by one factor where the first
blocks would take more than half of the budget.

Starts of mpirun. The first blocks, FIRST_BLOCKS or as many as the budget allows, are the first stage of Stein's
procedure (stats/two_stage.py), for each library and case, on the logarithms of the medians of their mpiruns; the
half-width is log(1 + precision). As many blocks are made as SHARE_OF_CASES of the cases of every library need, or as
the budget allows. With a case's own number, the mean over mpiruns is within the precision of its true value in 95 % of
campaigns at least.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, log1p
from statistics import mean, variance
from typing import TYPE_CHECKING

from lepaute.kit.text import seconds
from lepaute.measure.comparison.cases import BLOCKING, NOTHING, Case
from lepaute.stats.two_stage import calls_for_least_error, calls_for_median, median_deviation, values_needed

if TYPE_CHECKING:
    import pandas

TRIAL_CALLS = 24
FEWEST_CALLS, MOST_CALLS = 20, 500
#: However little time there is: fewer calls have no median to speak of, a single block no spread.
LEAST_CALLS, LEAST_BLOCKS = 10, 2
FIRST_BLOCKS, MOST_BLOCKS = 5, 200
#: Of the budget, for the first blocks; and for repetitions of what other load disturbed.
FIRST_SHARE, REPEATED_SHARE = 0.5, 0.25
SHARE_OF_CASES = 0.9
#: A lead of round-time must let word of the start reach every rank: so many times what a small broadcast takes.
LEAD_FACTOR, LEAST_LEAD_S = 3.0, 20e-6
#: A window holds twice what 95 % of calls take.
WINDOW_FACTOR, LEAST_WINDOW_S = 2.0, 10e-6
#: Memory that is overwritten in a window, a second: less than any machine of this century writes.
_COLD_BYTES_PER_S = 1e9
BY_WINDOWS, BY_LEAD = "window", "round-time"


@dataclass(frozen=True, slots=True)
class Numbers:
    """Calls of each case in an mpirun; the window or lead of each, and of NOTHING; blocks of the first stage."""

    calls: Mapping[Case, int]
    windows_ns: Mapping[Case, int]
    first_blocks: int
    derivation: tuple[str, ...]


def run_time_column(synchronisation: str) -> str:
    """The run-time that a campaign plans by: the global one where ranks start by the global clock (section 3.2)."""
    return "global_s" if synchronisation in (BY_WINDOWS, BY_LEAD) else "local_s"


def first_windows_ns(
    trial: "pandas.DataFrame", cases: Iterable[Case], synchronisation: str, cold_bytes: int, broadcast: Case
) -> dict[Case, int]:
    """The window of each case, or the lead, ns, for the probe to begin with; 0 for synchronisations without any.

    trial    : calls of all libraries, of `archive.mpi_campaign.call_table`
    broadcast: the case that tells the lead
    """
    cold_s = cold_bytes / _COLD_BYTES_PER_S
    every = [*cases, Case(NOTHING, BLOCKING, 0)]
    if synchronisation == BY_LEAD:
        lead_s = max(LEAST_LEAD_S, LEAD_FACTOR * _most(_of(trial, broadcast), 0.95))
        return dict.fromkeys(every, round(1e9 * lead_s))
    if synchronisation == BY_WINDOWS:
        windows_s = {case: cold_s + LEAST_WINDOW_S + WINDOW_FACTOR * _most(_of(trial, case), 0.95) for case in every}
        return {case: round(1e9 * window_s) for case, window_s in windows_s.items()}
    return dict.fromkeys(every, 0)


def numbers_of_trial(
    trial: "pandas.DataFrame",
    trial_s: Mapping[str, float],
    cases: Sequence[Case],
    windows_ns: Mapping[Case, int],
    precision: float,
    left_s: float,
    *,
    calls: int | None = None,
    blocks: int | None = None,
) -> Numbers:
    """The numbers that the trials give.

    trial_s: duration of each library's trial; left_s: of the budget
    calls, blocks: as the user fixed them
    """
    derivation = []
    most_s = {case: _most(_of(trial, case), None) for case in cases}
    between = _between(trial, precision)
    each_s = max(trial_s.values()) / max(1, len(cases))
    if calls is not None:
        chosen = dict.fromkeys(cases, calls)
        derivation.append(f"{calls} calls of each case in an mpirun, as asked for")
    else:
        chosen = {}
        for case in cases:
            call_s = most_s[case] + 1e-9 * windows_ns[case]
            needed = _calls_needed(_of(trial, case), precision, between, each_s, call_s)
            chosen[case] = ceil(min(max(needed, FEWEST_CALLS), MOST_CALLS))
        derivation.append(
            f"calls of a case in an mpirun: so many that its median is within {50 * precision:g} % (95 %), or fewer "
            f"where these have the least error for their time, mpiruns differing by {100 * between:.2g} %; from trials "
            f"of {TRIAL_CALLS} calls; {FEWEST_CALLS} to {MOST_CALLS}"
        )

    def mpirun_s(factor: float) -> float:
        """Of one start of the slowest library: beside what the trial had, the further calls."""
        more = sum(
            max(0, _cut(chosen[case], factor) - TRIAL_CALLS) * (most_s[case] + 1e-9 * windows_ns[case])
            for case in cases
        )
        return max(trial_s.values()) + more

    first = FIRST_BLOCKS if blocks is None else blocks
    allowed_s = FIRST_SHARE * left_s / max(1, len(trial_s))
    if blocks is None and first * mpirun_s(0.0) > allowed_s:
        first = max(LEAST_BLOCKS, int(allowed_s // mpirun_s(0.0)))
        derivation.append(f"{first} blocks first, since an mpirun takes {seconds(mpirun_s(0.0))} at least")
    if calls is None and first * mpirun_s(1.0) > allowed_s:
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if first * mpirun_s(middle) <= allowed_s else (low, middle)
        chosen = {case: _cut(count, low) for case, count in chosen.items()}
        derivation.append(
            f"the numbers of calls were cut to {100 * low:.0f} %, {LEAST_CALLS} at least: {first} blocks would have "
            f"taken more than half of the {seconds(left_s)} that were left"
        )
    if blocks is not None:
        derivation.append(f"{blocks} blocks, as asked for")
    return Numbers(chosen, windows_ns, first, tuple(derivation))


def mpiruns_needed(first_stage: "pandas.DataFrame", column: str, precision: float) -> dict[tuple[str, Case], float]:
    """How many starts of mpirun each library and case needs; infinite where fewer than two were complete.

    first_stage: calls of the mpiruns that count, one of each library and block; without NOTHING
    column     : the run-time that is meant
    """
    import numpy as np

    names = ["library", "operation", "form", "size_bytes"]
    medians = np.log(first_stage.groupby([*names, "mpirun"], sort=True)[column].median())
    return {
        (str(library), Case(operation, form, int(size))): values_needed(values.tolist(), log1p(precision))
        for (library, operation, form, size), values in medians.groupby(names)
    }


def blocks_for(needed: Mapping[tuple[str, Case], float], first: int) -> float:
    """The number of blocks that SHARE_OF_CASES of the cases of each library need, at least those of the first stage."""
    blocks: float = first
    for label in {label for label, _ in needed}:
        counts = sorted(count for (library, _), count in needed.items() if library == label)
        blocks = max(blocks, counts[ceil(SHARE_OF_CASES * len(counts)) - 1])
    return blocks


def _calls_needed(rows: "pandas.DataFrame", precision: float, between: float, mpirun_s: float, call_s: float) -> float:
    """Of the library that needs most; a case that no library could be tried with needs the least.

    mpirun_s: the share of the case in what an mpirun takes beside its calls; between: see `_between`
    """
    needed = [0.0]
    for _, mine in rows.groupby("library"):
        if effects := _mpiruns(mine):
            deviation = mean(deviation**2 for _, deviation, _ in effects) ** 0.5
            precise = calls_for_median(deviation, log1p(precision) / 2)
            needed.append(min(precise, calls_for_least_error(deviation, between, mpirun_s, call_s)))
    return max(count for count in needed if isfinite(count))


def _between(trial: "pandas.DataFrame", precision: float) -> float:
    """Standard deviation of the effects of mpiruns, of the logarithm: the root of its mean square over libraries and
    cases, each from the medians of two trials less what their calls contribute; a tenth of the precision at least."""
    squares = []
    for _, mine in trial.groupby(["library", "operation", "form", "size_bytes"]):
        if len(effects := _mpiruns(mine)) >= 2:
            noise = mean(deviation**2 / calls for _, deviation, calls in effects)
            squares.append(variance(median for median, _, _ in effects) - noise)
    return max(0.1 * log1p(precision), max(0.0, mean(squares)) ** 0.5 if squares else 0.0)


def _mpiruns(rows: "pandas.DataFrame") -> list[tuple[float, float, int]]:
    """Of each mpirun of one case and library, for logarithms of the local run-times: median, deviation of a call (see
    median_deviation), calls."""
    import numpy as np

    logarithms = [np.log(values) for _, values in rows[rows["local_s"] > 0].groupby("mpirun")["local_s"]]
    return [
        (float(values.median()), median_deviation(values.tolist()), len(values))
        for values in logarithms
        if len(values) >= 4
    ]


def _cut(count: int, factor: float) -> int:
    return max(min(count, LEAST_CALLS), ceil(factor * count))


def _of(trial: "pandas.DataFrame", case: Case) -> "pandas.DataFrame":
    """The calls of a case."""
    return trial[
        (trial["operation"] == case.operation) & (trial["form"] == case.form) & (trial["size_bytes"] == case.size_bytes)
    ]


def _most(rows: "pandas.DataFrame", quantile: float | None) -> float:
    """The largest over libraries of a quantile of their local run-times, or of their means; 0 without rows, s."""
    if rows.empty:
        return 0.0
    groups = rows.groupby("library")["local_s"]
    return float((groups.mean() if quantile is None else groups.quantile(quantile)).max())
