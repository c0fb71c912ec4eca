"""Noise of several modes (N'): a mixture of normal distributions on a line, with as many modes as the data tell apart.

Expectation and maximisation (Dempster, Laird and Rubin 1977, Journal of the Royal Statistical Society B 39, 1-38) from
starts that are fixed: groups of the sorted points. Starts that are drawn, and k-means through BLAS, end in other modes
on another processor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lepaute import _core
from lepaute.measure.fit.numeric import Floats, Integers, simplest

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

    z : shape (points,), finite; MAX_POINTS of them, drawn by a fixed seed, are used where there are more; their order
        does not matter
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
    """The mixture of the fewest modes, 1 to `most`, that BIC does not tell from the best (`simplest`), by increasing
    mean.

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
