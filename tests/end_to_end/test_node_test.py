"""`lepaute run node-test`: on this machine twice, on nodes of ssh and Slurm, and into a store."""

import json
import os
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm
from farms.sshd import SshdFarm
from support_run import run_lepaute

from lepaute.archive import Archive
from lepaute.store import open_store
from lepaute.watch.factors.dgemm import MODEL_FACTORS, RATE
from lepaute.watch.factors.hardware import BANDWIDTH

CORES = len(os.sched_getaffinity(0))
QUICK = ("--set", "quick=true")
HERE = {RATE, BANDWIDTH, *MODEL_FACTORS, "disk_write_B_per_s", "disk_read_B_per_s"}


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.long
def test_two_tests_of_this_machine_are_of_one_stratum_and_have_all_factors(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        done = run_lepaute("run", "node-test", *QUICK, "-o", name, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    ingested = run_lepaute("watch", "ingest", "a.zip", "b.zip", "--store", "store", folder=tmp_path)
    assert ingested.returncode == 0, ingested.stderr
    with open_store(tmp_path / "store") as store:
        values = store.values()
    messages = {"loopback_latency_s", "loopback_bandwidth_B_per_s"} if CORES > 1 else set()
    assert HERE | messages <= set(values["factor"])
    assert (values.groupby(["factor", "cpu"])["stratum"].nunique() == 1).all()
    assert (values.groupby(["factor", "cpu"])["value"].count() == 2).all()
    assert set(values["state"]) == {"done"}
    first, second = (Archive.open(tmp_path / name) for name in ("a.zip", "b.zip"))
    calls = first.table("observations/dgemm.parquet")
    # Every core made every call; sizes are the same in both tests, and their order is not.
    assert calls.groupby("cpu").size().nunique() == 1
    orders = [archive.table("design.csv")[["m", "n", "k"]].to_numpy().tolist() for archive in (first, second)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    absent = first.table("observations/absent.parquet")
    assert {"node", "what", "reason"} <= set(absent.columns)


@pytest.mark.nodes
@pytest.mark.slow
def test_several_nodes_are_tested_and_messages_between_neighbours(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    options = ["--nodes", "node[1-2]", "--ssh-config", ssh_nodes.ssh_config]
    done = run_lepaute("run", "node-test", *QUICK, *options, "-o", "two.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "two.zip")
    assert set(archive.table("observations/dgemm.parquet")["node"]) == {"node1", "node2"}
    if CORES < 2:  # both names are of this machine
        absent = archive.table("observations/absent.parquet")
        assert ("node1", "messages to node2") in set(zip(absent["node"], absent["what"], strict=True))
        return
    messages = archive.table("observations/p2p.parquet")
    assert set(zip(messages["node"], messages["peer"], strict=True)) >= {("node1", "node2")}
    assert run_lepaute("watch", "ingest", "two.zip", "--store", "store", folder=tmp_path).returncode == 0
    with open_store(tmp_path / "store") as store:
        values = store.values()
    for node in ("node1", "node2"):
        assert set(values[values["node"] == node]["factor"]) >= HERE | {"network_latency_s"}


@pytest.mark.nodes
@pytest.mark.slow
def test_watch_run_tests_nodes_of_slurm_under_their_names(slurm: SlurmFarm, tmp_path: Path) -> None:
    options = ["--nodes", "n[1-2]", *QUICK, "--store", "store", "--archives", "tests", "--for", "10min", "--json"]
    done = run_lepaute("watch", "run", *options, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [test["outcome"] for test in json.loads(done.stdout)["tests"]] == ["done", "done"]
    with open_store(tmp_path / "store") as store:
        values = store.values()
    assert set(values["node"]) == {"n1", "n2"}
    assert set(values["factor"]) >= HERE
    # One experiment, one machine: their values can be compared.
    assert (values.groupby("factor")["stratum"].nunique() == 1).all()
    assert slurm.jobs() == []


@pytest.mark.machine
def test_a_part_that_fails_is_absent_and_the_rest_is_measured(tmp_path: Path) -> None:
    done = run_lepaute("run", "node-test", *QUICK, "--set", "disk_folder=/proc/nowhere", "-o", "x.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    absent = archive.table("observations/absent.parquet")
    assert "disk" in set(absent["what"])
    assert "observations/disk.parquet" not in archive.members()
    assert len(archive.table("observations/memory.parquet")) > 0


def test_a_wrong_parameter_gets_one_line(tmp_path: Path) -> None:
    done = run_lepaute("run", "node-test", "--set", "speed=9", "-o", "x.zip", folder=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "there is no parameter speed" in done.stderr
    assert list(tmp_path.iterdir()) == []
