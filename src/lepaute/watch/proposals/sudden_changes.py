"""Sudden changes of a series in which a season is left: by how far they are, where ranks would need many values after.

The evidence is that of the alarms (`stats.change_evidence`), with a memory that follows a season; one over its largest
value is a p-value (Ville's inequality), however often it is looked at. It has no date, so that is looked for among the
values before.
"""

from typing import TYPE_CHECKING

import numpy as np

from lepaute.stats.change_evidence import COMMON_MEMORY, ChangeEvidence
from lepaute.stats.steps import SHORTEST

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: The change is at most so many values before there is evidence of it; levels of so many values tell where.
REACH = 20


def sudden_p_value(values: "Floats") -> float:
    """Of the series, in order of time, having no sudden change; shape (n,)."""
    return min(1.0, 1.0 / float(_evidence(values).max(initial=1.0)))


def sudden_changes(values: "Floats", level: float) -> list[int]:
    """The numbers of the first values of new levels, each with SHORTEST values on both sides at least.

    After a change the series begins anew, at half of the level.
    """
    found: list[int] = []
    start = 0
    while len(values) - start >= 2 * SHORTEST:
        evident = np.flatnonzero(_evidence(values[start:]) >= 1.0 / level)
        if not len(evident):
            break
        place = _sharpest(values, start, start + int(evident[0]))
        if place is None:
            break
        found.append(place)
        start, level = place, level / 2
    return found


def _evidence(values: "Floats") -> "Floats":
    state = ChangeEvidence.start(1, COMMON_MEMORY)
    # in units of its own noise, so that nothing underflows
    differences = np.abs(np.diff(values))
    unit = float(np.median(differences[differences > 0])) if (differences > 0).any() else 1.0
    scaled = (values - values[0]) / unit
    found: Floats = np.array([float(state.update(scaled[each : each + 1])[0]) for each in range(len(scaled))])
    return found


def _sharpest(values: "Floats", start: int, evident: int) -> int | None:
    """The cut with the least absolute deviations from the medians of both sides."""
    first, last = max(start, evident - REACH), min(len(values), evident + REACH)
    possible = range(first + SHORTEST, min(evident, last - SHORTEST) + 1)

    def error(cut: int) -> float:
        sides = values[first:cut], values[cut:last]
        return sum(float(np.abs(side - np.median(side)).sum()) for side in sides)

    return min(possible, key=error, default=None)
