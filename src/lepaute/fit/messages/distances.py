"""What messages differ by: starts of mpirun, the distance of their ends, flows at once, switches.

Noise drawn message by message averages out over the thousands of an application; what a start has in common does not.

How wide the link of a node is: what several messages at once from one node to another make use of, and back.

An exchange moves `flows` messages of one size each way. On either node it lasts from the first of its ranks that begins
to the last that ends, by the clock of that node.

Do messages differ by the distance of their ends: cores of one cache, socket or node; nodes of one switch or of two?

Compared are starts of mpirun, not messages: all messages of a start have an effect in common, so that many
of one start say little of its pair. The effect of a start is the mean over its ping-pongs, interrupted ones capped; two
classes differ where Welch's interval of the difference of their means leaves out zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.messages.network import LARGE_BYTES, one_way_s
from lepaute.fit.messages.segment import CAP, FittedSegment
from lepaute.fit.numeric import Floats, Integers, weighted_line
from lepaute.fit.observations.columns import net_seconds
from lepaute.platform.topology import Topology

if TYPE_CHECKING:
    import pandas

#: Columns that tell the starts of an archive apart, where it has them.
START = ("block", "attempt", "host", "peer")
#: Quantile of the normal distribution, in whose units the result is.
NORMAL_975 = 1.959964
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
SAME_SWITCH, ACROSS = BETWEEN
#: Chance that a way between switches is said to be narrower where it is not.
UPLINK_MISS = 0.05


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
        net_s = net_seconds(own)
        fitted_s = 2.0 * one_way_s(segments, own["size_bytes"].to_numpy(dtype=np.float64))
        ratios.append(np.minimum(np.log(np.maximum(net_s, 1e-9) / np.maximum(fitted_s, 1e-12)), np.log(CAP)))
    if not numbers:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    return np.concatenate(numbers), np.concatenate(ratios)


@dataclass(frozen=True, slots=True)
class FlowCurve:
    """Bytes per second each way that so many flows reach together, by their number, in increasing number."""

    reached_Bps: dict[int, float]  # noqa: N815 - the unit

    @property
    def best(self) -> tuple[int, float]:
        """The number of flows that reach most, and how much; of equals the smallest."""
        return max(self.reached_Bps.items(), key=lambda item: (item[1], -item[0]))


def flow_curve(frames: "Sequence[pandas.DataFrame]", distance: str | None = None) -> FlowCurve | None:
    """From the flows of one or more archives, of pairs of nodes at that distance, or of all; None without any.

    For each number of flows the slope of the exchange's duration over the size, through the medians of each size with
    relative weights: what is the same for all sizes, such as the start of the exchange, is no part of it.
    """
    import pandas

    exchanges = [exchange_table(frame) for frame in frames]
    if not (kept := [table for table in exchanges if len(table)]):
        return None
    table = pandas.concat(kept, ignore_index=True)
    if distance is not None:
        table = table[table["distance"] == distance]
    counts = sorted(map(int, table["flows"].unique()))
    reached = {count: count / _seconds_per_byte(table[table["flows"] == count]) for count in counts}
    return FlowCurve(reached) if reached else None


def exchange_table(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """One row an exchange: its start of mpirun, distance, flows, size_bytes, duration_s (mean of the two nodes)."""
    rows = frame[(frame["call"].astype(str) == "exchange") & (frame["link"] == "remote")].copy()
    if "distance" not in rows.columns:
        rows["distance"] = None
    rows["distance"] = rows["distance"].astype(object).where(rows["distance"].notna(), "")
    ends = [rows[["host", "peer"]].astype(str).min(axis=1), rows[["host", "peer"]].astype(str).max(axis=1)]
    rows["pair"] = ends[0] + " " + ends[1]
    rows["end_s"] = rows["start_s"] + rows["duration_s"]
    rows["flows"] = rows["ranks"] // 2
    start = ["pair", *(key for key in START if key in ("block", "attempt") and key in rows.columns)]
    keys = [*start, "distance", "flows", "design_row", "size_bytes"]
    sides = rows.groupby([*keys, "host"], observed=True).agg(first=("start_s", "min"), last=("end_s", "max"))
    sides["duration_s"] = sides["last"] - sides["first"]
    return sides.groupby(keys, observed=True)["duration_s"].mean().reset_index()


def _seconds_per_byte(rows: "pandas.DataFrame") -> float:
    """Of each flow, by a line through the medians; by the largest size alone where there is no other."""
    medians = rows.groupby("size_bytes")["duration_s"].median()
    size, duration_s = medians.index.to_numpy(dtype=np.float64), medians.to_numpy(dtype=np.float64)
    if len(size) > 1:
        _, slope = weighted_line(size, duration_s, 1.0 / duration_s**2)
        if slope > 0:
            return slope
    return float(duration_s[-1] / size[-1])


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
            net_s = net_seconds(start) / 2.0
            fitted_s = np.maximum(one_way_s(segments, size), 1e-12)
            capped_s = np.clip(net_s, 1e-9, CAP * np.maximum(fitted_s, np.median(net_s / fitted_s) * fitted_s))
            effect = float(np.mean(capped_s - fitted_s)), float(np.mean(np.log(capped_s / fitted_s)))
            found.setdefault(str(key[0]), []).append(effect)
    return {name: np.array(effects) for name, effects in found.items()}


@dataclass(frozen=True, slots=True)
class SwitchTree:
    """Two levels: `switches`, by the numbers of their nodes, and one above all.

    extra_latency_s: of a message from one switch to another
    uplink_Bps     : what the nodes of one switch reach to those of another, where that is less than inside a switch;
                     None: a cable upwards takes as much as the links of the switch's nodes together
    """

    switches: Sequence[Sequence[int]]
    extra_latency_s: float
    uplink_Bps: float | None  # noqa: N815 - the unit

    def topology(self, link_Bps: float) -> Topology:
        """As a platform has it; link_Bps: of a node."""
        leaves = [f"leaf{number + 1}" for number in range(len(self.switches))]
        return Topology.model_validate(
            {
                "kind": "graph",
                "switches": [
                    *(
                        {"name": name, "nodes": ",".join(map(str, nodes))}
                        for name, nodes in zip(leaves, self.switches, strict=True)
                    ),
                    {"name": "top"},
                ],
                "links": [
                    {
                        "between": [name, "top"],
                        "bandwidth_Bps": self.uplink_Bps or len(nodes) * link_Bps,
                        "latency_s": self.extra_latency_s / 2.0,
                    }
                    for name, nodes in zip(leaves, self.switches, strict=True)
                ],
            }
        )

    def sentence(self) -> str:
        """For a reader of the platform."""
        if self.uplink_Bps is not None:
            return (
                f"Two nodes of different switches reach {self.uplink_Bps / 1e9:.3g} GB/s together, less than two of "
                "one switch: so much is taken for all that leaves a switch."
            )
        return (
            "What leaves a switch is taken to have as much room as the links of its nodes together: many nodes at once "
            "were not measured."
        )


def longer_way(effects: Sequence[DistanceEffect]) -> float | None:
    """How much longer a small message takes from one switch to another, in seconds; None where that is not clear."""
    for effect in effects:
        part = effect.latency_s
        if effect.distance == ACROSS and part is not None and part.low > 0:
            return part.estimate
    return None


def uplink_Bps(frames: "Sequence[pandas.DataFrame]") -> float | None:  # noqa: N802 - the unit
    """What pairs across reach together with most flows, where it is clearly less than that of pairs of one switch.

    Compared are the means of log(bytes per second) of starts, at the largest size and number of flows.
    """
    import numpy as np
    import pandas

    tables = [table for frame in frames if len(table := exchange_table(frame))]
    if not tables:
        return None
    table = pandas.concat(tables, ignore_index=True)
    table = table[(table["flows"] == table["flows"].max())]
    table = table[table["size_bytes"] == table["size_bytes"].max()]
    keys = ["distance", *(key for key in ("pair", "block", "attempt") if key in table.columns)]
    rate = np.log(table["flows"] * table["size_bytes"] / table["duration_s"])
    starts = rate.groupby([table[key] for key in keys]).median()
    by_class = {name: part.to_numpy(dtype=np.float64)[:, None] for name, part in starts.groupby(level=0)}
    found = welch(by_class.get(SAME_SWITCH), by_class.get(ACROSS), 0, UPLINK_MISS)
    return float(np.exp(np.mean(by_class[ACROSS]))) if found is not None and found.high < 0 else None
