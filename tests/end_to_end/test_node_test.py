"""`lepaute run node-test`: on this machine twice, on nodes of ssh and Slurm, and into a store."""

import json
import os
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm
from farms.sshd import SshdFarm
from support_run import run_here

from lepaute.measure.archive import Archive
from lepaute.measure.node_test_workloads import INSTALL, STRESSORS
from lepaute.watch.factors.dgemm import MODEL_FACTORS, RATE
from lepaute.watch.factors.hardware import BANDWIDTH
from lepaute.watch.store import open_store

CORES = len(os.sched_getaffinity(0))
QUICK = ("--set", "quick=true")
HERE = {RATE, BANDWIDTH, *MODEL_FACTORS, "disk_write_B_per_s", "disk_read_B_per_s"}
STRESSED = {f"workload_{name}_ops_per_s" for name in STRESSORS}
#: For tests of something else.
UNSTRESSED = ("--set", "workloads=none")


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.long
def test_two_tests_of_this_machine_are_of_one_stratum_and_have_all_factors(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LEPAUTE_HPCC_TARBALL", "none")  # no source of HPL, and nothing built with it before
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "cache"))
    for name in ("a.zip", "b.zip"):
        done = run_here("run", "node-test", *QUICK, "-o", name, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    ingested = run_here("watch", "ingest", "a.zip", "b.zip", "--store", "store", folder=tmp_path)
    assert ingested.returncode == 0, ingested.stderr
    with open_store(tmp_path / "store") as store:
        values = store.values()
    messages = {"loopback_latency_s", "loopback_bandwidth_B_per_s"} if CORES > 1 else set()
    assert HERE | STRESSED | messages <= set(values["factor"])
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
    options = ["--nodes", "node[1-2]", "--ssh-config", ssh_nodes.ssh_config, *UNSTRESSED]
    done = run_here("run", "node-test", *QUICK, *options, "-o", "two.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "two.zip")
    assert set(archive.table("observations/dgemm.parquet")["node"]) == {"node1", "node2"}
    if CORES < 2:  # both names are of this machine
        absent = archive.table("observations/absent.parquet")
        assert ("node1", "messages to node2") in set(zip(absent["node"], absent["what"], strict=True))
        return
    messages = archive.table("observations/p2p.parquet")
    assert set(zip(messages["node"], messages["peer"], strict=True)) >= {("node1", "node2")}
    assert run_here("watch", "ingest", "two.zip", "--store", "store", folder=tmp_path).returncode == 0
    with open_store(tmp_path / "store") as store:
        values = store.values()
    for node in ("node1", "node2"):
        assert set(values[values["node"] == node]["factor"]) >= HERE | {"network_latency_s"}


@pytest.mark.nodes
@pytest.mark.slow
def test_watch_run_tests_nodes_of_slurm_under_their_names(slurm: SlurmFarm, tmp_path: Path) -> None:
    own = [
        "--set", "workloads=branch", "--workload", "nap=sleep 0.1; echo a=7", "--workload-pattern",
        r"nap=a=(?P<x_s>\d)",
    ]  # fmt: skip
    options = ["--nodes", "n[1-2]", *QUICK, *own, "--store", "store", "--archives", "tests", "--for", "10min", "--json"]
    done = run_here("watch", "run", *options, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [test["outcome"] for test in json.loads(done.stdout)["tests"]] == ["done", "done"]
    with open_store(tmp_path / "store") as store:
        values = store.values()
    assert set(values["node"]) == {"n1", "n2"}
    assert set(values["factor"]) >= HERE | {"workload_branch_ops_per_s", "workload_nap_x_s"}
    # One experiment, one machine: their values can be compared.
    assert (values.groupby("factor")["stratum"].nunique() == 1).all()
    assert slurm.jobs() == []


@pytest.mark.machine
def test_a_part_that_fails_is_absent_and_the_rest_is_measured(tmp_path: Path) -> None:
    options = ["--set", "disk_folder=/proc/nowhere", "--set", "workloads=disk,branch"]
    for name, command in (("bad", "exit 3"), ("mute", "true"), ("good", "sleep 0.1")):
        options += ["--workload", f"{name}={command}"]
    options += ["--workload-pattern", r"mute=(?P<x_s>\d+)"]
    done = run_here("run", "node-test", *QUICK, *options, "-o", "x.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    absent = archive.table("observations/absent.parquet")
    why = dict(zip(absent["what"], absent["reason"], strict=True))
    assert {"disk", "workload disk", "workload bad", "workload mute"} <= set(why)
    assert "exit status 3" in why["workload bad"]
    assert why["workload mute"] == "it printed nothing that its pattern matches"
    assert "observations/disk.parquet" not in archive.members()
    assert len(archive.table("observations/memory.parquet")) > 0
    ran = archive.table("observations/workloads.parquet")
    assert sorted(ran["workload"]) == ["branch", "good"]
    assert (ran["value"] > 0).all()
    # What stress-ng wrote is in the record of commands, word by word.
    commands = archive.json("commands.json")
    (branch,) = [each for each in commands if "--branch" in each["argv"]]
    assert "bogo-ops-per-second-real-time" in branch["stdout"]


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.long
def test_without_stress_ng_its_workloads_are_absent_and_one_line_says_how_to_install_it(tmp_path: Path) -> None:
    there = tmp_path / "bin"
    there.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            if program.name != "stress-ng" and not (there / program.name).is_symlink():
                (there / program.name).symlink_to(program)
    options = [*QUICK, "--set", "workloads=branch,cache"]
    done = run_here("run", "node-test", *options, "-o", "x.zip", folder=tmp_path, PATH=str(there))
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stderr.splitlines() if INSTALL in line]) == 1
    archive = Archive.open(tmp_path / "x.zip")
    absent = archive.table("observations/absent.parquet")
    assert ("workloads branch, cache", INSTALL) in set(zip(absent["what"], absent["reason"], strict=True))
    assert "observations/workloads.parquet" not in archive.members()
