"""A study states of a point, and of the difference of two, what predictions of the same conditions and seeds state."""

from pathlib import Path
from typing import Any

import pytest

from lepaute.simulate import Hpl, Prediction, Stencil, difference, predict, predict_all
from lepaute.study import run as run_study
from lepaute.study.capacity import Front
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import by_point, trials_of
from lepaute.study.pricing import Pricing
from lepaute.study.schema import Study
from lepaute.study.session import Session
from lepaute.study.tune import crossed
from lepaute.study.whatif import WhatIfAnswer

SMALL = str(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
RUNS, SEED = 12, 7
HPL = {"name": "hpl", "n": 1000, "nb": 64, "grid": "2x2"}
STENCIL = {"name": "stencil", "cells": "64x64x64", "grid": "2x2x1", "cell_time_s": 1e-9}
CATALOGUE = """\
parts:
  usual: {kind: node, price: 9000, watts: 400, ranks: 4}
  slow: {kind: network, price: 300, set: {scale.bandwidth: 0.25}}
  fast: {kind: network, price: 1400, watts: 15}
"""


def study(question: str, application: dict[str, Any], platform: str, runs: int = RUNS, **more: Any) -> dict[str, Any]:
    base = {"application": application, "platform": platform, **more.pop("base", {})}
    return {"question": question, "base": base, "runs": runs, "seed": SEED, **more}


def whatif(content: dict[str, Any]) -> WhatIfAnswer:
    answer = run_study(content).answer
    assert isinstance(answer, WhatIfAnswer)
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("runs", [5, RUNS, 40])
@pytest.mark.parametrize(("platform", "fidelity"), [("dahu", "full"), (SMALL, "full"), ("dahu", "sampled")])
def test_a_point_and_a_difference_are_those_of_predictions(platform: str, fidelity: Any, runs: int) -> None:
    scenarios = {"base": {}, "no look-ahead": {"application.depth": 0}, "slow": {"scale.bandwidth": 0.5}}
    answer = whatif(
        study(
            "whatif",
            HPL,
            platform,
            runs,
            base={"fidelity": fidelity},
            scenarios=scenarios,
            responses=["time_s", "rate_gflops"],
        )
    )

    def predicted(settings: dict[str, float] | None = None, depth: int = 1) -> Prediction:
        hpl = Hpl(n=1000, nb=64, p=2, q=2, depth=depth)
        return predict(hpl, platform, settings=settings, runs=runs, seed=SEED, fidelity=fidelity)

    base, others = predicted(), (predicted(depth=0), predicted({"scale.bandwidth": 0.5}))
    for found, theirs in zip(answer.comparisons, others, strict=True):
        assert found.reference.spreads == {"time_s": base.time_s, "rate_gflops": base.rate}
        assert found.other.spreads == {"time_s": theirs.time_s, "rate_gflops": theirs.rate}
        assert found.differences["time_s"] == difference(base, theirs)


@pytest.mark.slow
def test_a_stencil_of_a_study_is_the_predicted_one() -> None:
    answer = whatif(study("whatif", STENCIL, "dahu", scenarios={"base": {}, "slow": {"scale.latency": 2}}))
    stencil = Stencil(cells=(64, 64, 64), grid=(2, 2, 1), cell_time_s=1e-9)
    predicted = predict(stencil, "dahu", runs=RUNS, seed=SEED)
    assert predicted.controls is not None
    assert answer.comparisons[0].reference.spreads["time_s"] == predicted.time_s


@pytest.mark.slow
def test_tuning_has_the_intervals_of_a_sweep() -> None:
    factors = {
        "depth": {"path": "application.depth", "levels": [0, 1]},
        "bcast": {"path": "application.bcast", "levels": ["1ring", "long"]},
    }
    configurations = Configurations(Study.model_validate(study("tune", HPL, SMALL, factors=factors)))
    with Session(configurations) as session:
        price = Pricing(configurations, session)
        found = crossed(configurations.points(), session, RUNS, seed=SEED, price=price).ranking.standings
    best, *others = predict_all(
        [configurations.at(one.point).application for one in found], SMALL, runs=RUNS, seed=SEED
    )
    assert found[0].spread == best.time_s  # what the first line states
    assert found[0].value == best.time_s.mean
    for one, theirs in zip(found[1:], others, strict=True):
        ratio = difference(best, theirs)
        assert (one.ratio, one.low, one.high) == pytest.approx((ratio.ratio, ratio.low, ratio.high), rel=1e-12)
    assert sum(one.probability for one in found) == pytest.approx(1.0)


@pytest.mark.slow
def test_a_machine_of_a_catalogue_takes_the_predicted_time(tmp_path: Path) -> None:
    (tmp_path / "parts.yaml").write_text(CATALOGUE)
    section = {"catalogue": str(tmp_path / "parts.yaml"), "nodes": [1]}
    answer = run_study(study("capacity", HPL, "dahu", capacity=section)).answer
    assert isinstance(answer, Front)
    hpl = Hpl(n=1000, nb=64, p=2, q=2)
    times_s = {
        "1 x usual, slow": predict(hpl, "dahu", runs=RUNS, seed=SEED, settings={"scale.bandwidth": 0.25}).time_s,
        "1 x usual, fast": predict(hpl, "dahu", runs=RUNS, seed=SEED).time_s,
    }
    for member in answer.members:
        assert member.spreads["time_s"] == times_s[str(member.point["scenario"])]


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
