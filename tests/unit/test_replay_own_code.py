"""The layer of a replayed program's own code: its part of the interval, and what it holds of simulated truth."""

from pathlib import Path

import numpy as np
import pytest
from oracles.replays import NOTHING, call, write

import lepaute as lp

BOUNDS = (0.7, 1.3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten seconds of own code on each of two ranks, and messages of a few milliseconds."""
    rows = []
    for _ in range(10):
        rows += [call(0, "Send", 1, 1e6), call(1, "Recv", 0)]
    return write(tmp_path / "run.parquet", rows)


def test_it_is_a_layer_of_its_own_in_the_interval(path: Path) -> None:
    found = lp.predict(lp.TraceReplay(path, own_code=BOUNDS), "dahu", runs=12, parts=True)
    assert found.parts is not None
    assert max(found.parts.relative_sd, key=lambda name: found.parts.relative_sd[name]) == "own_code"
    assert found.parts.relative_sd["own_code"] == pytest.approx(0.3 / 1.96, rel=0.6)
    known = lp.predict(lp.TraceReplay(path, own_code=(1.0, 1.0)), "dahu", runs=12, parts=True)
    assert known.parts is not None
    assert "own_code" not in known.parts.relative_sd


def test_its_interval_holds_what_programs_take_whose_own_code_is_between_the_bounds(path: Path) -> None:
    """Truth: programs whose own code is faster or slower by a factor from the bounds; nothing else is drawn."""
    interval = lp.predict(
        lp.TraceReplay(path, own_code=BOUNDS), "dahu", runs=60, layers=lp.Layers.only("own_code")
    ).time_s
    without = lp.predict(
        lp.TraceReplay(path, own_code=BOUNDS), "dahu", runs=12, layers=lp.Layers.without(["own_code"])
    ).time_s
    middle, draws = sum(BOUNDS) / 2, np.random.default_rng(1)
    normal = middle * np.exp(draws.normal(0.0, (BOUNDS[1] - middle) / 1.96 / middle, 200))
    held, missed = [], []
    for factors in (draws.uniform(*BOUNDS, 200), normal):
        # The time is linear in the factor: two replays tell that of each.
        low_s, high_s = (
            lp.predict(lp.TraceReplay(path, own_code=(each, each)), "dahu", runs=1, layers=NOTHING).time_s.mean
            for each in BOUNDS
        )
        truth = low_s + (factors - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0]) * (high_s - low_s)
        held.append(np.mean((truth >= interval.low) & (truth <= interval.high)))
        missed.append(np.mean((truth >= without.low) & (truth <= without.high)))
    # 95 %: the width of an interval of 60 runs is known to 9 %, a share of 200 to 1.5 %.
    assert held[0] >= 0.9
    assert 0.9 <= held[1] <= 0.99
    assert max(missed) < 0.5
