"""How long the runs of a prediction will take on the cores of this process."""

import os
from collections.abc import Sequence

WORTH_TELLING_S = 5.0  # an estimate of less is not printed
WORTH_MEASURING_S = 0.3  # of a rough estimate: below it, nothing is measured
ROUGH_EVENT_S = 1e-7  # of an event, before anything is measured


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def estimated_wall_s(run_s: Sequence[float], runs: int, cores: int) -> float:
    """Seconds for all runs on `cores` cores: no less than the mean load, no less than the longest run."""
    return max(sum(run_s) * runs / cores, *run_s)
