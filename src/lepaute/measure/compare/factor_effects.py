"""What factors beside the library do: by how much a level changes an operation, and whether it changes which library is
the faster one (section 5 of "MPI Benchmarking Revisited", figures 21 to 24).

Every combination of levels came equally often in each block, in one random order with all others. So the mpiruns of one
library, with two levels of one factor and the same levels of the others, are exchangeable inside a block where the
factor does nothing; block and other levels together are a stratum, which test and interval (`stats.aligned_ranks`) take
as a block. The effect is the shift of the logarithms, common to the strata. P-values of all effects are corrected
together; those of the libraries' order at each level of a factor are corrected together for its levels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas

from lepaute.kit.text import counted, exact_size
from lepaute.measure.compare.summaries import ROW
from lepaute.measure.compare.verdicts import CONFIDENCE, CORRECTIONS, SIGNIFICANT, Correction, Tested, undisturbed_pairs
from lepaute.measure.compare.wording import ratio_text
from lepaute.measure.comparison.cases import name_of
from lepaute.stats.aligned_ranks import aligned_rank_test, aligned_shift, least_p_of
from lepaute.stats.decision import Decision, Weakness


@dataclass(frozen=True, slots=True)
class FactorEffect(Tested):
    """A level of a factor against the first one, for a library and a row on a number of ranks.

    ratio: of the time with `level` over that with `reference`, with its 95 % interval
    p_value, p_corrected: two-sided, before and after the correction for all effects
    """

    factor: str
    reference: str
    level: str
    library: str
    ranks: int
    operation: str
    form: str
    size_bytes: int
    reference_s: float
    level_s: float
    ratio: float
    low: float
    high: float
    p_value: float
    p_corrected: float
    margin: float
    weaknesses: tuple[Weakness, ...] = ()

    @property
    def outcome(self) -> Literal["slower", "faster", "no effect above the margin", "undecided", "untested"]:
        changed: Literal["slower", "faster"] = "slower" if self.ratio > 1 else "faster"
        return self.decision.pick(changed, "no effect above the margin", "undecided", "untested")


@dataclass(frozen=True, slots=True)
class _Sides:
    """Logarithms of times, whether they are of the level, and their strata; has_enough_mpiruns: False if no
    undisturbed mpiruns can be compared."""

    values: npt.NDArray[np.float64]
    second: npt.NDArray[np.bool_]
    strata: npt.NDArray[np.int64]
    has_enough_mpiruns: bool


def factor_effects(
    summaries: pandas.DataFrame, varied: Mapping[str, Sequence[str]], *, margin: float, correction: Correction = "fdr"
) -> tuple[FactorEffect, ...]:
    """Every level but the first of every factor, for each library, row and number of ranks.

    summaries: as `mpirun_summaries` gives, with the columns ranks and levels (a mapping of factors to levels)
    """
    found: list[tuple[tuple[str, str, str], tuple[object, ...], _Sides]] = []
    table = summaries[summaries["median_s"] > 0]
    table = table if "disturbed" in table else table.assign(disturbed=False)
    for factor, (reference, *others) in varied.items():
        level_of, strata = _levels_and_strata(table, factor)
        for level in others:
            chosen = level_of.isin([reference, level])
            for key, rows in table[chosen].groupby(["library", "ranks", *ROW], observed=True):
                second = (level_of[rows.index] == level).to_numpy(dtype=np.bool_)
                if second.any() and not second.all():
                    logs = np.log(rows["median_s"].to_numpy(dtype=float))
                    stratum = np.asarray(strata[rows.index], np.int64)
                    undisturbed = undisturbed_pairs(rows["disturbed"].to_numpy(), second, stratum)
                    kept = np.ones(len(rows), dtype=np.bool_) if undisturbed is None else undisturbed
                    sides = _Sides(logs[kept], second[kept], stratum[kept], undisturbed is not None)
                    found.append(((factor, reference, level), key, sides))
    tests = [
        aligned_rank_test(sides.values, sides.second, sides.strata).two_sided if sides.has_enough_mpiruns else 1.0
        for _, _, sides in found
    ]
    effects = []
    for (names, key, sides), p_value, p_corrected in zip(found, tests, CORRECTIONS[correction](tests), strict=True):
        shift = aligned_shift(sides.values, sides.second, sides.strata, CONFIDENCE)
        library, ranks, operation, form, size_bytes = map(str, key)
        effects.append(
            FactorEffect(
                *(*names, library, int(ranks), operation, form, int(size_bytes)),
                reference_s=exp(float(np.median(sides.values[~sides.second]))),
                level_s=exp(float(np.median(sides.values[sides.second]))),
                ratio=exp(shift.estimate),
                low=exp(shift.low) if sides.has_enough_mpiruns else 0.0,
                high=exp(min(shift.high, 700.0)) if sides.has_enough_mpiruns and isfinite(shift.high) else inf,
                p_value=p_value,
                p_corrected=p_corrected,
                margin=margin,
                weaknesses=_weaknesses(sides),
            )
        )
    return tuple(effects)


def _weaknesses(sides: _Sides) -> tuple[Weakness, ...]:
    if not sides.has_enough_mpiruns:
        return (Weakness("disturbed", "no undisturbed mpiruns of both levels"),)
    enough = least_p_of(sides.second, sides.strata) <= SIGNIFICANT
    return () if enough else (Weakness("too few", "too few mpiruns of each level to show anything"),)


def _levels_and_strata(summaries: pandas.DataFrame, factor: str) -> "tuple[pandas.Series[str], pandas.Series[int]]":
    """For each mpirun, the level of a factor, and a number of its block with the levels of all others."""
    rest = summaries["levels"].map(
        lambda levels: tuple(sorted((name, each) for name, each in levels.items() if name != factor))
    )
    return summaries["levels"].map(lambda levels: levels.get(factor, "")), strata_of(summaries.assign(levels=rest))


def strata_of(summaries: pandas.DataFrame) -> "pandas.Series[int]":
    """A number for each block with each combination of levels (hashable, in the column levels)."""
    return summaries.groupby([summaries["block"], summaries["levels"]], sort=False, observed=True).ngroup()


def effect_sentences(effects: Sequence[FactorEffect]) -> list[str]:
    """For each level how many rows it changes, and by how much at most."""
    lines = []
    for factor, reference, level in dict.fromkeys((row.factor, row.reference, row.level) for row in effects):
        of_level = [row for row in effects if (row.factor, row.level) == (factor, level)]
        shown = [row for row in of_level if row.decision.is_shown]
        what, rows = f"{factor} {level} against {reference}", counted(len(of_level), "row")
        if not shown:
            none = f"{what} is shown to change none of {rows} by more than {100 * of_level[0].margin:g} %"
            open_rows = f"{what} is not shown to change any of {rows}"
            untested = f"{open_rows}, {sum(row.decision.answer == 'unknown' for row in of_level)} not tested"
            decision = Decision.of_several((row.decision for row in of_level), "undecided")
            lines.append(decision.words("", none, open_rows, untested))
            continue
        most = max(shown, key=lambda row: abs(log(row.ratio)))
        slower = sum(row.outcome == "slower" for row in shown)
        lines.append(
            f"{what} makes {slower} of {rows} slower and {len(shown) - slower} faster, most of "
            f"all {name_of(most.operation, most.form)} of {exact_size(most.size_bytes)} of {most.library}: "
            f"{ratio_text(most)} times as long"
        )
    return lines
