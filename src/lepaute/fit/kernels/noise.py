"""How single calls scatter around a fitted mean: the likelihood of each noise of the family, compared by BIC.

N-0  nothing but the error of the mean itself
N-1  half-normal, one standard deviation in each piece, and with -H or -S of each core or socket there
N-2  half-normal, a standard deviation that is a polynomial
N'   the same standard deviation, modes instead of a half-normal

Each is widened by a normal error of BLUR times the mean and TICK_S: no polynomial is exact, and without it a
half-normal would give no density at all to a call just below its bound. A half-normal with a normal error is a skew
normal distribution (Azzalini 1985, Scandinavian Journal of Statistics 12, 171-178).
"""

from dataclasses import dataclass

import numpy as np

from lepaute.fit.kernels.kernel_fit import FittedKernel, parts_of, units
from lepaute.fit.kernels.polynomial import CUT_SD
from lepaute.fit.kernels.regions import first_match
from lepaute.fit.numeric.arrays import Floats, Integers
from lepaute.fit.numeric.mixture import Mode, log_density, standardised_modes
from lepaute.fit.observations.calls import Calls
from lepaute.platform.kernel_model import NOISES

BLUR = 0.005
#: Of the stamps.
TICK_S = 1e-9
_SCALE = float(1.0 / np.sqrt(1.0 - 2.0 / np.pi))  # of |Z| whose standard deviation is 1
_MEAN = float(np.sqrt(2.0 / np.pi)) * _SCALE


@dataclass(frozen=True, slots=True)
class NoiseScores:
    """bic: of each of NOISES, less that of the best; modes: those of N'; n_calls it rests on."""

    bic: tuple[float, ...]
    modes: tuple[Mode, ...]
    n_calls: int

    @property
    def best(self) -> str:
        """The noise with the lowest BIC, the simpler one of two that are equal."""
        return NOISES[int(np.argmin(self.bic))]


def noise_scores(kernel: FittedKernel, calls: Calls) -> NoiseScores:
    """BIC of the noises around the mean of `kernel`, which is fitted with N-2; interruptions are left out.

    A process that was faster or slower as a whole is put to the level of its model first: that is the layer of days.
    """
    mean, deviation = _parts(kernel, calls)
    process = calls.block * 1000003 + calls.cpu * 101 + calls.probe
    mean = mean * _process_levels(process, np.minimum(calls.duration_s, mean + CUT_SD * deviation), mean)
    residual = calls.duration_s - mean
    good = (mean > 0) & (residual < CUT_SD * np.maximum(deviation, 1e-300))
    if not np.any(good & (deviation > 0) & (residual != 0)):
        return NoiseScores((0.0, np.inf, np.inf, np.inf), (Mode(1.0, 0.0, 1.0),), int(np.count_nonzero(good)))
    residual, mean, deviation = residual[good], mean[good], np.maximum(deviation[good], 1e-3 * mean[good] + TICK_S)
    # What whole processes had in common is out of the residuals, and so must be out of what they are measured by.
    scatter = float(np.sqrt(np.mean((residual / deviation) ** 2)))
    if scatter == 0.0:  # all durations are as the mean says, to the last digit
        return NoiseScores((0.0, np.inf, np.inf, np.inf), (Mode(1.0, 0.0, 1.0),), len(residual))
    deviation = deviation * scatter
    where, n_sd = _fits(kernel, calls.where(good))
    constant = np.sqrt(np.bincount(where, deviation**2) / np.bincount(where))[where]
    blur = BLUR * mean + TICK_S
    modes = standardised_modes(residual / deviation)
    fits = (
        (_log_normal(residual, blur), 0),
        (_log_half_normal(residual, constant, blur), int(where.max()) + 1),
        (_log_half_normal(residual, deviation, blur), n_sd),
        (_log_mixture(residual, deviation, modes, blur), n_sd + 3 * len(modes) - 3),
    )
    bic = np.array([-2.0 * float(np.sum(density)) + count * np.log(len(residual)) for density, count in fits])
    return NoiseScores(tuple(float(value) for value in bic - bic.min()), modes, len(residual))


def _parts(kernel: FittedKernel, calls: Calls) -> tuple[Floats, Floats]:
    """Mean without the tail, and standard deviation, of each call."""
    growth = np.ones(len(calls))
    for piece, mask in zip(
        kernel.pieces, first_match(tuple(piece.region for piece in kernel.pieces), calls), strict=True
    ):
        for fit, rows in parts_of(piece, np.flatnonzero(mask), units(calls, kernel.form)):
            growth[rows] = fit.growth
    return kernel.predict(calls) / growth, kernel.deviation(calls)


def _fits(kernel: FittedKernel, calls: Calls) -> tuple[Integers, int]:
    """Which fit each call is described by, of a piece or of a core in it, numbered from 0 without gaps, and how many
    coefficients the standard deviations of these fits have."""
    number = np.zeros(len(calls), dtype=np.int64)
    coefficients: list[int] = []
    for piece, mask in zip(
        kernel.pieces, first_match(tuple(piece.region for piece in kernel.pieces), calls), strict=True
    ):
        for fit, rows in parts_of(piece, np.flatnonzero(mask), units(calls, kernel.form)):
            number[rows] = len(coefficients)
            coefficients.append(int(np.count_nonzero(fit.sd)))
    return number, sum(coefficients)


def _process_levels(process: Integers, measured: Floats, mean: Floats) -> Floats:
    _, code = np.unique(process, return_inverse=True)
    above, below = np.bincount(code, measured), np.bincount(code, mean)
    result: Floats = np.where(below > 0, above / np.where(below > 0, below, 1.0), 1.0)[code]
    return result


def _log_normal(residual: Floats, sd: Floats) -> Floats:
    result: Floats = -0.5 * (residual / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return result


def _log_half_normal(residual: Floats, deviation: Floats, blur: Floats) -> Floats:
    """Logarithm of the density of deviation * (centred half-normal) + blur * (standard normal)."""
    from scipy.special import log_ndtr

    scale = deviation * _SCALE
    width = np.hypot(scale, blur)
    above = residual + deviation * _MEAN
    result: Floats = np.log(2.0) + _log_normal(above, width) + log_ndtr(above * scale / (blur * width))
    return result


def _log_mixture(residual: Floats, deviation: Floats, modes: tuple[Mode, ...], blur: Floats) -> Floats:
    sd = deviation
    result: Floats = log_density(residual / sd, modes, blur / sd) - np.log(sd)
    return result
