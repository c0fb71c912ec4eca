"""Which member of the family a kernel gets: the mean by cross-validation, its noise by Schwarz's criterion.

The mean. Folds are whole blocks of the campaign (fresh processes, another order, other sizes); with one block,
stretches of successive calls. A fold is predicted by a fit to the others, pieces searched anew. The score is the mean
square of (measured - predicted) / typical duration, each call counting by its typical duration, as the application's
time does. Typical, and the same for all candidates, is what the pieces say that are fitted to all calls; a duration
beyond CAP times that counts as CAP times. What a process as a whole was faster or slower than typical is divided out
first: that is the layer of days, the same for all candidates, and would drown what distinguishes them. The simplest
mean is taken whose score is within one standard error (over the folds, of the difference of the two) of the best and at
most SCORE_TOLERANCE above it: on a noisy machine five folds are too little evidence against a better fit.

Whether each socket or each core has its own coefficients is tried with the mean that was chosen. Here only what a
whole fold was faster or slower is divided out, since the level of a core is what is asked for. The fewest sets of
coefficients are taken whose score is within two standard errors of the best: processes on the same core differ too, and
with few of them a core looks fast that was lucky.

The noise. Given the mean, the simplest that the data do not tell from that with the lowest BIC; see `noise_scores`.

How single calls scatter around a fitted mean: the likelihood of each noise of the family, compared by BIC.

N-0  nothing but the error of the mean itself
N-1  half-normal, one standard deviation in each piece, and with -H or -S of each core or socket there
N-2  half-normal, a standard deviation that is a polynomial
N'   the same standard deviation, modes instead of a half-normal

Each is widened by a normal error of BLUR times the mean and TICK_S: no polynomial is exact, and without it a
half-normal would give no density at all to a call just below its bound. A half-normal with a normal error is a skew
normal distribution (Azzalini 1985, Scandinavian Journal of Statistics 12, 171-178).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from lepaute.measure.fit.kernels.form import Form, default_form, means_of, requested_form
from lepaute.measure.fit.kernels.kernel_fit import FEW, FittedKernel, fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import judged
from lepaute.measure.fit.kernels.polynomial import CUT_SD
from lepaute.measure.fit.kernels.regions import CAP, MIN_CALLS
from lepaute.measure.fit.numeric import Floats, Integers, Mode, local_median, log_density, simplest, standardised_modes
from lepaute.measure.fit.observations.calls import Calls
from lepaute.simulate.platform.kernel_model import NOISES

BLUR = 0.005
#: Resolution of the stamps.
TICK_S = 1e-9
_SCALE = float(1.0 / np.sqrt(1.0 - 2.0 / np.pi))  # of |Z| whose standard deviation is 1
_MEAN = float(np.sqrt(2.0 / np.pi)) * _SCALE
#: Calls of a kernel that the selection looks at, as many of each size as there are; and further ones for each core.
SAMPLE, SAMPLE_PER_CORE = 20_000, 100
SIZE_CLASSES = 20
FOLDS = 5
#: Standard errors by which a further mean, and a model of each core or socket, have to win.
MEAN_MARGIN_SE, PER_CORE_ERRORS = 1.0, 2.0
#: Losses that differ by no more than this share are the same.
EQUAL = 1e-9
#: A mean square error that is so much higher is no price for a simpler mean: one per cent of the error.
SCORE_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class NoiseScores:
    """bic: of each of NOISES, less that of the best; modes: those of N'; n_calls it rests on."""

    bic: tuple[float, ...]
    modes: tuple[Mode, ...]
    n_calls: int

    @property
    def best(self) -> str:
        """The simplest noise that the data do not tell from the one with the lowest BIC (INDISTINCT)."""
        return NOISES[simplest(np.array(self.bic))]


def noise_scores(kernel: FittedKernel, calls: Calls) -> NoiseScores:
    """BIC of the noises around the mean of `kernel`, which is fitted with N-2; interruptions are left out.

    A process that was faster or slower as a whole is put to the level of its model first: that is the layer of days.
    """
    growth = np.ones(len(calls))
    for fit, rows in kernel.fits(calls):
        growth[rows] = fit.growth
    mean, deviation = kernel.predict(calls) / growth, kernel.deviation(calls)
    process = calls.block * 1000003 + calls.cpu * 101 + calls.probe
    mean = mean * _levels(process, np.minimum(calls.duration_s, mean + CUT_SD * deviation), mean)
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
    # Which fit each call is described by, of a piece or of a core in it, numbered from 0 without gaps, and how many
    # coefficients the standard deviations of these fits have.
    where, n_sd = np.zeros(int(np.count_nonzero(good)), dtype=np.int64), 0
    for number, (fit, rows) in enumerate(kernel.fits(calls.where(good))):
        where[rows] = number
        n_sd += int(np.count_nonzero(fit.sd))
    constant = np.sqrt(np.bincount(where, deviation**2) / np.bincount(where))[where]
    resolution_sd = BLUR * mean + TICK_S
    modes = standardised_modes(residual / deviation)
    mixture = log_density(residual / deviation, modes, resolution_sd / deviation) - np.log(deviation)
    fits = (
        (_log_normal(residual, resolution_sd), 0),
        (_log_half_normal(residual, constant, resolution_sd), int(where.max()) + 1),
        (_log_half_normal(residual, deviation, resolution_sd), n_sd),
        (mixture, n_sd + 3 * len(modes) - 3),
    )
    bic = np.array([-2.0 * float(np.sum(density)) + count * np.log(len(residual)) for density, count in fits])
    return NoiseScores(tuple(float(value) for value in bic - bic.min()), modes, len(residual))


def _log_normal(residual: Floats, sd: Floats) -> Floats:
    result: Floats = -0.5 * (residual / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return result


def _log_half_normal(residual: Floats, deviation: Floats, resolution_sd: Floats) -> Floats:
    """Logarithm of the density of deviation * (centred half-normal) + resolution_sd * (standard normal)."""
    scale = deviation * _SCALE
    width = np.hypot(scale, resolution_sd)
    above = residual + deviation * _MEAN
    result: Floats = np.log(2.0) + _log_normal(above, width) + log_ndtr(above * scale / (resolution_sd * width))
    return result


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mean that was tried. error: root of its score, relative; worse_by: what its score is above the best one's, in
    standard errors of the difference over the folds; share_above: the same relative to the best score."""

    mean: str
    error: float
    worse_by: float
    share_above: float


@dataclass(frozen=True, slots=True)
class Selection:
    """Forms tried for a kernel, and the one taken.

    means      : candidates, simplest first
    levels     : the chosen mean with one set of coefficients (""), one for each socket ("-S") and each core ("-H"), as
                 far as there are several; empty with one core
    noises     : BIC of each noise; None if none was tried
    modes      : of the noise, where it is a mixture
    note       : why nothing was selected, or ""
    threads    : of the processes whose calls these are
    """

    kernel: str
    form: Form
    means: tuple[Candidate, ...]
    levels: Mapping[str, Candidate]
    noises: NoiseScores | None
    modes: tuple[Mode, ...] | None
    note: str
    threads: int = 1


@dataclass(frozen=True, slots=True)
class _Sample:
    """Calls that the selection looks at, each with the number of calls that it stands for; fold: its number, from 0."""

    calls: Calls
    weight: Floats
    typical_s: Floats
    fold: Integers


def select(calls: Calls, forms: Mapping[str, Form]) -> tuple[FittedKernel, Selection]:
    """The kernel fitted with the form that is asked for, or with the one that is selected.

    forms : forms by kernel, see `form.requested_forms`
    Raises FitError when there are no calls or none takes time.
    """
    asked = requested_form(calls.kernel, forms)
    means: tuple[Candidate, ...] = ()
    levels: Mapping[str, Candidate] = {}
    note = ""
    sample = _sample(calls)
    if asked is not None:
        form, note = asked, "asked for"
    elif sample is None:
        form, note = default_form(calls.kernel), "too few calls to select by"
        if len(judged(calls)) < 2 * MIN_CALLS:  # more coefficients would follow single calls
            form = replace(form, mean=FEW)
    else:
        form, means, levels = _selected_mean(sample, calls.kernel)
    # The polynomial is what the noises are compared by, and what a mixture is measured in.
    fitted = fit_kernel(calls, form=replace(form, noise="N-2"))
    if sample is None:
        if form.noise in {"N-0", "N-1"}:
            fitted = fit_kernel(calls, form=form)
        return fitted, Selection(calls.kernel, fitted.form, means, levels, None, None, note)
    noises = noise_scores(fitted, sample.calls)
    noise = form.noise if asked is not None else noises.best
    if noise in {"N-0", "N-1"}:
        fitted = fit_kernel(calls, form=replace(form, noise=noise))
    elif noise == "N'":
        fitted = replace(fitted, form=replace(fitted.form, noise=noise))
    modes = noises.modes if noise == "N'" else None
    return fitted, Selection(calls.kernel, fitted.form, means, levels, noises, modes, note)


def _selected_mean(sample: _Sample, kernel: str) -> tuple[Form, tuple[Candidate, ...], Mapping[str, Candidate]]:
    by_process = sample.fold * 1000003 + sample.calls.cpu * 101 + sample.calls.probe
    means = _candidates(sample, [Form(mean, False, "N-2") for mean in means_of(kernel)], by_process)
    chosen = next(
        candidate.mean
        for candidate in means
        if candidate.worse_by <= MEAN_MARGIN_SE and candidate.share_above <= SCORE_TOLERANCE
    )
    levels = [("", Form(chosen, False, "N-2"))]
    cores, sockets = (len(np.unique(each)) for each in (sample.calls.cpu, sample.calls.sockets()))
    if 1 < sockets < cores:
        levels.append(("-S", Form(chosen, False, "N-2", per_socket=True)))
    if cores > 1:
        levels.append(("-H", Form(chosen, True, "N-2")))
    if len(levels) == 1:
        return levels[0][1], means, {}
    tried = _candidates(sample, [form for _, form in levels], sample.fold)
    taken = next(form for (_, form), model in zip(levels, tried, strict=True) if model.worse_by <= PER_CORE_ERRORS)
    return taken, means, {name: candidate for (name, _), candidate in zip(levels, tried, strict=True)}


def _candidates(sample: _Sample, forms: list[Form], group: Integers) -> tuple[Candidate, ...]:
    """Scores of the forms, in their order; `group`: within one, the level of the durations is divided out."""
    losses = np.array([_losses(sample, form, group) for form in forms])  # (forms, folds)
    scores = losses.mean(axis=1)
    best = int(np.argmin(scores))
    difference = losses - losses[best]
    difference[np.abs(difference) <= EQUAL * scores[best]] = 0.0  # the same predictions, to rounding
    error = difference.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    worse_by = np.where(difference.mean(axis=1) > 0, difference.mean(axis=1) / np.maximum(error, 1e-300), 0.0)
    return tuple(
        Candidate(form.mean, float(np.sqrt(score)), float(worse), float(score / max(scores[best], 1e-300) - 1.0))
        for form, score, worse in zip(forms, scores, worse_by, strict=True)
    )


def _losses(sample: _Sample, form: Form, group: Integers) -> list[float]:
    measured = np.minimum(sample.calls.duration_s, CAP * sample.typical_s)
    # By what is typical, not by the candidate: a candidate that is wrong by the same factor everywhere is wrong.
    measured = measured / _levels(group, sample.weight * measured, sample.weight * sample.typical_s)
    losses = []
    for fold in np.unique(sample.fold):
        held = sample.fold == fold
        predicted = fit_kernel(sample.calls.where(~held), form=form).predict(sample.calls.where(held))
        error = (measured[held] - predicted) / sample.typical_s[held]
        losses.append(float(np.average(error**2, weights=(sample.weight * sample.typical_s)[held])))
    return losses


def _levels(group: Integers, measured: Floats, predicted: Floats) -> Floats:
    """Sum of measured over sum of predicted in the group of each call, 1 where nothing is predicted; shape of group."""
    _, code = np.unique(group, return_inverse=True)
    above, below = np.bincount(code, measured), np.bincount(code, predicted)
    result: Floats = np.where(below > 0, above / np.where(below > 0, below, 1.0), 1.0)[code]
    return result


def _sample(calls: Calls) -> _Sample | None:
    """Calls of all sizes, and their folds; None if a fold or what is left without it would be no sample."""
    calls = judged(calls)
    if len(calls) < 2 * MIN_CALLS or not np.any(calls.duration_s > 0):
        return None
    blocks, block = np.unique(calls.block, return_inverse=True)
    fold = block if len(blocks) > 1 else np.arange(len(calls)) * FOLDS // len(calls)
    chosen, weight = _of_all_sizes(np.log(calls.work()), SAMPLE + SAMPLE_PER_CORE * len(np.unique(calls.cpu)))
    looked_at = replace(calls.where(chosen), weight=weight)
    median = local_median(looked_at.work(), looked_at.duration_s)
    pieces = fit_kernel(looked_at, form=Form("M'", False, "N-2")).predict(looked_at)
    sample = _Sample(looked_at, weight, np.maximum(pieces, 0.1 * median + 1e-12), fold[chosen].astype(np.int64))
    counts = np.bincount(sample.fold)
    if np.min(counts[counts > 0]) < MIN_CALLS // 2 or len(chosen) - int(np.max(counts)) < MIN_CALLS:
        return None
    return sample


def _of_all_sizes(log_work: Floats, most: int) -> tuple[Integers, Floats]:
    """Indices of at most `most` calls in their order, and how many each stands for: from classes of equal width in the
    logarithm of the size equally many, as far as there are; what a class lacks, the others get."""
    low, high = float(log_work.min()), float(log_work.max())
    code = np.minimum((log_work - low) / max(high - low, 1e-300) * SIZE_CLASSES, SIZE_CLASSES - 1).astype(np.int64)
    members = [np.flatnonzero(code == number) for number in np.unique(code)]
    random = np.random.default_rng(0)
    left, chosen, weights = most, [], []
    for position, rows in enumerate(sorted(members, key=len)):
        count = min(len(rows), left // (len(members) - position))
        chosen.append(random.choice(rows, count, replace=False))
        weights.append(np.full(count, len(rows) / max(count, 1)))
        left -= count
    index, weight = np.concatenate(chosen), np.concatenate(weights)
    order = np.argsort(index)
    return index[order].astype(np.int64), weight[order]
