"""An experiment on the nodes of a real Slurm: in a job it asks for, in one that is there, and on nodes that die."""

import shlex
import signal
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm, slurm_farm
from support_limits import HANG_S, ran, wait_until
from support_run import environment, lepaute_argv, rows_of, run_lepaute, start_lepaute, wait_for_rows

from lepaute.measure.archive import Archive

pytestmark = pytest.mark.nodes

SCRIPTS = Path(__file__).parent.parent.parent / "examples" / "experiments"
#: Each row is a little work on every node.
SLOW = """
import lepaute as lp

class Slow(lp.Job):
    def design(self):
        return lp.design.full_factorial({"size_bytes": [1, 2, 3, 4, 5]}, replications=8, seed=self.seed)

    def run(self):
        for row in self.rows():
            for node, result in self.nodes.shell('sleep 0.1; echo "$SLURMD_NODENAME"', check=False).items():
                self.record(node=node, said=result.stdout.strip())
"""


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    return script


def test_the_demo_experiment_asks_for_a_job_runs_on_its_nodes_and_gives_it_back(slurm, tmp_path):
    options = ["--scheduler", "slurm", "--count", "3", "--walltime", "0:05:00", "--set", "replications=2"]
    done = run_lepaute("run", SCRIPTS / "memory_copy.py", *options, "-o", "x.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    assert archive.metadata["status"] == "complete"
    rows = rows_of(archive)
    # 8 sizes, 2 replications, on each of three nodes.
    assert len(rows) == 3
    assert set(rows) <= set(slurm.names)
    assert set(rows.values()) == {16}
    assert archive.metadata["scheduler"]["name"] == "slurm"
    assert archive.metadata["scheduler"]["submitted"] is True
    assert slurm.jobs() == []
    assert run_lepaute("archive", "verify", "x.zip", folder=tmp_path).returncode == 0


def test_inside_of_a_job_the_same_script_uses_its_nodes_and_leaves_it(slurm: SlurmFarm, tmp_path: Path) -> None:
    # As in a batch script: salloc starts it, in the environment of the job.
    argv = lepaute_argv("run", SCRIPTS / "memory_copy.py", "--scheduler", "slurm", "--set", "replications=1")
    script = f"{shlex.join([*argv, '-o', 'x.zip'])}; echo ended with $?; squeue --noheader --format=%T"
    done = ran(
        ["salloc", "--quiet", "--nodelist=n[2-3]", "--nodes=2", "sh", "-c", script], cwd=tmp_path, env=environment()
    )
    assert done.stdout.splitlines()[-2:] == ["ended with 0", "RUNNING"], done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    assert rows_of(archive) == {"n2": 8, "n3": 8}
    assert archive.metadata["scheduler"]["submitted"] is False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_experiment_archives_what_there_is_and_leaves_no_job(slurm, slow, tmp_path, number):
    running = start_lepaute("run", slow, "--scheduler", "slurm", "--count", "2", "-o", "x.zip", folder=tmp_path)
    wait_for_rows(tmp_path, 6)
    running.send_signal(number)
    running.communicate(timeout=HANG_S)
    assert running.returncode == 130
    assert sum(rows_of(Archive.open(tmp_path / "x.partial.zip")).values()) >= 6
    assert slurm.jobs() == []


def test_a_killed_experiment_leaves_no_job_and_no_process(slurm: SlurmFarm, slow: Path, tmp_path: Path) -> None:
    running = start_lepaute("run", slow, "--scheduler", "slurm", "--count", "2", "-o", "x.zip", folder=tmp_path)
    wait_for_rows(tmp_path, 6)
    running.kill()
    running.communicate(timeout=HANG_S)
    wait_until(lambda: slurm.jobs() == [], "end of the job")
    wait_until(lambda: not any(map(slurm.processes, slurm.names)), "end of the processes")


def test_a_node_that_dies_loses_its_own_further_rows_and_nothing_else(slow, tmp_path, monkeypatch):
    with slurm_farm(tmp_path / "farm", nodes=3) as farm:
        farm.enter(monkeypatch)
        running = start_lepaute("run", slow, "--scheduler", "slurm", "--count", "3", "-o", "x.zip", folder=tmp_path)
        wait_for_rows(tmp_path, 9)
        farm.kill("n2")
        farm.declare_down("n2")
        _, complaints = running.communicate(timeout=HANG_S)
        assert running.returncode == 1, complaints
        wait_until(lambda: farm.jobs() == [], "end of the job")
    archive = Archive.open(tmp_path / "x.zip")
    rows = rows_of(archive)
    assert rows["n1"] == rows["n3"] == 40
    assert 3 <= rows["n2"] < 40
    (lost,) = archive.metadata["lost_nodes"]
    assert lost["node"] == "n2"
