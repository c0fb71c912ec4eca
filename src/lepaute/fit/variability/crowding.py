"""How much longer a kernel takes while the other cores compute as well: they share caches, memory and power."""

from dataclasses import replace

import numpy as np

from lepaute.errors import FitError
from lepaute.fit.kernels.kernel_fit import fit_kernel
from lepaute.fit.observations.calls import Calls

#: Steps of a grid of one process: with the other cores idle, and with all of them doing the same.
ALONE, CROWDED = "hpl_steps_1x1", "hpl_steps_1x1_pair"
#: In these the ranks share a column, so that their kernels were measured crowded and nothing else.
TOGETHER = "hpl_steps_2x1"
FEWEST_CALLS = 60


def crowding_of(calls: Calls) -> float:
    """Relative increase of the time of a kernel's calls when all cores compute, against a model of those alone.

    0 where unknown: too few calls alone or crowded, or a kernel that the ranks of a column call as well.
    """
    warm = calls.where(calls.nonempty() & ~calls.cold)
    alone, crowded = (warm.where(warm.probe == _code(calls, name)) for name in (ALONE, CROWDED))
    together = np.count_nonzero(warm.probe == _code(calls, TOGETHER))
    if together or min(len(alone), len(crowded)) < FEWEST_CALLS:
        return 0.0
    try:
        expected_s = float(np.sum(fit_kernel(alone).predict(crowded)))
    except FitError:
        return 0.0
    return float(np.sum(crowded.duration_s)) / expected_s - 1.0 if expected_s > 0.0 else 0.0


def relieved(calls: Calls, crowding: float) -> Calls:
    """The calls as they would be alone: crowded durations divided by 1 + crowding."""
    mask = calls.probe == _code(calls, CROWDED)
    return replace(calls, duration_s=np.where(mask, calls.duration_s / (1.0 + crowding), calls.duration_s))


def _code(calls: Calls, probe: str) -> int:
    return calls.probes.index(probe) if probe in calls.probes else -1
