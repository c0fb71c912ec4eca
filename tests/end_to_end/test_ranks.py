"""Ranks of MPI on the nodes of an experiment, started by the experiment: the same script by ssh and under Slurm."""

import json
import zipfile
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm
from farms.sshd import SshdFarm
from support_limits import HANG_S
from support_run import run_lepaute

pytestmark = pytest.mark.nodes

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
