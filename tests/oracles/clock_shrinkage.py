"""Drifts of clocks shrunk together: for one group, without regard to speed.

Why so: docs/design/decisions/clocks_and_comparisons.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

HORIZON_NS = 20e9
DRIFT_VARIANCES = np.array([0.0, *(0.01 * 0.5**step for step in range(23))]) ** 2
PRIOR = np.array([0.5, *[0.5 / 23] * 23])


@dataclass(frozen=True)
class Shrunk:
    """drift and drift_variance: (clocks,); degrees: of freedom that the clocks lend each other."""

    drift: Any
    drift_variance: Any
    degrees: int


def student_factor(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution over the normal one, by expansion from 4 degrees on."""
    if freedom <= 3:
        return float((12.7062, 4.3027, 3.1824)[freedom - 1] / 1.959964)
    z2 = 1.959964**2
    terms = ((z2 + 1) / 4, (5 * z2**2 + 16 * z2 + 3) / 96, (3 * z2**3 + 19 * z2**2 + 17 * z2 - 15) / 384)
    return float(1 + sum(term / freedom**power for power, term in enumerate(terms, 1)))


def moderated(errors: Any, freedom: int) -> tuple[Any, int]:
    """Variances of errors (clocks,) with what they have in common, and with how many degrees of freedom that counts."""
    if len(errors) == 1:
        return errors, 0
    logs = np.log(errors)
    excess = logs.var(ddof=1) - special.polygamma(1, freedom / 2)
    degrees = np.arange(1, (len(errors) - 1) * freedom + 1)
    enough = special.polygamma(1, degrees / 2) <= excess
    lent = int(degrees[np.argmax(enough)] if enough.any() else degrees[-1])

    def mean_log(n: int) -> float:
        return float(special.digamma(n / 2) - np.log(n / 2))

    common = np.exp(logs.mean() - mean_log(freedom) + mean_log(lent))
    return (lent * common + freedom * errors) / (lent + freedom), lent


def shrunk(drift: Any, drift_variance: Any, variance_ns2: Any, freedom: int) -> Shrunk:
    """What lep_clock_shrink makes of lines, arrays of (clocks,), each from freedom + 2 points."""
    errors, lent = moderated(drift_variance / student_factor(freedom) ** 2, freedom)
    scales = errors[:, None] + DRIFT_VARIANCES
    degrees = (freedom + lent) * (scales / errors[:, None]) ** 2
    squares = drift[:, None] ** 2 / scales / degrees
    density = -special.betaln(0.5, degrees / 2) - np.log(scales * degrees) / 2 - (degrees + 1) / 2 * np.log1p(squares)
    posterior = np.log(PRIOR) + density.sum(axis=0)
    posterior = np.exp(posterior - special.logsumexp(posterior))
    shares = DRIFT_VARIANCES / scales
    better = variance_ns2[:, None] + HORIZON_NS**2 * np.minimum(DRIFT_VARIANCES, errors[:, None])
    estimate = drift * (posterior * shares / better).sum(axis=1) / (posterior / better).sum(axis=1)
    wide = errors * student_factor(freedom + lent) ** 2
    greater = np.cumsum(posterior[1:]) / posterior[1:].sum()  # than the next variance
    most = DRIFT_VARIANCES[1 + int(np.argmax(greater > 0.05))]
    off = drift * most / (most + errors) - estimate
    return Shrunk(estimate, most * wide / (most + wide) + off**2, lent)
