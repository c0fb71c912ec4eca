"""The ssh scheduler against real sshd's."""

import subprocess
from pathlib import Path

import pytest
from farms.fixtures import Start
from farms.sshd import SshdFarm, sshd_farm
from support_limits import HANG_S, wait_until
from support_nodes import check_stream

from lepaute.errors import InputError
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


def test_a_host_that_dies_ends_its_connection_and_no_other(tmp_path: Path, start: Start) -> None:
    with sshd_farm(tmp_path / "farm", ["node1", "node2"]) as farm:
        first, second = (start(node, "sh", "-c", "echo up; exec cat") for node in _nodes(farm, "node[1-2]"))
        assert (first.stdout.readline(), second.stdout.readline()) == (b"up\n", b"up\n")
        assert len(farm.processes("node1")) == 1
        farm.kill("node1")
        assert first.wait(HANG_S) == 255
        assert farm.processes("node1") == []
        assert second.communicate(b"alive", timeout=HANG_S)[0] == b"alive"
        farm.start("node1")
        (again,) = _nodes(farm, "node1")
        assert _run(again, "true").returncode == 0


def test_a_cut_connection_closes_standard_input_of_what_runs_there(tmp_path: Path, start: Start) -> None:
    with sshd_farm(tmp_path / "farm", ["node1"]) as farm:
        (node,) = _nodes(farm, "node1")
        mark = tmp_path / "input ended"
        process = start(node, "sh", "-c", f"echo up; cat; touch '{mark}'")
        assert process.stdout.readline() == b"up\n"
        # What begins to run while the connection is cut would be cut as well.
        wait_until(lambda: len(farm.processes("node1")) == 2, "shell and cat")
        farm.cut("node1")
        assert process.wait(HANG_S) == 255
        wait_until(mark.exists, "end of input")


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
