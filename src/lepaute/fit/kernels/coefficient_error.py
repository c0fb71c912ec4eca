"""The error of a polynomial's coefficients and of its tail, from calls that are not independent.

Calls of one process, and of processes of one mpirun, have in common what it was faster or slower. So the covariance is
that of the cluster jackknife over such launches. It is that of the coefficients and of the excess (the tail, see
`polynomial`) together: a factor on all coefficients that rests on few interrupted calls is known less well than
anything else.

A piece of a kernel may have calls of few launches, whose spread is then a poor estimate; how much processes differ is
known better from all kernels together (`variability.days`). Where that is known, the two covariances are averaged by
their degrees of freedom, the second one counting for KERNELS_ALIKE (the conjugate estimate of a variance: Smyth 2004,
Statistical Applications in Genetics and Molecular Biology 3, article 3). What all launches of a block have in common is
no difference between launches of a block, and is added.
"""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.numeric.arrays import Booleans, Floats, Integers
from lepaute.fit.numeric.clusters import clusters_of, inflation
from lepaute.fit.numeric.least_squares import shifts_by_row, whitening

#: Degrees of freedom that the differences between processes over all kernels count for in the error of one.
KERNELS_ALIKE = 4.0


@dataclass(frozen=True, slots=True)
class ProcessEffects:
    """Relative standard deviations of what processes differ by, all kernels together.

    of_block, of_launch : of effects common to all processes of a block, and of one launch in it
    block_degrees_of_freedom : of the first
    """

    of_block: float
    of_launch: float
    block_degrees_of_freedom: int


@dataclass(frozen=True, slots=True)
class CoefficientError:
    """What the covariance of (coefficients, excess), shape (p + 1, p + 1), is made of.

    independent        : if all calls were independent
    clustered          : of the jackknife over launches, not yet inflated
    degrees_of_freedom : of `clustered`; 0 where there is one launch
    events             : degrees of freedom of the variance of the excess: interrupted calls that it rests on, less one
    by_launch          : covariance of the coefficients for each unit of variance of an effect, relative to the
                         duration, that all calls of a launch have in common, shape (p, p)
    by_block           : the same of an effect of whole blocks, less what `clustered` has of it
    """

    independent: Floats
    clustered: Floats
    degrees_of_freedom: float
    events: float
    by_launch: Floats
    by_block: Floats

    def scaled(self, factor: Floats) -> "CoefficientError":
        """That of the coefficients times `factor`, shape (p,)."""
        both = np.outer(np.append(factor, 1.0), np.append(factor, 1.0))
        inner = np.outer(factor, factor)
        return CoefficientError(
            self.independent * both,
            self.clustered * both,
            self.degrees_of_freedom,
            self.events,
            self.by_launch * inner,
            self.by_block * inner,
        )

    def without_excess(self) -> "CoefficientError":
        """That where the excess is given, not estimated."""
        known = np.ones(len(self.independent))
        known[-1] = 0.0
        both = np.outer(known, known)
        return CoefficientError(
            self.independent * both,
            self.clustered * both,
            self.degrees_of_freedom,
            self.events,
            self.by_launch,
            self.by_block,
        )

    @property
    def excess_variance(self) -> float:
        """Of the excess, not inflated."""
        return float(max(self.independent[-1, -1], self.clustered[-1, -1]))

    def covariance(self, effects: ProcessEffects | None = None) -> Floats:
        """The covariance, inflated so that normal intervals of 95 % are those of Student's t (see `clusters`)."""
        freedom = self.degrees_of_freedom
        # Few launches leave directions in which they do not differ at all: there, at least the calls do.
        result = self.clustered + self.independent / max(freedom, 1.0)
        if effects is not None:
            alike = self.independent.copy()
            alike[:-1, :-1] += effects.of_launch**2 * self.by_launch
            result = (freedom * self.clustered + KERNELS_ALIKE * alike) / (freedom + KERNELS_ALIKE)
            freedom += KERNELS_ALIKE
        factor = inflation(freedom) if freedom else 1.0
        result = factor * result
        if effects is not None:
            of_blocks = inflation(effects.block_degrees_of_freedom) * effects.of_block**2
            result[:-1, :-1] += of_blocks * self.by_block
        few = np.sqrt(max(1.0, inflation(max(self.events, 1.0)) / factor))
        result[-1] *= few
        result[:, -1] *= few
        return result


def coefficient_error(
    x: Floats,
    coefficients: Floats,
    residual: Floats,
    weight: Floats,
    excess: tuple[Floats, Floats],
    launch: Integers | None,
    block: Integers | None,
) -> CoefficientError:
    """The error of weighted least squares coefficients, those that are 0 taken for known, and of an excess.

    x, residual, weight : shapes (calls, p), (calls,), (calls,)
    excess              : of each call its part above and below the cut; the excess is the ratio of their sums
    launch, block       : of the process of each call; None: all calls are independent
    """
    active = coefficients != 0
    above, below = excess
    by_call = np.column_stack([shifts_by_row(x, residual, weight, active), _ratio_shifts(above, below)])
    independent: Floats = by_call.T @ by_call
    squares = float(np.sum(above**2))
    events = float(np.sum(above)) ** 2 / squares - 1.0 if squares > 0 else 0.0
    nothing = np.zeros((x.shape[1], x.shape[1]))
    alone = CoefficientError(independent, np.zeros_like(independent), 0.0, events, nothing, nothing)
    if launch is None:
        return alone
    by_launch, share_of_launch = _level_shifts(x, coefficients, weight, active, launch)
    by_block, share_of_block = _level_shifts(x, coefficients, weight, active, launch if block is None else block)
    apart = max(0.0, 1.0 - share_of_launch / share_of_block) if share_of_block > 0 else 0.0
    clusters = clusters_of(x, residual, weight, active, launch)
    if len(clusters) < 2:  # how launches differ does not show here
        return CoefficientError(independent, np.zeros_like(independent), 0.0, events, by_launch, by_block)
    of_ratio = _ratio_shifts(*(np.bincount(clusters.code, part).astype(np.float64) for part in excess))
    clustered = clusters.covariance(np.column_stack([clusters.shifts, of_ratio]))
    return CoefficientError(independent, clustered, clusters.degrees_of_freedom, events, by_launch, apart * by_block)


def _ratio_shifts(above: Floats, below: Floats) -> Floats:
    """What each part moves sum(above) / sum(below)."""
    whole = float(np.sum(below))
    if whole <= 0.0:
        return np.zeros_like(above)
    rest = np.maximum(whole - below, 1e-3 * whole)
    result: Floats = (above - float(np.sum(above)) / whole * below) / rest
    return result


def _level_shifts(
    x: Floats, coefficients: Floats, weight: Floats, active: Booleans, group: Integers
) -> tuple[Floats, float]:
    """Sum over groups of v v', with v what a group adds to the coefficients if it takes twice as long, shape (p, p);
    and the sum of squares of the groups' shares in the level."""
    result = np.zeros((x.shape[1], x.shape[1]))
    chosen = x[:, active]
    mean = chosen @ coefficients[active]
    root = whitening(chosen, weight)
    _, code = np.unique(group, return_inverse=True)
    sums = np.column_stack([np.bincount(code, column) for column in (chosen * (weight * mean)[:, None]).T])
    shifts = sums @ root @ root.T
    result[np.ix_(active, active)] = shifts.T @ shifts
    return result, float(np.sum(np.bincount(code, weight * mean**2) ** 2))
