"""How much longer each part makes a run: Shapley's shares, of replays in which parts take what they usually take.

Every usual run is a baseline by itself, because a replay of means would wait less than any run does. The share of a
part is then the mean over all orders in which the parts are set back, one after the other, of what its own turn saves
(Shapley, A value for n-person games, 1953); the shares of a baseline add up to the difference of the two runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy
from numpy.typing import NDArray

from lepaute.simulate.trace.graph import batches
from lepaute.stats.student import student_quantile
from lepaute.study.slow_job.matching import Pieces


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval; without bounds where one usual run is all that is known."""

    value: float
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, float | None]:
        return {"value": self.value, "low": self.low, "high": self.high}


def estimate(values: NDArray[Any]) -> Estimate:
    """Of differences of one run to usual ones: their mean, and Student's interval of a further run's difference."""
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Estimate(mean, None, None)
    half = student_quantile(0.975, count - 1) * float(values.std(ddof=1)) * (1.0 + 1.0 / count) ** 0.5
    return Estimate(mean, mean - half, mean + half)


def shares(pieces: Pieces, parts: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Seconds that each part adds to the slow run over each usual run.

    parts : indices of pieces, no piece twice
    Returns shape (usual, parts), and (usual,): what is left of the difference, as runs took another course.
    """
    count, usual = len(parts), pieces.weight_s.shape[1] - 1
    coalitions = (numpy.arange(1 << count)[None, :] >> numpy.arange(count)[:, None] & 1).astype(float)
    nodes = pieces.graph.count
    slow = numpy.bincount(pieces.node, pieces.seconds[:, 0], minlength=nodes)
    part_of = numpy.full(len(pieces.rank), -1)
    for number, part in enumerate(parts):
        part_of[part] = number
    place = numpy.where(part_of >= 0, part_of, count)[pieces.piece] + (count + 1) * pieces.node
    times = numpy.empty((usual, 1 << count))
    for run in range(usual):
        change = pieces.seconds[:, 1 + run] - pieces.seconds[:, 0]
        by_part = numpy.bincount(place, change, minlength=(count + 1) * nodes).reshape(nodes, count + 1)[:, :count]
        for batch in batches(nodes, 1 << count):
            weights = slow[:, None] + by_part @ coalitions[:, batch]
            times[run, batch] = pieces.graph.replay(weights).max(axis=0)
    return _shapley(times, count), times[:, -1] - pieces.time_s[1:]


def _shapley(times: NDArray[Any], count: int) -> NDArray[Any]:
    """times: shape (usual, 2^parts), of bit p of the place part p is set back. Shape (usual, parts)."""
    place = numpy.arange(1 << count)
    size = numpy.array([int(number).bit_count() for number in place])
    result = numpy.empty((len(times), count))
    for part in range(count):
        without = place[place >> part & 1 == 0]
        weight = numpy.array([factorial(s) * factorial(count - s - 1) / factorial(count) for s in size[without]])
        result[:, part] = (times[:, without] - times[:, without | 1 << part]) @ weight
    return result
