"""Questions of study files: tune and sensitivity of small HPLs, and machines of a catalogue within a budget."""

from pathlib import Path

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.study.capacity import Catalogue, answered, load_catalogue, machines, with_machines
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Evaluate, Outcome, Point, Trial, trials_of
from lepaute.study.schema import Factor, study_of
from lepaute.study.sensitivity import Effects
from lepaute.study.sensitivity_question import quantile_of, rows_of, sensitivity
from lepaute.study.sensitivity_sobol import SobolIndices
from lepaute.study.tune_question import tune

BASE = {"application": {"name": "hpl", "n": 2000, "nb": 64, "grid": "2x2"}, "platform": "dahu"}
CATALOGUE = """
parts:
  xeon:  {kind: node, price: 9000, watts: 400, ranks: 4}
  old:   {kind: node, price: 4000, watts: 500, ranks: 4, set: {platform: dahu-2019-04}}
  slim:  {kind: network, price: 300, set: {platform.network.node_link.bandwidth_Bps: 3.1e9}}
  fat:   {kind: network, price: 1400, watts: 15}
  spine: {kind: switch, price: 20000, watts: 500, per: 32}
"""


def evaluate(trials: "list[Trial]") -> list[Outcome]:
    """Without the engine: nb 96 is the best, x and the bandwidth shorten."""
    found = []
    for trial in trials:
        point = trial.point
        time_s = 10.0 + abs(float(point.get("nb", 96)) - 96) / 10 + 5.0 * float(point.get("x", 1.0))  # type: ignore[arg-type]
        machine = np.random.default_rng(trial.seed).normal(0.0, 0.02)
        found.append(Outcome(trial, {"time_s": float(time_s * np.exp(machine))}))
    return found


def study(question: str, factors: "dict[str, object]", **more: object) -> "tuple[object, Configurations, Evaluate]":
    found = study_of({"question": question, "base": BASE, "factors": factors, **more})
    return found, Configurations(found), evaluate  # type: ignore[return-value]


def test_levels_are_halved_and_ranges_are_explored_within_the_budget() -> None:
    levels = {"nb": {"path": "application.nb", "levels": [64, 96, 128]}}
    found = tune(*study("tune", levels))  # type: ignore[arg-type]
    assert found.best == Point({"nb": 96})
    assert found.budget == 6
    ranges = {"nb": {"path": "application.nb", "range": [32, 256], "integer": True}}
    found = tune(*study("tune", ranges, budget={"simulations": 60}))  # type: ignore[arg-type]
    assert found.method == "exploring"
    assert found.simulations <= 60
    assert abs(float(found.best["nb"]) - 96) <= 16  # type: ignore[arg-type]


def test_levels_have_main_effects_and_ranges_have_indices() -> None:
    levels = {"nb": {"path": "application.nb", "levels": [64, 96]}, "x": {"path": "scale.cpu_speed", "levels": [1, 2]}}
    assert isinstance(sensitivity(*study("sensitivity", levels)), Effects)  # type: ignore[arg-type]
    ranges = {"nb": {"path": "application.nb", "range": [90, 100]}, "x": {"path": "scale.cpu_speed", "range": [1, 2]}}
    found = sensitivity(*study("sensitivity", ranges, budget={"simulations": 400}))  # type: ignore[arg-type]
    assert isinstance(found, SobolIndices)
    assert found.simulations == 64 * 6
    assert next(iter(found.total)) == "x"
    with pytest.raises(InputError, match="take 48 at least"):
        rows_of(study("sensitivity", ranges, budget={"simulations": 40})[0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="constraints do not go with ranges"):
        sensitivity(*study("sensitivity", ranges, constraints=["nb > 91"]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "middle"),
    [
        ({"levels": ["a", "b", "c"]}, "b"),
        ({"range": [1, 9], "integer": True}, 5),
        ({"range": [1, 100], "log": True}, 10.0),
        ({"distribution": {"kind": "normal", "mean": 3, "sd": 1}}, 3.0),
        ({"distribution": {"kind": "lognormal", "mean": 2, "sd": 2}}, 2 / 2**0.5),
        ({"distribution": {"kind": "log-uniform", "low": 1, "high": 4}}, 2.0),
    ],
)
def test_the_middle_of_a_factor_is_where_half_of_the_probability_is(given: "dict[str, object]", middle: object) -> None:
    found = quantile_of(Factor.model_validate({"path": "application.nb", **given}))(0.5)
    assert found == (pytest.approx(middle) if isinstance(middle, float) else middle)


def test_machines_are_what_the_budget_allows(tmp_path: Path) -> None:
    (tmp_path / "parts.yaml").write_text(CATALOGUE)
    catalogue = load_catalogue(tmp_path / "parts.yaml")
    found = machines(catalogue, [2, 8])
    assert len(found) == 2 * 2 * 2
    cheapest = found[0]
    assert cheapest.name == "2 x old, slim, spine"
    assert cheapest.price == 2 * 4000 + 2 * 300 + 20000
    assert cheapest.watts == 2 * 500 + 500
    assert cheapest.fields["application.grid"] == "2x4"
    assert cheapest.fields["platform"] == "dahu-2019-04"
    assert all(one.price <= 50_000 for one in machines(catalogue, [2, 8], price=50_000))
    assert all(one.watts <= 1400 for one in machines(catalogue, [2, 8], watts=1400))
    with pytest.raises(InputError, match="no machine is within the budget; the cheapest, 2 x old, slim, spine, costs"):
        machines(catalogue, [2, 8], price=100)


def test_the_front_of_machines_weighs_time_cost_and_energy(tmp_path: Path) -> None:
    (tmp_path / "parts.yaml").write_text(CATALOGUE)
    chosen = machines(load_catalogue(tmp_path / "parts.yaml"), [2, 4])
    asked = study_of({"question": "capacity", "base": BASE, "factors": {"nb": {"path": "application.nb",
                      "levels": [64, 128]}}})  # fmt: skip
    whole = with_machines(asked, chosen)
    points = Configurations(whole).points()
    assert len(points) == len(chosen) * 2

    def of_nodes(trials: "list[Trial]") -> list[Outcome]:
        nodes = {one.name: one.nodes for one in chosen}
        return [Outcome(t, {"time_s": 100.0 / nodes[str(t.point["scenario"])] + float(t.point["nb"]) / 100})  # type: ignore[arg-type]
                for t in trials]  # fmt: skip

    found = answered(of_nodes(trials_of(points, 2)), chosen)
    assert found.responses == ("time_s", "cost", "energy_j")
    assert {one.point["nb"] for one in found.members} == {64}
    names = {str(one.point["scenario"]) for one in found.likely}
    assert "2 x old, slim, spine" in names  # the cheapest
    assert "4 x xeon, slim, spine" in names  # the fastest for the least energy
    assert "4 x xeon, fat, spine" not in names  # as fast as with the slim network, at a higher price


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is no catalogue"),
        ("parts: {}", "parts"),
        ("parts: {a: {kind: node}}", "price"),
        ("parts: {a: {kind: node, price: -1}}", "price"),
        ("parts: {a: {kind: node, price: 1, set: {colour: red}}}", "a path begins with"),
    ],
)
def test_a_bad_catalogue_is_one_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "parts.yaml").write_text(text)
    with pytest.raises(InputError, match=words) as refused:
        load_catalogue(tmp_path / "parts.yaml")
    assert "\n" not in str(refused.value)
    assert "parts.yaml" in str(refused.value)


def test_parts_that_contradict_each_other_are_named() -> None:
    parts = {name: {"kind": name, "price": 1, "set": {"application.nb": nb}} for name, nb in (("node", 1), ("net", 2))}
    with pytest.raises(InputError, match=r"part net sets application\.nb to 2, and another part to 1"):
        machines(Catalogue.model_validate({"parts": parts}), [1])
    with pytest.raises(InputError, match="no part is of the kind node"):
        machines(Catalogue.model_validate({"parts": {"a": {"kind": "net", "price": 1}}}), [1])
