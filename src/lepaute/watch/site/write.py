"""The pages of a watch, as a folder: whole, or as it was before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.files import not_written, scratch_folder
from lepaute.kit.text import counted
from lepaute.report.page import anchor, render
from lepaute.watch.alarms.worth_a_look import LABEL
from lepaute.watch.changelog import ALL, Event
from lepaute.watch.notices.absences import absences, absences_of
from lepaute.watch.notices.notice import few_machines, notices, unconfirmed_changes, worth_a_look
from lepaute.watch.open_regressions import OpenRegressions, open_regressions
from lepaute.watch.report.summary import (
    absence_text,
    change_text,
    recent_s,
    regression_nodes,
    since_text,
    suspicion_text,
    suspicions_of,
    uncovered,
)
from lepaute.watch.site.read import (
    P_LEVELS,
    FactorRows,
    NodeSeries,
    factor_rows,
    last_values,
    natural,
    overview_data,
    script_of,
)
from lepaute.watch.values import DAY_S, day_of

if TYPE_CHECKING:
    from lepaute.store import Store
    from lepaute.watch.report.summary import Regression

#: Says that a folder is a site of ours, which may be replaced.
MARKER = "lepaute-watch-site.txt"
_PACKAGE = "lepaute.watch.site"
#: Jobs on either side that are compared.
JOBS = 10


@dataclass(frozen=True, slots=True)
class Site:
    """What was written; largest_bytes : of a page with the data that it loads, without the library of the plots."""

    folder: Path
    pages: int
    total_bytes: int
    largest_bytes: int


@dataclass(slots=True)
class _Writer:
    folder: Path
    title: str
    made: str
    sizes: dict[str, int] = field(default_factory=dict)

    def page(self, name: str, template: str, data: Any = None, **values: Any) -> None:
        script = f"{name.removesuffix('.html')}.js" if data is not None else None
        html = render(_PACKAGE, template, site=self.title, made=self.made, data_script=script, **values)
        self.sizes[name] = self._put(name, html) + (self._put(f"data/{script}", script_of(data)) if script else 0)

    def _put(self, name: str, text: str) -> int:
        content = text.encode()
        (self.folder / name).write_bytes(content)
        return len(content)


def write_site(store: "Store", folder: Path, now_s: float) -> Site:
    """Writes the pages of all clusters of a store; an older site in the folder is replaced.

    Raises InputError where the store has no values or the folder holds something else, EnvironmentProblem where it
    cannot be written; the folder is as it was then.
    """
    _check_folder(folder)
    if store.factors().empty:
        raise InputError("the store has no factor values; `lepaute watch ingest` adds some")
    try:
        with scratch_folder(folder.absolute().parent) as beside:
            new = beside / "new"
            (new / "data").mkdir(parents=True)
            writer = _Writer(new, "Watch", day_of(now_s).isoformat())
            _write_pages(store, writer)
            _write_static(new)
            (new / MARKER).write_text("Made by lepaute watch site, which replaces this folder.\n")
            _put_in_place(new, folder)
    except OSError as problem:
        raise EnvironmentProblem(not_written(folder, problem)) from None
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Site(folder, len(writer.sizes), total, max(writer.sizes.values()))


def _check_folder(folder: Path) -> None:
    if folder.exists() and not (folder / MARKER).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there, and is no site of lepaute; name another folder")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"there is no folder {folder.absolute().parent}; make it first")


def _put_in_place(new: Path, folder: Path) -> None:
    """Renames; a reader sees the old site or the new one, and for a moment between the two none."""
    old = new.with_name("old")
    if folder.exists():
        folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise


@cache
def plot_library() -> str:
    """The script of the library that draws the plots; bundling it takes more than a second, so once a process."""
    from vl_convert import javascript_bundle

    return javascript_bundle("window.vegaEmbed = vegaEmbed;")


def _write_static(folder: Path) -> None:
    (folder / "vega.js").write_text(plot_library(), encoding="utf-8")
    for name in ("site.js", "overview.js", "node.js", "factor.js"):
        (folder / name).write_bytes(files(_PACKAGE).joinpath("static", name).read_bytes())
    tables = files("lepaute.report").joinpath("static", "tables.js").read_bytes()
    (folder / "tables.js").write_bytes(tables)


# ---- the pages -------------------------------------------------------------------------------------------------------


def _page(kind: str, *names: object) -> str:
    return f"{kind}-{anchor('/'.join(map(str, names)))}.html"


def _event_page(event: Event) -> str:
    return _page("event", event.date, event.nodes.cluster, event.nodes.text, event.reason)


def _write_pages(store: "Store", writer: _Writer) -> None:
    import pandas as pd

    regressed = open_regressions(store)
    log = regressed.changelog
    known = store.factors()
    clusters = sorted(known["cluster"].unique())
    summaries: list[dict[str, Any]] = []
    effects: dict[Event, list[dict[str, Any]]] = {event: [] for event in log.events}
    nodes: list[dict[str, Any]] = []
    suspects: list[pd.DataFrame] = []
    for cluster in clusters:
        mine = [event for event in log.events if event.nodes.cluster in (ALL, cluster)]
        marks: list[dict[str, Any]] = [
            {
                "day": int(event.start_s // DAY_S),
                "text": event.reason,
                "kind": event.kind,
                "cluster": cluster,
                "page": _event_page(event),
            }
            for event in mine
        ]
        series = NodeSeries()
        pages = {node: _page("node", cluster, node) for node in store.nodes(cluster)}
        names = [*known.loc[known["cluster"] == cluster, "factor"], *store.vectors(cluster)]
        for name in names:
            factor = factor_rows(store, regressed, cluster, name)
            series.add(factor)
            suspects.append(factor.suspects)
            summary = _summary(factor, regressed.reports)
            summaries.append(summary)
            _write_factor(writer, factor, summary, pages, marks)
            for event in mine:
                if (effect := _effect(event, factor)) is not None:
                    effects[event].append(effect)
        nodes += _write_nodes(store, writer, cluster, series, regressed, mine, marks)
    for event, found in effects.items():
        among = event.nodes.among({(each["cluster"], each["node"]) for each in nodes})
        on = [each for each in nodes if (each["cluster"], each["node"]) in among]
        writer.page(
            _event_page(event), "event.html.j2", event=event, effects=found, nodes=on, title=f"Event of {event.date}"
        )
    latest = pd.concat(suspects)
    latest = latest[latest["started_s"] >= recent_s(float(regressed.values["started_s"].max()))]
    writer.page("nodes.html", "nodes.html.j2", nodes=nodes, title="Nodes")
    writer.page(
        "index.html",
        "index.html.j2",
        title="Watch",
        judged=regressed.last_day,
        suspicions=[suspicion_text(each, each.changes) for each in suspicions_of(latest)],
        absences=[absence_text(each) for each in absences_of(regressed.values)],
        looks=[str(each) for each in worth_a_look(regressed)],
        looks_label=LABEL,
        notices=[
            *(str(each) for each in uncovered(notices(regressed.values, log), regressed.rows)),
            *(str(each) for each in unconfirmed_changes(regressed)),
            *(str(each) for each in few_machines(regressed.values, log)),
        ],
        summaries=summaries,
        regressions=[_regression(each) for each in regressed.reports],
        events=[
            {"event": event, "page": _event_page(event)} for event in sorted(log.events, key=lambda one: one.date)[::-1]
        ],
        nodes=len(nodes),
        clusters=clusters,
    )


def _write_factor(
    writer: _Writer, factor: FactorRows, summary: dict[str, Any], pages: Mapping[str, str], marks: list[dict[str, Any]]
) -> None:
    data = overview_data(factor, dict(pages), marks)
    data["last"] = [] if factor.is_vector else last_values(factor)
    writer.page(
        _page("factor", factor.cluster, factor.name),
        "factor.html.j2",
        data,
        title=f"{factor.cluster + ': ' if factor.cluster else ''}{factor.name}",
        summary=summary,
        machines=counted(len(data["machines"]), "CPU") if not factor.is_vector else "",
        last_known=bool(data["last"]),
    )


def _write_nodes(
    store: "Store",
    writer: _Writer,
    cluster: str,
    series: NodeSeries,
    found: OpenRegressions,
    events: list[Event],
    marks: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    away = {
        str(row["node"]): {str(k): v for k, v in row.items()}
        for row in absences(store.job_states(cluster)).to_dict("records")
    }
    silent: dict[str, list[str]] = {}
    for absence in absences_of(found.values[found.values["cluster"] == cluster]):
        for node in dict.fromkeys(node for _, node, _ in absence.machines):
            silent.setdefault(node, []).append(absence_text(absence))
    actions = store.node_actions()
    actions = actions[actions["cluster"] == cluster].sort_values("revision")
    names = sorted(series.nodes, key=natural)
    listed: list[dict[str, Any]] = []
    for at, node in enumerate(names):
        mine = [each for each in found.reports if each.cluster == cluster and (node in each.nodes or ALL in each.nodes)]
        touching = [event for event in events if event.nodes.among({(cluster, node)})]
        facts = away.get(node, {})
        page = _page("node", cluster, node)
        days = {int(event.start_s // DAY_S) for event in touching}
        writer.page(
            page,
            "node.html.j2",
            {
                "node": node,
                "levels": P_LEVELS,
                "regressed": mine[0].changes[0].factor if mine else "",
                "series": series.of(node),
                "events": [mark for mark in marks if mark["day"] in days],
            },
            title=f"{cluster + ' ' if cluster else ''}{node}",
            cluster=cluster,
            regressions=[_regression(each) for each in mine],
            silent=silent.get(node, []),
            events=[{"event": event, "page": _event_page(event)} for event in touching],
            actions=actions[actions["node"] == node].to_dict("records"),
            facts=facts,
            before=_page("node", cluster, names[at - 1]) if at else None,
            after=_page("node", cluster, names[at + 1]) if at + 1 < len(names) else None,
        )
        listed.append({**facts, "cluster": cluster, "node": node, "page": page, "regressions": len(mine)})
    return listed


# ---- what the pages say ----------------------------------------------------------------------------------------------


def _effect(event: Event, factor: FactorRows) -> dict[str, Any] | None:
    """What became of a factor from the date of an event on, by the ten jobs on either side, machine by machine.

    Median and quartiles over the machines of the relative change of their medians. A description, no test: `lepaute
    watch events effect` tests. None where no machine has jobs on both sides.
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
    return {**effect, "page": _page("factor", factor.cluster, factor.name)}


def _summary(factor: FactorRows, reports: "Iterable[Regression]") -> dict[str, Any]:
    """A factor of a cluster in one line: how many CPUs stand out, how badly, and since when.

    regressed : machines of open regressions; suspicious : with a suspicious test, of any window, in the latest days;
    tested, machines : of all; least_p : of these days, None: none was tested; change : since when the latest
    regression; state : the class of the colour of the verdict
    """
    rows = factor.rows
    reports = [each for each in reports if each.cluster == factor.cluster]
    own = [each for each in reports if factor.name in {change.factor for change in each.changes}]
    last_s = float(rows["started_s"].max())
    recent = rows[(rows["started_s"] >= recent_s(last_s)) & rows["p_value"].notna() & ~rows["outlier"]]
    suspects = factor.suspects[factor.suspects["started_s"] >= recent_s(last_s)]
    suspicious, tested, machines = (len(each[["node", "cpu"]].drop_duplicates()) for each in (suspects, recent, rows))
    changed = {machine[1:] for each in own for machine in each.machines}
    regressed = machines if any(node == ALL for node, _ in changed) else len(changed)
    if regressed:
        verdict, state = "regressed", "serious"
    elif suspicious:
        verdict, state = "suspicious", "notable"
    else:
        verdict, state = ("fine", "fine") if tested else ("too few", "unable")
    return {
        "cluster": factor.cluster,
        "factor": factor.name,
        "verdict": verdict,
        "state": state,
        "regressed": regressed,
        "suspicious": suspicious,
        "tested": tested,
        "machines": machines,
        "least_p": float(recent["p_value"].min()) if len(recent) else None,
        "change": max((each.since for each in own), default=None),
        "last": day_of(last_s),
        "page": _page("factor", factor.cluster, factor.name),
    }


def _regression(report: "Regression") -> dict[str, Any]:
    node = report.machines[0][1]
    of_factor = node == ALL or len(report.nodes) > 1
    return {
        "text": f"{regression_nodes(report)}: {', '.join(map(change_text, report.changes))}",
        "since": since_text(report),
        "alarm": report.alarm,
        "page": _page("factor", report.cluster, report.changes[0].factor)
        if of_factor
        else _page("node", report.cluster, node),
    }
