"""What the pages show of a factor: its values with the verdicts on them, read from the store once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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

    rows   : node, cpu, job, started_s, stratum, value, state, archive; of the latest verdict on a single job outlier,
             p_value (NaN: not tested), direction, low, high; by node, cpu and time
    window : so many jobs together were tested as well, 0: none; `rows` has mean_w (of the window), p_w, low_w, high_w
    """

    cluster: str
    name: str
    rows: "pd.DataFrame"
    window: int

    @property
    def is_vector(self) -> bool:
        return " & " in self.name


def factor_rows(store: "Store", cluster: str, factor: str) -> FactorRows:
    """The values of a factor, and what the unpooled tests say of them."""
    table = store.values(cluster=cluster, factors=[factor])[_OF_VALUES]
    windows = store.windows(cluster, factor)
    single = _latest(store, cluster, factor, 1, _OF_VERDICT)
    if table.empty:  # a vector
        table = _latest(store, cluster, factor, 1, ["started_s", "stratum", "archive"]).assign(
            value=np.nan, state="done"
        )
    table = table.merge(single, how="left", on=_KEY)
    untested = (table["missing"] != 0).to_numpy()  # NaN where there is no verdict
    for name in ("p_value", "low", "high"):
        table.loc[untested, name] = np.nan
    table["direction"] = table["direction"].fillna(0).astype("int8")
    table["outlier"] = table["outlier"].fillna(value=False).astype(bool)
    table = table.drop(columns="missing").sort_values(["node", "cpu", "started_s", "job"], ignore_index=True)
    window = max(windows, default=0)
    if window > 1:
        table = _with_window(
            table, _latest(store, cluster, factor, window, ["p_value", "low", "high", "missing"]), window
        )
    for name in ("node", "job", "stratum", "state", "archive"):
        table[name] = table[name].astype("category")
    return FactorRows(cluster, factor, table, window if window > 1 else 0)


def _latest(store: "Store", cluster: str, factor: str, window: int, columns: list[str]) -> "pd.DataFrame":
    """The last verdict on each job: those before rest on an older changelog."""
    asked = [*_KEY, "judged_s", *columns]
    verdicts = store.verdicts(cluster=cluster, factors=[factor], r=window, pooled=False, columns=asked)
    kept = verdicts.sort_values("judged_s", kind="stable").drop_duplicates(_KEY, keep="last")
    return kept.drop(columns="judged_s")


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
