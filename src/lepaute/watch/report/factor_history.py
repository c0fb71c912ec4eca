"""A factor of a cluster over its days: values, the tests of single jobs and of windows, and what a point is shown as.

Pages, notebooks and pictures draw from this; it is what `lepaute watch test` says, whether or not anybody has run it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lepaute.kit.text import natural_order, scaled_unit
from lepaute.watch.alarms.sizes import worse_direction
from lepaute.watch.alarms.standing import concerned
from lepaute.watch.judging.judge import AND, CONFIDENCE, WINDOWS
from lepaute.watch.judging.recorded_tests import Selection, recorded_tests
from lepaute.watch.open_regressions import OpenRegressions
from lepaute.watch.report.findings import VERDICT_COLUMNS, findings_in
from lepaute.watch.store import Store
from lepaute.watch.values import check_values, same_cells

_KEY = ["node", "cpu", "job"]
_OF_VALUES = [*_KEY, "started_s", "stratum", "value", "state", "archive"]
_OF_VERDICT = ["outlier", "p_value", "direction", "low", "high", "missing"]
_COLUMNS = (*VERDICT_COLUMNS, "archive", "low", "high")
#: Below these p-values a point is coloured, paler to stronger; below the last one it is suspicious.
P_LEVELS = (0.01, 1e-4)
#: State of a node, or of a point -> its colour on white and in the dark mode of pages: one palette for all pictures.
COLOURS = {
    "changed": ("#b3261e", "#ff6a55"),
    "failed": ("#7a3fb0", "#b18cf0"),
    "silent": ("#10151c", "#f4f6f9"),
    "unlike": ("#e36414", "#c2410c"),
    "unconfirmed": ("#e64585", "#e673ac"),
    "suspicious": ("#e9a820", "#d9a528"),
    "unknown": ("#dde1e6", "#39424d"),
    "fine": ("#9dc3e8", "#2b5f94"),
}
_PALE = ("#f3d590", "#8a6a24")
#: Letter of a point -> what it means, and its colours.
CODES = {
    "n": ("as before", "#9aa7b5", "#66727f"),
    "w": ("worse, p < 0.01", *_PALE),
    "W": ("worse, p < 0.0001: suspicious", *COLOURS["suspicious"]),
    "R": ("changed", *COLOURS["changed"]),
    "b": ("better, p < 0.01", "#79abe3", "#3d76b8"),
    "B": ("better, p < 0.0001", "#2a6fc0", "#67a8f0"),
    "u": ("different, p < 0.01", *_PALE),
    "U": ("different, p < 0.0001: suspicious", *COLOURS["suspicious"]),
    ".": ("unknown: too few jobs", *COLOURS["unknown"]),
    "o": ("logged as an outlier", "#4a9c5d", "#74c686"),
    "x": ("failed", *COLOURS["failed"]),
}
#: Ending of a factor's name -> the unit that its values are shown in; they are kept in the unit without prefix.
_UNITS = {
    "_flops": "Gflop/s", "_B_per_s": "GB/s", "_per_s": "1/s", "_Hz": "GHz", "_s": "s", "_degC": "°C",
    "_W": "W", "_J": "J", "_rpm": "rpm",
}  # fmt: skip
#: Not tested yet, did not end well, logged as an outlier, part of an open regression, above all levels.
UNTESTED, FAILED, OUTLIER, REGRESSED, NORMAL = ".", "x", "o", "R", "n"
#: Worse, better, and of a factor without a better side, or a vector: unlike before.
_WORSE, _BETTER, _UNLIKE = "wW", "bB", "uU"


@dataclass(frozen=True, slots=True)
class FactorRows:
    """A factor of a cluster, or a vector of several (name "a & b", which has no values).

    rows   : node, cpu, job, started_s, stratum, value, state, archive; regressed: of an open regression; of the verdict
             on a single job outlier, p_value (NaN: not tested), direction, low, high; by node, cpu and time
    window : this many jobs together were tested as well, 0: none; `rows` has mean_w (of the window), p_w, low_w, high_w
    suspects : suspicious tests of all windows, as `Findings.unexplained` gives them
    """

    cluster: str
    name: str
    rows: "pd.DataFrame"
    window: int
    suspects: "pd.DataFrame"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the vector; of a single factor its own."""
        return tuple(self.name.split(AND))

    @property
    def is_vector(self) -> bool:
        return len(self.names) > 1

    @property
    def unit(self) -> tuple[str, float]:
        """In which its values are shown, such as Gflop/s, and what they are multiplied by; "" if no name says it."""
        unit = next((unit for suffix, unit in _UNITS.items() if self.name.endswith(suffix)), "")
        base = 1e-9 if unit.startswith("G") else 1.0
        scaled, factor = scaled_unit(unit, base * float(self.rows["value"].abs().median()))
        return scaled, base * factor

    @property
    def label(self) -> str:
        """Label of an axis: its name and unit."""
        return f"{self.name} ({self.unit[0]})" if self.unit[0] else self.name


def factor_rows(
    store: "Store", found: OpenRegressions, cluster: str, factor: str, every: "pd.DataFrame | None" = None
) -> FactorRows:
    """The values of a factor, and what the unpooled tests say of them; nothing is recorded.

    every : all values of the store, where the caller has them (`open_regressions.packed_values`)
    """
    names = tuple(factor.split(AND))
    if every is None:
        values = check_values(store.values(cluster=cluster, factors=names, packed=True))
    else:
        values = every[(every["cluster"] == cluster) & every["factor"].isin(names)]
    table = values.loc[values["factor"] == factor, _OF_VALUES]
    window = max(store.windows(cluster, factor) or WINDOWS)
    windows = (1, window) if window > 1 else (1,)
    selection = Selection(
        None, windows, CONFIDENCE, False, None, None, False, standing=found.rows, columns=_COLUMNS, values=values
    )
    tests = recorded_tests(store, found.changelog, cluster, names, selection)
    del values, selection
    if not tests:  # no job of the factor is done
        tests = [store.verdicts(cluster=cluster, factors=[factor], r=r, pooled=False).iloc[:0] for r in windows]
    single = tests[0]
    verdicts = pd.concat([part[list(VERDICT_COLUMNS)] for part in tests], ignore_index=True)
    suspects = findings_in(verdicts, 1.0 - CONFIDENCE).unexplained(found.rows)
    if table.empty:  # a vector
        table = single[[*_KEY, "started_s", "stratum", "archive"]].assign(value=np.nan, state="done")
    table = _beside(table, single, dict(zip(_OF_VERDICT, _OF_VERDICT, strict=True)))
    # NaN if there is no verdict
    table.loc[(table["missing"] != 0).to_numpy(), ["p_value", "low", "high"]] = np.nan
    table["direction"] = table["direction"].fillna(0).astype("int8")
    table["outlier"] = (table["outlier"] == 1).to_numpy(np.bool_)  # absent: no verdict
    table = table.drop(columns="missing").sort_values(["node", "cpu", "started_s", "job"], ignore_index=True)
    table["regressed"] = False
    standing = found.rows[(found.rows["cluster"] == cluster) & found.rows["factor"].isin(names)]
    for row in standing.to_dict("records"):
        begun = concerned(table.assign(cluster=cluster), row) & (table["started_s"] >= row["changed_s"])
        table["regressed"] |= begun
    if window > 1:
        table = _with_window(table, tests[1], window)
    for name in ("node", "job", "stratum", "state", "archive"):
        table[name] = table[name].astype("category").cat.remove_unused_categories()
    return FactorRows(cluster, factor, table, window if window > 1 else 0, suspects)


def _beside(table: "pd.DataFrame", verdicts: "pd.DataFrame", names: dict[str, str]) -> "pd.DataFrame":
    """The table with columns of the verdicts on its jobs, by the names that they get; absent without a verdict."""
    done = np.flatnonzero((table["state"] == "done").to_numpy(np.bool_))
    if len(done) != len(verdicts) or not all(same_cells(table[key].iloc[done], verdicts[key]) for key in _KEY):
        return table.merge(verdicts[[*_KEY, *names]].rename(columns=names), how="left", on=_KEY)
    columns = {new: np.full(len(table), np.nan) for new in names.values()}
    for name, new in names.items():  # in the same order
        columns[new][done] = verdicts[name].to_numpy()
    return table.assign(**columns)


def _with_window(table: "pd.DataFrame", verdicts: "pd.DataFrame", window: int) -> "pd.DataFrame":
    table = _beside(table, verdicts, {"p_value": "p_w", "low": "low_w", "high": "high_w", "missing": "missing"})
    table.loc[(table.pop("missing") != 0).to_numpy(), ["p_w", "low_w", "high_w"]] = np.nan
    kept = table.loc[table["value"].notna() & ~table["outlier"], ["node", "cpu", "stratum", "value"]]
    groups = kept.groupby(["node", "cpu", "stratum"], sort=False, observed=True)["value"]
    means = groups.rolling(window, min_periods=window).mean().reset_index(level=[0, 1, 2], drop=True)
    table["mean_w"] = means.reindex(table.index).where(table["p_w"].notna())
    return table


def codes_of(factor: FactorRows, *, of_window: bool = False) -> list[str]:
    """A letter for each row: its state, and whether it is worse or better; of the mean of its window, if asked for."""
    rows = factor.rows
    if of_window and not factor.window:
        return [UNTESTED] * len(rows)
    if of_window:
        p, mean = rows["p_w"].to_numpy(float), rows["mean_w"].to_numpy(float)
        higher = mean > (rows["low_w"].to_numpy(float) + rows["high_w"].to_numpy(float)) / 2
    else:
        p, higher = rows["p_value"].to_numpy(float), (rows["direction"] > 0).to_numpy()
    strength = np.searchsorted(-np.array(P_LEVELS), -p, side="right")  # 0: above all; NaN sorts last, replaced below
    scales = np.array([list(f"{NORMAL}{side}") for side in sides_of(factor)])
    letters = scales[higher.astype(int), np.minimum(strength, len(P_LEVELS))]
    letters = np.where(np.isnan(p), UNTESTED, letters)
    letters = np.where(rows["regressed"].to_numpy() & ~(of_window & np.isnan(p)), REGRESSED, letters)
    letters = np.where(rows["outlier"].to_numpy(), OUTLIER, letters)
    letters = np.where((rows["state"] != "done").to_numpy(), FAILED, letters)
    return list(letters.tolist())


def sides_of(factor: FactorRows) -> tuple[str, str]:
    """The letters of a lower and of a higher value."""
    worse = 0 if factor.is_vector else worse_direction(factor.name)
    return {-1: (_WORSE, _BETTER), 0: (_UNLIKE, _UNLIKE), 1: (_BETTER, _WORSE)}[worse]


@dataclass(frozen=True, slots=True)
class Spread:
    """How the last values of this many machines are spread.

    coefficient : of spatial variability, their standard deviation over their mean; NaN of one machine, or a mean of 0
    """

    machines: int
    mean: float
    coefficient: float


def last_rows(factor: FactorRows) -> "pd.DataFrame":
    """The row of the last value of each machine (the thesis, figure 9.10 b, c), and place: 1 for the first node, ..."""
    done = factor.rows[(factor.rows["state"] == "done") & factor.rows["value"].notna()]
    last = done.drop_duplicates(["node", "cpu"], keep="last")
    number = {name: place for place, name in enumerate(sorted(last["node"].unique(), key=natural_order), start=1)}
    return last.assign(place=last["node"].astype(str).map(number))


def spread_of(last: "pd.DataFrame") -> Spread:
    """last : as `last_rows` gives them"""
    x = last["value"].to_numpy(np.float64)
    mean = float(x.mean()) if len(x) else math.nan
    known = len(x) > 1 and mean != 0.0
    return Spread(len(x), mean, float(x.std(ddof=1)) / abs(mean) if known else math.nan)


def in_order(machines: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """(node, cpu) as people count them."""
    return sorted(machines, key=lambda machine: (natural_order(machine[0]), machine[1]))
