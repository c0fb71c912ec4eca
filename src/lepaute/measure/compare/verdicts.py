"""The verdict of each row: which library is faster, by how much, how sure, and what it would take to decide the rest.

A row's values are the logarithms of one value for each mpirun (`summaries`), its blocks the blocks of the campaign, in
which mpiruns of both libraries came in random order. Test and interval: `stats.aligned_ranks`; the p-values of all rows
are corrected together, for the share of false ones among the decided (Benjamini & Hochberg) or for the chance of any
(Holm). After Hunold & Carpen-Amarie, "MPI Benchmarking Revisited", section 6, which has no blocks and no correction.

How many mpiruns of a library would decide a row: with the standard error e of the shift after n of them, a true shift d
is shown after about n' with |d| = z e sqrt(n / n'), and is within the margin m after those with m - |d| = 1.96 e
sqrt(n / n'); fewer than the clearest arrangement takes show nothing. The true shift is taken as Student's t around the
estimate; the forecast is the median of what its values need, with the range of the middle four fifths.

Undisturbed mpiruns alone decide, where a block has some of both libraries. Where none has, nothing is decided: what
disturbs may disturb one library more, and no order or stratum of the mpiruns tells that from a difference
(validation/comparison_states.py). The ratio is that of the disturbed ones then, without an interval.

Where the mpiruns are of several sessions, test, interval and forecast are over these (`sessions`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, exp, inf, isfinite, log, nan
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas

from lepaute.errors import InputError
from lepaute.kit.text import counted
from lepaute.measure.compare import sessions
from lepaute.measure.compare.summaries import ROW
from lepaute.measure.comparison.numbers import LEVEL
from lepaute.stats.aligned_ranks import RankTest, Shift, aligned_rank_test, aligned_shift, least_p_of, values_to_decide
from lepaute.stats.decision import Decision, Weakness
from lepaute.stats.expanding import Booleans, Floats
from lepaute.stats.multiple_tests import benjamini_hochberg, holm
from lepaute.stats.robust import robust_sd
from lepaute.stats.student import NORMAL_975, student_quantile

Outcome = Literal["left faster", "right faster", "no difference above the margin", "undecided", "untested"]
#: The form of rows of a rate, whose times are those that the bytes of a message take by it.
RATE = "rate"
#: What the correction for many rows bounds: the share of false ones among the decided, or the chance of any.
Correction = Literal["fdr", "holm"]
CORRECTIONS = {"fdr": benjamini_hochberg, "holm": holm}

SIGNIFICANT = LEVEL
CONFIDENCE = 0.95
#: A difference below this is nobody's concern, where its interval excludes a larger one.
MARGIN = 0.02
NORMAL = NormalDist()
#: Values of the true shift that a forecast looks at: quantiles of its distribution.
_QUANTILES = 199
#: A forecast above this many times the mpiruns made says only that it is far away.
MAX_TIMES = 100
#: Mpiruns of each library from which a forecast is made.
LEAST = 5
SLOW_LEVEL = 0.2  # what slow calls have of the level: one campaign in a hundred without any difference says some
_NOT_DECIDED = RankTest(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Mpiruns of each library in all (or sessions), those made included; inf: more than MAX_TIMES as many as were."""

    likely: float
    low: float
    high: float


class Tested:
    """A ratio of times that was tested; weaknesses: of what it was tested by."""

    __slots__ = ()
    ratio: float
    low: float
    high: float
    p_corrected: float
    margin: float
    weaknesses: tuple[Weakness, ...]

    @property
    def decision(self) -> Decision:
        """Whether a difference is shown, or that there is none above the margin."""
        none = 1 / (1 + self.margin) <= self.low and self.high <= 1 + self.margin
        return Decision.of(self.p_corrected <= SIGNIFICANT, none, self.weaknesses)

    @property
    def stars(self) -> str:
        """* for a corrected p-value of at most 0.05, ** of 0.01, *** of 0.001."""
        return "*" * (self.decision.is_shown * sum(self.p_corrected <= level for level in (0.05, 0.01, 0.001)))


@dataclass(frozen=True, slots=True)
class Verdict(Tested):
    """Verdict on one operation, form and size.

    left_s, right_s : medians over mpiruns of each library, seconds; over sessions geometric means, of these and of them
    ratio           : time of the right library over that of the left one (Hodges-Lehmann; over sessions the geometric
                      mean of session_ratios), with its 95 % interval
    p_value, p_corrected: two-sided, before and after the correction for all rows
    left_slow, right_slow: share of calls that take more than SLOW medians of their mpirun, mean over mpiruns
    p_slow          : that it is the same, two-sided, corrected for all rows, over SLOW_LEVEL; 1 without single calls
    forecast        : mpiruns of each library that would decide; None if it is decided, or nothing can be said
    session_ratios  : of each session (geometric means); () where all mpiruns are of one session
    forecast_sessions: sessions that would decide, in the place of `forecast`
    disturbed_mpiruns: of both libraries, which are not among left_mpiruns and right_mpiruns
        but where nothing is decided for them (is_disturbed)
    spread          : of ratio by the least and the most times printed beside those of single runs; NaN without
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
    p_corrected: float
    margin: float
    left_slow: float
    right_slow: float
    p_slow: float
    forecast: Forecast | None
    session_ratios: tuple[float, ...] = ()
    forecast_sessions: Forecast | None = None
    disturbed_mpiruns: int = 0
    weaknesses: tuple[Weakness, ...] = ()
    spread: tuple[float, float] = (nan, nan)

    @property
    def row(self) -> tuple[str, str, int]:
        return self.operation, self.form, self.size_bytes

    @property
    def is_disturbed(self) -> bool:
        """Whether nothing is decided since no undisturbed mpiruns can be compared."""
        return any(weakness.cause == "disturbed" for weakness in self.weaknesses)

    @property
    def outcome(self) -> Outcome:
        faster: Outcome = "left faster" if self.ratio > 1 else "right faster"
        return self.decision.pick(faster, "no difference above the margin", "undecided", "untested")

    @property
    def slow_calls(self) -> Literal["left", "right"] | None:
        """The library that is shown to have more slow calls."""
        if self.p_slow > SIGNIFICANT or self.left_slow == self.right_slow:
            return None
        return "left" if self.left_slow > self.right_slow else "right"


def verdicts(summaries: pandas.DataFrame, left: str, right: str, **options: Any) -> tuple[Verdict, ...]:
    """The verdicts of all rows that both libraries have, in the order of operation, form and size.

    summaries, options: as of `verdicts_by_part`, which raises the same
    """
    (only,) = verdicts_by_part([summaries], left, right, **options)
    return only


def verdicts_by_part(
    parts: "Sequence[pandas.DataFrame]",
    left: str,
    right: str,
    *,
    margin: float = MARGIN,
    value: str = "median_s",
    correction: Correction = "fdr",
    primary: Collection[tuple[str, str, int]] = (),
) -> list[tuple[Verdict, ...]]:
    """`verdicts` of each part, such as of each number of ranks, with the p-values of all parts corrected together.

    parts     : as `mpirun_summaries` gives; where it has a column `session`, verdicts are over these; mpiruns that are
        true in a column `disturbed` decide nothing
    margin    : relative difference below which none is worth a decision, 0.02 for 2 %
    value     : column that stands for an mpirun
    primary   : rows (operation, form, size) that are corrected among themselves, and the others among themselves: the
                questions that the campaign was made for are not drowned by the rest
    Raises InputError for a library without mpiruns, two names for one, a margin of 0, or an unknown correction.
    """
    for summaries in parts:
        _check(summaries, left, right, margin, correction)
    parts = [table if "disturbed" in table else table.assign(disturbed=False) for table in parts]
    rows_of = [
        [
            (_SessionsRow if "session" in summaries else _Row)(key, table, right, value)
            for key, table in summaries[summaries["library"].isin([left, right])].groupby(list(ROW), observed=True)
        ]
        for summaries in parts
    ]
    both = [(part, row) for part, rows in enumerate(rows_of) for row in rows if row.has_both]
    first = [row.name in primary for _, row in both]
    tests = [row.test() if row.has_undisturbed_pair else _NOT_DECIDED for _, row in both]
    corrected = corrected_families([test.two_sided for test in tests], first, correction)
    slow = [row.slow_p() if row.has_undisturbed_pair else 1.0 for _, row in both]
    slow_corrected = [min(1.0, p_slow / SLOW_LEVEL) for p_slow in CORRECTIONS[correction](slow)]
    result: list[list[Verdict]] = [[] for _ in parts]
    for (part, row), test, p_corrected, p_slow in zip(both, tests, corrected, slow_corrected, strict=True):
        ratio, low, high = row.ratio()
        low, high = (low, high) if row.has_undisturbed_pair else (0.0, inf)
        left_s, right_s = row.times_s()
        one = Verdict(
            *row.name,
            left_s=left_s,
            right_s=right_s,
            left_mpiruns=int((~row.second).sum()),
            right_mpiruns=int(row.second.sum()),
            ratio=ratio,
            low=low,
            high=high,
            p_value=test.two_sided,
            p_corrected=p_corrected,
            margin=margin,
            left_slow=float(row.slow[~row.second].mean()),
            right_slow=float(row.slow[row.second].mean()),
            p_slow=p_slow,
            forecast=None,
            session_ratios=row.session_ratios(),
            disturbed_mpiruns=row.disturbed,
            weaknesses=row.weaknesses(),
            spread=row.spread,
        )
        # A row alone among others that do not differ has to be as clear as this.
        level = SIGNIFICANT / sum(each == (row.name in primary) for each in first)
        closed = one.decision.is_decided or one.is_disturbed
        result[part].append(one if closed else row.with_forecast(one, level))
    return [tuple(each) for each in result]


def _check(summaries: pandas.DataFrame, left: str, right: str, margin: float, correction: str) -> None:
    if left == right:
        raise InputError(f"{left} cannot be compared with itself under one name; give one of them another label")
    if not margin > 0:
        raise InputError(f"the margin is {margin!r}; it must be above 0, such as 0.02")
    if correction not in CORRECTIONS:
        raise InputError(f"the correction is {correction!r}; it must be one of {', '.join(get_args(Correction))}")
    for library in (left, right):
        if not (summaries["library"] == library).any():
            names = ", ".join(sorted(set(summaries["library"])))
            raise InputError(f"there are no measurements of {library}; there are some of {names or 'no library'}")


def corrected_families(p_values: Sequence[float], primary: Sequence[bool], correction: Correction) -> list[float]:
    """Corrected p-values in the same order, of those that are primary and of the others each by themselves."""
    corrected = [1.0] * len(p_values)
    for family in (True, False):
        places = [place for place, each in enumerate(primary) if each is family]
        for place, p_value in zip(places, CORRECTIONS[correction]([p_values[at] for at in places]), strict=True):
            corrected[place] = p_value
    return corrected


def undisturbed_pairs(disturbed: Booleans, second: Booleans, blocks: npt.NDArray[Any]) -> Booleans | None:
    """The mpiruns that decide: all if none is disturbed, else the undisturbed; None if no block has both samples."""
    sides = set(zip(blocks[~disturbed].tolist(), second[~disturbed].tolist(), strict=True))
    paired = not disturbed.any() or any((block, not side) in sides for block, side in sides)
    return ~disturbed if paired else None


class _Row:
    """The mpiruns of one row: logarithms of times, whether they are the right library's, and their blocks."""

    def __init__(self, key: Any, table: pandas.DataFrame, right: str, value: str) -> None:
        self.name = (str(key[0]), str(key[1]), int(key[2]))
        table = table[table[value] > 0]
        disturbed = table["disturbed"].to_numpy(dtype=np.bool_)
        self.disturbed = int(disturbed.sum())
        undisturbed = undisturbed_pairs(disturbed, (table["library"] == right).to_numpy(), table["block"].to_numpy())
        self.has_undisturbed_pair = undisturbed is not None
        self._table = table = table if undisturbed is None else table[undisturbed]
        self.values: Floats = np.log(table[value].to_numpy(dtype=np.float64))
        self.second: Booleans = (table["library"] == right).to_numpy(dtype=np.bool_)
        self.blocks = table["block"].to_numpy()
        # Another benchmark does not tell single calls.
        slow = table["slow_share"].to_numpy(dtype=np.float64) if "slow_share" in table else np.zeros(len(table))
        self.slow: Floats = slow
        self.spread = (nan, nan)
        if "low_s" in table and len(table) == 2 and self.has_both:
            ends = table[["low_s", "high_s"]].to_numpy(dtype=np.float64)
            (low, high), (least, most) = ends[~self.second][0], ends[self.second][0]
            if low > 0:
                self.spread = float(least / high), float(most / low)

    @property
    def has_both(self) -> bool:
        return bool(self.second.any() and not self.second.all())

    def test(self) -> RankTest | sessions.SessionsTest:
        return aligned_rank_test(self.values, self.second, self.blocks)

    def weaknesses(self) -> tuple[Weakness, ...]:
        """Reasons why the clearest difference could not be shown."""
        if not self.has_undisturbed_pair:
            return (Weakness("disturbed", f"{self.disturbed} of {counted(len(self.second), 'mpirun')} were disturbed"),)
        return self._too_few()

    def _too_few(self) -> tuple[Weakness, ...]:
        if least_p_of(self.second, self.blocks) <= SIGNIFICANT:
            return ()
        if len(self.second) == 2:
            return (Weakness("too few", "one run each"),)
        fewest, needed = min(int(self.second.sum()), int((~self.second).sum())), values_to_decide(SIGNIFICANT)
        most = f"and {needed} are needed" if fewest < needed else "too few of them in one block"
        return (Weakness("too few", f"{counted(fewest, 'mpirun')} of each library, {most}"),)

    def slow_p(self) -> float:
        """p-value of equal shares of slow calls, two-sided, before any correction."""
        return aligned_rank_test(self.slow, self.second, self.blocks).two_sided

    def ratio(self) -> tuple[float, float, float]:
        """With its interval."""
        shift = self._shift
        return exp(shift.estimate), exp(shift.low), _exp(shift.high)

    def times_s(self) -> tuple[float, float]:
        left, right = (exp(float(np.median(self.values[side]))) for side in (~self.second, self.second))
        return left, right

    def session_ratios(self) -> tuple[float, ...]:
        return ()

    def with_forecast(self, verdict: Verdict, level: float) -> Verdict:
        """level: the two-sided p-value at which a difference counts as shown"""
        mpiruns, shift = min(verdict.left_mpiruns, verdict.right_mpiruns), self._shift
        error, margin = _standard_error(self, shift), log(1 + verdict.margin)
        return replace(verdict, forecast=_mpiruns_to_decide(shift.estimate, error, mpiruns, level, margin))

    @cached_property
    def _shift(self) -> Shift:
        return aligned_shift(self.values, self.second, self.blocks, CONFIDENCE)


class _SessionsRow(_Row):
    """The same of several sessions, which are what counts; each block belongs to one of them."""

    def __init__(self, key: Any, table: pandas.DataFrame, right: str, value: str) -> None:
        super().__init__(key, table, right, value)
        self._sessions = self._table["session"].to_numpy()
        self._means = self._means_of(self.values)

    def _means_of(self, values: Floats) -> Floats:
        return sessions.session_means(values, self.second, self.blocks, self._sessions)

    @property
    def has_both(self) -> bool:
        return len(self._means) > 0

    def test(self) -> sessions.SessionsTest:
        return sessions.student_test(self._means, CONFIDENCE)

    def _too_few(self) -> tuple[Weakness, ...]:
        if (made := len(self._means)) >= sessions.LEAST:
            return ()
        return (Weakness("too few", f"{counted(made, 'session')}, and {sessions.LEAST} are needed"),)

    def slow_p(self) -> float:
        return sessions.student_test(self._means_of(self.slow)).two_sided

    def ratio(self) -> tuple[float, float, float]:
        test = self.test()
        return exp(test.mean), exp(test.low), _exp(test.high)

    def times_s(self) -> tuple[float, float]:
        """Their quotient is the ratio where no session lacks mpiruns."""
        middle = np.mean([self.values[self._sessions == session].mean() for session in np.unique(self._sessions)])
        half = self.test().mean / 2
        return exp(middle - half), exp(middle + half)

    def session_ratios(self) -> tuple[float, ...]:
        return tuple(map(float, np.exp(self._means)))

    def with_forecast(self, verdict: Verdict, level: float) -> Verdict:
        test, made = self.test(), len(self._means)
        if not isfinite(test.error):
            return verdict
        truths = _possible_shifts(test.mean, test.error, made - 1)
        spread, most, margin = test.error * made**0.5, MAX_TIMES * made, log(1 + verdict.margin)
        needed = sessions.sessions_to_decide(truths, spread, made, most, level, margin)
        return replace(verdict, forecast_sessions=_forecast(needed, most))


def _exp(value: float) -> float:
    return exp(min(value, 700.0)) if isfinite(value) else inf


def _standard_error(row: "_Row", shift: Shift) -> float:
    """From the interval; where that is infinite, from the spread of the values of each block."""
    if isfinite(shift.low) and isfinite(shift.high):
        return (shift.high - shift.low) / (2 * NORMAL_975)
    left, right = row.values[~row.second], row.values[row.second]
    spread = [robust_sd(one) for one in (left, right)]
    return float(np.hypot(spread[0] / np.sqrt(len(left)), spread[1] / np.sqrt(len(right))))


def _mpiruns_to_decide(
    shift: float, standard_error: float, mpiruns: int, significance: float, margin: float
) -> Forecast | None:
    """None if nothing can be said: of too few mpiruns, or where the standard error is not known.

    shift, margin  : logarithms of ratios; standard_error : of the shift, after `mpiruns` of each library
    significance   : two-sided p-value at which a difference counts as shown
    """
    if not (mpiruns >= LEAST and isfinite(shift) and isfinite(standard_error) and standard_error > 0):
        return None
    truths = _possible_shifts(shift, standard_error, 2 * mpiruns - 2)
    unit = standard_error * standard_error * mpiruns  # variance of the shift after one mpirun
    shown = unit * (NORMAL.inv_cdf(1 - significance / 2) / np.maximum(truths, 1e-12)) ** 2
    shown = np.maximum(shown, values_to_decide(significance))
    room = margin - truths
    none_left = np.where(room > 0, unit * (NORMAL.inv_cdf(0.975) / np.maximum(room, 1e-12)) ** 2, inf)
    return _forecast(np.maximum(np.minimum(shown, none_left), mpiruns + 1), MAX_TIMES * mpiruns)


def _possible_shifts(shift: float, standard_error: float, degrees_of_freedom: int) -> Floats:
    """Absolute values of what the true shift may be, quantiles of its distribution."""
    quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.abs(shift + standard_error * np.array([student_quantile(q, degrees_of_freedom) for q in quantiles]))


def _forecast(needed: Floats, most: int) -> Forecast:
    quantiles = np.quantile(needed, [0.1, 0.5, 0.9])
    low, likely, high = (inf if value > most else float(ceil(value)) for value in quantiles)
    return Forecast(likely, low, high)
