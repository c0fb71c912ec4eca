"""The error that a kernel's model claims of itself holds where processes differ, and where calls are interrupted.

Calibrations are made up as they are measured: in each block two processes started alone and two pairs of ranks started
together, with an effect of the block, of the launch and of the process on all of their calls.
"""

import dataclasses

import numpy as np
import pytest
from long_tests import long_but
from scipy import stats

from lepaute.measure.fit.kernels.polynomial import PolynomialFit, ProcessEffects, design_matrix, fit_polynomial

TERMS = ("mnk", "mn", "mk", "nk", "1")
MEAN = np.array([2.5e-11, 1.0e-9, 3.0e-10, 4.0e-10, 1.0e-6])
#: Ranks of the launches of a block.
LAUNCHES = (1, 1, 2, 2)
REPETITIONS = 200


def sizes(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [10 ** rng.uniform(1.0, 3.5, count) for _ in range(3)]


#: What an application asks of the model: the sum over many calls, as factors of the coefficients.
APPLICATION = design_matrix(TERMS, *sizes(np.random.default_rng(1), 20_000)).sum(axis=0)


def calibrated(
    rng: np.random.Generator, blocks: int, own: float = 0.0, run: float = 0.0, day: float = 0.0, clustered: bool = True
) -> PolynomialFit:
    """A fit to 60 calls a process, whose effects have these relative standard deviations; noise of 5 %."""
    ranks = np.tile(LAUNCHES, blocks)
    of_block = np.repeat(np.arange(blocks), len(LAUNCHES))
    effect = (day * rng.normal(size=blocks))[of_block] + run * rng.normal(size=len(ranks))
    launch = np.repeat(np.arange(len(ranks)), ranks)
    effect = effect[launch] + own * rng.normal(size=len(launch))
    call = np.repeat(np.arange(len(launch)), 60)
    mnk = sizes(rng, len(call))
    half_normal = (np.abs(rng.normal(size=len(call))) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    duration_s = (design_matrix(TERMS, *mnk) @ MEAN) * (1 + effect[call]) * (1 + 0.05 * half_normal)
    if not clustered:
        return fit_polynomial(TERMS, *mnk, duration_s)
    launch = launch[call]
    return fit_polynomial(TERMS, *mnk, duration_s, launch=launch, block=of_block[launch])


def hits_and_widths(fits: list[PolynomialFit]) -> tuple[np.ndarray, float, float]:
    """How often the coefficients and the application's time lie in their 95 % intervals; the true standard deviation of
    that time, and the median of what is claimed."""
    asked = np.vstack([np.eye(len(MEAN)), APPLICATION])
    errors = np.array([asked @ (fit.mean - MEAN) for fit in fits])
    sds = np.array([np.sqrt(np.einsum("ij,jk,ik->i", asked, fit.covariance, asked)) for fit in fits])
    hits = np.sum(np.abs(errors) <= 1.959964 * sds, axis=0)
    return hits, float(errors[:, -1].std()), float(np.median(sds[:, -1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "own", "run"),
    long_but([(5, 0.02, 0.0), (5, 0.01, 0.02), (2, 0.02, 0.0), (5, 0.0, 0.0)], (5, 0.01, 0.02)),
)
def test_intervals_of_coefficients_and_of_the_application_hold_where_processes_differ(blocks, own, run):
    rng = np.random.default_rng(20261122)
    hits, true_sd, claimed_sd = hits_and_widths([calibrated(rng, blocks, own, run) for _ in range(REPETITIONS)])
    assert np.all(hits >= stats.binom.ppf(1e-4, REPETITIONS, 0.95)), hits  # 176 of 200
    assert claimed_sd < 1.6 * true_sd


@pytest.mark.slow
def test_calls_taken_for_independent_would_claim_too_much():
    rng = np.random.default_rng(20261122)
    hits, _, _ = hits_and_widths([calibrated(rng, 5, 0.02, clustered=False) for _ in range(100)])
    assert hits[-1] < stats.binom.ppf(1e-6, 100, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("blocks", long_but([5, 2], 2))
def test_an_effect_of_whole_blocks_is_part_of_the_error_once_it_is_known(blocks):
    rng = np.random.default_rng(3)
    fits = [calibrated(rng, blocks, 0.01, 0.01, 0.02) for _ in range(REPETITIONS)]
    low = stats.binom.ppf(1e-4, REPETITIONS, 0.95)
    assert hits_and_widths(fits)[0][-1] < low
    effects = ProcessEffects(of_block=0.02, of_launch=0.014, block_degrees_of_freedom=blocks - 1)
    hits, _, _ = hits_and_widths([dataclasses.replace(fit, effects=effects) for fit in fits])
    assert np.all(hits >= low), hits


@pytest.mark.slow
@pytest.mark.parametrize("calls", long_but([400, 1600], 400))
def test_the_error_of_a_mean_with_interrupted_calls_holds(calls):
    """2 % of calls take 3 to 10 times as long: the mean of 400 is known to 4 %, not to the 0.17 % of their noise."""
    rng = np.random.default_rng(5)
    ones, launch = np.ones(calls), np.arange(calls) * 12 // calls
    share, mean_factor = 0.02, 6.5
    hits, errors, claimed = 0, [], []
    for _ in range(REPETITIONS):
        factor = np.where(rng.random(calls) < share, rng.uniform(3, 10, calls), 1.0)
        duration_s = 1e-3 * (1 + 0.034 * rng.normal(size=calls)) * factor
        fit = fit_polynomial(("1",), ones, ones, ones, duration_s, launch=launch)
        errors.append(fit.mean[0] / 1e-3 - (1 + share * (mean_factor - 1)))
        claimed.append(float(np.sqrt(fit.covariance[0, 0])) / 1e-3)
        hits += abs(errors[-1]) <= 1.959964 * claimed[-1]
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(REPETITIONS)  # nothing is thrown away
    assert hits >= stats.binom.ppf(1e-4, REPETITIONS, 0.95)
    assert 0.8 * np.std(errors) < np.median(claimed) < 1.6 * np.std(errors)
