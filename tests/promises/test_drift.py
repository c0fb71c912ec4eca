"""Further runs are inside at the nominal rate: after a calibration, and hours later where the machine wanders."""

from math import inf

import numpy as np
import pytest
from long_tests import long_but
from scipy import stats

from lepaute.measure.fit.kernels.form import Form
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.kernels.polynomial import design_matrix, machine_excess
from lepaute.measure.fit.observations.calls import Calls
from lepaute.measure.fit.variability.days import block_effects, process_effects
from lepaute.simulate.platform.schema import Drift
from lepaute.stats.variogram import PRIOR_RELATIVE_SD, VariogramModel, fit_variogram, variance_between

BLOCKS, SENTINELS, SPAN_S = 5, 6, 120.0
LAGS_S = np.array([60.0, 300.0, 1800.0, 3600.0, 4 * 3600.0])
ERROR = 0.003
MACHINES = 150
DAY_QUANTILE = stats.t.ppf(0.975, BLOCKS - 1)


def walk(sd_in_span: float):
    """A random walk that moves by this much, standard deviation, within a calibration."""

    def machine(rng: np.random.Generator, dates: np.ndarray) -> np.ndarray:
        steps = np.sqrt(np.diff(dates, prepend=dates[0]) / SPAN_S)
        return np.cumsum(sd_in_span * steps * rng.normal(size=len(dates)))

    return machine


def remembering(range_s: float, sd: float):
    """An Ornstein-Uhlenbeck machine."""

    def machine(rng: np.random.Generator, dates: np.ndarray) -> np.ndarray:
        level = np.empty(len(dates))
        level[0] = sd * rng.normal()
        for at in range(1, len(dates)):
            kept = np.exp(-(dates[at] - dates[at - 1]) / range_s)
            level[at] = kept * level[at - 1] + sd * np.sqrt(1.0 - kept**2) * rng.normal()
        return level

    return machine


def still(_rng: np.random.Generator, dates: np.ndarray) -> np.ndarray:
    return np.zeros(len(dates))


def steps(mean_s: float, sd: float = 0.03):
    """Levels that last for `mean_s` on average, exponentially, each drawn anew."""

    def machine(rng: np.random.Generator, dates: np.ndarray) -> np.ndarray:
        level = np.empty(len(dates))
        level[0] = sd * rng.normal()
        for at in range(1, len(dates)):
            stays = rng.random() < np.exp(-(dates[at] - dates[at - 1]) / mean_s)
            level[at] = level[at - 1] if stays else sd * rng.normal()
        return level

    return machine


def sinusoid(rng: np.random.Generator, dates: np.ndarray) -> np.ndarray:
    """3 % up and down in an hour, from any phase."""
    return 0.03 * np.sin(2 * np.pi * (dates / 3600.0 + rng.uniform()))


def calibrations_and_runs(machine, seed: int, starts_s: tuple[float, ...] = (0.0,)):
    """(effect of the day without and with the drift, shape (machines, lags) each; error of each run; models).

    starts_s : of the calibrations that are fitted together, the last one ending where lags begin
    """
    rng = np.random.default_rng(seed)
    plain, grown, errors, models = [], [], [], []
    blocks = BLOCKS * len(starts_s)
    for _ in range(MACHINES):
        begin = np.concatenate([start + np.arange(BLOCKS) * SPAN_S / BLOCKS for start in starts_s])
        watched = np.sort(begin[:, None] + rng.uniform(0, SPAN_S / BLOCKS, (blocks, SENTINELS)), axis=1)
        computed = begin[:, None] + (np.arange(10) + 0.5) / 10 * SPAN_S / BLOCKS
        last = starts_s[-1] + SPAN_S
        dates = np.concatenate([watched.ravel(), computed.ravel(), last + LAGS_S])
        order = np.argsort(dates, kind="stable")
        level = np.empty(len(dates))
        level[order] = machine(rng, dates[order])
        seen, worked, later = np.split(level, [watched.size, watched.size + computed.size])
        model = fit_variogram([(watched.ravel(), seen + ERROR * rng.normal(size=watched.size))])
        effect = worked.reshape(blocks, 10).mean(axis=1) + ERROR * rng.normal(size=blocks)
        common = float(effect.std(ddof=1))
        drift = drift_of(model, list(watched))
        plain.append([common] * len(LAGS_S))
        grown.append([drift.day_relative_sd(common, lag) for lag in LAGS_S])
        errors.append(later + ERROR * rng.normal(size=len(LAGS_S)) - worked.mean())
        models.append(model)
    return np.array(plain), np.array(grown), np.array(errors), models


def drift_of(model: VariogramModel, blocks: list[np.ndarray]) -> Drift:
    inside = variance_between(model.slope_per_s, model.range_s, blocks)
    return Drift(
        slope_per_s=model.slope_per_s,
        range_s=None if model.range_s == inf else model.range_s,
        span_s=model.span_s,
        common_relative_sd=inside**0.5,
    )


def inside(error: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """How many runs at each lag are inside the interval that Student's effect of the day makes."""
    return (np.abs(error) <= DAY_QUANTILE * sd).sum(axis=0)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("sd_in_span", [0.005, 0.01, 0.03])
def test_runs_on_a_machine_that_walks_are_inside_for_some_minutes(sd_in_span):
    plain, grown, errors, _ = calibrations_and_runs(walk(sd_in_span), seed=1)
    # Nominal are 95 %; at each lag at least 90 % are wanted, which fails, for a correct program, once in 10^6 seeds.
    assert inside(errors, grown)[:2].min() >= stats.binom.ppf(1e-6 / len(LAGS_S), MACHINES, 0.90)
    # The blocks alone would not do.
    assert inside(errors, plain)[2:].max() < 0.5 * MACHINES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("range_s", "sd"),
    long_but([(range_s, sd) for range_s in (10.0, 30.0, 120.0, 600.0) for sd in (0.01, 0.03)], (30.0, 0.01)),
)
def test_runs_on_a_machine_that_remembers_for_minutes_are_inside_at_every_lag(range_s, sd):
    _, grown, errors, _ = calibrations_and_runs(remembering(range_s, sd), seed=8)
    assert inside(errors, grown).min() >= stats.binom.ppf(1e-6 / len(LAGS_S), MACHINES, 0.90)
    # No wider than some long-run standard deviations, however long after; a random walk would be thirty.
    assert np.median(grown[:, -1]) < 4.0 * max(sd, PRIOR_RELATIVE_SD)


@pytest.mark.slow
@pytest.mark.long
def test_a_machine_that_does_not_wander_is_hardly_predicted_wider():
    plain, grown, errors, _ = calibrations_and_runs(still, seed=2)
    assert inside(errors, grown).min() >= stats.binom.ppf(1e-6 / len(LAGS_S), MACHINES, 0.95)
    # Beside the 2 % of all other layers: 4 % wider five minutes later, a third an hour later.
    usual = [np.hypot(0.02, np.median(each, axis=0)) for each in (plain, grown)]
    assert usual[1][1] / usual[0][1] < 1.05
    assert usual[1][3] / usual[0][3] < 1.35


@pytest.mark.slow
@pytest.mark.long
def test_quick_changes_are_a_bounded_drift():
    """Levels of half a minute: what two minutes show is all that there is."""
    _, grown, errors, _ = calibrations_and_runs(steps(8.0), seed=3)
    assert inside(errors, grown).min() >= stats.binom.ppf(1e-6 / len(LAGS_S), MACHINES, 0.90)


@pytest.mark.slow
@pytest.mark.long
def test_what_two_minutes_do_not_show_is_covered_by_a_part_only():
    """Levels of five minutes, of which two calibrations in three see one only, and an hour's sinusoid at its peak."""
    for machine, seed, least in ((steps(300.0), 4, 0.55), (sinusoid, 5, 0.5)):
        plain, grown, errors, _ = calibrations_and_runs(machine, seed)
        low, before = inside(errors, grown)[2], inside(errors, plain)[2]
        # Twice as many as by the blocks alone, half an hour later, and not the nominal share.
        assert low >= stats.binom.ppf(1e-6, MACHINES, least)
        assert low >= 1.5 * before


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("machine", "seed"), [(steps(300.0), 6), (sinusoid, 7)])
def test_calibrations_over_some_hours_show_it(machine, seed):
    starts_s = (0.0, 1500.0, 4000.0, 5500.0, 9000.0)
    _, grown, errors, models = calibrations_and_runs(machine, seed, starts_s)
    assert inside(errors, grown).min() >= stats.binom.ppf(1e-6 / len(LAGS_S), MACHINES, 0.90)
    assert models[0].span_s > 9000.0


TERMS = ("mnk", "mn", "mk", "nk", "1")
MEAN = np.array([2.5e-11, 1.0e-9, 3.0e-10, 4.0e-10, 1.0e-6])
RANKS = 2


def sizes(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [np.floor(10 ** rng.uniform(1.5, 3.2, count)) for _ in range(3)]


APPLICATION = design_matrix(TERMS, *sizes(np.random.default_rng(1), 20_000)).sum(axis=0)


def calibrated(rng: np.random.Generator, blocks: int, day: float, run: float, own: float, interrupted: float) -> Calls:
    """In each block two processes alone and two pairs, 60 calls each, a share of which takes 3 to 10 times as long."""
    ranks = np.tile([1, 1, 2, 2], blocks)
    launch = np.repeat(np.arange(len(ranks)), ranks)
    block = launch // 4
    effect = (day * rng.normal(size=blocks))[block] + (run * rng.normal(size=len(ranks)))[launch]
    effect += own * rng.normal(size=len(launch))
    call = np.repeat(np.arange(len(launch)), 60)
    mnk = sizes(rng, len(call))
    noise = 0.05 * (np.abs(rng.normal(size=len(call))) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    duration_s = (design_matrix(TERMS, *mnk) @ MEAN) * np.exp(effect[call]) * (1 + noise)
    hit = rng.random(len(call)) < interrupted
    duration_s *= np.where(hit, rng.uniform(3, 10, len(call)), 1.0)
    cpu, probe = (np.tile(each, blocks)[call] for each in ([0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2]))
    yes = np.ones(len(call), dtype=bool)
    return Calls("dgemm_nn", *mnk, duration_s, cpu, block[call], probe, yes, ~yes, ("a", "b", "c"), launch=launch[call])


def intervals(
    blocks: int, day: float, run: float, own: float, interrupted: float, *, campaigns: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The share of further runs in the interval of each calibration, and its half-width in true standard deviations."""
    rng = np.random.default_rng(seed)
    true_s = float(APPLICATION @ MEAN) * (1 + 5.5 * interrupted)
    true_sd = np.sqrt(day**2 + run**2 + own**2 / RANKS)
    covered, half_widths = [], []
    for _ in range(campaigns):
        calls = calibrated(rng, blocks, day, run, own, interrupted)
        kernel = fit_kernel(calls, form=Form("M-2", False, "N-2"))
        kernel = kernel.settled(*machine_excess(piece.pooled for piece in kernel.pieces))
        effects = block_effects([(calls, kernel)])
        fit = kernel.with_effects(process_effects(effects)).pieces[0].pooled
        assert fit.terms == TERMS
        sd, drawn = effects.sd, 2000
        level = rng.multivariate_normal(fit.mean, fit.covariance, drawn, method="eigh") @ APPLICATION
        logs = np.log(np.maximum(level, 1e-3 * true_s))
        logs += sd.block_sd * rng.standard_t(sd.block_degrees_of_freedom, drawn)
        logs += sd.launch_sd * rng.standard_t(sd.launch_degrees_of_freedom, drawn)
        logs += sd.process_sd * rng.standard_t(sd.process_degrees_of_freedom, (RANKS, drawn)).mean(axis=0)
        low, high = (np.quantile(logs, [0.025, 0.975]) - np.log(true_s)) / true_sd
        covered.append(float(stats.norm.cdf(high) - stats.norm.cdf(low)))
        half_widths.append((high - low) / 2)
    return np.array(covered), np.array(half_widths)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "day", "run", "own", "interrupted"),
    [
        (7, 0.02, 0.01, 0.01, 0.0), (7, 0.0, 0.02, 0.01, 0.0), (7, 0.01, 0.01, 0.01, 0.02), (7, 0.04, 0.01, 0.01, 0.0),
        (2, 0.02, 0.01, 0.01, 0.0),
    ],
)  # fmt: skip
def test_further_runs_lie_inside_as_often_as_promised(blocks, day, run, own, interrupted):
    covered, _ = intervals(blocks, day, run, own, interrupted, campaigns=80, seed=20261122)
    # Campaigns differ: the mean of 80 is known to 1.5 %.
    assert np.mean(covered) >= 0.91
