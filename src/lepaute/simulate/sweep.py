"""Several predictions side by side: which are comparable, the best of these, what is ahead of it or may be, and what
to calibrate for the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lepaute.simulate.comparing import is_certainly_faster, may_be_as_fast
from lepaute.simulate.effects import effects
from lepaute.simulate.warnings import caveats

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions
    from lepaute.simulate.prediction import Prediction

    #: What is simulated, and under which conditions, where they are known.
    Case = tuple[Application, Conditions | None]

#: A calibration takes so many block sizes at most, this far apart at least: those between are interpolated.
MOST_BLOCK_SIZES, LEAST_RATIO = 6, 1.4
#: Kernels whose k is the block size in the update, where nearly all of HPL's time goes.
UPDATES = ("dgemm", "dgemm_nn")
#: A calibration reaches matrices of order 8000, one with --quick 1200: one that does not reach this is of that kind.
LEAST_ORDER = 2000
#: What is advised then.
LARGER = "lepaute calibrate, without --quick, which measures small matrices only"


@dataclass(frozen=True)
class Sweep:
    """Predictions of combinations on one platform, in the order asked for.

    comparable : those whose time extrapolation does not decide (simulate/trust.py);  apart : the others
    """

    predictions: tuple["Prediction", ...]

    @property
    def problems(self) -> tuple["Sweep", ...]:
        """A sweep for each problem, such as each N of HPL, in the order asked for: there is a best of each."""
        found: dict[str, list[Prediction]] = {}
        for one in self.predictions:
            found.setdefault(one.application.problem, []).append(one)
        return tuple(Sweep(tuple(each)) for each in found.values())

    @property
    def problem(self) -> str:
        """That of the first prediction, for a sweep of one problem."""
        return self.predictions[0].application.problem

    @property
    def comparable(self) -> tuple["Prediction", ...]:
        return tuple(one for one in self.predictions if one.comparable)

    @property
    def apart(self) -> tuple["Prediction", ...]:
        return tuple(one for one in self.predictions if not one.comparable)

    @property
    def best(self) -> "Prediction | None":
        """The fastest of those that are comparable, of a sweep of one problem; None where none is."""
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
    def ahead(self) -> tuple["Prediction", ...]:
        """Those that are not comparable and yet certainly faster than all that are, the fastest first.

        Where none is comparable, the one that is certainly faster than each other one, if there is such a one.
        """
        fastest = sorted(self.apart, key=speed, reverse=True)
        if self.best is not None:
            best = self.best
            return tuple(one for one in fastest if is_certainly_faster(one, best))
        first, *others = fastest
        return (first,) if others and all(is_certainly_faster(first, one) for one in others) else ()

    @property
    def rivals(self) -> tuple["Prediction", ...]:
        """Those that are not comparable and may be as fast as the best, the fastest first."""
        best = self.best
        if best is None:
            return ()
        return tuple(one for one in sorted(self.apart, key=speed, reverse=True) if may_be_as_fast(best, one))

    @property
    def best_places(self) -> list[int]:
        """Where the `bests` of each problem stand among the predictions, from 0."""
        places = {id(one): place for place, one in enumerate(self.predictions)}
        return [places[id(one)] for each in self.problems for one in each.bests]

    def to_dict(self) -> dict[str, Any]:
        """Entries of the JSON: the places of all that may be the best, and the caveats; by problem these places, those
        of what is ahead of the best or may be as fast, and the parameters."""
        places = {id(one): place for place, one in enumerate(self.predictions)}
        return {
            "best": self.best_places,
            "caveats": caveats(self.predictions),
            "problems": [
                {
                    "problem": each.problem,
                    "best": [places[id(one)] for one in each.bests],
                    "ahead": [places[id(one)] for one in each.ahead],
                    "rivals": [places[id(one)] for one in each.rivals],
                    "parameters": [parameter.to_dict() for parameter in effects(each.predictions)],
                }
                for each in self.problems
            ],
        }

    @property
    def worst(self) -> "Prediction | None":
        """The slowest of those that are comparable; None where none is."""
        return min(self.comparable, key=speed, default=None)

    @property
    def remedy(self) -> str | None:
        """The calibration that makes more of them comparable: one of these block sizes, or of larger matrices; None
        where neither is what is extrapolated."""
        cases, apart = ([(one.application, one.conditions) for one in each] for each in (self.predictions, self.apart))
        return remedy_of(cases, apart)


def remedy_of(cases: Sequence["Case"], apart: Sequence["Case"]) -> str | None:
    """The calibration that makes more of the cases comparable of which those `apart` are not; None as above."""
    if not any(_is_new_block_size(one) for one in apart):
        return LARGER if any(_is_of_quick_calibration(one) for one in apart) else None
    sizes = {getattr(application, "nb", None) for application, _ in cases}
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


def _is_new_block_size(case: "Case") -> bool:
    """Whether HPL's update was calibrated for other block sizes only: larger ones, or smaller ones."""
    order = getattr(case[0], "n", None)
    return order is not None and any(depth != 0.0 for _, _, depth in _distances_of_updates(case, order))


def _is_of_quick_calibration(case: "Case") -> bool:
    """Whether the platform is of a calibration whose largest update is smaller than any without --quick."""
    if case[1] is None or case[1].platform.archive_id is None:
        return False
    return any(rows > 0.0 and columns > 0.0 for rows, columns, _ in _distances_of_updates(case, LEAST_ORDER))


def _distances_of_updates(case: "Case", order: int) -> list[tuple[float, float, float]]:
    """How far an update of a matrix of that order is from the fitted sizes, in m, n and k, by model of a dgemm."""
    from lepaute import _core
    from lepaute.simulate.machine import per_cpu_models

    application, conditions = case
    size = getattr(application, "nb", None)
    if size is None or conditions is None:
        return []
    updates = [model for model in conditions.platform.kernels if model.kernel in UPDATES]
    met = _core.Size(order, order, size)
    found = [per_cpu_models(model, conditions.platform)[0].distance(met).log for model in updates]
    return [(rows, columns, depth) for rows, columns, depth in found]
