"""Real sshd's: the ssh scheduler, and experiments over it."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from farms.fixtures import Start
from farms.sshd import SshdFarm, sshd_farm
from support_disk import small_disk
from support_limits import HANG_S, wait_until
from support_nodes import check_stream
from support_run import rows_of, run_here, run_lepaute, start_lepaute, wait_for_rows

from lepaute.errors import InputError
from lepaute.measure.archive import Archive
from lepaute.measure.schedulers import NodeAddress, Request, scheduler

pytestmark = pytest.mark.nodes


def _quiet(text: str) -> None:
    """Hears what is waited for."""


def _run(node: NodeAddress, *words: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(node.argv(words), capture_output=True, timeout=HANG_S, check=False)


def _nodes(farm: SshdFarm, nodes: str) -> tuple[NodeAddress, ...]:
    return scheduler("ssh").acquire(Request(nodes=nodes, ssh_config=farm.ssh_config), _quiet).nodes


def test_each_node_of_a_set_is_reached_under_its_own_name(ssh_nodes: SshdFarm) -> None:
    nodes = _nodes(ssh_nodes, "node[1-4],node2")
    assert [node.name for node in nodes] == ["node1", "node2", "node3", "node4"]
    for node in nodes:
        done = _run(node, "printenv", "LEPAUTE_NODE")
        assert (done.stdout.decode(), done.stderr, done.returncode) == (f"{node.name}\n", b"", 0)


def test_bytes_pass_unharmed_both_ways_and_a_short_message_is_not_held_back(ssh_nodes: SshdFarm, start: Start) -> None:
    (node,) = _nodes(ssh_nodes, "node3")
    check_stream(start(node, "cat"))


def test_words_arrive_as_they_were_given_and_no_shell_reads_them(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    (node,) = _nodes(ssh_nodes, "node1")
    mark = tmp_path / "mark"
    words = [
        "a b", "", "'", '"', f"$(touch {mark})", f"; touch {mark}", f"`touch {mark}`", "line\nbreak", "é~*?[x]",
        "-o",
    ]  # fmt: skip
    done = _run(node, "printf", "%s\\0", *words)
    assert done.stdout.decode().split("\0")[:-1] == words
    assert not mark.exists()


def test_a_program_whose_name_looks_like_an_option_is_not_an_option_of_ssh(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    (node,) = _nodes(ssh_nodes, "node1")
    mark = tmp_path / "mark"
    done = _run(node, f"-oProxyCommand=touch {mark}")
    assert done.returncode == 127  # the node's shell finds no such command
    assert not mark.exists()


def test_a_host_whose_key_is_unknown_is_refused_without_a_question(tmp_path: Path) -> None:
    with sshd_farm(tmp_path / "farm", ["node1"]) as farm:
        (farm.folder / "known_hosts").write_text("")
        (node,) = _nodes(farm, "node1")
        done = _run(node, "true")
    assert done.returncode == 255
    assert b"Host key verification failed" in done.stderr


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (Request(), "nodes"),
        (Request(nodes="a", count=2), "count"),
        (Request(nodes="a", queue="q"), "queue"),
        (Request(nodes="a", image="debian"), "image"),
        (Request(nodes="a", ssh_config=Path("/no/such/file")), "ssh-config"),
    ],
)
def test_what_ssh_lacks_or_has_no_use_for_is_named(request_: Request, named: str) -> None:
    with pytest.raises(InputError, match=named):
        scheduler("ssh").acquire(request_, _quiet)


SCRIPTS = Path(__file__).parent.parent.parent / "examples" / "experiments"
NODES = "node[1-4]"


@pytest.fixture
def farm(tmp_path: Path):
    with sshd_farm(tmp_path / "farm", [f"node{index}" for index in range(1, 5)]) as found:
        yield found


def ssh_options(farm: SshdFarm) -> list[str]:
    return ["--nodes", NODES, "--ssh-config", str(farm.ssh_config), "-o", "x.zip"]


def test_the_demo_experiment_runs_on_all_hosts_and_leaves_a_whole_archive(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    done = run_lepaute(
        "run", SCRIPTS / "memory_copy.py", "--set", "replications=2", *ssh_options(ssh_nodes), folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    assert archive.metadata["status"] == "complete"
    # 8 sizes, 2 replications, 4 nodes.
    assert rows_of(archive) == dict.fromkeys(["node1", "node2", "node3", "node4"], 16)
    members = set(archive.members())
    for node in ("node1", "node2", "node3", "node4"):
        assert {f"environment/{node}/cpuinfo.txt", f"environment/{node}/variables.json"} <= members
        assert f"monitoring/{node}.parquet" in members
    table = archive.table("observations/observations.parquet")
    assert (table["duration_s"] > 0).all()
    assert set(table["design_row"]) == set(range(16))
    assert not (tmp_path / "x.work").exists()
    assert run_here("archive", "verify", "x.zip", folder=tmp_path).returncode == 0


@pytest.mark.parametrize("fault", ["kill", "cut"])
def test_a_host_that_fails_loses_its_own_further_rows_and_nothing_else(farm, slow, tmp_path, fault):
    running = start_lepaute("run", slow, *ssh_options(farm), folder=tmp_path)
    wait_for_rows(tmp_path, 12)
    getattr(farm, fault)("node3")
    out, complaints = running.communicate(timeout=HANG_S)
    assert running.returncode == 1, complaints
    archive = Archive.open(tmp_path / "x.zip")
    rows = rows_of(archive)
    assert rows["node1"] == rows["node2"] == rows["node4"] == 20
    assert 3 <= rows["node3"] < 20
    (lost,) = archive.metadata["lost_nodes"]
    assert lost["node"] == "node3"
    assert any("node3 was lost" in warning for warning in archive.metadata["warnings"])
    assert "x.zip: incomplete, " in out
    assert out.rstrip().endswith(", node3 lost")
    # Also where only the connection was cut: the agent there has cleaned up.
    wait_until(lambda: not farm.processes("node3"), "end of the processes of node3")


def test_when_every_host_is_gone_what_was_measured_is_archived_and_said(farm, slow, tmp_path):
    running = start_lepaute("run", slow, "--set", "replications=40", *ssh_options(farm), folder=tmp_path)
    wait_for_rows(tmp_path, 12)
    for name in farm.names:
        farm.kill(name)
    _, complaints = running.communicate(timeout=HANG_S)
    assert running.returncode == 1
    assert "no node is left" in complaints
    assert "Traceback" not in complaints
    archive = Archive.open(tmp_path / "x.partial.zip")
    assert archive.metadata["status"] == "failed"
    assert sum(rows_of(archive).values()) >= 12
    assert len(archive.metadata["lost_nodes"]) == 4


def test_a_killed_engine_leaves_what_it_had_and_goes_on_from_there(farm: SshdFarm, slow: Path, tmp_path: Path) -> None:
    running = start_lepaute("run", slow, *ssh_options(farm), folder=tmp_path)
    wait_for_rows(tmp_path, 12)
    running.kill()
    running.communicate()
    wait_until(lambda: not any(map(farm.processes, farm.names)), "end of the agents, whose engine is gone")
    closed = run_here("archive", "close", "x.work", folder=tmp_path)
    assert closed.returncode == 0, closed.stderr
    partial = Archive.open(tmp_path / "x.partial.zip")
    assert partial.metadata["status"] == "partial"
    before = sum(rows_of(partial).values())
    assert before >= 12
    resumed = run_here("run", slow, *ssh_options(farm), "--resume", folder=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    archive = Archive.open(tmp_path / "x.zip")
    table = archive.table("observations/observations.parquet")
    # The row that was being measured is measured again: its earlier observations stay, nothing is thrown away.
    assert set(table["design_row"]) == set(range(20))
    assert table.groupby(["design_row", "node"]).size().between(1, 2).all()
    assert [session.get("status") for session in archive.metadata["sessions"]] == [None, "complete"]
    order = table["design_row"].drop_duplicates().tolist()
    assert order == sorted(order), "the shuffled order of the design was not kept"


def test_an_interrupt_archives_what_there_is_and_leaves_no_process(farm: SshdFarm, slow: Path, tmp_path: Path) -> None:
    running = start_lepaute("run", slow, *ssh_options(farm), folder=tmp_path)
    wait_for_rows(tmp_path, 8)
    os.killpg(running.pid, signal.SIGINT)
    out, complaints = running.communicate(timeout=HANG_S)
    assert running.returncode == 130
    assert "partial" in out
    assert "--resume" in complaints
    assert not any(farm.processes(name) for name in farm.names)
    assert Archive.open(tmp_path / "x.partial.zip").metadata["partial"] is True


def test_two_jobs_at_once_on_the_same_hosts_do_not_collide(ssh_nodes: SshdFarm, tmp_path: Path) -> None:
    script = SCRIPTS / "memory_copy.py"
    options = ["--nodes", NODES, "--ssh-config", ssh_nodes.ssh_config, "--set", "replications=1"]
    both = [start_lepaute("run", script, *options, folder=tmp_path) for _ in range(2)]
    for running in both:
        _, complaints = running.communicate(timeout=HANG_S)
        assert running.returncode == 0, complaints
    archives = sorted(tmp_path.glob("memory_copy-*.zip"))
    assert len(archives) == 2
    assert all(sum(rows_of(Archive.open(path)).values()) == 32 for path in archives)


@pytest.fixture(name="small_disk")
def mounted(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small"):
        yield tmp_path / "small"


def test_a_host_whose_disk_is_full_loses_its_own_rows(farm: SshdFarm, small_disk: Path, tmp_path: Path) -> None:
    interpreter = tmp_path / "python-on-node"
    interpreter.write_text(
        f'#!/bin/sh\n[ "$LEPAUTE_NODE" != node2 ] || export TMPDIR={small_disk}\nexec {shutil.which("python3")} "$@"\n'
    )
    interpreter.chmod(0o755)
    script = tmp_path / "filling.py"
    script.write_text(
        """
import lepaute as lp

class Filling(lp.Job):
    def design(self):
        return lp.design.full_factorial({"number": [1, 2, 3, 4]}, seed=self.seed)

    def run(self):
        for row in self.rows():
            for node in self.nodes.shell('head -c 400000 /dev/zero > "$1"', row["number"]):
                self.record(node=node)
"""
    )
    done = run_here("run", script, *ssh_options(farm), "--python", interpreter, folder=tmp_path)
    assert done.returncode == 1, done.stderr
    archive = Archive.open(tmp_path / "x.zip")
    assert rows_of(archive) == {"node1": 4, "node2": 2, "node3": 4, "node4": 4}
    (lost,) = archive.metadata["lost_nodes"]
    assert lost["node"] == "node2"
    assert "No space left" in lost["why"]


def test_a_full_disk_at_the_engine_ends_the_run_with_one_line_and_loses_nothing_written(slow, small_disk, tmp_path):
    script = tmp_path / "large.py"
    script.write_text(
        """
import lepaute as lp

class Large(lp.Job):
    monitor_period_s = 0.0

    def design(self):
        return lp.design.full_factorial({"number": list(range(2000))}, seed=self.seed)

    def run(self):
        for row in self.rows():
            self.record(text="x" * 4000)
"""
    )
    done = run_lepaute("run", "-q", script, "-o", small_disk / "x.zip", folder=tmp_path)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr
    rows = (small_disk / "x.work" / "raw" / "observations.csv").read_text().count("\n")
    assert rows > 100
    shutil.copytree(small_disk / "x.work", tmp_path / "x.work")
    closed = run_here("archive", "close", "x.work", folder=tmp_path)
    assert closed.returncode == 0, closed.stderr
    table = Archive.open(tmp_path / "x.partial.zip").table("observations/observations.parquet")
    assert len(table) >= rows - 4  # a head of two lines, the names, and the row that no longer fitted


@pytest.mark.slow
@pytest.mark.long
def test_a_clock_that_is_set_on_one_host_is_noticed_named_and_marked(farm, slow, tmp_path):
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        pytest.skip("libfaketime is not installed, with which a process is given another clock")
    ahead = tmp_path / "ahead"
    ahead.write_text("+0")
    interpreter = tmp_path / "python-on-node"
    interpreter.write_text(
        f"#!/bin/sh\n"
        f'[ "$LEPAUTE_NODE" = node2 ] || exec {shutil.which("python3")} "$@"\n'
        f"export LD_PRELOAD={library} FAKETIME_TIMESTAMP_FILE={ahead} DONT_FAKE_MONOTONIC=1 FAKETIME_NO_CACHE=1\n"
        f'exec {shutil.which("python3")} "$@"\n'
    )
    interpreter.chmod(0o755)
    running = start_lepaute(
        "run", slow, *ssh_options(farm), "--python", interpreter, "--monitor", "0.1", folder=tmp_path
    )
    wait_for_rows(tmp_path, 16)
    ahead.write_text("+5")
    _, complaints = running.communicate(timeout=HANG_S)
    assert running.returncode == 0, complaints
    archive = Archive.open(tmp_path / "x.zip")
    told = [warning for warning in archive.metadata["warnings"] if "clock" in warning]
    assert told, archive.metadata["warnings"]
    assert all(warning.startswith("node2") for warning in told)
    table = archive.table("observations/observations.parquet")
    marked = table[table["machine_changed"].str.contains("clock step")]
    assert set(marked["node"]) <= {"node2"}
