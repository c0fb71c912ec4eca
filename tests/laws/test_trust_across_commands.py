"""One statement of trust: predict, sweep, --against, study whatif and study tune agree on what they say of a run."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lepaute.simulate import Hpl, PredictionRequest, predict_all
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from
from lepaute.simulate.platform.io import dump_platform
from lepaute.simulate.prediction.sweep import Sweep

SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
N, RUNS = 3000, 5
#: Configurations: on Dahu one of a block size far below the calibrated ones, of narrow panels, and usual ones.
CASES: dict[str, list[dict[str, Any]]] = {
    "dahu": [
        {"nb": 32, "grid": "2x4"}, {"nb": 192, "grid": "1x8"}, {"nb": 192, "grid": "2x4"}, {"nb": 256, "grid": "2x4"},
    ],
    "data sheet": [{"nb": 64, "grid": "2x4"}, {"nb": 128, "grid": "2x4"}, {"nb": 128, "grid": "8x1"}],
    "calibrated": [{"nb": 64, "grid": "2x2"}, {"nb": 128, "grid": "2x2"}, {"nb": 128, "grid": "1x4"}],
}  # fmt: skip


@pytest.fixture
def platform(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    if request.param == "dahu":
        return "dahu"
    if request.param == "calibrated":
        return str(SMALL)
    sheet = DataSheet(1, 2, 4, dgemm_flops=45e9, link_Bps=12.5e9)
    dump_platform(platform_from(sheet, load_platform("dahu")), "sheet.yaml")
    return "sheet.yaml"


def words_of(platform: str, case: dict[str, Any]) -> list[str]:
    words = [word for name, value in case.items() for word in (f"--{name}", str(value))]
    return ["predict", "hpl", "-p", platform, "--n", str(N), *words, "--runs", str(RUNS), "--json"]


def study(question: str, platform: str, cases: list[dict[str, Any]], **more: Any) -> str:
    """The cases as scenarios; the first is the base."""
    fields = [{f"application.{name}": value for name, value in case.items()} for case in cases]
    content = {
        "question": question,
        "base": {"application": {"name": "hpl", "n": N, **cases[0]}, "platform": platform},
        "scenarios": {f"case {at}": each for at, each in enumerate(fields)},
        "runs": RUNS,
        **more,
    }
    Path(f"{question}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return f"{question}.yaml"


def without_counts(caveats: list[str]) -> set[str]:
    """What the caveats are about: their beginnings, without figures and names of kernels."""
    heads = [re.sub(r"of \S+ time", "of its time", caveat.partition(":")[0]) for caveat in caveats]
    return {" ".join(word for word in head.split() if word.isalpha()) for head in heads}


@pytest.mark.slow
@pytest.mark.parametrize("platform", CASES, indirect=True)
def test_all_commands_say_the_same_of_a_run(platform, request, json_of):
    cases = CASES[request.node.callspec.params["platform"]]
    alone = [json_of(*words_of(platform, case)) for case in cases]
    whatif = json_of("study", "whatif", study("whatif", platform, cases), "--json")
    tuned = json_of("study", "tune", study("tune", platform, cases, budget={"simulations": 12 * len(cases)}), "--json")

    # comparable, and why not
    trusts = [one["trust"] for one in alone]
    assert [one["comparable"] for one in alone] == [trust["comparable"] for trust in trusts]
    in_whatif = [whatif["comparisons"][0]["reference"], *(each["other"] for each in whatif["comparisons"])]
    for side, trust in zip(in_whatif, trusts, strict=True):
        assert side["trust"] == trust
    of_tune = {one["point"]["scenario"]: one for one in tuned["standings"]}
    judged = {f"case {at}": trust for at, trust in enumerate(trusts)}
    for name, one in of_tune.items():
        if one["trust"]["extrapolation_relative_sd"] is not None:  # those that come last are not judged
            assert one["trust"] == judged[name]
    assert [each["comparable"] for each in whatif["comparisons"]] == [
        trusts[0]["comparable"] and trust["comparable"] for trust in trusts[1:]
    ]

    # the best: never what is not comparable where something is, and the same for a sweep and for tuning
    best = of_tune[tuned["best"]["scenario"]]
    assert best["comparable"] or not any(trust["comparable"] for trust in trusts)
    grids = [[int(part) for part in case["grid"].split("x")] for case in cases]
    runs_of = [Hpl(n=N, nb=case["nb"], p=p, q=q) for case, (p, q) in zip(cases, grids, strict=True)]
    sweep = Sweep(tuple(predict_all(runs_of, platform, PredictionRequest(runs=RUNS))))
    assert [prediction.trust.to_dict() for prediction in sweep.predictions] == trusts
    assert [prediction.time_s.to_dict() for prediction in sweep.predictions] == [one["time_s"] for one in alone]
    near = {one["point"]["scenario"] for one in tuned["standings"] if one["near_best"]}
    bests = [f"case {at}" for at, one in enumerate(sweep.predictions) if any(one is each for each in sweep.bests)]
    assert tuned["best"]["scenario"] in bests
    assert f"case {sweep.predictions.index(sweep.bests[0])}" in near

    # caveats: what predict warns of, each study does
    warned = {sentence for one in alone for sentence in without_counts(one["warnings"])}
    warned = {sentence for sentence in warned if not sentence.startswith("not comparable")}
    for answer in (whatif, tuned):
        assert warned <= without_counts(answer["caveats"])
        assert any(each.startswith("not comparable") for each in answer["caveats"]) == any(
            not one["comparable"] for one in (in_whatif if answer is whatif else of_tune.values())
        )


@pytest.mark.slow
@pytest.mark.parametrize("platform", CASES, indirect=True)
def test_sensitivity_and_capacity_have_the_caveats_of_the_runs_that_they_rest_on(platform, request, json_of):
    first, last = CASES[request.node.callspec.params["platform"]][:3:2]
    sizes, grid = [first["nb"], last["nb"]], first["grid"]
    alone = [json_of(*words_of(platform, {"nb": nb, "grid": grid})) for nb in sizes]
    warned = [without_counts(one["warnings"]) for one in alone]
    factors = {"nb": {"path": "application.nb", "levels": sizes}}
    base = {"application": {"name": "hpl", "n": N, "grid": grid, "nb": sizes[0]}, "platform": platform}
    effects = {"question": "sensitivity", "base": base, "factors": factors, "runs": RUNS}
    p, q = map(int, grid.split("x"))
    nodes = load_platform(platform).nodes.count if platform == str(SMALL) else 1
    parts = {"node": {"kind": "node", "price": 9000, "watts": 400, "ranks": p * q // nodes}}
    machines = {
        "question": "capacity", "base": base, "capacity": {"catalogue": "parts.yaml", "nodes": [nodes]}, "runs": RUNS,
    }  # fmt: skip
    Path("parts.yaml").write_text(yaml.safe_dump({"parts": parts}))
    for content, expected in ((effects, warned[0] | warned[1]), (machines, warned[0])):
        question = str(content["question"])
        Path(f"{question}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        answer = json_of("study", question, f"{question}.yaml", "--json")
        known = {sentence for sentence in expected if not sentence.startswith("not comparable")}
        assert known <= without_counts(answer["caveats"]), question
        assert any(each.startswith("not comparable") for each in answer["caveats"]) == any(
            not one["comparable"] for one in (alone if content is effects else alone[:1])
        ), question
