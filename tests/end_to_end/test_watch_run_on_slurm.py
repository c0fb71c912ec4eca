"""`lepaute watch run` on a real Slurm: idle nodes only, so many at a time, and a user's job always wins."""

import json
import signal
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm
from support_limits import HANG_S, wait_until
from support_run import run_here, run_lepaute, start_lepaute

from lepaute.measure.idle_nodes import submitted_tests
from lepaute.measure.schedulers.types import JOB_NAME
from lepaute.watch.store import open_store

pytestmark = [pytest.mark.nodes, pytest.mark.slow]

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
        (["quick.py", "--scheduler", "pbs"], "--scheduler is 'pbs'"),
        (["quick.py", "--every", "often"], "--every is 'often'"),
        (["quick.py", "--partition", "nowhere"], "nowhere"),
        (["quick.py", "--nodes", "n9"], "n9"),
        (["quick.py", "--archives", "quick.py"], "name another folder (--archives)"),
        (["quick.py", "--walltime", "0"], "--walltime"),
    ],
)
def test_bad_input_gets_one_line(slurm: SlurmFarm, folder: Path, options: list[str], expected: str) -> None:
    done = run_here("watch", "run", *options, "--store", "store", "--for", "1s", folder=folder)
    assert done.returncode == 2, done.stdout
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert expected in done.stderr
    assert slurm.jobs() == []
