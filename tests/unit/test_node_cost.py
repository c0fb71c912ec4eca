"""What a changed node costs an HPL: its CPUs on the platform, the job without it, and the errors of its factors."""

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.machine.core import per_cpu_coefficients
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.components import with_cpu_factors
from lepaute.simulate.prediction.node_cost import CpuFactors, grids_within, node_cost

SMALL = load_platform(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
HPL = Hpl(n=300, nb=32, p=2, q=2)
EXACT = ((0.0, 0.0), (0.0, 0.0))


def alike(nodes: int) -> Platform:
    """Nodes that are all alike, with enough computing to be what HPL waits for."""
    return override(SMALL, {"nodes.count": str(nodes), "kernels[0].pieces[1].per_cpu": "null"})


def factors(first: float, second: float) -> CpuFactors:
    return CpuFactors((0, 1), (log(first), log(second)), EXACT, 10)


def dgemm(platform: Platform) -> dict:
    model = platform.kernel("dgemm")
    return per_cpu_coefficients(model.pieces[-1])


def test_the_cpus_of_one_node_take_a_factor_times_as_long_and_no_other() -> None:
    rows = dgemm(with_cpu_factors(SMALL, 1, {0: 2.0, 1: 3.0}))
    # cpu 0 has a row of its own; cpu 1 has the common coefficients, one of which is no column of the table
    assert rows[1, 0] == ({"mnk": 2.2e-10, "mn": 0.0, "1": 4e-6}, {"mnk": 2e-12})
    assert rows[1, 1] == ({"mnk": 3 * 1e-10, "mn": -3 * 1e-10, "1": 3 * 2e-6}, {"mnk": 3e-12})
    assert rows[2, 1] == ({"mnk": 9e-11, "mn": 0.0, "1": 2e-6}, {"mnk": 2e-12})


def test_factors_of_one_predict_what_the_platform_predicts_to_the_last_bit() -> None:
    same = with_cpu_factors(SMALL, 2, {0: 1.0, 1: 1.0})
    assert same.kernels != SMALL.kernels
    assert [run.time_s for run in predict(HPL, same).run_list] == [run.time_s for run in predict(HPL, SMALL).run_list]


@pytest.mark.parametrize(
    ("node", "given", "words"),
    [(3, {0: 1.1}, "no node 3"), (1, {2: 1.1}, "CPUs 0 to 1"), (1, {0: 0.0}, "above 0"), (0, {}, "it has 1 to 2")],
)
def test_what_the_platform_does_not_have_is_refused(node: int, given: dict[int, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_cpu_factors(SMALL, node, given)


def test_a_job_of_computing_alone_takes_as_much_longer_as_its_node() -> None:
    # One rank, and noise and days off: all that is left besides dgemm is far below a tenth of the time.
    hpl = Hpl(n=1500, nb=64, p=1, q=1)
    cost = node_cost(hpl, alike(2), 2, factors(1.2, 1.0), runs=2, layers=Layers.only())
    assert cost.slowdown.ratio == pytest.approx(1.2, abs=0.02)
    assert cost.without is None
    assert cost.gain is None
    assert (cost.nodes, cost.spare_nodes) == (1, 1)


def test_the_node_is_among_those_of_the_job_wherever_it_stands() -> None:
    cost = node_cost(HPL, alike(4), 4, factors(3.0, 3.0), runs=4)
    # two of the four nodes: with sequential ranks node 4 would idle, and slowing it down would cost nothing
    assert cost.nodes == 2
    assert cost.slowdown.low > 1.3


def test_all_nodes_wait_for_one_that_is_slow() -> None:
    cost = node_cost(Hpl(n=2400, nb=32, p=4, q=4), alike(8), 3, factors(1.5, 1.5), runs=4)
    assert cost.shared_slowdown == pytest.approx(8 / (7 + 1 / 1.5))
    assert cost.slowdown.low > cost.shared_slowdown + 0.1


def test_the_slowest_node_of_the_job_is_named_though_it_be_another_one() -> None:
    slow = with_cpu_factors(alike(8), 2, {0: 1.3, 1: 1.3})
    small = Hpl(n=300, nb=32, p=2, q=4)
    assert node_cost(small, slow, 3, factors(1.1, 1.0), runs=2).slowest == 2
    assert node_cost(small, slow, 3, factors(1.0, 1.5), runs=2).slowest == 3
    # node 2 is not in this job
    assert node_cost(Hpl(n=300, nb=32, p=1, q=2), slow, 3, factors(1.1, 1.0), runs=2).slowest == 3


def test_the_job_without_the_node_runs_on_the_nodes_that_are_left() -> None:
    cost = node_cost(Hpl(n=600, nb=32, p=2, q=4), alike(4), 2, factors(4.0, 4.0), runs=4)
    assert (cost.without.nodes, cost.without.application.ranks) == (3, 6)
    assert cost.gain.high < 1.0, "a node four times as slow is better left out"
    found = cost.to_dict()
    assert found["without_node"]["grid"] == [2, 3]
    assert found["as_now_against_as_calibrated"]["shared_errors"] is True


def test_a_grid_for_the_job_without_the_node_is_taken_or_refused() -> None:
    cost = node_cost(Hpl(n=300, nb=32, p=2, q=4), alike(4), 2, factors(2.0, 2.0), runs=2, grid_without=(1, 5))
    assert cost.without is not None
    assert cost.to_dict()["without_node"]["grid"] == [1, 5]
    with pytest.raises(InputError, match="there are 6 ranks"):
        node_cost(Hpl(n=300, nb=32, p=2, q=4), alike(4), 2, factors(2.0, 2.0), runs=2, grid_without=(2, 4))


@pytest.mark.parametrize(
    ("ranks", "like", "expected"),
    [
        (480, (16, 32), (20, 24)),  # 15 nodes of 32 cores: all of them, and nearly square
        (992, (32, 32), (31, 32)),
        (7, (2, 4), (1, 7)),  # nothing nearer to square leaves at most a tenth idle
        (6, (4, 2), (3, 2)),  # lies as the first grid does
        (1, (1, 2), (1, 1)),
    ],
)
def test_the_grid_of_fewer_ranks_leaves_few_idle_and_is_near_to_square(ranks, like, expected):
    assert grids_within(ranks, like)[0] == expected


def test_no_grid_has_more_ranks_than_are_left() -> None:
    for ranks in range(1, 300):
        grids = grids_within(ranks, (1, 1))
        assert grids
        assert all(p * q <= ranks for p, q in grids)


def test_factors_are_drawn_with_the_errors_of_their_estimate() -> None:
    covariance = ((4e-4, 3e-4), (3e-4, 4e-4))
    few = CpuFactors((0, 1), (log(1.1), 0.0), covariance, 8)
    draws = np.log([list(few.drawn(seed).values()) for seed in range(4000)])
    # Student's t of 8 degrees: variance 8/6 of the scale's; of 4000 draws the sd is known to 2 %
    assert draws.mean(axis=0) == pytest.approx([log(1.1), 0.0], abs=4 * 0.02 / sqrt(4000) * 1.2)
    assert draws.std(axis=0) == pytest.approx([0.02 * sqrt(8 / 6)] * 2, rel=0.08)
    assert np.corrcoef(draws.T)[0, 1] == pytest.approx(0.75, abs=0.05)
    assert few.drawn(3) == few.drawn(3)


def test_processors_become_the_cpus_of_the_platform() -> None:
    def cpus(nodes: dict, processors: tuple[int, ...]) -> tuple[float, ...]:
        shape = SMALL.nodes.model_copy(update=nodes)
        size = len(processors)
        covariance = [[float(row == column) for column in range(size)] for row in range(size)]
        return CpuFactors.of_processors(shape, processors, [0.1, 0.2][:size], covariance, 5).log_mean

    assert cpus({"cpus": 2}, (0, 1)) == (0.1, 0.2)
    assert cpus({"cpus": 2}, (-1,)) == (0.1, 0.1)
    assert cpus({"cpus": 1}, (0, 1)) == (0.2,), "HPL waits for the slower one"
    assert cpus({"cpus": 4, "cores": 4, "sockets": 2}, (0, 1)) == (0.1, 0.1, 0.2, 0.2)
    with pytest.raises(InputError, match="2 processors"):
        cpus({"cpus": 4, "cores": 4}, (0, 1))
