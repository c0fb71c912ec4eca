"""The promise of the layer `extrapolation`: intervals hold runs at block sizes that were never measured."""

import math
import random
from pathlib import Path

import pandas
import pytest
from extrapolation_law import constant, groups_of
from scipy import stats

from lepaute import _core
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.platform import Platform, load_platform

DATA = Path(__file__).parents[1] / "data"
MACHINES = 60
#: Of the true machines: a product runs at RATE * k / (k + k0), and slower by a factor below a depth not measured.
RATE = 4e10
K0, SLOWER, DEPTHS = (4.0, 40.0), (0.85, 1.3), (16.0, 64.0)


def test_the_slopes_follow_from_kernels_predicted_at_sizes_that_were_left_out() -> None:
    # measured by validation/extrapolation_law.py --measure on a virtual machine of two cores (Xeon, AVX-512), idle
    groups, inside = groups_of(pandas.read_csv(DATA / "extrapolation_classes.csv"))
    found = {name: constant(group, inside) for name, group in groups.items()}
    for name, product, varied, above in (
        ("products, several sizes", True, True, True),
        ("products, several sizes", True, True, False),
        ("products, one size, above", True, False, True),
        ("products, one size, below", True, False, False),
        ("other kernels, above", False, True, True),
        ("other kernels, below", False, True, False),
    ):
        slope = _core.extrapolation_slope(product, varied, above)
        assert found[name] <= slope <= found[name] + 0.01  # rounded up


def test_the_error_of_a_call_outside_is_log_normal_in_proportion_to_its_distance_and_has_mean_one() -> None:
    # One core runs updates with k = 32 alone, where 128 was measured: ln 4 away, at 33 % a unit
    platform = calibrated(k0=20.0, block_sizes=(128,))
    hpl = Hpl(n=600, nb=32)
    still = predict(hpl, platform, runs=1, layers=Layers.only()).time_s.mean
    outside = predict(hpl, platform, runs=1).extrapolated_share or 0.0
    runs = predict(hpl, platform, runs=2000, layers=Layers.only("extrapolation")).run_list
    factors = [(run.time_s / still - (1.0 - outside)) / outside for run in runs]
    sd = 0.33 * math.log(4)
    mean = sum(factors) / len(factors)
    assert abs(mean - 1.0) < 5 * math.sqrt(math.expm1(sd**2) / len(factors))
    logs = [math.log(factor) for factor in factors]
    # Two kernels are products; nearly all of the time is that of one of them.
    assert stats.tstd(logs) == pytest.approx(sd, rel=0.1)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("block_sizes", [(128,), (64, 128, 256)])
def test_intervals_hold_true_runs_at_block_sizes_that_were_not_measured(block_sizes: tuple[int, ...]) -> None:
    generator = random.Random(20261122)
    held, held_without, cases = 0, 0, 0
    for _ in range(MACHINES):
        k0 = math.exp(generator.uniform(*map(math.log, K0)))
        slower = math.exp(generator.uniform(*map(math.log, SLOWER)))
        truth, model = true_machine(k0, slower, generator.uniform(*DEPTHS)), calibrated(k0, block_sizes)
        for nb in (16, 32):
            hpl, cases = Hpl(n=1000, nb=nb), cases + 1
            real_s = predict(hpl, truth, runs=1, layers=Layers.only()).time_s.mean
            spread = predict(hpl, model, runs=40).time_s
            without = predict(hpl, model, runs=40, layers=Layers(extrapolation=False)).time_s
            assert spread.low is not None and spread.high is not None and without.low is not None  # noqa: PT018
            held += spread.low <= real_s <= spread.high
            held_without += without.low <= real_s <= without.high
    # Those of one machine are no two independent cases; the law is wider than these machines need, so that holds.
    assert held >= stats.binom.ppf(1e-6, cases, 0.95)
    assert held_without < 0.5 * cases


def true_machine(k0: float, slower: float, depth: float) -> Platform:
    """A machine whose products saturate with k, and are `slower` times slower for k below `depth`."""
    law = {"mnk": 2.0 / RATE, "mn": 2.0 * k0 / RATE}
    below = {term: slower * value for term, value in law.items()}
    return machine([{"where": {"k": [0, round(depth)]}, "mean": below}, {"mean": law}])


def calibrated(k0: float, block_sizes: tuple[int, ...]) -> Platform:
    """What a calibration at these block sizes makes of it: with one of them, it cannot know k0."""
    if len(block_sizes) > 1:
        law = {"mnk": 2.0 / RATE, "mn": 2.0 * k0 / RATE}
    else:
        law = {"mnk": 2.0 / RATE * (1.0 + k0 / block_sizes[0])}
    fitted = {"m": [0, 8000], "n": [0, 8000], "k": [min(block_sizes), max(block_sizes)]}
    return machine([{"mean": law, "range": fitted}])


def machine(pieces: list[dict[str, object]]) -> Platform:
    """The smallest shipped platform with these products of matrices and no other kernel, without any other layer."""
    content = load_platform(DATA / "platforms" / "small.yaml").model_dump(exclude_none=True)
    content |= {"kernels": [{"kernel": "dgemm", "pieces": pieces}], "days": None}
    return Platform.model_validate(content)
