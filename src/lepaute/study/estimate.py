"""How long a study will take, and where the time goes, before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.kit.text import counted, duration

if TYPE_CHECKING:
    from lepaute.study.evaluation import Point, Trial
    from lepaute.study.session import Session

#: Overhead of a simulation, about: making its configuration, sending it, writing its result.
OVERHEAD_S = 0.005


@dataclass(frozen=True)
class Estimate:
    """Of the trials that are not known yet.

    cpu_s  : of all simulations, None where all together are quick;  wall_s : on the workers
    longest: the point that takes most of the time, and its share
    """

    missing: int
    known: int
    workers: int
    cpu_s: float | None
    wall_s: float
    longest: "tuple[Point, float] | None"

    @property
    def text(self) -> str:
        """One sentence."""
        count = counted(self.missing, "simulation")
        known = f" ({self.known} known already)" if self.known else ""
        where = ""
        if self.longest is not None and self.longest[1] > 0.0:
            where = f"; {100.0 * self.longest[1]:.0f} % of it at {self.longest[0]}"
        return f"{count}{known}, about {duration(self.wall_s)} on {counted(self.workers, 'worker')}{where}"


def estimate(session: "Session", trials: Sequence["Trial"]) -> Estimate:
    """What evaluating the trials will take; a few steps of the largest are simulated for it where that is long."""
    from lepaute.simulate.prediction.predicting import MOST_RUNS, expected_run_s

    missing, known = session.missing(trials)
    workers = session.pool.workers
    overhead_s = OVERHEAD_S * len(missing)
    if not missing:
        return Estimate(0, known, workers, None, 0.0, None)
    # Runs of a configuration cost the same; so do points whose applications are the same.
    counts: dict[tuple[str, Point], int] = {}
    configurations = {}
    for trial, configuration in missing:
        place = (configuration.digest, trial.point)
        counts[place] = counts.get(place, 0) + 1
        configurations[place] = configuration
    applications = [each.application for each in configurations.values()]
    heaviest = max(configurations.values(), key=lambda each: each.application.events)
    run_s = None
    if len(missing) <= MOST_RUNS:
        conditions = heaviest.conditions
        runs = max(1, round(len(missing) / len(applications)))
        run_s = expected_run_s(
            applications, conditions.platform, runs=runs, mapping=conditions.mapping, fidelity=conditions.fidelity
        )
    if run_s is None:
        return Estimate(len(missing), known, workers, None, overhead_s, None)
    costs = {place: counts[place] * each_s for place, each_s in zip(counts, run_s, strict=True)}
    cpu_s = sum(costs.values())
    longest = max(costs, key=lambda place: costs[place])
    wall_s = max((cpu_s + overhead_s) / workers, *run_s, 0.0)
    share = (longest[1], costs[longest] / cpu_s) if len(costs) > 1 else None
    return Estimate(len(missing), known, workers, cpu_s, wall_s, share)
