"""Up to what size messages leave eagerly: from tests of send-completion semantics, or from the durations of MPI_Isend
and of the receive of a waiting message."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lepaute.errors import FitError, LepauteError
from lepaute.fit.messages.series import Series
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.numeric.local import weighted_line
from lepaute.fit.observations.columns import SEMANTICS, check_columns
from lepaute.stats.send_completion import OUTCOMES, Row, rows_of, semantic_limits

if TYPE_CHECKING:
    import pandas

#: The limit of a protocol is sought between these sizes.
LOWEST_BYTES, HIGHEST_BYTES = 64.0, 4.0 * 1024**2
#: Above the limit MPI_Isend only announces the message: it takes less than this share of the message's time.
ANNOUNCING = 0.2
FEWEST = 4
#: Libraries set their limits to powers of two: one so near is taken for it.
POWER_OF_TWO = 0.1


@dataclass(frozen=True, slots=True)
class ProtocolLimits:
    """Largest sizes that are sent eagerly, and without waiting for the receive; 0 for none, inf for all.

    tested_bytes : largest size of the experiments that found them, None where they were read from durations
    """

    eager_bytes: float
    detached_bytes: float
    tested_bytes: int | None = None

    @classmethod
    def of_eager(cls, limit_bytes: float) -> "ProtocolLimits":
        """Nothing is detached."""
        return cls(limit_bytes, limit_bytes)

    def parts(self) -> Iterator[tuple[str, float, float]]:
        """(protocol, above this size, up to that one), in increasing order, those that hold any size."""
        low = -1.0
        for protocol, high in (
            ("eager", self.eager_bytes),
            ("detached", self.detached_bytes),
            ("rendezvous", float("inf")),
        ):
            if high > max(low, 0.0):
                yield protocol, low, high
                low = high


def eager_limit_bytes(isend: Series, half: Series, receive: Series) -> float:
    """Largest size that is sent eagerly; infinite where MPI_Isend copies the message whatever its size.

    isend   : durations of MPI_Isend
    half    : halves of ping-pongs
    receive : durations of MPI_Recv of a message that was sent long before
    An eager MPI_Isend copies the message, so its cost rises with the size; above the limit it only announces it, at a
    cost that does not depend on the size. A receive copies an eager message that is there; of an announced one it has
    yet to ask for the data. The limit is the size that parts such a line from such a constant, and the receives into
    two lines, best, in absolute deviations of the logarithm: a few interrupted calls move it little.
    """
    largest = isend.within(HIGHEST_BYTES / 4, np.inf)
    if len(largest) < FEWEST:
        largest = isend.within(float(np.quantile(isend.size_bytes, 0.9)), np.inf)
    whole = np.interp(np.log1p(largest.size_bytes), np.log1p(half.size_bytes), half.typical_s)
    if len(largest) == 0 or float(np.median(largest.duration_s / whole)) > ANNOUNCING:
        return float("inf")
    x, y = isend.size_bytes, np.log(isend.duration_s)
    candidates = [
        i for i in range(FEWEST, len(x) - FEWEST) if LOWEST_BYTES <= x[i] <= HIGHEST_BYTES and x[i] < x[i + 1]
    ]
    if not candidates:
        return float("inf")
    best = min(candidates, key=lambda i: _deviation(isend, y, i) + _parted(receive, float(x[i])))
    between = float(np.sqrt(x[best] * x[best + 1]))
    power = 2.0 ** round(float(np.log2(between)))
    return power if abs(between / power - 1.0) < POWER_OF_TWO else float(np.floor(between))


def _parted(receive: Series, last_eager_bytes: float) -> float:
    """Sum of absolute deviations of the logarithm from a line below and a line above."""
    return sum(
        _off_line(part)
        for part in (receive.within(-1.0, last_eager_bytes), receive.within(last_eager_bytes, np.inf))
        if len(part) > 0
    )


def _off_line(part: Series) -> float:
    x, y = part.size_bytes, part.capped_s
    intercept, slope = weighted_line(x, y, y**-2.0)
    line = np.maximum(intercept + max(slope, 0.0) * x, 1e-10)
    return float(np.sum(np.abs(np.log(part.duration_s) - np.log(line))))


def _deviation(isend: Series, log_duration: Floats, last_eager: int) -> float:
    """Sum of absolute deviations when the sizes up to index last_eager are eager and all others announced."""
    low = slice(0, last_eager + 1)
    x, y = isend.size_bytes[low], isend.capped_s[low]
    intercept, slope = weighted_line(x, y, y**-2.0)
    line = np.maximum(intercept + max(slope, 0.0) * x, 1e-10)
    above = log_duration[last_eager + 1 :]
    return float(np.sum(np.abs(log_duration[low] - np.log(line))) + np.sum(np.abs(above - np.median(above))))


def limits_by_tests(frames: "Sequence[pandas.DataFrame]") -> ProtocolLimits | None:
    """The limits that the tests found; None where there are none.

    frames : semantics observations of one class of links; those of rank 0 with nothing sent before count
    An asynchronous send is eager, a synchronous one rendezvous. Where all tested sizes are alike, so are larger ones.
    Raises FitError when a column is missing, or holds what no test answers.
    """
    rows: list[Row] = []
    for frame in frames:
        check_columns(frame, SEMANTICS)
        try:
            rows += rows_of(frame)
        except LepauteError:
            raise
        except ValueError as problem:
            raise FitError(f"{SEMANTICS} holds an invalid answer ({problem}); the file is damaged") from None
    if unknown := sorted({outcome for _, _, outcome, _ in rows} - OUTCOMES):  # would count as answers against a size
        raise FitError(f"{SEMANTICS}: unknown outcome {unknown[0][:60]}; the file is damaged or of a newer Lepaute")
    if not {"deadlock", "corruption"} <= {row[1] for row in rows}:
        return None
    limits = semantic_limits(rows)
    return ProtocolLimits(limits.asynchronous_up_to_bytes, limits.detached_up_to_bytes, limits.tested_up_to_bytes)
