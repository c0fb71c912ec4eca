"""Which rows of alarms or tests are one report: the same machines, on the same dates, in several factors."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np

from lepaute.watch.changelog import ALL
from lepaute.watch.values import DAY_S

#: Changes in several factors are one report if their dates, which are estimates, are no further apart.
SAME_S = 3 * DAY_S


def alike_changes(standing: Iterable[dict[Any, Any]]) -> list[list[list[dict[Any, Any]]]]:
    """The rows of each report, of which each list is of one factor and direction."""
    alike: dict[tuple[Any, ...], list[dict[Any, Any]]] = defaultdict(list)
    for row in standing:
        # what all machines have in common is a report of its own, and so is each step: those of one have one date
        day = row["changed_s"] // DAY_S
        alike[row["cluster"], row["factor"], np.sign(row["size"]), row["node"] == ALL, day].append(row)
    return same_machines(list(alike.values()), "changed_s")


def same_machines(
    groups: Sequence[list[dict[Any, Any]]], date: str, within_s: float = SAME_S
) -> list[list[list[dict[Any, Any]]]]:
    """Groups of several factors, of mostly the same nodes on the same dates, together; the largest first."""
    left = sorted(groups, key=lambda rows: (-len({row["node"] for row in rows}), rows[0]["factor"]))
    joined: list[list[list[dict[Any, Any]]]] = []
    for rows in left:
        home = next((group for group in joined if _belongs(rows, group[0], date, within_s)), None)
        if home is None:
            joined.append([rows])
        else:
            home.append(rows)
    return joined


def _belongs(rows: list[dict[Any, Any]], first: list[dict[Any, Any]], date: str, within_s: float) -> bool:
    if rows[0]["cluster"] != first[0]["cluster"]:
        return False
    if within_s:
        apart = abs(median(row[date] for row in rows) - median(row[date] for row in first)) > within_s
    else:
        apart = rows[0][date] // DAY_S != first[0][date] // DAY_S
    mine, others = {row["node"] for row in rows}, {row["node"] for row in first}
    return not apart and 2 * len(mine & others) > len(others) and mine <= others
