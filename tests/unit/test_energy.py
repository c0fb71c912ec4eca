"""Energy of a run: hand calculations, from the formula to the whole command."""

from pathlib import Path

import pytest

from lepaute.simulate import Hpl, Stencil, predict
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.io import parse_platform, platform_text
from lepaute.simulate.platform.schema import Power
from lepaute.simulate.platform.summary import summary

POWER = Power(idle_W=100.0, computing_W=300.0, communicating_W=200.0)
# A message takes half a second whatever its size; each call of dgemv takes 1 s, each of dtrsv 2 s, all else nothing.
TINY = Path(__file__).parents[1].joinpath("data", "texts", "energy.yaml").read_text()
WITH_POWER = TINY + "power: {{idle_W: 100, computing_W: 300, communicating_W: 200}}\n"


def tiny(cores, text=WITH_POWER):
    return parse_platform(text.format(cores=cores))


@pytest.mark.parametrize(
    ("computing_core_s", "communicating_core_s", "expected_j"),
    [
        (0.0, 0.0, 2 * 10 * 100.0),  # two idle nodes for 10 s
        (80.0, 0.0, 2 * 10 * 300.0),  # all 2 x 4 cores compute all the time
        (0.0, 80.0, 2 * 10 * 200.0),  # all communicate
        (40.0, 0.0, 2 * 10 * 200.0),  # half of them compute: halfway between idle and computing
        (40.0, 40.0, 2 * 10 * 250.0),  # half and half
    ],
)
def test_power_is_linear_in_the_busy_cores(computing_core_s, communicating_core_s, expected_j):
    joules = POWER.energy_j(
        4, time_s=10.0, nodes=2, computing_core_s=computing_core_s, communicating_core_s=communicating_core_s
    )
    assert joules == pytest.approx(expected_j, rel=1e-12)


# Two ranks with 3 and 2 cells of 1 s, two iterations of two messages of 0.5 s each. Both compute from 1 s on; rank 0
# ends at 4 s, and rank 1, which waits for it, has its first message at 4.5 s and answers: rank 0 computes from 5 s to
# the end at 8 s. The cores compute 10 s in all and spend the other 2 * 8 - 10 = 6 s communicating. A computing core
# draws (300 - 100) / cores watts more than an idle one, a communicating core (200 - 100) / cores.
@pytest.mark.parametrize(
    ("cores", "expected_j"),
    [
        (4, 8 * 100 + 10 * 50 + 6 * 25),  # both ranks on one node of four cores
        (2, 8 * 100 + 10 * 100 + 6 * 50),  # on one node of two
        (1, 2 * 8 * 100 + 10 * 200 + 6 * 100),  # on two nodes of one
    ],
)
def test_energy_of_a_stencil_is_that_of_a_hand_calculation(cores, expected_j):
    stencil = Stencil(cells=(5, 1, 1), grid=(2, 1, 1), iterations=2, allreduce="none", cell_time_s=1.0)
    prediction = predict(stencil, tiny(cores), runs=2)
    assert prediction.time_s.mean == pytest.approx(8.0, rel=1e-9)
    assert prediction.energy_j.mean == pytest.approx(expected_j, rel=1e-9)
    assert prediction.energy_j.low == pytest.approx(expected_j, rel=1e-9)  # nothing varies on this platform


# One rank, one block of four columns: a Crout leaf calls dgemv once for the first column, twice for the second and the
# third and not for the last, 1 s each; the solve is one dtrsv of 2 s. One of four cores computes for 7 s: 150 W.
def test_energy_of_hpl_on_one_rank_is_that_of_a_hand_calculation():
    prediction = predict(Hpl(n=4, nb=4, nbmin=4), tiny(4), runs=1)
    assert prediction.kernel_time_s == {"dgemv": pytest.approx(5.0), "dtrsv": pytest.approx(2.0)}
    assert prediction.time_s.mean == pytest.approx(7.0, rel=1e-9)
    assert prediction.energy_j.mean == pytest.approx(7.0 * (100 + 200 / 4), rel=1e-9)
    assert not prediction.energy_j.has_interval  # one run has none


def test_energy_of_hpl_counts_what_is_not_computing_as_communicating():
    prediction = predict(Hpl(n=16, nb=4, p=2, q=2), tiny(2), runs=1)
    computing_s = sum(prediction.kernel_time_s.values())
    time_s = prediction.time_s.mean
    communicating_s = 4 * time_s - computing_s
    assert communicating_s > 0.5  # there are messages
    expected_j = 2 * 100 * time_s + 100 * computing_s + 50 * communicating_s
    assert prediction.energy_j.mean == pytest.approx(expected_j, rel=1e-9)


def test_a_rank_of_several_threads_computes_on_all_of_them():
    text = TINY.replace("kernel: dgemv", "kernel: dgemv, threads: 2").replace(
        "kernel: dtrsv", "kernel: dtrsv, threads: 2"
    )
    platform = tiny(4, text + "power: {{idle_W: 100, computing_W: 300, communicating_W: 200}}\n")
    prediction = predict(Hpl(n=4, nb=4, threads_per_rank=2), platform, runs=1)
    assert prediction.energy_j.mean == pytest.approx(prediction.time_s.mean * (100 + 2 * 200 / 4), rel=1e-9)


def test_a_platform_that_does_not_say_its_power_has_no_energy(capsys):
    quiet = tiny(4, TINY)
    assert quiet.power is None
    assert "energy_j" not in predict(Hpl(n=4, nb=4), quiet, runs=2).to_dict()
    assert "energy_j" not in predict(Stencil(cells=(5, 1, 1), cell_time_s=1.0), quiet).to_dict()


def test_the_command_prints_joules_and_average_watts(tmp_path, output_of, json_of):
    path = tmp_path / "tiny.yaml"
    path.write_text(WITH_POWER.format(cores=4), encoding="utf-8")
    result = json_of("predict", "hpl", "-p", path, "--n", "4", "--nb", "4", "--json")
    assert set(result["energy_j"]) == {"mean", "low", "high"}
    assert result["energy_j"]["mean"] == pytest.approx(150 * result["time_s"]["mean"])
    assert "150.0 W on average" in output_of("predict", "hpl", "-p", path, "--n", "4", "--nb", "4")


def test_power_is_part_of_the_file_and_shown():
    platform = tiny(4)
    assert parse_platform(platform_text(platform)) == platform
    assert platform.sha256 != tiny(4, TINY).sha256
    assert "power     100.0 W a node idle, 300.0 W computing, 200.0 W communicating" in summary(platform)
    assert "power " not in summary(load_platform("dahu"))
