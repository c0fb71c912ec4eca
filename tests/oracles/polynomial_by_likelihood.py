"""The slow twin of the kernel fit: mean and standard deviation by direct maximisation of a normal likelihood."""

import numpy as np
from scipy.optimize import minimize


def fit(x: np.ndarray, y: np.ndarray, start_mean: np.ndarray, start_sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of mean and standard deviation, both x @ coefficients, that make y likeliest.

    x : shape (n, p); y : shape (n,); starts : shape (p,) each, those of the standard deviation above zero
    """
    p = x.shape[1]
    scale = np.concatenate([np.abs(start_mean), np.abs(start_sd)])

    def negative(values: np.ndarray) -> float:
        mean, sd = (values * scale)[:p], (values * scale)[p:]
        spread = np.maximum(x @ sd, 1e-12 * np.mean(y))
        return float(np.sum(np.log(spread)) + 0.5 * np.sum(((y - x @ mean) / spread) ** 2))

    values = np.concatenate([np.sign(start_mean), np.ones(p)])
    bounds = [(None, None)] * p + [(0.0, None)] * p
    for _ in range(5):  # until it no longer gets better from where it ended
        values = minimize(negative, values, method="L-BFGS-B", bounds=bounds, options={"maxiter": 2000}).x
    return (values * scale)[:p], (values * scale)[p:]


def covariance(x: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Inverse Fisher information of the coefficients of the mean, for the standard deviations x @ sd."""
    weighted = x / (x @ sd)[:, None]
    result: np.ndarray = np.linalg.inv(weighted.T @ weighted)
    return result
