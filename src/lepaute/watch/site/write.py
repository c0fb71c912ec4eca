"""The pages of a watch, as a folder: whole, or as it was before."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from itertools import compress
from pathlib import Path
from typing import Any

import pandas as pd

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.files import not_written, scratch_folder
from lepaute.kit.report.page import render
from lepaute.kit.text import natural_order, signed_percent
from lepaute.watch.alarms.worth_a_look import LABEL
from lepaute.watch.changelog import ALL, Event
from lepaute.watch.judging.judge import AND
from lepaute.watch.kept import keep_object, kept_object
from lepaute.watch.notices.absences import Absence, absences, absences_of, last_data
from lepaute.watch.notices.notice import UNCONFIRMED, Notice, notices, unconfirmed_changes, worth_a_look
from lepaute.watch.open_regressions import OpenRegressions, open_regressions, packed_values
from lepaute.watch.report import summary as summary_module
from lepaute.watch.report.factor_history import CODES, COLOURS, P_LEVELS, FactorRows, factor_rows
from lepaute.watch.report.models import models_of, moved_in, title_of
from lepaute.watch.report.summary import absence_state
from lepaute.watch.site import front
from lepaute.watch.site.read import NodeSeries, json_of, overview_data, script_of
from lepaute.watch.site.states import IN_WORDS, STATES, WEIGHT, FactorStates, StateMap, drawn, state_map, states_of
from lepaute.watch.store import Store
from lepaute.watch.values import DAY_S, day_of

#: Says that a folder is a site of ours, which may be replaced.
MARKER = "lepaute-watch-site.txt"
_PACKAGE = "lepaute.watch.site"
_SCRIPTS = [(_PACKAGE, name) for name in ("site.js", "overview.js", "node.js", "factor.js")]
_SCRIPTS += [("lepaute.kit.report", "tables.js")]
#: Lines of a list on the front page, the others are folded.
MAX_LINES = 12


@dataclass(frozen=True, slots=True)
class Site:
    """Files written."""

    folder: Path
    pages: int
    total_bytes: int


@dataclass(slots=True)
class _Writer:
    folder: Path
    made: str
    pages: dict[str, bool] = field(default_factory=dict)  # whether it loads data

    def data(self, name: str, data: Mapping[str, Any]) -> None:
        """Writes the data that the page of this name, without .html, loads; before the page."""
        self.pages[f"{name}.html"] = True
        self.file(f"data/{name}.js", script_of(data))

    def page(self, name: str, template: str, **values: Any) -> None:
        script = f"{name.removesuffix('.html')}.js" if self.pages.setdefault(name, False) else None
        self.file(name, render(_PACKAGE, template, palette=COLOURS, made=self.made, data_script=script, **values))

    def file(self, name: str, text: str) -> None:
        (self.folder / name).write_bytes(text.encode())


def write_site(store: "Store", folder: Path, now_s: float) -> Site:
    """Writes the pages of all clusters of a store; an older site in the folder is replaced.

    Raises InputError without values, or if the folder holds something else; EnvironmentProblem if it is not written.
    """
    if folder.exists() and not (folder / MARKER).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there, and is no site of lepaute; name another folder")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"there is no folder {folder.absolute().parent}; make it first")
    if store.factors().empty:
        raise InputError("the store has no factor values; `lepaute watch ingest` adds some")
    try:
        with scratch_folder(folder.absolute().parent) as beside:
            new = beside / "new"
            (new / "data").mkdir(parents=True)
            writer = _Writer(new, day_of(now_s).isoformat())
            _write_pages(store, writer, now_s)
            (new / "vega.js").write_text(plot_library(), encoding="utf-8")
            for package, name in _SCRIPTS:
                text = files(package).joinpath("static", name).read_text(encoding="utf-8")
                codes = f"const CODES = {json_of(CODES)};\n" if name == "site.js" else ""
                (new / name).write_text(codes + text, encoding="utf-8")
            (new / MARKER).write_text("Made by lepaute watch site, which replaces this folder.\n")
            _put_in_place(new, folder)
    except OSError as problem:
        raise EnvironmentProblem(not_written(folder, problem)) from None
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Site(folder, len(writer.pages), total)


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
    """The script of the library that draws the plots; bundling it takes more than a second, so it is kept."""
    of = "the library of the plots", version("vl-convert-python")
    if (text := kept_object(of)) is None:
        from vl_convert import javascript_bundle

        text = javascript_bundle("window.vegaEmbed = vegaEmbed;")
        keep_object(of, text)
    return str(text)


def _event_page(event: Event) -> str:
    return front.page_name("event", event.date, event.nodes.cluster, event.nodes.text, event.reason)


@dataclass(slots=True)
class _Pages:
    """Pages of one cluster after the other, and what they leave for those that are about all."""

    store: Store
    writer: _Writer
    every: "pd.DataFrame"
    found: OpenRegressions
    away: Sequence[Absence]
    lines: Sequence[Notice]
    summaries: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    suspects: "list[pd.DataFrame]" = field(default_factory=list)
    maps: list[dict[str, Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    effects: dict[Event, list[dict[str, Any]]] = field(default_factory=dict)
    last_day: int = 0
    sparks: dict[summary_module.Regression, str | None] = field(default_factory=dict)

    def write_cluster(self, cluster: str, names: list[str]) -> None:
        """The pages of its factors, models and nodes."""
        away = [each for each in self.away if each.cluster == cluster]
        mine = [event for event in self.found.changelog.events if event.nodes.cluster in (ALL, cluster)]
        mine.sort(key=lambda event: event.date)
        marks: list[dict[str, Any]] = [
            {
                "day": int(event.start_s // DAY_S),
                "text": event.reason,
                "date": event.date.isoformat(),
                "kind": event.kind,
                "nodes": event.nodes.text,
                "page": _event_page(event),
            }
            for event in mine
        ]
        pages = {node: front.page_name("node", cluster, node) for node in self.store.nodes(cluster)}
        series, states, of_factors = NodeSeries(), list[FactorStates](), list[dict[str, Any]]()
        for name in [*names, *models_of(set(names), self.store.vectors(cluster))]:
            factor = factor_rows(self.store, self.found, cluster, name, self.every)
            if factor.is_vector and not len(factor.rows):  # jobs may have some of its coefficients each
                continue
            summary = front.summary_of(factor, self.found.reports, self.lines)
            of_factors.append(self._write_factor(factor, summary, pages, marks))
            self.summaries.append(summary)
            self.suspects.append(factor.suspects)
            for report in self.found.reports:
                if report.cluster == cluster and report.changes[0].factor == name:
                    self.sparks[report] = front.sparkline(report, factor)
            series.add(factor)
            states.append(states_of(factor, summary["page"], away, self.lines, states))
            for event in mine:
                if (effect := front.effect_of(event, factor)) is not None:
                    self.effects[event].append(effect)
        choice = [each["summary"] for each in of_factors]
        for each in of_factors:
            page = each["summary"]["page"]
            self.writer.page(page, "factor.html.j2", choice=choice, marks=marks, day_of=day_of, **each)
        made = state_map(states)
        self.maps.append(drawn(made, len(self.maps), cluster, pages, self.found.changelog.inventory))
        self.lost += made.lost
        self.nodes += self._write_nodes(cluster, series, made, mine, marks, away)

    def _write_factor(
        self, factor: FactorRows, summary: dict[str, Any], pages: Mapping[str, str], marks: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Its data and its notebook; returns what its page says."""
        data = overview_data(factor, dict(pages), marks)
        name = summary["page"].removesuffix(".html")
        self.writer.data(name, data)
        self.writer.file(f"{name}.ipynb", _notebook_of(factor.cluster, factor.name, summary["worst"]))
        return {
            "title": f"{factor.cluster + ': ' if factor.cluster else ''}{summary['title']}",
            "summary": summary,
            "window": factor.window,
            "names": factor.names if factor.is_vector else (),
            "moved": moved_in(factor, self.found),
            "pages": pages,
            "notebook": f"{name}.ipynb",
            "last_known": bool(data["last"]),
        }

    def _write_nodes(
        self,
        cluster: str,
        series: NodeSeries,
        states: StateMap,
        events: list[Event],
        marks: list[dict[str, Any]],
        absent: "Sequence[Absence]",
    ) -> list[dict[str, Any]]:
        away = {
            str(row["node"]): {str(k): v for k, v in row.items()}
            for row in absences(self.store.job_states(cluster)).to_dict("records")
        }
        silent: dict[str, list[Absence]] = {}
        for absence in absent:
            for node in dict.fromkeys(node for _, node, _ in absence.machines):
                silent.setdefault(node, []).append(absence)
        actions = self.store.node_actions()
        of_node: dict[str, list[dict[Any, Any]]] = {}
        for action in actions[actions["cluster"] == cluster].sort_values("revision").to_dict("records"):
            of_node.setdefault(str(action["node"]), []).append(action)
        names = sorted(series.nodes, key=natural_order)
        touched = [event.nodes.among({(cluster, node) for node in names}) for event in events]
        of_cluster = [report for report in self.found.reports if report.cluster == cluster]
        listed: list[dict[str, Any]] = []
        for at, node in enumerate(names):
            regressions = [report for report in of_cluster if not {node, ALL}.isdisjoint(report.nodes)]
            touches = [(cluster, node) in nodes for nodes in touched]
            page = front.page_name("node", cluster, node)
            state, what = states.worst(node)
            last_s = away.get(node, {}).get("last_done_s", math.nan)
            last = "none" if math.isnan(last_s) else day_of(last_s)
            noticed = [line for line in self.lines if line.cluster == cluster and line.is_worse and line.names(node)]
            answer = front.node_answer(state, what, regressions, silent.get(node, ()), noticed)
            answer["text"] += f"; last value {last}" * (state in ("fine", "unknown"))
            data = {
                "node": node,
                "last": self.last_day,
                "levels": P_LEVELS,
                "regressed": next((r.changes[0].factor for r in regressions), noticed[0].factor if noticed else ""),
                "series": series.of(node),
                "events": list(compress(marks, touches)),
            }
            self.writer.data(page.removesuffix(".html"), data)
            self.writer.page(
                page,
                "node.html.j2",
                title=f"{cluster + ' ' if cluster else ''}{node}",
                cluster=cluster,
                answer=answer,
                regressions=list(map(front.regression_line, regressions)),
                silent=[_absence_line(each) for each in silent.get(node, ()) if state != absence_state(each)],
                events=[{"event": event, "page": _event_page(event)} for event in compress(events, touches)],
                actions=of_node.get(node, []),
                before=front.page_name("node", cluster, names[at - 1]) if at else None,
                after=front.page_name("node", cluster, names[at + 1]) if at + 1 < len(names) else None,
            )
            facts = {"cluster": cluster, "node": node, "page": page, "weight": WEIGHT[state], "last": last}
            listed.append({**away.get(node, {}), **answer, **facts, "regressions": len(regressions)})
        return listed


def _absence_line(absence: Absence) -> dict[str, str]:
    return {"badge": absence_state(absence), "text": summary_module.absence_text(absence)}


def _write_pages(store: "Store", writer: _Writer, now_s: float) -> None:
    every = packed_values(store)
    regressed = open_regressions(store, values=every)
    log = regressed.changelog
    known = store.factors()
    looks = worth_a_look(regressed)
    uncovered_notices = summary_module.uncovered(notices(regressed.values, log), regressed.rows)
    unconfirmed = unconfirmed_changes(regressed)
    noticed = (*uncovered_notices, *unconfirmed, *regressed.unseen())
    all_absences, lines = absences_of(regressed.values), [*looks, *noticed]
    said = _Pages(store, writer, every, regressed, all_absences, lines, effects={event: [] for event in log.events})
    said.last_day = int(regressed.values["started_s"].max() // DAY_S)
    for cluster in sorted(known["cluster"].unique()):
        said.write_cluster(str(cluster), list(known.loc[known["cluster"] == cluster, "factor"]))
    for event, found in said.effects.items():
        among = event.nodes.among({(node["cluster"], node["node"]) for node in said.nodes})
        on = [node for node in said.nodes if (node["cluster"], node["node"]) in among]
        writer.page(
            _event_page(event),
            "event.html.j2",
            event=event,
            effects=found,
            percent=signed_percent,
            said=front.effects_text(found),
            nodes=on,
            title=f"{event.reason}, {event.date}",
        )
    latest = pd.concat(said.suspects)
    latest = latest[latest["started_s"] >= summary_module.recent_s(float(regressed.values["started_s"].max()))]
    worst = sorted(said.nodes, key=lambda node: (-node["weight"], -node["regressions"]))
    named = len(said.maps) > 1
    writer.page("nodes.html", "nodes.html.j2", nodes=worst, said=IN_WORDS, named=named, title="Nodes")
    states = {state: sum(node["state"] == state for node in said.nodes) for state in STATES}
    last, late = last_data(regressed.values, now_s)
    machines = {(summary["cluster"], summary["factor"]): summary["machines"] for summary in said.summaries}
    writer.page(
        "index.html",
        "index.html.j2",
        title="Watch",
        answer=front.answer(regressed, states, noticed, now_s),
        maps=said.maps,
        last=last,
        late=late,
        states_of={word: f" {state}" for state, word in IN_WORDS.items()},
        suspicions=[
            {"text": summary_module.suspicion_text(test, [replace(c, factor=title_of(c.factor)) for c in test.changes])}
            for test in summary_module.suspicions_of(latest)
        ],
        silent=[
            *map(_absence_line, all_absences),
            *({"badge": summary_module.SILENT, "text": line} for line in said.lost),
        ],
        looks=[{"text": str(look)} for look in looks],
        looks_label=LABEL,
        most=MAX_LINES,
        notices=[
            {"badge": summary_module.NOT_CONFIRMED if note.kind == UNCONFIRMED else note.kind, "text": str(note)}
            for note in noticed
        ],
        summaries=said.summaries,
        regressions=[
            front.regression_line(report)
            | {"cost": front.cost_text(report, machines[report.cluster, report.changes[0].factor], last)}
            | {"spark": said.sparks.get(report)}
            for report in regressed.reports
        ],
        events=[
            {"event": event, "page": _event_page(event)} for event in sorted(log.events, key=lambda one: one.date)[::-1]
        ],
        named=named,
    )


def _notebook_of(cluster: str, factor: str, node: str) -> str:
    """The text of a notebook (nbformat 4.5) of a factor, or a vector "a & b"; node: the one whose evolution it has.

    The store is that of LEPAUTE_STORE: a page tells nobody where a store is, or its password.
    """
    names = factor.split(AND)
    asked = repr(names[0] if len(names) == 1 else names)
    cells: list[tuple[str, str]] = [
        (
            "markdown",
            f"# {_as_markdown(title_of(factor))}{f' of {_as_markdown(cluster)}' if cluster else ''}\n\n"
            "The pictures of the page of `lepaute watch site`, made anew from the store. Name it below, or set "
            "`LEPAUTE_STORE`.",
        ),
        (
            "code",
            "import os\n\nimport lepaute as lp\n\n"
            'watch = lp.watch.open(os.environ["LEPAUTE_STORE"], create=False)\n'
            f"factor = watch.factor({asked}, cluster={cluster!r})\nfactor",
        ),
        ("markdown", "**All CPUs**: each job, the mean of several, the values."),
        ("code", 'factor.overview("jobs");'),
        ("code", 'if factor.window:\n    factor.overview("means")'),
    ]
    if len(names) == 1:
        cells += [
            ("code", 'factor.overview("values");'),
            ("markdown", "**The last value of each CPU**: how they are distributed, and where they are."),
            ("code", "factor.distribution()\nfactor.spread"),
            ("code", "factor.places();"),
            ("markdown", "**One node** over time, with the interval in which its next job was expected."),
            ("code", f"node = {node!r}\nfactor.evolution(node);"),
            ("code", 'if factor.window:\n    factor.evolution(node, view="means")'),
        ]
    else:
        cells += [
            ("markdown", "**Which coefficient moved**, of the CPUs that stand out."),
            ("code", f"names = {names!r}\nfor each in factor.moved:\n    print(each.node, each.cpu, each.text(names))"),
        ]
    cells += [
        ("markdown", "**The numbers**, to go on from here."),
        ("code", 'factor.rows.sort_values("p_value").head(10)'),
        ("code", "watch.close()"),
    ]
    document = {
        "cells": [_cell(at, kind, text) for at, (kind, text) in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _cell(at: int, kind: str, text: str) -> dict[str, Any]:
    common = {"cell_type": kind, "id": f"cell-{at}", "metadata": {}, "source": text.splitlines(keepends=True)}
    return common if kind == "markdown" else {**common, "execution_count": None, "outputs": []}


def _as_markdown(text: str) -> str:
    """A name as Markdown shows it letter by letter: nothing in it is a tag, a link or a picture."""
    return "".join(f"&#{ord(letter)};" if letter in "<>&[]()*_`!#\\$\n" else letter for letter in text)
