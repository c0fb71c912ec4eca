"""What a run draws of its day, its kernels and their pieces, and at block sizes that were never measured."""

import math
import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas
import pytest
from extrapolation_law import constant, groups_of
from scipy import stats

from lepaute import _core
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.platform import Platform, load_platform
from lepaute.simulate.platform.io import parse_platform

RUNS = 2000
SEED = 20261122
TAIL = 1e-6  # of each bound: another seed fails twice in a million

PLATFORM = Path(__file__).parents[1].joinpath("data", "texts", "two_pieces.yaml").read_text()
#: Every update of dgemm has this k, and so the piece of k >= 64.
HPL = Hpl(n=512, nb=64, p=1, q=1, nbmin=64)


def platform(**sd: float) -> Platform:
    """The platform with these standard deviations, 0 where none is given."""
    text = PLATFORM.replace("FREEDOM", str(int(sd.pop("freedom", 1_000_000))))
    for word in ("KERNEL", "FIRST", "SECOND", "DAY", "RUN", "CPU"):
        text = text.replace(word, str(sd.get(word.lower(), 0)))
    return parse_platform(text)


def factors(machine: Platform, hpl: Hpl = HPL, runs: int = RUNS) -> npt.NDArray[np.float64]:
    """Time of each run relative to that of a run without a draw."""
    plain = predict(hpl, machine, runs=1, layers=Layers.only()).time_s.mean
    drawn = predict(hpl, machine, runs=runs, seed=SEED)
    return np.array([run.time_s for run in drawn.run_list]) / plain


def assert_log_normal(seen: npt.NDArray[np.float64], sd: float) -> None:
    """That the logarithms are normal with standard deviation `sd`, and that the mean is 1."""
    logs = np.log(seen)
    low, high = stats.chi2.ppf([TAIL, 1 - TAIL], RUNS - 1) / (RUNS - 1)
    assert low < np.var(logs, ddof=1) / sd**2 < high
    assert stats.kstest(logs, "norm", args=(-(sd**2) / 2, sd)).pvalue > TAIL
    # The variance of a log-normal factor of mean 1 is exp(sd²) - 1.
    assert abs(seen.mean() - 1.0) < stats.norm.isf(TAIL) * math.sqrt(math.expm1(sd**2) / RUNS)


@pytest.mark.parametrize("sd", [0.02, 0.5])
@pytest.mark.parametrize("which", ["kernel", "second"])
def test_a_discrepancy_is_log_normal_with_mean_1_however_wide(which: str, sd: float) -> None:
    seen = factors(platform(**{which: sd}))
    assert seen.min() > 0.0
    assert_log_normal(seen, sd)


def test_the_factor_of_a_piece_multiplies_that_of_its_kernel_and_every_piece_has_another() -> None:
    both, kernel, piece = (
        factors(platform(**sds), runs=50) for sds in ({"kernel": 0.1, "second": 0.2}, {"kernel": 0.1}, {"second": 0.2})
    )
    assert both == pytest.approx(kernel * piece, rel=1e-9)
    assert abs(np.corrcoef(np.log(kernel), np.log(piece))[0, 1]) < 0.6  # 50 independent pairs: beyond once in 10^5
    # k = 32 is the first piece's, k = 64 the second's
    small = Hpl(n=512, nb=32, p=1, q=1, nbmin=32)
    machine = platform(first=0.1, second=0.1)
    first, second = factors(machine, small, 50), factors(machine, HPL, 50)
    assert abs(np.corrcoef(np.log(first), np.log(second))[0, 1]) < 0.6
    assert factors(platform(second=0.1), small, 3) == pytest.approx(1.0, rel=1e-12)


def days_variance(sd: float, freedom: int) -> float:
    """Variance of sd times a Student variate."""
    return sd**2 * freedom / (freedom - 2)


def test_effects_of_a_day_and_of_a_run_add_up_and_are_common_to_all_cpus() -> None:
    # One process row, messages that cost nothing: the slowest CPU decides, and all have the same factor.
    row = Hpl(n=512, nb=64, p=1, q=4, nbmin=64)
    freedom, runs = 30, 400
    both = factors(platform(day=0.03, run=0.04, freedom=freedom), row, runs)
    expected = days_variance(0.03, freedom) + days_variance(0.04, freedom)
    # Kurtosis of the sum is below that of Student's with 30 degrees of freedom, 3.23: relative sd of a variance of 400
    # values is below sqrt(2.23 / 400) = 7.5 %.
    assert np.var(np.log(both), ddof=1) == pytest.approx(expected, rel=5 * 0.075)
    day, run = (
        factors(platform(**{which: sd}, freedom=freedom), row, runs) for which, sd in (("day", 0.03), ("run", 0.04))
    )
    assert both == pytest.approx(day * run, rel=1e-7)  # but for what messages take
    assert abs(np.corrcoef(np.log(day), np.log(run))[0, 1]) < 0.25  # 400 independent pairs: five sd


def test_effects_are_drawn_for_every_cpu_with_their_degrees_of_freedom_within_a_factor_of_twenty() -> None:
    # The slowest of four CPUs decides, whose mean is 1.03 sd, but for the 3 % that some have less to do.
    row = Hpl(n=4096, nb=64, p=1, q=4, nbmin=64, depth=0)
    logs = np.log(factors(platform(cpu=0.1, freedom=30), row, 200))
    assert 0.06 < logs.mean() < 0.11
    assert logs.std() < 0.09
    seen = factors(platform(day=0.3, freedom=1))  # Cauchy: one effect in 300 is beyond 60
    assert seen.min() == pytest.approx(math.exp(-3), rel=1e-9)
    assert seen.max() == pytest.approx(math.exp(3), rel=1e-9)
    # Those of the day would make Cauchy variates of all three; with 200 they are normal to half a per cent.
    text = PLATFORM.replace("FREEDOM", "1, run_degrees_of_freedom: 200, cpu_degrees_of_freedom: 200")
    for word, sd in (("KERNEL", 0), ("FIRST", 0), ("SECOND", 0), ("DAY", 0), ("RUN", 0.3), ("CPU", 0.4)):
        text = text.replace(word, str(sd))
    assert_log_normal(factors(parse_platform(text)), 0.5)


def test_a_layer_that_is_off_draws_nothing() -> None:
    machine = platform(kernel=0.1, second=0.1, day=0.1, run=0.1, cpu=0.1)

    def time_s(**layers: bool) -> float:
        return predict(HPL, machine, runs=1, layers=Layers(**layers)).time_s.mean

    plain_s = time_s(coefficients=False, days=False, discrepancy=False, noise=False)
    assert time_s(discrepancy=False, days=False) == plain_s
    assert time_s(discrepancy=False) != plain_s
    assert time_s(days=False) != plain_s


def test_parts_of_an_interval_have_the_spread_that_the_platform_says() -> None:
    machine = platform(kernel=0.03, second=0.04, day=0.02, freedom=60)
    low, high = stats.chi2.ppf([TAIL, 1 - TAIL], 9) / 9  # of ten runs each: 0.05 to 5.6 of the variance
    ratios = []
    for seed in range(0, 1000, 10):
        parts = predict(HPL, machine, runs=2, seed=seed, parts=True).parts
        assert set(parts.relative_sd) == {"discrepancy", "days"}
        ratios.append([(parts.relative_sd["discrepancy"] / 0.05) ** 2, (parts.relative_sd["days"] / 0.02) ** 2])
    assert low < np.min(ratios)
    assert np.max(ratios) < 1.2 * high  # Student's days with 60 degrees of freedom vary by 3 % more
    # On average over 100 predictions they are right: the variance of 1000 values is known to sqrt(2 / 900) = 4.7 %.
    assert np.mean(ratios, axis=0) == pytest.approx([1.0, 60 / 58], abs=5 * 0.05)


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
