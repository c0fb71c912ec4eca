"""All alarms of a replay: a row a processor, dates from left to right."""

import numpy
import pandas
from matplotlib.figure import Figure

from lepaute.watch.changelog import Changelog
from support.replay_events import CLUSTER, DAY_S

COLOURS = {
    "mean_frequency_Hz": ("frequency", "#2457a6"),
    "mean_temperature_degC": ("temperature", "#c0392b"),
    "cpu_power_W": ("power", "#3a8a3a"),
    "dram_power_W": ("memory power", "#8a4fa3"),
}


def picture(verdicts: pandas.DataFrame, log: Changelog) -> Figure:
    """The tests of single jobs and factors, as logged: alarms that belong to something known are pale."""
    found = verdicts[verdicts["test"] == "r = 1"]
    machines = sorted({(int(node), int(cpu)) for node, cpu in zip(found["node"], found["cpu"], strict=True)})
    row = {machine: number for number, machine in enumerate(machines)}
    figure = Figure(figsize=(11, 8), layout="constrained")
    axes = figure.subplots()
    jobs = found.drop_duplicates(["node", "cpu", "job"])
    axes.scatter(jobs["started_s"] / DAY_S, _rows(jobs, row), s=1.5, c="#e4e4e4", linewidths=0, zorder=1)
    for place, (factor, (name, colour)) in enumerate(COLOURS.items()):
        alarms = found[found["alarm"] & (found["factor"] == factor)]
        known = (alarms["belongs"] != "").to_numpy()
        x, y = (alarms["started_s"] / DAY_S).to_numpy(), _rows(alarms, row) + 0.22 * (place - 1.5)
        axes.scatter(x[known], y[known], s=9, facecolors="none", edgecolors=colour, linewidths=0.5, alpha=0.7, zorder=3)
        axes.scatter(x[~known], y[~known], s=16, c=colour, linewidths=0, label=name, zorder=4)
    pale = "explained by an entry of the log or a drop"
    axes.scatter([], [], s=9, facecolors="none", edgecolors="#555555", linewidths=0.5, label=pale)
    for node, dates in log.resets_s({(CLUSTER, str(node)) for node, _ in machines}).items():
        numbers = [number for (name, _), number in row.items() if str(name) == node[1]]
        for date in dates:
            if date > found["started_s"].min():
                ends = [min(numbers) - 0.5, max(numbers) + 0.5]
                axes.plot([date / DAY_S] * 2, ends, c="#e08a00", lw=1.1, zorder=2, solid_capstyle="butt")
    axes.plot([], [], c="#e08a00", lw=1.2, label="event of the log")
    axes.xaxis_date()
    axes.set_yticks([row[each] for each in machines if each[1] == 0], [str(node) for node, cpu in machines if cpu == 0])
    axes.tick_params(axis="y", labelsize=7)
    axes.set_ylabel("node of Dahu (two processors each)")
    axes.set_title("Alarms of single jobs (p < 0.0001), each with what was known on its day", fontsize=10)
    axes.margins(x=0.01, y=0.01)
    figure.legend(loc="outside lower center", ncols=6, frameon=False)
    return figure


def _rows(frame: pandas.DataFrame, row: dict[tuple[int, int], int]) -> "numpy.typing.NDArray[numpy.float64]":
    return numpy.array(
        [row[int(node), int(cpu)] for node, cpu in zip(frame["node"], frame["cpu"], strict=True)], dtype=float
    )
