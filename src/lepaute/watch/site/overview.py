"""A factor over all machines and days: a row a CPU, a point a job, as compact data for a canvas."""

import re
from typing import Any, cast

import numpy as np

from lepaute.watch.alarms.polarity import worse_direction
from lepaute.watch.site.numbers import short
from lepaute.watch.site.read import FactorRows, day_numbers

#: Below these p-values a point is coloured, paler to stronger; below the last one it is suspicious.
P_LEVELS = (0.01, 1e-4)
#: Not tested yet, did not end well, logged as an outlier, part of an open regression, above all levels.
UNTESTED, FAILED, OUTLIER, REGRESSED, NORMAL = ".", "x", "o", "R", "n"
#: Worse, better, and of a factor without a better side, or a vector: unlike before.
_WORSE, _BETTER, _UNLIKE = "wW", "bB", "uU"


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
    found: list[str] = letters.tolist()
    return found


def sides_of(factor: FactorRows) -> tuple[str, str]:
    """The letters of a lower and of a higher value."""
    worse = 0 if factor.is_vector else worse_direction(factor.name)
    return {-1: (_WORSE, _BETTER), 0: (_UNLIKE, _UNLIKE), 1: (_BETTER, _WORSE)}[worse]


def overview_data(factor: FactorRows, pages: dict[str, str], events: list[dict[str, Any]]) -> dict[str, Any]:
    """pages: node -> the address of its page; events: day, text and page of each."""
    days, codes = day_numbers(factor.rows), codes_of(factor)
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
