"""Small matrices in a fixed order of operations: what NumPy says, and zeros where something is rounding."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from lepaute.measure.fit.numeric import INDISTINCT, first_of_largest, simplest
from lepaute.stats import algebra

SEEDS = range(40)


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of very different scales, a target, weights."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(10, 300)), int(rng.integers(1, 8))
    x = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-4, 4, p)
    return x, rng.normal(size=n) + x @ (rng.normal(size=p) / np.abs(x).max(axis=0)), rng.uniform(0.1, 2.0, n)


@pytest.mark.parametrize("seed", SEEDS)
def test_products_are_those_of_numpy(seed: int) -> None:
    x, y, weight = problem(seed)
    size = np.sqrt(np.sum(x**2, axis=0))
    gram = algebra.squares(x, weight)
    assert np.array_equal(gram, gram.T)
    assert gram / np.outer(size, size) == pytest.approx((x * weight[:, None]).T @ x / np.outer(size, size), abs=1e-13)
    assert algebra.products(x, y) / size == pytest.approx(x.T @ y / size, rel=1e-12, abs=1e-12)
    assert algebra.times(x.T, x) / np.outer(size, size) == pytest.approx(x.T @ x / np.outer(size, size), abs=1e-13)
    assert algebra.times(x, np.ones(x.shape[1])) == pytest.approx(x.sum(axis=1), rel=1e-12, abs=1e-12 * size.max())


@pytest.mark.parametrize("seed", SEEDS)
def test_least_squares_are_those_of_lapack_and_nnls(seed: int) -> None:
    x, y, weight = problem(seed)
    root = np.sqrt(weight)
    gram, moment = algebra.squares(x, weight), algebra.products(x, weight * y)

    def left(coefficients: np.ndarray) -> float:
        return float(np.sum(weight * (y - x @ coefficients) ** 2))

    free = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
    assert algebra.solution(gram, moment) == pytest.approx(free, rel=1e-7)
    bounded = algebra.nonnegative_solution(gram, moment)
    assert np.all(bounded >= 0)
    assert left(bounded) == pytest.approx(left(nnls(x * root[:, None], y * root)[0]), rel=1e-9)
    size = np.abs(x).max(axis=0)
    least = np.append(np.zeros(x.shape[1] - 1), -np.inf)
    parted = lsq_linear(x / size * root[:, None], y * root, (least, np.inf), method="bvls", tol=1e-12).x / size
    last_free = algebra.nonnegative_solution(gram, moment, last_free=True)
    assert np.all(last_free[:-1] >= 0)
    assert left(last_free) == pytest.approx(left(parted), rel=1e-9)
    data = np.column_stack([x / np.abs(x).max(axis=0), y])
    assert algebra.residuals(algebra.squares(data, weight)[None], 1e-12)[0] == pytest.approx(left(free), rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_eigenvalues_and_vectors_are_those_of_lapack(seed: int) -> None:
    x, _, _ = problem(seed)
    size = np.sqrt(np.sum(x**2, axis=0))
    matrix = x.T @ x / np.outer(size, size) - 0.3 * np.eye(x.shape[1])  # some are below zero
    values, vectors = algebra.eigen(matrix)
    assert values == pytest.approx(np.linalg.eigvalsh(matrix), abs=1e-13)
    assert vectors @ vectors.T == pytest.approx(np.eye(len(matrix)), abs=1e-13)
    assert (vectors * values) @ vectors.T == pytest.approx(matrix, abs=1e-13)


def test_what_is_rounding_is_zero() -> None:
    x = np.column_stack([np.random.default_rng(1).uniform(1, 2, (200, 2)), np.ones(200)])
    y = 3.0 * x[:, 0]  # the second column and the constant add nothing
    assert algebra.nonnegative_solution(algebra.squares(x), algebra.products(x, y))[1:].tolist() == [0.0, 0.0]
    twice = np.column_stack([x[:, 0], x[:, 0] * (1 + 1e-16), x[:, 1]])
    assert algebra.solution(algebra.squares(twice), algebra.products(twice, y)) == pytest.approx([3.0, 0.0, 0.0])
    assert algebra.residuals(algebra.squares(np.column_stack([twice, y]))[None], 1e-6)[0] == pytest.approx(
        0.0, abs=1e-9
    )


def test_of_equal_values_the_first_is_taken_and_of_models_alike_the_simplest() -> None:
    assert first_of_largest(np.array([1.0, 5.0 - 1e-12, 5.0]), 10.0) == 1
    assert first_of_largest(np.array([1.0, 4.9, 5.0]), 10.0) == 2
    assert simplest(np.array([30.0, INDISTINCT - 0.1, 0.0])) == 1
    assert simplest(np.array([30.0, INDISTINCT + 0.1, 0.0])) == 2
    assert simplest(np.array([0.0, np.inf, np.inf])) == 0
