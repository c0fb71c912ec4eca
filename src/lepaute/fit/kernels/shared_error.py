"""The error of coefficients of single cores or sockets: what is common to all of them, and what is each one's own.

A block was faster, or a launch: all cores were, which no number of cores averages out. A simulation draws the
coefficients of each core by themselves, so that the common error has to be drawn apart, as one factor on the kernel's
calls. It is that of the fit to all cores together, and is taken from the errors of their own fits.
"""

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel
from lepaute.fit.kernels.polynomial import PolynomialFit
from lepaute.fit.kernels.regions import first_match
from lepaute.fit.kernels.size_classes import judged
from lepaute.fit.kernels.terms import design_matrix
from lepaute.fit.numeric.arrays import Floats
from lepaute.fit.observations.calls import Calls

#: What is left of an own fit's variance at least, in any direction: both variances are estimates.
LEAST_OWN = 0.05


def common_relative_sd(kernel: FittedKernel, calls: Calls) -> float:
    """Relative error of the time of the calls that a model is judged by, from the fits to all cores together.

    0 where all cores have the same coefficients: these are drawn once, with their error. The errors of the pieces are
    taken to go together, since what made them does.
    """
    if kernel.form.shared:
        return 0.0
    chosen = judged(calls)
    total = error = 0.0
    for piece, mask in zip(
        kernel.pieces, first_match(tuple(piece.region for piece in kernel.pieces), chosen), strict=True
    ):
        inside = chosen.where(mask)
        sums = design_matrix(piece.pooled.terms, inside.m, inside.n, inside.k).sum(axis=0)
        total += float(sums @ piece.pooled.mean)
        error += float(np.sqrt(max(0.0, sums @ piece.pooled.covariance @ sums)))
    return error / total if total > 0.0 else 0.0


def own_covariance(own: PolynomialFit, pooled: PolynomialFit) -> Floats:
    """The covariance of the coefficients of one core or socket less that of all together, shape (p, p).

    Both fits have the same terms. In the directions in which the variances of the one are 1, those of the other are
    taken off, down to LEAST_OWN.
    """
    values, vectors = np.linalg.eigh(own.covariance)
    known = values > 1e-12 * max(float(values[-1]), 0.0)
    if not known.any():
        return own.covariance
    root = vectors[:, known] * np.sqrt(values[known])
    inverse = (vectors[:, known] / np.sqrt(values[known])).T
    shares, axes = np.linalg.eigh(inverse @ pooled.covariance @ inverse.T)
    left = np.maximum(1.0 - shares, LEAST_OWN)
    axes = root @ axes
    result: Floats = (axes * left) @ axes.T
    return result
