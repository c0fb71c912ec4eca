"""Layers of uncertainty, a lag after the calibration, and noise of several modes: what each draws and adds."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from lepaute.errors import InputError
from lepaute.kit.quantities import lag_of
from lepaute.kit.text import significant
from lepaute.simulate import Hpl, Layers, Mapping, Stencil, predict
from lepaute.simulate.conditions import Transfer, layers_of, read_transfer
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.mapping import Slot
from lepaute.simulate.platform import Platform, load_platform, override
from lepaute.simulate.platform.io import parse_platform
from lepaute.simulate.platform.kernel_model import Noise
from lepaute.simulate.platform.schema import platform_text
from lepaute.simulate.platform.values import core_modes
from lepaute.simulate.prediction.parts import FREE_EVENTS, RUNS, are_free, part_names

HPL = Hpl(n=1200, p=2, q=2)
COMMAND = ("predict", "hpl", "-p", "dahu", "--n", "1200", "--grid", "2x2")
LAYER = "{source: docs/evidence, relative_sd: 0.03, studies: [one cluster, another]}"


def test_layers_are_switched_off_by_name() -> None:
    assert Layers.without([]) == Layers()
    assert Layers.without(["days", "noise"]) == Layers(days=False, noise=False)
    assert Layers.without(["days", "noise"]).off == ("days", "noise")
    assert Layers.without(["all"]).off == Layers.names()
    with pytest.raises(InputError, match="no layer 'day'; layers are coefficients, days, discrepancy, noise, network"):
        Layers.without(["day"])


def test_a_platform_has_the_layers_that_draw_something(dahu: Platform) -> None:
    content = dahu.model_dump() | {"days": None}
    for model in content["kernels"]:
        model["discrepancy_relative_sd"] = 0.0
        for piece in model["pieces"]:
            piece["discrepancy_relative_sd"] = None
    for links in (content["network"]["remote"], content["network"]["loopback"]):
        links |= {"discrepancy_relative_sd": None, "busy": None}
    plain = Platform.model_validate(content)
    assert "days" not in layers_of(plain, HPL)
    assert "days" in layers_of(dahu, HPL)
    no_effect = "{common_relative_sd: 0, cpu_relative_sd: 0, degrees_of_freedom: 4}"
    assert "days" not in layers_of(override(dahu, {"days": no_effect}), HPL)
    assert "days" in layers_of(override(dahu, {"days": no_effect.replace("{", "{run_relative_sd: 0.01, ")}), HPL)
    assert "days" in layers_of(override(dahu, {"days": "null", "population.draw": "days"}), HPL)
    assert "network" not in layers_of(plain, HPL)
    stated = override(plain, {"network.remote.discrepancy_relative_sd": "0.1"})
    assert {"network", "overheads"} <= set(layers_of(stated, HPL))  # unless the platform says otherwise, of both
    assert "overheads" not in layers_of(override(stated, {"network.remote.overhead_relative_sd": "0"}), HPL)
    of_calls = layers_of(override(plain, {"network.loopback.overhead_relative_sd": "0.1"}), HPL)
    assert "overheads" in of_calls
    assert "network" not in of_calls
    assert "discrepancy" not in layers_of(plain, HPL)
    assert "discrepancy" in layers_of(override(plain, {"kernels[0].pieces[0].discrepancy_relative_sd": "0.1"}), HPL)
    stencil = Stencil(cells=(8, 8, 8), grid=(1, 1, 1), cell_time_s=1e-9)
    assert layers_of(plain, stencil) == ()  # it calls no kernel of the platform
    assert layers_of(plain, Stencil(cells=(8, 8, 8), grid=(1, 1, 1), cell_time_s=1e-9, noise_relative_sd=0.1)) == (
        "noise",
    )


def test_parts_are_told_by_text_json_and_python(json_of, output_of):
    told = json_of(*COMMAND, "--parts", "--json")
    parts = predict(HPL, "dahu", parts=True).parts
    assert set(parts.relative_sd) == set(part_names(HPL, load_platform("dahu"), Layers()))
    assert "pivots" in parts.relative_sd
    half_width = 50 * (told["time_s"]["high"] - told["time_s"]["low"]) / told["time_s"]["mean"]
    assert told["interval_parts"] == parts.to_dict(half_width)
    assert f"; ± {significant(half_width, 2)} %, mostly " in output_of(*COMMAND, "--parts")
    (line,) = [line for line in output_of(*COMMAND, "--parts", "--details").splitlines() if line.startswith("  ± ")]
    assert line.startswith(f"  ±       {significant(half_width, 2)} %: ")
    assert "days " in line


def test_parts_are_told_unasked_where_they_cost_little(dahu, json_of, output_of):
    assert are_free(HPL, dahu, Layers(), 10, "auto")
    large = Hpl(n=40_000, p=16, q=16)
    assert large.on().events * RUNS * len(part_names(large, dahu, Layers())) > FREE_EVENTS
    assert not are_free(large, dahu, Layers(), 10, "auto")
    assert are_free(large, dahu, Layers(), 100, "auto")  # half the cost of the prediction itself
    assert "interval_parts" in json_of(*COMMAND, "--json")
    assert "interval_parts" not in json_of(*COMMAND, "--no-parts", "--json")
    assert "--parts tells what the" in output_of(*COMMAND, "--no-parts", "--details")


def test_a_layer_of_other_studies_multiplies_every_run_and_is_named(tmp_path, json_of, output_of):
    (tmp_path / "layer.yaml").write_text(LAYER)
    layer = Transfer("docs/evidence", 0.03, ("one cluster", "another"))
    assert read_transfer(tmp_path / "layer.yaml") == layer
    plain = json_of(*COMMAND, "--json")
    found = json_of(*COMMAND, "--transfer", tmp_path / "layer.yaml", "--json")
    factors = [layer.factor(1 + run, HPL) for run in range(len(plain["runs"]))]
    times = [run["time_s"] for run in plain["runs"]]
    assert [run["time_s"] for run in found["runs"]] == [t * f for t, f in zip(times, factors, strict=True)]
    assert found["parameters"]["transfer"] == layer.to_dict()
    assert found["interval_parts"]["relative_sd"]["transfer"] == 0.03
    assert "3.0 % learnt from other studies" in output_of(*COMMAND, "--transfer", tmp_path / "layer.yaml")
    detailed = output_of(*COMMAND, "--transfer", tmp_path / "layer.yaml", "--details")
    assert "  layer   3.0 % learnt from other studies: one cluster, another\n" in detailed


def test_the_error_of_a_configuration_cancels_between_platforms_and_not_between_configurations() -> None:
    other = replace(HPL, nb=2 * HPL.nb)
    layer = Transfer("other studies", 0.03, ("one cluster",), 0.02)
    assert layer.factor(1, HPL) == layer.factor(1, replace(HPL))
    logs = np.log([(layer.factor(seed, HPL), layer.factor(seed, other)) for seed in range(4000)])
    # what both have in common cancels, and 0.02 of each is left: the standard deviation of 4000 is known to 1.1 %
    assert np.std(logs[:, 1] - logs[:, 0]) == pytest.approx(2**0.5 * 0.02, rel=0.05)
    assert np.std(logs[:, 0]) == pytest.approx(layer.total_sd, rel=0.05)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is no transfer layer; it has the fields source, relative_sd, studies"),
        ("{source: a, relative_sd: 0.1}", "is no transfer layer"),
        (LAYER.replace("0.03", "-1"), "relative_sd is -1; it is a number from 0 to 1"),
        (LAYER.replace("studies", "configuration_relative_sd: 2, studies"), "configuration_relative_sd is 2; it is a"),
        (LAYER.replace("0.03", ".nan"), "relative_sd is nan"),
        (LAYER.replace("docs/evidence", "''"), "source is ''; say where"),
        (LAYER.replace("[one cluster, another]", "[]"), "studies is []"),
        ("{", "layer.yaml:2:1: is not YAML"),
    ],
)
def test_a_bad_layer_is_one_line(text, words, tmp_path, refusal_of):
    (tmp_path / "layer.yaml").write_text(text)
    assert words in refusal_of(*COMMAND, "--transfer", tmp_path / "layer.yaml")


SMALL_HPL = Hpl(n=600, p=2, q=2)
DRIFT = "{slope_per_s: 1.0e-6, span_s: 120, common_relative_sd: 0.005}"
SENTINEL = "{m: 1024, n: 1024, k: 128, duration_s: 0.005, relative_error: 0.001, ended: '2026-11-22T20:13:49+00:00'}"


@pytest.fixture(scope="module")
def drifting(dahu: Platform) -> Platform:
    return override(dahu, {"days.drift": DRIFT})


def test_the_effect_of_the_day_grows_with_the_lag(drifting: Platform) -> None:
    common = drifting.days.common_relative_sd
    # Of a random walk: 2 * slope * (lag + span / 3), less what the blocks hold already.
    expected = (common**2 + 2e-6 * (600 + 40) - 0.005**2) ** 0.5
    assert drifting.days.at_lag(600).common_relative_sd == pytest.approx(expected)
    assert drifting.days.at_lag(1e9).common_relative_sd <= 0.51
    days = Layers.only("days")
    later, soon = (predict(SMALL_HPL, drifting, runs=20, lag_s=lag_s, layers=days).time_s for lag_s in (600.0, None))
    assert later.half_width_percent > 1.3 * soon.half_width_percent  # type: ignore[operator]


def test_the_result_has_the_lag_and_the_digest_of_the_calibrated_platform(drifting: Platform) -> None:
    told = predict(SMALL_HPL, drifting, runs=2, lag_s=600).to_dict()
    assert told["parameters"]["lag_s"] == 600
    assert told["platform_sha256"] == drifting.sha256
    assert any("measured over 2 min: over a lag of 10 min it is extrapolated" in text for text in told["warnings"])
    assert "lag_s" not in predict(SMALL_HPL, drifting, runs=2).to_dict()["parameters"]


def test_a_drift_that_is_left_out_is_told_where_it_matters_and_a_lag_that_changes_nothing(
    drifting: Platform, dahu: Platform
) -> None:
    assert any("--lag 1h" in text for text in predict(SMALL_HPL, drifting, runs=2).warnings)
    little = override(drifting, {"days.drift.slope_per_s": "1.0e-9"})
    assert not any("drift" in text for text in predict(SMALL_HPL, little, runs=2).warnings)
    assert not any("drift" in text for text in predict(SMALL_HPL, dahu, runs=2).warnings)
    later = predict(SMALL_HPL, dahu, runs=2, lag_s=600)
    assert later.time_s == predict(SMALL_HPL, dahu, runs=2).time_s
    assert any("does not say how the machine drifts" in text for text in later.warnings)


def test_drift_and_sentinel_survive_a_file_and_a_bounded_drift_stops_growing(
    dahu: Platform, drifting: Platform
) -> None:
    whole = override(dahu, {"days.drift": DRIFT, "sentinel": SENTINEL})
    assert parse_platform(platform_text(whole)) == whole
    assert "drift" not in platform_text(dahu)
    assert whole.sentinel.gflops == pytest.approx(53.7, abs=0.1)
    bounded = override(drifting, {"days.drift.range_s": "10"})
    assert bounded.days.at_lag(600) == pytest.approx(bounded.days.at_lag(6000))
    assert bounded.days.at_lag(600).common_relative_sd < drifting.days.at_lag(600).common_relative_sd  # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "lag_s"), [("90", 90), ("90s", 90), ("1.5min", 90), ("2h", 7200), ("3d", 259200)])
def test_a_lag_is_a_time(text: str, lag_s: float) -> None:
    assert lag_of(text) == lag_s


NOISY_HPL = Hpl(n=2000, nb=128, p=2, q=2)
ACROSS = Mapping(slots=tuple(Slot(rank, 0) for rank in range(4)), source="the test")
MESSAGE_MODES = "{modes: [{weight: 0.7, mean: 0, sd: 0.05}, {weight: 0.3, mean: 1.1, sd: 0.1}]}"


def with_modes(modes: str = MESSAGE_MODES) -> Platform:
    dahu = load_platform("dahu")
    return override(
        dahu, {f"network.remote.segments[{i}].noise": modes for i, _ in enumerate(dahu.network.remote.segments)}
    )


def test_modes_are_drawn_the_same_for_a_seed_and_survive_a_file_and_the_text_for_the_emulation(tmp_path):
    runs = [run.time_s for run in predict(NOISY_HPL, with_modes(), runs=3, mapping=ACROSS).run_list]
    assert runs == [run.time_s for run in predict(NOISY_HPL, with_modes(), runs=3, mapping=ACROSS).run_list]
    assert runs != [run.time_s for run in predict(NOISY_HPL, load_platform("dahu"), runs=3, mapping=ACROSS).run_list]
    with_modes().to_yaml(tmp_path / "noisy.yaml")
    again = load_platform(tmp_path / "noisy.yaml")
    assert again.sha256 == with_modes().sha256
    assert machine_of(again).text() == machine_of(with_modes()).text()
    assert machine_of(again).text() != machine_of(load_platform("dahu")).text()


#: Two modes, four deviations apart; mean 0 and variance 1.
MODES = (
    {"weight": 0.8, "mean": -0.4, "sd": 0.4},
    {"weight": 0.2, "mean": 1.6, "sd": (0.5 - 0.8 * 0.4**2 + 0.0) ** 0.5},
)


def standardised(modes: tuple[dict[str, float], ...]) -> list[dict[str, float]]:
    mean = sum(mode["weight"] * mode["mean"] for mode in modes)
    variance = sum(mode["weight"] * (mode["mean"] ** 2 + mode["sd"] ** 2) for mode in modes) - mean**2
    return [
        {"weight": mode["weight"], "mean": (mode["mean"] - mean) / variance**0.5, "sd": mode["sd"] / variance**0.5}
        for mode in modes
    ]


def platform(noise: dict[str, object]) -> Platform:
    segment = {"above_bytes": 0, "protocol": "eager", "latency_s": 1e-9, "bandwidth_Bps": 1e15}
    return Platform.model_validate(
        {
            "name": "one",
            "nodes": {"count": 1, "cores": 1, "cpus": 1},
            "kernels": [{"kernel": "pdfact_glue", "pieces": [{"mean": {"1": 1.0}, "noise": noise}]}],
            "network": {
                "node_link": {"bandwidth_Bps": 1e15},
                "loopback": {"bandwidth_Bps": 1e15},
                "remote": {"segments": [segment]},
            },
        }
    )


ONE = {"weight": 1.0, "mean": 0.0, "sd": 1.0}


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ({"kind": "mixture", "modes": [ONE | {"sd": 2.0}]}, "variance"),
        ({"kind": "mixture", "modes": [ONE | {"weight": 0.5}]}, "add up to"),
        ({"kind": "mixture"}, "no modes"),
        ({"kind": "normal", "modes": [ONE]}, "there are modes"),
    ],
)
def test_modes_are_standardised_and_of_mixtures_alone(noise: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Noise.model_validate({"sd": {"1": 1.0}, **noise})


def test_cumulative_weights_go_to_the_engine() -> None:
    noise = Noise.model_validate({"kind": "mixture", "sd": {"1": 1.0}, "modes": standardised(MODES)})
    assert [row[0] for row in core_modes(noise.modes)] == pytest.approx([0.8, 1.0])
    assert core_modes(None) == []


def test_a_prediction_draws_the_modes_in_their_shares_and_repeats_bit_for_bit() -> None:
    sd = 0.05
    modes = standardised(MODES)
    there = platform({"kind": "mixture", "sd": {"1": sd}, "modes": modes})
    hpl = Hpl(n=1, nb=1, p=1, q=1, equil=False)  # one panel, whose factorisation alone costs: one draw a run
    only_noise = Layers.only("noise")
    first = predict(hpl, there, runs=400, seed=3, layers=only_noise)
    again = predict(hpl, there, runs=400, seed=3, layers=only_noise)
    times = np.array([run.time_s for run in first.run_list])
    assert [run.time_s for run in again.run_list] == times.tolist()
    low, high = (1.0 + sd * mode["mean"] for mode in modes)
    in_high_mode = times > (low + high) / 2
    # 400 draws with a share of 0.2: five standard errors
    assert abs(in_high_mode.mean() - 0.2) < 5 * (0.2 * 0.8 / 400) ** 0.5
    assert abs(times.mean() - 1.0) < 5 * sd / 400**0.5
    assert abs(times[~in_high_mode].mean() - low) < 0.2 * sd
