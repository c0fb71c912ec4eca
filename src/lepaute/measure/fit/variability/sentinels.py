"""How fast each node was, by its sentinels: whether it wandered while it was calibrated, and its drift."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isinf, sqrt

import numpy as np

from lepaute.kit.text import duration, percent, significant
from lepaute.measure.archive import Archive
from lepaute.measure.fit.numeric import Booleans, Floats, Integers, subset
from lepaute.measure.fit.observations.columns import checked_table
from lepaute.measure.observation_columns import SENTINELS
from lepaute.simulate.platform.schema import Drift, Sentinel
from lepaute.stats.intervals import upper_trimmed_mean
from lepaute.stats.steps import largest_shift, theil_sen
from lepaute.stats.variogram import VariogramModel, fit_variogram, variance_between

#: Relative changes below this are not told; the chance that a machine that stays the same is called wandering.
MIN_CHANGE, FALSE_ALARMS = 0.01, 0.002


@dataclass(frozen=True, slots=True)
class Watch:
    """The sentinels on one node in one calibration, in the order of time; vectors of shape (sentinels,).

    size      : m, n and k
    date_s    : since the epoch, by the controller's clock;  start_s: by the clock of the probes
    duration_s: of a call: mean over the cores, the slowest twentieth of their calls left out
    block     : of each; blocks: how many the calibration has
    disturbed : other programs took CPU time meanwhile
    archive   : its number among those that are fitted together
    """

    host: str
    size: tuple[int, int, int]
    date_s: Floats
    duration_s: Floats
    block: Integers
    disturbed: Booleans
    blocks: int
    start_s: Floats
    archive: int = 0

    def __len__(self) -> int:
        return len(self.duration_s)

    @property
    def gflops(self) -> Floats:
        """Rate of a core."""
        result: Floats = 2e-9 * float(np.prod(self.size)) / self.duration_s
        return result

    def rate(self, duration_s: float) -> float:
        """In Gflop/s, where a call takes so long."""
        return 2e-9 * float(np.prod(self.size)) / duration_s

    def quiet(self) -> "Watch":
        """Sentinels that nothing disturbed, if that is at least half of them; all otherwise."""
        keep = ~self.disturbed
        return subset(self, keep) if 2 * np.count_nonzero(keep) >= len(self) else self


def watches(archives: Sequence[Archive]) -> list[Watch]:
    """Watches of every node in every archive that has sentinels. Raises FitError for a table that cannot be."""
    found = []
    for number, archive in enumerate(archives):
        if SENTINELS not in archive.members():
            continue
        table = checked_table(archive, SENTINELS)
        table = table.assign(duration_s=(table["duration_s"] - table["clock_cost_s"]).clip(lower=1e-9))
        for host, rows in table.groupby(table["host"].astype(str), sort=True):
            of_core = rows.groupby(["order", "cpu"], observed=True)["duration_s"].agg(
                lambda seconds: upper_trimmed_mean(seconds.tolist())
            )
            one = rows.groupby("order").agg(
                date_s=("started_s", "first"),
                block=("block", "first"),
                disturbed=("disturbed", "first"),
                start_s=("start_s", "min"),
            )
            one["duration_s"] = of_core.groupby("order").mean()
            one = one.sort_values("date_s")
            found.append(
                Watch(
                    str(host),
                    tuple(int(rows[letter].iloc[0]) for letter in "mnk"),  # type: ignore[arg-type]
                    one["date_s"].to_numpy(np.float64),
                    one["duration_s"].to_numpy(np.float64),
                    one["block"].to_numpy(np.int64),
                    one["disturbed"].to_numpy(bool),
                    int(one["block"].max()) + 1,
                    one["start_s"].to_numpy(np.float64),
                    number,
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class MachineChange:
    """A change of a machine in the course of a calibration.

    relative : of the duration of the sentinels, > 0 if the machine became slower
    sentence : with the rates before and after, and when
    """

    host: str
    relative: float
    p_value: float
    sentence: str


def change_of(watch: Watch) -> MachineChange | None:
    """The stretch of time in which a machine was slower or faster than in the rest, or its trend; None if the order
    of the sentinels says nothing, or the change is below MIN_CHANGE."""
    quiet = watch.quiet()
    logs = np.log(quiet.duration_s)
    shift = largest_shift(logs)
    if shift is None or shift.p_value > FALSE_ALARMS:
        return None
    is_shifted = np.zeros(len(quiet), dtype=bool)
    is_shifted[shift.first : shift.last] = True
    if shift.first == 0:  # told as what came after
        is_shifted = ~is_shifted
    before, after = (float(np.median(quiet.duration_s[part])) for part in (~is_shifted, is_shifted))
    time_s = quiet.date_s - quiet.date_s[0]
    slope = theil_sen(time_s, logs)[0]
    line = logs - slope * time_s
    off_line = float(np.abs(line - np.median(line)).sum())
    off_levels = sum(float(np.abs(logs[part] - np.median(logs[part])).sum()) for part in (is_shifted, ~is_shifted))
    if shift.lasts and off_line < off_levels:
        relative = float(np.expm1(slope * time_s[-1]))
        middle = float(np.median(quiet.gflops))
        ends = [middle * (1.0 + relative) ** power for power in (0.5, -0.5)]
        text = f"{_changed(relative)} little by little ({_rates(*ends)}) in {duration(float(time_s[-1]))}"
    else:
        relative = after / before - 1.0
        first, last = int(quiet.block[is_shifted][0]) + 1, int(quiet.block[is_shifted][-1]) + 1
        where = f"block {first}" if first == last else f"blocks {first} to {last}"
        text = f"{_changed(relative)} ({_rates(quiet.rate(before), quiet.rate(after))}) in {where} of {watch.blocks}"
        text += "" if shift.lasts else " and came back"
    return None if abs(relative) < MIN_CHANGE else MachineChange(watch.host, relative, shift.p_value, text)


def _changed(relative: float) -> str:
    return f"the machine {'slowed' if relative > 0 else 'sped up'} by {percent(abs(relative))}"


def _rates(before: float, after: float) -> str:
    return f"{significant(before)} -> {significant(after)} Gflop/s a core"


def change_warnings(found: Sequence[Watch]) -> list[str]:
    """One line for each node that wandered."""
    several = len({watch.host for watch in found}) > 1
    each = [one for watch in found if (one := change_of(watch)) is not None]
    return [
        (f"{one.host}: " if several else "") + f"{one.sentence}; the models hold for its mean, see days.drift"
        for one in each
    ]


def sentinel_of(found: Sequence[Watch]) -> Sentinel | None:
    """The mean of all sentinels, with its standard error by the differences of successive ones; None without any.

    These have the error of a sentinel in them and hardly any drift, which is no error of the mean over a calibration.
    """
    quiet = [watch.quiet() for watch in found]
    if not quiet:
        return None
    logs = [np.log(watch.duration_s) for watch in quiet]
    m, n, k = quiet[0].size
    differences = np.concatenate([np.diff(log) for log in logs])
    # Of single sentinels: von Neumann's, half the mean square of differences.
    sd = sqrt(float(np.mean(differences**2)) / 2.0) if len(differences) else 0.0
    return Sentinel(
        m=m,
        n=n,
        k=k,
        duration_s=float(np.exp(np.concatenate(logs).mean())),
        relative_error=sd / sqrt(sum(map(len, logs))),
        ended=datetime.fromtimestamp(max(float(watch.date_s[-1]) for watch in found), UTC).isoformat(
            timespec="seconds"
        ),
    )


def drift_of(found: Sequence[Watch]) -> Drift | None:
    """How the effect of the day grows with the lag, by the variogram of the sentinels; None with too few of them.

    Calibrations of one node that are fitted together make one series: the lags between them are known as well.
    """
    model = _variogram_of(found)
    if model is None:
        return None
    quiet = [watch.quiet() for watch in found]
    inside = []
    for host in sorted({watch.host for watch in quiet}):
        mine = [watch for watch in quiet if watch.host == host]
        groups = [watch.date_s[watch.block == block] for watch in mine for block in np.unique(watch.block)]
        inside.append(variance_between(model.slope_per_s, model.range_s, groups))
    return Drift(
        slope_per_s=model.slope_per_s,
        range_s=None if isinf(model.range_s) else model.range_s,
        span_s=model.span_s,
        common_relative_sd=sqrt(float(np.mean(inside))),
    )


def _variogram_of(found: Sequence[Watch]) -> VariogramModel | None:
    """The model of the variogram of log(duration), each node a series."""
    quiet = [watch.quiet() for watch in found]
    series = []
    for host in sorted({watch.host for watch in quiet}):
        mine = [watch for watch in quiet if watch.host == host]
        dates = np.concatenate([watch.date_s for watch in mine])
        series.append((dates - dates.min(), np.log(np.concatenate([watch.duration_s for watch in mine]))))
    return fit_variogram(series)
