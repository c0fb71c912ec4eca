"""Coefficients of a kernel's duration for each cpu and day: what a generative model is fitted to.

From a table (published daily calibrations), or from calibrations: a day is an archive of several, or a block of one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from lepaute.errors import FitError, InputError
from lepaute.kit.frames import open_parquet, read_csv, reading_table
from lepaute.kit.numbers import path_of
from lepaute.kit.text import counted
from lepaute.measure.archive import Archive
from lepaute.measure.fit.kernels.polynomial import fit_polynomial
from lepaute.measure.fit.numeric import Floats, Integers
from lepaute.measure.fit.observations.calibrations import (
    THREADS,
    calibrations,
    hosts_of,
    seen_hosts,
    shape_of,
    without_disturbed,
)
from lepaute.measure.fit.observations.calls import Calls, calls_by_kernel, place_of, pooled_observations
from lepaute.measure.fit.observations.columns import checked_table
from lepaute.measure.fit.observations.factors import usual_conditions
from lepaute.measure.fit.variability.crowding import crowding_of, relieved
from lepaute.measure.observation_columns import KERNELS

#: duration = alpha mnk + beta, with a standard deviation of gamma mnk (Cornebize's thesis, equation 4.2).
#: Most rows and bytes of a table: a cpu and a day each.
_MAX_ROWS, _MAX_TABLE_BYTES = 5_000_000, 1 << 30
TERMS = ("mnk", "1", "sd:mnk")
#: Columns of tables that mean a term.
NAMES = {"alpha": "mnk", "beta": "1", "intercept": "1", "gamma": "sd:mnk", "mnk_residual": "sd:mnk"}
#: Calls of one cpu on one day, below which no coefficients are fitted to them.
MIN_CALLS = 10
#: Coefficients are seconds; squares of numbers beyond cannot be added up.
LARGEST = 1e100


@dataclass(frozen=True, slots=True)
class Coefficients:
    """One row a cpu and day, in the order of node, cpu, day; numbers count from 0.

    terms      : of the columns of `values`, as a platform's population names them
    unit       : shape (rows,), the cpu among all CPUs
    day        : shape (rows,)
    values     : shape (rows, terms), seconds per unit of the term
    node_of_unit : shape (CPUs,), the node of each cpu
    node_names : as the source names them
    source     : one sentence
    """

    terms: tuple[str, ...]
    unit: Integers
    day: Integers
    values: Floats
    node_of_unit: Integers
    node_names: tuple[str, ...]
    source: str

    @property
    def days(self) -> int:
        return int(self.day.max()) + 1

    @property
    def units(self) -> int:
        return len(self.node_of_unit)

    @property
    def nodes(self) -> int:
        return len(self.node_names)


def coefficients_of_table(
    frame: pandas.DataFrame, *, source: str = "a table", terms: Sequence[str] = TERMS
) -> Coefficients:
    """The coefficients in a table with the columns node, cpu (0 if it lacks), day or date, and one for each term.

    Several rows of one cpu and day are averaged. A column is named as its term (mnk, 1, sd:mnk) or as in `NAMES`.
    Raises FitError with one line: a column that is missing, a value that is no finite number, an empty table.
    """
    by_term = {NAMES.get(str(name), str(name)): name for name in reversed([str(column) for column in frame.columns])}
    frame = frame.rename(columns=str)
    day = next((name for name in ("day", "date") if name in frame.columns), None)
    missing = [name for name in ("node",) if name not in frame.columns] + [t for t in terms if t not in by_term]
    if day is None or missing:
        what = missing[0] if missing else "day (or date)"
        raise FitError(f"{source}: there is no column {what}; required are node, cpu, day and {', '.join(terms)}")
    if not len(frame):
        raise FitError(f"{source}: has no rows")
    values = np.column_stack([_numbers(frame, by_term[term], source) for term in terms])
    keys = frame[["node"]].assign(cpu=frame["cpu"] if "cpu" in frame.columns else 0, day=frame[day])
    for name in keys.columns:
        if keys[name].isna().any():
            row = int(np.flatnonzero(keys[name].isna())[0])
            raise FitError(f"{source}: {name} of row {row + 1} is empty; give it a value or leave the row out")
    return _of_rows(tuple(terms), keys, values, source)


def read_coefficients(path: str | Path, terms: Sequence[str] = TERMS) -> Coefficients:
    """The coefficients in a CSV (compressed or not) or Parquet file.  Raises FitError as `coefficients_of_table`."""

    path = path_of(path, "the table")
    try:
        if path.suffix == ".parquet":
            file = open_parquet(path, str(path), most_bytes=_MAX_TABLE_BYTES)
            with reading_table(str(path)):
                frame = file.read().to_pandas()
            for name in frame.select_dtypes("category"):  # texts, which were read as dictionaries
                frame[name] = frame[name].astype(object)
        else:
            # pandas knows a compressed file by its name; a row more than is read says that there are more
            frame = read_csv(path, comment="#", nrows=_MAX_ROWS + 1)
            if len(frame) > _MAX_ROWS:
                raise FitError(f"{path}: has more than {_MAX_ROWS} rows; leave out the days that are not needed")
    except InputError as error:
        raise FitError(f"{error}; give a CSV or Parquet file") from None
    except OSError as error:
        raise FitError(f"{path}: cannot be read ({error.strerror or error}); give a CSV or Parquet file") from None
    except (ValueError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise FitError(f"{path}: is not a table ({reason}); give a CSV or Parquet file") from None
    return coefficients_of_table(frame, source=str(path), terms=terms)


def coefficients_of_archives(archives: Archive | Iterable[Archive], kernel: str = "dgemm") -> Coefficients:
    """alpha, beta and gamma of each core on each day, from calibrations of the same nodes.

    A day is an archive, or, where there is one archive, a block of fresh processes. The mean is fitted as all kernels
    are; gamma is the fitted standard deviation in proportion to mnk, by least squares over the calls.
    Raises FitError if no core has enough calls of the kernel on any day.
    """

    given = calibrations(archives)
    shape = shape_of(given)
    frames = [usual_conditions(checked_table(archive, KERNELS)) for archive in given]
    hosts, _ = seen_hosts(hosts_of(given[0]), frames)
    frames, _ = without_disturbed(frames, ("host", "probe", "cpu") if len(hosts) > 1 else ("probe", "cpu"))
    rows = []
    for number, frame in enumerate(frames):
        table = pooled_observations([frame], hosts, shape)
        calls = calls_by_kernel(table[(table[THREADS] == table[THREADS].min()).to_numpy()]).get(kernel)
        if calls is None:
            continue
        calls = relieved(calls, crowding_of(calls).rows)
        for cpu in np.unique(calls.cpu):
            for block in np.unique(calls.block) if len(given) == 1 else [None]:
                on_cpu = (calls.cpu == cpu) & ~calls.cold
                line = _line(calls.where(on_cpu if block is None else on_cpu & (calls.block == block)))
                if line is not None:
                    node, core = place_of(int(cpu))
                    rows.append((hosts[node], core, number if block is None else int(block), *line))
    if not rows:
        raise FitError(f"no core has {MIN_CALLS} calls of {kernel} on a day; calibrate again, for longer")
    table = pandas.DataFrame(rows, columns=["node", "cpu", "day", *TERMS])
    what = "the blocks of one calibration" if len(given) == 1 else f"{len(given)} calibrations"
    return coefficients_of_table(table, source=f"{what} of {', '.join(hosts)}")


def _line(calls: Calls) -> tuple[float, float, float] | None:
    """(alpha, beta, gamma) of some calls; None if they do not determine a line."""
    calls = calls.where(calls.nonempty() & (calls.duration_s > 0))
    work = calls.m * calls.n * calls.k
    if len(calls) < MIN_CALLS or len(np.unique(work)) < 2:
        return None
    fit = fit_polynomial(("mnk", "1"), calls.m, calls.n, calls.k, calls.duration_s)
    mean = dict(zip(fit.terms, fit.mean, strict=True))
    deviation = fit.deviation(calls.m, calls.n, calls.k)
    return float(mean.get("mnk", 0.0)), float(mean.get("1", 0.0)), float(np.sum(deviation * work) / np.sum(work**2))


def _numbers(frame: pandas.DataFrame, column: str, source: str) -> Floats:
    values = pandas.to_numeric(frame[column], errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        value = frame[column].iloc[int(bad[0])]
        text = repr(value) if isinstance(value, str) else str(value)
        raise FitError(
            f"{source}: {column} of row {bad[0] + 1} is {text}, not a finite number; correct it or "
            f"leave the row out ({counted(len(bad), 'such row')})"
        )
    large = np.flatnonzero(np.abs(values) > LARGEST)
    if len(large):
        raise FitError(f"{source}: {column} of row {large[0] + 1} is {values[large[0]]:g}, not a duration in seconds")
    return values


def _of_rows(terms: tuple[str, ...], keys: pandas.DataFrame, values: Floats, source: str) -> Coefficients:
    """Names to numbers in their own order, several rows of a cpu and day to their mean."""
    names, node = _numbered(keys["node"])
    _, cpu = _numbered(keys["cpu"])
    _, day = _numbered(keys["day"])
    units, unit = np.unique(np.column_stack([node, cpu]), axis=0, return_inverse=True)
    cells, cell = np.unique(np.column_stack([unit.ravel(), day]), axis=0, return_inverse=True)
    # Sorted by value inside a cell, so that the order of the rows does not show in the last digit of a mean.
    means = np.zeros((len(cells), len(terms)))
    for column in range(len(terms)):
        order = np.lexsort((values[:, column], cell.ravel()))
        means[:, column] = np.bincount(cell.ravel()[order], values[order, column]) / np.bincount(cell.ravel())
    return Coefficients(
        terms,
        cells[:, 0].astype(np.int64),
        cells[:, 1].astype(np.int64),
        means,
        units[:, 0].astype(np.int64),
        tuple(str(name) for name in names),
        source,
    )


def _numbered(column: Any) -> tuple[list[Any], Integers]:
    """The different values in their order (numbers as numbers, all else as texts), and the place of each row's."""
    names = list(set(column.tolist()))
    try:
        names.sort()
    except TypeError:  # numbers and texts
        names.sort(key=str)
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([place[name] for name in column.tolist()], dtype=np.int64)
