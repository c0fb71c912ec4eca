"""Memory of the engine: linear in ranks, and no more for more steps; `benchmarks/set_up.py` tells how much it is."""

import pytest

from lepaute.simulate import Hpl
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.native import Native, simulate
from lepaute.simulate.platform import load_platform


@pytest.fixture(scope="module")
def simulator():
    return Native().on(Conditions(load_platform("exascale-like")))


def bytes_per_rank(simulator, side: int, steps: int) -> float:
    hpl = Hpl(n=1024 * 10_000, nb=1024, p=side, q=side)
    machine, cores = simulator._machine(hpl), simulator._core_of_rank(hpl)
    return simulate(hpl.on(), machine, simulator._layers, cores, 1, trial_steps=steps).engine_bytes / hpl.ranks


def test_a_rank_takes_no_more_memory_among_many_ranks(simulator):
    # What does not depend on the ranks, such as the links of 9,408 nodes, is shared by fewer on the smaller grid.
    assert bytes_per_rank(simulator, 96, 2) < bytes_per_rank(simulator, 32, 2)


def test_more_steps_take_no_more_memory(simulator):
    assert bytes_per_rank(simulator, 32, 40) < 1.25 * bytes_per_rank(simulator, 32, 10)
