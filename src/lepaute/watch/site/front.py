"""What pages say: first what is open, since when, how large and what it costs; then of each factor and event."""

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lepaute.kit.report.page import anchor
from lepaute.kit.report.svg import Layer, Picture, axis
from lepaute.kit.text import counted, signed_percent, significant, with_interval
from lepaute.watch.changelog import ALL, Event
from lepaute.watch.notices.absences import Absence, last_data
from lepaute.watch.notices.notice import Notice
from lepaute.watch.open_regressions import OpenRegressions
from lepaute.watch.report import summary
from lepaute.watch.report.factor_history import FactorRows
from lepaute.watch.report.models import title_of
from lepaute.watch.site.states import COEFFICIENTS, IN_WORDS
from lepaute.watch.values import WHOLE_NODE, Machine, day_numbers, day_of

#: Jobs on either side of an event that are compared.
JOBS = 10
#: Factors that the headline of an event has.
MAX_CHANGES = 4
#: Points of the picture beside an open regression, at most.
SPARK_POINTS = 80
#: Speeds, the most direct first: a frequency is none, but says how much work there is in a second.
_SPEEDS = ("flops", "_per_s", "_s", "_Hz")


def answer(found: "OpenRegressions", states: dict[str, int], noticed: Sequence[Notice], now_s: float) -> dict[str, Any]:
    """For all clusters: state (the class of its colour) and sentence; states : nodes in each state of the map."""
    nodes = sum(states.values())
    last, late = last_data(found.values, now_s)
    where = f"{counted(nodes, 'node')}, last data {last}"
    if text := summary.open_text(found.reports, noticed, f" on {where}"):
        state = "serious" if found.reports else "notable"
    elif not states["fine"] and (few := [notice.reason[0] for notice in noticed if notice.is_unknown]):
        text, state = f"Unknown in {where}: {few[0]}", "unable"
    elif states["unknown"] + states["silent"] + states["failed"] >= nodes:
        text, state = f"Nothing can be said of {where}", "unable"
    else:
        text, state = f"Nothing open in {where}", "fine"
    if state == "fine" and (late or any(count for name, count in states.items() if name != "fine")):
        state = "notable" if states["fine"] else "unable"
    if late:
        text = f"{text}. {late}"
    return {"state": state, "text": f"{text}."}


def node_answer(
    state: str,
    what: Sequence[str],
    reports: Sequence[summary.Regression],
    away: Sequence[Absence],
    noticed: Sequence[Notice] = (),
) -> dict[str, Any]:
    """Of a node: its state, a sentence, and in few words what there is, and since when.

    state, what : of the map, and the rows that are in it
    away, noticed : of it: machines that fail or do not report, and changes for the worse that are no event
    """
    word, machines, since = IN_WORDS[state], tuple[Machine, ...](), None
    short = ", ".join(what) if state != "fine" else ""
    text = f"{word}: {short}" if short else word
    if reports and state == "changed":
        machines, since, short = reports[0].machines, reports[0].since, summary.change_text(reports[0].changes[0])
        text = f"{word}: {short} {summary.since_text(reports[0])}"
    elif own := [each for each in away if summary.absence_state(each) == state]:
        machines, since, short = own[0].machines, own[0].last, ""
        said = summary.absence_text(own[0], "")
        text = f"{word} {said.removeprefix('no value ')}" if state == summary.SILENT and since else f"{word}: {said}"
    elif noticed and state in ("unconfirmed", "unlike"):
        text, since = f"{word}: {noticed[0].text}", day_of(noticed[0].since_s)
        short = f"{noticed[0].factor} {signed_percent(noticed[0].size)}"
    cpus = sorted({cpu for _, node, cpu in machines if cpu != WHOLE_NODE and node != ALL})
    where = f"; CPU {', '.join(map(str, cpus))}" if cpus else ""
    return {"state": state, "text": f"{text[0].upper()}{text[1:]}{where}", "what": short, "since": since}


def cost_text(report: summary.Regression, machines: int, last: dt.date) -> str:
    """Cost of a regression, by the speed that it slowed down most directly, up to the last day of the data.

    machines : of its factor in the cluster, for a report of all of them
    """
    change = _slowed(report.changes)
    if change is None:
        return "no speed has changed with it, so it costs nothing that is known"
    slower = sorted(_longer(change.factor, size) for size in (change.size, change.low, change.high))
    longer = _longer(change.factor, change.size)
    if math.isinf(longer):
        return "no work is done at all"
    count = machines if ALL in report.nodes else change.machines
    cpus = longer / (1 + longer) * count
    days = (last - report.since).days + 1
    lost, lost_days = (significant(each, 2) for each in (cpus, cpus * days))
    longer_text = with_interval(100 * longer, 100 * slower[0], 100 * slower[-1], "%")
    what = "work" if not change.factor.endswith("_Hz") else "a clock cycle"
    return (
        f"{what} takes {longer_text} longer, on all CPUs where a "
        f"job waits for its slowest; {lost} of {counted(count, 'CPU')} are lost, {lost_days} CPU-days so far"
    )


def _slowed(changes: Sequence[summary.Change]) -> summary.Change | None:
    """Factor that lost most, of the first kind of speed that became worse."""
    for unit in _SPEEDS:
        of_unit = (c for c in changes if c.factor.endswith(unit) and (unit != "_s" or not c.factor.endswith("_per_s")))
        if slower := [c for c in of_unit if _longer(c.factor, c.size) > 0]:
            return max(slower, key=lambda change: _longer(change.factor, change.size))
    return None


def _longer(factor: str, size: float) -> float:
    """How much longer work takes, relative, where the factor changed by `size`."""
    if factor.endswith("_s") and not factor.endswith("_per_s"):
        return size
    return 1 / (1 + size) - 1 if size > -1 else math.inf


def page_name(kind: str, *names: object) -> str:
    return f"{kind}-{anchor('/'.join(map(str, names)))}.html"


def effect_of(event: Event, factor: FactorRows) -> dict[str, Any] | None:
    """Effect on a factor from the date of an event on, by the ten jobs on either side, machine by machine.

    Median and quartiles over the machines of the relative change of their medians. A description, no test: `lepaute
    watch events effect` tests. None if no machine has jobs on both sides.
    """
    rows = factor.rows
    if factor.is_vector:
        return None
    nodes = event.nodes.among({(factor.cluster, node) for node in rows["node"].unique()})
    own = rows[rows["node"].isin([node for _, node in nodes]) & rows["value"].notna()]
    changes = []
    for _, part in own.groupby(["node", "cpu"], sort=False, observed=True):
        times, values = part["started_s"].to_numpy(float), part["value"].to_numpy(float)
        before, after = values[times < event.start_s][-JOBS:], values[times >= event.start_s][:JOBS]
        if len(before) and len(after) and (level := float(np.median(before))) != 0.0:
            changes.append(float(np.median(after)) / level - 1.0)
    if not changes:
        return None
    low, middle, high = (float(value) for value in np.percentile(changes, [25, 50, 75]))
    effect = {"factor": factor.name, "machines": len(changes), "change": middle, "low": low, "high": high}
    return {**effect, "page": page_name("factor", factor.cluster, factor.name)}


def effects_text(effects: Sequence[dict[str, Any]]) -> str:
    """rate and frequency -1.4 %, temperature +3.2 % on 24 CPUs: the largest of what `effect_of` found."""
    largest = sorted((abs(each["change"]) for each in effects), reverse=True)[:MAX_CHANGES]
    of_change: dict[str, list[str]] = {}
    for each in effects:
        if abs(each["change"]) >= largest[-1]:
            of_change.setdefault(signed_percent(each["change"]), []).append(each["factor"])
    texts = [f"{' and '.join(names)} {change}" for change, names in of_change.items()]
    machines = {each["machines"] for each in effects}
    return ", ".join(texts) + (f" on {counted(max(machines), 'CPU')}" if len(machines) == 1 else "")


def summary_of(factor: FactorRows, reports: Iterable[summary.Regression], noticed: Iterable[Notice]) -> dict[str, Any]:
    """A factor of a cluster in one line: how many CPUs stand out, how badly, and since when.

    regressed : machines of open regressions; suspicious : with a suspicious test, of any window, in the latest days;
    tested, machines : of all; change : since when the latest regression
    """
    rows = factor.rows
    reports = [report for report in reports if report.cluster == factor.cluster]
    own = [report for report in reports if factor.name in {change.factor for change in report.changes}]
    last_s = float(rows["started_s"].max())
    recent = rows[(rows["started_s"] >= summary.recent_s(last_s)) & rows["p_value"].notna() & ~rows["outlier"]]
    suspects = factor.suspects[factor.suspects["started_s"] >= summary.recent_s(last_s)]
    suspicious, tested, machines = (len(each[["node", "cpu"]].drop_duplicates()) for each in (suspects, recent, rows))
    changed = {machine[1:] for each in own for machine in each.machines}
    regressed = machines if any(node == ALL for node, _ in changed) else len(changed)
    if factor.is_vector:  # of one of its factors
        regressed = len(rows.loc[rows["regressed"], ["node", "cpu"]].drop_duplicates())
    unknown = not tested or any(notice.is_unknown and notice.cluster == factor.cluster for notice in noticed)
    calm = summary.UNKNOWN if unknown else summary.FINE
    state = summary.CHANGED if regressed else summary.SUSPICIOUS if suspicious else calm
    return {
        "cluster": factor.cluster,
        "factor": factor.name,
        "title": title_of(factor.name),
        "kind": "models" if factor.is_vector else "coefficients" if factor.name in COEFFICIENTS else "factors",
        "worst": _worst(factor),
        "verdict": state,
        "regressed": regressed,
        "suspicious": suspicious,
        "tested": tested,
        "machines": machines,
        "change": max((each.since for each in own), default=None),
        "last": day_of(last_s),
        "page": page_name("factor", factor.cluster, factor.name),
    }


def _worst(factor: FactorRows) -> str:
    """The node that a picture of one is of: that of the latest regression, or of the least p-value of late."""
    rows = factor.rows[factor.rows["regressed"]] if factor.rows["regressed"].any() else factor.rows
    rows = rows[rows["started_s"] >= summary.recent_s(float(factor.rows["started_s"].max()))] if len(rows) else rows
    tested = rows[rows["p_value"].notna()]
    chosen = tested.nsmallest(1, "p_value") if len(tested) else factor.rows.iloc[:1]
    return str(chosen["node"].iloc[0]) if len(chosen) else ""


def regression_line(report: summary.Regression) -> dict[str, Any]:
    node = report.machines[0][1]
    of_factor = node == ALL or len(report.nodes) > 1
    place = ("factor", report.cluster, report.changes[0].factor) if of_factor else ("node", report.cluster, node)
    first, *others = report.changes
    is_sized = first.size == first.size
    changes = [first.factor if is_sized else summary.change_text(first), *map(summary.change_text, others)]
    return {
        "first": f"{f'{signed_percent(first.size)} ' if is_sized else ''}{summary.since_text(report)}",
        "text": f"{summary.regression_nodes(report)}: {', '.join(changes)}",
        "alarm": report.alarm,
        "page": page_name(*place),
    }


def sparkline(report: summary.Regression, factor: FactorRows) -> str | None:
    """The first factor that changed and the band in which its next job was expected, as SVG; None without values.

    Each of SPARK_POINTS or fewer is the median over the machines of the report, relative to the level of each.
    """
    rows = factor.rows[(factor.rows["state"] == "done") & factor.rows["value"].notna() & ~factor.rows["outlier"]]
    if ALL not in report.nodes:
        machines = pd.MultiIndex.from_arrays([rows["node"].astype(str), rows["cpu"]])
        rows = rows[machines.isin([machine[1:] for machine in report.machines])]
    level = rows.groupby(["node", "cpu"], observed=True)["value"].transform("median")
    if rows.empty or (level == 0.0).any():
        return None
    day = day_numbers(rows["started_s"])
    days = np.unique(day)
    bins = np.searchsorted(days, day) // -(-len(days) // SPARK_POINTS)
    points = rows[["value", "low", "high"]].div(level, axis=0).assign(day=day).groupby(bins).median()
    held, after = points.dropna(), points["day"] >= (report.since - dt.date(1970, 1, 1)).days
    x, y = (axis("", points[name].to_numpy(float), room=room) for name, room in (("day", 0.01), ("value", 0.4)))
    band = Layer("band", held["day"].to_numpy(float), held["high"].to_numpy(float), "band", held["low"].to_numpy(float))
    lines = [
        Layer("line", part["day"].to_numpy(float), part["value"].to_numpy(float), style)
        for part, style in ((points[~after], "line"), (points[after], "line after"))
    ]
    return Picture(regression_line(report)["first"], "", x, y, [band, *lines]).frame()
