"""Whether a factor matters: stratified permutation tests, exact where all arrangements can be looked at.

Labels are exchanged inside strata only (a size, a block, a process), so nothing else that differs between strata can
pass for an effect of the factor, and where a design has drawn the labels at random no other assumption is made.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from lepaute.errors import InputError
from lepaute.kit.later import stats
from lepaute.kit.text import level_order
from lepaute.stats.expanding import Floats, Integers
from lepaute.stats.student import SD_OF_MAD, student_quantile

PERMUTATIONS = 1999
#: Arrangements of labels that are held in memory at once, in cells.
_BATCH_CELLS = 2_000_000
#: Values times permutations that are looked at: of ten thousand values and more, fewer than asked for.
_MAX_CELLS, _MIN_PERMUTATIONS = 20_000_000, 199
#: Fewer arrangements than this have no 95 % interval: its tails would be less than one of them.
_MIN_FOR_INTERVAL = 40
#: Values further from what is typical of stratum and level, in robust standard deviations, are drawn in.
_MAX_DEVIATIONS = 4.0
#: Smaller strata share the spread of all of them.
_ENOUGH_FOR_SPREAD = 12


@dataclass(frozen=True, slots=True)
class Effect:
    """A level against the reference: difference of the values, with its 95 % interval (NaN if there is none)."""

    level: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """levels      : the reference first
    statistic   : Kruskal and Wallis's form, or that of a trend, of the ranks in their strata
    p_value     : (1 + arrangements at least as clear) / (1 + permutations); of all arrangements where `exact`
    least_p     : the p-value that the clearest effect of all would have had: where it is large, nothing can be shown
    permutations: how many arrangements were looked at
    n, n_strata : values and strata that can distinguish levels; those of strata with one level are left out
    """

    levels: tuple[str, ...]
    statistic: float
    p_value: float
    least_p: float
    permutations: int
    exact: bool
    n: int
    n_strata: int
    effects: tuple[Effect, ...]


def permutation_test(
    values: Any,
    labels: Sequence[str],
    strata: Sequence[Any],
    *,
    reference: str | None = None,
    ordered: Sequence[str] | None = None,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> PermutationTest:
    """Tests that the labels have nothing to do with the values, given the strata.

    values   : shape (n,), finite; the logarithm of durations, for effects that are ratios
    labels   : the level of the factor of each value
    strata   : inside which labels are exchanged; any values that can be compared for equality
    reference: the level that others are compared with; the first unless given, see `level_order`
    ordered  : all levels in their order, to test for a trend along it instead of for any difference
    permutations: of more than ten thousand values fewer are looked at, 199 at least
    The statistic is the sum over levels of S^2 / n, S the sum of the level's scores; a score is the rank in the
    stratum, centred, over n + 1 (the weights of van Elteren's test of 1960), so that neither the spread of a stratum
    nor an outlier has weight of its own. Of a trend it is |sum of score x place of the level in the order|.
    The +1 rule: Phipson and Smyth, "Permutation p-values should never be zero", 2010.
    An effect is the mean difference inside strata, values far from what is typical drawn in to 4 robust standard
    deviations; its interval holds the shifts that the same exchange would not refuse at 5 %, widened as Student's where
    values are few.
    Raises InputError for shapes that differ, values that are not finite, or labels that `ordered` does not list.
    """
    y = np.asarray(values, dtype=np.float64)
    if y.ndim != 1 or len(labels) != len(y) or len(strata) != len(y) or not np.all(np.isfinite(y)):
        raise InputError(
            f"a permutation test needs as many finite values as labels and strata; got {y.shape}, {len(labels)} and "
            f"{len(strata)}; drop missing values"
        )
    names = level_order(labels) if ordered is None else list(ordered)
    if unknown := sorted(set(labels) - set(names)):
        raise InputError(f"the level {unknown[0]!r} is missing from the ordered levels; list all levels")
    if reference in names and ordered is None:
        names = [reference, *(name for name in names if name != reference)]
    place = {name: position for position, name in enumerate(names)}
    codes = np.array([place[label] for label in labels], dtype=np.int64)
    groups = np.unique(np.array([str(one) for one in strata]), return_inverse=True)[1].astype(np.int64)
    keep = _informative(codes, groups)
    y, codes, groups = y[keep], codes[keep], groups[keep]
    if len(y) == 0:
        return PermutationTest(tuple(names), 0.0, 1.0, 1.0, 1, True, 0, 0, ())
    permutations = min(permutations, max(_MIN_PERMUTATIONS, _MAX_CELLS // len(y)))
    rng = np.random.default_rng(seed)
    scores = _scores(y, groups)
    weights = np.arange(len(names), dtype=np.float64) if ordered is not None else None
    observed = float(_statistic(codes[None, :], scores, len(names), weights)[0])
    as_clear, count, exact = 0, 0, False
    clearest, of_clearest = -1.0, 0
    for arrangement, everything in _arrangements(codes, groups, permutations, rng):
        drawn = _statistic(arrangement, scores, len(names), weights)
        as_clear += int(np.count_nonzero(drawn >= observed * (1 - 1e-9) - 1e-15))
        count += len(drawn)
        exact = everything
        if (largest := float(drawn.max())) > clearest * (1 + 1e-9) + 1e-15:
            clearest, of_clearest = largest, 0
        of_clearest += int(np.count_nonzero(drawn >= clearest * (1 - 1e-9) - 1e-15))
    p_value = as_clear / count if exact else (1 + as_clear) / (1 + count)
    least_p = of_clearest / count if exact else 1 / (1 + count)
    calm = _drawn_in(y, codes, groups)
    effects = tuple(_effect(names[code], calm, codes, groups, code, permutations, rng) for code in range(1, len(names)))
    return PermutationTest(
        tuple(names), observed, p_value, least_p, count, exact, len(y), len(np.unique(groups)), effects
    )


def _informative(codes: Integers, groups: Integers) -> npt.NDArray[np.bool_]:
    """Which values lie in a stratum with more than one level."""
    low = np.full(int(groups.max()) + 1 if len(groups) else 0, np.iinfo(np.int64).max)
    high = np.full(len(low), -1, dtype=np.int64)
    np.minimum.at(low, groups, codes)
    np.maximum.at(high, groups, codes)
    result: npt.NDArray[np.bool_] = (low < high)[groups]
    return result


def _members(groups: Integers) -> list[Integers]:
    order = np.argsort(groups, kind="stable").astype(np.int64)
    return list(np.split(order, np.flatnonzero(np.diff(groups[order])) + 1))


def _scores(y: Floats, groups: Integers) -> Floats:
    """Mid-ranks in the stratum, centred, over its size plus one."""
    scores = np.empty(len(y))
    for mine in _members(groups):
        scores[mine] = (stats.rankdata(y[mine]) - (len(mine) + 1) / 2) / (len(mine) + 1)
    return scores


def _statistic(codes: Integers, scores: Floats, levels: int, weights: Floats | None) -> Floats:
    """Of each arrangement, a row of `codes`."""
    if weights is not None:
        trend: Floats = np.abs(weights[codes] @ scores)
        return trend
    result = np.zeros(len(codes))
    for level in range(levels):
        at_level = codes == level
        size = int(np.count_nonzero(at_level[0]))
        if size:
            result += (at_level @ scores) ** 2 / size
    return result


def _arrangements(
    codes: Integers, groups: Integers, most: int, rng: np.random.Generator
) -> Iterator[tuple[Integers, bool]]:
    """Batches of labels exchanged inside strata: all there are where these are no more than `most`, else `most`."""
    members = _members(groups)
    total = 1
    for mine in members:
        total *= _multinomial(codes[mine])
        if total > most:
            break
    batch = max(1, _BATCH_CELLS // len(codes))
    if total <= most:
        rows = np.empty((total, len(codes)), dtype=np.int64)
        choices = [list(_distinct(codes[mine])) for mine in members]
        for row, chosen in zip(rows, product(*choices), strict=True):
            for mine, part in zip(members, chosen, strict=True):
                row[mine] = part
        for start in range(0, total, batch):
            yield rows[start : start + batch], True
        return
    order = np.argsort(groups, kind="stable")
    base = groups[order].astype(np.float64)
    sorted_codes = codes[order]
    for start in range(0, most, batch):
        count = min(batch, most - start)
        # Random keys below 1 on top of the stratum's number: sorting shuffles inside strata and nowhere else.
        shuffled = np.argsort(base + rng.random((count, len(codes))), axis=1)
        rows = np.empty((count, len(codes)), dtype=np.int64)
        rows[:, order] = sorted_codes[shuffled]
        yield rows, False


def _multinomial(codes: Integers) -> int:
    result, left = 1, len(codes)
    for size in np.unique(codes, return_counts=True)[1]:
        result *= math.comb(left, int(size))
        left -= int(size)
    return result


def _distinct(codes: Integers) -> Iterator[tuple[int, ...]]:
    counts = {int(code): int(size) for code, size in zip(*np.unique(codes, return_counts=True), strict=True)}

    def extend(prefix: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(prefix) == len(codes):
            yield prefix
            return
        for code, left in counts.items():
            if left:
                counts[code] -= 1
                yield from extend((*prefix, code))
                counts[code] += 1

    return extend(())


def _drawn_in(y: Floats, codes: Integers, groups: Integers) -> Floats:
    """The values, those far from the median of their stratum and level moved closer to it."""
    shift = _typical_shifts(y, codes, groups)[codes]
    level = shift.copy()
    members = _members(groups)
    for mine in members:
        level[mine] += np.median(y[mine] - shift[mine])
    rest = y - level
    result = y.copy()
    moved = np.abs(rest[rest != 0])
    common = float(np.median(moved)) if len(moved) else 0.0
    for mine in members:
        magnitudes = np.abs(rest[mine][rest[mine] != 0])
        typical = float(np.median(magnitudes)) if len(mine) >= _ENOUGH_FOR_SPREAD and len(magnitudes) else common
        most = _MAX_DEVIATIONS * SD_OF_MAD * typical
        result[mine] = level[mine] + np.clip(rest[mine], -most, most)
    return result


def _typical_shifts(y: Floats, codes: Integers, groups: Integers) -> Floats:
    """A first guess of each level's shift against level 0: the median over strata of the difference of medians."""
    shifts: list[list[float]] = [[] for _ in range(int(codes.max()) + 1)]
    for mine in _members(groups):
        members = codes[mine]
        medians = {int(code): float(np.median(y[mine[members == code]])) for code in np.unique(members)}
        for code, median in medians.items():
            if 0 in medians:
                shifts[code].append(median - medians[0])
    return np.array([float(np.median(values)) if values else 0.0 for values in shifts])


def _effect(
    level: str, y: Floats, codes: Integers, groups: Integers, code: int, permutations: int, rng: np.random.Generator
) -> Effect:
    """The shift of level `code` against level 0, from the strata that have both.

    With the weights n0 n1 / (n0 + n1) of its strata, the mean difference is the sum of the values of the level, each
    less the mean of its stratum, over the sum of the weights.
    """
    two = np.isin(codes, (0, code))
    y, marks, groups = y[two], (codes[two] == code).astype(np.int64), groups[two]
    both = _informative(marks, groups) if len(marks) else np.zeros(0, dtype=bool)
    y, marks, groups = y[both], marks[both], np.unique(groups[both], return_inverse=True)[1].astype(np.int64)
    if len(y) == 0:
        return Effect(level, math.nan, math.nan, math.nan)
    size = np.bincount(groups).astype(np.float64)
    ones = np.bincount(groups, weights=marks)
    weight = float(np.sum(ones * (size - ones) / size))

    def centred(x: Floats) -> Floats:
        result: Floats = (x - (np.bincount(groups, weights=x) / size)[groups]) / weight
        return result

    difference = float(marks @ centred(y))
    rest = centred(y - difference * marks)
    drawn = np.concatenate([rows @ rest for rows, _ in _arrangements(marks, groups, permutations, rng)])
    if len(drawn) < _MIN_FOR_INTERVAL:
        return Effect(level, difference, math.nan, math.nan)
    # Few residuals, one degree of freedom less: exchanged, they spread like a normal estimate whose error is known.
    freedom, left = len(y) - len(size), max(len(y) - len(size) - 1, 1)
    few = math.sqrt(freedom / left) * student_quantile(0.975, left) / student_quantile(0.975, 1e9)
    low, high = few * np.quantile(drawn, [0.025, 0.975])
    return Effect(level, difference, difference - float(high), difference - float(low))
