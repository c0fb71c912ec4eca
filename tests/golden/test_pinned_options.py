"""Predictions of every option and of a hypothetical cluster, pinned to the last bit: never changed unnoticed."""

import json
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from golden.pinned_predictions import CASES, FILE, NOT_PINNED, predicted

from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.population import population_of

REMEDY = "if that is meant: PYTHONPATH=src:tests .venv/bin/python tests/golden/pinned_predictions.py"


@cache
def pinned() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("name", CASES)
def test_a_prediction_is_what_it_was_to_the_last_bit_and_key(name: str) -> None:
    # JSON keeps every digit of a double, so equality of the parsed numbers is equality of bits.
    assert predicted(CASES[name]) == pinned()[name], REMEDY
    assert set(pinned()[name]["simulation"]).isdisjoint(NOT_PINNED)


def test_all_cases_are_pinned_and_at_least_sixty() -> None:
    assert set(CASES) == set(pinned()), REMEDY
    assert len(CASES) >= 60


HPL = Hpl(n=6000, nb=128, p=4, q=8, depth=1, bcast="2ring")
MESSAGES = 52660
TIMES_S = (0.3128450118750486, 0.3432616405228264, 0.3274490110674001, 0.32222704624513093)
#: Of before there were layers for what is extrapolated (here the narrow calls of the panel) and for overheads.
NOT_EXTRAPOLATED_S = (0.30961439988942924, 0.33765320611066957, 0.3270224221831773, 0.3055161682182701)


@pytest.fixture(params=["one core", "all cores"])
def cores(request: pytest.FixtureRequest) -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    if request.param == "one core":
        os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("cores")
def test_a_prediction_of_dahu_is_what_it_was_to_the_last_bit() -> None:
    prediction = predict(HPL, load_platform("dahu-2020-01"), runs=4)
    assert prediction.simulation.messages == MESSAGES
    assert tuple(run.time_s for run in prediction.run_list) == TIMES_S


def test_a_prediction_without_the_later_layers_is_what_it_was_before_there_were_any() -> None:
    prediction = predict(
        HPL, load_platform("dahu-2020-01"), runs=4, layers=Layers(extrapolation=False, overheads=False)
    )
    assert tuple(run.time_s for run in prediction.run_list) == NOT_EXTRAPOLATED_S


CLUSTER_HPL = Hpl(n=6000, nb=128, p=4, q=16)
FIRST = (6.628560122069975e-11, 2.346583167550724e-06, 1.9560801454464317e-12)
LAST = (9.383572976563847e-11, 2.7047015165606737e-06, 1.093696349916261e-11)
CLUSTER_TIMES_S = (0.1955796696819464, 0.1935052539185911, 0.19438820590129013)
DRAWN_TIMES_S = (0.19483227429802047, 0.19860499391241, 0.18841859579290254)


def test_a_synthetic_cluster_and_its_runs_are_what_they_were() -> None:
    dahu = load_platform("dahu-2019-04")
    cluster = synthesize(dahu, population_of(dahu), nodes=20, spatial=2.0, temporal=0.5, seed=3)
    table = cluster.kernels[0].pieces[0].per_cpu
    assert table.rows[0][2:] == FIRST
    assert table.rows[-1][2:] == LAST
    assert tuple(run.time_s for run in predict(CLUSTER_HPL, cluster, runs=3).run_list) == CLUSTER_TIMES_S


def test_runs_that_draw_nodes_and_days_are_what_they_were() -> None:
    dahu = override(load_platform("dahu-2019-04"), {"population.draw": "nodes-and-days"})
    assert tuple(run.time_s for run in predict(CLUSTER_HPL, dahu, runs=3).run_list) == DRAWN_TIMES_S
