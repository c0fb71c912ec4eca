"""Prediction of the stencil, through Python and the command line."""

import json

import pytest

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.platform import override
from lepaute.simulate import Layers, Stencil, predict
from lepaute.simulate.apps.stencil import ALLREDUCES

BOX = Stencil(cells=(64, 64, 64), grid=(2, 2, 2), iterations=10, cell_time_s=2e-9, noise_relative_sd=0.05)
COMMAND = ["predict", "stencil", "-p", "dahu", "--grid", "2x2x2", "--cells", "64x64x64", "--iterations", "10"]


def test_the_json_has_the_keys_of_a_prediction(dahu, tmp_path):
    prediction = predict(BOX, dahu, runs=3)
    result = prediction.to_dict()
    assert set(result) == {
        *("application", "platform", "platform_sha256", "parameters", "seed", "time_s", "rate_cells_per_s", "runs"),
        *("fidelity", "warnings", "outside_ranges", "extrapolated_share", "comparable", "trust"),
        *("simulation", "version"),
    }
    assert result["application"] == "stencil"
    assert set(result["time_s"]) == {"mean", "low", "high"}
    assert set(result["simulation"]) == {"wall_s", "peak_rss_bytes", "engine_bytes", "messages"}
    assert [set(run) for run in result["runs"]] == [{"seed", "time_s", "rate_cells_per_s"}] * 3
    prediction.to_json(tmp_path / "prediction.json")
    assert json.loads((tmp_path / "prediction.json").read_text()) == json.loads(json.dumps(result, allow_nan=False))
    assert [path.name for path in tmp_path.iterdir()] == ["prediction.json"]


def test_a_prediction_repeats_bit_for_bit_and_one_run_of_it_alone(dahu):
    prediction = predict(BOX, dahu, runs=4, seed=11)
    assert predict(BOX, dahu, runs=4, seed=11).run_list == prediction.run_list
    assert predict(BOX, dahu, runs=1, seed=13).run_list == (prediction.run_list[2],)


def test_the_rate_is_cells_and_iterations_over_time(dahu):
    run = predict(BOX, dahu, runs=1).run_list[0]
    assert run.rate == pytest.approx(64**3 * 10 / run.time_s, rel=1e-12)


def test_days_of_the_platform_and_noise_of_the_sweep_move_the_result(dahu):
    for layer in ("days", "noise"):
        still = predict(BOX, dahu, runs=3, layers=Layers.only())
        assert len({run.time_s for run in still.run_list}) == 1
        moved = predict(BOX, dahu, runs=3, layers=Layers.only(layer))
        assert len({run.time_s for run in moved.run_list}) == 3


def test_every_allreduce_is_simulated_and_has_its_own_messages(dahu):
    # 8 ranks, 10 iterations: 6 faces a rank, and 2 * 7, 8 * 3 or 2 * 8 * 7 messages of the reduction
    counts = {"none": 0, "binomial": 14, "recursive-doubling": 24, "ring": 112}
    assert set(counts) == set(ALLREDUCES)
    for allreduce, count in counts.items():
        box = Stencil(cells=(64, 64, 64), grid=(2, 2, 2), iterations=10, cell_time_s=2e-9, allreduce=allreduce)
        assert predict(box, dahu, runs=1).simulation.messages == 10 * (48 + count)


def test_a_platform_without_kernel_models_will_do(dahu):
    bare = override(dahu, {"kernels": "[]"})
    stencil = Stencil(cells=(64, 64, 64), cell_time_s=2e-9)
    assert predict(stencil, bare, layers=Layers(days=False)).time_s.mean == pytest.approx(64**3 * 2e-9)


def test_an_interval_that_does_not_cover_days_says_so(dahu):
    without_days = override(dahu, {"days": "null"})
    assert any("call noise only" in warning for warning in predict(BOX, without_days, runs=1).warnings)
    assert not any("call noise only" in warning for warning in predict(BOX, dahu, runs=1).warnings)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"iterations": 0}, "iterations is 0"),
        ({"halo": True}, "halo is True"),
        ({"allreduce": "tree"}, "allreduce is 'tree'; it must be one of none, binomial"),
        ({"cell_time_s": -1.0}, "cell_time_s is -1.0"),
        ({"noise_relative_sd": float("nan")}, "noise_relative_sd is nan"),
        ({"grid": (9, 1, 1)}, "8 cells along x cannot be shared by 9 processes"),
        ({"grid": (1, 0, 1)}, "8 cells along y cannot be shared by 0 processes"),
        ({"grid": (1, 1, 4), "halo": 3}, "8 cells along z leave 2 to a process, fewer than the 3 layers"),
        ({"cell_time_s": 0.0}, r"say what a cell costs.*--cell-time"),
        ({"cell_bytes": 16.0}, "memory bandwidth of a node"),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        Stencil(**{"cells": (8, 8, 8), "cell_time_s": 1e-9} | parameters)


def test_a_grid_larger_than_the_machine_is_refused(dahu):
    with pytest.raises(InputError, match="1089 ranks do not fit"):
        predict(Stencil(cells=(64, 64, 64), grid=(33, 33, 1), cell_time_s=1e-9), dahu)


def test_the_command_prints_one_json_object(capsys):
    assert main([*COMMAND, "--cell-time", "2e-9", "--open", "--json", "--seed", "5", "--runs", "2"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["parameters"]["grid"] == [2, 2, 2]
    assert result["parameters"]["periodic"] is False
    assert [run["seed"] for run in result["runs"]] == [5, 6]


def test_the_command_says_what_a_person_wants(capsys):
    assert main([*COMMAND, "--cell-bytes", "16", "--node-memory-bandwidth", "1e11"]) == 0
    printed = capsys.readouterr().out
    for words in ("64 x 64 x 64 cells, 10 iterations, 2 x 2 x 2 ranks on dahu-2020-01", "95 % prediction", "cells/s"):
        assert words in printed
