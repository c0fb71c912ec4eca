"""Nodes of a real Slurm: tests of those that are idle, and drains of those that regressed."""

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas
import pytest
from farms.slurm import SlurmFarm
from support_limits import HANG_S, wait_until
from support_run import run_here, run_lepaute, start_lepaute

from lepaute.measure.idle_nodes import submitted_tests
from lepaute.measure.schedulers.slurm import SlurmScheduler
from lepaute.measure.schedulers.types import JOB_NAME, NodeState
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


#: A test that ends when it may: quick ones after a moment.
TEST = """
import lepaute as lp

class NodeTest(lp.Job):
    def design(self):
        return lp.design.full_factorial({"size_bytes": [1, 2]}, replications=1, seed=self.seed)

    def run(self):
        for row in self.rows():
            for node, _ in self.nodes.shell(f"sleep {self.parameters.get('seconds', '0.2')}").items():
                self.record(node=node)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quick.py").write_text(TEST)
    return tmp_path


def running_tests(slurm: SlurmFarm) -> dict[str, str]:
    """The nodes of tests that run, with their jobs."""
    answer = slurm.run("squeue", "--noheader", f"--name={JOB_NAME}", "--states=RUNNING", "--format=%N %i")
    return dict(line.split() for line in answer.splitlines())


def users_job(slurm: SlurmFarm, folder: Path, *options: str, seconds: int = 600) -> str:
    return slurm.run(
        "sbatch", "--parsable", "--exclusive", f"--output={folder}/user.log", *options, f"--wrap=sleep {seconds}"
    ).strip()


def state_of(slurm: SlurmFarm, job: str) -> str:
    return slurm.run("squeue", "--noheader", f"--jobs={job}", "--states=all", "--format=%T").strip()


def cancel_all(slurm: SlurmFarm) -> None:
    if jobs := slurm.jobs():
        slurm.run("scancel", *jobs)
    wait_until(lambda: slurm.run("squeue", "--noheader", "--states=RUNNING,COMPLETING") == "", "no jobs")


def test_idle_nodes_are_tested_once_each_and_their_results_are_in_the_store(slurm: SlurmFarm, folder: Path) -> None:
    options = ["--store", "store", "--archives", "tests", "--most", "2"]
    try:
        busy = users_job(slurm, folder, "--nodelist=n4")
        wait_until(lambda: state_of(slurm, busy) == "RUNNING", "the user's job")
        planned = run_here("watch", "run", "quick.py", *options, "--dry-run", folder=folder)
        assert planned.returncode == 0, planned.stderr
        assert "n4: no result yet; not idle" in planned.stdout
        assert planned.stdout.count("; idle") == 3
        asked = ["--nodes", "n[1-3]", "--for", "10min", "--json"]
        done = run_lepaute("watch", "run", "quick.py", *options, *asked, folder=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert sorted(test["node"] for test in report["tests"]) == ["n1", "n2", "n3"]
        assert {test["outcome"] for test in report["tests"]} == {"done"}
        assert report["due"] == []
        with open_store(folder / "store") as store:
            assert set(store.archive_nodes()["node"]) == {"n1", "n2", "n3"}
        # Within the interval nothing is left to do but n4, which somebody uses.
        again = run_here("watch", "run", "quick.py", *options, "--for", "1s", folder=folder)
        assert again.stdout.splitlines()[0] == "0 tests"
        assert state_of(slurm, busy) == "RUNNING"
    finally:
        cancel_all(slurm)


def test_a_users_job_takes_the_nodes_of_tests_that_run(slurm: SlurmFarm, folder: Path) -> None:
    options = ["--store", "store", "--archives", "tests", "--most", "4", "--set", "seconds=300"]
    running = start_lepaute("watch", "run", "quick.py", *options, folder=folder)
    try:
        wait_until(lambda: len(running_tests(slurm)) == 4, "four tests")
        job = users_job(slurm, folder, "--nodes=2")
        wait_until(lambda: state_of(slurm, job) == "RUNNING", "the user's job")
        # The others' tests go on.
        assert len(running_tests(slurm)) == 2
        third = users_job(slurm, folder, f"--nodelist={min(running_tests(slurm))}")
        wait_until(lambda: state_of(slurm, third) == "RUNNING", "the second job")
        assert len(running_tests(slurm)) == 1
        reasons = [record.reason for record in submitted_tests(folder / "tests") if record.outcome == "cancelled"]
        assert sorted(reasons) == sorted([f"job {job} waits for nodes"] * 2 + [f"job {third} waits for nodes"])
        # The command ends as cron or systemd end it: no test is left behind.
        running.send_signal(signal.SIGTERM)
        assert running.wait(HANG_S) == 130
        wait_until(lambda: running_tests(slurm) == {}, "no tests")
        assert state_of(slurm, job) == state_of(slurm, third) == "RUNNING"
    finally:
        running.kill()
        running.communicate()
        cancel_all(slurm)


def test_a_test_that_fails_is_reported_with_its_reason(slurm: SlurmFarm, folder: Path) -> None:
    (folder / "broken.py").write_text(TEST.replace("sleep", "false; exit 3; sleep"))
    options = ["--store", "store", "--archives", "tests", "--nodes", "n2", "--for", "10min"]
    try:
        done = run_here("watch", "run", "broken.py", *options, folder=folder)
        assert done.returncode == 1, done.stdout + done.stderr
        assert done.stdout.splitlines()[0] == "1 test: 1 failed"
        assert "n2: failed: " in done.stdout
        assert not (folder / "store").exists()
    finally:
        cancel_all(slurm)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["nothing.py"], "there is no experiment nothing.py"),
        (["quick.py", "--partition", "nowhere"], "nowhere"),
        (["quick.py", "--nodes", "n9"], "n9"),
        (["quick.py", "--archives", "quick.py"], "name another folder (--archives)"),
    ],
)
def test_bad_input_gets_one_line(slurm: SlurmFarm, folder: Path, options: list[str], expected: str) -> None:
    done = run_here("watch", "run", *options, "--store", "store", "--for", "1s", folder=folder)
    assert done.returncode == 2, done.stdout
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert expected in done.stderr
    assert slurm.jobs() == []
