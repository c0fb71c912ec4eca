"""From a calibration of this machine, and of two hosts with real sshd's, to predictions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from farms.sshd import SshdFarm
from support_limits import CALIBRATION_HANG_S, HANG_S, ran
from support_run import run_lepaute

from lepaute.measure.archive import Archive
from lepaute.measure.fit import models
from lepaute.simulate.platform import load_platform
from lepaute.stats.send_completion import rows_of, semantic_limits
from lepaute.watch.factors import MODEL_FACTORS, factors_of


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-m", "lepaute.cli.main", *arguments], timeout=CALIBRATION_HANG_S, env=os.environ)


#: PFACT, RFACT, NBMIN and process rows, one with each form of L1, U and the swap.
FACTORISATIONS = [
    *(("left", "left", 4, 2), ("crout", "right", 2, 2), ("right", "crout", 8, 2), ("right", "right", 4, 1)),
    *(("left", "crout", 1, 3), ("crout", "left", 8, 1), ("right", "left", 4, 3), ("left", "right", 2, 2)),
]


def calls_every_kernel_of_hpl(file: Path) -> None:
    """Asserts that HPL finds a model of every kernel that it calls, whatever its options."""
    import lepaute as lp
    from lepaute import _core

    one = lp.load_platform(str(file))
    # On as many cores as the grids below have.
    platform = one.model_copy(update={"nodes": one.nodes.model_copy(update={"cores": 4, "cpus": 4})})
    called: set[str] = set()
    for index, (pfact, rfact, nbmin, p) in enumerate(FACTORISATIONS * 3):
        l1, u = (("transposed", "no-transposed")[index // place % 2] for place in (1, 2))
        swap = ("binary-exchange", "spread-roll", "mix")[index // 8]
        options = {"pfact": pfact, "rfact": rfact, "nbmin": nbmin, "l1": l1, "u": u, "swap": swap}
        prediction = lp.predict(lp.Hpl(n=500, nb=64, p=p, q=4 - p, **options), platform, runs=1, seed=1)
        assert not any("not modelled" in warning for warning in prediction.warnings), options
        called |= set(prediction.first.kernels)
    assert called == set(_core.kernel_names()) - {"sweep"}


def says_with_which_options_the_steps_were_made(file: Path) -> None:
    import lepaute as lp

    archive = lp.Archive.open(str(file))
    assert "options" not in archive.table("observations/p2p.parquet").columns
    kernels = archive.table("observations/kernels.parquet")
    options = kernels.groupby("probe", observed=True)["options"]
    assert options.nunique()["dgemm"] == 0
    assert options.nunique()["hpl_steps_1x1"] == 1
    made = kernels.loc[kernels["probe"] == "hpl_steps_options", "options"]
    assert {form for form in ("u=transposed", "u=no-transposed") if made.str.contains(f" {form} ").any()} == {
        "u=transposed",
        "u=no-transposed",
    }
    assert made.nunique() == 4  # two runs in each of two blocks


def measured_and_predicted_with_two_threads(file: Path, platform: Path) -> None:
    """Asserts that processes of two threads were measured, and that a run of them is predicted."""
    import lepaute as lp

    archive = lp.Archive.open(str(file))
    assert archive.metadata["threads"] == [1, 2]
    assert {int(threads) for threads in archive.table("observations/kernels.parquet")["threads"]} == {1, 2}
    words = ("--n", "2000", "--grid", "1x1", "--threads-per-rank", "2")
    predicted = run("predict", "hpl", "-p", str(platform), *words, "--json")
    assert predicted.returncode == 0, predicted.stderr


@pytest.mark.machine
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="calibration needs two cores")
def test_a_calibration_of_this_machine_predicts_hpl_on_it(quick_calibration: Path) -> None:
    platform, archive = quick_calibration / "platform.yaml", quick_calibration / "calibration.zip"
    verified = run("archive", "verify", str(archive))
    assert verified.returncode == 0, verified.stderr
    predicted = run("predict", "hpl", "-p", str(platform), "--n", "2000", "--grid", "1x2", "--json")
    assert predicted.returncode == 0, predicted.stderr
    prediction = json.loads(predicted.stdout)
    # What rate and interval are worth on a machine that runs tests meanwhile is for `make demo` to tell.
    assert prediction["rate_gflops"]["mean"] > 0
    assert prediction["time_s"]["low"] < prediction["time_s"]["mean"] < prediction["time_s"]["high"]
    assert not any("not modelled" in warning for warning in prediction["warnings"])
    says_with_which_options_the_steps_were_made(archive)
    calls_every_kernel_of_hpl(platform)
    measured_and_predicted_with_two_threads(archive, platform)


@pytest.mark.machine
@pytest.mark.long
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="calibration needs two cores")
def test_a_fit_of_the_archive_is_the_platform_that_the_calibration_made(quick_calibration, tmp_path):
    platform, archive = quick_calibration / "platform.yaml", quick_calibration / "calibration.zip"
    again = run("fit", str(archive), "-o", str(tmp_path / "again.yaml"))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.yaml").read_bytes().split(b"\n", 3)[3:] == platform.read_bytes().split(b"\n", 3)[3:]


@pytest.mark.machine
@pytest.mark.long
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="calibration needs two cores")
def test_neighbours_that_compute_beside_a_probe_are_seen_by_counters_and_not_priced(tmp_path: Path) -> None:
    """Two busy processes for each core beside one run of one probe, which is measured again."""
    from lepaute.measure.archive import Archive
    from lepaute.measure.calibration.campaign import calibrate
    from lepaute.measure.fit.observations.calibrations import without_disturbed
    from lepaute.measure.observation_columns import KERNELS

    busy = ["timeout", f"{HANG_S:.0f}", "sh", "-c", "while :; do :; done"]
    neighbours: list[subprocess.Popen[bytes]] = []
    begun: list[str] = []

    def tell(text: str, _share: float) -> None:
        while neighbours:
            ended = neighbours.pop()
            ended.terminate()
            ended.wait()
        if text == "block 2 of 2: hpl_steps_1x1_all" and not begun:
            begun.append(text)
            # Each in a session of its own: the scheduler shares cores between sessions first.
            many = range(2 * (os.cpu_count() or 1))
            neighbours.extend(subprocess.Popen(busy, start_new_session=True) for _ in many)

    try:
        archive = Archive.open(calibrate(tmp_path / "c.zip", quick=True, nbs=(64,), progress=tell))
    finally:
        tell("", 1.0)
    (met,) = [
        entry
        for entry in archive.json("blocks.json")
        if (entry["block"], entry["name"], entry["attempt"]) == (1, "hpl_steps_1x1_all", 0)
    ]
    assert any(cause.startswith("cpu: other processes used") for cause in met["causes"])
    calls = archive.table(KERNELS)
    of_all = (calls["probe"] == "hpl_steps_1x1") & (calls["active_cores"] == calls["active_cores"].max())
    rows = of_all & (calls["block"] == 1) & (calls["attempt"] == 0)
    assert rows.any()
    assert calls.loc[rows, "disturbed"].all()
    (kept,), short = without_disturbed([calls], ("probe", "cpu"))
    if not short:  # where more than these neighbours disturbed the machine, all that there is has to do
        assert not kept.index.isin(calls.index[rows]).any()


def test_predict_loads_no_heavy_package() -> None:
    code = (
        "import sys; from lepaute.cli.main import main; "
        "main(['predict', 'hpl', '-p', 'dahu', '--n', '1000', '--runs', '1', '--json']); "
        "heavy = {'numpy', 'pandas', 'scipy', 'matplotlib', 'pyarrow', 'rich'} & set(sys.modules); "
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    result = ran([sys.executable, "-c", code])
    assert result.returncode == 0, result.stderr


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
