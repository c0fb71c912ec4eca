"""Memory of the engine is linear in ranks; a run of HPL pays once for memory that it first writes."""

import pytest

from lepaute.measure.fit.observations.calls import FIRST_TOUCH
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.native import Native, simulate
from lepaute.simulate.platform import Platform, load_platform
from lepaute.simulate.platform.kernel_model import KernelModel


@pytest.fixture(scope="module")
def simulator():
    return Native().on(Conditions(load_platform("exascale-like")))


def bytes_per_rank(simulator, side: int, steps: int) -> float:
    hpl = Hpl(n=1024 * 10_000, nb=1024, p=side, q=side)
    machine, cores = simulator._machine(hpl), simulator._core_of_rank(hpl)
    return simulate(hpl.on(), machine, simulator._layers, cores, 1, trial_steps=steps).engine_bytes / hpl.ranks


def test_a_rank_takes_no_more_memory_among_many_ranks_or_in_more_steps(simulator):
    # What does not depend on the ranks, such as the links of 9,408 nodes, is shared by fewer on the smaller grid.
    assert bytes_per_rank(simulator, 96, 2) < bytes_per_rank(simulator, 32, 2)
    assert bytes_per_rank(simulator, 32, 40) < 1.25 * bytes_per_rank(simulator, 32, 10)


BYTE_S = 5e-10
NOTHING_DRAWN = Layers.only()


@pytest.mark.parametrize(
    ("p", "q", "depth", "doubles"),
    [
        (1, 1, 1, 100 * (100 + 1000)),  # the triangle, and what BLAS packs
        (1, 2, 1, 100 * (100 + 500 + 2 * 1000)),  # and a panel of 1000 rows from the other column, one in advance
        (1, 2, 0, 100 * (100 + 500 + 1000)),
        (2, 1, 1, 100 * (100 + 3 * 1000)),  # and U, and the rows on their way to it
    ],
)
def test_each_rank_pays_once_for_its_workspaces(dahu: Platform, p: int, q: int, depth: int, doubles: int) -> None:
    hpl = Hpl(n=1000, nb=100, p=p, q=q, depth=depth)
    without = predict(hpl, dahu, runs=1, layers=NOTHING_DRAWN)
    model = KernelModel.model_validate({"kernel": FIRST_TOUCH, "pieces": [{"mean": {"n": BYTE_S}}]})
    paid = predict(hpl, dahu.model_copy(update={"kernels": (*dahu.kernels, model)}), runs=1, layers=NOTHING_DRAWN)
    expected = 8 * doubles * BYTE_S
    assert paid.time_s.mean - without.time_s.mean == pytest.approx(expected, rel=1e-6)
    assert paid.first.kernels[FIRST_TOUCH].calls == p * q
    assert paid.first.kernels[FIRST_TOUCH].time_s == pytest.approx(p * q * expected)
    assert FIRST_TOUCH not in without.first.kernels
    assert not any(FIRST_TOUCH in text for text in without.warnings)
