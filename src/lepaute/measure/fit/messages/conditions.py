"""Messages while the machine does something else: the ring of an archive, by condition, as series that can be fitted,
and how much longer messages take than on idle nodes.

What the time of a message is, by condition (as the exchange of two ranks is timed on the clock of the first):
    idle, dgemm          : half of an exchange, as of a ping-pong; the two wait in MPI_Recv
    iprobe               : half of an exchange up to the eager limit; above it the time of MPI_Recv, which begins when
                           MPI_Iprobe has found the message: the transfer, less what polling adds
    iprobe+dgemm         : the same; but the exchange holds the pieces of dgemm that are computed between two polls,
                           so that up to the eager limit the exchanges of another condition stand for it
So a loaded model holds what a message takes once its receiver turns to it; a simulation follows the program that polls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas

from lepaute.errors import FitError
from lepaute.kit.text import with_interval
from lepaute.measure.fit.messages.segment import Series, series
from lepaute.measure.fit.numeric import Floats
from lepaute.measure.fit.observations.columns import check_columns, net_seconds
from lepaute.measure.observation_columns import NEEDED, RING
from lepaute.stats.intervals import median_interval

CONDITIONS = ("idle", "dgemm", "iprobe", "iprobe+dgemm")
#: Conditions whose exchanges hold nothing but messages, the likest to iprobe+dgemm first.
IN_ITS_PLACE = ("iprobe", "dgemm", "idle")
#: Fewer measurements than these are not fitted.
FEWEST = 10
#: Sizes are put into this many groups of neighbours, where there are more of them.
GROUPS = 20
#: A group counts with this many messages under either condition.
MIN_IN_A_GROUP = 3
#: Chance that the interval of a ratio misses it.
MISS = 0.05


def loaded_series(
    frames: "Sequence[pandas.DataFrame]", condition: str, eager_bytes: float, usual: dict[str, Series]
) -> dict[str, Series]:
    """Series under a condition by operation: pingpong, isend and recv, as `fit_network` takes them.

    frames      : ring observations of one class of links
    eager_bytes : the eager limit
    usual       : the same operations without a ring: they stand for what the ring does not time by itself
    Raises FitError if the ring was not measured under that condition, or a column is missing.
    """
    table = _table(frames)
    measured = [name for name in CONDITIONS if (table["condition"] == name).any()]
    if condition not in measured:
        have = f"only under {', '.join(measured)}" if measured else "nor under any other"
        raise FitError(
            f"the ring was not measured under {condition}, {have}; calibrate it, or give another --network-condition"
        )
    exchanges = _calls(table, condition, "exchange")
    if condition == "iprobe+dgemm":
        exchanges = next(
            (_calls(table, name, "exchange") for name in IN_ITS_PLACE if name in measured), usual["pingpong"]
        )
    parts = [exchanges]
    posting = _calls(table, condition, "isend", "shift")
    taking = usual["recv"]
    if condition.startswith("iprobe"):
        receives = _calls(table, condition, "recv")
        # As there and back, which is what `fit_network` halves.
        parts = [exchanges.within(-1.0, eager_bytes), receives.within(eager_bytes, np.inf).scaled(2.0)]
        copies = receives.within(-1.0, eager_bytes)
        taking = copies if len(copies) >= FEWEST else usual["recv"]
    message = series(
        np.concatenate([part.size_bytes for part in parts]), np.concatenate([part.duration_s for part in parts])
    )
    if len(message) < FEWEST:
        raise FitError(f"the ring has {len(message)} messages under {condition}; calibrate with more")
    return {"pingpong": message, "isend": posting if len(posting) >= FEWEST else usual["isend"], "recv": taking}


def receives_after_probes(frames: "Sequence[pandas.DataFrame]") -> Series:
    """MPI_Recv of messages that MPI_Iprobe found between pieces of dgemm; empty if the ring did not measure it."""
    return _calls(_table(frames), "iprobe+dgemm", "recv")


def conditions_of(frames: "Sequence[pandas.DataFrame]") -> list[str]:
    """The conditions that the ring was measured under."""
    table = _table(frames)
    return [name for name in CONDITIONS if (table["condition"] == name).any()]


def _calls(table: "pandas.DataFrame", condition: str, call: str, operation: str = "pingpong") -> Series:
    mine = (table["condition"] == condition) & (table["call"] == call) & (table["operation"] == operation)
    rows = table[mine & (table["role"] == "first")] if call == "exchange" else table[mine]
    return series(rows["size_bytes"].to_numpy(dtype=np.float64), net_seconds(rows))


def _table(frames: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    for frame in frames:
        check_columns(frame, RING)
    if not frames:
        return pandas.DataFrame({column: [] for column in NEEDED[RING]})
    return pandas.concat([frame.loc[:, list(NEEDED[RING])] for frame in frames], ignore_index=True)


@dataclass(frozen=True, slots=True)
class ConditionEffect:
    """Time of messages under a condition over that of the same messages on idle nodes.

    sizes : above the first and up to the second, in bytes (the eager limit parts them)
    ratio : median over groups of sizes of the ratio of medians; low and high bound it with 95 % confidence by order
            statistics: of the ratios, or, with fewer than 6 groups, of the repetitions in each; None with too few
    """

    link: str
    condition: str
    sizes: tuple[float, float]
    ratio: float
    low: float | None
    high: float | None
    groups: int

    def sentence(self) -> str:
        where = "inside nodes" if self.link == "local" else "between nodes"
        low, high = self.sizes
        which = f"up to {high:.0f} bytes" if low < 0 else f"above {low:.0f} bytes"
        if low < 0 and high == float("inf"):
            which = "of all sizes"
        ratio = with_interval(self.ratio, self.low, self.high, basis="")
        ratio += " (no interval: too few)" if self.low is None else ""
        return f"Messages {where} {which} take {ratio} times as long under {self.condition} as idle."


def condition_effects(link: str, by_condition: Mapping[str, Series], eager_bytes: float) -> tuple[ConditionEffect, ...]:
    """Effects of all conditions but idle, up to the eager limit and above it; none where idle was not measured.

    by_condition : times of messages, by condition
    """
    idle = by_condition.get("idle")
    if idle is None:
        return ()
    bounds = [(-1.0, eager_bytes), (eager_bytes, float("inf"))]
    return tuple(
        effect
        for condition, messages in by_condition.items()
        if condition != "idle"
        for low, high in bounds
        if low < high and (effect := _effect(link, condition, (low, high), idle, messages)) is not None
    )


def _effect(
    link: str, condition: str, sizes: tuple[float, float], idle: Series, messages: Series
) -> ConditionEffect | None:
    groups = grouped(idle.within(*sizes), messages.within(*sizes))
    if not groups:
        return None
    ratios = np.sort([float(np.median(under) / np.median(still)) for still, under in groups])
    low, high = median_interval(ratios, MISS) or _of_repetitions(groups)
    return ConditionEffect(link, condition, sizes, float(np.median(ratios)), low, high, len(ratios))


def _of_repetitions(groups: list[tuple[Floats, Floats]]) -> tuple[float | None, float | None]:
    """Bounds of the median ratio from intervals of all medians at once, their chances of a miss shared out evenly."""
    lows, highs = [], []
    for pair in groups:
        still, under = (median_interval(values, MISS / (2 * len(groups))) for values in pair)
        if still is None or under is None:
            return None, None
        (still_low, still_high), (under_low, under_high) = still, under
        lows.append(under_low / still_high)
        highs.append(under_high / still_low)
    return float(np.median(lows)), float(np.median(highs))


def grouped(idle: Series, messages: Series) -> list[tuple[Floats, Floats]]:
    """Durations of either series by groups of sizes that both have; one size is never in two groups."""
    both = np.concatenate([idle.size_bytes, messages.size_bytes])
    uppers = np.unique(both)
    if len(uppers) > GROUPS:
        uppers = np.unique(np.quantile(both, np.linspace(0, 1, GROUPS + 1)[1:], method="higher"))
    groups = []
    for number in range(len(uppers)):
        pair = [
            part.duration_s[np.searchsorted(uppers, part.size_bytes, side="left") == number]
            for part in (idle, messages)
        ]
        if min(map(len, pair)) >= MIN_IN_A_GROUP:
            groups.append((pair[0], pair[1]))
    return groups
