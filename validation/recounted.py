"""Figures of the thesis' second part, counted again from its public data: what designs, contents and loads do to dgemm.

Data: experiment/ and watch/, CPU 1 of dahu-5 where the figures are of it. Goals: the orders and numbers that the text
prints, numbers within 10 %; the data were looked at before the script was written. Rates are the published aggregates.
"""

from collections.abc import Iterator

import numpy
import pandas
from support.report import Goal, Options, run_study

SIZES = "experiment/randomizing_sizes/{}/dgemm_{}.csv.gz"
FLIPS = "experiment/bit-flips/{}_freq.csv.gz"
LOADED = "experiment/experimental_conditions/communication_computation_interference.csv.gz"
WATCHED = "watch/stats_monitoring.csv.gz"
#: Folder, what is averaged, figure, its levels as printed: the highest first, those that are printed as alike together.
ORDERS = (
    ("expfile", "avg_gflops", "8.7", "f > c > a"),
    ("expfile", "mnk", "8.8, m n k", "f > c > a"),
    ("expfile", "nk", "8.8, n k", "a > c > f"),
    ("expfile", "dram", "8.10", "a > c > f"),
    ("method", "avg_gflops", "8.11, rate", "uniform product > independent sizes"),
    ("method", "dram", "8.11, power of memory", "independent sizes > uniform product"),
    ("fixing_K", "avg_gflops", "8.12", "128 > shuffled > 256, 512, random"),
    ("fixing_K", "frequency", "8.13", "128, random > shuffled > 256, 512"),
    ("fixing_K", "package", "8.14", "128, shuffled, 256, 512 > random"),
    ("fixing_K", "dram", "8.15", "128 > shuffled > random, 256, 512"),
    ("fixing_K", "rate of k = 128", "8.16, k = 128", "128 > shuffled"),
    ("fixing_K", "rate of k = 256", "8.16, k = 256", "shuffled > 256"),
    ("fixing_K", "rate of k = 512", "8.16, k = 512", "shuffled > 512"),
    ("generation_method", "frequency", "8.18", "0, 0.987, 1 > sequential > random"),
    ("mask_size", "frequency", "8.21", "53 > 50 > 40 > 30 > 20 > 10 > 0"),
)
#: Figure: number as printed.
NUMBERS = {
    "8.9, slope (s)": 6.7e-11,
    "8.22, remote, dgemm over idle": 3.0,
    "8.22, loopback, dgemm over idle": 1.0,
    "8.22, MPI_Iprobe & dgemm less idle (s)": 0.1,
    "9.2.4, median of drops (W)": 119.4,
    "9.2.4, lowest (W)": 97.5,
    "table 9.2, dahu-29 (degrees)": -5.0,
    "table 9.2, dahu-30 (degrees)": -5.0,
    "master's thesis 4.2, R2": 0.9997,
}
FOLDERS = ("expfile", "method", "fixing_K")
NEEDS = (
    *(SIZES.format(name, kind) for name in FOLDERS for kind in ("agr_data", "agr_monitoring")),
    *(SIZES.format("fixing_K", "raw_data"), FLIPS.format("generation_method"), FLIPS.format("mask_size")),
    *(LOADED, WATCHED),
)


def counted(options: Options) -> pandas.DataFrame:
    """A row a figure and level, or number."""
    rows = []
    for folder, what, figure, printed in ORDERS:
        means = averages(options, folder, what)
        rows += [(figure, level, means[level]) for part in printed.split(" > ") for level in part.split(", ")]
    rows += [(figure, "", value) for figure, value in zip(NUMBERS, numbers(options), strict=True)]
    return pandas.DataFrame(rows, columns=["figure", "level", "value"])


def of_one_cpu(options: Options, name: str, kind: str) -> pandas.DataFrame:
    table = pandas.read_csv(options.data(SIZES.format(name, kind)))
    return table[(table["node"] == 5) & (table["cpu"] == 1)]


def averages(options: Options, folder: str, what: str) -> "pandas.Series[float]":
    """Means by level of the design."""
    if folder not in FOLDERS:
        table = pandas.read_csv(options.data(FLIPS.format(folder)))
        return table.groupby(table.filter(["matrix_content", "mask_size"]).iloc[:, 0].astype(str))[what].mean()
    if what.startswith("rate of"):
        calls = of_one_cpu(options, folder, "raw_data").query(what.removeprefix("rate of ").replace("=", "=="))
        work = 2e-9 * calls["m"] * calls["n"] * calls["k"]
        sums = calls.assign(work=work).groupby(calls["expfile"].str.split("_").str[1])[["work", "duration"]].sum()
        return sums["work"] / sums["duration"]
    table = of_one_cpu(options, folder, "agr_data")
    if what not in table:
        table = of_one_cpu(options, folder, "agr_monitoring").query("kind == @what or subgroup == @what")
        table = table.rename(columns={"value": what})
    level = table["exp_kind" if "exp_kind" in table else "expfile"].str.replace(r"exp_dgemm_|\.csv", "", regex=True)
    return table.groupby(level)[what].mean()


def numbers(options: Options) -> Iterator[float]:
    """Ours of NUMBERS."""
    yield averages(options, "expfile", "mnk").mean()
    took = pandas.read_csv(options.data(LOADED)).groupby(["background", "experiment"])["duration"].median().unstack()
    yield from took.loc["DGEMM", ["remote", "loopback"]] / took.loc["Idle"][["remote", "loopback"]]
    yield (took.loc["MPI_Iprobe & DGEMM"] - took.loc["Idle"]).mean()
    watched = pandas.read_csv(options.data(WATCHED))
    watched["day"] = pandas.to_datetime(watched["start_time_unix_s"], unit="s")
    low = (
        watched.query("mean_power_cpu < 124 and day < '2021-01-01'").groupby(["node", "jobid"])["mean_power_cpu"].min()
    )
    yield from (low.median(), low.min())
    for node in (29, 30):
        own = watched[watched["node"] == node].groupby("day")["mean_temperature"].mean().sort_index()
        yield own.loc["2020-10-16":"2020-12-09"].mean() - own.loc["2020-09-15":"2020-10-14"].mean()  # type: ignore[misc]
    calls = of_one_cpu(options, "fixing_K", "raw_data")
    means = calls[calls["expfile"].str.startswith("exp_128_")].groupby(["m", "n", "k"])["duration"].mean().reset_index()
    yield numpy.corrcoef(means["m"] * means["n"] * means["k"], means["duration"])[0, 1] ** 2


def judged(frame: pandas.DataFrame) -> list[Goal]:
    goals = []
    for *_, figure, printed in ORDERS:
        own = frame[frame["figure"] == figure].set_index("level")["value"]
        groups = [own[part.split(", ")] for part in printed.split(" > ")]
        met = all(high.min() > low.max() for high, low in zip(groups[:-1], groups[1:], strict=True))
        goals.append(Goal(figure, printed, ", ".join(f"{value:.4g}" for part in groups for value in part), met))
    values = frame.set_index("figure")["value"]
    return goals + [
        Goal(name, f"{number:g}", f"{values[name]:.4g}", bool(abs(values[name] / number - 1.0) <= 0.1))
        for name, number in NUMBERS.items()
    ]


TEXT = """## Figures of the thesis counted again

Orders and numbers of its chapters 8 and 9, from their public data (`validation/recounted.py`).

{goals}

{cases}
"""

if __name__ == "__main__":
    run_study(counted, judged, TEXT, needs=NEEDS, dtype={"level": str})
