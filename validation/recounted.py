"""Figures of the thesis' second part, counted again from its public data: what designs, contents and loads do to dgemm.

Data: experiment/ and watch/, CPU 1 of dahu-5 where the figures are of it. Goals: the orders and numbers that the text
prints, numbers within 10 %; the data were looked at before the script was written. Rates are the published aggregates.
"""

from collections.abc import Mapping

import numpy
import pandas
from support.report import Goal, Options, run_study

SIZES = "experiment/randomizing_sizes/{}/dgemm_{}.csv.gz"
FLIPS = "experiment/bit-flips/{}_freq.csv.gz"
LOADED = "experiment/experimental_conditions/communication_computation_interference.csv.gz"
WATCHED = "watch/stats_monitoring.csv.gz"
NEEDS = (
    *(
        SIZES.format(name, kind)
        for name in ("expfile", "method", "fixing_K")
        for kind in ("agr_data", "agr_monitoring")
    ),
    *(SIZES.format("fixing_K", "raw_data"), FLIPS.format("generation_method"), FLIPS.format("mask_size")),
    *(LOADED, WATCHED),
)
#: Figure: the levels as printed, from the highest; those that are printed as alike stand together.
ORDERS = {
    "8.7": "f > c > a",
    "8.8, m n k": "f > c > a",
    "8.8, n k": "a > c > f",
    "8.10": "a > c > f",
    "8.11, rate": "uniform product > independent sizes",
    "8.11, power of memory": "independent sizes > uniform product",
    "8.12": "128 > shuffled > 256, 512, random",
    "8.13": "128, random > shuffled > 256, 512",
    "8.14": "128, shuffled, 256, 512 > random",
    "8.15": "128 > shuffled > random, 256, 512",
    "8.16, k = 128": "alone > mixed",
    "8.16, k = 256": "mixed > alone",
    "8.16, k = 512": "mixed > alone",
    "8.18": "0, 0.987, 1 > sequential > random",
    "8.21": "53 > 50 > 40 > 30 > 20 > 10 > 0",
}
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


def counted(options: Options) -> pandas.DataFrame:
    """A row a figure and level, or number."""
    values = {**designs(options), **{("8.18", k): v for k, v in frequency(options, "generation_method").items()}}
    values |= {("8.21", k): v for k, v in frequency(options, "mask_size").items()}
    values |= {(figure, ""): value for figure, value in numbers(options).items()}
    return pandas.DataFrame([{"figure": f, "level": level, "value": value} for (f, level), value in values.items()])


def of_one_cpu(options: Options, name: str, kind: str) -> pandas.DataFrame:
    table = pandas.read_csv(options.data(SIZES.format(name, kind)))
    return table[(table["node"] == 5) & (table["cpu"] == 1)]


def designs(options: Options) -> dict[tuple[str, str], float]:
    """Figures 8.7 to 8.16: means by design."""
    level = {"expfile": "expfile", "method": "exp_kind", "fixing_K": "exp_kind"}
    found: dict[tuple[str, str], float] = {}

    def add(figure: str, table: pandas.DataFrame, by: str, column: str) -> None:
        for name, value in table.groupby(by)[column].mean().items():
            found[figure, str(name).removeprefix("exp_dgemm_").removesuffix(".csv")] = float(value)

    for name, figures in {
        "expfile": {"avg_gflops": "8.7", "mnk": "8.8, m n k", "nk": "8.8, n k", "dram": "8.10"},
        "method": {"avg_gflops": "8.11, rate", "dram": "8.11, power of memory"},
        "fixing_K": {"avg_gflops": "8.12", "frequency": "8.13", "package": "8.14", "dram": "8.15"},
    }.items():
        fits, seen = (of_one_cpu(options, name, kind) for kind in ("agr_data", "agr_monitoring"))
        for what, figure in figures.items():
            if what in fits:
                add(figure, fits, level[name], what)
            else:
                add(figure, seen[(seen["kind"] == what) | (seen["subgroup"] == what)], level[name], "value")
    calls = of_one_cpu(options, "fixing_K", "raw_data")
    calls = calls.assign(kind=calls["expfile"].str.split("_").str[1], work=2e-9 * calls["m"] * calls["n"] * calls["k"])
    for k in (128, 256, 512):
        for kind, words in ((str(k), "alone"), ("shuffled", "mixed")):
            own = calls[(calls["k"] == k) & (calls["kind"] == kind)]
            found[f"8.16, k = {k}", words] = float(own["work"].sum() / own["duration"].sum())
    return found


def frequency(options: Options, name: str) -> Mapping[str, float]:
    table = pandas.read_csv(options.data(FLIPS.format(name)))
    level = "matrix_content" if "matrix_content" in table else "mask_size"
    return {str(key): float(value) for key, value in table.groupby(level)["frequency"].mean().items()}


def numbers(options: Options) -> dict[str, float]:
    """The numbers that the text prints, ours by their names."""
    fits = of_one_cpu(options, "expfile", "agr_data").groupby("expfile")["mnk"].mean()
    loaded = pandas.read_csv(options.data(LOADED)).fillna("Idle")
    took = loaded.groupby(["experiment", "background"])["duration"].median()
    watched = pandas.read_csv(options.data(WATCHED))
    watched["day"] = pandas.to_datetime(watched["start_time_unix_s"], unit="s")
    low = watched[(watched["mean_power_cpu"] < 124.0) & (watched["day"] < "2021-01-01")]
    drops = low.groupby(["node", "jobid"])["mean_power_cpu"].min()

    def change(node: int) -> float:
        own = watched[watched["node"] == node].groupby("day")["mean_temperature"].mean()
        return float(own["2020-10-16":"2020-12-09"].mean() - own["2020-09-15":"2020-10-14"].mean())  # type: ignore[misc]

    calls = of_one_cpu(options, "fixing_K", "raw_data")
    own = calls[calls["expfile"].str.startswith("exp_128_")].groupby(["m", "n", "k"])["duration"].mean().reset_index()
    r = numpy.corrcoef(own["m"] * own["n"] * own["k"], own["duration"])[0, 1]
    busy = took[:, "MPI_Iprobe & DGEMM"] - took[:, "Idle"]
    ours = (
        *(fits.mean(), *(took[where, "DGEMM"] / took[where, "Idle"] for where in ("remote", "loopback")), busy.mean()),
        *(drops.median(), drops.min(), change(29), change(30), r**2),
    )
    return dict(zip(NUMBERS, map(float, ours), strict=True))


def judged(frame: pandas.DataFrame) -> list[Goal]:
    goals = []
    for figure, printed in ORDERS.items():
        own = frame[frame["figure"] == figure].set_index("level")["value"]
        groups = [own[part.split(", ")] for part in printed.split(" > ")]
        met = all(high.min() > low.max() for high, low in zip(groups[:-1], groups[1:], strict=True))
        goals.append(Goal(figure, printed, ", ".join(f"{value:.4g}" for part in groups for value in part), met))
    for figure, number in NUMBERS.items():
        value = float(frame.loc[frame["figure"] == figure, "value"].iloc[0])
        goals.append(Goal(figure, f"{number:g}", f"{value:.4g}", abs(value / number - 1.0) <= 0.1))
    return goals


TEXT = """## Figures of the thesis counted again

Orders and numbers that its chapters 8 and 9 print, from their public data (`validation/recounted.py`).

{goals}

{cases}
"""

if __name__ == "__main__":
    run_study(counted, judged, TEXT, needs=NEEDS, dtype={"level": str})
