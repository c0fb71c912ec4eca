"""Prediction of the stencil, through Python and the command line."""

import pytest

from lepaute.errors import InputError
from lepaute.simulate import Layers, Stencil, predict
from lepaute.simulate.platform import override

BOX = Stencil(cells=(64, 64, 64), grid=(2, 2, 2), iterations=10, cell_time_s=2e-9, noise_relative_sd=0.05)
COMMAND = ["predict", "stencil", "-p", "dahu", "--grid", "2x2x2", "--cells", "64x64x64", "--iterations", "10"]


def test_the_rate_is_cells_and_iterations_over_time(dahu):
    run = predict(BOX, dahu, runs=1).run_list[0]
    assert run.rate == pytest.approx(64**3 * 10 / run.time_s, rel=1e-12)


def test_days_of_the_platform_and_noise_of_the_sweep_move_the_result(dahu):
    for layer in ("days", "noise"):
        still = predict(BOX, dahu, runs=3, layers=Layers.only())
        assert len({run.time_s for run in still.run_list}) == 1
        moved = predict(BOX, dahu, runs=3, layers=Layers.only(layer))
        assert len({run.time_s for run in moved.run_list}) == 3


def test_a_platform_without_kernel_models_will_do(dahu):
    bare = override(dahu, {"kernels": "[]"})
    stencil = Stencil(cells=(64, 64, 64), iterations=1, cell_time_s=2e-9)
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


def test_the_command_says_what_a_person_wants(output_of):
    printed = output_of(*COMMAND, "--cell-bytes", "16", "--node-memory-bandwidth", "1e11")
    for words in ("64 x 64 x 64 cells, 10 iterations, 2 x 2 x 2 ranks on 1 node of dahu-2020-01", "(95 %: ", "cells/s"):
        assert words in printed
