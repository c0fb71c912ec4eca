"""One node: each factor of each CPU over time, with the fluctuation interval, as compact data."""

from collections.abc import Collection
from typing import Any, cast

from lepaute.watch.site.numbers import short
from lepaute.watch.site.overview import codes_of, sides_of
from lepaute.watch.site.read import FactorRows

_NUMBERS = {"value": "value", "low": "low", "high": "high"}
_OF_WINDOW = {"mean_w": "mean", "low_w": "lowMean", "high_w": "highMean"}


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
