"""All tests of a table of factor values: is what a job found of a machine what earlier jobs found of it?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import InputError
from lepaute.stats.expanding import expanding_moments
from lepaute.stats.prediction_region import region_tests
from lepaute.watch.changelog import Changelog
from lepaute.watch.pooling import pooled_scatter
from lepaute.watch.reference import references
from lepaute.watch.values import check_values, vectors

if TYPE_CHECKING:
    import pandas as pd

#: Of the tests by default; the windows are the latest job and the latest five.
CONFIDENCE = 0.9999
WINDOWS = (1, 5)
#: Joins the names of factors that are tested as one vector.
AND = " & "


def judge(
    values: "pd.DataFrame",
    changelog: Changelog | None = None,
    factors: "Sequence[str | Sequence[str]] | None" = None,
    windows: Sequence[int] = WINDOWS,
    confidence: float = CONFIDENCE,
    pooled: bool = False,
) -> "pd.DataFrame":
    """Tests each observation of each machine against its reference: one row a test.

    values  : as watch.values says
    factors : each a factor, or several that are tested as one vector; every factor of the table by itself by default
    windows : the numbers r of latest observations whose mean is tested
    confidence : of low and high
    pooled  : the covariance is that within all machines of a cluster and stratum, not that of the machine alone

    Columns: cluster, node, cpu, job, started_s, stratum, archive, factor (names joined by AND), r, p, pooled, outlier
    (logged as one: tested, but no reference), n, degrees_of_freedom (of the covariance), statistic, p_value, direction,
    low, high (of the mean of r observations, in the unit of the factor), missing. Where `missing` is not 0, there are
    not yet enough observations, by so many at least, and statistic, p_value, low and high are NaN.
    Raises InputError for a table that is none or empty, a factor that it does not have, and windows or a confidence
    that cannot be.
    """
    import pandas as pd

    table = check_values(values)
    asked = sorted(table["factor"].unique()) if factors is None else factors
    wanted = [(each,) if isinstance(each, str) else tuple(each) for each in asked]
    for names in wanted:
        if not names or len(set(names)) < len(names):
            raise InputError(f"the factors {names!r} cannot be tested as one vector; give each once")
    if not windows:
        raise InputError("no window is given; give numbers of observations such as 1 and 5")
    known = changelog or Changelog()
    parts = [
        _tested(vectors(table, names), known, names, r, confidence, pooled)
        for names in wanted
        for r in dict.fromkeys(windows)
    ]
    if not parts:
        raise InputError("there is nothing to test: the table of factor values is empty")
    return pd.concat(parts, ignore_index=True)


def _tested(
    observations: "pd.DataFrame", changelog: Changelog, names: tuple[str, ...], r: int, confidence: float, pooled: bool
) -> "pd.DataFrame":
    found = references(observations, changelog)
    x = observations[list(names)].to_numpy(np.float64)
    moments = expanding_moments(x, found.series, ~found.outlier, r)
    scatter, degrees = moments.scatter, moments.n - 1
    if pooled:
        group = observations.groupby(["cluster", "stratum"], sort=False).ngroup().to_numpy().astype(np.int64)
        common = pooled_scatter(moments, r, found, observations["started_s"].to_numpy(np.float64), group)
        scatter, degrees = common.scatter, common.degrees_of_freedom
    tests = region_tests(moments.window_mean, moments.mean, scatter, moments.n, degrees, r, confidence)
    return observations.drop(columns=list(names)).assign(
        factor=AND.join(names),
        r=r,
        p=len(names),
        pooled=pooled,
        outlier=found.outlier,
        n=tests.n,
        degrees_of_freedom=tests.degrees_of_freedom,
        statistic=tests.statistic,
        p_value=tests.p_value,
        direction=tests.direction,
        low=tests.low,
        high=tests.high,
        missing=tests.missing,
    )
