"""A real Slurm: jobs, nodes that die, experiments, and ranks of MPI on the nodes."""

import json
import shlex
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from farms.fixtures import Start
from farms.slurm import SlurmFarm, slurm_farm
from farms.sshd import SshdFarm
from support_limits import HANG_S, ran, wait_until
from support_nodes import check_stream
from support_run import environment, lepaute_argv, rows_of, run_lepaute, start_lepaute, wait_for_rows

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.archive import Archive
from lepaute.measure.schedulers import Allocation, NodeAddress, Request, scheduler

pytestmark = pytest.mark.nodes

SCRIPTS = Path(__file__).parent.parent.parent / "examples" / "experiments"
OPTIONS = ("--scheduler", "slurm", "--set", "replications=8", "-o", "x.zip")


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
    running = start_lepaute("run", slow, *OPTIONS, "--count", "2", folder=tmp_path)
    wait_for_rows(tmp_path, 6)
    running.send_signal(number)
    running.communicate(timeout=HANG_S)
    assert running.returncode == 130
    assert sum(rows_of(Archive.open(tmp_path / "x.partial.zip")).values()) >= 6
    assert slurm.jobs() == []


def test_a_killed_experiment_leaves_no_job_and_no_process(slurm: SlurmFarm, slow: Path, tmp_path: Path) -> None:
    running = start_lepaute("run", slow, *OPTIONS, "--count", "2", folder=tmp_path)
    wait_for_rows(tmp_path, 6)
    running.kill()
    running.communicate(timeout=HANG_S)
    wait_until(lambda: slurm.jobs() == [], "end of the job")
    wait_until(lambda: not any(map(slurm.processes, slurm.names)), "end of the processes")


def test_a_node_that_dies_loses_its_own_further_rows_and_nothing_else(slow, tmp_path, monkeypatch):
    with slurm_farm(tmp_path / "farm", nodes=3) as farm:
        farm.enter(monkeypatch)
        running = start_lepaute("run", slow, *OPTIONS, "--count", "3", folder=tmp_path)
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


SCRIPT = r'''
import lepaute as lp

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, ranks, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const char *node = getenv("LEPAUTE_NODE") ? getenv("LEPAUTE_NODE") : getenv("SLURMD_NODENAME");
    printf("%d of %d on %s, sum %d, %s\\n", rank, ranks, node, sum, argv[1]);
    MPI_Finalize();
}
"""

class Ranks(lp.Job):
    def setup(self):
        self.nodes.write("ranks.c", PROGRAM)
        self.nodes.run("mpicc", "ranks.c", "-o", "ranks")

    def run(self):
        self.mpi("./ranks", "a b", ranks_per_node=2, options=("--mca", "btl", "tcp,self"), timeout_s=LIMIT_S)
        self.mpi("./ranks", "fewer", ranks_per_node=2, ranks=3, options=("--mca", "btl", "tcp,self"), timeout_s=LIMIT_S)
'''


def told(tmp_path: Path, *arguments: object) -> tuple[list[str], list[str]]:
    """The sorted lines that the two runs printed."""
    (tmp_path / "ranks.py").write_text(SCRIPT.replace("LIMIT_S", str(HANG_S)))
    done = run_lepaute("run", "ranks.py", "-o", "x.zip", *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "x.zip") as packed:
        commands = json.loads(packed.read("commands.json"))
    all_ranks, fewer = (sorted(command["stdout"].split("\n")[:-1]) for command in commands[-2:])
    return all_ranks, fewer


def expected(nodes: tuple[str, str]) -> tuple[list[str], list[str]]:
    first, second = nodes
    # 0 + 1 + 2 + 3 = 6, two ranks on each node in turn; with three ranks 0 + 1 + 2 = 3.
    return (
        [f"{rank} of 4 on {node}, sum 6, a b" for rank, node in enumerate([first, first, second, second])],
        [f"{rank} of 3 on {node}, sum 3, fewer" for rank, node in enumerate([first, first, second])],
    )


def test_ranks_run_on_all_hosts_reached_by_ssh(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    options = ("--nodes", "node[1-2]", "--ssh-config", ssh_nodes.ssh_config)
    assert told(tmp_path, *options) == expected(("node1", "node2"))


def test_ranks_run_on_all_nodes_of_a_job_of_slurm(slurm: SlurmFarm, tmp_path: Path) -> None:
    assert told(tmp_path, "--scheduler", "slurm", "--nodes", "n[1-2]") == expected(("n1", "n2"))


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ('self.mpi("./x", ranks_per_node=0)', "ranks_per_node is 0"),
        ('self.mpi("./x", ranks=5)', "5 ranks do not fit on 1 nodes with 1 on each"),
    ],
)
def test_ranks_that_cannot_be_are_refused(tmp_path: Path, call: str, complaint: str) -> None:
    (tmp_path / "ranks.py").write_text(
        f"import lepaute as lp\n\nclass Ranks(lp.Job):\n    def run(self):\n        {call}\n"
    )
    done = run_lepaute("run", "-q", "ranks.py", "-o", "x.zip", folder=tmp_path)
    assert done.returncode == 1
    assert complaint in done.stderr


def _run(node: NodeAddress, *words: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(node.argv(words), capture_output=True, timeout=HANG_S, check=False)


def _acquire(request: Request, said: list[str] | None = None) -> Allocation:
    return scheduler("slurm").acquire(request, (said if said is not None else []).append)


def test_a_job_of_ours_has_the_nodes_that_were_asked_for_until_it_is_released(slurm: SlurmFarm) -> None:
    said: list[str] = []
    allocation = _acquire(Request(count=3, walltime_s=600, properties="farm", queue="all"), said)
    try:
        assert len(slurm.jobs()) == 1
        assert allocation.facts["job"] == slurm.jobs()[0]
        limit = slurm.run("squeue", "--noheader", "--format=%l %D").split()
        assert limit == ["10:00", "3"]
        for node in allocation.nodes:
            done = _run(node, "printenv", "SLURMD_NODENAME")
            assert (done.stdout.decode(), done.stderr.decode(), done.returncode) == (f"{node.name}\n", "", 0)
    finally:
        allocation.release()
        allocation.release()
    wait_until(lambda: slurm.jobs() == [], "end of the job")
    assert said[-1].startswith(f"Slurm job {allocation.facts['job']} has n")


def test_the_leaf_switches_of_its_topology_are_known(slurm: SlurmFarm) -> None:
    assert slurm.run("scontrol", "show", "topology")  # or the rest would be true of a Slurm that knows nothing
    assert scheduler("slurm").switches().nodes == (("n1", "n2"), ("n3", "n4"))


def test_bytes_pass_unharmed_both_ways_and_a_short_message_is_not_held_back(slurm: SlurmFarm, start: Start) -> None:
    allocation = _acquire(Request(nodes="n2"))
    try:
        assert [node.name for node in allocation.nodes] == ["n2"]
        check_stream(start(allocation.nodes[0], "cat"))
    finally:
        allocation.release()


def test_words_arrive_as_they_were_given(slurm: SlurmFarm, tmp_path: Path) -> None:
    allocation = _acquire(Request())
    mark = tmp_path / "mark"
    words = ["a b", "", "'", f"$(touch {mark})", f"; touch {mark}", "line\nbreak", "-n9", "%j"]
    try:
        done = _run(allocation.nodes[0], "printf", "%s\\0", *words)
    finally:
        allocation.release()
    assert done.stdout.decode().split("\0")[:-1] == words
    assert not mark.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_program_on_the_node_ends_with_its_srun(slurm: SlurmFarm, number: signal.Signals, start: Start) -> None:
    allocation = _acquire(Request())
    try:
        process = start(allocation.nodes[0], "sh", "-c", "echo $$; exec sleep 1000")
        remote = Path(f"/proc/{int(process.stdout.readline())}")  # the virtual nodes are this machine
        assert remote.exists()
        process.send_signal(number)
        wait_until(lambda: not remote.exists(), "end of the program on the node")
        process.wait(HANG_S)
    finally:
        allocation.release()


def test_several_programs_run_on_a_node_at_once(slurm: SlurmFarm, start: Start) -> None:
    allocation = _acquire(Request())
    try:
        processes = [start(allocation.nodes[0], "sh", "-c", "echo up; exec cat") for _ in range(3)]
        for process in processes:  # srun would wait for free CPUs, and the second never be up
            assert process.stdout.readline() == b"up\n"
        for process in processes:
            process.communicate(timeout=HANG_S)
    finally:
        allocation.release()


def test_an_allocation_that_was_found_is_used_and_left_alone(slurm: SlurmFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = _acquire(Request(nodes="n[1-2]"))
    job = str(outer.facts["job"])
    try:
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("SLURM_MEM_PER_CPU", "50")  # as in a job that was asked for with --mem-per-cpu
        monkeypatch.setenv("SLURM_NTASKS", "2")
        said: list[str] = []
        inner = _acquire(Request(walltime_s=60), said)
        assert [node.name for node in inner.nodes] == ["n1", "n2"]
        assert said[0].startswith(f"using the existing Slurm job {job}; --walltime")
        done = _run(inner.nodes[1], "printenv", "SLURMD_NODENAME")
        assert done.stdout == b"n2\n"
        inner.release()
        assert slurm.jobs() == [job]
        assert [node.name for node in _acquire(Request(nodes="n2")).nodes] == ["n2"]
        assert [node.name for node in _acquire(Request(count=1)).nodes] == ["n1"]
        for refused in (Request(count=3), Request(nodes="n[2-3]")):
            with pytest.raises(InputError, match=f"job {job} has"):
                _acquire(refused)
        monkeypatch.delenv("SLURM_JOB_ID")
        assert [node.name for node in _acquire(Request(job=job)).nodes] == ["n1", "n2"]
    finally:
        outer.release()


def test_ctrl_c_while_waiting_for_nodes_leaves_no_job(slurm: SlurmFarm) -> None:
    holder = _acquire(Request(count=4))
    program = (
        "from lepaute.measure.schedulers import Request, scheduler\n"
        "scheduler('slurm').acquire(Request(count=1), lambda text: print(text, flush=True))\n"
    )
    try:
        waiting = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert "is waiting for nodes" in waiting.stdout.readline()
        assert len(slurm.jobs()) == 2
        waiting.send_signal(signal.SIGINT)
        _, stderr = waiting.communicate(timeout=HANG_S)
        assert "KeyboardInterrupt" in stderr
        assert slurm.jobs() == [holder.facts["job"]]
    finally:
        holder.release()


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (Request(count=9), "Slurm granted no nodes.*More"),
        (Request(queue="nosuch"), "Slurm granted no nodes.*partition"),
        (Request(job="4711"), "job 4711"),
    ],
)
def test_what_slurm_refuses_is_told_in_its_own_words(slurm: SlurmFarm, request_: Request, complaint: str) -> None:
    with pytest.raises(EnvironmentProblem, match=complaint):
        _acquire(request_)
    assert slurm.jobs() == []


def test_a_plan_shows_the_commands_and_starts_nothing(slurm: SlurmFarm) -> None:
    steps = scheduler("slurm").plan(Request(count=2, walltime_s=90_061, account="a b")).steps
    assert steps[0] == (
        "salloc --job-name=lepaute-NUMBER --nodes=2 --time=25:01:01 --exclusive --mem=0 --no-kill '--account=a b' cat"
    )
    assert steps[1].startswith("srun --jobid=JOB")
    assert slurm.jobs() == []
