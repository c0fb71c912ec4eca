"""How much of the spread between days all units share, and how much is each unit's own."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import fsum, sqrt

from lepaute.errors import FitError


@dataclass(frozen=True, slots=True)
class DayEffects:
    """Relative standard deviations between days, and what they were taken from."""

    common_relative_sd: float
    unit_relative_sd: float
    degrees_of_freedom: int  # days - 1
    days: int
    units: int


def day_effects(rows: Iterable[tuple[Hashable, Hashable, float]]) -> DayEffects:
    """Splits the variation over days into a part common to all units and a part of each unit's own.

    rows : (unit, day, value), value > 0 in any one unit; several rows of one unit and day are averaged
    Model: value = mean of the unit · (1 + common(day) + own(unit, day)). The relative deviations of a day, averaged
    over its units, estimate common(day); what remains, pooled, gives own. The mean over a day's units still holds a
    share of own, var(own) / number of units, which is taken off the variance of common (not below 0): the two-way
    analysis of variance without replication. Only days on which at least half of the units were seen count.
    Raises FitError where fewer than two such days, or fewer than two units, remain.
    """
    cells: dict[tuple[Hashable, Hashable], list[float]] = defaultdict(list)
    for unit, day, value in rows:
        if not value > 0:
            raise FitError(f"the value of {unit} on {day} is {value!r}; relative deviations need values above 0")
        cells[day, unit].append(value)
    all_units = {unit for _, unit in cells}
    by_day: dict[Hashable, dict[Hashable, float]] = defaultdict(dict)
    for (day, unit), values in cells.items():
        by_day[day][unit] = fsum(values) / len(values)
    kept = {day: seen for day, seen in by_day.items() if 2 * len(seen) >= len(all_units)}
    if len(kept) < 2 or len(all_units) < 2:
        raise FitError(
            f"day effects need two units and two days with half of the units each; got {len(all_units)} and {len(kept)}"
        )
    return _split(kept)


def _split(by_day: dict[Hashable, dict[Hashable, float]]) -> DayEffects:
    of_unit: dict[Hashable, list[float]] = defaultdict(list)
    for seen in by_day.values():
        for unit, value in seen.items():
            of_unit[unit].append(value)
    mean = {unit: fsum(values) / len(values) for unit, values in of_unit.items()}
    common, remainders = [], []
    for seen in by_day.values():
        deviations = [value / mean[unit] - 1 for unit, value in seen.items()]
        centre = fsum(deviations) / len(deviations)
        common.append(centre)
        remainders += [deviation - centre for deviation in deviations]
    days, units = len(by_day), len(mean)
    # a mean for each unit and one for each day have been taken off; the general mean is in both
    own_variance = fsum(r * r for r in remainders) / max(1, len(remainders) - days - units + 1)
    centre = fsum(common) / days
    variance = fsum((c - centre) ** 2 for c in common) / (days - 1)
    leaked = own_variance * fsum(1 / len(seen) for seen in by_day.values()) / days
    return DayEffects(sqrt(max(0.0, variance - leaked)), sqrt(own_variance), days - 1, days, units)
