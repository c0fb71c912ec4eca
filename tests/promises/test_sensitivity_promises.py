"""Indices of sensitivity cover the true ones, and a factor without effect is found to have one in at most 5 %.

With another seed, a correct program fails a bound of a binomial count once in 10^6 at most.
"""

from collections.abc import Sequence
from math import pi, sin
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import binom

from lepaute.study.evaluation import Outcome, Point, Trial, trials_of
from lepaute.study.sensitivity import effects
from lepaute.study.sobol import sobol

#: Ishigami & Homma (1990) with a = 7, b = 0.1: variance and indices are known.
A, B = 7.0, 0.1
VARIANCE = A**2 / 8 + B * pi**4 / 5 + B**2 * pi**8 / 18 + 0.5
FIRST = {"x1": 0.5 * (1 + B * pi**4 / 5) ** 2 / VARIANCE, "x2": A**2 / 8 / VARIANCE, "x3": 0.0}
INTERACTION = B**2 * pi**8 * (1 / 18 - 1 / 50) / VARIANCE
TOTAL = {"x1": FIRST["x1"] + INTERACTION, "x2": FIRST["x2"], "x3": INTERACTION}
#: Of what machines differ by in the levels of a factor.
SPREADS = (0.005, 0.01, 0.02, 0.04)
ANGLES = dict.fromkeys(("x1", "x2", "x3"), lambda u: pi * (2 * u - 1))


def ishigami(trials: Sequence[Trial]) -> list[Outcome]:
    found = []
    for trial in trials:
        x1, x2, x3 = (float(trial.point[name]) for name in ("x1", "x2", "x3"))  # type: ignore[arg-type]
        found.append(Outcome(trial, {"y": sin(x1) + A * sin(x2) ** 2 + B * x3**4 * sin(x1)}))
    return found


def additive(trials: Sequence[Trial]) -> list[Outcome]:
    """3 x1 + 2 x2 + 0 x3, a machine of standard deviation 0.5, and noise of 0.3 of every run's own."""
    found = []
    for trial in trials:
        machine = np.random.default_rng([trial.seed, 1]).normal(0.0, 0.5)
        own = np.random.default_rng([trial.seed, trial.repeat, crc32(trial.point.to_json().encode())]).normal(0.0, 0.3)
        value = 3.0 * trial.point["x1"] + 2.0 * trial.point["x2"] + machine + own  # type: ignore[operator]
        found.append(Outcome(trial, {"y": float(value)}))
    return found


@pytest.mark.slow
@pytest.mark.long
def test_sobol_intervals_cover_the_indices_of_ishigami() -> None:
    covered = []
    for seed in range(1, 61):
        found = sobol(ANGLES, ishigami, 256, response="y", seed=seed)
        covered += [found.first[name].low <= FIRST[name] <= found.first[name].high for name in FIRST]
        covered += [found.total[name].low <= TOTAL[name] <= found.total[name].high for name in TOTAL]
        assert abs(found.machine.value) < 1e-9
        assert found.noise == 0.0
    # 360 intervals of 60 samples, six of each dependent: as few as if there were 60; another seed fails once in 10^6
    assert np.mean(covered) >= binom.ppf(1e-6, 60, 0.95) / 60


@pytest.mark.slow
@pytest.mark.long
def test_sobol_intervals_cover_with_noise_and_its_share_is_shown() -> None:
    parts = {"x1": 9 / 12, "x2": 4 / 12, "x3": 0.0}
    whole = sum(parts.values()) + 0.25 + 0.09
    uniform = dict.fromkeys(parts, lambda u: u)
    covered, flagged, machine, noise = [], 0, [], []
    for seed in range(1, 101):
        found = sobol(uniform, additive, 128, response="y", seed=seed)
        for name, part in parts.items():
            both = (found.first[name], found.total[name])
            covered += [index.low <= part / whole <= index.high for index in both]
        flagged += not found.is_null("x3")
        machine.append(found.machine.low <= (0.25 + 0.09) / whole <= found.machine.high)
        noise.append(found.noise)
    assert np.mean(covered) >= binom.ppf(1e-6, 100, 0.95) / 100
    assert np.mean(machine) >= binom.ppf(1e-6, 100, 0.95) / 100
    assert np.mean(noise) == pytest.approx(0.09 / whole, rel=0.1)
    assert flagged <= binom.ppf(1 - 1e-6, 100, 0.05)


@pytest.mark.slow
@pytest.mark.long
def test_a_factor_without_effect_is_significant_in_at_most_5_percent_though_machines_differ_in_it() -> None:
    """Machines treat the levels of both factors differently, with unequal spreads; on average only `a` matters."""
    points = [Point({"a": a, "b": b}) for a in range(3) for b in range(4)]
    flagged, found_a, trials = 0, 0, 1500
    for study in range(trials):
        generator = np.random.default_rng(study)
        outcomes = []
        of_machine = {
            seed: (generator.normal(0, 0.1), generator.normal(0, 0.02, 3), generator.normal(0, SPREADS))
            for seed in range(1, 7)
        }
        for trial in trials_of(points, 6):
            common, of_a, of_b = of_machine[trial.seed]
            a, b = int(trial.point["a"]), int(trial.point["b"])  # type: ignore[arg-type]
            logarithm = 0.04 * a + common + of_a[a] + of_b[b] + generator.normal(0.0, 0.005)
            outcomes.append(Outcome(trial, {"time_s": float(np.exp(logarithm))}))
        terms = {term.name: term for term in effects(outcomes).terms}
        flagged += terms["b"].is_significant
        found_a += terms["a"].is_significant
    # the promise is at most 5 %; the correction for unequal spreads is a little conservative
    assert binom.ppf(1e-6, trials, 0.02) <= flagged <= binom.ppf(1 - 1e-6, trials, 0.05)
    assert found_a > 0.8 * trials


@pytest.mark.slow
def test_the_interval_of_a_level_covers_its_effect() -> None:
    points = [Point({"a": a}) for a in range(3)]
    covered = 0
    for study in range(1000):
        generator = np.random.default_rng(study)
        machines = {seed: generator.normal(0.0, 0.03, 3) for seed in range(1, 6)}
        outcomes = [Outcome(t, {"time_s": float(np.exp(0.05 * t.point["a"] + machines[t.seed][t.point["a"]]))})
                    for t in trials_of(points, 5)]  # type: ignore[operator, index]  # fmt: skip
        level = effects(outcomes).terms[0].levels[2]
        covered += level.low <= np.exp(0.05) <= level.high
    assert binom.ppf(1e-6, 1000, 0.95) <= covered <= binom.ppf(1 - 1e-6, 1000, 0.95)
