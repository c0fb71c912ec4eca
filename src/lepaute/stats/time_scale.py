"""How fast a core's speed wanders, and what lasts for a process, a launch or a block: from steps inside processes.

The logarithm of measured over predicted seconds of step i, in process p of launch l and block b, on a core of kind k:

    y[i] = centre[k] + block[b] + launch[l] + lasting[p] + mean of w over the step + e[i]

w is an Ornstein-Uhlenbeck process of the core (standard deviation s, correlation time T: covariance s^2 exp(-h/T) at a
lag of h seconds), the effects of blocks, launches and processes are normal, and e has the variance that the calls of a
step explain and one that all steps share. An effect of processes alone, as an analysis of variance has it, has no time
scale: it holds the wandering, averaged over a process, and gives it to runs of any length.

Everything but w and e is constant in a process. The likelihood, with the centres integrated out (Patterson and
Thompson, "Recovery of inter-block information when block sizes are unequal", Biometrika 58, 1971), is therefore that of
the steps about the mean of their process, times that of these means. Priors: half-Cauchy for standard deviations
(Gelman, "Prior distributions for variance parameters in hierarchical models", Bayesian Analysis 1, 2006), log-normal
for T. The posterior is sampled by importance: a Student approximation at its mode, at fixed quasi-random points.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from lepaute.stats.expanding import Booleans, Floats, Integers

#: Scales of the half-Cauchy priors: a wandering, what steps scatter by themselves, a block, a launch, a process. The
#: lasting ones together are of about 0.6 %: seven blocks leave more open where there is none, and the intervals of
#: long runs wide (`validation/episodes.py`).
SCALES = np.array([0.05, 0.01, 0.0025, 0.0025, 0.005])
#: Prior of the correlation time: median and the standard deviation of the logarithm (0.025 to 10 s in 95 %).
TIME_S, TIME_LOG_SD = 0.5, 1.5
SHORTEST_TIME_S, LONGEST_TIME_S = 0.01, 60.0
#: What one fit looks at: more processes are thinned by kind, whole blocks and launches of those that stay.
MAX_PROCESSES = 280
DRAWS = 256
#: Degrees of freedom of the Student approximation that draws come from.
FREEDOM_OF_DRAWS = 5
MIN_DEGREES, MAX_DEGREES = 3, 100
LARGEST_ERROR = 1.0
#: A mode that is higher by less, in the log density, is where another search ended at the same one, or as good.
SAME_MODE = 1e-3
#: Of the log density, in the direction of which the data say nothing: about that of the priors.
MIN_CURVATURE = 0.3
#: Newton's steps to the mode: how many, of which derivatives, and when it is found.
NEWTON_STEPS, GRADIENT_STEP, CONVERGED = 30, 0.01, 1e-8


@dataclass(frozen=True, slots=True)
class StepSeries:
    """Steps, process by process and in the order of time.

    start_s, duration_s : when a step began, by the clock of its core, and how long it took; shape (steps,)
    log_ratio : log(measured / predicted);  variance : of it, as the noise of its calls explains; shape (steps,)
    process   : of each step, from 0
    block, launch, kind : of each process, shape (processes,); a kind is what differs lastingly, as a core in a probe
    """

    start_s: Floats
    duration_s: Floats
    log_ratio: Floats
    variance: Floats
    process: Integers
    block: Integers
    launch: Integers
    kind: Integers


@dataclass(frozen=True, slots=True)
class LastingEffect:
    """Of Student's distribution: scale, and degrees of freedom."""

    relative_sd: float
    degrees_of_freedom: int


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The wandering of a core, and what lasts.

    relative_sd, correlation_s : of the Ornstein-Uhlenbeck process
    relative_sd_error, correlation_error : standard errors of their logarithms
    block, launch, process : effects on all durations in one
    """

    relative_sd: float
    relative_sd_error: float
    correlation_s: float
    correlation_error: float
    block: LastingEffect
    launch: LastingEffect
    process: LastingEffect


def fit_time_scale(steps: StepSeries) -> TimeScale:
    """The posterior of the model, rounded to three digits: the last ones depend on the processor.

    Raises ValueError with fewer than two blocks, or where no process has two steps.
    """
    if len(np.unique(steps.block)) < 2 or not np.any(np.bincount(steps.process) > 1):
        raise ValueError("there are no two blocks, or no process of two steps")
    model = _Model(_thinned(steps))
    mode = _mode(model, float(np.std(steps.log_ratio)))
    draws, weight = _posterior(model, mode)
    centre = weight @ draws
    error = np.minimum(np.sqrt(weight @ (draws - centre) ** 2), LARGEST_ERROR)
    block, launch, process = (_lasting(np.exp(draws[:, place]), weight) for place in (3, 4, 5))
    return TimeScale(
        _rounded(np.exp(centre[0])),
        _rounded(error[0]),
        _rounded(np.exp(centre[1])),
        _rounded(error[1]),
        block,
        launch,
        process,
    )


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _thinned(steps: StepSeries) -> StepSeries:
    """With at most MAX_PROCESSES processes: those of evenly spaced kinds."""
    kinds = np.unique(steps.kind)
    every = -(-len(steps.kind) // MAX_PROCESSES)
    kept = np.isin(steps.kind, kinds[::every])
    if kept.all():
        return steps
    of_step = kept[steps.process]
    return StepSeries(
        steps.start_s[of_step],
        steps.duration_s[of_step],
        steps.log_ratio[of_step],
        steps.variance[of_step],
        (np.cumsum(kept) - 1)[steps.process[of_step]],
        steps.block[kept],
        steps.launch[kept],
        steps.kind[kept],
    )


class _Model:
    """The log posterior density of (log s, log T, log sd of e, of block, of launch, of process), up to a constant."""

    def __init__(self, steps: StepSeries) -> None:
        count = np.bincount(steps.process)
        shape = (len(count), int(count.max()))
        place = np.arange(len(steps.process)) - np.repeat(np.cumsum(count) - count, count)

        def padded(values: Floats, outside: float) -> Floats:
            result = np.full(shape, outside)
            result[steps.process, place] = values
            return result

        self.real: Booleans = padded(np.ones(len(steps.process)), 0.0) > 0
        start, self.duration_s = padded(steps.start_s, 0.0), padded(steps.duration_s, 1.0)
        gap = start[:, None, :] - (start + self.duration_s)[:, :, None]
        #: Seconds between the end of one step and the start of the other.
        self.gap_s = np.maximum(np.maximum(gap, np.swapaxes(gap, 1, 2)), 0.0)
        self.values, self.variance = padded(steps.log_ratio, 0.0), padded(steps.variance, 0.0)
        self.same_block, self.same_launch = (
            (group[:, None] == group).astype(np.float64) for group in (steps.block, steps.launch)
        )
        self.kinds = (steps.kind[:, None] == np.unique(steps.kind)).astype(np.float64)

    def log_density(self, logs: Floats) -> float:
        """At `logs`, shape (6,)."""
        sd, time_s, own, block, launch, process = np.exp(logs)
        weight, mean, within = self._processes(sd, time_s, own)
        covariance = block**2 * self.same_block + launch**2 * self.same_launch + np.diag(process**2 + 1.0 / weight)
        root = np.linalg.cholesky(covariance)
        white = np.linalg.solve(root, np.column_stack([self.kinds, mean]))
        kinds, values = white[:, :-1], white[:, -1]
        root_of_kinds = np.linalg.cholesky(kinds.T @ kinds)
        centres = np.linalg.solve(root_of_kinds, kinds.T @ values)
        means = -np.log(np.diag(root)).sum() - np.log(np.diag(root_of_kinds)).sum()
        means -= 0.5 * float(values @ values - centres @ centres)
        ratio = np.array([sd, own, block, launch, process]) / SCALES
        prior = float(np.sum(np.log(ratio) - np.log1p(ratio**2)))
        prior -= 0.5 * ((logs[1] - np.log(TIME_S)) / TIME_LOG_SD) ** 2
        return float(within + means + prior)

    def minus_log_density(self, logs: Floats) -> float:
        """What is least at the mode."""
        return -self.log_density(logs)

    def _processes(self, sd: float, time_s: float, own: float) -> tuple[Floats, Floats, float]:
        """Of each process the inverse variance of the mean of its steps and this mean, both by generalised least
        squares, shape (processes,), and the log likelihood of all steps about these means."""
        length = self.duration_s / time_s
        share = -np.expm1(-length) / length
        covariance = sd**2 * share[:, :, None] * share[:, None, :] * np.exp(-self.gap_s / time_s)
        covariance *= self.real[:, :, None] & self.real[:, None, :]
        diagonal = np.arange(length.shape[1])
        variance = sd**2 * 2.0 / length * (1.0 - share) + own**2 + self.variance
        covariance[:, diagonal, diagonal] = np.where(self.real, variance, 1.0)
        root = np.linalg.cholesky(covariance)
        white = np.linalg.solve(root, np.stack([self.real.astype(np.float64), self.values], axis=2))
        weight = np.sum(white[:, :, 0] ** 2, axis=1)
        mean = np.sum(white[:, :, 0] * white[:, :, 1], axis=1) / weight
        squares = np.sum(white[:, :, 1] ** 2, axis=1) - weight * mean**2
        log_root = np.log(root[:, diagonal, diagonal]).sum(axis=1)
        return weight, mean, -float(np.sum(log_root + 0.5 * squares + 0.5 * np.log(weight)))


def _mode(model: _Model, spread: float) -> Floats:
    """The highest of the modes that are reached from a short and from a long correlation time."""
    times = (float(np.log(SHORTEST_TIME_S)), float(np.log(LONGEST_TIME_S)))
    bounds = [(-9.0, 0.5), times, *[(-9.0, 0.0)] * 4]
    best, highest = np.zeros(6), -np.inf
    for time_s in (0.1, 1.0):
        start = np.log([max(spread, 0.003), time_s, max(spread / 3.0, 0.002), 0.01, 0.005, 0.01])
        found = optimize.minimize(model.minus_log_density, start, method="L-BFGS-B", bounds=bounds)
        if -found.fun > highest + SAME_MODE:
            best, highest = np.asarray(found.x, dtype=np.float64), -float(found.fun)
    return _polished(model, best, np.array(bounds))


def _polished(model: _Model, near: Floats, bounds: Floats) -> Floats:
    """The mode itself. A search ends somewhere near it, elsewhere on each processor, and what is drawn around it moves.

    Newton's steps with the curvature at `near`, those that would leave the bounds up to them.
    """
    curvature, vectors = np.linalg.eigh(-_hessian(model, near))
    inverse = (vectors / np.maximum(curvature, MIN_CURVATURE)) @ vectors.T
    moved = GRADIENT_STEP * np.eye(len(near))
    at: Floats = near
    for _ in range(NEWTON_STEPS):
        up, down = (np.array([model.log_density(at + sign * each) for each in moved]) for sign in (1, -1))
        gradient = (up - down) / (2.0 * GRADIENT_STEP)
        free = ~(((at <= bounds[:, 0]) & (gradient < 0)) | ((at >= bounds[:, 1]) & (gradient > 0)))
        step = np.where(free, inverse @ np.where(free, gradient, 0.0), 0.0)
        before = at
        at = np.clip(at + np.clip(step, -0.5, 0.5), bounds[:, 0], bounds[:, 1])
        if float(np.max(np.abs(at - before))) < CONVERGED:
            return at
    return near


def _posterior(model: _Model, mode: Floats) -> tuple[Floats, Floats]:
    """Points, shape (DRAWS, 6), and their weights, which add up to 1."""
    size = len(mode)
    curvature, vectors = np.linalg.eigh(-_hessian(model, mode))
    # A direction of which the data say nothing is as wide as its prior, about.
    scale = vectors / np.sqrt(np.maximum(curvature, MIN_CURVATURE))
    uniform = stats.qmc.Sobol(size + 1, seed=20261127).random(DRAWS)
    radius = np.sqrt(FREEDOM_OF_DRAWS / stats.chi2.ppf(uniform[:, -1], FREEDOM_OF_DRAWS))
    student = stats.norm.ppf(uniform[:, :-1]) * radius[:, None]
    draws = mode + student @ scale.T
    low = np.array([-9.0, np.log(SHORTEST_TIME_S), -9.0, -9.0, -9.0, -9.0])
    draws = np.clip(draws, low, [0.5, np.log(LONGEST_TIME_S), 0.0, 0.0, 0.0, 0.0])
    log_weight = np.array([model.log_density(point) for point in draws])
    log_weight += 0.5 * (FREEDOM_OF_DRAWS + size) * np.log1p(np.sum(student**2, axis=1) / FREEDOM_OF_DRAWS)
    weight = np.exp(log_weight - log_weight.max())
    return draws, weight / weight.sum()


def _hessian(model: _Model, at: Floats, step: float = 0.05) -> Floats:
    """Of the log density, by central differences."""
    size = len(at)
    moved = step * np.eye(size)
    middle = model.log_density(at)
    up, down = ([model.log_density(at + sign * each) for each in moved] for sign in (1, -1))
    result = np.empty((size, size))
    for i in range(size):
        result[i, i] = (up[i] + down[i] - 2.0 * middle) / step**2
        for j in range(i):
            both = model.log_density(at + moved[i] + moved[j]) + model.log_density(at - moved[i] - moved[j])
            result[i, j] = result[j, i] = (both - up[i] - up[j] + 2.0 * middle - down[i] - down[j]) / (2.0 * step**2)
    return result


def _lasting(sd: Floats, weight: Floats) -> LastingEffect:
    """Student's distribution with the 68 % and 95 % quantiles of an effect whose sd has this posterior."""

    def quantile(share: float) -> float:
        def missing(value: float) -> float:
            return float(weight @ stats.norm.sf(value / sd)) - 0.5 * (1.0 - share)

        return float(optimize.brentq(missing, 0.0, 50.0 * float(sd.max())))

    tail = quantile(0.95) / quantile(0.68)
    degrees = np.arange(MIN_DEGREES, MAX_DEGREES + 1)
    ratio = stats.t.ppf(0.975, degrees) / stats.t.ppf(0.84, degrees)
    nearest = int(degrees[np.argmin(np.abs(ratio - tail))])
    return LastingEffect(_rounded(quantile(0.95) / stats.t.ppf(0.975, nearest)), nearest)
