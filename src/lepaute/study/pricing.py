"""Controls of the points of a study, as a prediction has them (simulate/prediction/controls.py): from a priced trial.

A study's runs may come from anywhere (threads, workers, a store), and so may the run that is priced: the first one of a
point once more, whose outcome tells what the draws of all its runs, and of further ones, do to it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lepaute.simulate.prediction.predicting import usual_engine
from lepaute.stats.control_variates import MIN_CONTROLLED, Controls
from lepaute.study.evaluation import Evaluate, Outcome, Point, Trial

if TYPE_CHECKING:
    from lepaute.study.configuration import Configurations

#: A point is priced for a power of two of runs, so many at least: with more runs it is rarely priced again.
MIN_PRICED = 16


class Pricing:
    """Prices points by further trials, which cost no budget and are no outcomes of the study; each once."""

    def __init__(self, configurations: "Configurations", evaluate: Evaluate) -> None:
        self._configurations, self._evaluate = configurations, evaluate

    def __call__(self, outcomes_of: Mapping[Point, Sequence[Outcome]]) -> dict[Point, Controls]:
        """The controls of the runs of these points, in the order of their seeds.

        Of points with too few runs, with a refused one, or of an engine that cannot tell there are none.
        """
        trials = {
            point: trial for point, each in outcomes_of.items() if (trial := self._trial(point, each)) is not None
        }
        found = self._evaluate(list(trials.values())) if trials else []
        return {
            point: outcome.controls.first(len(outcomes_of[point]))
            for point, outcome in zip(trials, found, strict=True)
            if outcome.controls is not None
        }

    def _trial(self, point: Point, outcomes: Sequence[Outcome]) -> Trial | None:
        count = len(outcomes)
        if count < MIN_CONTROLLED or any(outcome.refusal is not None for outcome in outcomes):
            return None
        trials = [outcome.trial for outcome in outcomes]
        first, repeat = trials[0].seed, trials[0].repeat
        if [(trial.seed, trial.repeat) for trial in trials] != [(first + at, repeat) for at in range(count)]:
            return None
        if not usual_engine(self._configurations.at(point).application).samples:
            return None
        return Trial(point, first, repeat, priced=max(MIN_PRICED, 1 << (count - 1).bit_length()))
