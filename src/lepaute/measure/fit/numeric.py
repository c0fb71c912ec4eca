"""Arrays and what fits compute with: least squares with errors of clusters, local medians, choices, mixtures of modes.

Errors of least squares coefficients whose rows come in clusters: the calls of one process have its level in common.

The rows of a cluster say much less than as many independent ones, and how much less need not be modelled: the cluster
jackknife leaves out one cluster after the other and takes the spread of the coefficients that this gives. With few
clusters that spread itself is poorly known, and Student's t distribution has to be used. A platform holds covariances,
from which normal coefficients are drawn: they are inflated so that their 95 % interval is that of Student's t.

Source: MacKinnon, Nielsen and Webb (2023), "Cluster-robust inference: a guide to empirical practice", Journal of
Econometrics 232, 272-299: the jackknife (CV3) with t(G - 1) is the most reliable of the simple methods.

Choices do not sit on rounding: sums and small matrices are those of `stats.algebra`, what is equal up to rounding is
equal, and of models that the data do not tell apart the simplest holds (docs/concepts/kernel_models.md).

Noise of several modes (N'): a mixture of normal distributions on a line, with as many modes as the data tell apart.
Expectation and maximisation (Dempster, Laird and Rubin 1977, Journal of the Royal Statistical Society B 39, 1-38) from
starts that are fixed: groups of sorted points. Drawn ones, and k-means by BLAS, differ between processors.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from lepaute import _core
from lepaute.stats import algebra
from lepaute.stats.student import NORMAL_975, student_quantile

T = TypeVar("T")
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
#: A column whose part that earlier columns do not explain is smaller than this, relative to it, is not determined.
INDEPENDENCE = 1e-3
#: What a leverage lacks to 1 at least: a row that alone determines a coefficient would have an infinite error.
MAX_OF_ONE_ROW = 1e-6
#: What the share of one cluster in a direction lacks to 1 at least: without that cluster, nothing would be known of it.
MAX_OF_ONE_CLUSTER = 0.02
#: Models whose BICs differ by less the data cannot tell apart, "not worth more than a bare mention" (Kass and Raftery
#: 1995, Journal of the American Statistical Association 90, 773-795): the simplest of them holds.
INDISTINCT = 2.0
#: Sums that differ by less than this share of what they are parts of are equal: rounding is a thousand times less.
EQUAL_SHARE = 1e-9


def subset(data: T, rows: Booleans | Integers) -> T:
    """The same data class with these rows of each of its arrays, of one length, or those where a mask is true."""
    listed = [(field.name, getattr(data, field.name)) for field in fields(cast(Any, data))]
    arrays = {name: value[rows] for name, value in listed if isinstance(value, np.ndarray)}
    return cast(T, replace(cast(Any, data), **arrays))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Gives BLAS one thread inside the block, also as a decorator; afterwards it has as many as before.

    Each number of threads splits long sums elsewhere, so that the last digits differ, and with them the digest of a
    platform. Fits gain nothing by more: their matrices have some ten columns.
    """
    import scipy.linalg  # noqa: F401 - it brings a BLAS of its own, and only one that is loaded can be told
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def local_median(x: Floats, y: Floats, groups: int = 60) -> Floats:
    """Median of y among the points of neighbouring x, interpolated in log(1 + x); shape of y, above zero where y is."""
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, max(1, min(groups, len(x) // 5))) if len(part)]
    centres = np.array([np.log1p(max(0.0, float(np.median(x[part])))) for part in parts])
    medians = np.array([float(np.median(y[part])) for part in parts])
    result: Floats = np.interp(np.log1p(np.maximum(x, 0.0)), centres, medians)
    return result


def weighted_line(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Intercept and slope of the weighted least squares line; slope 0 if x does not vary."""
    mean_x, mean_y = float(np.average(x, weights=weight)), float(np.average(y, weights=weight))
    spread = float(np.sum(weight * (x - mean_x) ** 2))
    if spread <= 1e-24 * float(np.sum(weight * x**2)) or spread == 0.0:
        return mean_y, 0.0
    slope = float(np.sum(weight * (x - mean_x) * (y - mean_y))) / spread
    return mean_y - slope * mean_x, slope


def normal_equations(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """X' W X, shape (p, p), and X' W y, shape (p,)."""
    return algebra.squares(x, weight), algebra.products(x, weight * y)


def independent_columns(x: Floats, weight: Floats) -> Integers:
    """Indices of the columns that the earlier ones do not explain, in their order (Cholesky's rows of the products).

    x      : shape (n, p), columns of comparable size
    weight : shape (n,), factor of each row
    """
    weighted = x * weight[:, None]
    length = np.sqrt(np.sum(weighted**2, axis=0))
    weighted = weighted / np.where(length > 0, length, 1.0)
    gram = algebra.squares(weighted)
    kept: list[int] = []
    rows = np.zeros((0, x.shape[1]))  # of the triangle: one for each column that is kept
    for index in np.flatnonzero(length > 0):
        if len(kept) == x.shape[0]:
            break
        rest = gram[index] - algebra.products(rows, rows[:, index])
        # What is left of squares of unit length: exact to 1e-15, well below the square of what decides.
        if rest[index] > INDEPENDENCE**2:
            rows = np.vstack([rows, rest / np.sqrt(rest[index])])
            kept.append(int(index))
    return np.array(kept, dtype=np.int64)


def sandwich(x: Floats, residual: Floats, weight: Floats, active: Booleans) -> Floats:
    """Covariance of weighted least squares coefficients that holds also where the weights are wrong (HC3).

    (X'WX)^-1 X' W diag(r^2 / (1-h)^2) W X (X'WX)^-1 with leverages h. Columns that are not active have zeros.
    Source: MacKinnon and White (1985), Journal of Econometrics 29, 305-325.
    """
    return algebra.squares(shifts_by_row(x, residual, weight, active))


def shifts_by_row(x: Floats, residual: Floats, weight: Floats, active: Booleans) -> Floats:
    """How much each row moves the coefficients: those of all rows less those without it, shape of x."""
    shifts = np.zeros_like(x)
    root = whitening(x[:, active], weight)
    z = algebra.times(x[:, active], root)
    leverage = np.minimum(np.sum(z**2, axis=1) * weight, 1.0 - MAX_OF_ONE_ROW)
    shifts[:, active] = algebra.times(z * (weight * residual / (1.0 - leverage))[:, None], root.T)
    return shifts


def whitening(x: Floats, weight: Floats) -> Floats:
    """L with L L' = (X'WX)^-1, shape (p, p); directions that the rows do not determine are left out."""
    gram = algebra.squares(x, weight)
    length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    values, vectors = algebra.eigen(gram / np.outer(length, length))
    known = values > 1e-13 * max(float(values[-1]), 0.0) if len(values) else np.zeros(0, dtype=bool)
    result: Floats = vectors[:, known] / np.sqrt(values[known]) / length[:, None]
    return result


@dataclass(frozen=True, slots=True)
class Clusters:
    """Shift by each cluster, and the effective number of clusters.

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
        """Degrees of freedom of the jackknife's variances, at least 1."""
        return max(self.effective - 1.0, 1.0)

    def covariance(self, shifts: Floats) -> Floats:
        """The jackknife's covariance from the shifts of parameters, shape (clusters, p)."""
        result: Floats = (len(self) - 1) / len(self) * algebra.squares(shifts)
        return result


def clusters_of(x: Floats, residual: Floats, weight: Floats, active: Booleans, cluster: Integers) -> Clusters:
    """Shifts of weighted least squares coefficients by cluster; coefficients that are not active have zeros.

    cluster : any numbers, shape (rows,)
    Without cluster g the coefficients are smaller by (X'WX - X_g'W_gX_g)^-1 X_g'W_g r_g.
    """
    _, code = np.unique(cluster, return_inverse=True)
    code = code.astype(np.int64)
    root = whitening(x[:, active], weight)
    z = algebra.times(x[:, active], root)
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code))
    shifts = np.zeros((len(ends), x.shape[1]))
    shares = np.zeros(len(ends))
    for number, rows in enumerate(np.split(order, ends[:-1])):
        own, counts = z[rows], weight[rows]
        values, vectors = algebra.eigen(algebra.squares(own, counts))
        without = np.maximum(1.0 - values, MAX_OF_ONE_CLUSTER)
        moved = algebra.products(vectors, algebra.products(own, counts * residual[rows])) / without
        shifts[number, active] = algebra.times(root, algebra.times(vectors, moved))
        shares[number] = float(values.sum())
    squares = float(np.sum(shares**2))
    return Clusters(code, shifts, float(shares.sum()) ** 2 / squares if squares > 0 else float(len(ends)))


def inflation(degrees_of_freedom: float) -> float:
    """Factor on a variance that makes a normal 95 % interval as wide as Student's."""
    return (student_quantile(0.975, degrees_of_freedom) / NORMAL_975) ** 2


def simplest(bic: Floats) -> int:
    """Position of the first, in the order from simple to rich, that the data do not tell from the best."""
    return int(np.argmax(bic < float(np.min(bic)) + INDISTINCT))


def first_of_largest(values: Floats, whole: float) -> int:
    """Position of the largest value; of those that are equal up to rounding, beside `whole`, the first."""
    return int(np.argmax(values >= float(np.max(values)) - EQUAL_SHARE * whole))


MAX_MODES = 4
#: A mixture is no better known from more points than these, and takes longer.
MAX_POINTS = 3000
#: Smallest standard deviation of a mode: repeated values must not make a spike.
MIN_SD = 0.02
ROUNDS = 200
#: The search ends when the mean logarithm of the density grows by less.
TOLERANCE = 1e-4
#: So many parts of the sorted points, equal in number, are kept together by the first start.
CELLS = 200
#: Share of what is left that each further mode begins with, where modes begin in a tail.
IN_TAIL = 0.2


@dataclass(frozen=True, slots=True)
class Mode:
    """A normal mode: its share, mean and standard deviation; of kernels, in units of the standard deviation of all."""

    weight: float
    mean: float
    sd: float


def standardised_modes(z: Floats) -> tuple[Mode, ...]:
    """The modes of standardised residuals, by increasing mean; mean 0 and variance 1 together, exactly.

    z : shape (points,), finite, in any order; of more than MAX_POINTS these are drawn by a fixed seed
    """
    points = np.sort(z)
    if len(points) > MAX_POINTS:
        points = np.sort(np.random.default_rng(0).choice(points, MAX_POINTS, replace=False))
    if len(points) < 4 or float(np.std(points)) <= 0.0:
        return (Mode(1.0, 0.0, 1.0),)
    modes = likeliest_modes(points, min(MAX_MODES, len(points) // 4), least_sd=MIN_SD)
    weights, means, sds = (np.array([getattr(mode, name) for mode in modes]) for name in ("weight", "mean", "sd"))
    return standardised(weights, means, sds)


def likeliest_modes(points: Floats, most: int, *, least_sd: float, fewest: int = 0) -> tuple[Mode, ...]:
    """The mixture of the fewest modes, up to `most`, that BIC does not tell from the best (`simplest`), by mean.

    points   : shape (n,), increasing
    least_sd : added in squares to every mode's, so that repeated values make no spike
    fewest   : points that each of several modes accounts for
    """
    fits = [_Mixture.of_one(points, least_sd)]
    for count in range(2, most + 1):
        found = [_searched(points, start, least_sd) for start in _starts(points, count)]
        usable = [one for one in found if float(one.weight.min()) * len(points) >= fewest]
        if usable:
            fits.append(max(usable, key=lambda one: round(one.log_density / TOLERANCE)))
    parameters = np.array([3.0 * len(fit.weight) - 1.0 for fit in fits])
    densities = np.array([fit.log_density for fit in fits])
    best = fits[simplest(parameters * np.log(len(points)) - 2.0 * len(points) * densities)]
    order = np.argsort(best.mean, kind="stable")
    return tuple(Mode(float(best.weight[i]), float(best.mean[i]), float(best.sd[i])) for i in order)


@dataclass(frozen=True, slots=True)
class _Mixture:
    """Vectors of shape (modes,), and the mean over the points of the logarithm of the density."""

    weight: Floats
    mean: Floats
    sd: Floats
    log_density: float

    @classmethod
    def of_one(cls, points: Floats, least_sd: float) -> "_Mixture":
        mean, sd = float(np.mean(points)), float(np.sqrt(np.var(points) + least_sd**2))
        density = -0.5 * float(np.mean((points - mean) ** 2)) / sd**2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
        return cls(np.ones(1), np.array([mean]), np.array([sd]), float(density))


def _starts(points: Floats, count: int) -> Iterator[Integers]:
    """Groups to begin with, as the number of points up to the end of each but the last: those of least squares about
    their means, equal ones, and a tail above, or below, that is parted again."""
    n = len(points)
    edges = np.unique(np.linspace(0, n, min(CELLS, n) + 1).round().astype(np.uint32))
    series = _core.FitSeries.make(np.arange(n, dtype=np.float64), points, np.ones(n), edges, edges)
    parts = _core.best_partitions([series], False, True, 1, count)
    if len(parts) == count:
        yield edges[np.array(parts[-1][0])].astype(np.int64)
    yield (np.arange(1, count) * n) // count
    tails = n * IN_TAIL ** np.arange(1, count)
    for ends in (n - tails, tails[::-1]):
        whole = ends.round().astype(np.int64)
        if whole[0] > 0 and whole[-1] < n and np.all(np.diff(whole) > 0):
            yield whole


def _searched(points: Floats, ends: Integers, least_sd: float) -> _Mixture:
    """Where the likelihood stops growing from modes that are these groups of the points."""
    share = np.zeros((len(ends) + 1, len(points)))
    share[np.searchsorted(ends, np.arange(len(points)), side="right"), np.arange(len(points))] = 1.0
    before, found = -np.inf, None
    for _ in range(ROUNDS):
        count = np.sum(share, axis=1) + 1e-12
        mean = np.sum(share * points, axis=1) / count
        sd = np.sqrt(np.sum(share * (points - mean[:, None]) ** 2, axis=1) / count + least_sd**2)
        terms = np.log(count / len(points) / sd)[:, None] - 0.5 * ((points - mean[:, None]) / sd[:, None]) ** 2
        largest = np.max(terms, axis=0)
        density = np.exp(terms - largest)
        total = np.sum(density, axis=0)
        mean_log = float(np.mean(largest + np.log(total))) - 0.5 * float(np.log(2 * np.pi))
        found = _Mixture(count / len(points), mean, sd, mean_log)
        if mean_log - before < TOLERANCE:
            break
        before, share = mean_log, density / total
    assert found is not None
    return found


def standardised(weights: Floats, means: Floats, sds: Floats) -> tuple[Mode, ...]:
    """The same mixture shifted and scaled to mean 0 and variance 1."""
    weights = weights / float(np.sum(weights))
    centre = float(np.sum(weights * means))
    scale = float(np.sqrt(np.sum(weights * ((means - centre) ** 2 + sds**2))))
    return tuple(
        Mode(float(weight), float((mean - centre) / scale), float(sd / scale))
        for weight, mean, sd in zip(weights, means, sds, strict=True)
    )


def log_density(z: Floats, modes: Sequence[Mode], resolution_sd: Floats) -> Floats:
    """Log of the density of the mixture at z, each mode widened by `resolution_sd` (shape of z), in units of z."""
    terms = np.stack(
        [
            np.log(mode.weight)
            - 0.5 * np.log(2 * np.pi * (mode.sd**2 + resolution_sd**2))
            - 0.5 * (z - mode.mean) ** 2 / (mode.sd**2 + resolution_sd**2)
            for mode in modes
        ]
    )
    result: Floats = np.logaddexp.reduce(terms, axis=0)
    return result
