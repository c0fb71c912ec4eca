"""What permutation tests promise, also of factors whose levels were measured one after the other."""

import numpy as np
import pandas
import pytest
from scipy import stats

from lepaute.measure.fit.observations.factors import FactorTest, factor_tests
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


def test_all_of_few_arrangements_are_looked_at_a_seed_gives_one_result_and_a_constant_factor_none() -> None:
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
    result = permutation_test([1.0, 1.1, 2.0, 2.1], ["a", "a", "b", "b"], [0, 0, 1, 1])
    assert (result.n, result.p_value, result.effects) == (0, 1.0, ())
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


REPETITIONS = 200


def result_of(rng: np.random.Generator, how: str, effect: float = 0.0) -> FactorTest:
    """Ten processes of 60 calls on two sizes, whose core wanders by 2 % over some ten calls; noise of 2 %.

    how: the order of the two levels: "shuffled"; "stretches", six of ten calls in random order; "same", four of
         fifteen, in the same order in all processes
    """
    frames = []
    for process in range(10):
        if how == "shuffled":
            level = rng.permutation(np.repeat(["a", "b"], 30))
        elif how == "stretches":
            level = np.repeat(rng.permutation(["a", "a", "a", "b", "b", "b"]), 10)
        else:
            level = np.repeat(["a", "b", "a", "b"], 15)
        core = np.zeros(60)
        state = rng.normal()
        for call in range(60):
            state = 0.9 * state + np.sqrt(1 - 0.9**2) * rng.normal()
            core[call] = 0.02 * state
        size = rng.choice([100, 300], 60)
        log_s = np.log(1e-8 * size**2) + core + 0.02 * rng.normal(size=60) + effect * (level == "b")
        start_s = 1000.0 * process + np.arange(60)
        frames.append(
            pandas.DataFrame(
                {"process": process, "block": process // 2, "policy": level, "m": size, "start_s": start_s}
            ).assign(kernel="dgemm", duration_s=np.exp(0.05 * rng.normal() + log_s))
        )
    # The order is that of start_s, not of the rows.
    table = pandas.concat(frames, ignore_index=True).sample(frac=1.0, random_state=1)
    (test,) = factor_tests(table, factors=("policy",), permutations=199)
    return test


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("how", ["shuffled", "stretches"])
def test_false_alarms_are_no_more_than_stated_and_intervals_hold(how):
    rng = np.random.default_rng(20261122)
    results = [result_of(rng, how) for _ in range(REPETITIONS)]
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], REPETITIONS, 0.05)  # 0..26; calls exchanged would alarm in 54 of 200
    assert low <= sum(test.p_value <= 0.05 for test in results) <= high
    covered = sum(test.effects[0].low <= 1.0 <= test.effects[0].high for test in results)
    assert covered >= stats.binom.ppf(1e-6, REPETITIONS, 0.95)
    # One shuffled order in forty has so few stretches.
    by_stretch = sum(test.exchanged == "stretches" for test in results)
    assert by_stretch == REPETITIONS if how == "stretches" else by_stretch <= 20


@pytest.mark.slow
def test_an_effect_of_several_per_cent_is_found_between_stretches():
    rng = np.random.default_rng(3)
    assert sum(result_of(rng, "stretches", 0.04).p_value <= 0.05 for _ in range(50)) >= 40


def test_the_same_order_in_all_processes_proves_little_and_that_is_said():
    test = result_of(np.random.default_rng(4), "same", 0.3)
    assert (test.exchanged, test.n, test.matters) == ("places", 4, False)
    assert "not testable" in test.note
    assert "levels were measured one after the other, in the same order by all processes: shuffle them" in test.note
