"""Whether the mean of a class of calls differs from that of all, when calls of one process are not independent."""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.numeric import Floats, Integers

#: With fewer units the deviation between them says too little.
FEWEST_UNITS = 6


@dataclass(frozen=True, slots=True)
class Contrast:
    """difference: mean of the class less that of all; t: over its standard error; p_value: two-sided, Student's."""

    difference: float
    t: float
    p_value: float


def contrasts(values: Floats, number: Integers, unit: Integers) -> list[Contrast]:
    """The contrast of each class against all calls, classes and units numbered from 0.

    values, number, unit : shape (calls,)
    The standard error is that of sums over units (clusters), whatever the calls of one unit have in common: with the
    influence a_i of call i on the difference, its variance is G / (G - 1) sum over units of (sum of a_i)^2 (Cameron &
    Miller, Journal of Human Resources 50, 2015, section II). Degrees of freedom: the number of units that the class
    effectively rests on, (sum s)^2 / sum s^2 for the squares s of the units' sums, less 1, and no more than the units
    less 1. Below FEWEST_UNITS units the p-value is 1.
    """
    from scipy.special import stdtr

    units, count = int(unit.max()) + 1, len(values)
    overall = values - values.mean()
    result = []
    for which in range(int(number.max()) + 1):
        inside = number == which
        size = int(np.count_nonzero(inside))
        if size in (0, count):
            result.append(Contrast(0.0, 0.0, 1.0))
            continue
        inside_values = values[inside]
        difference = float(inside_values.mean() - values.mean())
        influence = -overall / count
        influence[inside] += (inside_values - inside_values.mean()) / size
        sums = np.bincount(unit, weights=influence, minlength=units)
        seen = np.bincount(unit[inside], minlength=units)
        present = int(np.count_nonzero(seen))
        effective = float(seen.sum()) ** 2 / float((seen.astype(np.float64) ** 2).sum())
        if present < FEWEST_UNITS or effective < FEWEST_UNITS / 2:
            result.append(Contrast(difference, 0.0, 1.0))
            continue
        variance = present / (present - 1) * float(np.sum(sums**2))
        t = difference / variance**0.5 if variance > 0 else 0.0
        result.append(Contrast(difference, t, 2.0 * float(stdtr(min(present, effective) - 1.0, -abs(t)))))
    return result
