"""What the search for modes of noise promises: to find those that are there, and no others."""

import numpy as np
import pytest
from scipy import stats

from lepaute.measure.fit.messages.segment import centred, lognormal_modes
from lepaute.measure.fit.mixtures import Mode

POINTS = 1000
SETS = 60
#: Modes well apart, four standard deviations of the wider one or more; factors on a duration.
TRUTHS = (
    (Mode(1.0, 0.0, 0.1),),
    (Mode(0.7, 0.0, 0.05), Mode(0.3, np.log(1.5), 0.05)),
    (Mode(0.6, 0.0, 0.05), Mode(0.3, np.log(1.6), 0.08), Mode(0.1, np.log(3.0), 0.1)),
)


def drawn(modes: tuple[Mode, ...], count: int, rng: np.random.Generator) -> np.ndarray:
    which = rng.choice(len(modes), count, p=[mode.weight for mode in modes])
    return np.array([modes[i].mean for i in which]) + np.array([modes[i].sd for i in which]) * rng.normal(size=count)


@pytest.mark.slow
@pytest.mark.long
def test_modes_that_stand_apart_are_found_in_number_place_and_share():
    rng = np.random.default_rng(20260611)
    right = np.zeros(len(TRUTHS))
    for number, truth in enumerate(TRUTHS):
        for _ in range(SETS // len(TRUTHS)):
            found = lognormal_modes(drawn(truth, POINTS, rng))
            if len(found) != len(truth):
                continue
            right[number] += 1
            for seen, true in zip(found, centred(truth), strict=True):
                own = true.weight * POINTS
                # Five standard errors of a share, a mean and a standard deviation, and what little modes overlap.
                assert abs(seen.weight - true.weight) < 5 * np.sqrt(true.weight * (1 - true.weight) / POINTS) + 0.005
                assert abs(seen.mean - true.mean) < 0.03 + 5 * true.sd / np.sqrt(own)
                assert abs(seen.sd - true.sd) < 5 * true.sd / np.sqrt(2 * own) + 0.01
    # A number of modes too many is found in 1 data set of 50 at most: of 20, fewer than 17 right are a matter of 1e-5.
    least = stats.binom.ppf(1e-5, SETS // len(TRUTHS), 0.98)
    assert (right >= least).all(), right


def test_noise_without_modes_of_its_own_still_has_its_mean_and_spread():
    """The tail of a half-normal is no mixture of normals, and takes two or three of them; what is drawn from them has
    the mean and, nearly, the quantiles of what was measured."""
    rng = np.random.default_rng(7)
    factor = 1.0 + 0.2 * np.abs(rng.normal(size=4000))
    modes = lognormal_modes(np.log(factor))
    again = np.exp(drawn(modes, 100_000, rng))
    assert abs(np.mean(again) - 1.0) < 5 * np.std(again) / np.sqrt(100_000)
    expected = np.quantile(factor / np.mean(factor), [0.05, 0.5, 0.95, 0.99])
    assert np.allclose(np.quantile(again, [0.05, 0.5, 0.95, 0.99]), expected, rtol=0.02)
