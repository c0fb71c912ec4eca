"""A calibration of two hosts with real sshd's, to a platform with links, to a prediction on it.

Both hosts are this machine, so what is measured between them is its own TCP; that it gets there is what is tested.
"""

import json
import os
from pathlib import Path

import pytest
from farms.sshd import SshdFarm
from support_limits import CALIBRATION_HANG_S
from support_run import run_lepaute

from lepaute.measure.archive import Archive
from lepaute.measure.fit import models
from lepaute.simulate.platform import load_platform
from lepaute.stats.send_completion import rows_of, semantic_limits
from lepaute.watch.factors import MODEL_FACTORS, factors_of


@pytest.mark.machine
@pytest.mark.long
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="calibration needs two cores")
def test_two_hosts_are_calibrated_with_their_links_and_hpl_is_predicted_on_both(ssh_nodes, tmp_path):
    nodes = ("--nodes", "node[1-2]", "--ssh-config", ssh_nodes.ssh_config)
    done = run_lepaute(
        "calibrate", "--quick", *nodes, "--switches", "node[1-4]", "-o", "two.yaml", "--archive", "c.zip",
        folder=tmp_path, limit_s=CALIBRATION_HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "c.zip")
    assert archive.metadata["status"] == "complete"
    assert list(archive.metadata["machines"]) == ["node1", "node2"]
    assert not any("were not measured" in warning for warning in archive.metadata["warnings"])
    messages = archive.table("observations/p2p.parquet")
    assert set(zip(messages["host"], messages["peer"], messages["link"], strict=True)) == {
        ("node1", "node1", "local"),
        ("node2", "node2", "local"),
        ("node1", "node2", "remote"),
        ("node2", "node1", "remote"),
    }
    ring = archive.table("observations/ring.parquet")
    assert set(zip(ring["host"], ring["link"], strict=True)) == {
        ("node1", "local"), ("node2", "local"), ("node1", "remote"), ("node2", "remote")
    }  # fmt: skip
    flows = archive.table("observations/flows.parquet")
    # Two names of one machine of two cores have a core each, so that one message at a time is all.
    assert set(zip(flows["host"], flows["peer"], strict=True)) == {("node1", "node2"), ("node2", "node1")}
    assert flows["distance"].unique().tolist() == ["same-switch"]
    assert archive.about.switches == (("node1", "node2"),)
    semantics = archive.table("observations/semantics.parquet")
    limits = {link: semantic_limits(rows_of(part)) for link, part in semantics.groupby("link")}
    assert set(limits) == {"local", "remote"}, archive.metadata["warnings"]
    # Between hosts messages go by TCP, whose limit is 64 KiB less a header in Open MPI; a stall lowers it.
    assert all(found.asynchronous_up_to_bytes < 65536 for found in limits.values())
    members = set(archive.members())
    assert {"environment/node2/cpuinfo.txt", "monitoring/node2.parquet", "controls.json"} <= members
    assert len({r["node"] for r in archive.json("blocks.json")}) == 2
    values = factors_of(archive, "here")
    assert set(values["state"]) == {"done"}
    for node in ("node1", "node2"):
        measured = dict(values.loc[values["node"] == node, ["factor", "value"]].itertuples(index=False, name=None))
        assert measured.keys() >= {"dgemm_rate_flops", "sentinel_rate_flops", *MODEL_FACTORS}
        links = ("network_latency_s", "loopback_latency_s", "network_bandwidth_B_per_s")
        assert all(measured[name] > 0 for name in links)
    platform = load_platform(tmp_path / "two.yaml")
    assert platform.nodes.count == 2
    network = platform.network
    assert network.loopback.segments is not None
    assert network.remote.segments != network.loopback.segments
    # Whether cores get models of their own is for the data to say; asked for, all cores that were measured have one.
    own = models(archive, kernel_model=["M-1/N-1", "dgemm=M'-H/N-2"])
    (dgemm,) = [model for model in own.kernels if model.kernel == "dgemm"]
    measured = {(row[0], row[1]) for piece in dgemm.pieces if piece.per_cpu for row in piece.per_cpu.rows}
    first, second = archive.metadata["machines"]["node1"]["cores"]
    assert measured == {(node, cpu) for node in (1.0, 2.0) for cpu in (float(first), float(second))}
    predicted = run_lepaute(
        "predict", "hpl", "-p", "two.yaml", "--n", "2000", "--grid", "2x2", "--json", folder=tmp_path
    )
    assert predicted.returncode == 0, predicted.stderr
    assert json.loads(predicted.stdout)["rate_gflops"]["mean"] > 0
    # The real HPL on the nodes that were measured, which nobody takes for another machine.
    verified = run_lepaute(
        "verify", "hpl", "-p", "two.yaml", *nodes, "--n", "200", "--nb", "64", "--grid", "1x2", "--ranks-per-node", "1",
        "--repeats", "1", "--json", folder=tmp_path,
    )  # fmt: skip
    assert verified.returncode == 0, verified.stderr
    assert "another machine" not in verified.stderr
    assert "does not say" not in verified.stderr
    assert json.loads(verified.stdout)["measured"][0]["nodes"] == "node[1-2]"


def test_nodes_that_cannot_be_reached_are_named_and_nothing_is_left(tmp_path: Path, ssh_nodes: SshdFarm) -> None:
    options = ("--nodes", "node1,nowhere", "--ssh-config", ssh_nodes.ssh_config)
    done = run_lepaute("calibrate", "--quick", *options, folder=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert list(tmp_path.iterdir()) == []
