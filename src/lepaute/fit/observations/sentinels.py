"""The sentinels of calibrations: how fast each node was, and when."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lepaute.fit.numeric.arrays import Booleans, Floats, Integers
from lepaute.fit.observations.checks import checked_table
from lepaute.fit.observations.columns import SENTINELS
from lepaute.stats.trimmed import upper_trimmed_mean

if TYPE_CHECKING:
    import pandas

    from lepaute.archive import Archive


@dataclass(frozen=True, slots=True)
class Watch:
    """The sentinels on one node in one calibration, in the order of time; vectors of shape (sentinels,).

    size      : m, n and k
    date_s    : since the epoch, by the controller's clock
    duration_s: of a call: mean over the cores, the slowest twentieth of their calls left out
    block     : of each; blocks: how many the calibration has
    disturbed : other programs took CPU time meanwhile
    """

    host: str
    size: tuple[int, int, int]
    date_s: Floats
    duration_s: Floats
    block: Integers
    disturbed: Booleans
    blocks: int

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
        """Those that nothing disturbed, where that is at least half of them; all otherwise."""
        keep = ~self.disturbed
        if 2 * np.count_nonzero(keep) < len(self):
            return self
        return replace(
            self,
            date_s=self.date_s[keep],
            duration_s=self.duration_s[keep],
            block=self.block[keep],
            disturbed=self.disturbed[keep],
        )


def watches(archives: "Sequence[Archive]") -> list[Watch]:
    """Of every node in every archive that has sentinels. Raises FitError for a table that cannot be."""
    found = []
    for archive in archives:
        if SENTINELS not in archive.members():
            continue
        table = checked_table(archive, SENTINELS)
        table = table.assign(duration_s=(table["duration_s"] - table["clock_cost_s"]).clip(lower=1e-9))
        for host, rows in table.groupby(table["host"].astype(str), sort=True):
            of_core = rows.groupby(["order", "cpu"], observed=True)["duration_s"].agg(_level)
            one = rows.groupby("order").agg(
                date_s=("started_s", "first"), block=("block", "first"), disturbed=("disturbed", "first")
            )
            one["duration_s"] = of_core.groupby("order").mean()
            one = one.sort_values("date_s")
            size = tuple(int(rows[letter].iloc[0]) for letter in "mnk")
            found.append(
                Watch(
                    str(host),
                    size,  # type: ignore[arg-type]
                    one["date_s"].to_numpy(np.float64),
                    one["duration_s"].to_numpy(np.float64),
                    one["block"].to_numpy(np.int64),
                    one["disturbed"].to_numpy(bool),
                    int(one["block"].max()) + 1,
                )
            )
    return found


def _level(seconds: "pandas.Series[float]") -> float:
    return upper_trimmed_mean(seconds.tolist())
