"""Designs of dgemm: the sizes an application uses, and the general ones."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from lepaute.cli.main import main
from lepaute.measure.design import dgemm_calls_design, dgemm_sizes_design, read_design


def sizes(design) -> list[tuple[int, int, int]]:
    return [tuple(int(value) for value in row[1:]) for row in design.rows]


def test_sizes_come_by_their_shares_of_time_and_of_calls() -> None:
    # a quarter of the time and nine tenths of the calls in small ones
    used = [(100, 100, 8, 900.0, 1.0), (1000, 1000, 128, 50.0, 1.5), (2000, 1000, 128, 50.0, 1.5)]
    counted = Counter(sizes(dgemm_calls_design(1, used, rows=400)))
    # systematic sampling leaves at most one of each half to chance
    expected = {(100, 100, 8): 50 + 180, (1000, 1000, 128): 75 + 10, (2000, 1000, 128): 75 + 10}
    assert {size: counted[size] for size in expected} == {
        size: pytest.approx(count, abs=2) for size, count in expected.items()
    }
    assert sum(counted.values()) == 400


def test_independent_sizes_keep_their_bounds_and_are_independent() -> None:
    triples = np.array(
        sizes(dgemm_sizes_design(1, "independent", count=4000, most=(500, 300, 100), highest_product=1e9))
    )
    assert np.all(triples >= 1)
    assert triples.max(axis=0).tolist() <= [500, 300, 100]
    # uniform: mean at the middle, five standard errors
    assert np.all(np.abs(triples.mean(axis=0) / [250.5, 150.5, 50.5] - 1) < 5 * 0.577 / 4000**0.5)
    assert np.all(np.abs(np.corrcoef(triples.T) - np.eye(3)) < 5 / 4000**0.5)
    held = sizes(dgemm_sizes_design(1, "independent", count=200, most=(500, 500, 500), highest_product=1e6))
    assert max(m * n * k for m, n, k in held) <= 1e6


def test_products_are_uniform_and_come_in_all_orders() -> None:
    triples = sizes(dgemm_sizes_design(2, "product", count=1200, most=(20_000, 20_000, 20_000)))
    groups = Counter(tuple(sorted(triple)) for triple in triples)
    assert all(count == len(set(_orders(key))) * (count // len(set(_orders(key)))) for key, count in groups.items())
    products = np.sort([float(np.prod(key)) for key in groups])
    uniform = (np.arange(len(products)) + 0.5) / len(products) * 1.3e9
    assert np.max(np.abs(products - uniform)) < 0.02 * 1.3e9  # one in each stratum, but for rounding to whole sizes


def _orders(key: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(permutations(key))


def test_fixed_k_has_only_the_values_asked_for_in_equal_parts() -> None:
    design = dgemm_sizes_design(3, "fixed-k", count=600, fixed_k=(128, 256, 512))
    counted = Counter(k for _, _, k in sizes(design))
    assert set(counted) == {128, 256, 512}
    assert max(counted.values()) - min(counted.values()) <= 4
    assert design.header["k"] == "128 256 512"


def test_the_command_takes_the_sizes_of_a_run_and_says_what_they_are_for(tmp_path) -> None:
    file = tmp_path / "d.csv"
    command = ["design", "dgemm", "--for", "hpl", "--n", "8k", "--nb", "96", "--grid", "2x4", "--rows", "100"]
    assert main([*command, "-o", str(file)]) == 0
    design = read_design(file)
    assert {key: design.header[key] for key in ("for", "n", "nb", "p", "q", "rows")} == {
        "for": "hpl", "n": "8000", "nb": "96", "p": "2", "q": "4", "rows": "100",
    }  # fmt: skip
    by_time = sum(k == 96 for _, _, k in sizes(design))
    assert by_time >= 40  # nearly all the time is in updates, at the depth of a block
    assert all(m <= 4096 and n <= 2048 and k <= 96 for m, n, k in sizes(design))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--n", "500"], "--for hpl"),
        (["--for", "hpl"], "--n N"),
        (["--for", "hpl", "--n", "500", "--highest", "10"], "leave out --highest"),
        (["--sizes", "product", "--k", "5"], "fixed-k"),
        (["--rows", "5"], "log-product"),
        (["--sizes", "product", "--highest", "inf"], "--highest is inf"),
        (["--sizes", "fixed-k", "--highest", "nan"], "--highest is nan"),
        (["--for", "hpl", "--n", "1e300"], "does not fit in 64 bits"),
        (["--sizes", "independent", "--rows", "999999999999"], "--rows is '999999999999'; it must be at most"),
    ],
)
def test_options_that_mean_nothing_together_are_refused_in_one_line(options, told, refusal_of):
    assert told in refusal_of("design", "dgemm", *options)
