"""Predictions of HPL and the stencil through Python, several grids in one, numbers and layers."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.simulate import Hpl, Layers, PredictionRequest, Stencil, difference, predict, predict_all
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.prediction.sweep import scaling
from lepaute.simulate.prediction.wording import scaling_answer, span_of
from lepaute.stats.intervals import median_of_runs

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


GRIDS = ((1, 1), (1, 2), (2, 2), (4, 1))
WORDS = ("predict", "hpl", "-p", "dahu", "--n", "3000", "--runs", "3", "--grid")


@pytest.fixture(scope="module")
def predictions():
    return predict_all([Hpl(n=3000, p=p, q=q) for p, q in GRIDS], "dahu", PredictionRequest(runs=3))


def test_speed_up_and_efficiency_are_relative_to_the_fewest_ranks_run_by_run(predictions):
    points = scaling(predictions[::-1])
    assert [point.ranks for point in points] == [1, 2, 4, 4]
    first, two = points[:2]
    assert (first.speed_up.mean, first.speed_up.low, first.efficiency.mean) == (1.0, 1.0, 1.0)
    ratios = [a.time_s / b.time_s for a, b in zip(predictions[0].run_list, predictions[1].run_list, strict=True)]
    assert two.speed_up.mean == pytest.approx(median_of_runs(ratios))
    assert 1.0 / two.speed_up.mean == pytest.approx(difference(predictions[0], predictions[1]).ratio)
    assert two.efficiency.mean == pytest.approx(two.speed_up.mean / 2)
    # What both grids share cancels: the ratio is known better than either time.
    assert two.speed_up.half_width_percent < predictions[1].time_s.half_width_percent


def test_the_command_prints_a_table_with_a_line_for_each_grid(output_of):
    lines = output_of(*WORDS, "1x1,1x2,2x2").splitlines()
    assert lines[0].startswith("HPL on 4 ranks takes ")
    assert lines[0].endswith(" as fast as on 1 rank")
    at = next(at for at, line in enumerate(lines) if line.split()[:4] == ["ranks", "run", "time", "s"])
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["1", "2", "4"]  # a row is a line
    assert lines[at + 1].endswith("100 %")
    assert output_of(*WORDS, "1x1,1x1").startswith("HPL takes ")


def test_a_speed_up_between_times_that_are_not_comparable_says_so(output_of):
    assert (
        output_of(*WORDS, "1x1,1x2", "--nb", "3")
        .splitlines()[0]
        .endswith(" as fast as on 1 rank, which is not comparable")
    )


def test_grids_of_equal_ranks_are_a_choice_and_no_scaling(json_of, output_of):
    assert output_of(*WORDS, "2x2,4x1").startswith("Fastest")
    assert "scaling" not in json_of(*WORDS, "2x2,4x1", "--json")


def test_of_several_grids_with_the_most_ranks_the_fastest_is_the_answer(predictions):
    last = min(predictions[2:], key=lambda each: each.time_s.mean)
    for order in ([0, 2, 3], [0, 3, 2]):
        assert span_of(last.time_s) in scaling_answer(scaling([predictions[at] for at in order]))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("1x1,1x2", "--against", "nb=256"), "--against compares one combination with others, and there are 2"),
        (("1x1,1x2", "--trace", "t.parquet"), "a trace is of one combination, and there are 2"),
    ],
)
def test_what_takes_one_grid_refuses_several(words, complaint, refusal_of):
    assert complaint in refusal_of(*WORDS, *words)


def test_a_stencil_takes_several_grids_too(json_of):
    words = ["predict", "stencil", "-p", "dahu", "--cells", "64x64x64", "--cell-time", "1e-8", "--runs", "12", "--json"]
    speed_up = json_of(*words, "--grid", "1x1x1,2x1x1")["scaling"][1]["speed_up"]
    low, high = speed_up["low"], speed_up["high"]
    assert 1.0 < low <= high < 2.0
    assert math.isfinite(high)
