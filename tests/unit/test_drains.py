"""Drains keep their limit, whatever the nodes are called in the store, and are of this scheduler's nodes alone."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas
import pytest

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.measure.schedulers.slurm import SlurmScheduler
from lepaute.measure.schedulers.types import NodeState
from lepaute.watch.drains import MARK, SETTLED_S, Drains, NodeHealth, Verdict, node_health
from lepaute.watch.store import Store, open_store

pytestmark = pytest.mark.slow
DAYS, NOW_S = 50, 1.7e9 + 60 * 86_400.0
REGRESSED = ("1", "2", "3", "4")


def rows(cluster: str, day: int, job: str, *, slow: bool) -> list[dict[str, object]]:
    rng = np.random.default_rng(day)
    return [
        {
            "cluster": cluster, "node": f"{node}", "cpu": 0, "job": f"{job}{node}", "started_s": 1.7e9 + 86_400.0 * day,
            "stratum": "", "factor": "dgemm_rate_flops", "state": "done", "archive": "",
            "value": 4e10 * (0.9 if slow and f"{node}" in REGRESSED else 1.0) * (1 + 0.003 * rng.normal()),
        }
        for node in range(1, 13)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nodes of demo, of which four have been 10 % slower for ten days, and twelve of other, which are well."""
    folder = tmp_path_factory.mktemp("fleet") / "store"
    table = [
        row
        for day in range(DAYS)
        for cluster in ("demo", "other")
        for row in rows(cluster, day, f"{day}-", slow=cluster == "demo" and day >= DAYS - 10)
    ]
    with open_store(folder) as store:
        store.add_values(pandas.DataFrame(table))
    return folder


class Scheduler:
    """Nodes called demo-1 to demo-12, all in service at first."""

    def __init__(self) -> None:
        self.states = {f"demo-{node}": NodeState(out_of_service=False) for node in range(1, 13)}

    def drain(self, node: str, reason: str) -> None:
        assert reason.startswith(MARK)
        self.states[node] = NodeState(out_of_service=True, reason=reason)

    @property
    def drained(self) -> int:
        return sum(state.reason.startswith(MARK) for state in self.states.values())


@pytest.fixture
def confirmed(tested: Path, tmp_path: Path) -> Iterator[Store]:
    """A copy in which a confirmation run of each of the four was asked for, and shows the change."""
    shutil.copytree(tested, tmp_path / "store")
    with open_store(tmp_path / "store") as store:
        ask = Drains(Scheduler().states, 0, Scheduler().drain)
        asked = node_health(store, NAMED, NOW_S, ask)
        assert {each.verdict for each in asked} == {Verdict.REQUEST}
        store.add_values(pandas.DataFrame(rows("demo", 61, "again-", slow=True)))
        yield store


NAMED = {f"demo-{node}": ("demo", node) for node in REGRESSED}
LATER_S = NOW_S + 2 * 86_400.0


def test_no_more_nodes_are_drained_than_the_limit_by_one_check_or_several(confirmed: Store) -> None:
    def check(scheduler: Scheduler, most: int, now_s: float, nodes: dict[str, tuple[str, str]]) -> list[NodeHealth]:
        # As the command does: the states are those from before the first drain.
        return node_health(confirmed, nodes, now_s, Drains(dict(scheduler.states), most, scheduler.drain))

    scheduler = Scheduler()
    found = check(scheduler, 1, LATER_S, NAMED)
    assert scheduler.drained == 1
    assert [each.problem for each in found] == [
        "", *["not drained: the limit is 1 node, and Lepaute has drained 1"] * 3
    ]  # fmt: skip
    for ago_s in (1.0, 2 * SETTLED_S):
        for node, known in NAMED.items():
            check(scheduler, 1, LATER_S + ago_s, {node: known})
            assert scheduler.drained == 1
    check(scheduler, 3, LATER_S + 3 * SETTLED_S, NAMED)
    assert scheduler.drained == 3


def test_a_node_that_the_limit_does_not_count_is_refused_and_nothing_is_done(confirmed: Store) -> None:
    scheduler = Scheduler()
    counted = {name: scheduler.states[name] for name in ("demo-1", "demo-9")}
    before = len(confirmed.node_actions())
    with pytest.raises(InputError, match="demo-2 is none of the 2 nodes that --most counts"):
        node_health(confirmed, NAMED, LATER_S, Drains(counted, 1, scheduler.drain))
    assert (scheduler.drained, len(confirmed.node_actions())) == (0, before)


def test_drains_and_events_need_the_cluster_where_the_store_has_several(confirmed, tmp_path, monkeypatch, capsys):
    slurm = {f"demo-{node}": NodeState("idle") for node in range(1, 13)}
    drained: list[str] = []
    monkeypatch.setattr(SlurmScheduler, "node_states", lambda *_: slurm)
    monkeypatch.setattr(SlurmScheduler, "drain", lambda _self, name, _reason: drained.append(name))
    words = ["watch", "health", "demo-[1-4]", "--store", str(tmp_path / "store"), "--drain", "--most", "1"]
    assert main(words) == 2
    assert "the store has nodes of demo, other; --drain needs --cluster" in capsys.readouterr().err
    assert drained == []
    assert main([*words, "--cluster", "other"]) == 2, "demo-1 is no node of it"
    assert drained == []
    assert main([*words, "--cluster", "demo"]) == 1
    assert len(drained) == 1
    event = ["watch", "events", "add", "--node", "1", "--date", "2024-01-01", "--reason", "fan", *words[3:5]]
    capsys.readouterr()
    assert main(event) == 2
    assert "in several clusters: demo, other; give --cluster NAME, or all" in capsys.readouterr().err
    assert len(confirmed.events()) == 0
    assert main([*event, "--cluster", "demo"]) == 0
    assert list(confirmed.events()["cluster"]) == ["demo"]
