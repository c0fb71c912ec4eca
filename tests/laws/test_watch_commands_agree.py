"""test, propose, health, site, cost and replay agree on who changed, since when and by how much, in every order."""

import datetime as dt
import html
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from long_tests import long_but
from support_planted import BEGIN_S, RATE, Fault, planted

from lepaute.cli.main import main
from lepaute.cli.watch_cost import standing_dates
from lepaute.watch import open as open_watch
from lepaute.watch.alarms.worth_a_look import LABEL
from lepaute.watch.changelog import ALL
from lepaute.watch.node_state import node_state
from lepaute.watch.open_regressions import open_regressions
from lepaute.watch.report.summary import Change, change_text
from lepaute.watch.store import open_store
from lepaute.watch.values import DAY_S

DAYS, BEGUN = 80, 55
#: Nodes of the fleet, whom the fault hits, and how it goes on.
FLEETS = [
    f"{nodes} {who} {kind}"
    for nodes in (3, 4, 5, 12, 64)
    for who in ("one", "rack", "all")
    for kind in ("step", "drift", "back")
]
#: What is said of a drift besides.
GRADUAL = r", gradually from \S+ on"
SHORT = ("3 all step", "5 one back")


def fleet(made_up: str) -> tuple[int, str, pd.DataFrame]:
    """Its number of nodes, the kind of the fault, and the factor values."""
    number, who, kind = made_up.split()
    nodes = int(number)
    hit = {"one": (2,), "rack": tuple(range(1, max(2, nodes // 3) + 1)), "all": tuple(range(1, nodes + 1))}[who]
    fault = Fault(hit, -0.06, BEGUN, BEGUN + 12 if kind == "back" else None, drift=kind == "drift")
    return nodes, kind, planted(nodes, DAYS, (fault,), nodes)


def asked(capsys: pytest.CaptureFixture[str], store: Path, *words: str) -> Any:
    capsys.readouterr()
    main(["watch", *words, "--store", str(store), "--json"])
    return json.loads(capsys.readouterr().out)


def files_of(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def who_when_how_much(regressions: list[dict[str, Any]], nodes: int) -> set[tuple[Any, ...]]:
    every = frozenset(f"n{node}" for node in range(1, nodes + 1))
    found = set()
    for regression in regressions:
        names = frozenset(node for _, node, _ in regression["machines"])
        sizes = tuple((change["factor"], round(change["size"], 9)) for change in regression["changes"])
        found.add((every if names == {ALL} else names, regression["since"], sizes))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("made_up", long_but(FLEETS, *SHORT))
def test_all_commands_say_the_same(made_up: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    nodes, kind, values = fleet(made_up)
    with open_store(store) as opened:
        opened.add_values(values)
    tested = asked(capsys, store, "test")["regressions"]
    expected = who_when_how_much(tested, nodes)
    assert bool(expected) == (kind != "back")
    proposed = {
        (
            frozenset(each["node"] for each in one["nodes"]),
            one["date"],
            tuple((change["factor"], round(change["size"], 9)) for change in one["factors"]),
        )
        for one in asked(capsys, store, "events", "propose")["proposals"]
    }
    assert expected <= proposed
    health = asked(capsys, store, "health", f"n[1-{nodes}]")["nodes"]
    others = ("healthy", "not_confirmed", "unlike", "unknown")
    regressed = {each["node"] for each in health if each["verdict"] not in others}
    assert regressed == set().union(*(names for names, _, _ in expected))
    for each in (one for one in health if one["node"] in regressed):
        # of the node itself: the report has the median of its nodes
        mine = [one for one in tested if {ALL, each["node"]} & {node for _, node, _ in one["machines"]}]
        size, since = re.fullmatch(rf"{RATE} (\S+) %, since ([^ ,]+)(?:{GRADUAL})?", each["reason"]).groups()  # type: ignore[union-attr]
        assert any(since == one["since"] and abs(float(size) / 100 - one["changes"][0]["size"]) < 0.015 for one in mine)
    assert who_when_how_much(asked(capsys, store, "replay")["regressions"], nodes) == expected
    main(["watch", "site", "--store", str(store), "-o", str(tmp_path / "site")])
    page = (tmp_path / "site" / "index.html").read_text()
    for one in tested:
        since = rf"since {one['since']}(?:{GRADUAL})?"
        assert re.search(rf"{re.escape(_text(one))}</a> <span class=\"soft\">{since}, alarm on {one['alarm']}", page)
    assert len(re.findall("regressed</span>", page)) == len(tested)
    if regressed and kind == "step":
        _check_cost(store, min(regressed), tested)


def _text(regression: dict[str, Any]) -> str:
    return ", ".join(change_text(Change(**change)) for change in regression["changes"])


def _check_cost(store: Path, node: str, tested: list[dict[str, Any]]) -> None:
    """How many times as long the node takes since that date is what the size of the step says."""
    (mine,) = (one for one in tested if {ALL, node} & {name for _, name, _ in one["machines"]})
    with open_watch(store) as watch:
        values = watch.store.values(nodes=[node])
        before_s, since_s = standing_dates(watch, values, RATE)
    assert dt.datetime.fromtimestamp(since_s or 0.0, dt.UTC).date().isoformat() == mine["since"]
    state = node_state(values, "c", node, RATE, since_s=since_s, before_s=before_s)
    mean, low, high = state.slowdown(-1, 0.999)
    assert low < 1 / (1 + mine["changes"][0]["size"]) < high
    assert mean > 1


@pytest.mark.slow
@pytest.mark.parametrize("made_up", long_but(FLEETS, SHORT[0]))
def test_the_order_of_commands_changes_nothing(
    made_up: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, _, values = fleet(made_up)
    early = values["started_s"] < BEGIN_S + DAY_S * (BEGUN + 8)
    odd = values["node"].str.removeprefix("n").astype(int) % 2 == 1
    orders: list[list[Any]] = [
        ["whole", "test"],
        ["early", "test", "propose", "refused", "late"],
        ["odd", "health", "propose", "even", "test", "health"],
        ["early", "site", "test", "test", "late", "replay", "test"],
    ]
    if made_up == SHORT[0]:  # what is tried at each change
        orders = orders[:2]
    parts = {"whole": values, "early": values[early], "late": values[~early], "odd": values[odd], "even": values[~odd]}
    words = {
        "test": ("test",), "propose": ("events", "propose"), "health": ("health", f"n[1-{nodes}]"),
        "replay": ("replay",), "site": ("site", "-o", str(tmp_path / "site")),
        "refused": ("events", "accept", "00000000", "--author", "jane"),
    }  # fmt: skip
    said, accepted = [], []
    for number, order in enumerate(orders):
        store = tmp_path / str(number)
        for step in order:
            if step in parts:
                with open_store(store) as opened:
                    opened.add_values(parts[step])
                continue
            before = files_of(store)
            main(["watch", *words[step], "--store", str(store), "--json"])
            assert step == "test" or files_of(store) == before, f"{step} wrote something"
        said.append(asked(capsys, store, "test"))
        said[-1].pop("new_alarms")
        # accepted before or after it was tested: the regression is over, and so is the proposal
        copy = shutil.copytree(store, tmp_path / f"{number}-accepted")
        for one in asked(capsys, copy, "events", "propose")["proposals"][:1]:
            asked(capsys, copy, "events", "accept", one["id"], "--author", "jane")
        with open_store(copy) as opened:
            accepted.append(open_regressions(opened).rows.drop(columns="judged_s"))
    assert said[1:] == said[:-1]
    for rows in accepted[1:]:
        pd.testing.assert_frame_equal(rows, accepted[0])


def test_all_commands_say_the_same_of_what_is_worth_a_look_and_none_fails_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    # little more than a standard deviation
    values = planted(12, 150, (Fault((2,), -0.006, 110),), 4)
    values["started_s"] += DAY_S * ((time.time() - values["started_s"].max()) // DAY_S)  # whole days: the same nights
    with open_store(store) as opened:
        opened.add_values(values)
    assert main(["watch", "test", "--store", str(store)]) in (None, 0)
    text = capsys.readouterr().out
    assert main(["watch", "health", "n[1-12]", "--store", str(store)]) in (None, 0)
    healthy = capsys.readouterr().out
    main(["watch", "site", "--store", str(store), "-o", str(tmp_path / "site")])
    page = html.unescape((tmp_path / "site" / "index.html").read_text())
    found = asked(capsys, store, "test")
    assert found["regressions"] == []
    assert found["worth_a_look"]["label"] == LABEL
    (line,) = found["worth_a_look"]["lines"]
    assert line["node"] == "n2"
    assert -0.012 < line["size"] < -0.004
    for said in (text, healthy, page):
        assert LABEL in said
        assert f"c n2: {line['text']}" in said
    of_nodes = {each["node"]: each["worth_a_look"] for each in asked(capsys, store, "health", "n[1-12]")["nodes"]}
    assert of_nodes.pop("n2") == found["worth_a_look"]
    assert all(looks == {"label": LABEL, "lines": []} for looks in of_nodes.values())
