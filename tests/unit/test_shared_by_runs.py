"""What the runs of a prediction share is made once, and changes no bit of them."""

import gc
import os

import pytest

from lepaute.simulate import Hpl, predict
from lepaute.simulate import native as native_module
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.native import Native, shared_machine
from lepaute.simulate.platform import load_platform

SMALL = Hpl(n=600, nb=64, p=2, q=2)


def test_a_machine_is_made_once_of_a_platform_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = native_module.machine_of
    monkeypatch.setattr(native_module, "machine_of", lambda *given: made.append(1) or make(*given))
    platform = load_platform("dahu").model_copy(update={"name": "own"})
    predict(SMALL, platform, runs=3, parts=True)
    assert len(made) == 1
    assert shared_machine(SMALL, platform, 1) is shared_machine(SMALL, platform, 1)
    other = platform.model_copy(update={"network": platform.network.model_copy(update={"flow_factor": "scale"})})
    assert shared_machine(SMALL, other, 1) is not shared_machine(SMALL, platform, 1)
    known = len(native_module._MACHINES)
    del platform, other
    gc.collect()
    assert len(native_module._MACHINES) <= known - 2


@pytest.mark.parametrize("cores", [1, 3])
def test_the_prices_of_draws_are_the_same_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    simulator = Native().on(Conditions(load_platform("dahu")))
    simulator.prepare(SMALL)
    simulator.run(SMALL, 1, first=False, priced=True)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(cores)))
    seeds = range(1, 12)
    assert simulator.effects(SMALL, seeds) == [simulator.effects(SMALL, [seed])[0] for seed in seeds]
