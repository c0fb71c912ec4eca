"""How a problem of one size gets faster with the number of ranks: speed-up and parallel efficiency."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING, Any

from lepaute.errors import InputError
from lepaute.simulate.prediction import Spread, spread_of

if TYPE_CHECKING:
    from lepaute.simulate.prediction import Prediction


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One prediction in relation to that on the fewest ranks.

    speed_up   : time there / time here; of runs with equal seeds, which are on one machine and day, so that errors of
        models that both share cancel; the interval is that for one further pair of such runs
    efficiency : speed_up x ranks there / ranks here
    """

    prediction: "Prediction"
    speed_up: Spread
    efficiency: Spread

    @property
    def ranks(self) -> int:
        return self.prediction.application.ranks

    def to_dict(self) -> dict[str, Any]:
        """An entry of `scaling` in the JSON."""
        return {"ranks": self.ranks, "speed_up": self.speed_up.to_dict(), "efficiency": self.efficiency.to_dict()}


def scaling(predictions: "Sequence[Prediction]") -> list[ScalingPoint]:
    """The predictions in the order of their ranks, relative to the first of those on the fewest.

    Raises InputError where their runs are not of the same seeds, or a time is 0.
    """
    ordered = sorted(predictions, key=lambda one: one.application.ranks)
    reference = ordered[0]
    seeds = [run.seed for run in reference.run_list]
    if any([run.seed for run in one.run_list] != seeds for one in ordered):
        raise InputError("speed-ups are of runs with equal seeds; predict all with the same runs and seed")
    if min(run.time_s for one in ordered for run in one.run_list) <= 0.0:
        raise InputError("a predicted time is 0 s, and nothing is faster than that; predict a larger problem")
    points = []
    for one in ordered:
        pairs = zip(reference.run_list, one.run_list, strict=True)
        ratios = [at_first.time_s / here.time_s for at_first, here in pairs]
        sampling_sd = 0.0 if one is reference else hypot(reference.sampling_sd, one.sampling_sd)
        share = reference.application.ranks / one.application.ranks
        efficiencies = [share * ratio for ratio in ratios]
        points.append(ScalingPoint(one, spread_of(ratios, sampling_sd), spread_of(efficiencies, sampling_sd)))
    return points
