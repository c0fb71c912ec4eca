"""Layers of uncertainty: switched off by name, and what each adds to the half-width of an interval."""

from dataclasses import replace

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.kit.text import significant
from lepaute.simulate import Hpl, Layers, Stencil, predict
from lepaute.simulate.conditions import Transfer, layers_of, read_transfer
from lepaute.simulate.platform import Platform, load_platform, override
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
