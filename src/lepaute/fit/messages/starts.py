"""What differs between starts of mpirun: all messages of one start are a little faster or slower than those of another.

Noise drawn message by message averages out over the thousands of an application; what a start has in common does not.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.messages.network import one_way_s
from lepaute.fit.messages.segment import FittedSegment
from lepaute.fit.messages.series import CAP
from lepaute.fit.numeric.arrays import Floats, Integers

if TYPE_CHECKING:
    import pandas

#: Columns that tell the starts of an archive apart, where it has them.
START = ("block", "attempt", "host", "peer")
#: Quantile of the normal distribution, in whose units the result is.
NORMAL_975 = 1.959964


def start_relative_sd(frames: "Sequence[pandas.DataFrame]", segments: tuple[FittedSegment, ...]) -> float:
    """Relative standard deviation of a start's factor on its messages, from ping-pongs; 0 with fewer than two starts.

    frames   : point-to-point observations of one class of links, one an archive
    segments : fitted to all of them
    A start's effect is the mean of log(measured / fitted), interrupted messages capped. Their variance less what the
    scatter of single messages explains (method of moments) is known from few starts, as is their mean: the result is
    widened so that 1.96 of it hold a further start as often as Student's prediction interval does.
    """
    from scipy import stats

    starts, log_ratio = _log_ratios(frames, segments)
    count = np.bincount(starts)
    if len(count) < 2:
        return 0.0
    mean = np.bincount(starts, log_ratio) / count
    within = float(np.sum((log_ratio - mean[starts]) ** 2)) / max(len(starts) - len(count), 1)
    variance = float(np.var(mean, ddof=1)) - within * float(np.mean(1.0 / count))
    widened = float(stats.t.ppf(0.975, len(count) - 1)) / NORMAL_975 * float(np.sqrt(1.0 + 1.0 / len(count)))
    return widened * float(np.sqrt(max(variance, 0.0)))


def _log_ratios(frames: "Sequence[pandas.DataFrame]", segments: tuple[FittedSegment, ...]) -> tuple[Integers, Floats]:
    """Number of the start, from 0 without gaps, and log(measured / fitted), of each ping-pong."""
    numbers: list[Integers] = []
    ratios: list[Floats] = []
    first = 0
    for frame in frames:
        own = frame[frame["operation"].astype(str) == "pingpong"]
        keys = [column for column in START if column in own.columns]
        if len(own) == 0 or not keys:
            continue
        number = np.asarray(own.groupby(keys, sort=False, observed=True).ngroup(), dtype=np.int64)
        numbers.append(number + first)
        first += int(number.max()) + 1
        net_s = own["duration_s"].to_numpy(dtype=np.float64) - own["clock_cost_s"].to_numpy(dtype=np.float64)
        fitted_s = 2.0 * one_way_s(segments, own["size_bytes"].to_numpy(dtype=np.float64))
        ratios.append(np.minimum(np.log(np.maximum(net_s, 1e-9) / np.maximum(fitted_s, 1e-12)), np.log(CAP)))
    if not numbers:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    return np.concatenate(numbers), np.concatenate(ratios)
