"""One node: each factor of each CPU over time, with the fluctuation interval, as compact data."""

from collections.abc import Sequence
from typing import Any, cast

from lepaute.watch.site.numbers import short
from lepaute.watch.site.overview import codes_of
from lepaute.watch.site.read import FactorRows


class NodeSeries:
    """The series of all nodes of a cluster, a factor added at a time so that the store is read once for each."""

    def __init__(self) -> None:
        self._series: dict[str, list[dict[str, Any]]] = {}

    def add(self, factor: FactorRows) -> None:
        rows, codes = factor.rows, codes_of(factor)
        columns = {"value": "value", "low": "low", "high": "high"}
        if factor.window:
            columns |= {"mean_w": "mean", "low_w": "lowMean", "high_w": "highMean"}
        numbers = {name: short(rows[column].to_numpy(float)) for column, name in columns.items()}
        numbers["p"] = short(rows["p_value"].to_numpy(float), 3)
        if factor.window:
            numbers["pMean"] = short(rows["p_w"].to_numpy(float), 3)
        times = rows["started_s"].round().astype("int64").tolist()
        strata, jobs, archives = (rows[name].tolist() for name in ("stratum", "job", "archive"))
        for machine, places in rows.groupby(["node", "cpu"], sort=False).indices.items():
            node, cpu = cast("tuple[str, int]", machine)
            part = slice(int(places[0]), int(places[-1]) + 1)
            one: dict[str, Any] = {
                "factor": factor.name,
                "cpu": int(cpu),
                "window": factor.window,
                "time": times[part],
                "code": "".join(codes[part]),
                "job": jobs[part],
                "archive": archives[part],
                "stratum": strata[part],
            }
            for name, column in numbers.items():
                if not (factor.is_vector and name not in ("p", "pMean")):
                    one[name] = column[part]
            self._series.setdefault(str(node), []).append(one)

    def of(self, node: str) -> list[dict[str, Any]]:
        """The series of a node, texts that repeat replaced by their places in lists."""
        return [_packed(one) for one in self._series.get(node, [])]

    @property
    def nodes(self) -> Sequence[str]:
        return tuple(self._series)


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
