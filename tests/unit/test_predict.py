"""Predictions of HPL and the stencil through Python, and what is asked for from Python as numbers and layers."""

import json
from pathlib import Path

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.simulate import Hpl, Layers, Stencil, predict
from lepaute.simulate.platform import load_platform, override

NO_LAYERS = Layers.only()


def test_a_prediction_is_written_as_json_and_drawn(dahu, tmp_path):
    prediction = predict(Hpl(n=1000), dahu, runs=2)
    prediction.to_json(tmp_path / "prediction.json")
    assert json.loads((tmp_path / "prediction.json").read_text()) == prediction.to_dict()
    prediction.plot(tmp_path / "prediction.png")
    assert (tmp_path / "prediction.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prediction.json", "prediction.png"]
    with pytest.raises(InputError, match="at least 2 runs"):
        predict(Hpl(n=1000), dahu, runs=1).plot(tmp_path / "one.png")


def test_one_run_has_no_interval_and_ten_have_one_around_their_mean(dahu):
    hpl = Hpl(n=2000)
    assert not predict(hpl, dahu, runs=1).time_s.has_interval
    time_s = predict(hpl, dahu, runs=10).time_s
    assert time_s.low < time_s.mean < time_s.high


def test_each_layer_of_uncertainty_moves_the_result(dahu):
    hpl = Hpl(n=3000, p=1, q=4)  # one process row: where the pivots come from does not matter
    quiet = predict(hpl, dahu, runs=3, layers=NO_LAYERS)
    assert len({run.time_s for run in quiet.run_list}) == 1
    for layer in ("days", "discrepancy", "noise", "network"):  # the layers that the shipped platforms have
        moved = predict(hpl, dahu, runs=3, layers=Layers.only(layer))
        assert moved.run_list[0].time_s != quiet.run_list[0].time_s


def test_call_noise_alone_is_told(dahu):
    def told(platform):
        return any("call noise only" in warning for warning in predict(Hpl(n=1000), platform, runs=1).warnings)

    small = load_platform(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
    assert told(override(small, {"days": "null"}))
    assert not told(dahu)
    assert not told(override(dahu, {"days": "null"}))  # its kernels have discrepancies


def test_variants_of_a_routine_cost_what_the_routine_costs_where_the_platform_has_one_model(dahu):
    prediction = predict(Hpl(n=2000), dahu, runs=1)  # one process row: HPL calls dgemm_nn and dtrsm_left
    assert prediction.kernel_time_s["dgemm_nn"] > 0.5 * prediction.time_s.mean
    assert not any("dgemm" in warning and "not modelled" in warning for warning in prediction.warnings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("episodes", "{relative_sd: 0.05, duration_s: 0.05}"),
        ("wandering", "{relative_sd: 0.05, correlation_s: 0.025, relative_sd_error: 0.1, correlation_error: 0.1}"),
    ],
)
def test_what_successive_calls_share_widens_short_runs_more_than_long_ones(dahu, name, value):
    def relative_half_width(n):
        layers = Layers(discrepancy=False)
        return predict(Hpl(n=n), moody, runs=20, layers=layers).time_s.half_width_percent

    moody = override(dahu, {name: value, "days": "null"})
    assert relative_half_width(1000) > 2.0 * relative_half_width(5000)


def test_full_nodes_that_compute_between_probes_are_told_of_where_the_network_knows_only_idle_receivers(dahu):
    idle = override(dahu, {"network.remote.busy": "null", "network.loopback.busy": "null"})
    known = override(idle, {"network.remote.busy": "{segments: [{above_bytes: 0, protocol: eager, latency_s: 1e-6, "
                            "bandwidth_Bps: 1e10}]}"})  # fmt: skip

    def told(platform, p, **options):
        prediction = predict(Hpl(n=1000, nb=128, p=p, q=4, **options), platform, runs=1)
        return any("network.*.busy" in warning for warning in prediction.warnings)

    assert told(idle, 8)  # 32 ranks on 32 cores, look-ahead
    assert not told(known, 8)
    assert not told(idle, 4)  # half of the cores
    assert not told(idle, 8, depth=0)  # MPI_Iprobe again and again, nothing in between
    assert not told(idle, 8, bcast="long")  # blocks


def test_a_variant_without_a_model_of_its_own_shares_the_errors_of_the_one_it_uses(dahu):
    # dgemm_nn is what HPL calls with U not transposed on one process row; its model is that of dgemm
    alike = [
        predict(
            Hpl(n=2000, nb=128, p=1, q=1, u=u), dahu, runs=1, seed=7, layers=Layers.only("discrepancy")
        ).kernel_time_s
        for u in ("transposed", "no-transposed")
    ]
    whole = [sum(time for name, time in times.items() if name.startswith("dgemm")) for times in alike]
    assert whole[0] == pytest.approx(whole[1], rel=1e-9)


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


@pytest.mark.parametrize("names", [("nois",), ("noise", "day")])
def test_layers_of_other_names_are_refused_not_switched_off(names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="there is no layer"):
        Layers.only(*names)
    with pytest.raises(InputError, match="there is no layer"):
        Layers.without(names)
    with pytest.raises(InputError, match="one text; give a list of them"):
        Layers.without("noise")
    assert Layers.only("noise").off == (
        "coefficients", "days", "discrepancy", "network", "overheads", "collectives", "extrapolation", "own_code",
    )  # fmt: skip


def test_numbers_of_numpy_are_numbers() -> None:
    ours = Hpl(n=1000, nb=64, p=1, q=2)
    theirs = Hpl(n=np.int64(1000), nb=np.int32(64), p=np.uint8(1), q=np.int16(2))  # type: ignore[arg-type]
    assert theirs == ours
    assert type(theirs.n) is int
    assert Stencil(cells=np.array([8, 8, 8]), cell_time_s=1e-9).cells == (8, 8, 8)  # type: ignore[arg-type]
    assert Stencil(cells=(8, 8, 8), cell_time_s=np.float32(0.5)).cell_time_s == 0.5  # type: ignore[arg-type]
    found = predict(theirs, "dahu", runs=np.int64(2), seed=np.uint32(3))  # type: ignore[arg-type]
    assert found.to_dict()["time_s"] == predict(ours, "dahu", runs=2, seed=3).to_dict()["time_s"]
    assert found.seed == 3
