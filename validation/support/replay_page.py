"""The section of its page about the replay, and its picture: all alarms, a row a processor."""

import numpy
import pandas
from matplotlib.figure import Figure

from lepaute.watch.changelog import Changelog
from support.replay_events import CLUSTER, DAY_S
from support.replay_outside import afterwards
from support.report import markdown

TESTS = ("r = 1", "r = 5", "pooled r = 1", "pooled r = 5", "p = 2", "p = 3", "p = 4")
COLOURS = {
    "mean_frequency_Hz": ("frequency", "#2457a6"),
    "mean_temperature_degC": ("temperature", "#c0392b"),
    "cpu_power_W": ("power", "#3a8a3a"),
    "dram_power_W": ("memory power", "#8a4fa3"),
}


def text(tables: dict[str, pandas.DataFrame]) -> str:
    alone = tables["outside"][tables["outside"]["kind"] == "alone"]
    later = afterwards(tables["outside"]).loc[alone.index].value_counts()
    return f"""## The published data, replayed day by day

Each day of the published monitoring of Dahu is judged with what was known on it (`validation/watch_replay.py`, which
says what was fixed before and what was changed afterwards).

{{goals}}

![Alarms on their days, a row a processor]({{picture}})

The repair of 2019-11-27 is found on all eight processors only where tests are pooled: two of them scatter too much.

*Outliers of the log*: entries with an alarm on any of their nodes, and on all. Without the log they hide the next ones.

{outliers(tables["outliers"])}

*Alarms by what they belong to*, as logged, and how many of those outside the level promises:

{counts(tables["counts"])}

{{cases}}

The raw tests do not hold their level on these data: days are alike on neighbouring nodes, and have heavy tails. Of
{len(tables["outside"])} alarms of r = 1 outside of all events, {len(alone)} are alone (one processor, factor and job),
of which {later.get("below 0.01 %", 0)} change the power, which is capped near 124.64 W, by less than 0.01 %, and
{later.get("same chassis", 0)} came with one in the same direction on another node of their four; both were seen
afterwards. {later.get("", 0)} are left.

Alarms after correction (`watch.alarms`), and change points in the end, are few, most of them from the power drain of
node 26 with its neighbours, and they miss most of the events of the log.
"""


def outliers(frame: pandas.DataFrame) -> str:
    have = frame["nodes_with_data"]
    rows = []
    for reading, prefix in (("as logged", ""), ("without the log of outliers", "unedited, ")):
        cells = []
        for test in TESTS:
            if f"{prefix}{test}" not in frame:
                cells.append("not tried")
                continue
            hit = frame[f"{prefix}{test}"]
            cells.append(f"{int((hit > 0).sum())}, all nodes {int(((hit >= have) & (have > 0)).sum())}")
        rows.append([reading, str(int((have > 0).sum())), *cells])
    return markdown(("log of outliers", "entries", *TESTS), rows)


def counts(frame: pandas.DataFrame) -> str:
    names = ("tests", "alarms", "outlier of the log", "power drop", "event of the log", "outside")
    rows = [
        [str(row["test"]), *(f"{int(row[name]):,}" for name in names), f"{float(row['promised']):.1f}"]
        for _, row in frame.iterrows()
    ]
    return markdown(("test", *names, "promised"), rows)


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
