"""Nodes of a real Slurm that regressed: confirmed, drained up to the limit, and never against an administrator."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas
import pytest
from farms.slurm import SlurmFarm
from support_run import run_lepaute

from lepaute.measure.schedulers.slurm import SlurmScheduler
from lepaute.measure.schedulers.types import NodeState
from lepaute.watch.drains import SETTLED_S, Drains, NodeHealth, Verdict, node_health
from lepaute.watch.store import open_store

pytestmark = [pytest.mark.nodes, pytest.mark.slow]
NODES = [f"n{number}" for number in range(1, 13)]
#: All nodes of the farm, which has the first four; the other nodes of the fleet are as they were.
REGRESSED = NODES[:4]
RATE, FACTOR = 40e9, "dgemm_rate_flops"
DAYS, REGRESSED_DAYS = 70, 8


def rows(node: str, job: str, started_s: float, value: float) -> dict[str, object]:
    return {
        "cluster": "farm", "node": node, "cpu": 0, "job": job, "started_s": started_s, "stratum": "", "factor": FACTOR,
        "value": value, "state": "done", "archive": "",
    }  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nodes and seventy days, tested; four nodes have been 10 % slower for eight days."""
    folder = tmp_path_factory.mktemp("fleet")
    rng = np.random.default_rng(5)
    yesterday_s = time.time() - 86_400.0
    table = [
        rows(
            node,
            f"{node}-{day}",
            yesterday_s - 86_400.0 * (DAYS - day),
            RATE * (0.9 if node in REGRESSED and day >= DAYS - REGRESSED_DAYS else 1.0) * (1 + 0.003 * rng.normal()),
        )
        for node in NODES
        for day in range(DAYS)
    ]
    with open_store(folder / "store") as opened:
        opened.add_values(pandas.DataFrame(table))
    tested = run_lepaute("watch", "test", "--store", "store", folder=folder)
    assert tested.returncode == 1, tested.stdout + tested.stderr
    return folder / "store"


def health(store: Path, node: str, *options: object) -> tuple[int, str]:
    done = run_lepaute("watch", "health", node, "--store", store, *options, folder=store.parent)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def later(store: Path, seconds: float, most: int) -> list[NodeHealth]:
    """What a health check does so many seconds from now."""
    states = SlurmScheduler().node_states()
    with open_store(store) as opened:
        named = {node: ("farm", node) for node in REGRESSED}
        return node_health(opened, named, time.time() + seconds, Drains(states, most, SlurmScheduler().drain))


def ours(nodes: dict[str, NodeState]) -> set[str]:
    return {name for name, node in nodes.items() if node.reason.startswith("lepaute: ")}


@pytest.mark.long
def test_regressed_nodes_are_drained_within_the_limit_and_administrators_are_obeyed(slurm, store):
    try:
        # Reading a verdict changes nothing; the first check that may drain asks for a confirmation run.
        assert health(store, "n1") == (1, health(store, "n1")[1])
        assert "a confirmation run is needed (dgemm_rate_flops -" in health(store, "n1")[1]
        for node in REGRESSED:
            assert "a confirmation run is asked for" in health(store, node, "--drain", "--most", 2)[1]
            assert "waiting for the confirmation run" in health(store, node, "--drain", "--most", 2)[1]
        assert ours(SlurmScheduler().node_states()) == set()
        slurm.run("scontrol", "update", "nodename=n4", "state=drain", "reason=new disk")
        with open_store(store) as opened:
            confirming = [rows(node, f"{node}-again", time.time(), 0.9 * RATE) for node in REGRESSED]
            opened.add_values(pandas.DataFrame(confirming))
        # All nodes at once, each by its own health check: two are drained, and the administrator's stays as it was.
        with ThreadPoolExecutor(4) as pool:
            said = list(pool.map(lambda node: health(store, node, "--drain", "--most", 2), REGRESSED))
        assert all(status == 1 for status, _ in said)
        nodes = SlurmScheduler().node_states()
        first = ours(nodes)
        assert len(first) == 2
        assert nodes["n4"].reason == "new disk"
        assert "drained by somebody else" in said[3][1]
        (spared,) = set(REGRESSED) - first - {"n4"}
        assert "the limit is 2 nodes, and Lepaute has drained 2" in dict(zip(REGRESSED, said, strict=True))[spared][1]
        assert all("since" in nodes[name].reason for name in first)
        # One is resumed by hand: it is left alone from then on, and another takes its place.
        resumed, kept = sorted(first)
        slurm.run("scontrol", "update", f"nodename={resumed}", "state=resume")
        verdicts = {each.node: each.verdict for each in later(store, SETTLED_S + 10, most=2)}
        assert verdicts == {
            resumed: Verdict.RESUMED, kept: Verdict.DRAINED, spared: Verdict.DRAIN, "n4": Verdict.TAKEN
        }  # fmt: skip
        assert ours(SlurmScheduler().node_states()) == {kept, spared}
        later(store, 3 * SETTLED_S, most=4)
        assert ours(SlurmScheduler().node_states()) == {kept, spared}
        assert SlurmScheduler().node_states()["n4"].reason == "new disk"
    finally:
        for node in REGRESSED:
            if SlurmScheduler().node_states()[node].out_of_service:
                slurm.run("scontrol", "update", f"nodename={node}", "state=resume")


def test_nothing_is_drained_where_the_store_cannot_be_read(slurm: SlurmFarm, store: Path, tmp_path: Path) -> None:
    broken = tmp_path / "store"
    broken.mkdir()
    (broken / "store.json").write_text("{")
    for folder in (broken, tmp_path / "none"):
        status, text = health(folder, "n1", "--drain")
        assert status == 2
        assert len(text.splitlines()) == 1
    assert health(store, "n1", "--drain", "--partition", "nowhere")[0] == 2
    nodes = SlurmScheduler().node_states()
    assert tuple(nodes) == slurm.names
    assert not any(node.out_of_service for node in nodes.values())
