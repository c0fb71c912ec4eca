"""What decides a measured time of an MPI operation: the mpirun, successive calls, the window.

Figures 14 to 16, 19 and 20 of Hunold and Carpen-Amarie, "MPI Benchmarking Revisited", in form, with Debian's Open MPI
and MPICH on 2 ranks bound to 2 cores. Fixed before anything was looked at:

* mpiruns: 30 of each library in turn; 1000 calls of MPI_Bcast of 64, 1024, 8192 bytes and MPI_Allreduce of 1000 bytes
  after MPI_Barrier, longest local time, Tukey's filter. Expected: 95 % intervals of single mpiruns hold the grand mean
  in less than 95 % of them, and means scatter more than calls explain (F test, p < 0.01);
* calls: 10,000 of MPI_Bcast of 1000 bytes in one mpirun, and a random 1,000 of them in their order. Expected: of the
  autocorrelations at lags 1 to 40 fewer are outside 1.96 / sqrt(n) after sub-sampling, or at most 5, and the mean
  changes by less than 2 %;
* windows: 5 mpiruns, clocks by HCA; 500 calls of MPI_Alltoall and MPI_Scan of 8192 bytes in windows of 1 to 1000 µs.
  Expected: marked calls fall from more than half to less than a quarter, and median global times at 200, 500 and 1000
  µs are within 10 %.
"""

import tempfile
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure
from support.mpi_probe import COLLECTIVES, LIBRARIES, TITLES, measured, program
from support.report import Goal, close, options_of, run_main, stored


def of_mpiruns(calls: pandas.DataFrame) -> list[np.ndarray]:
    """The filtered times of each mpirun, us."""
    times = [group.to_numpy() * 1e-3 for _, group in calls.groupby("mpirun")["local_ns"]]
    return [each[each <= fence(each)] for each in times]


def fence(times: np.ndarray) -> float:
    """1.5 interquartile ranges above the third quartile."""
    low, high = np.quantile(times, (0.25, 0.75))
    return float(high + 1.5 * (high - low))


def without_outliers(times: np.ndarray) -> np.ndarray:
    """A series in which times beyond the fence are the fence: none may leave, since lags count calls."""
    return np.minimum(times, fence(times))


def mpirun_effect(times: list[np.ndarray]) -> tuple[float, float]:
    """Share of mpiruns whose 95 % interval holds the mean of means; p of the F test that all have one mean.

    times : of each mpirun, independent as far as the tests know
    """
    from scipy.stats import f_oneway
    from scipy.stats import t as student

    means = np.array([mpirun.mean() for mpirun in times])
    half = [student.ppf(0.975, len(mpirun) - 1) * mpirun.std(ddof=1) / np.sqrt(len(mpirun)) for mpirun in times]
    return float((np.abs(means - means.mean()) <= half).mean()), float(f_oneway(*times).pvalue)


def autocorrelations(times: np.ndarray, lags: int) -> np.ndarray:
    """At lags 1 to `lags`."""
    centred = times - times.mean()
    total = float(centred @ centred)
    return np.array([float(centred[lag:] @ centred[:-lag]) / total for lag in range(1, lags + 1)])


def picture(mpiruns: pandas.DataFrame, calls: pandas.DataFrame, windows: pandas.DataFrame, lags: int) -> Figure:
    """Figures 14 to 16, 19 and 20 in form: a row a library."""
    figure = Figure(figsize=(16, 6.5), layout="constrained")
    rows = figure.subplots(2, 5)
    for panels, library in zip(rows, LIBRARIES, strict=True):
        means_of(panels[0], mpiruns.query("library == @library and operation == 'Bcast' and size_bytes == 1024"))
        distribution(panels[1], mpiruns.query("library == @library and operation == 'Allreduce'"))
        correlation(panels[2], without_outliers(calls.loc[calls["library"] == library, "local_ns"].to_numpy()), lags)
        by_window(panels[3], panels[4], windows[windows["library"] == library])
        panels[0].set_title(f"{TITLES[library]}: Bcast, 1024 bytes")
    return figure


def means_of(panel: Any, calls: pandas.DataFrame) -> None:
    times = of_mpiruns(calls)
    means = [mpirun.mean() for mpirun in times]
    half = [1.96 * mpirun.std(ddof=1) / np.sqrt(len(mpirun)) for mpirun in times]
    panel.errorbar(range(len(means)), means, half, fmt="o", markersize=3, capsize=2)
    panel.axhline(np.mean(means), color="C7", linewidth=1)
    panel.set(xlabel="mpirun", ylabel="mean and 95 % interval, µs")


def distribution(panel: Any, calls: pandas.DataFrame) -> None:
    panel.hist([mpirun.mean() for mpirun in of_mpiruns(calls)], bins=12, color="C0")
    panel.set(xlabel="mean of an mpirun, µs", ylabel="mpiruns", title="Allreduce, 1000 bytes")


def correlation(panel: Any, times: np.ndarray, lags: int) -> None:
    fewer = times[np.sort(np.random.default_rng(16).choice(len(times), len(times) // 10, replace=False))]
    for series, name, colour in ((times, "all calls", "C0"), (fewer, "one in ten", "C1")):
        seen = autocorrelations(series, lags)
        panel.plot(range(1, lags + 1), seen, color=colour, label=name)
        for limit in (-1.96, 1.96):
            panel.axhline(limit / np.sqrt(len(series)), color=colour, linestyle=":", linewidth=1)
    panel.legend(fontsize=8)
    panel.set(xlabel="lag", ylabel="autocorrelation", title="Bcast, 1000 bytes")


def by_window(shares: Any, times: Any, calls: pandas.DataFrame) -> None:
    for operation, group in calls.groupby("operation"):
        marked = group.groupby(["window_ns", "mpirun"])["marked"].mean().groupby("window_ns")
        middle = 100 * marked.median()
        reach = [100 * (marked.median() - marked.min()), 100 * (marked.max() - marked.median())]
        windows = middle.index.to_numpy() * 1e-3
        shares.errorbar(windows, middle, reach, marker="o", markersize=3, capsize=2, label=operation)
        right = group[~group["marked"]].groupby(["window_ns", "mpirun"])["global_ns"].median() * 1e-3
        dots = right.reset_index()
        times.plot(dots["window_ns"] * 1e-3, dots["global_ns"], "o", markersize=3, label=operation)
    shares.set(xscale="log", xlabel="window, µs", ylabel="marked calls, %", title="marked: late or too long")
    shares.legend(fontsize=8)
    times.set(
        xscale="log", yscale="log", xlabel="window, µs", ylabel="median of unmarked calls, µs", title="8192 bytes"
    )
    times.legend(fontsize=8)


STUDY = "mpi_benchmarking"
MPIRUNS, CALLS = 30, 1000
CASES = (("Bcast", 64), ("Bcast", 1024), ("Bcast", 8192), ("Allreduce", 1000))
SUCCESSIVE, SUBSAMPLE, LAGS = 10_000, 1_000, 40
WINDOW_MPIRUNS, WINDOW_CALLS = 5, 500
WINDOWS_US = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
WINDOW_CASES = (("Alltoall", 8192), ("Scan", 8192))
TEXT = """## The mpirun, successive calls, the window

    .venv/bin/python validation/mpi_benchmarking.py

Open MPI and MPICH of Debian on 2 cores of a virtual machine, whose other programs were stopped meanwhile as far as they
could be.

{goals}

![means of mpiruns, their distribution, autocorrelation, marked calls and times by window]({picture})

Sub-sampling leaves the mean as it is, and little of the autocorrelation of short series, but not that of a level that
changes during the mpirun. Marked calls become as few with long windows as in the paper; times do not become constant:
the longer the ranks have waited, the longer the calls take.

{cases}
"""


def main() -> int:
    options = options_of(__doc__, (), has_quick=False)
    with tempfile.TemporaryDirectory(prefix="mpi-benchmarking-") as name:
        frames = {
            part: stored(options, f"{STUDY}_{part}", partial(measure, Path(name))) for part, measure in MEASURE.items()
        }
    goals = [*judged_mpiruns(frames["mpiruns"]), *judged_calls(frames["calls"]), *judged_windows(frames["windows"])]
    again = sum(map(bool, (goal.met for goal in goals)))
    finding = f"{again} of {len(goals)} observations of the article are found again"
    figure = picture(frames["mpiruns"], frames["calls"], frames["windows"], LAGS)
    return close(options, STUDY, goals, TEXT, figure, finding, f"{STUDY}_*.csv.gz: 2 ranks of this machine")


def in_turn(folder: Path, rows: list[str], mpiruns: int, columns: tuple[str, ...], *options: str) -> pandas.DataFrame:
    """The calls of each mpirun and library; rows in an order drawn anew for each mpirun, the same for all libraries."""
    programs = {library: program(library, COLLECTIVES, folder) for library in LIBRARIES}
    order = np.random.default_rng(14)
    frames = []
    for mpirun in range(mpiruns):
        shuffled = [rows[place] for place in order.permutation(len(rows))]
        for library, probe in programs.items():
            frames.append(measured(probe, shuffled, folder, *options).assign(library=library, mpirun=mpirun))
    return pandas.concat(frames, ignore_index=True)[["library", "mpirun", *columns]]


def measure_mpiruns(folder: Path) -> pandas.DataFrame:
    rows = [f"{operation},blocking,{size},{CALLS},MPI_Barrier,0,0" for operation, size in CASES]
    return in_turn(folder, rows, MPIRUNS, ("operation", "size_bytes", "local_ns"), "--clock-method", "SKaMPI")


def measure_calls(folder: Path) -> pandas.DataFrame:
    rows = [f"Bcast,blocking,1000,{SUCCESSIVE},MPI_Barrier,0,0"]
    return in_turn(folder, rows, 1, ("call", "local_ns"), "--clock-method", "SKaMPI")


def measure_windows(folder: Path) -> pandas.DataFrame:
    rows = [
        f"{operation},blocking,{size},{WINDOW_CALLS},window,0,{1000 * window}"
        for operation, size in WINDOW_CASES
        for window in WINDOWS_US
    ]
    return in_turn(folder, rows, WINDOW_MPIRUNS, ("operation", "window_ns", "global_ns", "marked"), "--warm-up", "0")


MEASURE = {"mpiruns": measure_mpiruns, "calls": measure_calls, "windows": measure_windows}


def judged_mpiruns(calls: pandas.DataFrame) -> list[Goal]:
    goals = []
    for library, (operation, size) in product(LIBRARIES, CASES):
        chosen = calls.query("library == @library and operation == @operation and size_bytes == @size")
        held, p_value = mpirun_effect(of_mpiruns(chosen))
        case = f"{TITLES[library]}, {operation} of {size} bytes"
        what = f"{case}: mpiruns whose interval holds the grand mean; p of the F test"
        seen = f"{100 * held:.0f} %; {small(p_value)}"
        goals.append(Goal(what, "below 95 %; below 0.01", seen, held < 0.95 and p_value < 0.01))
    return goals


def small(p_value: float) -> str:
    """A p-value that may be below what a double holds."""
    return f"{p_value:.1g}" if p_value > 1e-99 else "below 1e-99"


def judged_calls(calls: pandas.DataFrame) -> list[Goal]:
    goals = []
    for library in LIBRARIES:
        times = without_outliers(calls.loc[calls["library"] == library, "local_ns"].to_numpy() * 1e-3)
        fewer = times[np.sort(np.random.default_rng(16).choice(len(times), SUBSAMPLE, replace=False))]
        outside = [int((np.abs(autocorrelations(x, LAGS)) > 1.96 / np.sqrt(len(x))).sum()) for x in (times, fewer)]
        change = 100 * abs(fewer.mean() / times.mean() - 1)
        what = f"{TITLES[library]}: lags of {LAGS} autocorrelated, of all calls and sub-sampled; change of the mean"
        met = bool((outside[1] < outside[0] or outside[1] <= 5) and change < 2)
        seen = f"{outside[0]}, {outside[1]}; {change:.2f} %"
        goals.append(Goal(what, "fewer, or at most 5; below 2 %", seen, met))
    return goals


def window_table(calls: pandas.DataFrame) -> pandas.DataFrame:
    """Median over mpiruns of the share of marked calls, and of the median time of the others, us."""
    keys = ["library", "operation", "window_ns"]
    shares = calls.groupby([*keys, "mpirun"])["marked"].mean().groupby(keys).median()
    right = calls[~calls["marked"]].groupby([*keys, "mpirun"])["global_ns"].median() * 1e-3
    return pandas.DataFrame({"marked": shares, "time_us": right.groupby(keys).median()})


def judged_windows(calls: pandas.DataFrame) -> list[Goal]:
    goals, table = [], window_table(calls)
    for library in LIBRARIES:
        for operation, _ in WINDOW_CASES:
            one = table.loc[library, operation]
            first, last = float(one["marked"].loc[1000]), float(one["marked"].loc[1_000_000])
            wide = one["time_us"].loc[[200_000, 500_000, 1_000_000]]
            spread = 100 * float(wide.max() / wide.min() - 1)
            what = f"{TITLES[library]}, {operation}: marked calls at 1 µs, at 1 ms; times at 0.2 to 1 ms differ by"
            met = first > 0.5 and last < 0.25 and spread < 10
            seen = f"{100 * first:.0f} %, {100 * last:.0f} %; {spread:.0f} %"
            goals.append(Goal(what, "above 50 %, below 25 %; below 10 %", seen, met))
    return goals


if __name__ == "__main__":
    run_main(main)
