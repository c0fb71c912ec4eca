"""test, propose, health, site, cost and replay agree on who changed, since when and by how much, in every order."""

import datetime as dt
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from long_tests import long_but
from support.fleets import until_today
from support.watch_answers import answers_of, asked, changes_of
from support_pages import text_of
from support_planted import RATE, Fault, planted

from lepaute.cli.main import main
from lepaute.cli.watch_cost import standing_dates
from lepaute.watch import open as open_watch
from lepaute.watch.alarms.worth_a_look import LABEL
from lepaute.watch.changelog import ALL
from lepaute.watch.node_state import node_state
from lepaute.watch.open_regressions import open_regressions
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
#: Of short histories: days, and the first slow one.
YOUNG = {"short": (30, 20), "young": (12, 6)}
FLEETS += [f"{nodes} one {kind}" for nodes in (3, 4, 5, 8) for kind in YOUNG]
SHORT = ("3 all step", "5 one back", "3 one short")


def fleet(made_up: str) -> tuple[int, str, pd.DataFrame]:
    """Its number of nodes, the kind of the fault, and the factor values."""
    number, who, kind = made_up.split()
    nodes = int(number)
    hit = {"one": (2,), "rack": tuple(range(1, max(2, nodes // 3) + 1)), "all": tuple(range(1, nodes + 1))}[who]
    days, begun = YOUNG.get(kind, (DAYS, BEGUN))
    fault = Fault(hit, -0.06, begun, begun + 12 if kind == "back" else None, drift=kind == "drift")
    return nodes, kind, until_today(planted(nodes, days, (fault,), nodes))


def files_of(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("made_up", long_but(FLEETS, *SHORT))
def test_all_commands_say_the_same(made_up: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    nodes, kind, values = fleet(made_up)
    with open_store(store) as opened:
        opened.add_values(values)
    answers = answers_of(store, tmp_path)
    assert answers.contradictions == {}
    assert kind in YOUNG or bool(answers.tested) == (kind != "back")
    assert kind != "short" or "n2" in answers.regressed | answers.unconfirmed
    every = frozenset(f"n{node}" for node in range(1, nodes + 1))
    replayed = asked(store, "replay", "--report", str(tmp_path / "replay.html"))
    assert changes_of(replayed["regressions"], every) == answers.tested
    alarms = [one for day in replayed["days"] for one in day["alarms"]]
    worse = sum(one["worse"] for one in alarms)
    assert len({str((one["machines"], one["since"])) for one in alarms}) == len(alarms), "a change is one alarm"
    seen = text_of((tmp_path / "replay.html").read_text())
    assert re.search(rf"{len(alarms)} alarms?{worse} for the worse; {len(answers.tested)} open at the end", seen)
    assert kind != "step" or worse == len(answers.tested)
    if answers.regressed and kind == "step":
        _check_cost(store, min(answers.regressed), asked(store, "test")["regressions"])


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
    early = values["started_s"] < values["started_s"].min() + DAY_S * (BEGUN + 8)
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
        said.append(asked(store, "test"))
        said[-1].pop("new_alarms")
        # accepted before or after it was tested: the regression is over, and so is the proposal
        copy = shutil.copytree(store, tmp_path / f"{number}-accepted")
        for one in asked(copy, "events", "propose")["proposals"][:1]:
            asked(copy, "events", "accept", one["id"], "--author", "jane")
        with open_store(copy) as opened:
            accepted.append(open_regressions(opened).rows.drop(columns="judged_s"))
    assert said[1:] == said[:-1]
    for rows in accepted[1:]:
        pd.testing.assert_frame_equal(rows, accepted[0])


def test_all_commands_say_the_same_of_what_is_worth_a_look_and_none_fails_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    with open_store(store) as opened:  # little more than a standard deviation
        opened.add_values(until_today(planted(12, 150, (Fault((2,), -0.006, 110),), 4)))
    answers = answers_of(store, tmp_path)
    assert (answers.tested, answers.contradictions) == (set(), {})
    (line,) = asked(store, "test")["worth_a_look"]["lines"]
    assert line["node"] == "n2"
    assert -0.012 < line["size"] < -0.004
    for words in (("test",), ("health", "n[1-12]")):
        assert main(["watch", *words, "--store", str(store)]) in (None, 0)
        text = capsys.readouterr().out
        assert LABEL in text
        assert "would be named within 10 days of jobs, one bad from the start " in " ".join(text.split())
        assert f"c n2: {line['text']}" in text
