"""Several predictions side by side: which are comparable, the best of these, what to calibrate for the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.simulate.comparing import may_be_as_fast

if TYPE_CHECKING:
    from lepaute.simulate.prediction import Prediction

#: A calibration takes so many block sizes at most, this far apart at least: those between are interpolated.
MOST_BLOCK_SIZES, LEAST_RATIO = 6, 1.4
#: Kernels whose k is the block size in the update, where nearly all of HPL's time goes.
UPDATES = ("dgemm", "dgemm_nn")


@dataclass(frozen=True)
class Sweep:
    """Predictions of combinations on one platform, in the order asked for.

    comparable : those of which at most a fifth of the time is extrapolated;  apart : the others
    """

    predictions: tuple["Prediction", ...]

    @property
    def comparable(self) -> tuple["Prediction", ...]:
        return tuple(one for one in self.predictions if one.comparable)

    @property
    def apart(self) -> tuple["Prediction", ...]:
        return tuple(one for one in self.predictions if not one.comparable)

    @property
    def best(self) -> "Prediction | None":
        """The fastest of those that are comparable; None where none is."""
        return max(self.comparable, key=speed, default=None)

    @property
    def bests(self) -> tuple["Prediction", ...]:
        """The best and all that cannot be told from it, the fastest first; empty where none is comparable."""
        best = self.best
        if best is None:
            return ()
        near = sorted((one for one in self.comparable if one is not best), key=speed, reverse=True)
        return best, *(one for one in near if may_be_as_fast(best, one))

    @property
    def best_places(self) -> list[int]:
        """Where `bests` stand among the predictions, from 0."""
        places = {id(one): place for place, one in enumerate(self.predictions)}
        return [places[id(one)] for one in self.bests]

    @property
    def worst(self) -> "Prediction | None":
        """The slowest of those that are comparable; None where none is."""
        return min(self.comparable, key=speed, default=None)

    @property
    def remedy(self) -> str | None:
        """The calibration that makes block sizes comparable; None where the block size is not what is extrapolated."""
        if not any(_is_new_block_size(one) for one in self.apart):
            return None
        sizes = {getattr(one.application, "nb", None) for one in self.predictions}
        return calibration_of(sorted(size for size in sizes if size is not None))


def speed(prediction: "Prediction") -> float:
    """What a prediction is judged by: its rate, or how short it is."""
    return -prediction.time_s.mean if prediction.rate is None else prediction.rate.mean


def calibration_of(block_sizes: Sequence[int]) -> str:
    """The command that covers these block sizes, in increasing order, the smallest and the largest among them."""
    chosen = [block_sizes[0]]
    ratio = max(LEAST_RATIO, (block_sizes[-1] / block_sizes[0]) ** (1.0 / (MOST_BLOCK_SIZES - 1)))
    for size in block_sizes[1:-1]:
        if size >= 0.99 * ratio * chosen[-1] and block_sizes[-1] >= LEAST_RATIO * size:
            chosen.append(size)
    chosen += block_sizes[-1:] if len(block_sizes) > 1 else []
    return f"lepaute calibrate --nb {','.join(map(str, chosen))}"


def _is_new_block_size(prediction: "Prediction") -> bool:
    """Whether HPL's update was calibrated for other block sizes only: larger ones, or smaller ones."""
    from lepaute import _core
    from lepaute.simulate.machine import per_cpu_models

    application, conditions = prediction.application, prediction.conditions
    size, order = getattr(application, "nb", None), getattr(application, "n", None)
    if size is None or order is None or conditions is None:
        return False
    for model in conditions.platform.kernels:
        if model.kernel in UPDATES:
            _, _, depth = per_cpu_models(model, conditions.platform)[0].distance(_core.Size(order, order, size)).log
            if depth != 0.0:
                return True
    return False
