"""Measured point-to-point operations as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.numeric.local import local_median
from lepaute.fit.observations.columns import NEEDED, P2P, check_columns

if TYPE_CHECKING:
    import pandas

#: A duration beyond this many times the median of its neighbours in size was interrupted.
CAP = 2.0


@dataclass(frozen=True, slots=True)
class Series:
    """Durations of one operation, shape (n,), in increasing size; the clock's cost is subtracted.

    capped_s : the same, none above CAP times the local median
    typical_s: the local median
    """

    size_bytes: Floats
    duration_s: Floats
    capped_s: Floats
    typical_s: Floats

    def __len__(self) -> int:
        return len(self.size_bytes)

    def within(self, low: float, high: float) -> "Series":
        """The part with low < size <= high."""
        inside = (self.size_bytes > low) & (self.size_bytes <= high)
        return Series(self.size_bytes[inside], self.duration_s[inside], self.capped_s[inside], self.typical_s[inside])

    def scaled(self, factor: float) -> "Series":
        """Durations times a factor."""
        return Series(self.size_bytes, self.duration_s * factor, self.capped_s * factor, self.typical_s * factor)


def series_of(frames: Sequence["pandas.DataFrame"]) -> dict[str, Series]:
    """Series by operation from the p2p observations of archives.

    Raises FitError when a column is missing, or the ping-pongs, isends or receives are too few or of one size.
    """
    import pandas

    for frame in frames:
        check_columns(frame, P2P)
    table = pandas.concat([frame.loc[:, list(NEEDED[P2P])] for frame in frames], ignore_index=True)
    net_s = table["duration_s"].to_numpy(dtype=np.float64) - table["clock_cost_s"].to_numpy(dtype=np.float64)
    sizes = table["size_bytes"].to_numpy(dtype=np.float64)
    names = table["operation"].astype(str).to_numpy()
    result = {str(name): series(sizes[names == name], net_s[names == name]) for name in np.unique(names)}
    for needed in ("pingpong", "isend", "recv"):
        if len(result.get(needed, ())) < 10:
            raise FitError(f"there are fewer than 10 measurements of {needed}; calibrate with more")
        sizes_of_it = result[needed].size_bytes
        if sizes_of_it[0] == sizes_of_it[-1]:
            raise FitError(
                f"all {len(sizes_of_it)} measurements of {needed} are of {sizes_of_it[0]:g} bytes, which say nothing "
                "of other sizes; calibrate with more"
            )
    return result


def series(size_bytes: Floats, duration_s: Floats) -> Series:
    """A series in increasing size; durations below a nanosecond, to the clock the same as 0, become one."""
    if len(size_bytes) == 0:
        return Series(*(np.zeros(0) for _ in range(4)))
    order = np.argsort(size_bytes, kind="stable")
    size, duration = size_bytes[order], np.maximum(duration_s[order], 1e-9)
    typical = local_median(size, duration)
    return Series(size, duration, np.minimum(duration, CAP * typical), typical)
