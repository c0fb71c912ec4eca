"""What the pages show of a factor, its values with the verdicts that `lepaute watch test` gives on them, as data.

Compact data: numbers as short as a picture needs them, in scripts that a page loads without a server.
"""

import json
import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lepaute.watch.alarms.sizes import worse_direction
from lepaute.watch.alarms.standing import concerned
from lepaute.watch.judging.judge import AND, CONFIDENCE, WINDOWS
from lepaute.watch.judging.recorded_tests import Selection, recorded_tests
from lepaute.watch.open_regressions import OpenRegressions
from lepaute.watch.report.summary import OF_VERDICTS, suspects_of
from lepaute.watch.values import day_numbers

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store

_KEY = ["node", "cpu", "job"]
_OF_VALUES = [*_KEY, "started_s", "stratum", "value", "state", "archive"]
_OF_VERDICT = ["outlier", "p_value", "direction", "low", "high", "missing"]
#: Below these p-values a point is coloured, paler to stronger; below the last one it is suspicious.
P_LEVELS = (0.01, 1e-4)
#: Not tested yet, did not end well, logged as an outlier, part of an open regression, above all levels.
UNTESTED, FAILED, OUTLIER, REGRESSED, NORMAL = ".", "x", "o", "R", "n"
#: Worse, better, and of a factor without a better side, or a vector: unlike before.
_WORSE, _BETTER, _UNLIKE = "wW", "bB", "uU"
_NUMBERS = {"value": "value", "low": "low", "high": "high"}
_OF_WINDOW = {"mean_w": "mean", "low_w": "lowMean", "high_w": "highMean"}


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
    import pandas as pd

    names = tuple(factor.split(AND))
    table = store.values(cluster=cluster, factors=[factor])[_OF_VALUES]
    window = max(store.windows(cluster, factor) or WINDOWS)
    windows = (1, window) if window > 1 else (1,)
    selection = Selection(None, windows, CONFIDENCE, False, None, None, record=False, standing=found.rows)
    tests = recorded_tests(store, found.changelog, cluster, names, selection)
    if not tests:  # no job of the factor is done
        tests = [store.verdicts(cluster=cluster, factors=[factor], r=r, pooled=False).iloc[:0] for r in windows]
    single = tests[0]
    verdicts = pd.concat([part[list(OF_VERDICTS)] for part in tests], ignore_index=True)
    suspects = suspects_of(verdicts, found.rows, 1.0 - CONFIDENCE)
    if table.empty:  # a vector
        table = single[[*_KEY, "started_s", "stratum", "archive"]].assign(value=np.nan, state="done")
    table = table.merge(single[[*_KEY, *_OF_VERDICT]], how="left", on=_KEY)
    untested = (table["missing"] != 0).to_numpy()  # NaN where there is no verdict
    for name in ("p_value", "low", "high"):
        table.loc[untested, name] = np.nan
    table["direction"] = table["direction"].fillna(0).astype("int8")
    table["outlier"] = table["outlier"].fillna(value=False).astype(bool)
    table = table.drop(columns="missing").sort_values(["node", "cpu", "started_s", "job"], ignore_index=True)
    table["regressed"] = False
    standing = found.rows[(found.rows["cluster"] == cluster) & found.rows["factor"].isin(names)]
    for row in standing.to_dict("records"):
        begun = concerned(table.assign(cluster=cluster), row) & (table["started_s"] >= row["changed_s"])
        table["regressed"] |= begun
    if window > 1:
        table = _with_window(table, tests[1], window)
    for name in ("node", "job", "stratum", "state", "archive"):
        table[name] = table[name].astype("category")
    return FactorRows(cluster, factor, table, window if window > 1 else 0, suspects)


def _with_window(table: "pd.DataFrame", verdicts: "pd.DataFrame", window: int) -> "pd.DataFrame":
    tests = verdicts.loc[verdicts["missing"] == 0, [*_KEY, "p_value", "low", "high"]]
    tests = tests.rename(columns={"p_value": "p_w", "low": "low_w", "high": "high_w"})
    table = table.merge(tests, how="left", on=_KEY)
    kept = table.loc[table["value"].notna() & ~table["outlier"], ["node", "cpu", "stratum", "value"]]
    groups = kept.groupby(["node", "cpu", "stratum"], sort=False, observed=True)["value"]
    means = groups.rolling(window, min_periods=window).mean().reset_index(level=[0, 1, 2], drop=True)
    table["mean_w"] = means.reindex(table.index).where(table["p_w"].notna())
    return table


def short(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """So many significant digits; None for what is no number."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]


def script_of(data: Any) -> str:
    """A script that leaves the data in window.lepaute: pages that are files may load scripts, but nothing else."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return f"window.lepaute = {text};\n"


def codes_of(factor: FactorRows) -> list[str]:
    """A letter for each row: its state, and whether it is worse or better."""
    rows = factor.rows
    p, direction = rows["p_value"].to_numpy(float), rows["direction"].to_numpy()
    strength = np.searchsorted(-np.array(P_LEVELS), -p, side="right")  # 0: above all; NaN sorts last, replaced below
    scales = np.array([list(f"{NORMAL}{side}") for side in sides_of(factor)])
    letters = scales[(direction > 0).astype(int), np.minimum(strength, len(P_LEVELS))]
    letters = np.where(np.isnan(p), UNTESTED, letters)
    letters = np.where(rows["regressed"].to_numpy(), REGRESSED, letters)
    letters = np.where(rows["outlier"].to_numpy(), OUTLIER, letters)
    letters = np.where((rows["state"] != "done").to_numpy(), FAILED, letters)
    return list(letters.tolist())


def sides_of(factor: FactorRows) -> tuple[str, str]:
    """The letters of a lower and of a higher value."""
    worse = 0 if factor.is_vector else worse_direction(factor.name)
    return {-1: (_WORSE, _BETTER), 0: (_UNLIKE, _UNLIKE), 1: (_BETTER, _WORSE)}[worse]


def overview_data(factor: FactorRows, pages: dict[str, str], events: list[dict[str, Any]]) -> dict[str, Any]:
    """pages: node -> the address of its page; events: day, text and page of each."""
    days, codes = day_numbers(factor.rows["started_s"]), codes_of(factor)
    values = short(factor.rows["value"].to_numpy(float))
    chances = short(factor.rows["p_value"].to_numpy(float), 2)
    machines: list[dict[str, Any]] = []
    for machine, places in factor.rows.groupby(["node", "cpu"], sort=False, observed=True).indices.items():
        node, cpu = cast("tuple[str, int]", machine)
        first, last = int(places[0]), int(places[-1]) + 1  # rows are sorted by machine
        machines.append(
            {
                "node": str(node),
                "cpu": int(cpu),
                "day": days[first:last].tolist(),
                "code": "".join(codes[first:last]),
                "value": [] if factor.is_vector else values[first:last],
                "p": chances[first:last],
            }
        )
    machines.sort(key=lambda machine: (natural(machine["node"]), machine["cpu"]))
    return {
        "factor": factor.name,
        "cluster": factor.cluster,
        "worse": 0 if factor.is_vector else worse_direction(factor.name),
        "levels": P_LEVELS,
        "machines": machines,
        "pages": pages,
        "events": events,
    }


def last_values(factor: FactorRows) -> list[dict[str, Any]]:
    """The last value of each machine: the distribution, and where in the cluster it is (thesis, figure 9.10 b, c)."""
    done = factor.rows[factor.rows["state"] == "done"]
    last = done.drop_duplicates(["node", "cpu"], keep="last")
    number = {name: place for place, name in enumerate(sorted(last["node"].unique(), key=natural), start=1)}
    return [
        {"node": row["node"], "cpu": int(row["cpu"]), "place": number[row["node"]], "value": value}
        for row, value in zip(last.to_dict("records"), short(last["value"].to_numpy(float)), strict=True)
        if value is not None
    ]


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """n2 before n10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"([0-9]{1,18})", name) if part)


class NodeSeries:
    """The series of all nodes of a cluster, a factor added at a time so that the store is read once for each."""

    def __init__(self) -> None:
        self._factors: list[tuple[FactorRows, str, dict[str, list[tuple[int, slice]]]]] = []

    def add(self, factor: FactorRows) -> None:
        places: dict[str, list[tuple[int, slice]]] = {}
        grouped = factor.rows.groupby(["node", "cpu"], sort=False, observed=True).indices
        for machine, rows in grouped.items():
            node, cpu = cast("tuple[str, int]", machine)
            places.setdefault(str(node), []).append((int(cpu), slice(int(rows[0]), int(rows[-1]) + 1)))
        self._factors.append((factor, "".join(codes_of(factor)), places))

    def of(self, node: str) -> list[dict[str, Any]]:
        """The series of a node, texts that repeat replaced by their places in lists."""
        return [
            _packed(_series(factor, codes[part], cpu, part))
            for factor, codes, places in self._factors
            for cpu, part in places.get(node, ())
        ]

    @property
    def nodes(self) -> Collection[str]:
        return {node for *_, places in self._factors for node in places}


def _series(factor: FactorRows, codes: str, cpu: int, part: slice) -> dict[str, Any]:
    rows = factor.rows.iloc[part]
    found: dict[str, Any] = {
        "factor": factor.name,
        "cpu": cpu,
        "window": factor.window,
        "time": rows["started_s"].round().astype("int64").tolist(),
        "code": codes,
        "sides": sides_of(factor),
        **{name: rows[name].tolist() for name in ("job", "archive", "stratum")},
        "p": short(rows["p_value"].to_numpy(float), 3),
    }
    numbers = {} if factor.is_vector else dict(_NUMBERS)
    if factor.window:
        found["pMean"] = short(rows["p_w"].to_numpy(float), 3)
        numbers |= {} if factor.is_vector else _OF_WINDOW
    return found | {name: short(rows[column].to_numpy(float)) for column, name in numbers.items()}


def _packed(one: dict[str, Any]) -> dict[str, Any]:
    packed = dict(one)
    for name in ("archive", "stratum"):
        texts = list(dict.fromkeys(one[name]))
        place = {text: at for at, text in enumerate(texts)}
        packed[name] = [place[text] for text in one[name]]
        packed[f"{name}s"] = texts
    if packed["job"] == [packed["archives"][at] for at in packed["archive"]]:
        packed["job"] = []  # the id of the archive
    return packed
