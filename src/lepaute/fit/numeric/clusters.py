"""Errors of least squares coefficients whose rows come in clusters: the calls of one process have its level in common.

The rows of a cluster say much less than as many independent ones, and how much less need not be modelled: the cluster
jackknife leaves out one cluster after the other and takes the spread of the coefficients that this gives. With few
clusters that spread itself is poorly known, and Student's t distribution has to be used. A platform holds covariances,
from which normal coefficients are drawn: they are inflated so that their 95 % interval is that of Student's t.

Source: MacKinnon, Nielsen and Webb (2023), "Cluster-robust inference: a guide to empirical practice", Journal of
Econometrics 232, 272-299: the jackknife (CV3) with t(G - 1) is the most reliable of the simple methods.
"""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.numeric.arrays import Booleans, Floats, Integers
from lepaute.fit.numeric.least_squares import whitening
from lepaute.stats.student import student_quantile

#: What the share of one cluster in a direction lacks to 1 at least: without that cluster, nothing would be known of it.
MOST_OF_ONE_CLUSTER = 0.02
#: Half of the normal distribution's 95 % interval.
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Clusters:
    """What each cluster moves, and how many there effectively are.

    code      : number of the cluster of each row, from 0 without gaps
    shifts    : coefficients of all rows less those without the cluster, shape (clusters, p)
    effective : (sum h)^2 / sum h^2 of the shares h of the clusters in what is known: their number where all are alike
    """

    code: Integers
    shifts: Floats
    effective: float

    def __len__(self) -> int:
        return len(self.shifts)

    @property
    def degrees_of_freedom(self) -> float:
        """Of the jackknife's variances, at least 1."""
        return max(self.effective - 1.0, 1.0)

    def covariance(self, shifts: Floats) -> Floats:
        """The jackknife's covariance from the shifts of parameters, shape (clusters, p)."""
        result: Floats = (len(self) - 1) / len(self) * shifts.T @ shifts
        return result


def clusters_of(x: Floats, residual: Floats, weight: Floats, active: Booleans, cluster: Integers) -> Clusters:
    """Shifts of weighted least squares coefficients by cluster; coefficients that are not active have zeros.

    cluster : any numbers, shape (rows,)
    Without cluster g the coefficients are smaller by (X'WX - X_g'W_gX_g)^-1 X_g'W_g r_g.
    """
    _, code = np.unique(cluster, return_inverse=True)
    code = code.astype(np.int64)
    root = whitening(x[:, active], weight)
    z = x[:, active] @ root
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code))
    shifts = np.zeros((len(ends), x.shape[1]))
    shares = np.zeros(len(ends))
    for number, rows in enumerate(np.split(order, ends[:-1])):
        own, scaled = z[rows], z[rows] * weight[rows, None]
        values, vectors = np.linalg.eigh(scaled.T @ own)
        without = np.maximum(1.0 - values, MOST_OF_ONE_CLUSTER)
        shifts[number, active] = root @ (vectors @ ((vectors.T @ (scaled.T @ residual[rows])) / without))
        shares[number] = float(values.sum())
    squares = float(np.sum(shares**2))
    return Clusters(code, shifts, float(shares.sum()) ** 2 / squares if squares > 0 else float(len(ends)))


def inflation(degrees_of_freedom: float) -> float:
    """Factor on a variance that makes a normal 95 % interval as wide as Student's."""
    return (student_quantile(0.975, degrees_of_freedom) / NORMAL_95) ** 2
