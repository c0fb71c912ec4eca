"""A kernel that a calibration called a few times, in one launch of two ranks, knows how little it knows."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from lepaute.measure.fit.kernels.polynomial import ProcessEffects, design_matrix
from lepaute.measure.fit.kernels.selection import select
from lepaute.measure.fit.observations.calls import Calls

REPETITIONS = 400
#: Seconds per element, and of a call.
MEAN = {"mn": 4e-9, "1": 5e-7}
#: What launches and blocks differ by, which all kernels of a calibration together tell.
EFFECTS = ProcessEffects(of_block=0.02, of_launch=0.02, block_degrees_of_freedom=4)


def called(rng: np.random.Generator, count: int) -> Calls:
    """Copies of NB rows and log-uniform columns, by two ranks of one launch; noise of 5 %."""
    m, n = rng.choice([64.0, 128.0, 256.0], count), np.floor(10 ** rng.uniform(1.5, 3.2, count))
    cpu = np.arange(count) % 2
    effect = 0.02 * rng.normal() + 0.02 * rng.normal() + 0.01 * rng.normal(size=2)[cpu]
    half_normal = (np.abs(rng.normal(size=count)) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    duration_s = (MEAN["mn"] * m * n + MEAN["1"]) * np.exp(effect) * (1 + 0.05 * half_normal)
    zeros, no = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
    inside = ("hpl_steps_options",)
    return Calls("dlaswp06N", m, n, 0.0 * m, duration_s, cpu, zeros, zeros, ~no, no, inside, launch=zeros)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 12, 26, 38])
def test_the_interval_of_an_applications_time_holds_with_few_calls(count: int) -> None:
    rng = np.random.default_rng(20261122)
    m, n = np.full(200, 128.0), np.linspace(100, 3000, 200)
    hits, errors = 0, []
    for _ in range(REPETITIONS):
        kernel, _ = select(called(rng, count), {})
        fit = dataclasses.replace(kernel.pieces[0].pooled, effects=EFFECTS)
        asked = design_matrix(fit.terms, m, n, 0 * m).sum(axis=0)
        truth = MEAN["mn"] * float(m @ n) + MEAN["1"] * len(m)
        error = float(asked @ fit.mean) - truth
        hits += abs(error) <= 1.959964 * float(np.sqrt(asked @ fit.covariance @ asked))
        errors.append(error / truth)
    assert hits >= stats.binom.ppf(1e-4, REPETITIONS, 0.95), hits
    assert np.std(errors) < 0.1  # a wild model would be off by more
