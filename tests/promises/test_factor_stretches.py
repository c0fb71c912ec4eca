"""Factors whose levels were measured one after the other: no more false alarms than stated, and what can be shown."""

import numpy as np
import pandas
import pytest
from scipy import stats

from lepaute.measure.fit.observations.factors import FactorTest, factor_tests

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
