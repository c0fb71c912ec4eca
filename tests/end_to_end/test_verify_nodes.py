"""`lepaute verify hpl` on hosts with real sshd's and on nodes of a real Slurm, with the real HPL on tiny matrices.

The hosts are this machine, whose TCP joins them, so that the errors of prediction mean nothing: that every rank runs on
its node, that nothing is lost, and what is refused is tested.
"""

import json
import os
import threading
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm
from farms.sshd import SshdFarm, sshd_farm
from support_limits import HANG_S, wait_until
from support_run import run_lepaute

from lepaute.kit.journal import entries
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.schedulers import Request
from lepaute.measure.verify.node_site import LentNodes, NodeSite, lent_nodes
from lepaute.measure.verify.real_run import build_program, user_program
from lepaute.simulate import Hpl
from lepaute.simulate.platform import load_platform

pytestmark = [
    pytest.mark.nodes,
    pytest.mark.usefixtures("real_hpl"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two cores stand for the nodes"),
]

SIZES = ("--n", "96", "--nb", "32", "--runs", "2", "--json")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes with as many cores as this machine, with the kernels of another; it says neither processor nor BLAS."""
    return written(tmp_path_factory.mktemp("platform") / "two.yaml", os.cpu_count() or 1)


def written(path: Path, cores: int) -> Path:
    stampede = load_platform("stampede-like")
    nodes = stampede.nodes.model_copy(update={"count": 2, "cores": cores, "cpus": 1})
    stampede.model_copy(update={"nodes": nodes, "name": path.stem}).to_yaml(path)
    return path


def verify(folder: Path, *options: object, repeats: int = 1):
    return run_lepaute(
        "verify", "hpl", *SIZES, "--repeats", str(repeats), "--output", "out", *map(str, options), folder=folder
    )


def ssh(farm: SshdFarm) -> tuple[object, ...]:
    return ("--nodes", "node[1-2]", "--ssh-config", farm.ssh_config)


def runs(folder: Path) -> list[dict[str, object]]:
    return list(entries(folder / "out/runs.jsonl"))


def test_ranks_run_on_both_hosts_as_the_prediction_places_them(ssh_nodes, platform, tmp_path):
    done = verify(tmp_path, "-p", platform, *ssh(ssh_nodes), "--grid", "1x2", "--ranks-per-node", "1")
    assert done.returncode == 0, done.stderr
    assert "does not say its processor and BLAS kernels" in done.stderr
    case = json.loads(done.stdout)
    assert case["parameters"]["mapping_slots"] == "0:0 1:0"
    (run, *_) = case["measured"]
    assert run["nodes"] == "node[1-2]"
    assert [rank["rank"] for rank in run["ranks"]] == [0, 1]
    # Both hosts are one machine: its second core stands for the second host.
    assert len({rank["cpu"] for rank in run["ranks"]}) == 2
    assert [node["name"] for node in runs(tmp_path)[0]["run"]["nodes"]] == ["node1", "node2"]  # type: ignore[index]


def test_nodes_of_slurm_are_filled_core_by_core(slurm: SlurmFarm, tmp_path: Path) -> None:
    # Nodes of one core, which these are not: the two ranks fill both, without sharing the cores of this machine.
    single = ("-p", written(tmp_path / "single.yaml", cores=1), "--other-machine")
    done = verify(tmp_path, *single, "--scheduler", "slurm", "--nodes", "n[1-2]", "--grid", "2x1")
    assert done.returncode == 0, done.stderr
    assert "warning: the platform is of another machine: cores: 1, on n1" in done.stderr
    case = json.loads(done.stdout)
    assert case["parameters"]["mapping"] == "sequential"
    assert case["measured"][0]["nodes"] == "n[1-2]"
    assert len({rank["cpu"] for rank in case["measured"][0]["ranks"]}) == 2
    assert slurm.jobs() == []


def test_what_does_not_fit_and_what_is_of_another_machine_is_refused(ssh_nodes, platform, tmp_path):
    for options, complaint in (
        (("-p", "dahu", "--grid", "1x2"), "is the platform of another machine (cores: 32, on node1"),
        (("-p", platform, "--grid", "2x2", "--ranks-per-node", "1"), "2 nodes with 1 ranks each are too few"),
    ):
        done = verify(tmp_path, *options, *ssh(ssh_nodes))
        assert done.returncode == 2
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "out").exists()


class LosingNode(NodeSite):
    """A site whose second node dies after the look at whether all are there, and before the ranks are started."""

    def __init__(self, farm: SshdFarm, lent: LentNodes) -> None:
        super().__init__(lent, build_program(), 1)
        self._farm = farm

    def _used(self, hpl: Hpl) -> Nodes:
        used = super()._used(hpl)
        self._farm.kill("node2")
        wait_until(lambda: self._lent.channels[1].lost is not None, "the loss of node2")
        return used


def test_a_users_own_xhpl_is_read_on_nodes_and_a_node_that_dies_before_its_ranks_start_is_named(tmp_path: Path) -> None:
    with sshd_farm(tmp_path / "farm", ["node1", "node2"]) as farm:
        request = Request(nodes="node[1-2]", ssh_config=farm.ssh_config)
        with lent_nodes("ssh", request, None, lambda _text: None) as lent:
            hpl = Hpl(n=96, nb=32, p=1, q=2)
            own = NodeSite(lent, user_program(build_program().path), 1).run(hpl, HANG_S)
            assert own.time_s > 0
            assert own.ranks == ()
            with pytest.raises(NodeLost, match=r"^node2 was lost in a real run: "):
                LosingNode(farm, lent).run(hpl, HANG_S)


@pytest.mark.long
def test_a_node_that_dies_in_a_run_is_named_and_the_others_runs_are_kept(platform: Path, tmp_path: Path) -> None:
    with sshd_farm(tmp_path / "farm", ["node1", "node2"]) as farm:
        options = ("-p", platform, *ssh(farm), "--grid", "1x2", "--ranks-per-node", "1")

        def kill_when_two_have_run() -> None:
            wait_until(lambda: len(runs(tmp_path)) >= 2, "two runs")
            farm.kill("node2")

        killer = threading.Thread(target=kill_when_two_have_run)
        killer.start()
        done = verify(tmp_path, *options, repeats=12)
        killer.join()
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        *_, note, line = done.stderr.splitlines()
        assert line.startswith("lepaute: node2 "), line
        assert "lost" in line
        assert "--resume" in note
        before = runs(tmp_path)
        assert 2 <= len(before) < 12
        farm.start("node2")
        done = verify(tmp_path, *options, "--resume", repeats=12)
        assert done.returncode == 0, done.stderr
        after = runs(tmp_path)
        assert after[: len(before)] == before
        assert {run["repeat"] for run in after} == set(range(12))
