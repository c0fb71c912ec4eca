"""Farms that tests share, made when the first of them asks; a test that kills nodes makes a farm of its own."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from farms.postgresql import PostgresqlServer, postgresql_server
from farms.slurm import SlurmFarm, slurm_farm
from farms.sshd import SshdFarm, sshd_farm
from support_limits import CALIBRATION_HANG_S
from support_run import run_lepaute

from lepaute.measure.schedulers import NodeAddress

#: A calibration where what it measures is not the point: a few messages still are as large as bandwidths are told from.
SMALL_CALIBRATION = ("--quick", "--nb", "64,128", "--network-bytes", 4 << 20)

#: Starts a program on a node, with pipes to it.
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="session")
def ssh_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshdFarm]:
    """Four hosts, node1 to node4, each with an sshd of its own; not to be killed."""
    with sshd_farm(tmp_path_factory.mktemp("sshd"), [f"node{index}" for index in range(1, 5)]) as farm:
        yield farm


@pytest.fixture(scope="session")
def _running_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmFarm]:
    with slurm_farm(tmp_path_factory.mktemp("slurm"), nodes=4) as farm:
        yield farm


@pytest.fixture
def slurm(_running_slurm: SlurmFarm, monkeypatch: pytest.MonkeyPatch) -> SlurmFarm:
    """Four nodes of Slurm, n1 to n4, that Slurm's commands lead to; kill no node, leave no job behind."""
    _running_slurm.enter(monkeypatch)
    return _running_slurm


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(node, "cat")`, with pipes to the program; what was started here is gone after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start_on(node: NodeAddress, *words: str) -> "subprocess.Popen[bytes]":
        argv = node.argv(words)
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True))
        return started[-1]

    yield start_on
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError), process:  # closes its pipes and collects it
            pass


#: Each row is a little work on every node.
_SLOW = """
import lepaute as lp

class Slow(lp.Job):
    reference_period_s = 0.5

    def design(self):
        replications = int(self.parameters.get("replications", 4))
        return lp.design.full_factorial({"size_bytes": [1, 2, 3, 4, 5]}, replications=replications, seed=self.seed)

    def run(self):
        for row in self.rows():
            for node, result in self.nodes.shell("sleep 0.15", check=False).items():
                self.record(node=node, duration_s=result.duration_s)
"""


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A script whose rows take a while."""
    script = tmp_path / "slow.py"
    script.write_text(_SLOW)
    return script


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A server for the tests of this process; each takes a database of its own."""
    with postgresql_server() as server:
        yield server


@pytest.fixture(params=["folder", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The name of an empty store of each kind."""
    if request.param == "folder":
        yield str(tmp_path / "store")
    else:
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        with server.database() as url:
            yield url


@pytest.fixture(scope="session")
def quick_calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick calibration of this machine with 1 and 2 threads: platform.yaml and calibration.zip."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("calibration needs two cores")
    folder = tmp_path_factory.mktemp("calibration")
    words = ("--threads-per-rank", "1,2", "-o", "platform.yaml", "--archive", "calibration.zip")
    done = run_lepaute("calibrate", *SMALL_CALIBRATION, *words, folder=folder, limit_s=CALIBRATION_HANG_S)
    assert done.returncode == 0, done.stderr
    return folder
