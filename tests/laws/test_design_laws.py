"""Laws of the draws of sizes, over random arguments."""

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lepaute.measure.design import dgemm_design, hpl_step_design, p2p_design
from lepaute.measure.design.sizes import (
    log_uniform_bytes,
    permutations_within,
    shuffled,
    stratified_log_uniform,
    stratified_uniform,
    triple_of_product,
)

seeds = st.integers(0, 2**32)
bounds = st.tuples(*[st.integers(20, 5000)] * 3)


@given(seeds, bounds, st.floats(0, 1))
def test_a_triple_respects_its_bounds_and_comes_within_ten_percent_of_its_product(seed, most, position):
    product = 10 * math.exp(position * math.log(0.05 * math.prod(most)))  # below 10 integers are too far apart
    triple = triple_of_product(np.random.default_rng(seed), product, most)
    assert all(1 <= size <= bound for size, bound in zip(triple, most, strict=True))
    assert abs(math.prod(triple) / product - 1) <= 0.1


@given(st.tuples(*[st.integers(1, 30)] * 3), st.tuples(*[st.integers(1, 30)] * 3))
def test_permutations_are_all_distinct_orders_within_the_bounds(triple, most):
    found = permutations_within(triple, most)
    assert len(set(found)) == len(found)
    for order in itertools.permutations(triple):
        assert (order in found) == all(size <= bound for size, bound in zip(order, most, strict=True))


@given(seeds, st.integers(0, 60), st.floats(1, 1e6), st.floats(1, 1e6))
def test_each_logarithmic_stratum_holds_exactly_one_value(seed: int, count: int, low: float, factor: float) -> None:
    values = stratified_log_uniform(np.random.default_rng(seed), count, low, low * factor)
    assert len(values) == count
    for stratum, value in enumerate(values):
        # 1e-9: rounding of the exponential at the edges of a stratum
        assert (
            low * factor ** (stratum / count) * (1 - 1e-9)
            <= value
            <= low * factor ** ((stratum + 1) / count) * (1 + 1e-9)
        )


@given(seeds, st.integers(1, 60), st.integers(1, 10_000), st.integers(0, 10_000))
def test_stratified_integers_stay_in_their_range_and_rise(seed: int, count: int, low: int, width: int) -> None:
    values = stratified_uniform(np.random.default_rng(seed), count, low, low + width)
    assert len(values) == count
    assert values == sorted(values)
    assert low <= values[0]
    assert values[-1] <= low + width


@given(seeds, st.lists(st.integers()))
def test_shuffling_keeps_every_row(seed: int, rows: list[int]) -> None:
    assert sorted(shuffled(np.random.default_rng(seed), rows)) == sorted(rows)


def test_message_sizes_are_uniform_in_the_logarithm() -> None:
    sizes = log_uniform_bytes(np.random.default_rng(20261121), 5000, 1, 64 << 20)
    assert min(sizes) >= 1
    assert max(sizes) <= 64 << 20
    # Only above 1000 bytes, where rounding to whole bytes moves the logarithm by less than 0.001.
    logs = [math.log(size) for size in sizes if size > 1000]
    span = math.log((64 << 20) / 1000)
    verdict = stats.kstest((np.array(logs) - math.log(1000)) / span, "uniform")
    assert verdict.pvalue > 1e-3  # fixed seed; another seed fails one time in a thousand
    # 10 decades of 2 in [1, 1024) of 26 decades of 2 in all: binomial, one in a million outside
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], 5000, 10 / 26)
    assert low <= sum(size < 1024 for size in sizes) <= high


def test_given_the_product_the_three_sizes_follow_one_law() -> None:
    rng = np.random.default_rng(7)
    triples = np.log([triple_of_product(rng, 1e7, (2000, 2000, 2000)) for _ in range(1500)])
    for first, second in ((0, 1), (0, 2), (1, 2)):
        verdict = stats.ks_2samp(triples[:, first], triples[:, second])
        assert verdict.pvalue > 1e-4


@settings(max_examples=30)
@given(seeds)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(seed: int) -> None:
    for make in (
        lambda s: dgemm_design(s, products=8, product_range=(1e3, 1e6)),
        lambda s: hpl_step_design(s, rows=6, max_n=2000),
        lambda s: p2p_design(s, counts={"recv": 5, "wtime": 5}),
    ):
        assert make(seed).to_csv() == make(seed).to_csv()
        assert make(seed).rows != make(seed + 1).rows


block_sizes = st.lists(st.integers(1, 256), min_size=1, max_size=4, unique=True)


@given(seeds, st.integers(1, 40), block_sizes, st.integers(0, 6000), st.integers(1, 4), st.integers(0, 3))
def test_every_matrix_of_a_step_has_room_for_its_steps_and_chunks(seed, rows, nbs, beyond, fewest, more):
    max_n = fewest * max(nbs) + beyond
    design = hpl_step_design(seed, rows=rows, nbs=nbs, max_n=max_n, steps=(fewest, fewest + more))
    assert len(design) == rows
    for row in design:
        m, n, nb, chunks, steps = (int(row[key]) for key in ("m", "n", "nb", "chunks", "steps"))
        assert fewest * nb <= n <= m <= max_n
        assert fewest <= steps <= fewest + more
        assert n >= (steps + chunks) * nb  # what the probe needs


@given(seeds, st.integers(2, 40), block_sizes)
def test_block_sizes_have_as_many_steps_each_and_the_largest_and_a_smallest_matrix_are_there(seed, rows, nbs):
    drawn = [(int(row["m"]), int(row["nb"])) for row in hpl_step_design(seed, rows=rows, nbs=nbs, max_n=3000)]
    counts = [sum(nb == own for _, own in drawn) for nb in nbs]
    assert max(counts) - min(counts) <= 1
    assert max(m for m, _ in drawn) == 3000
    assert any(m == 2 * nb for m, nb in drawn)


def test_rows_are_shuffled_kinds_interleaved() -> None:
    operations = [operation for operation, _ in p2p_design(11).rows]
    runs = sum(a != b for a, b in itertools.pairwise(operations)) + 1
    # 720 rows of 7 kinds in random order: about 610 runs; sorted by kind there would be 7
    assert runs > 500
