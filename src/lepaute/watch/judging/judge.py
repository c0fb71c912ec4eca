"""All tests of a table of factor values: is what a job found of a machine what earlier jobs found of it?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import InputError
from lepaute.stats.expanding import Booleans, Floats, Integers, expanding_moments
from lepaute.stats.prediction_region import RegionTests, log10_p_values, region_tests
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.digests import Digests, group_digests, machine_digests, with_beginnings
from lepaute.watch.judging.pooling import SharedDays, contrasts, shared_days
from lepaute.watch.judging.reference import Frozen, References, frozen, references
from lepaute.watch.values import DAY_S, MACHINE, check_values, vectors

if TYPE_CHECKING:
    import pandas as pd

#: Of the tests by default; the windows are the latest job and the latest five.
CONFIDENCE = 0.9999
WINDOWS = (1, 5)
#: Joins the names of factors that are tested as one vector.
AND = " & "
#: Machines are judged in turn, so many numbers of their covariances at a time.
_NUMBERS_AT_ONCE = 1_000_000
_FIELDS = ("n", "degrees_of_freedom", "statistic", "p_value", "direction", "low", "high", "missing")


def judge(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    factors: "Sequence[str | Sequence[str]] | None" = None,
    windows: Sequence[int] = WINDOWS,
    confidence: float = CONFIDENCE,
    pooled: bool = False,
    standing: "pd.DataFrame | None" = None,
) -> "pd.DataFrame":
    """Tests each observation of each machine against its reference: one row a test.

    values  : as watch.values says
    factors : each a factor, or several that are tested as one vector; every factor of the table by itself by default
    windows : the numbers r of latest observations whose mean is tested
    confidence : of low and high
    pooled  : the covariance is that within all machines of a cluster and stratum, and what a day did to all of them is
    taken off; see `pooling`
    standing : rows of `open_regressions`: no reference has values from the beginning of its regression on

    Columns: cluster, node, cpu, job, started_s, stratum, archive, factor (names joined by AND), r, p, pooled, outlier
    (logged as one: tested, but no reference), n, degrees_of_freedom (of the covariance), statistic, p_value, direction,
    low, high (of the mean of r observations, in the unit of the factor), missing, log10_p (of the p-value, also where
    that is too small for a number). Where `missing` is not 0, there are not yet enough observations, by so many at
    least, and statistic, p_value, low, high and log10_p are NaN.
    Raises InputError for a table that is none or empty, a factor that it does not have, and windows or a confidence
    that cannot be.
    """
    table = check_values(values)
    wanted = vectors_asked(sorted(table["factor"].unique()) if factors is None else factors)
    if not wanted:
        raise InputError("there is nothing to test: the table of factor values is empty")
    check_windows(windows)
    known = changelog or Changelog()
    parts = []
    for names in wanted:
        case = compared(vectors(table, names), known, names, pooled, standing)
        parts += [with_log10(case.tests(r, confidence)) for r in dict.fromkeys(windows)]
    return joined(parts)


def vectors_asked(factors: "Sequence[str | Sequence[str]]") -> list[tuple[str, ...]]:
    """Each a vector of factors, or one factor; raises InputError for one that is none."""
    every = (factors,) if isinstance(factors, str) else factors
    wanted = [(each,) if isinstance(each, str) else tuple(each) for each in every]
    for names in wanted:
        if not names or len(set(names)) < len(names):
            raise InputError(f"the factors {names!r} cannot be tested as one vector; give each once")
    return wanted


def check_windows(windows: Sequence[int]) -> None:
    """Raises InputError where there is none."""
    if not windows:
        raise InputError("no window is given; give numbers of observations such as 1 and 5")


def with_log10(tests: "pd.DataFrame") -> "pd.DataFrame":
    """The tests with a column log10_p."""
    numbers = (tests[name].to_numpy(np.float64) for name in ("statistic", "p", "degrees_of_freedom"))
    return tests.assign(log10_p=log10_p_values(*numbers))


def joined(parts: "list[pd.DataFrame]") -> "pd.DataFrame":
    """The rows of all of them; takes the columns out of the parts one after the other, to spare memory."""
    import pandas as pd

    if len(parts) == 1:
        return parts[0].reset_index(drop=True)
    return pd.DataFrame(
        {name: pd.concat([part.pop(name) for part in parts], ignore_index=True) for name in list(parts[0].columns)}
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """Observations of one vector of factors, in the order of machine and time, with what each is compared with.

    keys : their columns but for the values, which are x, shape (rows, p)
    frozen : references that end where an open regression begins
    shared : what peers say of each day; None where each machine is tested by itself
    digest : tells what a verdict rests on, shape (rows,)
    """

    keys: "pd.DataFrame"
    names: tuple[str, ...]
    x: Floats
    found: References
    frozen: Frozen
    shared: SharedDays | None
    digest: Digests

    def tests(self, r: int, confidence: float, chosen: Booleans | None = None) -> "pd.DataFrame":
        """The tests with windows of r observations, of the chosen rows (all by default)."""
        rows, p = self.x.shape
        which = np.ones(rows, np.bool_) if chosen is None else chosen
        parts = [
            self._tests(block, which[block], r, confidence)
            for block in _blocks(self.keys, max(1, _NUMBERS_AT_ONCE // (p * p)))
            if which[block].any()
        ] or [self._tests(slice(0, 0), which[:0], r, confidence)]
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS}
        return (
            self.keys[which]
            .reset_index(drop=True)
            .assign(
                factor=AND.join(self.names),
                r=r,
                p=p,
                pooled=self.shared is not None,
                outlier=self.found.outlier[which],
                **columns,
            )
        )

    def _tests(self, block: slice, which: Booleans, r: int, confidence: float) -> RegionTests:
        x, series, kept = self.x[block], self.found.series[block], ~self.found.outlier[block]
        most = self.frozen.most[block]
        if self.shared is None:
            moments = expanding_moments(x, series, kept, r, most)
            return region_tests(
                moments.window_mean[which],
                moments.mean[which],
                moments.scatter[which],
                moments.n[which],
                moments.n[which] - 1,
                r,
                confidence,
            )
        shared = self.shared.of(block)
        moments = expanding_moments(x - shared.effect, series, kept, r, most)
        against = contrasts(shared, moments, r, which)
        window = moments.window[which]
        new = np.where(window[:, -1:] >= 0, x[window].mean(axis=1), np.nan)
        return region_tests(
            new,
            against.expected,
            against.scatter,
            moments.n[which],
            against.degrees_of_freedom,
            r,
            confidence,
            against.variance,
            against.missing,
        )


def compared(
    observations: "pd.DataFrame",
    changelog: Changelog,
    names: tuple[str, ...],
    pooled: bool,
    standing: "pd.DataFrame | None" = None,
) -> Compared:
    """What each of the observations, a table of watch.values.vectors, is compared with."""
    found = references(observations, changelog)
    ended = frozen(observations, found, names, standing)
    x = observations[list(names)].to_numpy(np.float64)
    keys = observations.drop(columns=list(names))
    if not pooled:
        digest = with_beginnings(machine_digests(keys, found), keys, ended.begun_s)
        return Compared(keys, names, x, found, ended, None, digest)
    group: Integers = keys.groupby(["cluster", "stratum"], sort=False).ngroup().to_numpy().astype(np.int64)
    node: Integers = keys.groupby(["cluster", "node"], sort=False).ngroup().to_numpy().astype(np.int64)
    started_s = keys["started_s"].to_numpy(np.float64)
    shared = shared_days(x, found, started_s, group, node)
    day = np.floor(started_s / DAY_S).astype(np.int64)
    digest = with_beginnings(group_digests(keys, found, group, day), keys, ended.begun_s)
    return Compared(keys, names, x, found, ended, shared, digest)


def _blocks(keys: "pd.DataFrame", most: int) -> list[slice]:
    """Slices of whole machines, of about `most` rows."""
    rows = len(keys)
    if not rows:  # no job of the factor is done
        return [slice(0, 0)]
    first = np.flatnonzero(~keys.duplicated(MACHINE).to_numpy())
    edges = [0]
    for begin, end in zip(first, [*first[1:], rows], strict=True):
        if end - edges[-1] > most and begin > edges[-1]:
            edges.append(int(begin))
    return [slice(begin, end) for begin, end in zip(edges, [*edges[1:], rows], strict=True) if end > begin]
