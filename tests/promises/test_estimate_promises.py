"""The estimate of how long a prediction takes is right within a factor of 2."""

import time

import pytest

from lepaute.platform import load_platform
from lepaute.simulate import Hpl, predict
from lepaute.simulate import estimate as estimates
from lepaute.simulate.predict import expected_run_s

CASES = [
    Hpl(n=60_000, p=8, q=8),
    Hpl(n=20_000, nb=256, p=8, q=8),
    Hpl(n=20_000, p=16, q=16),
    Hpl(n=50_000, p=4, q=8, depth=0),
    Hpl(n=20_000, p=7, q=9, bcast="1ring"),
    Hpl(n=30_000, p=64, q=1),
    Hpl(n=50_000, p=4, q=64, nb=200),
    Hpl(n=20_000, p=32, q=32),
    Hpl(n=200_000, p=1, q=1),
    Hpl(n=20_000, p=16, q=16, bcast="long-modified", depth=0, swap="spread-roll"),
]


@pytest.mark.parametrize("hpl", CASES, ids=lambda hpl: f"{hpl.p}x{hpl.q}-N{hpl.n}-NB{hpl.nb}")
def test_the_estimate_is_right_within_a_factor_of_two(hpl, monkeypatch):
    # CPU time on both sides: what else the machine does meanwhile is not the estimate's fault.
    monkeypatch.setattr(estimates, "WORTH_MEASURING_S", 0.0)
    platform = load_platform("dahu")
    (expected_s,) = expected_run_s([hpl], platform, runs=10)
    began_s = time.process_time()
    predict(hpl, platform, runs=1)
    took_s = time.process_time() - began_s
    assert took_s / 2 < expected_s < took_s * 2
