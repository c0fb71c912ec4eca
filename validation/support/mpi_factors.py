"""The effect of the mpirun on measured times, autocorrelation of successive ones, and the picture of both."""

from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure

from support.mpi_probe import LIBRARIES, TITLES


def tukey(times: np.ndarray) -> np.ndarray:
    """The times not above the third quartile by more than 1.5 interquartile ranges."""
    return times[times <= fence(times)]


def fence(times: np.ndarray) -> float:
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
    times = [tukey(group.to_numpy() * 1e-3) for _, group in calls.groupby("mpirun")["local_ns"]]
    means = [mpirun.mean() for mpirun in times]
    half = [1.96 * mpirun.std(ddof=1) / np.sqrt(len(mpirun)) for mpirun in times]
    panel.errorbar(range(len(means)), means, half, fmt="o", markersize=3, capsize=2)
    panel.axhline(np.mean(means), color="C7", linewidth=1)
    panel.set(xlabel="mpirun", ylabel="mean and 95 % interval, µs")


def distribution(panel: Any, calls: pandas.DataFrame) -> None:
    means = [tukey(group.to_numpy() * 1e-3).mean() for _, group in calls.groupby("mpirun")["local_ns"]]
    panel.hist(means, bins=12, color="C0")
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
