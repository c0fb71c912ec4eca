"""Slow twin of stats.covariances: unit and day effects by least squares over dummy columns, written out."""

import numpy as np


def own_and_total(unit: np.ndarray, day: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(own, own + common) by Henderson's third method, before anything is projected."""
    units, days = np.unique(unit), np.unique(day)
    both = np.array(
        [[float(u == v) for v in units] + [float(d == e) for e in days] for u, d in zip(unit, day, strict=True)]
    )
    alone = both[:, : len(units)]
    own = _left(both, values) / (len(values) - np.linalg.matrix_rank(both))
    return own, _left(alone, values) / (len(values) - len(units))


def _left(columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    residual = values - columns @ (np.linalg.pinv(columns) @ values)
    return residual.T @ residual
