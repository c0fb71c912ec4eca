"""Farms that tests share, made when the first of them asks; a test that kills nodes makes a farm of its own."""

from collections.abc import Iterator

import pytest
from farms.slurm import SlurmFarm, slurm_farm
from farms.sshd import SshdFarm, sshd_farm


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
