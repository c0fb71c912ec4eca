"""What all machines of a cluster have in common on a day: a season, a warm afternoon, an upgrade of all of them.

The effect of a day is the median over machines of their relative deviation, as in `change_evidence`. Taken off, it
leaves what a machine does by itself; by itself, it shows what happened to all.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

#: Machines without which a day has no effect of its own.
FEWEST_MACHINES = 8
#: A day on which fewer were measured takes in so many days before and after it, as few as are enough.
REACHES = (0, 1, 3, 7)
_POLISHES = 2


@dataclass(frozen=True, slots=True)
class DayEffect:
    """day (days since the epoch, ascending), effect (relative), of shape (days,); reach: days taken in on each side."""

    day: "Integers"
    effect: "Floats"
    reach: "Integers"

    def at(self, day: "Integers") -> "Floats":
        """The effects of these days, which are all among those given to `day_effect`."""
        found: Floats = self.effect[np.searchsorted(self.day, day)]
        return found

    def apart(self) -> "Integers":
        """Positions of days whose effects share no measurement."""
        kept: list[int] = []
        for position in range(len(self.day)):
            near = self.reach[position] + (self.reach[kept[-1]] if kept else 0)
            if not kept or self.day[position] - self.day[kept[-1]] > near:
                kept.append(position)
        return np.array(kept, np.int64)


def day_effect(day: "Integers", series: "Integers", relative: "Floats") -> DayEffect | None:
    """The common part of deviations; all arrays of shape (rows,).

    day      : days since the epoch; series: a number for each machine; relative: its deviation from its own level
    None where no day has FEWEST_MACHINES machines: then nothing can be told apart. Days without enough of them within
    the widest reach take the effect of the days next to them, on a straight line between both.
    """
    days, at = np.unique(day, return_inverse=True)
    members = np.unique(series, return_inverse=True)[1]
    count = int(members.max(initial=-1)) + 1
    if count < FEWEST_MACHINES:
        return None
    left = relative.copy()
    total = np.zeros(len(days))
    reach = np.full(len(days), -1, np.int64)
    order = np.argsort(at, kind="stable")
    starts = np.searchsorted(at[order], np.arange(len(days) + 1))
    for polish in range(_POLISHES):
        effect = np.full(len(days), np.nan)
        for position in range(len(days)):
            for wide in REACHES if polish == 0 else (int(reach[position]),):
                if wide < 0:
                    continue
                first = int(np.searchsorted(days, days[position] - wide))
                last = int(np.searchsorted(days, days[position] + wide, side="right"))
                rows = order[starts[first] : starts[last]]
                means = _means(members[rows], left[rows])
                if len(means) >= FEWEST_MACHINES:
                    effect[position], reach[position] = float(np.median(means)), wide
                    break
        known = np.isfinite(effect)
        if not known.any():
            return None
        total += np.interp(days, days[known], effect[known])
        deviations = relative - total[at]
        by_member = np.argsort(members, kind="stable")
        edges = np.searchsorted(members[by_member], np.arange(count + 1))
        own = np.array([np.median(deviations[by_member[a:b]]) for a, b in zip(edges[:-1], edges[1:], strict=True)])
        left = deviations - own[members]
    return DayEffect(days, total, np.maximum(reach, 0))


def _means(members: "Integers", values: "Floats") -> "Floats":
    """Of each machine among them."""
    unique, at = np.unique(members, return_inverse=True)
    found: Floats = np.bincount(at, values, len(unique)) / np.bincount(at, minlength=len(unique))
    return found
