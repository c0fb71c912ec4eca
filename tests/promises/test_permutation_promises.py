"""What the permutation test promises: no more false alarms than stated, power, an interval that covers."""

import numpy as np
import pytest
from scipy import stats

from lepaute.stats.multiple_tests import holm
from lepaute.stats.permutation import permutation_test

LEVELS = ("random", "constant", "masked:40")


def calls(rng: np.random.Generator, effect: float, noise: float = 0.02) -> tuple[np.ndarray, list[str], list[str]]:
    """Log durations as a calibration measures them: two sizes, five blocks on two cores, four calls of each content.

    effect: of `constant`, relative
    Blocks and sizes differ by far more than the effect; noise is skewed, and one call in fifty takes half as long
    again.
    """
    values, labels, strata = [], [], []
    for block in range(10):
        level = rng.normal(0, 0.1)
        for size, scale in (("small", -7.0), ("large", -4.0)):
            for content in np.repeat(LEVELS, 4):
                late = 0.4 * (rng.random() < 0.02)
                shift = np.log1p(effect) if content == "constant" else 0.0
                values.append(scale + level + shift + late + noise * abs(rng.normal()) / 0.6)
                labels.append(str(content))
                strata.append(f"{block} {size}")
    return np.array(values), labels, strata


@pytest.mark.slow
@pytest.mark.long
def test_false_alarms_are_no_more_than_promised() -> None:
    rng = np.random.default_rng(20261121)
    n = 400
    alarms = sum(permutation_test(*calls(rng, 0.0), permutations=199, seed=i).p_value <= 0.05 for i in range(n))
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, 0.05)  # 4..46
    assert low <= alarms <= high


def test_an_effect_of_two_per_cent_is_found_and_its_interval_covers_it() -> None:
    rng = np.random.default_rng(11)
    n, found, covered = 200, 0, 0
    for i in range(n):
        result = permutation_test(*calls(rng, 0.02), reference="random", permutations=399, seed=i)
        (effect,) = [one for one in result.effects if one.level == "constant"]
        found += result.p_value <= 0.05
        covered += effect.low <= np.log(1.02) <= effect.high
    assert found >= 0.9 * n
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, 0.95)
    assert low <= covered <= high


def test_all_arrangements_are_looked_at_where_there_are_few() -> None:
    # Seven units in the order of their levels: of 7! orders only this one and its reverse are as clear a trend.
    result = permutation_test(
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], list("abcdefg"), [0] * 7, ordered="abcdefg", permutations=9999
    )
    assert (result.exact, result.permutations, result.p_value) == (True, 5040, 2 / 5040)
    # One unit a level and no order: every exchange is as clear, and nothing can be told.
    assert permutation_test([1.0, 2.0, 9.0], list("abc"), [0] * 3).p_value == 1.0
    # Two pairs: four arrangements, of which the observed one and its mirror image are the clearest.
    pairs = permutation_test([1.0, 2.0, 5.0, 7.0], ["a", "b", "a", "b"], [0, 0, 1, 1])
    assert (pairs.exact, pairs.permutations, pairs.p_value) == (True, 4, 0.5)
    assert pairs.effects[0].difference == pytest.approx(1.5)
    assert np.isnan(pairs.effects[0].low)


def test_a_factor_that_never_varies_inside_a_stratum_cannot_be_told() -> None:
    result = permutation_test([1.0, 1.1, 2.0, 2.1], ["a", "a", "b", "b"], [0, 0, 1, 1])
    assert (result.n, result.p_value, result.effects) == (0, 1.0, ())


def test_the_same_seed_gives_the_same_result_and_a_common_shift_changes_no_p_value() -> None:
    values, labels, strata = calls(np.random.default_rng(3), 0.01)
    one = permutation_test(values, labels, strata, permutations=199, seed=5)
    assert one == permutation_test(values, labels, strata, permutations=199, seed=5)
    shifted = permutation_test(values + 3.0, labels, strata, permutations=199, seed=5)
    assert shifted.p_value == one.p_value


def test_holm_s_correction_is_that_of_the_paper() -> None:
    # Smallest times 4, next times 3, ...; never below one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == ()
    assert holm([0.9, 0.8]) == (1.0, 1.0)
