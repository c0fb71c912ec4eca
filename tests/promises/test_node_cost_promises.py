"""The interval of what a changed node costs holds 95 % of true ratios: from simulated jobs to simulated runs of HPL.

In each of SETS worlds a node becomes slower by a known factor, jobs measure it with noise, of few of which the factor
is estimated; the truth are pairs of runs on the platform with the known factor.
"""

from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lepaute.simulate import Hpl, predict
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.components import with_cpu_factors
from lepaute.simulate.prediction.node_cost import CpuFactors, node_cost
from lepaute.watch.node_state import NodeState, node_state

SMALL = load_platform(Path(__file__).parent.parent / "data" / "platforms" / "small.yaml")
PLATFORM = override(
    SMALL,
    {
        "nodes.count": "2",
        "kernels[0].discrepancy_relative_sd": "0.03",
        "kernels[0].pieces[1].per_cpu": "null",
        "kernels[0].pieces[1].range": "null",
    },
)
#: Long enough for dgemm to decide.
HPL = Hpl(n=800, nb=64, p=2, q=2)
FACTOR = "dgemm_rate_flops"
SETS, TRUTHS, RUNS = 100, 400, 10
TRUE = 1.08


def jobs(rng: np.random.Generator, before: int, now: int, sd: float) -> pd.DataFrame:
    """Rates of two CPUs, the node slower by TRUE in its last jobs; a day moves both."""
    days = np.arange(before + now)
    slow = np.where(days >= before, log(TRUE), 0.0)
    parts = []
    common = rng.normal(0.0, sd, len(days))
    for cpu in (0, 1):
        logs = log(3e10) - slow + common + rng.normal(0.0, 0.5 * sd, len(days))
        parts.append(
            pd.DataFrame({"cpu": cpu, "job": days.astype(str), "started_s": 86400.0 * days, "value": np.exp(logs)})
        )
    return pd.concat(parts).assign(cluster="c", node="1", stratum="s", factor=FACTOR, state="done", archive="")


def state_of(rng: np.random.Generator, before: int, now: int, sd: float) -> NodeState:
    return node_state(jobs(rng, before, now, sd), "c", "1", FACTOR, latest=now)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("before", "now"), [(3, 1), (10, 5)])
def test_the_interval_of_a_slowdown_holds_95_percent_of_the_true_ones(before: int, now: int) -> None:
    rng = np.random.default_rng(20261123)
    held = 0
    for _ in range(400):
        _, low, high = state_of(rng, before, now, 0.02).slowdown(0)
        held += low <= TRUE <= high
    # 380 +- 4.4 of 400; four standard deviations
    assert abs(held - 380) <= 17


@pytest.fixture(scope="module")
def truths() -> np.ndarray:
    """Ratios of pairs of runs, with the node as it really is."""
    reference = predict(HPL, with_cpu_factors(PLATFORM, 1, {0: 1.0, 1: 1.0}), runs=TRUTHS, seed=10**6)
    slow = predict(HPL, with_cpu_factors(PLATFORM, 1, {0: TRUE, 1: TRUE}), runs=TRUTHS, seed=10**6, repeat=1)
    return np.array([b.time_s / a.time_s for a, b in zip(reference.run_list, slow.run_list, strict=True)])


def coverage(truths: np.ndarray, before: int, now: int, sd: float, *, known: bool, sets: int = SETS) -> float:
    """known : as if the estimated factors were without error."""
    rng = np.random.default_rng(20261123)
    shares = []
    for number in range(sets):
        state = state_of(rng, before, now, sd)
        covariance = ((0.0, 0.0), (0.0, 0.0)) if known else state.log_covariance
        factors = CpuFactors(state.cpus, state.log_slowdown, covariance, state.degrees_of_freedom)
        found = node_cost(HPL, PLATFORM, 1, factors, runs=RUNS, seed=1 + RUNS * number, grid_without=(1, 1))
        low, high = found.slowdown.low, found.slowdown.high
        shares.append(float(np.mean((truths >= low) & (truths <= high))))
    return float(np.mean(shares))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("before", "now", "sd"), [(10, 5, 0.02), (30, 5, 0.004)])
def test_the_interval_of_a_cost_holds_95_percent_of_the_true_ratios(truths, before, now, sd):
    # Of 100 worlds the share is known to 2.2 %, were each interval's coverage 0 or 1; and an interval of 10 draws
    # around an estimate that is off is somewhat wider than it need be.
    assert 0.90 <= coverage(truths, before, now, sd, known=False) <= 0.985


@pytest.mark.slow
def test_the_interval_of_a_cost_must_hold_the_error_of_the_factors(truths: np.ndarray) -> None:
    assert coverage(truths, 10, 5, 0.05, known=True, sets=40) < 0.8
