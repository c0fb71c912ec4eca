"""Predictions of HPL and the stencil through Python, one or several side by side, numbers and layers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lepaute.cli.prediction_text import summary
from lepaute.errors import InputError
from lepaute.simulate import (
    Difference,
    Hpl,
    Layers,
    Prediction,
    PredictionRequest,
    Stencil,
    difference,
    predict,
    predict_all,
)
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from
from lepaute.simulate.prediction.sweep import Sweep, log_time, scaling
from lepaute.simulate.prediction.wording import fastest, scaling_answer, span_of
from lepaute.stats.intervals import median_of_runs


def test_one_run_has_no_interval_and_ten_have_one_around_their_mean(dahu):
    hpl = Hpl(n=2000)
    assert not predict(hpl, dahu, runs=1).time_s.has_interval
    time_s = predict(hpl, dahu, runs=10).time_s
    assert time_s.low < time_s.mean < time_s.high


def test_each_layer_of_uncertainty_moves_the_result(dahu):
    hpl = Hpl(n=3000, p=1, q=4)  # one process row: where the pivots come from does not matter
    quiet = predict(hpl, dahu, runs=3, layers=Layers.only())
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


#: dgemm of `dahu` was fitted for k = 128, 256 and 512.
BLOCK_SIZES = (16, 32, 64, 128, 256, 512)
DAT = Path(__file__).parents[1].joinpath("data", "texts", "sweep.dat").read_text()


@pytest.fixture(scope="module")
def sweep() -> list[Prediction]:
    return predict_all([Hpl(n=6000, nb=nb, p=4, q=4) for nb in BLOCK_SIZES], "dahu", PredictionRequest(runs=6))


def test_block_sizes_that_dahu_was_not_measured_at_are_not_comparable(sweep: list[Prediction]) -> None:
    assert [one.comparable for one in sweep] == [False, False, False, True, True, True]
    assert all((one.trust.time_relative_sd or 0.0) > 0.05 for one in sweep[:3])
    told = sweep[0].to_dict()
    assert told["extrapolated_share"] == told["outside_ranges"]["share"] == told["trust"]["extrapolated_share"]
    assert told["comparable"] is told["trust"]["comparable"] is False
    assert f"not comparable with other predictions: {told['trust']['reasons'][0]}" in told["warnings"]


def test_validity_is_judged_by_the_predicted_time_and_not_by_a_share_of_it() -> None:
    # Waiting dilutes: 9 % of the time of all ranks was "outside" at 2 x 128, 19 % at 16 x 16, which was not comparable.
    flat, square = predict_all(
        [Hpl(n=12_000, nb=128, p=p, q=256 // p) for p in (2, 16)], "dahu", PredictionRequest(runs=4)
    )
    assert (flat.trust.time_relative_sd or 0.0) > 0.05 > (square.trust.time_relative_sd or 1.0)
    assert (square.extrapolated_share or 0.0) > 0.2  # of computing; next to nothing of the time hangs on it
    sweep = Sweep((flat, square))
    assert sweep.best is square
    assert sweep.ahead == sweep.rivals == ()
    alone = predict(flat.application, "dahu", runs=10, seed=77)  # other seeds, and nothing beside it
    assert alone.trust.time_relative_sd == flat.trust.time_relative_sd


def test_a_hundredth_of_the_computing_decides_the_time_where_all_wait_for_it() -> None:
    panels = predict(Hpl(n=6000, nb=192, p=2, q=64), "dahu", runs=2)
    assert (panels.extrapolated_share or 1.0) < 0.2
    assert not panels.comparable


def test_what_is_certainly_faster_is_named_first_though_it_is_not_comparable(sweep: list[Prediction]) -> None:
    runs = tuple(replace(run, time_s=5.0 * run.time_s, rate=0.2 * (run.rate or 0.0)) for run in sweep[3].run_list)
    slow = replace(sweep[3], run_list=runs, request=None)  # it is itself with other noise
    told = Sweep((slow, *sweep[:3]))
    assert told.best is slow
    assert told.ahead
    assert {id(one) for one in told.ahead} <= {id(one) for one in sweep[:3]}
    assert list(told.ahead) == sorted(told.ahead, key=log_time)
    assert fastest(told).endswith(f", by how much is not known: {told.ahead[0].trust.reasons[0]}")
    (problem,) = told.to_dict()["problems"]
    assert problem["ahead"] == [told.predictions.index(one) for one in told.ahead]
    may_be = Sweep((sweep[3], sweep[2]))
    assert may_be.rivals == (sweep[2],)
    assert "  rivals  1 not comparable, which may be as fast" in summary(may_be).splitlines()


def test_the_best_is_one_of_those_that_are_comparable(sweep: list[Prediction]) -> None:
    best = Sweep(tuple(sweep)).best
    assert best.comparable
    assert min(one.time_s.mean for one in sweep[:3]) < best.time_s.mean  # as it was: an extrapolated one named best
    assert fastest(Sweep(tuple(sweep))).startswith("Fastest of 3 comparable (of 6): N = 6000")
    assert fastest(Sweep(tuple(sweep[:4]))).startswith("Only one of 4 is comparable: N = 6000  NB = 128")
    lines = summary(Sweep(tuple(sweep))).splitlines()
    assert "  not comparable  3 of 6: too much depends on what is outside the fitted ranges" in lines
    assert [line.split()[5] for line in lines if line.startswith("    N = ")] == ["16", "32", "64"]
    assert "    to compare them: lepaute calibrate --nb 16,32,64,128,256,512" in lines
    none = Sweep(tuple(sweep[:3]))
    assert none.best is None
    assert "lepaute calibrate --nb 16,32,64" in summary(none)


def test_all_that_cannot_be_told_from_the_best_are_named() -> None:
    alike = [Hpl(n=6000, nb=128, p=4, q=4, bcast=bcast) for bcast in ("1ring", "1ring-modified", "2ring")]
    predictions = predict_all([*alike, Hpl(n=6000, nb=128, p=16, q=1)], "dahu", PredictionRequest(runs=3))
    bests = Sweep(tuple(predictions)).bests
    assert bests[0] is Sweep(tuple(predictions)).best
    assert set(map(id, bests)) == set(map(id, predictions[:3]))  # one of them was "best" alone
    assert fastest(Sweep(tuple(predictions))).endswith(", one of 3 that cannot be told apart")
    single = predict_all(alike[:2], "dahu", PredictionRequest(runs=1))
    assert fastest(Sweep(tuple(single))).endswith(", one of 2 that cannot be told apart; give --runs 10")


def test_block_sizes_that_nobody_measured_are_not_ranked_without_a_warning(sweep: list[Prediction]) -> None:
    # dgemm of a data sheet has the form of another core: what NB does to it is a guess that no interval holds
    platform = platform_from(DataSheet(2, 2, 4, dgemm_flops=45e9, link_Bps=12.5e9), load_platform("dahu"))
    applications = [Hpl(n=2000, nb=nb, p=2, q=2) for nb in (64, 128)]
    text = summary(Sweep(tuple(predict_all(applications, platform, PredictionRequest(runs=2)))))
    assert "warning: block sizes are compared by a model of dgemm without fitted ranges" in text
    line = next(line for line in text.splitlines() if line.startswith("  ranges"))
    assert line == "  ranges  100 % of computing has no fitted ranges in the platform"
    assert "block sizes are compared" not in summary(Sweep(tuple(sweep)))  # fitted: those outside are apart


def test_the_error_of_sampling_counts_where_predictions_are_told_apart(sweep: list[Prediction]) -> None:
    best, other = Sweep(tuple(sweep[3:])).best, sweep[5]
    assert best is not None
    assert difference(best, other).is_told_apart
    assert not difference(best, replace(other, sampling_sd=0.5)).is_told_apart


def test_the_command_says_not_comparable_in_text_json_and_picture(tmp_path, json_of, output_of):
    file, picture = tmp_path / "HPL.dat", tmp_path / "sweep.png"
    file.write_text(DAT.format(count=2, sizes="32 128"))
    command = ["predict", "hpl", "-p", "dahu", "--dat", str(file), "--runs", "2"]
    text = output_of(*command, "--plot", picture)
    assert text.startswith("Only one of 2 is comparable: N = 6000  NB = 128  ")
    assert any(line.startswith("  apart   1 of 2 not comparable: ") for line in text.splitlines())
    text = output_of(*command, "--details")
    (line,) = [line for line in text.splitlines() if line.startswith("WR") and line.endswith("not comparable")]
    assert line.split()[2] == "32"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [one["comparable"] for one in json_of(*command, "--json")["predictions"]] == [False, True]


def test_a_difference_from_an_extrapolated_block_size_is_not_cancelled() -> None:
    dahu, layers = load_platform("dahu"), Layers.only("extrapolation")
    one, two, far = (Hpl(n=6000, nb=nb, p=4, q=4) for nb in (128, 256, 32))
    reference, inside, outside = (predict(each, dahu, runs=20, layers=layers) for each in (one, two, far))
    near, wide = difference(reference, inside), difference(reference, outside)
    assert width(near) < 1.05  # a little of the panel is extrapolated in both
    assert width(wide) > 2.0


def width(found: Difference) -> float:
    """How many times the lower end of an interval the upper end is."""
    return found.high / found.low


def test_runs_that_are_made_one_after_the_other_tell_the_share_that_is_done(monkeypatch) -> None:
    monkeypatch.setattr("lepaute.simulate.native.NativeSimulator.parallel", False)
    shares: list[float] = []
    predict_all([Hpl(n=256, nb=64, p=1, q=2)], "dahu", PredictionRequest(runs=4), progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]
