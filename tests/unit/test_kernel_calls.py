"""Which calls a run of HPL makes, and what the runs of a prediction share."""

import gc
import os

import pytest

from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate import native as native_module
from lepaute.simulate.apps.hpl.kernel_calls import kernel_calls
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.native import Native, shared_machine
from lepaute.simulate.platform import load_platform
from lepaute.simulate.tracing import TraceRequest


def flops(table) -> float:
    return sum(2.0 * m * n * k * calls for m, n, k, calls, _ in table.sizes_of(("dgemm", "dgemm_nn")))


def test_where_all_is_looked_at_every_call_is_counted_once() -> None:
    hpl = Hpl(n=1500, nb=64, p=2, q=2)
    table = kernel_calls(hpl)
    still = Layers.only()
    trace = predict(hpl, load_platform("dahu"), runs=1, layers=still, fidelity="full", trace=TraceRequest()).trace
    inside = trace.where((trace.kind == 0) & (trace.step >= 0))
    assert (table.ranks, table.steps) == (4, hpl.steps)
    assert table.calls.sum() == pytest.approx(len(inside))
    assert table.time_s.sum() == pytest.approx(inside.duration_s.sum())
    rows = list(zip(table.kernel, table.m, table.n, table.k, strict=True))
    assert len(rows) == len(set(rows))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "nb", "grid"), [(20_000, 128, (4, 4)), (12_000, 96, (2, 8))])
def test_a_part_of_the_ranks_and_steps_stands_for_all(n: int, nb: int, grid: tuple[int, int]) -> None:
    hpl = Hpl(n=n, nb=nb, p=grid[0], q=grid[1])
    table = kernel_calls(hpl)
    assert table.ranks * table.steps < hpl.ranks * hpl.steps
    assert flops(table) == pytest.approx(hpl.flop_count, rel=0.05)  # dgemm does nearly all of them


@pytest.mark.slow
@pytest.mark.long
def test_a_run_that_is_only_sampled_has_its_calls_as_well() -> None:
    hpl = Hpl(n=300_000, nb=128, p=32, q=32)  # 2344 steps of 1024 ranks
    assert flops(kernel_calls(hpl)) == pytest.approx(hpl.flop_count, rel=0.1)


def test_more_ranks_than_the_shipped_nodes_hold_are_placed_on_more_of_them() -> None:
    assert kernel_calls(Hpl(n=5_000, nb=256, p=40, q=40)).calls.sum() > 0


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
