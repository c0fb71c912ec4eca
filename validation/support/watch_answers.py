"""What the commands of a watch say of one store, and where they contradict each other."""

import contextlib
import datetime as dt
import html
import io
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lepaute.cli.main import main
from lepaute.measure.schedulers.types import NodeState
from lepaute.watch.changelog import ALL
from lepaute.watch.drains import Drains, node_health
from lepaute.watch.notices.notice import UNCONFIRMED, UNLIKE_PEERS
from lepaute.watch.proposals.proposed_event import DAYS
from lepaute.watch.report.summary import UNKNOWN, Change, change_text
from lepaute.watch.store import open_store
from lepaute.watch.values import DAY_S

#: Nodes, date, and sizes by factor.
Named = tuple[frozenset[str], str, tuple[tuple[str, float], ...]]
#: What -> what one command says of it, and what follows from the others.
Pairs = dict[str, tuple[set[Any], set[Any]]]
#: Verdicts of `health` on nodes of which nothing is known.
_UNKNOWN = {"failed", "silent", "unknown"}
#: What is said of a drift besides.
GRADUAL = r"(?:, gradually from \S+ on)?"


@dataclass(frozen=True)
class Answers:
    """tested : the open regressions; proposed : the changes that `events propose` has, without single days

    unlike, unconfirmed : nodes that `test` names otherwise for the worse
    contradictions : the pairs that differ
    """

    tested: set[Named]
    proposed: set[Named]
    unlike: set[str]
    unconfirmed: set[str]
    contradictions: Pairs

    @property
    def regressed(self) -> set[str]:
        return set[str]().union(*(names for names, *_ in self.tested))


def asked(store: Path, *words: str) -> Any:
    """What a command prints as JSON."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        main(["watch", *words, "--store", str(store), "--json"])
    return json.loads(printed.getvalue())


def changes_of(regressions: list[dict[str, Any]], every: frozenset[str]) -> set[Named]:
    """Of `test` and `replay`; every : all nodes."""
    named = ((frozenset(node for _, node, _ in one["machines"]), one) for one in regressions)
    return {(every if names == {ALL} else names, one["since"], _sizes(one["changes"])) for names, one in named}


def _sizes(changes: list[dict[str, Any]]) -> tuple[tuple[str, float], ...]:
    return tuple((change["factor"], round(change["size"], 9)) for change in changes)


def answers_of(store: Path, beside: Path) -> Answers:
    """Of one cluster whose nodes have a value of today; asks for confirmation runs.

    beside : a folder for what the commands write
    """
    test = asked(store, "test")
    health = {each["node"]: each for each in asked(store, "health", ALL)["nodes"]}
    proposals = [each for each in asked(store, "events", "propose")["proposals"] if each["shape"] != DAYS]
    of_proposals = [(frozenset(each["node"] for each in one["nodes"]), one) for one in proposals]
    notices: dict[str, list[frozenset[str]]] = {UNLIKE_PEERS: [], UNCONFIRMED: []}
    for each in test["notices"]:
        if each["kind"] in notices and each["size"] < 0:
            notices[each["kind"]].append(frozenset(each["nodes"] or [each["node"]]))
    answers = Answers(
        changes_of(test["regressions"], frozenset(health)),
        {(names, one["date"], _sizes(one["factors"])) for names, one in of_proposals},
        set().union(*notices[UNLIKE_PEERS]),
        set().union(*notices[UNCONFIRMED]),
        {},
    )
    known = {*notices[UNCONFIRMED], *(names for names, *_ in answers.tested)}
    worse = {
        names
        for names, one in of_proposals
        if any(each["size"] < 0 for each in one["factors"])
        and (names in known or not _is_over(answers, store, names, one["date"], frozenset(health)))
    }
    is_unknown, unconfirmed = test["verdict"] == UNKNOWN, answers.unconfirmed - answers.regressed
    drained = {node for one in test["regressions"] for _, node, _ in one["machines"]} - {ALL}
    said = {
        "events propose": (answers.tested & answers.proposed, answers.tested),
        "test, by events propose": (worse & known, worse),
        "events propose, unconfirmed": (unconfirmed & set().union(*(names for names, *_ in of_proposals)), unconfirmed),
        "health, unknown": ({not {each["step"] for each in health.values()} - _UNKNOWN}, {is_unknown}),
        **_of_health(answers, health),
        "health, worth a look": (
            {line["text"] for each in health.values() for line in each["worth_a_look"]["lines"]},
            {line["text"] for line in test["worth_a_look"]["lines"]},
        ),
        **_of_site(answers, test, store, beside),
        **_of_alerts(answers, store, beside),
        "health --drain": (_drained(store), drained),
    }
    answers.contradictions.update({what: pair for what, pair in said.items() if pair[0] != pair[1]})
    return answers


def _is_over(answers: Answers, store: Path, nodes: frozenset[str], date: str, every: frozenset[str]) -> bool:
    """Whether a proposed change of these nodes had its alarm and is no longer open, so that `test` is silent on it."""
    alarms = [alarm for day in asked(store, "replay")["days"] for alarm in day["alarms"] if alarm["worse"]]
    over = changes_of(alarms, every) - answers.tested
    near = [str(dt.date.fromisoformat(date) + dt.timedelta(days=days)) for days in (-1, 0, 1)]
    return any(nodes <= names and since in near for names, since, _ in over)


def _of_health(answers: Answers, health: dict[str, dict[str, Any]]) -> Pairs:
    verdicts: dict[str, set[str]] = {name: set() for name in ("healthy", "unknown", "unlike", "not_confirmed")}
    for node, each in health.items():
        known = "unknown" if each["step"] in _UNKNOWN else each["step"]
        verdicts.setdefault(known, set()).add(node)
    _, unknown, unlike, unconfirmed = (verdicts.pop(name) for name in list(verdicts)[:4])
    right = set()
    for node in answers.regressed:
        said = re.fullmatch(rf"\S+ (\S+) %, since ([^ ,]+){GRADUAL}", health[node]["reason"])
        for names, since, sizes in answers.tested if said else ():
            # of the node itself: the report has the median of its nodes
            if node in names and since == said[2] and abs(sizes[0][1] - float(said[1]) / 100) < 0.015:
                right.add(node)
    others = answers.regressed | unknown
    return {
        "health": (set[str]().union(*verdicts.values()), answers.regressed),
        "health, sizes and dates": (right, answers.regressed),
        "health, unlike": (unlike, answers.unlike - others),
        "health, not confirmed": (unconfirmed, answers.unconfirmed - others - unlike),
    }


def _of_site(answers: Answers, test: dict[str, Any], store: Path, beside: Path) -> Pairs:
    asked(store, "site", "-o", str(beside / "site"))
    front, nodes = ((beside / "site" / name).read_text() for name in ("index.html", "nodes.html"))
    of_nodes = "".join(path.read_text() for path in (beside / "site").glob("node-*.html"))
    seen = html.unescape(re.sub("<[^>]*>", "", front)).replace("\u00a0", " ")
    lines = {re.escape(each["text"]) for each in (*test["notices"], *test["worth_a_look"]["lines"])}
    for one in test["regressions"]:
        first, *others = (Change(**each) for each in one["changes"])
        text = re.escape(", ".join([first.factor, *map(change_text, others)]))
        size = re.escape(change_text(first).removeprefix(f"{first.factor} "))
        lines.add(rf"{size} since {one['since']}{GRADUAL} [^:]*: {text} alarm on {one['alarm']}")
    counts = [page.count('badge changed">changed<') for page in (front, of_nodes)]
    said = [int(count) for count in re.findall(r"(\d+) open regression", seen)]
    return {
        "site, unknown": ({bool(re.search("Unknown in|Nothing can be said", seen))}, {test["verdict"] == UNKNOWN}),
        "site": ({line for line in lines if re.search(line, seen)}, lines),
        "site, regressions": ({counts[0], *said}, {len(answers.tested)}),
        "site, pages of nodes": ({counts[1]}, {sum(len(names) for names, *_ in answers.tested)}),
        "site, nodes": (set(re.findall(r">([^<]+)</a></td>[^/]*</i>changed<", nodes)), answers.regressed),
    }


def _of_alerts(answers: Answers, store: Path, beside: Path) -> Pairs:
    state = beside / "state.prom"
    told = asked(store, "alert", "--prometheus", str(state))["open_regressions"]
    exported = set(re.findall(r'regression_ratio\{[^}]*node="([^"]+)"', state.read_text()))
    return {
        "alert": ({told}, {len(answers.tested)}),
        "alert --prometheus": (answers.regressed if exported == {ALL} else exported - {ALL}, answers.regressed),
    }


def _drained(store: Path) -> set[str]:
    """A confirmation run is asked for two days ago, and the jobs since confirm."""
    drained: dict[str, str] = {}
    with open_store(store) as opened:
        cluster = str(opened.factors()["cluster"].iloc[0])
        nodes = {node: (cluster, node) for node in opened.nodes(cluster)}
        drains = Drains({node: NodeState("IDLE") for node in nodes}, len(nodes), drained.__setitem__)
        for moment_s in (time.time() - 2 * DAY_S, time.time()):
            node_health(opened, nodes, moment_s, drains)
    return set(drained)
