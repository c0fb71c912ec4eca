"""The promise of the prediction interval: it holds one further run 95 times in a hundred, of sampled runs, too."""

import itertools
import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from lepaute.simulate import Hpl, Layers, PredictionRequest, predict, predict_all
from lepaute.simulate.platform import load_platform
from lepaute.simulate.prediction.comparing import difference
from lepaute.stats.intervals import interval_of_mean, prediction_interval
from scripts.day_effects import day_effects

TRIALS = 4000
SEED = 20260611
Draw = Callable[[random.Random], float]


def normal(sd: float) -> Draw:
    return lambda generator: generator.gauss(1.0, sd)


def lognormal(sd: float) -> Draw:
    return lambda generator: generator.lognormvariate(0.0, sd)


def student(freedom: int, sd: float) -> Draw:
    """What a day layer of few degrees of freedom gives."""

    def draw(generator: random.Random) -> float:
        chi_squared = generator.gammavariate(freedom / 2, 2.0)
        return math.exp(sd * generator.gauss(0.0, 1.0) / math.sqrt(chi_squared / freedom))

    return draw


def contaminated(share: float, times: float) -> Draw:
    """2 %, and `times` as much in a `share` of the runs."""
    return lambda generator: generator.lognormvariate(0.0, 0.02 * (times if generator.random() < share else 1.0))


def slowed(share: float) -> Draw:
    """2 %, and a `share` of the runs 20 % slower: two kinds of runs."""
    return lambda generator: generator.lognormvariate(0.2 if generator.random() < share else 0.0, 0.02)


def covered(draw: Draw, runs: int) -> int:
    """How many of TRIALS intervals from `runs` values hold one further value of the same kind."""
    generator = random.Random(SEED)
    hits = 0
    for _ in range(TRIALS):
        low, high = prediction_interval([draw(generator) for _ in range(runs)])
        hits += low <= draw(generator) <= high
    return hits


def bounds(probability: float) -> tuple[int, int]:
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], TRIALS, probability)
    return int(low), int(high)


@pytest.mark.parametrize("runs", [2, 3, 5, 10, 30, 39, 40, 100])
@pytest.mark.parametrize("draw", [normal(0.02), normal(0.1), lognormal(0.02), lognormal(0.5)])
def test_one_further_run_lies_inside_95_times_in_a_hundred(draw: Draw, runs: int) -> None:
    low, high = bounds(0.95)  # 3732 .. 3864; another seed fails 2 in a million
    assert low <= covered(draw, runs) <= high


#: Where Student's interval does not hold its promise, and what it holds, in per cent of 200,000 intervals each.
SHORT = {
    "days known from 5 blocks": (student(4, 0.02), {2: 94.8, 5: 93.4, 10: 93.3, 30: 94.0}),
    "days known from 3 blocks": (student(2, 0.02), {2: 94.1, 5: 91.8, 10: 92.1, 30: 93.7}),
    "a tenth of the runs spread 3 times as far": (contaminated(0.1, 3.0), {2: 94.8, 5: 93.5, 10: 93.6, 30: 94.4}),
    "a twentieth of the runs are 20 % slower": (slowed(0.05), {2: 93.3, 5: 92.4, 10: 93.0, 30: 94.0}),
    "a fifth of the runs are 20 % slower": (slowed(0.2), {2: 89.6, 5: 92.1, 10: 92.8, 30: 92.0}),
}


@pytest.mark.parametrize(("name", "runs"), [(name, runs) for name, (_, coverage) in SHORT.items() for runs in coverage])
def test_fewer_than_40_runs_with_long_tails_hold_what_is_documented(name: str, runs: int) -> None:
    draw, coverage = SHORT[name]
    low, high = bounds(coverage[runs] / 100)
    assert low <= covered(draw, runs) <= high


@pytest.mark.parametrize("runs", [40, 100])
@pytest.mark.parametrize("draw", [lognormal(1.0), *(draw for draw, _ in SHORT.values())], ids=["skewed", *SHORT])
def test_empirical_quantiles_keep_the_promise_whatever_the_distribution(draw: Draw, runs: int) -> None:
    low, high = bounds(0.95)
    assert low <= covered(draw, runs) <= high


def test_planted_day_effects_are_found() -> None:
    generator = random.Random(SEED)
    common_sd, own_sd, days, units = 0.01, 0.02, 400, 8
    level = [generator.uniform(1.0, 2.0) for _ in range(units)]
    rows = []
    for day in range(days):
        common = generator.gauss(0.0, common_sd)
        rows += [(unit, day, level[unit] * (1 + common + generator.gauss(0.0, own_sd))) for unit in range(units)]
    effects = day_effects(rows)
    # The mean square between days, common² + own² / 8, has 399 degrees of freedom and so a relative sd of 7 %; it is
    # 1.5 times the square of common. Five sd: common² within 1 ± 0.53. The own part has 2793: 1 ± 0.13 of its square.
    assert 0.47 < (effects.common_relative_sd / common_sd) ** 2 < 1.53
    assert 0.87 < (effects.unit_relative_sd / own_sd) ** 2 < 1.13


@pytest.mark.slow
@pytest.mark.parametrize("runs", [10, 100])
@pytest.mark.parametrize(("of_day", "of_run"), [(0.03, 0.03), (0.0, 0.03), (0.03, 0.0), (0.01, 0.05)])
def test_the_interval_of_a_mean_holds_the_mean_of_four_further_runs_of_one_day(of_day, of_run, runs):
    """The days of the simulated runs are known by 20 pairs of runs of one day each."""
    generator = np.random.default_rng(SEED)
    trials, held = 1000, 0
    for _ in range(trials):
        values = np.exp(np.hypot(of_day, of_run) * generator.normal(size=runs))
        pairs = of_run * generator.normal(size=(2, 20))
        sd_on_one_day = float(np.sqrt(np.mean((pairs[0] - pairs[1]) ** 2) / 2))
        low, high = interval_of_mean(values.tolist(), sd_on_one_day, 4)
        truth = np.exp(of_day * generator.normal() + of_run * generator.normal(size=4)).mean()
        held += low <= truth <= high
    # What stands for it errs by that of two estimated standard deviations.
    assert stats.binom.ppf(1e-6, trials, 0.93) <= held <= stats.binom.ppf(1 - 1e-6, trials, 0.97)


GRIDS = ((1, 6), (3, 4), (5, 4), (4, 6), (2, 8), (7, 7), (1, 2), (2, 3), (5, 11), (7, 5))
PLATFORMS = ("dahu", "dahu-2019-10", "stampede-like")
NBS = (80, 112, 144, 160, 224)


def drawn(generator: random.Random) -> Hpl:
    p, q = generator.choice(GRIDS)
    nb = generator.choice(NBS)
    n = generator.randint(530, 620) * nb + generator.randint(0, nb - 1)
    return Hpl(n=n, nb=nb, p=p, q=q, depth=generator.choice((0, 1)), bcast=generator.choice(("1ring", "2ring", "long")))


@pytest.mark.slow
@pytest.mark.long
def test_the_stated_error_of_sampling_covers_the_true_one_as_often_as_it_says() -> None:
    generator, machines = random.Random(20261123), [load_platform(name) for name in PLATFORMS]
    count, inside = 45, 0
    for seed in range(1, count + 1):
        hpl, machine = drawn(generator), machines[seed % 3]
        full = predict(hpl, machine, runs=1, seed=seed, fidelity="full")
        sampled = predict(hpl, machine, runs=1, seed=seed, fidelity="sampled")
        assert sampled.sampling_sd > 0.0
        error = math.log(sampled.run_list[0].time_s / full.run_list[0].time_s)
        inside += abs(error) <= 1.96 * sampled.sampling_sd
    # 95 % are promised; the bound is missed by a promise that holds once in a hundred thousand seeds.
    assert inside >= stats.binom.ppf(1e-5, count, 0.95)


@pytest.mark.slow
@pytest.mark.long
def test_of_a_sampled_sweep_those_told_apart_are_in_the_order_of_all_steps() -> None:
    # Grids differ by some per cent, depths on one grid by less. Errors of models would hide those of the windows.
    machine = load_platform("dahu")
    sweep = [Hpl(n=33300, nb=64, p=p, q=12 // p, depth=depth) for p in (1, 2, 3, 4, 6) for depth in (0, 1)]
    noise = Layers.only("noise")
    sampled = predict_all(sweep, machine, PredictionRequest(runs=3, layers=noise, fidelity="sampled"))
    full = predict_all(sweep, machine, PredictionRequest(runs=3, layers=noise, fidelity="full"))
    judged = wrong = 0
    for one, other in itertools.combinations(range(len(sweep)), 2):
        faster, slower = sorted((one, other), key=lambda at: sampled[at].time_s.mean)
        if difference(sampled[faster], sampled[slower]).is_told_apart:
            judged += 1
            wrong += full[faster].time_s.mean > full[slower].time_s.mean
    assert judged >= 10  # or the test would show nothing
    assert judged < 45  # of all
    assert wrong <= stats.binom.ppf(1 - 1e-5, judged, 0.05)
