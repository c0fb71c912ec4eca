"""How alike neighbours of a series are, whether or not its level changes on the way.

The plain correlation of neighbours takes a change of level for correlation, and then no change would ever be found. So
there are two estimates, both from ranks, against outliers; each errs upwards in its own way, and the smaller one
counts.
"""

from math import sqrt
from typing import TYPE_CHECKING

from lepaute.stats.rank_cusum import largest_change, ranks

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: Never above this, or nothing could be distinguished from a wandering level any more.
MOST_CORRELATION = 0.9
#: Standard errors added, since a correlation taken too low makes false alarms and one taken too high costs power. The
#: estimate from differences has the wider error, 1.8 to 2.4 / root n by simulation for rho from 0 to 0.6. With the
#: other one besides, steps of six standard deviations in 40 values are found in 72 % of series at rho = 0.6, not 26 %.
CAUTION_DIFFERENCES = 1.0
CAUTION_LEVELS = 1.5


def cautious_correlation(values: "Floats") -> float:
    """An upper estimate of the correlation of neighbours, 0 to MOST_CORRELATION, for n >= 8 values, shape (n,).

    The smaller of the two estimates below, each with its standard errors added: 2 / root n and 1 / root n. Rounded to
    steps of 0.05, so that simulated tables are shared. Where the level changes more than once, the first one holds.
    """
    count = len(values)
    from_differences = differences_correlation(values) + CAUTION_DIFFERENCES * 2 / sqrt(count)
    level = levels_correlation(values)
    # levels taken off lower a correlation by about (2 + 4 rho) / n (Kendall's bias, one more value for the second mean)
    from_levels = level + CAUTION_LEVELS / sqrt(count) + (2 + 4 * level) / count
    return min(MOST_CORRELATION, round(min(from_differences, from_levels) * 20) / 20)


def differences_correlation(values: "Floats") -> float:
    """The correlation from differences, which a change of level hardly touches; 0 to MOST_CORRELATION.

    The mean square of x(i+2) - x(i) over that of x(i+1) - x(i) is 1 + rho for an autoregressive series. A step is in
    one or two differences only; the largest tenth of each is left out. A negative estimate counts as 0.
    """
    import numpy as np

    ranked = ranks(values)
    near, far = (_trimmed_square(ranked[lag:] - ranked[:-lag]) for lag in (1, 2))
    if near == 0:
        return 0.0 if far == 0 else MOST_CORRELATION
    return float(np.clip(far / near - 1, 0.0, MOST_CORRELATION))


def levels_correlation(values: "Floats") -> float:
    """The plain correlation of neighbours after the means before and after the largest change; 0 to 1."""
    import numpy as np

    ranked = ranks(values)
    cut = min(max(largest_change(values).index, 2), len(values) - 2)
    rest = np.concatenate([side - side.mean() for side in (ranked[:cut], ranked[cut:])])
    power = float((rest * rest).sum())
    return max(0.0, float((rest[1:] * rest[:-1]).sum()) / power) if power > 0 else 0.0


def _trimmed_square(differences: "Floats") -> float:
    import numpy as np

    squares = np.sort(differences * differences)
    return float(squares[: len(squares) - max(1, len(squares) // 10)].mean())
