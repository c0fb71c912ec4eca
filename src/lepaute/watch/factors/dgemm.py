"""Factors of the calls of dgemm that a run timed, by processor: performance, and coefficients of the duration.

Of a calibration those of the probe `dgemm`, with the usual contents, of processes of one thread, while all cores
computed; HPL's own calls have other sizes on other machines and are left out. A run of the probe that other load
disturbed was made again; the last one counts, so that each size is there once a core and block whatever was made again.
Of an experiment all rows that are calls of dgemm: of tables with the columns m, n, k and duration_s those whose
`kernel` or `kind` is dgemm, or all of a table whose name begins with dgemm.

A rate is the work of all calls over the time of all calls, as in Cornebize's thesis, section 9.2: not the mean of the
rates of calls, which is that of the small ones. It is that of one core, since calls of several cores are added up.

Coefficients are those of ordinary least squares on the means of each (m, n, k): eight terms.

    duration = c_mnk mnk + c_mn mn + c_mk mk + c_nk nk + c_1 + c_m m + c_n n + c_k k

and the same terms of the standard deviation between the calls of one size: the fit of the residuals, as the test of
the thesis has them (chapters 4 and 9): nothing is weighted, selected or cut, so that coefficients stay linear.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lepaute.measure.fit.kernels.polynomial import design_matrix
from lepaute.measure.fit.numeric import Floats, independent_columns
from lepaute.measure.fit.observations.calibrations import ACTIVE, THREADS, with_loads
from lepaute.measure.fit.observations.columns import Place, check_durations, checked_table
from lepaute.measure.fit.observations.factors import usual_conditions
from lepaute.measure.observation_columns import KERNELS, SENTINELS
from lepaute.stats.intervals import upper_trimmed_mean
from lepaute.watch.factors.archived_run import PLACES, ArchivedRun, last_attempts
from lepaute.watch.factors.value import FactorValue, cells_text, rate_of

DGEMM, SIZE, DURATION = "dgemm", ("m", "n", "k"), "duration_s"
RATE, RATE_AT_SIZE, SENTINEL_RATE = "dgemm_rate_flops", "dgemm_2048_rate_flops", "sentinel_rate_flops"
FIXED_SIZE = 2048
#: In the order in which they are kept where sizes do not tell two of them apart.
TERMS = ("mnk", "mn", "mk", "nk", "1", "m", "n", "k")


def coefficient_name(term: str, *, residual: bool = False) -> str:
    """The factor of a term: seconds per unit of it."""
    return f"dgemm_{'intercept' if term == '1' else term}{'_residual' if residual else ''}_s"


#: The vectors that are tested together (p = 3 and p = 8).
PRODUCT_FACTORS = tuple(map(coefficient_name, ("mnk", "mk", "nk")))
MODEL_FACTORS = tuple(map(coefficient_name, TERMS))
RESIDUAL_FACTORS = tuple(coefficient_name(term, residual=True) for term in TERMS)


@dataclass(frozen=True, slots=True)
class _DgemmCalls:
    """The calls on one processor of a node, vectors of shape (calls,); durations less the cost of the clock."""

    node: str
    cpu: int
    m: Floats
    n: Floats
    k: Floats
    duration_s: Floats
    conditions: "Mapping[str, str]"


def _dgemm_calls(run: ArchivedRun) -> tuple[_DgemmCalls, ...]:
    """By node and processor; none where no dgemm was timed. Raises FitError, one line, for a table that cannot be."""
    return run.once("dgemm calls", lambda: _calls(run))


def _calls(run: ArchivedRun) -> tuple[_DgemmCalls, ...]:
    if run.is_calibration:
        frame, load = _of_calibration(run)
    else:
        frame, load = _of_experiment(run), {}
    if frame is None or len(frame) == 0:
        return ()
    frame = _with_cpu(run, frame)
    varied = [name for name in run.design_columns if name in frame and name not in (*SIZE, *PLACES)]
    columns = [*SIZE, *(name for name in ("content", "warm") if name in frame and name not in varied), *varied]
    calls = []
    for (node, cpu), rows in frame.groupby(["node", "socket"], sort=True):
        m, n, k = (rows[letter].to_numpy(np.float64) for letter in SIZE)
        duration: Floats = rows[DURATION].to_numpy(np.float64)
        if "clock_cost_s" in rows:
            duration = np.maximum(duration - rows["clock_cost_s"].to_numpy(np.float64), 0.0)
        conditions = {**run.blas(str(node)), **load, "sizes of dgemm": cells_text(rows, columns)}
        calls.append(_DgemmCalls(str(node), int(str(cpu)), m, n, k, duration, conditions))
    return tuple(calls)


def _of_calibration(run: ArchivedRun) -> "tuple[pd.DataFrame | None, dict[str, str]]":
    if KERNELS not in run.archive.members():
        return None, {}
    table = checked_table(run.archive, KERNELS)
    names = table["probe"].astype(str) == DGEMM
    frame = with_loads(usual_conditions(table[names & (table["kernel"].astype(str) == DGEMM)])).copy()
    if len(frame) == 0:
        return None, {}
    frame["node"] = run.named_nodes(frame, KERNELS)
    frame = frame[frame[THREADS] == frame[THREADS].min()]
    frame = frame[frame[ACTIVE] == frame.groupby("node")[ACTIVE].transform("max")]
    frame = last_attempts(frame, "node", "block", "cpu")
    return frame, {"threads of a process": str(int(frame[THREADS].min()))}


def _of_experiment(run: ArchivedRun) -> "pd.DataFrame | None":
    parts = []
    for member in run.tables():
        table = run.archive.table(member)
        if not {*SIZE, DURATION} <= set(table.columns):
            continue
        label = next((name for name in ("kernel", "kind") if name in table), None)
        own = member.rpartition("/")[2].startswith(DGEMM)
        rows = table[table[label].astype(str) == DGEMM] if label else table if own else table.iloc[:0]
        if len(rows) == 0:
            continue
        for column in (*SIZE, DURATION):
            check_durations(rows, Place(run.archive.path, member), column)
        parts.append(rows.assign(node=run.named_nodes(rows, member)))
    if not parts:
        return None
    usual = usual_conditions(frame := pd.concat(parts, ignore_index=True))
    return usual if len(usual) else frame


def _with_cpu(run: ArchivedRun, frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows with the number of their processor, those of no work left out."""
    name = next((name for name in ("pu", "cpu", "core") if name in frame), None)
    threads = pd.Series(-1, index=frame.index) if name is None else pd.to_numeric(frame[name], errors="coerce")
    pairs = pd.DataFrame({"node": frame["node"], "thread": threads.fillna(-1).astype(np.int64)})
    known = pairs.drop_duplicates()
    sockets = {(node, thread): run.cpu_of(node, thread) for node, thread in known.itertuples(index=False, name=None)}
    socket = [sockets[pair] for pair in pairs.itertuples(index=False, name=None)]
    return frame.assign(socket=socket).iloc[np.flatnonzero((frame[list(SIZE)].to_numpy(np.float64) > 0).all(axis=1))]


def performance(run: ArchivedRun) -> Iterator[FactorValue]:
    """The rates of each processor; what was not measured has none."""
    for calls in _dgemm_calls(run):
        fixed = (calls.m == FIXED_SIZE) & (calls.n == FIXED_SIZE) & (calls.k == FIXED_SIZE)
        for factor, chosen in ((RATE, np.ones(len(fixed), np.bool_)), (RATE_AT_SIZE, fixed)):
            if chosen.any():
                flop = 2.0 * calls.m * calls.n * calls.k
                rate = rate_of(flop[chosen], calls.duration_s[chosen])
                yield FactorValue(calls.node, factor, rate, calls.cpu, calls.conditions)
    yield from _sentinels(run)


def _sentinels(run: ArchivedRun) -> Iterator[FactorValue]:
    """The fixed dgemm that a calibration repeats on all cores: mean over its sentinels and the cores of a processor.

    Those that other load disturbed are left out where at least half of a node's were not, as in fits.
    """
    if not run.is_calibration or SENTINELS not in run.archive.members():
        return
    table = checked_table(run.archive, SENTINELS)
    nodes = run.nodes_of(table)
    if nodes is None or len(table) == 0:
        return
    table = table.assign(node=nodes, net_s=(table["duration_s"] - table["clock_cost_s"]).clip(lower=1e-9))
    for node, rows in table.groupby("node", sort=True):
        order = rows.groupby("order")["disturbed"].first().astype(bool)
        kept = order[~order].index if 2 * int((~order).sum()) >= len(order) else order.index
        rows = rows[rows["order"].isin(kept)]  # noqa: PLW2901
        threads = rows["pu"] if "pu" in rows else rows["cpu"]
        socket = threads.map({thread: run.cpu_of(str(node), int(thread)) for thread in threads.unique()})
        size = [int(rows[letter].iloc[0]) for letter in "mnk"]
        conditions = {**run.blas(str(node)), "size of the sentinel": " x ".join(map(str, size))}
        for cpu, calls in rows.groupby(socket, sort=True):
            level = calls.groupby(["order", "cpu"])["net_s"].agg(lambda seconds: upper_trimmed_mean(seconds.tolist()))
            rate = 2.0 * float(np.prod(np.array(size, np.float64))) / float(level.mean())
            yield FactorValue(str(node), SENTINEL_RATE, rate, int(cpu), conditions)


@dataclass(frozen=True, slots=True)
class Regression:
    """Coefficients in seconds per unit of the term, by term; `residual` has none where no size has two calls."""

    mean: dict[str, float]
    residual: dict[str, float]


def coefficients(run: ArchivedRun) -> Iterator[FactorValue]:
    """The coefficients of each processor; terms that its sizes do not determine are left out."""
    for calls in _dgemm_calls(run):
        fits = regression(calls.m, calls.n, calls.k, calls.duration_s)
        for residual, values in ((False, fits.mean), (True, fits.residual)):
            for term, value in values.items():
                name = coefficient_name(term, residual=residual)
                yield FactorValue(calls.node, name, value, calls.cpu, calls.conditions)


def regression(m: Floats, n: Floats, k: Floats, duration_s: Floats) -> Regression:
    """The two fits of some calls, vectors of shape (calls,); empty if there are no more sizes than terms.

    The deviation of a size is that between its calls, of which one is not free; sizes of one call do not enter it.
    """
    sizes, size = np.unique(np.column_stack([m, n, k]), axis=0, return_inverse=True)
    size = size.ravel()
    calls = np.bincount(size)
    mean = np.bincount(size, duration_s) / calls
    squares = np.bincount(size, (duration_s - mean[size]) ** 2)
    several = calls > 1
    deviation = np.sqrt(squares[several] / (calls[several] - 1))
    return Regression(_least_squares(sizes, mean), _least_squares(sizes[several], deviation))


def _least_squares(sizes: Floats, y: Floats) -> dict[str, float]:
    if len(sizes) <= len(TERMS):
        return {}
    x = design_matrix(TERMS, sizes[:, 0], sizes[:, 1], sizes[:, 2])
    scale = np.abs(x).max(axis=0)
    kept = independent_columns(x / scale, np.ones(len(x)))
    solution = np.linalg.lstsq(x[:, kept] / scale[kept], y, rcond=None)[0] / scale[kept]
    return {TERMS[index]: float(value) for index, value in zip(kept, solution, strict=True)}


def planned_factors(design: "pd.DataFrame") -> tuple[str, ...]:
    """The factors that a design with the columns m, n and k would give; none where it is not of dgemm."""
    kind = next((name for name in ("kernel", "kind") if name in design), None)
    if kind is None:  # products of matrices, triangular solves, ...
        return ()
    sizes = design[design[kind].astype(str) == DGEMM][list(SIZE)].drop_duplicates()
    if not len(sizes):
        return ()
    fixed = bool((sizes == FIXED_SIZE).all(axis=1).any())
    return (RATE, *([RATE_AT_SIZE] if fixed else []), *(MODEL_FACTORS if len(sizes) > len(TERMS) else ()))
