"""Standard deviation of the days of each cpu: its factor, and the log-normal population of these factors.

The part of a day that is a cpu's own is, with one factor for each coefficient,

    own[cpu, day] = scale[cpu] * z[cpu, day];   log scale[cpu] ~ N(0, Omega[group]);   z ~ N(0, C[group])

so that C is the covariance of a typical cpu: the median factor is 1. A variance s2 of n degrees of freedom, of normal
days, has E[log s2] = log sigma2 + digamma(n/2) - log(n/2), and logarithms of the variances of two coefficients of
correlation r have the covariance sum over k >= 1 of r^2k (k-1)! / (k (n/2)_k), (a)_k = a (a+1) ... (a+k-1), which is
trigamma(n/2) for r = 1. Omega is the covariance of the half logarithms between CPUs without this part; the factor of a
single cpu is shrunk by what remains (empirical Bayes; Efron & Morris, JASA 70, 1975).

Effects of the days that all CPUs share are taken off by weighted least squares, each cpu with the weight of its own
variance: with equal weights the noise of the loud CPUs would end up in the residuals of the quiet ones.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from lepaute.measure.fit.numeric import Floats, Integers
from lepaute.measure.fit.population.coefficients import Coefficients
from lepaute.stats.covariances import BetweenDays, nearest_covariance, two_way_fit, unit_means

#: Degrees of freedom of a cpu's days, below which its variance says nothing about Omega.
MIN_FREEDOM = 3.0
#: Rounds of weights and residuals; the weights of Dahu's CPUs move by less than 1 % after four.
ROUNDS = 6
#: Terms of the series for the covariance of two logarithms.
SERIES = 400
#: Added to variances of logarithms, so that coefficients which always go together can be told about.
RIDGE = 1e-6
#: Chance of a note about outliers where there are none.
OUTLIERS = 0.01
#: Days of a cpu of which none can stand out: two are always equally far from their mean.
MAX_FEW = 4


@dataclass(frozen=True, slots=True)
class DayScales:
    """The own part of days, where CPUs differ in it.

    typical, mean    : C and the mean covariance of each group, shape (groups, p, p); all alike where `grouped` is false
    covariance_log   : Omega of each group, shape (groups, p, p)
    pooled_typical, pooled_log : of all CPUs as one group, shape (p, p)
    log_scale        : logarithms of the factors of each cpu, shrunk, shape (CPUs, p)
    residuals        : the own part of each row, shape (rows, p)
    grouped          : whether groups differ
    """

    typical: Floats
    mean: Floats
    covariance_log: Floats
    pooled_typical: Floats
    pooled_log: Floats
    log_scale: Floats
    residuals: Floats
    grouped: bool


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the days of all CPUs say about their variances, for the coefficients that vary.

    residuals : shape (rows, q);  freedom : shape (CPUs, q);  variance : (CPUs, q)
    half_log : half the logarithms of the variances, unbiased;  counted : CPUs with enough days, shape (CPUs,)
    """

    residuals: Floats
    freedom: Floats
    variance: Floats
    half_log: Floats
    counted: "np.ndarray[tuple[int], np.dtype[np.bool_]]"


@dataclass(frozen=True, slots=True)
class _Model:
    """A population of half logarithms: centre and Omega of each label, errors of each cpu; `bic` of the logarithms."""

    label: Integers
    centre: Floats
    covariance: Floats
    error: Floats
    bic: float

    def log_scale(self, seen: _Seen) -> Floats:
        """Shrunk logarithms of the factors, shape (CPUs, q); 0 of CPUs with too few days."""
        spread = self.covariance[self.label]
        gain = spread @ np.linalg.inv(spread + self.error)
        shrunk: Floats = (gain @ (seen.half_log - self.centre[self.label])[:, :, None])[:, :, 0]
        return np.where(seen.counted[:, None], shrunk, 0.0)


def day_scales(data: Coefficients, of_unit: Integers) -> DayScales | None:
    """The factors of the CPUs, and their population by group where BIC prefers that; None if BIC prefers one
    covariance for all CPUs, or where there are too few CPUs and days to tell (two CPUs for each coefficient, and two).

    of_unit : the group of each cpu
    """
    size, groups = len(data.terms), int(of_unit.max()) + 1
    known = np.flatnonzero(np.ptp(data.values, axis=0) > 0.0)
    if not len(known):
        return None
    weight = np.ones((data.units, len(known)))
    model: _Model | None = None
    for _ in range(ROUNDS):
        seen = _seen(data, known, weight)
        if np.count_nonzero(seen.counted) < 2 * size + 2:
            return None
        model = _chosen(data, seen, of_unit)
        if model is None:
            return None
        log_scale = model.log_scale(seen)
        weight = np.exp(-2.0 * (model.centre[model.label] + log_scale))
        weight /= weight.mean(axis=0)
    assert model is not None
    one = np.zeros(data.units, dtype=np.int64)
    pooled = _population(seen, one, _errors(data, seen, one))
    grouped = len(model.centre) > 1
    rows = [number if grouped else 0 for number in range(groups)]
    label = model.label[data.unit]
    typical, mean = [], []
    for number in range(len(model.centre)):
        sd = np.exp(model.centre[number])
        typical.append(np.outer(sd, sd) * _correlation(data, seen, model.label == number))
        freedom = seen.freedom[model.label == number].sum(axis=0)
        part = seen.residuals[label == number]
        mean.append(part.T @ part / np.sqrt(np.outer(freedom, freedom)))
    pooled_sd = np.exp(pooled.centre[0])
    return DayScales(
        typical=_placed(np.array(typical)[rows], known, size),
        mean=_placed(np.array(mean)[rows], known, size),
        covariance_log=_placed(model.covariance[rows], known, size),
        pooled_typical=_placed(
            np.outer(pooled_sd, pooled_sd) * _correlation(data, seen, np.ones(data.units, dtype=bool)), known, size
        ),
        pooled_log=_placed(pooled.covariance[0], known, size),
        log_scale=_columns(log_scale, known, size),
        residuals=_columns(seen.residuals, known, size),
        grouped=grouped,
    )


def _seen(data: Coefficients, known: Integers, weight: Floats) -> _Seen:
    fits = [two_way_fit(data.unit, data.day, data.values[:, [of]], weight[:, at]) for at, of in enumerate(known)]
    residuals = np.column_stack([fit.residuals for fit in fits])
    freedom = np.column_stack([fit.freedom for fit in fits])
    scatter = unit_means(data.unit, residuals**2) * np.bincount(data.unit)[:, None]
    counted = np.all((freedom >= MIN_FREEDOM) & (scatter > 0.0), axis=1)
    variance = np.where(counted[:, None], scatter / np.where(counted[:, None], freedom, 1.0), 1.0)
    half_dof = np.where(counted[:, None], freedom, 2.0) / 2.0
    half_log = 0.5 * (np.log(variance) - special.digamma(half_dof) + np.log(half_dof))
    return _Seen(residuals, freedom, variance, half_log, counted)


def _chosen(data: Coefficients, seen: _Seen, of_unit: Integers) -> _Model | None:
    """The population that BIC prefers: none (None), one, one centre a group, or one of its own for each group."""
    one = np.zeros(len(of_unit), dtype=np.int64)
    error = _errors(data, seen, one)
    alike = _population(seen, one, error)
    none = _bic(seen, one, alike.centre, np.zeros_like(alike.covariance), error, 0)
    candidates = [alike]
    count = np.bincount(of_unit[seen.counted], minlength=int(of_unit.max()) + 1)
    if len(count) > 1 and np.all(count >= 2):
        error = _errors(data, seen, of_unit)
        candidates.append(_population(seen, of_unit, error))
        if np.all(count > 2 * seen.half_log.shape[1]):
            candidates.append(_population(seen, of_unit, error, own=True))
    best = min(candidates, key=lambda model: model.bic)
    return best if best.bic < none else None


def _population(seen: _Seen, label: Integers, error: Floats, *, own: bool = False) -> _Model:
    """Centres and Omega by moments, unbiased but for the projection; `own`: Omega of each label by itself."""
    size, groups = seen.half_log.shape[1], int(label.max()) + 1
    weight = np.where(seen.counted, seen.freedom.mean(axis=1), 0.0)
    scatter, share, expected = np.zeros((groups, size, size)), np.zeros(groups), np.zeros((groups, size, size))
    centre = np.zeros((groups, size))
    for number in range(groups):
        w = np.where(label == number, weight, 0.0)
        total = w.sum()
        centre[number] = w @ seen.half_log / total
        apart = seen.half_log - centre[number]
        scatter[number] = (w[:, None] * apart).T @ apart
        part = w - w**2 / total  # the centre is a mean of the same logarithms
        share[number] = part.sum()
        expected[number] = np.einsum("u,uij->ij", part, error)
    if not own:
        scatter[:], expected[:], share[:] = scatter.sum(axis=0), expected.sum(axis=0), share.sum()
    covariance = np.array(
        [
            nearest_covariance((scatter[number] - expected[number]) / share[number], np.diag(expected[number]))[0]
            for number in range(groups)
        ]
    )
    parameters = (groups if own else 1) * size * (size + 1) // 2 + (groups - 1) * size
    return _Model(label, centre, covariance, error, _bic(seen, label, centre, covariance, error, parameters))


def _bic(seen: _Seen, label: Integers, centre: Floats, covariance: Floats, error: Floats, parameters: int) -> float:
    """BIC of the half logarithms of the counted CPUs; `parameters` beyond one centre."""
    total = (covariance[label] + error)[seen.counted]
    apart = (seen.half_log - centre[label])[seen.counted]
    _, log_determinant = np.linalg.slogdet(total)
    square = np.einsum("ui,uij,uj->u", apart, np.linalg.inv(total), apart)
    return float(np.sum(log_determinant + square)) + parameters * float(np.log(len(apart)))


def _errors(data: Coefficients, seen: _Seen, label: Integers) -> Floats:
    """The covariance of the half logarithms of each cpu that its number of days leaves, shape (CPUs, q, q)."""
    size = seen.half_log.shape[1]
    half = np.where(seen.counted, seen.freedom.mean(axis=1), 2.0) / 2.0
    result = np.empty((data.units, size, size))
    for number in range(int(label.max()) + 1):
        here = label == number
        result[here] = 0.25 * log_covariance(_correlation(data, seen, here), half[here]) + RIDGE * np.eye(size)
    return result


def log_covariance(correlation: Floats, half: Floats) -> Floats:
    """Covariance of the logarithms of sample variances, shape (n, q, q), of normal coefficients of that correlation.

    half : half the degrees of freedom, shape (n,)
    """
    k = np.arange(1.0, SERIES)
    # (k-1)! / (k (a)_k) for each a
    terms = np.exp(special.gammaln(k) - np.log(k) + special.gammaln(half[:, None]) - special.gammaln(half[:, None] + k))
    summed = np.einsum("ijk,uk->uij", np.minimum(correlation**2, 1.0)[:, :, None] ** k, terms)
    full = special.polygamma(1, half)[:, None, None]
    result: Floats = np.where(correlation**2 >= 1.0 - 1e-9, full, np.minimum(summed, full))
    return result


def _correlation(data: Coefficients, seen: _Seen, units: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Floats:
    """Correlation of a cpu's own parts of days: residuals of each divided by its standard deviation, and pooled."""
    rows = (units & seen.counted)[data.unit]
    scaled = seen.residuals[rows] / np.sqrt(seen.variance)[data.unit[rows]]
    product = scaled.T @ scaled
    root = np.sqrt(np.diag(product))
    found: Floats = product / np.outer(root, root) if len(scaled) else np.eye(scaled.shape[1])
    return found


def _placed(matrices: Floats, known: Integers, size: int) -> Floats:
    """Matrices of the coefficients that vary, in the place of all; zero elsewhere."""
    whole = np.zeros((*matrices.shape[:-2], size, size))
    whole[..., known[:, None], known] = matrices
    return whole


def _columns(values: Floats, known: Integers, size: int) -> Floats:
    whole = np.zeros((len(values), size))
    whole[:, known] = values
    return whole


def covariances_of_groups(data: Coefficients, of_unit: Integers, days: BetweenDays) -> list[Floats | None] | None:
    """Sigma_T (its own part) of each group where groups differ in it, by BIC; None if they do not.

    For CPUs alike in the deviation of their days. Every group needs twice as many degrees of freedom as coefficients.
    """
    size, count = len(data.terms), int(of_unit.max()) + 1
    deviations = data.values - unit_means(data.unit, data.values)[data.unit]
    label = of_unit[data.unit]
    freedom = np.array([np.sum(label == group) - len(np.unique(data.unit[label == group])) for group in range(count)])
    if count < 2 or np.any(freedom < 2 * size) or np.any(np.diag(days.total) <= 0):
        return None
    root = np.sqrt(np.diag(days.total))
    parts = [deviations[label == number] / root for number in range(count)]
    scatters = [part.T @ part for part in parts]
    _, pooled = np.linalg.slogdet(np.sum(scatters, axis=0) / freedom.sum())
    singles = [np.linalg.slogdet(scatter / n)[1] for scatter, n in zip(scatters, freedom, strict=True)]
    gain = freedom.sum() * pooled - float(np.dot(freedom, singles))
    if not gain > (count - 1) * size * (size + 1) / 2 * np.log(freedom.sum()):
        return None
    common = np.zeros((size, size)) if days.common is None else days.common
    return [
        nearest_covariance(scatter / n * np.outer(root, root) - common, np.diag(days.total))[0]
        for scatter, n in zip(scatters, freedom, strict=True)
    ]


def outlying_days(data: Coefficients, scales: DayScales | None) -> list[str]:
    """A sentence for each coefficient in which days of single CPUs are far from the other days of the same cpu.

    Grubbs' test (Annals of Mathematical Statistics 21, 1950) of each row, at OUTLIERS over all rows by Bonferroni.
    """
    if scales is not None:
        residuals = scales.residuals
    else:
        deviations = data.values - unit_means(data.unit, data.values)[data.unit]
        residuals = deviations - unit_means(data.day, deviations)[data.day]
    days = np.bincount(data.unit)[data.unit, None]
    square = unit_means(data.unit, residuals**2)[data.unit] * days
    with np.errstate(divide="ignore", invalid="ignore"):
        share = residuals**2 / square
        p = 2.0 * stats.t.sf(np.sqrt(share * (days - 2.0) / (1.0 - share)), days - 2.0)
    counts = np.sum((p * len(residuals) < OUTLIERS) & (days > MAX_FEW), axis=0)
    return [
        f"{count} of {len(residuals)} days of single CPUs are outliers in {term}: they decide how much the days of "
        "those CPUs vary."
        for term, count in zip(data.terms, counts, strict=True)
        if count
    ]
