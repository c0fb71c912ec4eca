"""`lepaute clocks` as a user calls it: mpiruns here and between sshd hosts, a simulation, and its archives again."""

import json
import os
import signal
from pathlib import Path

import pytest
from farms.slurm import SlurmFarm
from farms.sshd import SshdFarm
from long_tests import long_but
from oracles.recorded_hpl import library_named
from support_limits import HANG_S, wait_until
from support_run import run_here, run_lepaute, start_lepaute

from lepaute.measure.archive import Archive
from lepaute.measure.clocks.campaign import measure_clocks
from lepaute.measure.clocks.comparison import compared
from lepaute.measure.clocks.request import MPIRUNS, ClockRequest, synchronisations
from lepaute.measure.schedulers import Request

FEW = ("--after", "0,1", "--mpiruns", "2")


@pytest.fixture(params=long_but(["openmpi", "mpich"], "openmpi"))
def library(request: pytest.FixtureRequest) -> str:
    return library_named(request.param).family


@pytest.mark.machine
def test_the_true_error_is_known_where_all_ranks_read_one_clock(library: str, tmp_path: Path) -> None:
    files = ("-o", "c.zip", "--plot", "c.png", "--report", "c.html", "--json")
    done = run_lepaute("clocks", library, *FEW, *files, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["error_is_known"]
    assert found["mpiruns"] == 2
    rows = synchronisations(Archive.open(tmp_path / "c.zip"))
    assert set(rows["method"]) == {"SKaMPI", "Netgauge", "JK", "HCA", "HCA2", "HCA3"}
    assert len(rows) == 2 * 6 * 2
    assert (rows["true_offset_ns"] == 0).all()
    # Whatever the machine does meanwhile: the truth lies within half of the round trip of a look at it, whose two ends
    # are read within the time that reading a clock takes; SKaMPI's model within the bound that it states.
    off_ns = (rows["shortest_error_ns"] - rows["true_error_ns"]).abs()
    steady = rows["method"].isin(["SKaMPI", "Netgauge"])  # no slope that the look's moment could matter to
    assert (off_ns <= rows["half_round_trip_ns"] + 2)[steady].all()
    direct = rows[rows["method"] == "SKaMPI"]
    assert (direct["true_error_ns"].abs() <= direct["bound_ns"] + 2).all()
    assert (rows["checked_s"] >= rows["after_s"] - 1e-3).all()
    starts = Archive.open(tmp_path / "c.zip").table(MPIRUNS)
    assert starts["order"].nunique() == 2  # shuffled in each block
    assert (tmp_path / "c.png").stat().st_size > 10_000
    page = (tmp_path / "c.html").read_text()
    assert found["answer"].split(" (")[0][1:] in page
    # The archive again, by itself, says the same; with a larger tolerance the cheapest method is enough.
    again = run_here("clocks", "c.zip", "--json", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == found


@pytest.mark.nodes
def test_clocks_of_hosts_that_drift_are_measured_by_messages_as_they_are(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    """Three hosts by ssh, whose clocks are made up to a second apart from the one that they share, drifting by up to
    50 ppm: what messages say lies within half a round trip of the truth, and what the drift makes of it meanwhile."""
    hostfile = tmp_path / "hosts"
    hostfile.write_text("node1 slots=1\nnode2:1\nnode3\n")
    asked = ClockRequest(
        methods=("SKaMPI", "HCA3"), after_s=(0.0, 2.0), ranks=3, mpiruns=1, drift_ppm=50.0, clock="clock_gettime"
    )
    request = Request(nodes="node[1-3]", ssh_config=ssh_nodes.ssh_config)
    path = measure_clocks(tmp_path / "hosts.zip", asked, scheduler="ssh", request=request)
    archive = Archive.open(path)
    rows = synchronisations(archive)
    assert len(rows) == 2 * 2 * 2
    assert (rows["true_offset_ns"].abs() > 1e5).all()
    assert rows["true_error_ns"].notna().all()
    off_ns = (rows["shortest_error_ns"] - rows["true_error_ns"]).abs()
    # Between the look and the reading of the truth a rank waits at most as long as a look at all ranks takes.
    assert (off_ns <= rows["half_round_trip_ns"] + 50e-6 * 60e9).all()
    found = compared(archive)
    assert found.about.nodes == ("node1", "node2", "node3")
    assert found.about.ranks == 3

    ssh = ("--ssh-config", ssh_nodes.ssh_config)
    done = run_here(
        "clocks", "--hostfile", "hosts", *ssh, "--methods", "SKaMPI", *FEW, "-o", "real.zip", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "3 ranks on node[1-3]" in done.stdout
    # Hosts do not know that they share a clock: no truth is claimed.
    assert "by messages" in done.stdout
    assert synchronisations(Archive.open(tmp_path / "real.zip"))["true_error_ns"].isna().all()


@pytest.mark.machine
@pytest.mark.slow
def test_a_simulation_says_what_was_asked_of_it(tmp_path: Path) -> None:
    words = ("--simulate", "3,10,0.1", "--mpiruns", "2", "--after", "0,5", "--methods", "skampi,hca3")
    done = run_lepaute("clocks", *words, "-o", "s.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Take ")
    assert "3 ranks simulated on dahu-2020-01, clocks drifting by up to 10 ppm, which wanders by 0.1 ppm" in done.stdout
    rows = synchronisations(Archive.open(tmp_path / "s.zip"))
    assert len(rows) == 2 * 2 * 2 * 2
    assert rows["true_error_ns"].notna().all()
    # Who learns the drift, of 10 ppm at most, is nearer after 5 s than who knows the offset alone.
    error_ns = rows[rows["after_s"] == 5].groupby("method")["true_error_ns"].agg(lambda each: each.abs().median())
    assert error_ns["HCA3"] < error_ns["SKaMPI"]
    again = run_here("clocks", *words, "-o", "t.zip", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    other = synchronisations(Archive.open(tmp_path / "t.zip"))
    assert rows.equals(other)  # the same seed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--simulate", "64"), "--simulate is '64'; give ranks and drift in ppm, such as 64,1"),
        (("--simulate", "4,20000"), "a drift of 20000 ppm; give 0 to 10000"),
        (("--methods", "NTP"), "--methods: 'NTP' is none of SKaMPI, Netgauge, JK, HCA, HCA2, HCA3"),
        (("--after", "5,10"), "--after is 5,10; give 0 and up to 7 increasing times"),
        (("--np", "1"), "--np"),
        (("--platform", "dahu"), "--platform is of a simulation; give --simulate, too"),
        (("--ranks-per-node", "2"), "--ranks-per-node applies to nodes"),
        (("--hostfile", "hosts", "--nodes", "n1"), "a hostfile names the nodes"),
        (("--clock", "sundial"), "--clock is 'sundial'; it is one of"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_status_2(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node1\n")
    done = run_here("clocks", *words, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "clocks.zip").exists()


def test_an_archive_of_another_kind_is_refused(tmp_path: Path) -> None:
    from lepaute.measure.archive import ArchiveWriter

    with ArchiveWriter(tmp_path / "other.zip", {"kind": "calibration", "created": "2026-11-27T00:00:00Z"}):
        pass
    done = run_here("clocks", "other.zip", folder=tmp_path)
    assert done.returncode == 2
    assert "is of kind 'calibration', not of clocks" in done.stderr


@pytest.mark.nodes
@pytest.mark.long
@pytest.mark.slow
def test_ranks_of_a_slurm_job_are_measured(slurm: SlurmFarm, tmp_path: Path) -> None:
    words = ("--scheduler", "slurm", "--count", "2", "--ranks-per-node", "2", "--np", "3", "--walltime", "0:05:00")
    done = run_here("clocks", *words, *FEW, "--methods", "SKaMPI,JK", "-o", "s.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "s.zip")
    assert len(synchronisations(archive)) == 2 * 2 * 2 * 2
    assert compared(archive).about.ranks == 3
    assert archive.metadata["scheduler"]["scheduler"] == "slurm"


@pytest.mark.nodes
@pytest.mark.long
@pytest.mark.slow
def test_another_library_starts_its_ranks_on_hosts(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    ssh = ("--nodes", "node[1-2]", "--ssh-config", ssh_nodes.ssh_config, "--ranks-per-node", "2")
    done = run_here("clocks", "mpich", *ssh, *FEW, "--methods", "Netgauge,HCA2", "-o", "m.zip", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 ranks on node[1-2], MPICH" in done.stdout


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.long
def test_a_measurement_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """Killed in its second mpirun: what it had can be archived, and --resume measures the rest in the same orders."""
    words = ("clocks", "--methods", "SKaMPI,Netgauge", "--after", "0,2", "--mpiruns", "3", "-o", "r.zip")
    running = start_lepaute(*words, folder=tmp_path)
    journal = tmp_path / "r.work" / "mpiruns.jsonl"
    wait_until(lambda: journal.is_file() and journal.read_text().count("\n") >= 1, "the first mpirun")
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=HANG_S)
    closed = run_here("archive", "close", "r.work", folder=tmp_path)
    assert closed.returncode == 0, closed.stderr
    partial = compared(Archive.open(tmp_path / "r.partial.zip"))
    assert 1 <= partial.mpiruns < 3
    other = run_here(*words[:-4], "--mpiruns", "4", "-o", "r.zip", "--resume", folder=tmp_path)
    assert other.returncode == 2
    assert "the measurement was begun with other mpiruns (3, now 4)" in other.stderr
    done = run_here(*words, "--resume", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "r.zip")
    starts = archive.table(MPIRUNS)
    complete = starts[starts["failure"] == ""]
    assert complete["block"].tolist() == [0, 1, 2]
    asked = ClockRequest(methods=("SKaMPI", "Netgauge"))
    assert complete["order"].tolist() == [",".join(asked.order(block, 1)) for block in range(3)]
    assert compared(archive).mpiruns == 3


@pytest.mark.nodes
def test_more_ranks_than_nodes_have_slots_are_refused_and_few_ranks_leave_nodes_out(ssh_nodes, tmp_path):
    ssh = ("--nodes", "node[1-3]", "--ssh-config", ssh_nodes.ssh_config, "--methods", "SKaMPI", *FEW)
    done = run_here("clocks", *ssh, "--np", "7", "--ranks-per-node", "2", folder=tmp_path)
    assert done.returncode == 2
    assert "--np is 7; the nodes have 6 slots" in done.stderr
    assert not list(tmp_path.iterdir())
    done = run_here("clocks", *ssh, "--np", "2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 ranks on node[1-2]" in done.stdout
