"""Messages while the machine does something else: the ring of an archive, by condition, as series that can be fitted.

What the time of a message is, by condition (as the exchange of two ranks is timed on the clock of the first):
    idle, dgemm          : half of an exchange, as of a ping-pong; the two wait in MPI_Recv
    iprobe               : half of an exchange up to the eager limit; above it the time of MPI_Recv, which begins when
                           MPI_Iprobe has found the message: the transfer, less what polling adds
    iprobe+dgemm         : the same; but the exchange holds the pieces of dgemm that are computed between two polls,
                           so that up to the eager limit the exchanges of another condition stand for it
So a loaded model has in it what a message takes once its receiver turns to it. When the receiver does so follows, in a
simulation, from the program that polls.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.messages.series import Series, series
from lepaute.fit.observations.tables import RING

if TYPE_CHECKING:
    import pandas

CONDITIONS = ("idle", "dgemm", "iprobe", "iprobe+dgemm")
COLUMNS = ("operation", "condition", "size_bytes", "role", "call", "found", "duration_s", "clock_cost_s")
#: Conditions whose exchanges hold nothing but messages, the likest to iprobe+dgemm first.
IN_ITS_PLACE = ("iprobe", "dgemm", "idle")
#: Fewer measurements than these are not fitted.
FEWEST = 10


def loaded_series(
    frames: "Sequence[pandas.DataFrame]", condition: str, eager_bytes: float, usual: dict[str, Series]
) -> dict[str, Series]:
    """Series under a condition by operation: pingpong, isend and recv, as `fit_network` takes them.

    frames      : ring observations of one class of links
    eager_bytes : the eager limit
    usual       : the same operations without a ring: they stand for what the ring does not time by itself
    Raises FitError where the ring was not measured under that condition, or a column is missing.
    """
    table = _table(frames)
    there = [name for name in CONDITIONS if (table["condition"] == name).any()]
    if condition not in there:
        have = f"it was under {', '.join(there)}" if there else "there is no ring at all"
        raise FitError(
            f"the ring was not measured under {condition}: {have}; calibrate it, or choose another condition"
        )
    exchanges = _exchanges(table, condition)
    if condition == "iprobe+dgemm":
        exchanges = next((_exchanges(table, name) for name in IN_ITS_PLACE if name in there), usual["pingpong"])
    parts = [exchanges]
    posting = _calls(table, condition, "isend", "shift")
    taking = usual["recv"]
    if condition.startswith("iprobe"):
        receives = _calls(table, condition, "recv", "pingpong")
        above = receives.within(eager_bytes, np.inf)
        # As there and back, which is what `fit_network` halves.
        parts = [exchanges.within(-1.0, eager_bytes), above.scaled(2.0)]
        copies = receives.within(-1.0, eager_bytes)
        taking = copies if len(copies) >= FEWEST else usual["recv"]
    message = joined(parts)
    if len(message) < FEWEST:
        raise FitError(f"the ring has {len(message)} messages under {condition}; calibrate with more")
    return {"pingpong": message, "isend": posting if len(posting) >= FEWEST else usual["isend"], "recv": taking}


def joined(parts: Sequence[Series]) -> Series:
    """One series of several."""
    return series(np.concatenate([part.size_bytes for part in parts]), np.concatenate([p.duration_s for p in parts]))


def conditions_of(frames: "Sequence[pandas.DataFrame]") -> list[str]:
    """The conditions that the ring was measured under."""
    table = _table(frames)
    return [name for name in CONDITIONS if (table["condition"] == name).any()]


def _exchanges(table: "pandas.DataFrame", condition: str) -> Series:
    chosen = table[(table["role"] == "first") & (table["call"] == "exchange")]
    return _series(chosen[(chosen["operation"] == "pingpong") & (chosen["condition"] == condition)])


def _calls(table: "pandas.DataFrame", condition: str, call: str, operation: str) -> Series:
    chosen = table[(table["condition"] == condition) & (table["call"] == call) & (table["operation"] == operation)]
    return _series(chosen)


def _series(rows: "pandas.DataFrame") -> Series:
    sizes = rows["size_bytes"].to_numpy(dtype=np.float64)
    net_s = rows["duration_s"].to_numpy(dtype=np.float64) - rows["clock_cost_s"].to_numpy(dtype=np.float64)
    return series(sizes, net_s)


def _table(frames: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    import pandas

    for frame in frames:
        for column in COLUMNS:
            if column not in frame.columns:
                raise FitError(f"{RING} lacks the column {column}; the archive is not a calibration")
    if not frames:
        return pandas.DataFrame({column: [] for column in COLUMNS})
    return pandas.concat([frame.loc[:, list(COLUMNS)] for frame in frames], ignore_index=True)
