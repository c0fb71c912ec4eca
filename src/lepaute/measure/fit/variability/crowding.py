"""How much longer a kernel takes while the other cores of its socket compute: they share caches, memory and power.

A kernel is fitted to calls at full load, since most predictions are of full nodes, and since contention that depends on
the size of a call is then in the coefficients. What lower loads say is one factor each, on calls of all sizes: the sum
of the measured durations over that of a model of full load, after lasting differences between cores and what a block
was faster or slower is divided out. The error of the factor, with that of classes of size, is one of durations.
"""

from dataclasses import dataclass, replace

import numpy as np

from lepaute.errors import FitError
from lepaute.measure.fit.kernels.form import Form
from lepaute.measure.fit.kernels.kernel_fit import FittedKernel, fit_kernel
from lepaute.measure.fit.kernels.platform_kernel import class_boundaries, relative_error, size_classes
from lepaute.measure.fit.kernels.regions import CAP
from lepaute.measure.fit.numeric import Booleans, Floats, inflation
from lepaute.measure.fit.observations.calls import Calls, numbered
from lepaute.measure.fit.variability.days import BlockEffects, variance_of_processes
from lepaute.stats.student import student_quantile

#: Calls of a load that are enough to compare it with another.
MIN_CALLS = 20
#: Loads in between get rows where one differs from the line: error of the first kind of all tests (Bonferroni).
SIGNIFICANCE = 0.05
#: Few calls of microseconds can scatter by more; a factor drawn from that would say nothing.
MAX_RELATIVE_SD = 1.0
#: An increase that was found from loads without an idle one is not believed beyond this.
MAX_INCREASE = 9.0

Rows = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Crowding:
    """The increase of a kernel's durations by the share of the other cores of the socket that compute.

    rows        : (share, increase), rising in share, linear in between from (0, 0); empty if it is unknown
    relative_sd : error of durations next to idle cores, where those at the last share are known
    """

    rows: Rows = ()
    relative_sd: float = 0.0


@dataclass(frozen=True, slots=True)
class _Load:
    """Durations under a load over those at full load: logarithm, its standard error, and the degrees of freedom."""

    share: float
    log_ratio: float
    error: float
    degrees_of_freedom: float


def increase(rows: Rows, share: Floats) -> Floats:
    """The increase at each share, shape of share; constant beyond the last row."""
    if not rows:
        return np.zeros_like(share)
    return np.interp(share, [0.0, *(each for each, _ in rows)], [0.0, *(each for _, each in rows)])


def relieved(calls: Calls, rows: Rows) -> Calls:
    """The calls as they would be alone: durations divided by 1 + the increase at their load."""
    if not rows:
        return calls
    return replace(calls, duration_s=calls.duration_s / (1.0 + increase(rows, calls.shares())))


def crowding_of(calls: Calls) -> Crowding:
    """What the loads say that a kernel was measured under, without the error by classes of size, see `with_size_error`.

    Unknown where there are too few calls at full load, or under any other.
    """
    warm = _compared(calls)
    shares = warm.shares()
    full = warm.at_full_load()
    last = float(shares.max(initial=0.0))
    lower = [float(share) for share in np.unique(shares) if np.count_nonzero(shares == share) >= MIN_CALLS]
    lower = [share for share in lower if share < last]
    if not lower or np.count_nonzero(full) < MIN_CALLS:
        return Crowding()
    try:
        model = fit_kernel(warm.where(full), form=Form("M'", False, "N-2"))
    except FitError:
        return Crowding()
    measured, expected = _measured_and_expected(model, warm, full)
    loads = [_load(warm, measured, expected, share) for share in lower]
    return _table([load for load in loads if load is not None], last)


def with_size_error(crowding: Crowding, calls: Calls, kernel: FittedKernel, effects: BlockEffects | None) -> Crowding:
    """The same, its error including what one factor for calls of all sizes is wrong by.

    calls, kernel : relieved calls and the model fitted to them
    The error of a class of size under a load that is not the full one is sum(measured) / sum(predicted) - 1, cores and
    blocks put to their level at full load; from its square goes what the scatter of single calls and the effects of the
    processes explain. Errors count by their time and by how far from full load they are.
    """
    warm = _compared(calls)
    full = warm.at_full_load()
    if not crowding.rows or not full.any():
        return crowding
    measured, expected = _measured_and_expected(kernel, warm, full)
    last, boundaries = crowding.rows[-1][0], class_boundaries(calls)
    squares = times = 0.0
    for share in np.unique(warm.shares()[~full]):
        at = np.flatnonzero(warm.shares() == share)
        for mask in size_classes(warm.where(at), boundaries):
            rows = at[mask]
            error, variance, time_s = relative_error(measured[rows], expected[rows])
            variance += variance_of_processes(warm.where(rows), expected[rows], effects)
            squares += time_s * (error**2 - variance) / max(1.0 - float(share) / last, 0.1) ** 2
            times += time_s
    of_sizes = max(0.0, squares / times) if times > 0.0 else 0.0
    both = float(np.hypot(crowding.relative_sd, np.sqrt(of_sizes)))
    return replace(crowding, relative_sd=min(both, MAX_RELATIVE_SD))


def _compared(calls: Calls) -> Calls:
    warm = calls.where(calls.nonempty() & ~calls.cold)
    return warm.where(warm.in_context) if warm.in_context.any() else warm


def _measured_and_expected(kernel: FittedKernel, calls: Calls, full: Booleans) -> tuple[Floats, Floats]:
    """Durations, capped, and those of the model times what core and block of each call were slower by than it at full
    load; as the model says for those not seen under it."""
    expected = kernel.predict(calls)
    measured = np.minimum(calls.duration_s, CAP * expected)
    result = np.ones(len(calls))
    for group in (calls.cpu, calls.block):
        code = numbered([group])
        count = int(code.max(initial=0)) + 1
        above = np.bincount(code[full], measured[full], count)
        below = np.bincount(code[full], (expected * result)[full], count)
        result = result * np.divide(above, below, out=np.ones(count), where=(below > 0) & (above > 0))[code]
    return measured, expected * result


def _load(calls: Calls, measured: Floats, expected: Floats, share: float) -> _Load | None:
    mine = calls.shares() == share
    launch = numbered([calls.launches()[mine]])
    above, below = np.bincount(launch, measured[mine]), np.bincount(launch, expected[mine])
    total = float(below.sum())
    if total <= 0.0 or above.sum() <= 0.0:
        return None
    ratio = float(above.sum()) / total
    apart, count = above - ratio * below, len(above)
    if count < 2:  # how launches differ does not show
        scatter = float(np.sum((measured[mine] - ratio * expected[mine]) ** 2))
        return _Load(share, float(np.log(ratio)), float(np.sqrt(scatter)) / total / ratio, 1.0)
    effective = total**2 / float(np.sum(below**2))
    error = float(np.sqrt(count / (count - 1) * np.sum(apart**2))) / total / ratio
    return _Load(share, float(np.log(ratio)), error, max(1.0, effective - 1.0))


def _table(loads: list[_Load], last: float) -> Crowding:
    """Rows from the ratios to full load; one row where the loads in between lie on a line within their errors."""
    if not loads:
        return Crowding()
    if loads[0].share == 0.0:
        alone, between = loads[0], loads[1:]
        whole = float(np.exp(-alone.log_ratio)) - 1.0
    else:  # as if in proportion from an idle socket to the lowest load that was measured
        alone, between = loads[0], []
        part = alone.share / last
        ratio = max(float(np.exp(alone.log_ratio)), part + (1.0 - part) / (1.0 + MAX_INCREASE))
        whole = (1.0 - ratio) / (ratio - part)
        alone = replace(alone, error=alone.error * ratio / (ratio - part))
    error = alone.error * float(np.sqrt(inflation(alone.degrees_of_freedom)))
    rows = [(load.share, float(np.exp(load.log_ratio - alone.log_ratio)) - 1.0) for load in between]
    if not any(_off_line(load, alone, whole, last, len(between)) for load in between):
        rows = []
    return Crowding((*rows, (last, whole)), error)


def _off_line(load: _Load, alone: _Load, whole: float, last: float, tests: int) -> bool:
    part = load.share / last
    on_line = 1.0 + whole * part
    apart = load.log_ratio - alone.log_ratio - float(np.log(on_line))
    error = float(np.hypot(load.error, (1.0 - part) / on_line * alone.error))
    freedom = min(load.degrees_of_freedom, alone.degrees_of_freedom)
    return abs(apart) > student_quantile(1.0 - SIGNIFICANCE / tests / 2.0, freedom) * error
