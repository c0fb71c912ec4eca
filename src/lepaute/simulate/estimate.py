"""How long the runs of a prediction will take on the cores of this process."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

WORTH_TELLING_S = 5.0  # an estimate of less is not printed
WORTH_MEASURING_S = 0.3  # of a rough estimate: below it, nothing is measured
ROUGH_EVENT_S = 1e-7  # of an event, before anything is measured
MEASURED_EVENTS = 200_000  # of the run that is measured for an estimate, about


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def estimated_wall_s(run_s: Sequence[float], runs: float, cores: int) -> float:
    """Seconds for all runs on `cores` cores: no less than the mean load, no less than the longest run."""
    return max(sum(run_s) * runs / cores, *run_s)


def by_some_iterations(
    applications: Sequence[Any], runs: int, cores: int, measure: Callable[[Any, Any], float]
) -> list[float] | None:
    """`Application.estimated_run_s` of applications whose field `iterations` counts what takes the same time each."""
    if sum(one.events for one in applications) * ROUGH_EVENT_S * runs / cores < WORTH_MEASURING_S:
        return None
    times_s = []
    for one in applications:
        iterations = max(1, min(one.iterations, int(MEASURED_EVENTS * one.iterations / one.events)))
        times_s.append(measure(replace(one, iterations=iterations), one) * one.iterations / iterations)
    return times_s
