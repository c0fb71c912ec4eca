"""What the pages show of a factor, its values with the verdicts that `lepaute watch test` gives on them, as data.

Compact data: numbers as short as a picture needs them, in scripts that a page loads without a server.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from math import isfinite
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from lepaute.kit.text import natural_order
from lepaute.watch.alarms.sizes import worse_direction
from lepaute.watch.report.factor_history import NORMAL, P_LEVELS, FactorRows, codes_of, last_rows, sides_of, spread_of
from lepaute.watch.report.models import title_of
from lepaute.watch.values import day_numbers

_NUMBERS = {"value": "value", "low": "low", "high": "high"}
_OF_WINDOW = {"mean_w": "mean", "low_w": "lowMean", "high_w": "highMean"}


class Ready(str):
    """A string that is JSON already."""

    __slots__ = ()


def json_of(data: Any) -> str:
    """JSON in one line, only ASCII."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def _json_object(data: Mapping[str, Any]) -> Ready:
    """JSON of an object, some of whose values are `Ready`."""
    parts = (f"{json_of(name)}:{one if isinstance(one, Ready) else json_of(one)}" for name, one in data.items())
    return Ready(f"{{{','.join(parts)}}}")


def _json_list(texts: Iterable[str]) -> Ready:
    return Ready(f"[{','.join(texts)}]")


def _texts_of(values: "npt.ArrayLike", digits: int = 0) -> list[str]:
    """JSON of each number with this many significant digits, all where it is 0; null for what is no number.

    Each of the numbers that are there, which are few, is written once.
    """
    x = np.asarray(values)
    places, seen = pd.factorize(x.view(np.int64))
    numbers = seen.view(x.dtype).tolist()
    texts = ["null" if not isfinite(value) else f"{value:.{digits}g}" if digits else repr(value) for value in numbers]
    return [texts[place] for place in places.tolist()]


def _names_of(column: "pd.Series[Any]") -> list[str]:
    """JSON of each of the texts of a column of categories."""
    texts = [json_of(name) for name in column.cat.categories]
    return [texts[place] for place in column.cat.codes.tolist()]


def short(values: "npt.ArrayLike", digits: int = 5) -> list[float | None]:
    """So many significant digits; None for what is no number."""
    found: list[float | None] = [json.loads(text) for text in _texts_of(np.asarray(values, np.float64), digits)]
    return found


def script_of(data: Mapping[str, Any]) -> str:
    """A script that leaves the data in window.lepaute: pages that are files may load scripts, but nothing else."""
    return f"window.lepaute = {_json_object(data)};\n"


def overview_data(factor: FactorRows, pages: dict[str, str], events: list[dict[str, Any]]) -> dict[str, Any]:
    """A row a machine, three ways: single jobs, means of windows (code and p with a capital M), values.

    pages: node -> the address of its page; events: day, text, kind and page of each. Days are differences to the one
    before; p-values of means are there where they are coloured, by the position of the job.
    """
    days, codes = day_numbers(factor.rows["started_s"]), codes_of(factor)
    of_means = codes_of(factor, of_window=True) if factor.window else []
    unit, scale = factor.unit
    values = _texts_of(factor.rows["value"] * scale, 4)
    chances = _texts_of(factor.rows["p_value"], 2)
    chances_of_means = _texts_of(factor.rows["p_w"], 2) if factor.window else []
    machines: list[dict[str, Any]] = []
    for machine, places in factor.rows.groupby(["node", "cpu"], sort=False, observed=True).indices.items():
        node, cpu = cast("tuple[str, int]", machine)
        first, last = int(places[0]), int(places[-1]) + 1  # rows are sorted by machine
        own = days[first:last]
        data = {
            "node": str(node),
            "cpu": int(cpu),
            "day": [int(own[0]), *(own[1:] - own[:-1]).tolist()],
            "code": "".join(codes[first:last]),
            "value": _json_list([] if factor.is_vector else values[first:last]),
            "p": _json_list(chances[first:last]),
        }
        if factor.window:
            strong = [at for at in range(first, last) if of_means[at] not in (NORMAL, ".")]
            data["codeM"] = "".join(of_means[first:last])
            data["pM"] = _json_object({str(at - first): Ready(chances_of_means[at]) for at in strong})
        machines.append(data)
    machines.sort(key=lambda machine: (natural_order(machine["node"]), machine["cpu"]))
    return {
        "label": factor.label,
        "unit": unit,
        "name": factor.name,
        "cluster": factor.cluster,
        "window": factor.window,
        "vector": factor.is_vector,
        "worse": 0 if factor.is_vector else worse_direction(factor.name),
        "levels": P_LEVELS,
        "machines": _json_list(map(_json_object, machines)),
        "pages": pages,
        "events": events,
        **_last_values(factor),
    }


def _last_values(factor: FactorRows) -> dict[str, Any]:
    """The last value of each machine: the distribution, and where in the cluster it is (thesis, figure 9.10 b, c)."""
    if factor.is_vector:
        return {"last": []}
    rows, scale = last_rows(factor), factor.unit[1]
    spread = spread_of(rows)
    last = [
        {"node": str(row["node"]), "cpu": int(row["cpu"]), "place": row["place"], "value": value}
        for row, value in zip(rows.to_dict("records"), short(rows["value"].to_numpy(float) * scale), strict=True)
    ]
    mean, coefficient = short([spread.mean * scale, spread.coefficient])
    return {"last": last, "mean": mean, "coefficient": coefficient}


class NodeSeries:
    """The series of all nodes of a cluster, a factor added at a time so that the store is read once for each."""

    def __init__(self) -> None:
        self._factors: list[tuple[dict[str, Any], dict[str, Any], dict[str, list[tuple[int, slice]]]]] = []

    def add(self, factor: FactorRows) -> None:
        places: dict[str, list[tuple[int, slice]]] = {}
        grouped = factor.rows.groupby(["node", "cpu"], sort=False, observed=True).indices
        for machine, rows in grouped.items():
            node, cpu = cast("tuple[str, int]", machine)
            places.setdefault(str(node), []).append((int(cpu), slice(int(rows[0]), int(rows[-1]) + 1)))
        title, sides = title_of(factor.name), sides_of(factor)
        unit = "" if factor.is_vector else factor.unit[0]
        labels = {"title": title, "label": factor.label, "unit": unit}
        of_all = {"factor": factor.name, **labels, "window": factor.window, "sides": sides}
        self._factors.append((of_all, _columns(factor), places))

    def of(self, node: str) -> Ready:
        """The series of a node, texts that repeat replaced by their places in lists."""
        return _json_list(
            _packed({**of_all, "cpu": cpu, **{name: column[part] for name, column in columns.items()}})
            for of_all, columns, places in self._factors
            for cpu, part in places.get(node, ())
        )

    @property
    def nodes(self) -> Collection[str]:
        return {node for *_, places in self._factors for node in places}


def _columns(factor: FactorRows) -> dict[str, Any]:
    """JSON of each row, numbers with few digits, or a text of letters: a series is a slice of each."""
    rows = factor.rows
    found: dict[str, Any] = {
        "time": _texts_of(rows["started_s"].round().to_numpy("int64")),
        "code": "".join(codes_of(factor)),
        **{name: _names_of(rows[name]) for name in ("job", "archive", "stratum")},
        "p": _texts_of(rows["p_value"], 3),
    }
    numbers = {} if factor.is_vector else dict(_NUMBERS)
    if factor.window:
        found |= {"codeMean": "".join(codes_of(factor, of_window=True)), "pMean": _texts_of(rows["p_w"], 3)}
        numbers |= {} if factor.is_vector else _OF_WINDOW
    return found | {name: _texts_of(rows[column] * factor.unit[1], 5) for column, name in numbers.items()}


def _packed(one: dict[str, Any]) -> Ready:
    if one["job"] == one["archive"]:
        one["job"] = []  # the id of the archive
    for name in ("archive", "stratum"):
        texts = list(dict.fromkeys(one[name]))
        place = {text: str(at) for at, text in enumerate(texts)}
        one[name] = [place[text] for text in one[name]]
        one[f"{name}s"] = texts
    return _json_object({name: _json_list(part) if isinstance(part, list) else part for name, part in one.items()})
