"""The two-sample rank test in blocks: equal to SciPy's where that has the same, and exact against all arrangements."""

from itertools import combinations, product
from math import inf

import numpy as np
import pytest
from scipy import stats

from lepaute.stats import aligned_ranks
from lepaute.stats.aligned_ranks import aligned_rank_test, aligned_shift, least_p_of


def two(first, second):
    return np.concatenate([first, second]), np.repeat([False, True], [len(first), len(second)])


def test_with_one_block_it_is_the_test_of_mann_and_whitney() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=12), rng.normal(size=9) + 0.7
    values, second = two(x, y)
    seen = aligned_rank_test(values, second, np.zeros(21))
    for p, alternative in ((seen.two_sided, "two-sided"), (seen.higher, "greater"), (seen.lower, "less")):
        assert p == pytest.approx(stats.mannwhitneyu(y, x, alternative=alternative, method="exact").pvalue)
    shift = aligned_shift(values, second, np.zeros(21))
    assert shift.estimate == pytest.approx(np.median(np.subtract.outer(y, x)), abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_the_distribution_in_blocks_is_that_of_all_arrangements(ties: bool) -> None:
    rng = np.random.default_rng(2)
    sizes, chosen = (4, 3, 5), (2, 1, 3)
    blocks = np.repeat(np.arange(3), sizes)
    values = rng.normal(size=12) + 10 * blocks
    if ties:
        values = np.round(values)
    second = np.concatenate([np.arange(n) < k for n, k in zip(sizes, chosen, strict=True)])
    aligned = np.concatenate([values[blocks == b] - np.median(values[blocks == b]) for b in range(3)])
    ranks = stats.rankdata(aligned)
    starts = np.cumsum([0, *sizes])[:-1]
    sums = [
        sum(ranks[start + place] for start, places in zip(starts, choice, strict=True) for place in places)
        for choice in product(*(combinations(range(n), k) for n, k in zip(sizes, chosen, strict=True)))
    ]
    seen = ranks[second].sum()
    test = aligned_rank_test(values, second, blocks)
    assert test.higher == pytest.approx(np.mean(np.array(sums) >= seen - 1e-9))
    assert test.lower == pytest.approx(np.mean(np.array(sums) <= seen + 1e-9))
    assert test.two_sided == pytest.approx(min(1, 2 * min(test.higher, test.lower)))


def test_what_blocks_have_in_common_is_taken_off() -> None:
    rng = np.random.default_rng(3)
    blocks = np.repeat(np.arange(12), 2)
    second = np.tile([False, True], 12)
    values = rng.normal(scale=0.01, size=24) + 5 * rng.normal(size=12)[blocks] + 0.05 * second
    assert aligned_rank_test(values, second, blocks).two_sided < 0.001
    assert aligned_rank_test(values, second, np.zeros(24)).two_sided > 0.2
    shift = aligned_shift(values, second, blocks)
    assert shift.low < 0.05 < shift.high
    assert shift.high - shift.low < 0.03


def test_the_normal_approximation_is_close_where_the_exact_distribution_takes_too_long(monkeypatch) -> None:
    rng = np.random.default_rng(4)
    values, second = two(rng.normal(size=25), rng.normal(size=25) + 0.4)
    blocks = np.tile(np.arange(5), 10)
    exact = aligned_rank_test(values, second, blocks)
    monkeypatch.setattr(aligned_ranks, "MAX_ADDITIONS", 0)
    normal = aligned_rank_test(values, second, blocks)
    assert normal.two_sided == pytest.approx(exact.two_sided, rel=0.1)
    assert (normal.lower, normal.higher) == pytest.approx((exact.lower, exact.higher), rel=0.1)


def test_what_cannot_be_compared_says_nothing() -> None:
    alone = aligned_rank_test([1.0, 2.0], [False, True], ["a", "b"])
    assert alone.two_sided == least_p_of([False, True], ["a", "b"]) == 1.0
    nothing = aligned_shift([1.0, 2.0], [False, True], ["a", "b"])
    assert (nothing.low, nothing.high) == (-inf, inf)
    few = aligned_rank_test([1.0, 2.0, 3.0, 4.0], [False, False, True, True], np.zeros(4))
    assert few.two_sided == least_p_of([False, False, True, True], np.zeros(4)) == pytest.approx(1 / 3)
    assert aligned_shift([1.0, 2.0, 3.0, 4.0], [False, False, True, True], np.zeros(4)).low == -inf
    assert aligned_rank_test(np.ones(8), np.arange(8) < 4, np.zeros(8)).two_sided == 1.0
