"""The verdict of each row: which library is faster, by how much, how sure, and what it would take to decide the rest.

A row's values are the logarithms of one value for each mpirun (`summaries`), its blocks the blocks of the campaign, in
which mpiruns of both libraries took turns. Test and interval: `stats.aligned_ranks`; the p-values of all rows are
corrected together (Holm). Source of the scheme: Hunold & Carpen-Amarie, "MPI Benchmarking Revisited", section 6, which
takes the test without blocks or correction.
"""

from dataclasses import dataclass, replace
from math import exp, isfinite, log
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from lepaute.compare.forecast import Forecast, mpiruns_to_decide
from lepaute.compare.summaries import ROW
from lepaute.errors import InputError
from lepaute.stats.aligned_ranks import Shift, aligned_rank_test, aligned_shift
from lepaute.stats.permutation import holm

if TYPE_CHECKING:
    import pandas

Outcome = Literal["left faster", "right faster", "no difference above the margin", "undecided"]

SIGNIFICANT = 0.05
CONFIDENCE = 0.95
#: A difference below this is nobody's concern, where its interval excludes a larger one.
MARGIN = 0.02
_NORMAL_975 = 1.959964


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about one operation, form and size.

    left_s, right_s : medians over mpiruns of each library, seconds
    ratio           : time of the right library over that of the left one (Hodges-Lehmann), with its 95 % interval
    p_value, p_holm : two-sided, before and after the correction for all rows
    p_lower, p_higher : one-sided: that the right library takes less, more time
    forecast        : mpiruns of each library that would decide; None where it is decided, or nothing can be said
    """

    operation: str
    form: str
    size_bytes: int
    left_s: float
    right_s: float
    left_mpiruns: int
    right_mpiruns: int
    ratio: float
    low: float
    high: float
    p_value: float
    p_holm: float
    p_lower: float
    p_higher: float
    margin: float
    forecast: Forecast | None

    @property
    def outcome(self) -> Outcome:
        if self.p_holm <= SIGNIFICANT:
            return "left faster" if self.ratio > 1 else "right faster"
        if 1 / (1 + self.margin) <= self.low and self.high <= 1 + self.margin:
            return "no difference above the margin"
        return "undecided"

    @property
    def stars(self) -> str:
        """* for a corrected p-value of at most 0.05, ** of 0.01, *** of 0.001."""
        return "*" * sum(self.p_holm <= level for level in (0.05, 0.01, 0.001))


def verdicts(
    summaries: "pandas.DataFrame", left: str, right: str, *, margin: float = MARGIN, value: str = "median_s"
) -> tuple[Verdict, ...]:
    """The verdicts of all rows that both libraries have, in the order of operation, form and size.

    summaries : as `mpirun_summaries` gives
    margin    : relative difference below which none is worth a decision, 0.02 for 2 %
    value     : column that stands for an mpirun
    Raises InputError for a library without mpiruns, two names for one, and a margin that is not above 0.
    """
    if left == right:
        raise InputError(f"{left} cannot be compared with itself under one name; give one of them another label")
    if not margin > 0:
        raise InputError(f"the margin is {margin!r}; it must be above 0, such as 0.02")
    for library in (left, right):
        if not (summaries["library"] == library).any():
            names = ", ".join(sorted(set(summaries["library"])))
            raise InputError(f"there are no measurements of {library}; there are some of {names or 'no library'}")
    rows = [
        _Row(key, table, right, value)
        for key, table in summaries[summaries["library"].isin([left, right])].groupby(list(ROW), observed=True)
    ]
    both = [row for row in rows if row.second.any() and not row.second.all()]
    tests = [aligned_rank_test(row.values, row.second, row.blocks) for row in both]
    corrected = holm([test.two_sided for test in tests])
    undecided = sum(p > SIGNIFICANT for p in corrected)
    result = []
    for row, test, p_holm in zip(both, tests, corrected, strict=True):
        shift = aligned_shift(row.values, row.second, row.blocks, CONFIDENCE)
        one = Verdict(
            *row.name,
            left_s=exp(float(np.median(row.values[~row.second]))),
            right_s=exp(float(np.median(row.values[row.second]))),
            left_mpiruns=int((~row.second).sum()),
            right_mpiruns=int(row.second.sum()),
            ratio=exp(shift.estimate),
            low=exp(shift.low),
            high=exp(min(shift.high, 700.0)) if isfinite(shift.high) else float("inf"),
            p_value=test.two_sided,
            p_holm=p_holm,
            p_lower=test.lower,
            p_higher=test.higher,
            margin=margin,
            forecast=None,
        )
        result.append(one if one.outcome != "undecided" else _with_forecast(one, row, shift, undecided))
    return tuple(result)


class _Row:
    """The mpiruns of one row: logarithms of times, whether they are the right library's, and their blocks."""

    def __init__(self, key: Any, table: "pandas.DataFrame", right: str, value: str) -> None:
        self.name = (str(key[0]), str(key[1]), int(key[2]))
        table = table[table[value] > 0]
        self.values: npt.NDArray[np.float64] = np.log(table[value].to_numpy(dtype=np.float64))
        self.second: npt.NDArray[np.bool_] = (table["library"] == right).to_numpy(dtype=np.bool_)
        self.blocks = table["block"].to_numpy()


def _with_forecast(verdict: Verdict, row: "_Row", shift: Shift, undecided: int) -> Verdict:
    mpiruns = min(verdict.left_mpiruns, verdict.right_mpiruns)
    # Holm: the smallest of m p-values has to be at most 0.05 / m.
    forecast = mpiruns_to_decide(
        shift.estimate, _standard_error(row, shift), mpiruns, SIGNIFICANT / max(1, undecided), log(1 + verdict.margin)
    )
    return replace(verdict, forecast=forecast)


def _standard_error(row: "_Row", shift: Shift) -> float:
    """From the interval; where that is infinite, from the spread of the values of each block."""
    if isfinite(shift.low) and isfinite(shift.high):
        return (shift.high - shift.low) / (2 * _NORMAL_975)
    left, right = row.values[~row.second], row.values[row.second]
    spread = [np.median(np.abs(one - np.median(one))) * 1.4826 for one in (left, right)]
    return float(np.hypot(spread[0] / np.sqrt(len(left)), spread[1] / np.sqrt(len(right))))
