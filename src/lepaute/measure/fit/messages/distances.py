"""What messages differ by: starts of mpirun, the distance of their ends, flows at once, switches.

Noise drawn message by message averages out over the thousands of an application; what a start has in common does not.

How wide the link of a node is: what several messages at once from one node to another make use of, and back.

An exchange moves `flows` messages of one size each way, from the first begin to the last end by a node's clock.

Do messages differ by the distance of their ends: cores of one cache, socket or node; nodes of one switch or of two?

Compared are starts of mpirun, not messages: all messages of a start have an effect in common, so that many
of one start say little of its pair. The effect of a start is the mean over its ping-pongs, interrupted ones capped; two
classes differ where Welch's interval of the difference of their means leaves out zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas
from scipy import stats

from lepaute.kit.text import significant, value_and_interval
from lepaute.measure.fit.messages.network import LARGE_BYTES, one_way_s, overheads_s, segment_numbers
from lepaute.measure.fit.messages.segment import CAP, FittedSegment
from lepaute.measure.fit.numeric import Floats, weighted_line
from lepaute.measure.fit.observations.columns import net_seconds
from lepaute.simulate.platform.topology import Topology
from lepaute.stats.student import NORMAL_975

#: Columns that tell the starts of an archive apart, where it has them.
START = ("block", "attempt", "host", "peer")
#: Of a message: what calls take of its time leaves so much to the transfer, at least, where effects are told apart.
MAX_OVERHEAD = 0.9
#: Distances of cores, the nearest first, and of nodes.
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


def start_errors(frames: "Sequence[pandas.DataFrame]", segments: tuple[FittedSegment, ...]) -> tuple[float, float]:
    """Relative standard deviations of a start's factors on transfers, and on overheads; 0 with fewer than two starts.

    frames   : point-to-point observations of one class of links, one an archive
    segments : fitted to all of them
    The effect of a start on its calls is the mean of log(measured / fitted), over MPI_Isend and receives of eager
    messages. Of a ping-pong of which the share w is overhead, log(measured / fitted) is w times that effect plus
    1 - w times the one on transfers, which follows by least squares. Interrupted calls are capped. The variance of
    either less what the scatter of single calls explains (method of moments) is known from few starts, as is their
    mean: the result is widened so that 1.96 of it hold a further start as often as Student's prediction interval does.
    """
    table = _by_start(frames)
    count = int(table["start"].max()) + 1 if len(table) else 0
    if count < 2:
        return 0.0, 0.0
    of_calls, calls_noise = _effects_on_calls(table, segments, count)
    own = table[table["operation"] == "pingpong"]
    start, size_bytes = own["start"].to_numpy(), own["size_bytes"].to_numpy(dtype=np.float64)
    fitted_s = np.maximum(one_way_s(segments, size_bytes), 1e-12)
    overhead = np.minimum(overheads_s(segments, size_bytes) / fitted_s, MAX_OVERHEAD)
    log_ratio = np.minimum(np.log(own["net_s"].to_numpy() / (2.0 * fitted_s)), np.log(CAP))
    rest, share = log_ratio - np.mean(log_ratio) - overhead * of_calls[start], 1.0 - overhead
    weight = np.maximum(np.bincount(start, share**2, count), 1e-12)
    of_transfers = np.bincount(start, share * rest, count) / weight
    scatter = float(np.sum((rest - share * of_transfers[start]) ** 2)) / max(len(start) - count, 1)
    by_calls = np.bincount(start, share * overhead, count) / weight
    return _between(of_transfers, scatter / weight + by_calls**2 * calls_noise), _between(of_calls, calls_noise)


def _between(effects: Floats, noise: Floats) -> float:
    """Standard deviation that holds a further effect, from those seen and the variances of their errors."""
    variance = float(np.var(effects, ddof=1)) - float(np.mean(noise))
    widened = float(stats.t.ppf(0.975, len(effects) - 1)) / NORMAL_975 * float(np.sqrt(1.0 + 1.0 / len(effects)))
    return widened * float(np.sqrt(max(variance, 0.0)))


def _effects_on_calls(
    table: "pandas.DataFrame", segments: tuple[FittedSegment, ...], count: int
) -> tuple[Floats, Floats]:
    """Effect of each start about their mean, and variance of its error; 0 if calls were not timed in each start."""
    size_bytes = table["size_bytes"].to_numpy(dtype=np.float64)
    segment, operation = segment_numbers(segments, size_bytes), table["operation"].to_numpy()
    starts, ratios = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for number, part in enumerate(segments):
        # A receive of any other message is a transfer.
        for name, line in (("isend", part.isend), *([("recv", part.receive)] if part.protocol == "eager" else [])):
            own = (operation == name) & (segment == number)
            call_s = line[0] + line[1] * size_bytes[own]
            if own.any() and np.all(call_s > 0.0):
                log_ratio = np.log(table["net_s"].to_numpy()[own] / call_s)
                capped = np.minimum(log_ratio, np.median(log_ratio) + np.log(CAP))
                starts.append(table["start"].to_numpy()[own])
                ratios.append(capped - np.mean(capped))  # calls may take longer here than within a ping-pong
    start, ratio = np.concatenate(starts), np.concatenate(ratios)
    calls = np.bincount(start, minlength=count)
    if np.any(calls == 0):
        return np.zeros(count), np.zeros(count)
    effects = np.bincount(start, ratio, count) / calls
    scatter = float(np.sum((ratio - effects[start]) ** 2)) / max(len(start) - count, 1)
    return effects - np.mean(effects), scatter / calls


def _by_start(frames: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    """operation, size_bytes, net_s (at least a nanosecond) and the number of the start, from 0 without gaps, of the
    starts that have ping-pongs. Either end of a pair may be the host of a row: receives are timed by the other rank."""
    tables, first = [], 0
    for frame in frames:
        keys = [column for column in START if column in frame.columns]
        pings = frame["operation"].astype(str) == "pingpong"
        if not pings.any() or not keys:
            continue
        of_start = frame[keys].astype(str)
        if {"host", "peer"} <= set(keys):
            of_start[["host", "peer"]] = np.sort(of_start[["host", "peer"]].to_numpy(dtype=str), axis=1)
        number = of_start.groupby(keys, sort=False).ngroup()
        known = pandas.Index(number[pings].unique())
        own = frame[number.isin(known)]
        tables.append(
            pandas.DataFrame(
                {
                    "operation": own["operation"].astype(str),
                    "size_bytes": own["size_bytes"],
                    "net_s": np.maximum(net_seconds(own), 1e-9),
                    "start": known.get_indexer(number[number.isin(known)]) + first,
                }
            )
        )
        first += len(known)
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame({"start": []})


@dataclass(frozen=True, slots=True)
class FlowCurve:
    """Bytes per second each way that this many flows reach together, by their number, in increasing number."""

    reached_Bps: dict[int, float]  # noqa: N815 - the unit

    @property
    def best(self) -> tuple[int, float]:
        """The number of flows that reach most, and how much; of equals the smallest."""
        return max(self.reached_Bps.items(), key=lambda item: (item[1], -item[0]))


def flow_curve(frames: "Sequence[pandas.DataFrame]") -> FlowCurve | None:
    """From the flows of one or more archives, of all pairs of nodes; None without any.

    For each number of flows the slope of the exchange's duration over the size, through the medians of each size with
    relative weights: what is the same for all sizes, such as the start of the exchange, is no part of it.
    """
    exchanges = [_exchange_table(frame) for frame in frames]
    if not (kept := [table for table in exchanges if len(table)]):
        return None
    table = pandas.concat(kept, ignore_index=True)
    counts = sorted(map(int, table["flows"].unique()))
    reached = {count: count / _seconds_per_byte(table[table["flows"] == count]) for count in counts}
    return FlowCurve(reached) if reached else None


def _exchange_table(frame: "pandas.DataFrame") -> "pandas.DataFrame":
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
    """Difference of the means of two classes, the first subtracted from the second, with an interval."""

    estimate: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class DistanceEffect:
    """Duration of messages at `distance` against those at the nearest one.

    latency_s: more of a small message; log_ratio: of the times of large ones; None if that is not known
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
            figure, bounds = value_and_interval(*(1e6 * end for end in (part.estimate, part.low, part.high)))
            parts.append(f"{'+' * (part.estimate > 0.0)}{figure} µs ({bounds} µs) if small")
        if self.log_ratio is not None and self.log_ratio.is_clear:
            low, ratio, high = np.exp([self.log_ratio.low, self.log_ratio.estimate, self.log_ratio.high])
            figure, bounds = value_and_interval(float(ratio), float(low), float(high))
            parts.append(f"{figure} times ({bounds}) as long if large")
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
            _welch(small.get(measured[0]), small.get(name), 0, MISS / comparisons),
            _welch(large.get(measured[0]), large.get(name), 1, MISS / comparisons),
        )
        for name in measured[1:]
    ]


def _welch(one: Floats | None, other: Floats | None, column: int, miss: float) -> Difference | None:
    """Interval of the difference of two means by Welch's t; None with fewer than two starts of either.

    one, other: shape (starts, 2), of which `column` is compared
    """
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
            net_s = net_seconds(start) / 2.0
            fitted_s = np.maximum(one_way_s(segments, start["size_bytes"].to_numpy(dtype=np.float64)), 1e-12)
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
        if self.uplink_Bps is not None:
            return (
                f"Two nodes of different switches reach {significant(self.uplink_Bps / 1e9)} GB/s together, less than "
                "two of one switch: so much is taken for all that leaves a switch."
            )
        return (
            "What leaves a switch is taken to have as much room as the links of its nodes together: many nodes at once "
            "were not measured."
        )


def longer_way(effects: Sequence[DistanceEffect]) -> float | None:
    """How much longer a small message takes from one switch to another, in seconds; None if that is not clear."""
    for effect in effects:
        part = effect.latency_s
        if effect.distance == ACROSS and part is not None and part.low > 0:
            return part.estimate
    return None


def uplink_Bps(frames: "Sequence[pandas.DataFrame]") -> float | None:  # noqa: N802 - the unit
    """What pairs across reach together with most flows, where it is clearly less than that of pairs of one switch.

    Compared are the means of log(bytes per second) of starts, at the largest size and number of flows.
    """
    tables = [table for frame in frames if len(table := _exchange_table(frame))]
    if not tables:
        return None
    table = pandas.concat(tables, ignore_index=True)
    table = table[(table["flows"] == table["flows"].max())]
    table = table[table["size_bytes"] == table["size_bytes"].max()]
    keys = ["distance", *(key for key in ("pair", "block", "attempt") if key in table.columns)]
    rate = np.log(table["flows"] * table["size_bytes"] / table["duration_s"])
    starts = rate.groupby([table[key] for key in keys]).median()
    by_class = {name: part.to_numpy(dtype=np.float64)[:, None] for name, part in starts.groupby(level=0)}
    found = _welch(by_class.get(SAME_SWITCH), by_class.get(ACROSS), 0, UPLINK_MISS)
    return float(np.exp(np.mean(by_class[ACROSS]))) if found is not None and found.high < 0 else None
