"""Prediction of the stencil, through Python and the command line."""

import pytest

from lepaute.simulate import Layers, Stencil, predict
from lepaute.simulate.platform import override

BOX = Stencil(cells=(64, 64, 64), grid=(2, 2, 2), iterations=10, cell_time_s=2e-9, noise_relative_sd=0.05)
COMMAND = ["predict", "stencil", "-p", "dahu", "--grid", "2x2x2", "--cells", "64x64x64", "--iterations", "10"]


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


def test_the_command_says_what_a_person_wants(output_of):
    printed = output_of(*COMMAND, "--cell-bytes", "16", "--node-memory-bandwidth", "1e11")
    for words in ("64 x 64 x 64 cells, 10 iterations, 2 x 2 x 2 ranks on 1 node of dahu-2020-01", "(95 %: ", "cells/s"):
        assert words in printed
