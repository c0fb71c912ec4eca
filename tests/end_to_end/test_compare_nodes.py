"""`lepaute compare` on hosts with real sshd's and on nodes of a real Slurm.

The hosts are this machine, whose TCP joins them; the clocks of ranks are made to differ, as those of hosts do. What is
planted is far beyond what other load makes of a call.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm
from farms.sshd import SshdFarm
from long_tests import long_but
from oracles.recorded_hpl import library_named
from support_limits import CALIBRATION_HANG_S
from support_mpi_probes import prefix_of
from support_run import run_here

from lepaute.measure.archive import Archive
from lepaute.measure.archive.mpi_campaign import calls, facts, mpiruns

pytestmark = [
    pytest.mark.nodes,
    pytest.mark.slow,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two cores stand for the nodes"),
]

#: Every rank but the first has a clock that is seconds ahead and goes faster; a scatter takes long on the last one.
SHIM = Path(__file__).parents[1].joinpath("data", "programs", "compare_nodes_shim.c").read_text()
SLOW_S = 0.1
#: Ranks give up the core while they wait: there may be fewer cores than ranks.
TCP = "OMPI_MCA_btl=tcp,self,OMPI_MCA_btl_tcp_if_include=lo,OMPI_MCA_mpi_yield_when_idle=1"
#: Nothing is repeated that this machine disturbs.
QUICK = (
    "--calls", "6", "--warm-up", "1", "--budget", "0.1", "--synchronisation", "dissemination", "--json",
)  # fmt: skip


def library(folder: Path, family: str, slow_us: int) -> str:
    """A prefix of the library whose programs have such clocks, and so slow a scatter on the last rank."""
    library_named(family)
    prefix = prefix_of(folder, f"mpicc.{family}", f"mpirun.{family}", shim=SHIM.format(slow_us=slow_us))
    return f"{prefix},{TCP}" if family == "openmpi" else str(prefix)


def compare(folder: Path, libraries: Sequence[str], *options: object) -> dict[str, object]:
    words = ("compare", *libraries, *QUICK, "-o", "c.zip", *map(str, options))
    done = run_here(*words, folder=folder, limit_s=CALIBRATION_HANG_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("family", "method"), long_but([("openmpi", "SKaMPI"), ("mpich", "HCA")], ("openmpi", "SKaMPI"))
)
def test_a_slow_host_is_found_and_named_whose_clock_is_another(ssh_nodes, tmp_path, family, method):
    """Of hosts in a hostfile: what is planted is what the global time shows, though clocks are seconds apart."""
    (tmp_path / "hosts").write_text("node2 slots=1\nnode4:1\n")
    names = [f"plain={library(tmp_path / 'plain', family, 0)}", f"slow={library(tmp_path / 'slow', family, 100_000)}"]
    where = ("--hostfile", "hosts", "--ssh-config", ssh_nodes.ssh_config, "--ops", "scatter", "--sizes", "8")
    found = compare(tmp_path, names, *where, "--mpiruns", "4", "--clock-method", method)
    (row,) = found["rows"]
    assert row["right_s"] >= SLOW_S
    # Where other load hides what is planted, nothing is derived.
    said = "rank 1 on node4 takes longer in 1 of the 1 row shown to differ"
    assert [said in line for line in found["derived"]] == [True] * (row["outcome"] == "left faster")
    archive = Archive.open(tmp_path / "c.zip")
    about = facts(archive)
    assert (about.nodes, about.slots, about.ranks) == (("node2", "node4"), (1, 1), 2)
    joined = "TCP over lo" if family == "openmpi" else "shared memory of one machine"
    assert joined in about.factors["network"]
    assert about.factors["network"].startswith("between nodes ")
    assert about.factors["processes"] == "2 ranks: 1 on node2, 1 on node4"
    assert {f"environment/{node}/cpuinfo.txt" for node in about.nodes} <= set(archive.members())
    rows = calls(archive)
    assert len(rows) == len(rows[rows["ranks"] == 2]) > 0
    assert "--nodes 'node[2,4]' --ranks-per-node 1" in found["archives"][0]["command"]


def test_several_numbers_of_ranks_are_measured_in_the_same_blocks_under_slurm(slurm: SlurmFarm, tmp_path: Path) -> None:
    """Both libraries, each by srun: every number of ranks has its verdicts, its mpiruns and its picture."""
    assert slurm.names[:2] == ("n1", "n2")
    names = [f"one={library(tmp_path / 'one', 'openmpi', 0)}", f"two={library(tmp_path / 'two', 'mpich', 0)}"]
    where = ("--nodes", "n[1-2]", "--scheduler", "slurm", "--ranks-per-node", "2", "--np", "2,3", "--mpiruns", "1")
    found = compare(tmp_path, names, *where, "--ops", "barrier", "--clock-method", "SKaMPI", "--scaling", "scaling.svg")
    assert [each["ranks"] for each in found["comparisons"]] == [2, 3]
    assert [each["nodes"] for each in found["comparisons"]] == [["n1", "n1"], ["n1", "n1", "n2"]]
    assert all(len(each["rows"]) == 1 for each in found["comparisons"])
    assert (tmp_path / "scaling.svg").is_file()
    runs = mpiruns(Archive.open(tmp_path / "c.zip"))
    measured = runs[~runs["trial"] & (runs["outcome"] == "complete")]
    assert set(zip(measured["library"], measured["ranks"], measured["block"], strict=True)) == {
        (name, ranks, 0) for name in ("one", "two") for ranks in (2, 3)
    }


def test_more_ranks_than_the_nodes_take_are_refused_and_nothing_is_left(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    where = ("--nodes", "node[1-2]", "--ssh-config", str(ssh_nodes.ssh_config), "--ranks-per-node", "1", "--np", "2,4")
    done = run_here("compare", "openmpi", *where, folder=tmp_path)
    assert done.returncode == 2
    assert "--np is 4; 2 nodes with 1 ranks each take 2" in done.stderr
    assert list(tmp_path.iterdir()) == []
