"""Prediction of HPL by the native engine, through Python."""

import json
from pathlib import Path

import pytest

from lepaute.errors import InputError
from lepaute.simulate import Hpl, Layers, predict
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


def test_the_rate_is_hpl_s(dahu):
    run = predict(Hpl(n=5000), dahu, runs=1).run_list[0]
    assert run.rate_gflops == pytest.approx((2 / 3 * 5000**3 + 1.5 * 5000**2) / run.time_s / 1e9, rel=1e-12)


def test_kernels_that_the_platform_lacks_are_named(dahu):
    assert any("dlocswp" in warning for warning in predict(Hpl(n=1000), dahu, runs=1).warnings)


def test_call_noise_alone_is_told(dahu):
    def told(platform):
        return any("call noise only" in warning for warning in predict(Hpl(n=1000), platform, runs=1).warnings)

    small = load_platform(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
    assert told(override(small, {"days": "null"}))
    assert not told(dahu)
    assert not told(override(dahu, {"days": "null"}))  # its kernels have discrepancies


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n": 0}, "n is 0"),
        ({"n": 100, "nb": 0}, "nb is 0"),
        ({"n": 100, "bcast": "3ring"}, "bcast is '3ring'"),
        ({"n": 100, "ndiv": 1}, "ndiv is 1"),
    ],
)
def test_parameters_that_hpl_does_not_have_are_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        Hpl(**parameters)


def test_a_grid_larger_than_the_machine_is_refused(dahu):
    with pytest.raises(InputError, match="1056 ranks do not fit on platform dahu-2020-01"):
        predict(Hpl(n=1000, p=33, q=32), dahu)


def test_a_thread_count_without_models_names_those_there_are(dahu):
    with pytest.raises(InputError, match="no kernel models for 4 threads a rank; it has them for 1"):
        predict(Hpl(n=1000, threads_per_rank=4), dahu)


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


def test_a_link_that_limits_nothing_is_told_where_messages_cross_it(dahu):
    slow = override(dahu, {"network.node_link.bandwidth_Bps": "1e9"})

    def told(platform, p):
        prediction = predict(Hpl(n=1000, nb=128, p=p, q=2), platform, runs=1)
        return any("the link limits nothing" in warning for warning in prediction.warnings)

    assert told(slow, 32)
    assert not told(slow, 2)  # within one node
    assert not told(dahu, 32)


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
