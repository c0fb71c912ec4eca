"""Orders and draws of designs have the probabilities that they should."""

from collections import Counter
from itertools import permutations

from scipy import stats

from lepaute.measure.design import full_factorial, log_uniform, sample, uniform


def within(found: int, count: int, probability: float, chance: float) -> bool:
    """Whether a count lies within the binomial's bounds, outside of which it lies with `chance`."""
    low, high = stats.binom.ppf([chance / 2, 1 - chance / 2], count, probability)
    return bool(low <= found <= high)


def test_every_order_of_four_treatments_is_equally_probable_over_seeds() -> None:
    count = 6000
    orders = Counter(tuple(full_factorial({"a": [0, 1, 2, 3]}, seed=seed).column("a")) for seed in range(count))
    # 24 orders, all within bounds that each leaves once in a million
    assert set(orders) == set(permutations(range(4)))
    assert all(within(found, count, 1 / 24, 1e-6) for found in orders.values())


def test_whole_numbers_are_equally_probable_and_streams_are_independent() -> None:
    rows = sample({"a": uniform(3, 8), "b": uniform(3, 8)}, count=6000, seed=20261121).rows
    pairs = Counter(rows)
    assert set(pairs) == {(a, b) for a in range(3, 9) for b in range(3, 9)}
    assert all(within(found, 6000, 1 / 36, 1e-6) for found in pairs.values())


def test_decades_of_a_log_uniform_factor_are_equally_probable() -> None:
    sizes = sample({"n": log_uniform(1.0, 1e6)}, count=6000, seed=7).column("n")
    for decade in range(6):
        found = sum(10**decade <= float(n) < 10 ** (decade + 1) for n in sizes)  # type: ignore[arg-type]
        assert within(found, 6000, 1 / 6, 1e-6)
