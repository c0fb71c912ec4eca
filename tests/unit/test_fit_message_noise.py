import numpy as np
import pytest

from lepaute.errors import FitError
from lepaute.measure.fit.messages.segment import MOST_MODES, centred, lognormal_modes, of_one_message
from lepaute.measure.fit.mixtures import Mode


def two_modes(count: int = 600, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(count) < 0.8, 0.0, 0.7) + 0.05 * rng.normal(size=count)


def mean_factor(modes: tuple[Mode, ...]) -> float:
    return sum(mode.weight * np.exp(mode.mean + mode.sd**2 / 2) for mode in modes)


def test_the_mean_factor_of_what_is_fitted_is_one():
    for values in (two_modes(), np.random.default_rng(2).exponential(size=300)):
        modes = lognormal_modes(values)
        assert mean_factor(modes) == pytest.approx(1.0, abs=1e-12)
        assert sum(mode.weight for mode in modes) == pytest.approx(1.0, abs=1e-12)
        assert list(modes) == sorted(modes, key=lambda mode: mode.mean)


def test_the_same_values_in_any_order_and_from_any_reference_have_the_same_modes():
    values = two_modes()
    modes = lognormal_modes(values)
    assert lognormal_modes(values) == modes
    assert lognormal_modes(np.random.default_rng(1).permutation(values)) == modes
    for mode, shifted in zip(modes, lognormal_modes(values + np.log(1e-6)), strict=True):  # microseconds
        assert (shifted.weight, shifted.mean, shifted.sd) == pytest.approx(
            (mode.weight, mode.mean, mode.sd), rel=1e-6, abs=1e-6
        )


def test_ticks_of_a_clock_are_no_modes():
    ticks = 300.0 + np.round(2.0 * np.random.default_rng(1).normal(size=1000))  # a sd of 0.7 %, in ticks of 0.3 %
    assert len(lognormal_modes(np.log(ticks))) == 1


def test_equal_durations_have_no_spread():
    (mode,) = lognormal_modes(np.full(50, 0.3))
    assert (mode.weight, mode.sd) == (1.0, pytest.approx(0.0, abs=1e-6))
    assert mode.mean == pytest.approx(0.0, abs=1e-9)


def test_a_few_odd_messages_are_no_mode():
    values = np.concatenate([0.1 * np.random.default_rng(1).normal(size=500), [2.0, 2.01, 2.02]])
    assert max(mode.mean for mode in lognormal_modes(values)) < 1.0


def test_there_are_never_more_modes_than_stated():
    values = np.concatenate([at + 0.02 * np.random.default_rng(at).normal(size=300) for at in range(8)])
    assert len(lognormal_modes(values)) <= MOST_MODES


def test_too_few_messages_have_no_modes():
    assert lognormal_modes(two_modes(9)) == ()


def test_durations_that_are_no_numbers_are_refused():
    with pytest.raises(FitError, match="finite durations"):
        lognormal_modes(np.log(np.array([1.0] * 20 + [np.nan])))


def test_one_message_of_a_pair_varies_more_within_a_mode_and_keeps_the_modes():
    pair = centred([Mode(0.5, 0.0, 0.1), Mode(0.5, 1.0, 0.2)])
    one = of_one_message(pair)
    assert [mode.sd for mode in one] == pytest.approx([0.1 * 2**0.5, 0.2 * 2**0.5])
    assert one[1].mean - one[0].mean == pytest.approx(1.0)
    assert mean_factor(one) == pytest.approx(1.0)
