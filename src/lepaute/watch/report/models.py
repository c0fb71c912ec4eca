"""Models of several coefficients that are tested as one vector: their names for people, and which coefficient moved.

A vector leaves its usual region, and nothing says yet which of its coefficients did it: those of a regression trade off
against each other, so that the largest relative change is often noise. What moved is the fewest coefficients without
which the others are as before. If only some moved, the others have the distribution they had, whatever the correlation
with those, and their own test (of p less this many) has a uniform p-value. So all single coefficients whose others
pass their test at 1 % are a confidence set of the one that moved, at 99 %; where none passes, pairs, and then triples
(Mason, Young and Tracy, Journal of Quality Technology 27, 1995, part T² in the same conditional terms).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from lepaute.kit.text import p_text, signed_percent
from lepaute.stats.expanding import Floats, Integers, expanding_moments
from lepaute.stats.prediction_region import region_tests
from lepaute.watch.factors.dgemm import MODEL_FACTORS, PRODUCT_FACTORS, RESIDUAL_FACTORS
from lepaute.watch.judging.judge import AND, CONFIDENCE, compared
from lepaute.watch.open_regressions import OpenRegressions
from lepaute.watch.report.factor_history import FactorRows
from lepaute.watch.report.summary import recent_s
from lepaute.watch.values import vectors

#: Factors -> what the vector of them is called.
MODELS = {
    MODEL_FACTORS: "dgemm model, 8 coefficients",
    PRODUCT_FACTORS: "dgemm model, 3 products",
    RESIDUAL_FACTORS: "dgemm scatter model, 8 coefficients",
}
#: Models that are tested as a vector wherever all of their factors are watched.
WATCHED = (MODEL_FACTORS, RESIDUAL_FACTORS)
#: The others are as before from this p-value on; as many coefficients, and other sets, are named at most.
AS_BEFORE, MAX_MOVED, MAX_SETS = 0.01, 3, 3
#: Machines of which it is said: this many regressed, and as many suspicious ones.
MAX_MACHINES = 50


def title_of(factor: str) -> str:
    """A factor's name; of a vector "a & b" that of its model, or "a and b", "3 factors: a, b, c"."""
    names = tuple(factor.split(AND))
    known = next((title for model, title in MODELS.items() if set(model) == set(names)), None)
    if known is not None or len(names) == 1:
        return known or factor
    return " and ".join(names) if len(names) == 2 else f"{len(names)} factors: {', '.join(names)}"


def models_of(factors: set[str], tested: list[str]) -> list[str]:
    """The vectors of a cluster: those that were tested, and the models all of whose coefficients it has."""
    every = {frozenset(name.split(AND)): name for name in tested}
    for model in WATCHED:
        if factors >= set(model):
            every.setdefault(frozenset(model), AND.join(model))
    return list(every.values())


@dataclass(frozen=True, slots=True)
class Moved:
    """Move of a machine's vector in its latest test, of the mean of r jobs up to the one that started at started_s.

    p_value : of the whole vector
    moved  : the sets of coefficients, as few as can be, of which one explains it, the likeliest first; none where no
             few of them do. A single one that moved is among them with a probability of 99 %
    others : the p-value of the other coefficients, of the first of these sets
    changes : of each coefficient, the mean of the r jobs relative to the mean of the reference, NaN if that is 0
    deviations : the same in standard deviations of such a mean
    """

    node: str
    cpu: int
    started_s: float
    r: int
    p_value: float
    moved: tuple[tuple[str, ...], ...]
    others: float
    changes: tuple[float, ...]
    deviations: tuple[float, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """All that are in one of the sets."""
        return tuple(dict.fromkeys(name for each in self.moved for name in each))

    def text(self, names: tuple[str, ...]) -> str:
        """dgemm_mnk_s +3.1 %; the other 7 are as before (p = 0.4). Of several sets, one of which moved, all."""
        if not self.moved:
            return f"more than {MAX_MOVED} of them"
        shift = dict(zip(names, self.changes, strict=True))
        first = " and ".join(f"{name} {signed_percent(shift[name])}" for name in self.moved[0])
        rest = f"the other {len(names) - len(self.moved[0])} are as before ({p_text(self.others)})"
        others = [" and ".join(each) for each in self.moved[1:]]
        if len(others) > MAX_SETS:
            others = [*others[:MAX_SETS], f"{len(others) - MAX_SETS} more"]
        return f"{first}; {rest}" + (f"; or instead {', or '.join(others)}" if others else "")


def moved_in(factor: FactorRows, found: OpenRegressions) -> list[Moved]:
    """Machines that stand out of a model: regressed ones, and those suspicious lately; none of a single factor."""
    if not factor.is_vector or not len(factor.rows):
        return []
    rows, suspects = factor.rows, factor.suspects
    suspects = suspects[suspects["started_s"] >= recent_s(float(rows["started_s"].max()))]
    standing = rows[rows["regressed"]].drop_duplicates(["node", "cpu"], keep="last")
    machines = {
        (str(node), int(cpu))
        for table in (standing.head(MAX_MACHINES), suspects.nsmallest(MAX_MACHINES, "p_value"))
        for node, cpu in zip(table["node"], table["cpu"], strict=True)
    }
    values = found.values[found.values["cluster"] == factor.cluster]
    return moved_coefficients(values, found, factor.names, machines, factor.window or 1)


def moved_coefficients(
    values: pd.DataFrame, found: OpenRegressions, names: tuple[str, ...], machines: set[tuple[str, int]], r: int
) -> list[Moved]:
    """Of these (node, cpu) of a cluster, each by its latest test of r jobs that is no outlier; others are left out."""
    keys = zip(values["node"], values["cpu"], strict=True)
    own = values[np.array([key in machines for key in keys], np.bool_)] if machines else values.iloc[:0]
    if not set(names) <= set(own["factor"]):
        return []
    case = compared(vectors(own, names), found.changelog, names, pooled=False, standing=found.rows)
    tests = case.tests(r, CONFIDENCE)
    last = tests[(tests["missing"] == 0) & ~tests["outlier"]].drop_duplicates(["node", "cpu"], keep="last")
    moments = expanding_moments(case.x, case.references.series, ~case.references.outlier, r, case.frozen.most)
    at = last.index.to_numpy()
    new, mean, n = moments.window_mean[at], moments.mean[at], moments.n[at]
    found_sets = _moved(new, mean, moments.scatter[at], n, r)
    variance = np.diagonal(moments.scatter[at], axis1=1, axis2=2) / (n - 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.where(mean != 0, (new - mean) / np.abs(mean), np.nan)
        deviations = (new - mean) / np.sqrt(variance * (1 / n + 1 / r)[:, None])
    said = [
        Moved(
            str(row["node"]), int(row["cpu"]), float(row["started_s"]), r, float(row["p_value"]),
            tuple(tuple(names[each] for each in one) for one in sets), others,
            tuple(changes[place].tolist()), tuple(deviations[place].tolist()),
        )
        for place, (row, (sets, others)) in enumerate(zip(last.to_dict("records"), found_sets, strict=True))
    ]  # fmt: skip
    return sorted(said, key=lambda each: each.p_value)


def _moved(
    new: "Floats", mean: "Floats", scatter: "Floats", n: "Integers", r: int
) -> list[tuple[Sequence[tuple[int, ...]], float]]:
    """For each test the sets of positions without which the others are as before, and the p-value of these; (), NaN."""
    tests, p = new.shape
    found: list[tuple[Sequence[tuple[int, ...]], float]] = [((), float("nan"))] * tests
    for size in range(1, min(MAX_MOVED, p - 1) + 1):
        unsettled = np.array([place for place, (sets, _) in enumerate(found) if not sets], np.int64)
        if not len(unsettled):
            break
        sets = list(combinations(range(p), size))
        chances = np.empty((len(sets), len(unsettled)))
        for place, each in enumerate(sets):
            rest = [one for one in range(p) if one not in each]
            mean_of_rest, part = mean[unsettled][:, rest], scatter[unsettled][:, rest][:, :, rest]
            count = n[unsettled]
            others = region_tests(new[unsettled][:, rest], mean_of_rest, part, count, count - 1, r, CONFIDENCE)
            chances[place] = others.p_value
        for column, test in enumerate(unsettled.tolist()):
            order = np.argsort(-chances[:, column], kind="stable")
            if passed := [sets[place] for place in order.tolist() if chances[place, column] >= AS_BEFORE]:
                found[test] = passed, float(chances[order[0], column])
    return found
