"""What the pages show of a factor: its values with the verdicts that `lepaute watch test` gives on them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.watch.changelog import ALL
from lepaute.watch.judging.judge import AND, CONFIDENCE, WINDOWS
from lepaute.watch.judging.recorded_tests import Asked, recorded_tests
from lepaute.watch.open_regressions import OpenRegressions
from lepaute.watch.report.summary import OF_VERDICTS, suspects_of
from lepaute.watch.values import DAY_S

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store

_KEY = ["node", "cpu", "job"]
_OF_VALUES = [*_KEY, "started_s", "stratum", "value", "state", "archive"]
_OF_VERDICT = ["outlier", "p_value", "direction", "low", "high", "missing"]


@dataclass(frozen=True, slots=True)
class FactorRows:
    """A factor of a cluster, or a vector of several (name "a & b", which has no values).

    rows   : node, cpu, job, started_s, stratum, value, state, archive; regressed: of an open regression; of the verdict
             on a single job outlier, p_value (NaN: not tested), direction, low, high; by node, cpu and time
    window : so many jobs together were tested as well, 0: none; `rows` has mean_w (of the window), p_w, low_w, high_w
    suspects : suspicious tests of all windows, as `suspects_of` gives them
    """

    cluster: str
    name: str
    rows: "pd.DataFrame"
    window: int
    suspects: "pd.DataFrame"

    @property
    def is_vector(self) -> bool:
        return AND in self.name


def factor_rows(store: "Store", found: OpenRegressions, cluster: str, factor: str) -> FactorRows:
    """The values of a factor, and what the unpooled tests say of them; nothing is recorded."""
    names = tuple(factor.split(AND))
    table = store.values(cluster=cluster, factors=[factor])[_OF_VALUES]
    window = max(store.windows(cluster, factor) or WINDOWS)
    windows = (1, window) if window > 1 else (1,)
    asked = Asked(None, windows, CONFIDENCE, False, None, None, record=False, standing=found.rows)
    tests = recorded_tests(store, found.changelog, cluster, names, asked)
    if not tests:  # no job of the factor is done
        tests = [store.verdicts(cluster=cluster, factors=[factor], r=r, pooled=False).iloc[:0] for r in windows]
    single = tests[0]
    suspects = _suspects(tests, found)
    if table.empty:  # a vector
        table = single[[*_KEY, "started_s", "stratum", "archive"]].assign(value=np.nan, state="done")
    table = table.merge(single[[*_KEY, *_OF_VERDICT]], how="left", on=_KEY)
    untested = (table["missing"] != 0).to_numpy()  # NaN where there is no verdict
    for name in ("p_value", "low", "high"):
        table.loc[untested, name] = np.nan
    table["direction"] = table["direction"].fillna(0).astype("int8")
    table["outlier"] = table["outlier"].fillna(value=False).astype(bool)
    table = table.drop(columns="missing").sort_values(["node", "cpu", "started_s", "job"], ignore_index=True)
    table["regressed"] = _regressed(table, found.rows, cluster, names)
    if window > 1:
        table = _with_window(table, tests[1], window)
    for name in ("node", "job", "stratum", "state", "archive"):
        table[name] = table[name].astype("category")
    return FactorRows(cluster, factor, table, window if window > 1 else 0, suspects)


def _suspects(tests: "list[pd.DataFrame]", found: OpenRegressions) -> "pd.DataFrame":
    import pandas as pd

    verdicts = pd.concat([part[list(OF_VERDICTS)] for part in tests], ignore_index=True)
    return suspects_of(verdicts, found.rows, 1.0 - CONFIDENCE)


def _regressed(
    table: "pd.DataFrame", standing: "pd.DataFrame", cluster: str, names: tuple[str, ...]
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Of each row, whether an open regression of one of the factors began before it."""
    regressed = np.zeros(len(table), np.bool_)
    for row in standing[(standing["cluster"] == cluster) & standing["factor"].isin(names)].to_dict("records"):
        mine = (table["stratum"] == row["stratum"]) & (table["started_s"] >= row["changed_s"])
        if row["node"] != ALL:
            mine &= (table["node"] == row["node"]) & (table["cpu"] == row["cpu"])
        regressed |= mine.to_numpy()
    return regressed


def _with_window(table: "pd.DataFrame", verdicts: "pd.DataFrame", window: int) -> "pd.DataFrame":
    tests = verdicts.loc[verdicts["missing"] == 0, [*_KEY, "p_value", "low", "high"]]
    tests = tests.rename(columns={"p_value": "p_w", "low": "low_w", "high": "high_w"})
    table = table.merge(tests, how="left", on=_KEY)
    kept = table.loc[table["value"].notna() & ~table["outlier"], ["node", "cpu", "stratum", "value"]]
    groups = kept.groupby(["node", "cpu", "stratum"], sort=False, observed=True)["value"]
    means = groups.rolling(window, min_periods=window).mean().reset_index(level=[0, 1, 2], drop=True)
    table["mean_w"] = means.reindex(table.index).where(table["p_w"].notna())
    return table


def day_numbers(rows: "pd.DataFrame") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The day of each row, counted from 1970."""
    days: np.ndarray[tuple[int], np.dtype[np.int64]] = np.floor(rows["started_s"].to_numpy(float) / DAY_S).astype(int)
    return days
