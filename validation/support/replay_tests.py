"""The replay of published monitoring: events, all tests and alarms, what belongs to nothing known, and the page."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
import pandas
from matplotlib.figure import Figure

from lepaute.watch.alarms.procedure import judge_days
from lepaute.watch.changelog import Changelog, Event
from lepaute.watch.judging.replay import replay
from lepaute.watch.proposals.change_points import find_change_points
from support.report import markdown

CLUSTER = "dahu"
DAY_S = 86_400.0
#: Below this, the literature calls it a power drop.
LOW_POWER_W = 124.0
#: An alarm so near to an event of the log belongs to it: its date was written down by people.
NEAR_S = 7 * DAY_S
#: Days after an event in which it counts as found, unless another one touches half of its nodes before.
WINDOW_DAYS = 30


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An entry of the log, the nodes of the cluster that it touches, and until when it counts as found."""

    entry: Event
    nodes: frozenset[str]
    end_s: float

    @property
    def begin_s(self) -> float:
        return self.entry.start_s

    @property
    def name(self) -> str:
        return f"{self.entry.date} {self.entry.nodes.text}: {self.entry.reason}"


def known_events(log: Changelog, values: pandas.DataFrame, days: int = WINDOW_DAYS) -> list[KnownEvent]:
    """The events of the log for which there are jobs on both sides, in order of date."""
    nodes = {(CLUSTER, node) for node in values["node"].unique()}
    first, last = values["started_s"].min(), values["started_s"].max()
    resets = log.resets_s(nodes)
    found = []
    for entry in sorted(log.events, key=lambda one: one.date):
        touched = entry.nodes.among(nodes)
        if not touched or not first < entry.start_s <= last:
            continue
        later = {date for node in touched for date in resets[node] if date > entry.start_s}
        most = [date for date in later if 2 * sum(date in resets[node] for node in touched) >= len(touched)]
        end_s = min([entry.start_s + days * DAY_S, *most])
        found.append(KnownEvent(entry, frozenset(node for _, node in touched), end_s))
    return found


def without(log: Changelog, event: KnownEvent) -> Changelog:
    return replace(log, events=tuple(one for one in log.events if one is not event.entry))


def power_drops(values: pandas.DataFrame) -> frozenset[tuple[str, str]]:
    """The (node, job) in which a processor had less than LOW_POWER_W."""
    low = values[(values["factor"] == "cpu_power_W") & (values["value"] < LOW_POWER_W)]
    return frozenset(zip(low["node"], low["job"], strict=True))


def belongs_to(verdicts: pandas.DataFrame, log: Changelog, values: pandas.DataFrame) -> pandas.Series:
    """Of each verdict: "outlier of the log", "power drop", "event of the log", or "" for none of these."""
    nodes = {(CLUSTER, node) for node in values["node"].unique()}
    logged = {(node, job) for _, node, job in log.outlying_jobs(nodes)}
    drops = power_drops(values)
    resets = {node: numpy.array(dates) for (_, node), dates in log.resets_s(nodes).items()}
    pairs = list(zip(verdicts["node"], verdicts["job"], strict=True))
    started = verdicts["started_s"].to_numpy()
    near = [
        bool((numpy.abs(resets[node] - start) <= NEAR_S).any())
        for node, start in zip(verdicts["node"], started, strict=True)
    ]
    kinds = [
        "outlier of the log" if pair in logged else "power drop" if pair in drops else "event of the log" if at else ""
        for pair, at in zip(pairs, near, strict=True)
    ]
    return pandas.Series(kinds, index=verdicts.index)


#: Nodes with an alarm of the same factor and direction on one day, from which on the day is what they share.
SHARED_NODES = 4
#: Jobs after an alarm that tell whether its level stayed.
LATER_JOBS = 5
#: An alarm of the same factor of the same processor within this time is no second accident.
AGAIN_S = 30 * DAY_S
KINDS = ("shared day", "new level", "several witnesses", "again and again", "alone")
MACHINE = ["node", "cpu"]


def explained(alarms: pandas.DataFrame, values: pandas.DataFrame) -> pandas.DataFrame:
    """Each alarm (r = 1, p = 1) with the first of KINDS that fits it, and its size.

    shared day        : SHARED_NODES nodes have one of the same factor and direction on this day
    new level         : the median of the next LATER_JOBS jobs is off by at least half as much in the same direction
    several witnesses : the other processor of the node, or another factor of this one, has one in the same job
    again and again   : the same factor of the same processor has one within AGAIN_S
    alone             : one processor, one factor, one job
    """
    frame = alarms.merge(values[["node", "cpu", "job", "factor", "value"]], on=["node", "cpu", "job", "factor"])
    frame["usual"] = (frame["low"] + frame["high"]) / 2
    frame["size"] = frame["value"] / frame["usual"] - 1
    frame["day"] = numpy.floor(frame["started_s"] / DAY_S).astype(int)
    shared = frame.groupby(["day", "factor", "direction"])["node"].transform("nunique") >= SHARED_NODES
    witnesses = frame.groupby(["node", "job"])["factor"].transform("size") >= 2
    series = {
        key: part.sort_values("started_s")[["started_s", "value"]].to_numpy()
        for key, part in values.groupby([*MACHINE, "factor"])
    }
    lasting, again = [], []
    for row in frame.itertuples():
        later = series[row.node, row.cpu, row.factor]
        later = later[later[:, 0] > row.started_s][:LATER_JOBS, 1]
        stays = len(later) == LATER_JOBS and (numpy.median(later) / row.usual - 1) / row.size >= 0.5
        lasting.append(bool(stays))
        same = frame[(frame["node"] == row.node) & (frame["cpu"] == row.cpu) & (frame["factor"] == row.factor)]
        gaps = (same["started_s"] - row.started_s).abs()
        again.append(bool(((gaps > 0) & (gaps <= AGAIN_S)).any()))
    kinds = numpy.select([shared, lasting, witnesses, again], KINDS[:-1], KINDS[-1])
    return frame.assign(kind=kinds)


#: Looked at afterwards: nodes 1 to 4, 5 to 8 and so on, since the literature has 13 to 16 and 29 to 32 in a chassis.
CHASSIS = 4
NOTHING = 1e-4


def afterwards(frame: pandas.DataFrame) -> pandas.Series:
    """Of alarms that are alone, what was seen when they were looked at: "same chassis", "below 0.01 %", or ""."""
    chassis = (frame["node"].astype(int) - 1) // CHASSIS
    keys = [chassis, frame["date"].astype(str), frame["factor"], frame["direction"]]
    shared = frame.groupby(keys)["node"].transform("nunique") >= 2
    small = frame["size"].astype(float).abs() < NOTHING
    kinds = numpy.select([shared & ~small, small], ["same chassis", "below 0.01 %"], "")
    return pandas.Series(kinds, index=frame.index).where(frame["kind"] == "alone", "")


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

Alarms by what they belong to, and how many the level promises outside of all events: `watch_replay_counts.csv`.

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


LEVEL = 1e-4
#: An event is found when this share of the processors that it touches have an alarm of the same test and factor.
SHARE = 0.1
#: Change points are looked for so often, and so many times after an event.
LOOK_DAYS, LOOKS = 28, 2
#: The dates of an event, written down by people, are right within this.
DATE_S = 3 * DAY_S


def verdicts_of(
    values: pandas.DataFrame, log: Changelog, vectors: Sequence[tuple[str, ...]], since: dt.date | None = None
) -> pandas.DataFrame:
    """The verdicts of all raw tests, with the columns test and alarm."""
    parts = []
    for pooled in (False, True):
        part = replay(values, log, windows=(1, 5), confidence=1 - LEVEL, pooled=pooled, since=since)
        parts.append(part.assign(test=("pooled r = " if pooled else "r = ") + part["r"].astype(str)))
    part = replay(values, log, factors=vectors, windows=(1,), confidence=1 - LEVEL, since=since)
    parts.append(part.assign(test="p = " + part["p"].astype(str)))
    found = pandas.concat(parts, ignore_index=True)
    return found.assign(alarm=found["p_value"] < LEVEL)


def last_common_event_s(values: pandas.DataFrame, log: Changelog, event: KnownEvent) -> float:
    """Before it nothing is a reference for what is after the event, whatever the node."""
    nodes = {(CLUSTER, node) for node in values["node"].unique()}
    shared = set.intersection(*(set(dates) for dates in log.resets_s(nodes).values()))
    return max((date for date in shared if date <= event.begin_s), default=-numpy.inf)


def found_by_tests(verdicts: pandas.DataFrame, values: pandas.DataFrame, event: KnownEvent) -> list[dict[str, object]]:
    """A row a (test, factor): on which day the event was found by it, if it was; outliers and power drops aside."""
    drops = power_drops(values)
    known = numpy.array([pair in drops for pair in zip(verdicts["node"], verdicts["job"], strict=True)], dtype=bool)
    inside = verdicts[
        verdicts["node"].isin(event.nodes)
        & verdicts["started_s"].between(event.begin_s, event.end_s, inclusive="left")
        & ~(known | verdicts["outlier"].to_numpy(bool))
    ]
    rows = []
    for (test, factor), part in inside.groupby(["test", "factor"], sort=False):
        tested = part[part["missing"] == 0]
        first = part[part["alarm"]].groupby(MACHINE)["started_s"].min()
        rows.append(_row(event, str(test), str(factor), first, values, {"tests": len(tested)}))
    return rows


def found_by_alarms(values: pandas.DataFrame, log: Changelog, event: KnownEvent) -> list[dict[str, object]]:
    """The same of the corrected procedure; an alarm of what all nodes have in common finds an event of all nodes."""
    alarms = judge_days(values[values["started_s"] < event.end_s], log).alarms
    at = pandas.to_datetime(alarms["day"], utc=True).astype("int64") / 1e9 if len(alarms) else alarms["day"]
    alarms = alarms.assign(started_s=at)
    alarms = alarms[alarms["started_s"].between(event.begin_s, event.end_s, inclusive="left")]
    rows = []
    for factor in sorted(values["factor"].unique()):
        own = alarms[(alarms["factor"] == factor) & alarms["node"].isin(event.nodes)]
        rows.append(_row(event, "alarms", factor, own.groupby(MACHINE)["started_s"].min(), values))
        common = alarms[(alarms["factor"] == factor) & (alarms["node"] == "all")]
        if event.entry.nodes.text == "all" and len(common):
            first = float(common["started_s"].min())
            days = (first - event.begin_s) // DAY_S
            rows.append({**rows[-1], "test": "alarms, in common", "found": _date(first), "days": days, "machines": 0})
    return rows


def found_by_change_points(values: pandas.DataFrame, log: Changelog, event: KnownEvent) -> list[dict[str, object]]:
    """The same of change points, looked for LOOKS times in what is known by then, at the latest when the event ends."""
    begin = last_common_event_s(values, log, event)
    first: dict[str, dict[tuple[str, int], float]] = {factor: {} for factor in sorted(values["factor"].unique())}
    for look in range(1, LOOKS + 1):
        now = min(event.begin_s + look * LOOK_DAYS * DAY_S, event.end_s)
        seen = values[values["started_s"].between(begin, now, inclusive="left")]
        for point in find_change_points(seen, log):
            near = point.earliest_s - DATE_S <= event.begin_s <= point.latest_s + DATE_S
            if near and point.node in event.nodes:
                first[point.factor].setdefault((point.node, point.cpu), now)
    return [
        _row(event, "change points", factor, pandas.Series(found, dtype=float), values)
        for factor, found in first.items()
    ]


def _row(
    event: KnownEvent,
    test: str,
    factor: str,
    first: "pandas.Series[float]",
    values: pandas.DataFrame,
    more: dict[str, object] | None = None,
) -> dict[str, object]:
    """first : of the processors that have an alarm, when"""
    after = values[
        values["node"].isin(event.nodes)
        & (values["factor"] == factor.split(" & ", maxsplit=1)[0])
        & (values["started_s"] >= event.begin_s)
    ]
    touched = len(after[after["started_s"] < event.end_s][MACHINE].drop_duplicates())
    row: dict[str, object] = {"event": event.name, "test": test, "factor": factor, "touched": touched}
    row |= {"machines": len(first), "found": "", **dict.fromkeys(("days", "jobs", "last_jobs"), numpy.nan)}
    row |= more or {"tests": numpy.nan}
    needed = max(1, int(numpy.ceil(SHARE * touched)))
    if touched and len(first) >= needed:
        starts = after.groupby(MACHINE)["started_s"].apply(lambda part: numpy.sort(part.to_numpy())).to_dict()
        jobs = sorted(int(numpy.searchsorted(starts[cpu], at, side="right")) for cpu, at in first.items())
        when = float(first.sort_values().iloc[needed - 1])
        row |= {
            "found": _date(when),
            "days": (when - event.begin_s) // DAY_S,
            "jobs": float(numpy.median(jobs[:needed])),
            "last_jobs": jobs[-1],
        }
    return row


def _date(moment_s: float) -> str:
    return dt.datetime.fromtimestamp(moment_s, dt.UTC).date().isoformat()
