"""Whether a factor other than the sizes matters: content, warm-up, pinning, ..., tested in the observations themselves.

Which columns are factors is declared, see `columns`. What is exchanged is what the design has drawn: calls where a
process makes calls of several levels, whole processes where the level belongs to the process. Calls of one process are
not independent, so they are no proof about processes. Nor are successive calls independent of each other: where the
order of the calls shows that levels were not shuffled, stretches of calls of one level are exchanged (`Stretches`).

Levels of a factor that were measured in stretches of calls, not shuffled: then the stretches are what is exchanged.

Successive calls are alike whatever their level, since a core is faster or slower for a while. Calls of a level that
were made one after the other are about as good as one, and where all processes made them in the same order, as one for
all processes: what the order itself does (caches that warm up, a clock that falls) is then the same in all of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.kit.tables import text_table
from lepaute.kit.text import level_order, p_text, percent, signed_percent, significant
from lepaute.measure.fit.numeric import Floats, Integers
from lepaute.measure.observation_columns import COLUMNS_BY_NAME, factors_of, names_of
from lepaute.stats.multiple_tests import holm
from lepaute.stats.permutation import PERMUTATIONS, PermutationTest, permutation_test
from lepaute.stats.student import NORMAL_975

#: Columns of conditions that the probes set themselves, and the levels of all that the models are fitted to.
CONTENT, WARM = "content", "warm"
RANDOM, PLACED = "random", 0
#: Probe that makes a few calls often, to test contents: it would weigh too much in a model.
CONTENT_PROBE = "dgemm_content"
#: What is compared unless something else is asked for.
DURATION = "duration_s"
#: The column of it while it is tested; no column of a design can be called so.
_RESULT = ".result"
#: What a test says it is of where rows do not name their kernel.
ANY_KERNEL = "measurement"
#: Corrected p-value up to which a factor is said to matter.
SIGNIFICANT = 0.05
#: What to do where too few of what is exchanged were measured.
_REMEDIES = {
    "stretches": "levels were measured one after the other: shuffle them",
    "places": "levels were measured one after the other, in the same order by all processes: shuffle them",
}
SIZES, PROCESS = names_of("size"), names_of("process")
_TYPES = {
    **dict.fromkeys(("column", "factor", "kernel", "reference", "level"), "string"),
    **dict.fromkeys(("ratio", "low", "high", "p_value", "p_holm"), "float64"),
    "matters": "bool",
    "exchanged": "string",
    **dict.fromkeys(("n", "strata"), "int64"),
    "note": "string",
}
#: From this ratio on a sentence says times as much, not per cent more.
MANIFOLD = 2.0


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of successive calls of one level in one process.

    number     : of the stretch of each call, shape (calls,)
    place      : of each stretch in its process, from 0
    same_order : all processes, of which there are several, have the same levels in the same order
    """

    number: Integers
    place: Integers
    same_order: bool


def stretches_of(process: Integers, order: Floats, level: Integers) -> Stretches | None:
    """The stretches; None if there are as many as with shuffled levels.

    process, order, level : of each call, shape (calls,): its process, when it was made, its level (numbers from 0)
    The number of stretches is compared with its distribution over all orders of the levels inside processes (Wald and
    Wolfowitz's runs, here of any number of levels: Barton and David 1957, Biometrika 44, 168-178).
    """
    rows = np.lexsort((order, process))
    sorted_process, sorted_level = process[rows], level[rows]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (sorted_process[1:] != sorted_process[:-1]) | (sorted_level[1:] != sorted_level[:-1])
    if not _too_few(sorted_process, sorted_level, int(begins.sum())):
        return None
    number = np.empty(len(rows), dtype=np.int64)
    number[rows] = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    of_process, of_level = sorted_process[starts], sorted_level[starts]
    first = np.flatnonzero(np.concatenate([[True], of_process[1:] != of_process[:-1]]))
    count = np.diff(np.append(first, len(starts)))
    sequences = {tuple(of_level[begin : begin + size].tolist()) for begin, size in zip(first, count, strict=True)}
    return Stretches(number, np.arange(len(starts)) - np.repeat(first, count), len(first) > 1 and len(sequences) == 1)


def _too_few(process: Integers, level: Integers, stretches: int) -> bool:
    """Whether the stretches are fewer than shuffling leaves; both arguments sorted by process."""
    expected = variance = 0.0
    for begin, end in _ranges(process):
        sizes = np.bincount(level[begin:end]).astype(np.float64)
        n, squares, cubes = end - begin, float(np.sum(sizes**2)), float(np.sum(sizes**3))
        expected += n + 1.0 - squares / n
        if n > 1:
            variance += (squares * (squares + n * (n + 1.0)) - 2.0 * n * cubes - n**3.0) / (n**2.0 * (n - 1.0))
    # One in forty of shuffled designs is then tested by stretches: a loss of power, but no false alarm.
    return bool(stretches + 0.5 < expected - NORMAL_975 * np.sqrt(max(variance, 0.0)))


def _ranges(sorted_values: Integers) -> Sequence[tuple[int, int]]:
    edges = [0, *(np.flatnonzero(np.diff(sorted_values)) + 1).tolist(), len(sorted_values)]
    return list(zip(edges[:-1], edges[1:], strict=True))


@dataclass(frozen=True, slots=True)
class LevelEffect:
    """Typical duration at a level over that at the reference level, with its 95 % interval (None: none)."""

    level: str
    ratio: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class FactorTest:
    """The permutation test of one factor. exchanged: what was permuted within strata, "calls", "stretches" of calls,
    "places" of stretches in the order that all processes have in common, or "processes".

    strata    : how many; n: how many of those can distinguish levels
    p_holm    : p_value corrected for the number of tests made together
    note      : why it was not testable, or ""
    column    : what was compared, durations unless something else was asked for
    """

    factor: str
    kernel: str
    reference: str
    effects: tuple[LevelEffect, ...]
    statistic: float
    p_value: float
    p_holm: float
    permutations: int
    exact: bool
    exchanged: str
    n: int
    strata: int
    note: str
    column: str = DURATION

    @property
    def matters(self) -> bool:
        return not self.note and self.p_holm <= SIGNIFICANT


def factor_tests(
    table: pandas.DataFrame,
    *,
    factors: Sequence[str] | None = None,
    column: str = DURATION,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> tuple[FactorTest, ...]:
    """A test of every factor for every kernel, with Holm's correction over all of them; deterministic.

    table  : observations, a row a call, with `column`, the sizes, and the columns of PROCESS as far as they are
             there; rows in which a factor has no value are left out of its tests
    factors: names of columns; the declared ones unless given, see `factors_of`. Sizes and columns of PROCESS are none
             of these any more where they are named here
    column : what is compared: durations, or rates or whatever else is above 0
    Values are logarithms of that column. Strata of calls: same process, same sizes, same levels of the other factors;
    where sizes are not repeated, a quarter of a decade of their product in the place of the same sizes. Strata of
    processes: same block and core, same levels of the other factors of processes; a process counts as the median of its
    calls, each less the median of its sizes. Stretches count likewise; their strata are processes. The order of calls
    is that of `start_s` where it tells them apart, else that of the rows. Raises FitError for a column that is missing.
    """
    names = tuple(factors) if factors is not None else factors_of(table)
    for name in (column, *names):
        if name not in table.columns:
            raise FitError(f"the table has no column {name!r}; it has {', '.join(map(str, table.columns))}")
    table = table.assign(**{_RESULT: table[column]})
    results = []
    for kernel, rows in [(ANY_KERNEL, table)] if "kernel" in names else _by_kernel(table):
        for name in names:
            mine = rows[rows[name].notna() & (rows[_RESULT] > 0)]
            if mine[name].nunique() > 1:
                others = [other for other in names if other != name]
                results.append(_tested(mine, name, others, kernel, permutations, seed))
    corrected = holm([result.p_value for result in results])
    return tuple(replace(result, p_holm=p, column=column) for result, p in zip(results, corrected, strict=True))


def usual_conditions(table: pandas.DataFrame) -> pandas.DataFrame:
    """The rows that models are fitted to: random content at a random place; all rows of a table without conditions."""
    keep = np.ones(len(table), dtype=bool)
    if CONTENT in table.columns:
        keep &= (table[CONTENT].isna() | (table[CONTENT].astype(str) == RANDOM)).to_numpy()
    if WARM in table.columns:
        keep &= (table[WARM].isna() | (table[WARM] == PLACED)).to_numpy()
    if "probe" in table.columns:
        keep &= (table["probe"].astype(str) != CONTENT_PROBE).to_numpy()
    return table if keep.all() else table.loc[keep]


def pooled_factors(frames: Sequence[pandas.DataFrame]) -> pandas.DataFrame:
    """One table of the observations of several archives, of the kernels that a factor was varied for.

    The column `archive` numbers them. Only rows in which some factor has a value are kept: a calibration times a
    million calls, of which a few hundred vary the content.
    """
    parts = []
    for number, frame in enumerate(frames):
        names = list(factors_of(frame))
        varied = frame[names].notna().any(axis=1).to_numpy() if names else np.zeros(len(frame), dtype=bool)
        parts.append(frame.loc[varied].assign(archive=number))
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame()


def _by_kernel(table: pandas.DataFrame) -> list[tuple[str, pandas.DataFrame]]:
    if "kernel" not in table.columns:
        return [(ANY_KERNEL, table)]
    return [(str(name), rows) for name, rows in table.groupby("kernel", observed=True)]


def _tested(
    rows: pandas.DataFrame, name: str, others: Sequence[str], kernel: str, permutations: int, seed: int
) -> FactorTest:
    # What is tested is neither a size nor part of a process.
    process, sizes = (
        [column for column in columns if column in rows.columns and column not in (name, *others)]
        for columns in (PROCESS, SIZES)
    )
    inside = not process or bool((rows.groupby(process, observed=True, dropna=False)[name].nunique() > 1).any())
    labels = [_label(value) for value in rows[name]]
    reference = COLUMNS_BY_NAME[name].reference if name in COLUMNS_BY_NAME else ""
    reference = reference if reference in labels else level_order(labels)[0]
    exchanged = "calls" if inside else "processes"
    stretches = _stretches(rows, process, labels, by_row="start_s" in (name, *others)) if inside else None
    if stretches is not None:
        exchanged = "places" if stretches.same_order else "stretches"
        values, labels, strata = _of_stretches(rows, labels, stretches, process, others, sizes)
    elif inside:
        values, strata = _of_calls(rows, labels, [*process, *others], sizes)
    else:
        values, labels, strata = _of_processes(rows, name, process, others, sizes)
    test = permutation_test(values, labels, strata, reference=reference, permutations=permutations, seed=seed)
    return _result(test, name, kernel, reference, exchanged)


def _stretches(rows: pandas.DataFrame, process: Sequence[str], labels: list[str], *, by_row: bool) -> Stretches | None:
    """by_row : whether the order of the calls is that of the rows, and `start_s` none"""
    order = np.arange(len(rows), dtype=np.float64)
    if not by_row and "start_s" in rows.columns and rows["start_s"].nunique() > len(rows) / 2:
        order = rows["start_s"].to_numpy(dtype=np.float64)
    of_process = np.unique(np.array(_joined(rows, process)), return_inverse=True)[1].astype(np.int64)
    return stretches_of(of_process, order, np.unique(labels, return_inverse=True)[1].astype(np.int64))


def _of_stretches(
    rows: pandas.DataFrame,
    labels: list[str],
    stretches: Stretches,
    process: Sequence[str],
    others: Sequence[str],
    sizes: Sequence[str],
) -> tuple[Floats, list[str], list[str]]:
    """Values, labels and strata of stretches, or of their places in an order that all processes have in common."""
    value, cells = _of_calls(rows, labels, others, sizes)
    table = rows.loc[:, []].assign(value=value, process=np.array(_joined(rows, process)), cell=cells)
    # The level of the process, and what sizes and other factors do, off; what is left are the stretches.
    for by in ("process", "cell"):
        table["value"] -= table.groupby(by)["value"].transform("median")
    units = table.assign(unit=stretches.number, label=labels).groupby("unit", sort=True)
    values: Floats = units["value"].median().to_numpy(dtype=np.float64)
    levels, strata = units["label"].first(), units["process"].first()
    if not stretches.same_order:
        return values, levels.tolist(), strata.tolist()
    count = np.bincount(stretches.place)
    return np.bincount(stretches.place, values) / count, levels.tolist()[: len(count)], [""] * len(count)


def _of_calls(
    rows: pandas.DataFrame, labels: list[str], fixed: Sequence[str], sizes: Sequence[str]
) -> tuple[Floats, list[str]]:
    values: Floats = np.log(rows[_RESULT].to_numpy(dtype=np.float64))
    base = _joined(rows, fixed)
    strata = [f"{one} {size}" for one, size in zip(base, _joined(rows, sizes), strict=True)]
    levels: dict[str, set[str]] = {}
    for stratum, label in zip(strata, labels, strict=True):
        levels.setdefault(stratum, set()).add(label)
    if sum(len(levels[stratum]) > 1 for stratum in strata) >= len(strata) / 2:
        return values, strata
    work = np.ones(len(rows))
    for letter in ("m", "n", "k", "size_bytes"):
        if letter in sizes:
            work *= np.maximum(rows[letter].to_numpy(dtype=np.float64), 1.0)
    classes = np.round(4 * np.log10(work)).astype(int)
    return values - np.log(work), [f"{one} {size}" for one, size in zip(base, classes, strict=True)]


def _of_processes(
    rows: pandas.DataFrame, name: str, process: Sequence[str], others: Sequence[str], sizes: Sequence[str]
) -> tuple[Floats, list[str], list[str]]:
    inner = [other for other in others if (rows.groupby(list(process), dropna=False)[other].nunique() > 1).any()]
    outer = [other for other in others if other not in inner]
    where = [column for column in process if column not in ("process", "attempt", "rank")]
    frame = rows.assign(**{_RESULT: np.log(rows[_RESULT].to_numpy(dtype=np.float64))})
    cells = [*sizes, *inner]
    if cells:
        frame[_RESULT] -= frame.groupby(cells, observed=True, dropna=False)[_RESULT].transform("median")
    units = frame.groupby([*process, name, *outer], observed=True, dropna=False)[_RESULT].median().reset_index()
    values: Floats = units[_RESULT].to_numpy(dtype=np.float64)
    labels = [_label(value) for value in units[name]]
    strata = _joined(units, [*where, *outer])
    levels: dict[str, set[str]] = {}
    for stratum, label in zip(strata, labels, strict=True):
        levels.setdefault(stratum, set()).add(label)
    if not any(len(labels_of_stratum) > 1 for labels_of_stratum in levels.values()):
        # The level never varies inside a block: blocks are what can be exchanged.
        strata = _joined(units, [column for column in [*where, *outer] if column not in ("block", "archive")])
    return values, labels, strata


def _result(test: PermutationTest, name: str, kernel: str, reference: str, exchanged: str) -> FactorTest:
    effects = tuple(
        LevelEffect(
            effect.level,
            float(np.exp(effect.difference)),
            None if np.isnan(effect.low) else float(np.exp(effect.low)),
            None if np.isnan(effect.high) else float(np.exp(effect.high)),
        )
        for effect in test.effects
        if not np.isnan(effect.difference)
    )
    note = ""
    if test.n == 0:
        note = "not testable: it varies in no stratum, so it is confounded with other differences"
    elif test.least_p > SIGNIFICANT:
        note = (
            f"not testable: even the strongest effect would have {p_text(test.least_p)} among {test.n} {exchanged}; "
            + _REMEDIES.get(exchanged, "measure more blocks")
        )
    return FactorTest(
        name,
        kernel,
        reference,
        effects,
        test.statistic,
        test.p_value,
        test.p_value,
        test.permutations,
        test.exact,
        exchanged,
        test.n,
        test.n_strata,
        note,
    )


def _label(value: object) -> str:
    """The level as text: a whole number read as a real one, for want of values elsewhere, is itself again."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _joined(rows: pandas.DataFrame, columns: Sequence[str]) -> list[str]:
    if not columns:
        return [""] * len(rows)
    return [" ".join(map(str, row)) for row in rows[list(columns)].itertuples(index=False)]


def factor_frame(tests: Sequence[FactorTest]) -> pandas.DataFrame:
    """A row for each level but the reference: its ratio with the 95 % interval, and what its test says.

    A test that found no level to compare has one row without a level.
    """
    rows = []
    for test in tests:
        of_test = {name: getattr(test, name) for name in _TYPES if hasattr(test, name)}
        effects = [{"level": one.level, "ratio": one.ratio, "low": one.low, "high": one.high} for one in test.effects]
        rows += [of_test | effect for effect in effects or [{}]]
    return pandas.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)


def factor_table(tests: Sequence[FactorTest]) -> str:
    """The tests as lines of text, and a sentence on each that finds something."""
    what = {test.column for test in tests}
    subject = "time" if what <= {DURATION} else ", ".join(sorted(what))
    header = ("factor", "kernel", "level", subject, "95 % interval", "p", "p (Holm)", "exchanged")
    lines: list[tuple[str, ...]] = []
    for test in tests:
        chances = (p_text(p).removeprefix("p = ") for p in (test.p_value, test.p_holm))
        test_cells = (*chances, f"{test.n} {test.exchanged} in {test.strata} strata")
        for number, effect in enumerate(test.effects):
            low, high = (None if end is None else end - 1 for end in (effect.low, effect.high))
            change, _, interval = signed_percent(effect.ratio - 1, low, high, "").partition(" (")
            names = (test.factor, test.kernel) if number == 0 else ("", "")
            lines.append(
                (*names, effect.level, change, interval.rstrip(")") or "-", *(test_cells if number == 0 else ("",) * 3))
            )
    return "\n".join([*([text_table(header, lines, left=None)] if lines else []), *map(sentence, tests)])


def sentence(test: FactorTest) -> str:
    if test.note:
        return f"{test.factor} of {test.kernel}: {test.note}"
    if not test.matters:
        on = "" if test.column == DURATION else f" on {test.column}"
        return f"{test.kernel}: no significant effect of {test.factor}{on} ({p_text(test.p_holm)}){_though(test)}"
    largest = max(test.effects, key=lambda effect: abs(math.log(effect.ratio)))
    subject, more, less, high = f"{test.kernel} takes", "more time", "less time", "long"
    if test.column != DURATION:
        of = "" if test.kernel == ANY_KERNEL else f" of {test.kernel}"
        subject, more, less, high = f"{test.column}{of} is", "higher", "lower", "high"
    if largest.ratio >= MANIFOLD:
        how, than = f"{significant(largest.ratio)} times as {high}", "as"
    else:
        how, than = f"{percent(abs(largest.ratio - 1))} {more if largest.ratio > 1 else less}", "than"
    return (
        f"{subject} {how} with {test.factor}={largest.level} {than} with {test.factor}={test.reference} "
        f"({p_text(test.p_holm)}, {'all ' if test.exact else ''}{test.permutations} permutations)"
    )


def _though(test: FactorTest) -> str:
    """The ranks, of which p is, see no effect that goes either way; the mean, of which the interval is, may."""
    clear = [e for e in test.effects if e.low is not None and e.high is not None and not e.low <= 1.0 <= e.high]
    if test.p_value <= SIGNIFICANT or not clear:
        return ""
    return (
        f"; {clear[0].level} differs in the mean, not in the ranks: it may matter for some sizes only, "
        "or a few values are far off"
    )
