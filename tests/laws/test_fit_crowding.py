"""Crowding: what a busy neighbour costs a kernel."""

import numpy as np
import pytest

from lepaute.fit.observations.calls import Calls
from lepaute.fit.variability.crowding import crowding_of, relieved

PROBES = ("hpl_steps_1x1", "hpl_steps_1x1_pair", "hpl_steps_2x1")
CROWDING = 0.05


def calls(probe: np.ndarray) -> Calls:
    """Calls of a swap of m = 128 rows and n columns that takes 2 ns an element, CROWDING longer in the pair."""
    rng = np.random.default_rng(20261121)
    count = len(probe)
    n = rng.uniform(500, 5000, count)
    duration_s = 2e-9 * 128 * n * (1.0 + 0.01 * rng.normal(size=count)) * np.where(probe == 1, 1.0 + CROWDING, 1.0)
    zeros, false = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
    return Calls(
        "dlaswp00N", np.full(count, 128.0), n, np.zeros(count), duration_s, zeros, zeros, probe, ~false, false, PROBES
    )


def test_crowding_is_found_and_relieved() -> None:
    # 200 calls a side with noise of 1 %: the ratio is known to 0.1 %; five times that.
    measured = calls(np.repeat([0, 1], 200))
    found = crowding_of(measured)
    assert found == pytest.approx(CROWDING, abs=0.005)
    assert abs(crowding_of(relieved(measured, found))) < 1e-3


def test_a_kernel_that_ranks_of_a_column_call_as_well_is_left_as_it_was_measured() -> None:
    assert crowding_of(calls(np.repeat([0, 1, 2], 200))) == 0.0


def test_too_few_crowded_calls_tell_nothing() -> None:
    assert crowding_of(calls(np.repeat([0, 1], [200, 20]))) == 0.0
