"""A study states of a point, and of the difference of two, what predictions of the same conditions and seeds state."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from long_tests import long_but
from support_pages import text_of

from lepaute.cli.main import main
from lepaute.simulate import Prediction, difference, predict
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from
from lepaute.simulate.prediction.sweep import Sweep, effects, log_time, scaling
from lepaute.simulate.prediction.wording import span_of
from lepaute.study.components import build_application
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import by_point, trials_of
from lepaute.study.schema import Study
from lepaute.study.session import Session
from lepaute.study.trust import Pricing

SMALL = str(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
RUNS, SEED = 12, 7
HPL = {"name": "hpl", "n": 1000, "nb": 64, "grid": "2x2"}
STENCIL = {"name": "stencil", "cells": "64x64x64", "grid": "2x2x1", "cell_time_s": 1e-9}


def study(question: str, application: dict[str, Any], platform: str, runs: int = RUNS, **more: Any) -> dict[str, Any]:
    base = {"application": application, "platform": platform, **more.pop("base", {})}
    return {"question": question, "base": base, "runs": runs, "seed": SEED, **more}


def test_a_point_that_is_asked_again_is_priced_once() -> None:
    scenarios = {"base": {}, "slow": {"scale.bandwidth": 0.5}}
    configurations = Configurations(Study.model_validate(study("whatif", HPL, SMALL, scenarios=scenarios)))
    with Session(configurations) as session:
        price = Pricing(configurations, session)
        first = price(by_point(session(trials_of(configurations.points(), 8, SEED))))
        done = session.simulated, len(session.results._known)
        again = price(by_point(session(trials_of(configurations.points(), RUNS, SEED))))
        assert (session.simulated, len(session.results._known)) == (done[0] + 8, done[1] + 8)
    assert {point: each.first(8) for point, each in again.items()} == first
    assert len(first) == 2


class Asked:
    """A small machine that is not shipped, fitted or of a data sheet, with random errors of each kind, in p.yaml; an
    application; a parameter or a knob, and the other value that is asked about; and the ways to ask."""

    def __init__(self, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys, self.runs = capsys, (1, 5, 9, 12, 41)[seed % 5]
        draw = random.Random(seed)
        settings: dict[str, Any] = {
            "days.common_relative_sd": draw.choice([0.0, 0.02]),
            "days.run_relative_sd": draw.choice([0.0, 0.01, 0.03]),
            "days.cpu_relative_sd": draw.choice([0.0, 0.02]),
            "kernels[0].discrepancy_relative_sd": draw.choice([0.0, 0.03]),
        }
        made = load_platform(SMALL)
        if draw.random() < 0.4:
            sheet = DataSheet(2, 1, 4, link_Bps=12.5e9, dgemm_flops=draw.uniform(20e9, 60e9))
            made, settings = platform_from(sheet, load_platform("dahu")), {}
        self.platform = override(made, settings)
        self.platform.to_yaml("p.yaml")
        self.application, changes = STENCIL, [("grid", "1x2x2"), ("scale.latency", 3)]
        if draw.random() < 0.7:
            self.application = HPL
            changes = [("nb", 32), ("depth", 0), ("bcast", "long"), ("grid", "1x4"), ("scale.dgemm", 0.98)]
            changes += [("scale.bandwidth", 0.5), ("noise.dgemm", 0.05), ("network.node_link.bandwidth_Bps", 5e9)]
        self.field, self.value = draw.choice(changes)
        self.fidelity: Any = draw.choice(["full", "sampled"]) if self.application is HPL else "full"
        is_knob = self.field.startswith(("scale.", "noise."))
        self.path = self.field if is_knob else f"{'platform' if '.' in self.field else 'application'}.{self.field}"
        self.changed = {self.field: self.value}

    def of(self, changed: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Fields of the application, and settings of the platform."""
        settings = {field: value for field, value in changed.items() if "." in field}
        fields = {field: value for field, value in changed.items() if "." not in field}
        return {**self.application, **fields}, settings

    def printed(self, *argv: str) -> str:
        self._capsys.readouterr()
        assert main(list(argv)) == 0
        return " ".join(self._capsys.readouterr().out.split())

    def shown(self, question: str) -> tuple[str, str]:
        """What was answered already, on the terminal and on the page."""
        page = text_of(Path(f"{question}.results/report.html").read_text())
        return self.printed("study", question, f"{question}.yaml", "--resume"), " ".join(page.split())

    def words(self, changed: dict[str, Any]) -> list[str]:
        """Of `predict`."""
        application, settings = self.of(changed)
        names = {name: name.replace("_s", "").replace("_", "-") for name in application}
        options = [word for name, each in application.items() for word in (f"--{names[name]}", str(each))]
        words = ["predict", *options[1:], *(f"--set={field}={value}" for field, value in settings.items())]
        return [*words, "--platform=p.yaml", f"--runs={self.runs}", f"--seed={SEED}", f"--fidelity={self.fidelity}"]

    def predicted(self, changed: dict[str, Any], *more: str) -> Any:
        return json.loads(self.printed(*self.words(changed), *more, "--json"))

    def in_python(self, changed: dict[str, Any], runs: int | None = None) -> Prediction:
        application, settings = self.of(changed)
        further: dict[str, Any] = {"settings": settings or None, "seed": SEED, "fidelity": self.fidelity}
        return predict(build_application(application, None), "p.yaml", runs=runs or self.runs, **further)

    def answer(self, question: str, **more: Any) -> Any:
        responses = ["time_s", "rate_gflops"] if self.application is HPL and question == "whatif" else ["time_s"]
        base = {"fidelity": self.fidelity}
        content = study(question, self.application, "p.yaml", self.runs, base=base, responses=responses, **more)
        Path(f"{question}.yaml").write_text(yaml.safe_dump(content))
        return json.loads(self.printed("study", question, f"{question}.yaml", "--json"))


@pytest.fixture
def asked(request: Any, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> Asked:
    monkeypatch.chdir(tmp_path)
    return Asked(request.param, capsys)


GENERATED = pytest.mark.parametrize("asked", long_but(range(24), 0, 1, 2), indirect=True)


@pytest.mark.slow
@GENERATED
def test_alone_as_alternative_as_scenario_and_from_python_a_run_has_one_time_and_one_ratio(asked: Asked) -> None:
    base, changed = asked.predicted({}), asked.predicted(asked.changed)
    question = f"--against={asked.field}={asked.value}"
    (against,) = asked.predicted({}, question)["differences"]
    (compared,) = asked.answer("whatif", scenarios={"base": {}, "other": {asked.path: asked.value}})["comparisons"]
    one, other = asked.in_python({}), asked.in_python(asked.changed)
    ratio = difference(one, other)
    assert ratio.shared
    assert compared["reference"]["responses"]["time_s"] == base["time_s"] == one.time_s.to_dict()
    assert compared["other"]["responses"]["time_s"] == changed["time_s"] == against["time_s"] == other.time_s.to_dict()
    if other.rate is not None and asked.application is HPL:
        assert compared["other"]["responses"]["rate_gflops"] == changed["rate_gflops"] == other.rate.to_dict()
    expected = ratio.to_dict()
    assert set(against) == {"field", "value", "against", "comparable", "trust", "caveats", "time_s"} | set(expected)
    for stated in (against, compared["differences"]["time_s"]):
        assert {name: stated[name] for name in expected} == expected
    assert compared["comparable"] == against["comparable"] == (base["comparable"] and changed["comparable"])
    for side, alone in ((compared["reference"], base), (compared["other"], changed)):
        assert side["trust"] == alone["trust"]
    # In words, on the terminal and on the page; the mean with the digits of its interval.
    text = asked.printed(*asked.words({}), question)
    assert f": {ratio.text}" in text
    stated = re.findall(r"takes ([0-9.]+) s", text)[0]
    for shown in asked.shown("whatif"):
        assert ratio.in_words() in shown
        assert re.search(rf"{stated} ?the base", shown)


@pytest.mark.slow
@GENERATED
def test_sweeps_parameters_scaling_and_tuning_compare_as_a_pair_is_compared(asked: Asked) -> None:
    one, other = asked.in_python({}), asked.in_python(asked.changed)
    if asked.path.startswith("application.") and one.comparable and other.comparable:
        for parameter in effects([one, other]):
            is_one = parameter.reference == one.application.problem.choices[parameter.name]
            found = difference(*((one, other) if is_one else (other, one)))
            assert parameter.others[0].change == replace(found, narrower="")
        best, second = sorted((one, other), key=log_time)
        assert (second in Sweep((one, other)).bests) is not difference(best, second).is_told_apart
        first, last = scaling([other, one])
        assert last.speed_up.mean == 1.0 / difference(first.prediction, last.prediction).ratio
    if asked.path.startswith("platform."):
        return
    level = {"bcast": "1ring", "noise.dgemm": 0}.get(asked.field, asked.of({})[0].get(asked.field, 1))
    factors = {"it": {"path": asked.path, "levels": [level, asked.value]}}
    if asked.runs > 1:
        (term,) = asked.answer("sensitivity", factors=factors)["terms"]
        first, last = (asked.in_python({asked.field: each}).runs["time_s"] for each in (level, asked.value))
        stated = np.log([each["effect"] for each in term["levels"]])
        assert stated[1] - stated[0] == pytest.approx(np.mean(np.log(last) - np.log(first)), abs=1e-9)
    best, *others = asked.answer("tune", factors=factors, budget={"simulations": 60})["standings"]
    runs = {standing["runs"] for standing in (best, *others)}
    if len(runs) > 1 or not others:
        return
    predictions = [asked.in_python({asked.field: each["point"]["it"]}, *runs) for each in (best, *others)]
    assert best["spread"] == predictions[0].time_s.to_dict()
    stated = f", time {span_of(predictions[0].time_s).split(' (one')[0]}"
    assert all(stated in shown for shown in asked.shown("tune"))
    found, ratio = difference(*predictions), others[0]["ratio"]
    assert ratio["mean"] == pytest.approx(found.ratio, rel=1e-12)
    if min(runs) >= 4:  # of fewer, their spread is moderated by that of others
        assert (ratio["low"], ratio["high"]) == pytest.approx((found.low, found.high), rel=1e-9)


@pytest.mark.slow
@GENERATED
def test_a_machine_of_a_catalogue_and_a_ready_study_state_the_times_of_predictions(asked: Asked) -> None:
    base = asked.predicted({})
    if "." in asked.field:
        parts: dict[str, Any] = {"node": {"kind": "node", "price": 100, "watts": 10}}
        parts["as it is"] = {"kind": "change", "price": 1}
        parts["other"] = {"kind": "change", "price": 2, "set": {asked.path: asked.value}}
        Path("parts.yaml").write_text(yaml.safe_dump({"parts": parts}))
        section = {"catalogue": "parts.yaml", "nodes": [asked.platform.nodes.count]}
        points = asked.answer("capacity", capacity=section)["points"]
        for name, alone in (("as it is", base), ("other", asked.predicted(asked.changed))):
            (machine,) = (point for point in points if point["point"]["scenario"].endswith(name))
            assert machine["responses"]["time_s"] == alone["time_s"]
            assert machine["comparable"] == alone["comparable"]
    if asked.application is not HPL or asked.fidelity != "full":
        return
    words = f"--n=1000 --nb=64 --grid=2x2 --platform=p.yaml --runs={asked.runs} --seed={SEED} --json".split()
    answer = json.loads(asked.printed("study", "ready", "components", *words))
    compared = next(each for each in answer["comparisons"] if each["other"]["level"] == "bandwidth / 10")
    (against,) = asked.predicted({}, "--against=scale.bandwidth=0.1")["differences"]
    assert compared["reference"]["responses"]["time_s"] == base["time_s"]
    assert compared["other"]["responses"]["time_s"] == against["time_s"]
    # Both have the same noise there: the effect of the change alone, about the same ratio.
    assert compared["differences"]["time_s"]["ratio"]["mean"] == against["ratio"]["mean"]
    assert not compared["differences"]["time_s"]["run_noise"]
