"""Do messages differ by the distance of their ends: cores of one cache, socket or node; nodes of one switch or of two?

Compared are starts of mpirun, not messages: all messages of a start have an effect in common (`starts`), so that many
of one start say little of its pair. The effect of a start is the mean over its ping-pongs, interrupted ones capped; two
classes differ where Welch's interval of the difference of their means leaves out zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.messages.network import LARGE_BYTES, one_way_s
from lepaute.fit.messages.segment import FittedSegment
from lepaute.fit.messages.series import CAP
from lepaute.fit.messages.starts import START
from lepaute.fit.numeric.arrays import Floats

if TYPE_CHECKING:
    import pandas

#: Of cores, the nearest first; of nodes.
INSIDE, BETWEEN = ("same-l3", "same-socket", "other-socket"), ("same-switch", "across")
#: Messages up to this size are latency above all.
SMALL_BYTES = 1024
#: Chance that classes that are alike are said to differ, in small or in large messages.
MISS = 0.05
_NAMES = {
    "same-l3": "cores of one last-level cache",
    "same-socket": "cores of one socket",
    "other-socket": "cores of different sockets",
    "same-switch": "nodes of one switch",
    "across": "nodes of different switches",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """Of the means of two classes, the first subtracted from the second, with an interval."""

    estimate: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class DistanceEffect:
    """What messages take at `distance` against those at the nearest one.

    latency_s: more of a small message; log_ratio: of the times of large ones; None where that is not known
    """

    nearest: str
    distance: str
    latency_s: Difference | None
    log_ratio: Difference | None

    @property
    def matters(self) -> bool:
        return any(part is not None and part.is_clear for part in (self.latency_s, self.log_ratio))

    def sentence(self) -> str:
        """For a reader of the fit, of an effect that matters."""
        parts = []
        if self.latency_s is not None and self.latency_s.is_clear:
            part = self.latency_s
            parts.append(f"{part.estimate * 1e6:+.2f} us ({part.low * 1e6:+.2f} to {part.high * 1e6:+.2f}) if small")
        if self.log_ratio is not None and self.log_ratio.is_clear:
            low, ratio, high = np.exp([self.log_ratio.low, self.log_ratio.estimate, self.log_ratio.high])
            parts.append(f"{ratio:.2f} times ({low:.2f} to {high:.2f}) as long if large")
        than = f"than between {_NAMES[self.nearest]}"
        return f"Messages between {_NAMES[self.distance]} take {' and '.join(parts)} {than}."


def distance_effects(
    frames: "Sequence[pandas.DataFrame]", segments: tuple[FittedSegment, ...], classes: Sequence[str]
) -> list[DistanceEffect]:
    """The effect of each class against the nearest one that was measured; none where only one was, or it is not known.

    frames  : point-to-point observations of one class of links, one an archive
    segments: fitted to all of them
    classes : INSIDE or BETWEEN
    """
    small = _effects_of_starts(frames, segments, (-1.0, SMALL_BYTES))
    large = _effects_of_starts(frames, segments, (LARGE_BYTES, np.inf))
    measured = [name for name in classes if name in small or name in large]
    comparisons = 2 * (len(measured) - 1)
    return [
        DistanceEffect(
            measured[0],
            name,
            welch(small.get(measured[0]), small.get(name), 0, MISS / comparisons),
            welch(large.get(measured[0]), large.get(name), 1, MISS / comparisons),
        )
        for name in measured[1:]
    ]


def welch(one: Floats | None, other: Floats | None, column: int, miss: float) -> Difference | None:
    """Interval of the difference of two means by Welch's t; None with fewer than two starts of either.

    one, other: shape (starts, 2), of which `column` is compared
    """
    from scipy import stats

    if one is None or other is None or min(len(one), len(other)) < 2:
        return None
    parts = [(np.mean(values[:, column]), np.var(values[:, column], ddof=1) / len(values)) for values in (one, other)]
    (mean, variance), (its_mean, its_variance) = parts
    error = float(np.sqrt(variance + its_variance))
    estimate = float(its_mean - mean)
    if error == 0:
        return Difference(estimate, estimate, estimate)
    freedom = (variance + its_variance) ** 2 / (variance**2 / (len(one) - 1) + its_variance**2 / (len(other) - 1))
    reach = float(stats.t.ppf(1 - miss / 2, freedom)) * error
    return Difference(estimate, estimate - reach, estimate + reach)


def _effects_of_starts(
    frames: "Sequence[pandas.DataFrame]", segments: tuple[FittedSegment, ...], sizes: tuple[float, float]
) -> dict[str, Floats]:
    """By class, a row a start: mean of measured - fitted one-way times in seconds, mean of the log of their ratio."""
    found: dict[str, list[tuple[float, float]]] = {}
    for frame in frames:
        if "distance" not in frame.columns:
            continue
        own = frame[(frame["operation"].astype(str) == "pingpong") & frame["distance"].notna()]
        own = own[(own["size_bytes"] > sizes[0]) & (own["size_bytes"] <= sizes[1])]
        keys = ["distance", *(column for column in START if column in own.columns)]
        for key, start in own.groupby(keys, sort=False, observed=True):
            size = start["size_bytes"].to_numpy(dtype=np.float64)
            net_s = (start["duration_s"] - start["clock_cost_s"]).to_numpy(dtype=np.float64) / 2.0
            fitted_s = np.maximum(one_way_s(segments, size), 1e-12)
            capped_s = np.clip(net_s, 1e-9, CAP * np.maximum(fitted_s, np.median(net_s / fitted_s) * fitted_s))
            effect = float(np.mean(capped_s - fitted_s)), float(np.mean(np.log(capped_s / fitted_s)))
            found.setdefault(str(key[0]), []).append(effect)
    return {name: np.array(effects) for name, effects in found.items()}
