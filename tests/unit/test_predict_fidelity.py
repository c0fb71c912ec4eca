"""Predictions from windows of the steps: when they are made, what they say of themselves, how near they are."""

import json
import math
from dataclasses import replace

import pytest

from lepaute.simulate import Hpl, predict
from lepaute.simulate.apps.hpl.work import FULL_BELOW
from lepaute.simulate.platform import load_platform, override

STEPS = 547
HPL = Hpl(n=70000, nb=128, p=4, q=4)


@pytest.fixture(scope="module")
def dahu():
    power = "{idle_W: 100, computing_W: 300, communicating_W: 200}"
    return override(load_platform("dahu"), {"power": power})


@pytest.fixture(scope="module")
def full(dahu):
    return predict(HPL, dahu, runs=2, fidelity="full")


@pytest.fixture(scope="module")
def sampled(dahu):
    return predict(HPL, dahu, runs=2, fidelity="sampled")


def test_a_sampled_prediction_is_near_the_full_one(full, sampled):
    assert sampled.time_s.mean == pytest.approx(full.time_s.mean, rel=0.005)
    assert [run.time_s for run in sampled.run_list] == pytest.approx([run.time_s for run in full.run_list], rel=0.01)
    assert sampled.simulation.messages == pytest.approx(full.simulation.messages, rel=0.01)
    assert sampled.energy_j.mean == pytest.approx(full.energy_j.mean, rel=0.01)
    assert sampled.kernel_time_s["dgemm"] == pytest.approx(full.kernel_time_s["dgemm"], rel=0.01)
    assert sampled.kernel_time_s.keys() == full.kernel_time_s.keys()
    assert sampled.run_list != full.run_list


def test_a_sampled_prediction_says_that_it_is_one(full, sampled):
    assert json.loads(json.dumps(sampled.to_dict()))["fidelity"] == "sampled"
    (told,) = [warning for warning in sampled.warnings if warning.startswith("sampled: ")]
    assert f" of {STEPS} steps were simulated" in told
    assert "with an error of 0." in told
    assert "which the interval includes" in told
    assert full.to_dict()["fidelity"] == "full"
    assert not any("sampled" in warning for warning in full.warnings)


def test_the_error_of_sampling_is_part_of_the_interval_and_of_its_parts(full, sampled):
    assert full.sampling_sd == 0.0
    assert 0.001 <= sampled.sampling_sd < 0.01
    spread = sampled.time_s
    alone = replace(sampled, sampling_sd=0.0).time_s
    assert spread.mean == alone.mean
    for wide, narrow in ((spread.low, alone.low), (spread.high, alone.high)):
        logs = [math.log(run.time_s) for run in sampled.run_list]
        centre = sum(logs) / len(logs)
        assert abs(math.log(wide) - centre) == pytest.approx(
            math.hypot(math.log(narrow) - centre, 1.959964 * sampled.sampling_sd)
        )
    assert sampled.to_dict()["sampling_relative_sd"] == sampled.sampling_sd
    assert "sampling_relative_sd" not in full.to_dict()
    parts = predict(HPL, "dahu", runs=2, fidelity="sampled", parts=True)
    assert parts.parts.relative_sd["sampling"] == parts.sampling_sd
    assert "sampling" not in predict(Hpl(n=2000), "dahu", runs=2, parts=True).parts.relative_sd


def test_few_steps_are_simulated_in_full_whatever_is_asked_for(dahu):
    few = Hpl(n=5000, nb=128, p=2, q=2)
    asked = predict(few, dahu, runs=2, fidelity="sampled")
    assert asked.fidelity == "full"
    assert asked.run_list == predict(few, dahu, runs=2, fidelity="full").run_list
    assert not any("sampled" in warning for warning in asked.warnings)


def test_auto_simulates_in_full_up_to_a_number_of_steps_times_ranks():
    ranks, nb = 1000, 100
    steps = FULL_BELOW // ranks
    largest = Hpl(n=steps * nb, nb=nb, p=20, q=50).on()
    larger = Hpl(n=steps * nb + 1, nb=nb, p=20, q=50).on()
    assert not largest.is_sampled("auto")
    assert larger.is_sampled("auto")
    assert not larger.is_sampled("auto", traced=True)  # a trace has gaps only where one asks for them
    assert larger.is_sampled("sampled", traced=True)
    assert not larger.is_sampled("full")
    assert largest.simulated_share("auto") == 1.0
    assert 0.0 < larger.simulated_share("auto") < 0.05
