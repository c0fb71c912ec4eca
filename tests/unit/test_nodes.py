"""Commands and files on nodes, through real agents."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support_limits import HANG_S, wait_until, within
from support_nodes import Remembered, local_nodes

from lepaute.errors import InputError
from lepaute.kit.sessions import session_members
from lepaute.measure.nodes import channel as channels
from lepaute.measure.nodes import group
from lepaute.measure.nodes.channel import Channel, NodeLost, NodeRefused
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.pool import Pool, clock_offset
from lepaute.measure.nodes.results import MAX_OUTPUT_BYTES, CommandFailed
from lepaute.measure.schedulers.types import NodeAddress


def unique() -> str:
    return f"lepaute-test-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def nodes():
    with local_nodes(["alpha", "beta", "gamma"], unique()) as found:
        yield found


printable = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=40)


@given(st.lists(printable, min_size=1, max_size=4))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_words_reach_the_program_as_they_are(nodes, words):
    assert nodes["alpha"].run("printf", "%s\\0", *words).stdout.split("\0")[:-1] == words


@pytest.mark.parametrize("word", ["a b", "'", '"; rm -rf /tmp/x', "$(id)", "`id`", "a\nb", "-n", "*", "\\", "é\u202e"])
def test_arguments_of_a_shell_script_are_no_part_of_its_text(nodes, word):
    assert nodes["beta"].shell('printf "%s" "$1"', word).stdout == word


def test_a_node_reached_through_a_shell_gets_the_same_words():
    hostile = "a'; touch /tmp/lepaute-must-not-be-there; echo '"
    through_shell = NodeAddress("host", prefix=("sh", "-c"), joined=True)
    with Pool([through_shell], python=sys.executable, folder=unique()) as pool:
        assert Nodes(pool.channels, Remembered()).run("printf", "%s", hostile).stdout == hostile
    assert not Path("/tmp/lepaute-must-not-be-there").exists()


def test_a_failure_names_node_status_and_the_programs_last_words(nodes):
    with pytest.raises(
        CommandFailed, match=re.escape("command 'sh' failed on beta (exit status 3: so it is)")
    ) as caught:
        nodes["beta"].shell("echo so it is >&2; exit 3")
    assert caught.value.result.returncode == 3


def test_a_program_that_takes_too_long_is_ended_with_its_children(nodes):
    result = nodes["alpha"].run("sh", "-c", "sleep 100.5 & sleep 100.5", check=False, timeout_s=0.3).only
    assert result.timed_out
    assert not result.ok
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if "100.5" in cmdline(pid)]


def cmdline(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_what_a_program_leaves_running_is_ended_and_told_and_one_that_closes_its_output_waited_for(nodes):
    result = nodes["alpha"].shell("sleep 77.25 & echo done").only
    assert (result.stdout, result.left_behind) == ("done\n", 1)
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if "77.25" in cmdline(pid)]
    result = nodes["alpha"].shell("exec >&- 2>&-; sleep 0.3; exit 4", check=False).only
    assert result.returncode == 4
    assert result.duration_s > 0.25


def test_long_output_is_kept_at_both_ends_and_a_command_sees_the_variables_it_is_given(nodes):
    text = nodes["alpha"].shell("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last").stdout
    assert text.startswith("first\n")
    assert text.endswith("\nlast\n")
    assert "bytes cut" in text
    assert len(text) < MAX_OUTPUT_BYTES + 100
    variables = {"LEPAUTE_TEST": "a b", "MORE": "!"}
    assert nodes["alpha"].shell('printf "%s" "$LEPAUTE_TEST$MORE"', environment=variables).stdout == "a b!"
    assert not nodes["alpha"].shell('printf "%s" "$LEPAUTE_TEST"').stdout


def test_files_go_there_and_back_whole_or_are_refused_and_leave_nothing(nodes):
    content = os.urandom(300_000)
    nodes.write("deep/er/file.bin", content, mode=0o755)
    assert nodes.read("deep/er/file.bin") == dict.fromkeys(nodes.names, content)
    assert nodes["alpha"].run("test", "-x", "deep/er/file.bin").only.ok
    nodes["alpha"].write("plain", "x")
    with pytest.raises(NodeRefused, match=r"alpha: .*Not a directory|File exists"):
        nodes["alpha"].write("plain/below", os.urandom(400_000))
    assert "incoming" not in nodes["alpha"].run("ls", "-a").stdout
    assert nodes["alpha"].run("echo", "still there").stdout == "still there\n"
    nodes["alpha"].write("big", b"x" * 1000)
    with pytest.raises(NodeRefused, match="more than the 100"):
        nodes["alpha"].read("big", most_bytes=100)
    with pytest.raises(NodeRefused, match="No such file"):
        nodes["alpha"].read("nothing")


def test_what_a_program_writes_is_seen_while_it_runs(nodes):
    (channel,) = nodes["alpha"].channels
    seen: list[bytes] = []

    def follow(_node: str, _file: str, piece: bytes) -> None:
        seen.append(piece)
        Path(channel.folder, "seen").touch()

    # It does not end before its first line was seen.
    nodes["alpha"].shell(
        "echo 1 >> grows; until [ -e seen ]; do sleep 0.02; done; echo 2 >> grows; echo 3 >> grows",
        follow={"grows": follow}, timeout_s=HANG_S,
    )  # fmt: skip
    assert seen[0] == b"1\n"
    assert b"".join(seen) == b"1\n2\n3\n"


def test_groups_are_chosen_by_name_position_and_slice(nodes):
    assert nodes["beta"].names == ("beta",)
    assert nodes[0].names == ("alpha",)
    assert nodes[-1].names == ("gamma",)
    assert nodes[1:].names == ("beta", "gamma")
    assert [node.names for node in nodes] == [("alpha",), ("beta",), ("gamma",)]
    with pytest.raises(InputError, match="there is no node 'delta'"):
        nodes["delta"]


def test_a_node_that_is_killed_takes_only_its_own_result_along():
    lost: list[tuple[str, str]] = []
    with local_nodes(["alpha", "beta"], unique(), lost) as two:
        (doomed,) = two["beta"].channels
        assert doomed.hello.pid > 0
        two.run("sh", "-c", "true")
        os.kill(doomed.hello.pid, signal.SIGKILL)
        assert list(two.run("sleep", "0.3")) == ["alpha"]
        assert [node for node, _ in lost] == ["beta"]
        assert two.names == ("alpha",)
        with pytest.raises(NodeLost, match="no node is left"):
            two["beta"].run("true")


def test_a_node_that_hangs_is_given_up(monkeypatch):
    lost: list[tuple[str, str]] = []
    with local_nodes(["alpha", "beta"], unique(), lost) as two:
        (hanging,) = two["beta"].channels
        os.kill(hanging.hello.pid, signal.SIGSTOP)
        two["alpha"].run("true")
        monkeypatch.setattr(channels, "SILENCE_S", 0.2)
        wait_until(lambda: hanging.check_alive() or hanging.lost, "the loss of beta")
        assert "silent" in dict(lost)["beta"]


def test_when_the_engine_is_gone_the_agent_ends_what_it_started_and_removes_its_folder():
    script = f"""
import os, sys, time
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from support_nodes import Remembered, local_nodes
with local_nodes(["alpha"], {(folder := unique())!r}) as nodes:
    print(nodes.channels[0].hello.pid, nodes.channels[0].folder, flush=True)
    nodes.run("sleep", "55.125")
"""
    engine = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid, place = engine.stdout.readline().split()
    wait_until(
        lambda: any("55.125" in cmdline(path) for path in Path("/proc").glob("[0-9]*") if path.name != pid),
        "the sleeper",
    )
    engine.kill()
    engine.wait()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the agent")
    sleepers = [path for path in Path("/proc").glob("[0-9]*") if "sleep\x0055.125" in cmdline(path)]
    assert not sleepers
    assert not Path(place).exists()
    assert folder in place


def test_a_greeting_of_the_nodes_shell_is_passed_over():
    greeting = ("sh", "-c", 'echo "Welcome! {not json}"; echo; exec "$@"', "sh")
    with Pool([NodeAddress("chatty", prefix=greeting)], python=sys.executable, folder=unique()) as pool:
        assert pool.channels[0].hello.pid > 0


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        (("sh", "-c", "echo kex_exchange: no way >&2; exit 255"), "far: kex_exchange: no way"),
        (("no-such-program",), "far: no-such-program cannot be started"),
        (("sh", "-c", "yes"), "no greeting of an agent"),
        (("true",), "far: the connection ended"),
    ],
)
def test_a_node_that_cannot_be_reached_is_told_with_the_reason(prefix, told):
    with (
        pytest.raises(NodeLost, match=told),
        Pool([NodeAddress("far", prefix=prefix), NodeAddress("near")], python=sys.executable, folder=unique()),
    ):
        pytest.fail("it was reached")


def test_what_is_no_message_ends_the_connection_and_nothing_else():
    for garbage in (
        b'{"event":"out","id":1,"size":99999999}\n',
        b"[1]\n",
        b"\xff\xfe\n",
        b'{"event":"monitor"}\n',
        b"{" * 5000 + b"\n",
    ):
        channel = Channel(
            NodeAddress("rogue", prefix=(sys.executable, "-c", ROGUE.format(garbage=garbage))), python="x"
        )
        channel.wait_until_there(HANG_S)
        wait_until(lambda channel=channel: channel.lost is not None, "the loss of the rogue")
        _, answer = channel.ask({"do": "ping"})
        with pytest.raises(NodeLost):
            answer.result(HANG_S)


#: Greets like an agent, then sends garbage.
ROGUE = """
import re, sys
i = sys.stdin.buffer
program = i.read(int(i.readline())).decode()
nonce = re.search(r"main\\('([0-9a-f]+)'", program).group(1)
o = sys.stdout.buffer
hello = b'{{"event":"hello","pid":1,"boot":"x","temporary":"/tmp","nonce":"'
o.write(hello + nonce.encode() + b'"}}\\n' + {garbage!r})
o.flush()
"""


def test_a_node_that_fails_where_others_do_not_is_given_up_where_that_is_wanted():
    lost: list[tuple[str, str]] = []
    with local_nodes(["alpha", "beta"], unique(), lost) as two:
        sparing = Nodes(two.channels, Remembered(), spares=lambda: True)
        two["beta"].write("flag", "")
        assert list(sparing.shell("test ! -e flag || { echo it is full >&2; exit 1; }")) == ["alpha"]
        assert sparing.names == ("alpha",)
        assert lost == [("beta", "sh failed: exit status 1: it is full")]
        with pytest.raises(CommandFailed, match="command 'false' failed on alpha"):
            sparing.run("false")  # all that are left fail: nobody's own misfortune


def test_the_agent_survives_requests_that_make_no_sense(nodes):
    (channel,) = nodes["alpha"].channels
    for message in ({"do": "dance"}, {"do": "call", "what": "nothing"}, {"do": "start"}, {"do": "put"}, {"do": "get"}):
        _, answer = channel.ask(message)
        assert "error" in answer.result(HANG_S)
    assert nodes["alpha"].run("echo", "alive").stdout == "alive\n"


def test_an_interrupted_wait_ends_the_programs_on_all_nodes(nodes, monkeypatch):
    (first, *_) = nodes.channels
    real = first.ask

    def interrupted(message, payload=b"", on_piece=None):
        number, answer = real(message, payload, on_piece)

        class Interrupting:
            def result(self, timeout=None):
                if timeout is None:
                    time.sleep(0.2)
                    raise KeyboardInterrupt
                return answer.result(timeout)

            def done(self):
                return answer.done()

        return number, Interrupting()

    monkeypatch.setattr(first, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nodes.run("sleep", "66.75")
    assert not [path for path in Path("/proc").glob("[0-9]*") if "sleep\x0066.75" in cmdline(path)]


def test_a_node_that_stands_still_in_an_interrupted_request_does_not_hold_up_the_end():
    def interrupt() -> None:
        wait_until(channel._outgoing.full, "a full queue")
        time.sleep(0.2)  # then it is the kernel that holds it
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with within("the end of a node that stands still"), local_nodes(["still"], unique()) as nodes:
        (channel,) = nodes.channels
        agent = channel.hello.pid
        os.kill(agent, signal.SIGSTOP)
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            nodes.write("large", b"x" * 10_000_000)
    assert not Path("/proc", str(agent)).exists()


def test_whoever_follows_a_file_and_fails_is_not_waited_for_in_vain():
    def fail(_node: str, _file: int, _piece: bytes) -> None:
        raise InputError("no such piece")

    with (
        local_nodes(["n"], unique()) as nodes,
        within("the end of the command"),
        pytest.raises(NodeLost, match="no such piece"),
    ):
        nodes.run("sh", "-c", "echo a > f; sleep 3600", follow={"f": fail})


def read_ten(nodes: Nodes) -> None:
    nodes.write("f", "x")
    assert nodes.read("f", most_bytes=10) == {}
    nodes.run("true")  # the node is lost


@pytest.mark.parametrize(
    ("honest", "dishonest", "ask", "told"),
    [
        (b"            emit(piece)", b"            emit(65536000 * piece)", read_ten, "more than the 10 bytes"),
        (b": time.time(), ", b": [1.0], ", lambda nodes: clock_offset(nodes.channels[0]), "no time of its clock"),
        (b"followed, emit, facts) - began_s", b"followed, emit, facts),", lambda nodes: nodes.run("true"),
         "no result of true"),
    ],
)  # fmt: skip
def test_a_node_that_answers_with_more_or_other_types_is_given_up(honest, dishonest, ask, told, monkeypatch):
    ours = channels.agent_program

    def hostile(nonce: str, root: str = "/") -> bytes:
        program = ours(nonce, root).partition(b"\n")[2]
        assert honest in program
        program = program.replace(honest, dishonest)
        return str(len(program)).encode() + b"\n" + program

    monkeypatch.setattr(channels, "agent_program", hostile)
    lost: list[tuple[str, str]] = []
    with local_nodes(["n"], unique(), lost) as nodes, pytest.raises(NodeLost):
        ask(nodes)
    assert told in lost[0][1]


def test_a_node_that_does_not_answer_in_time_is_given_up():
    lost: list[tuple[str, str]] = []
    with local_nodes(["n"], unique(), lost) as nodes:
        channel = nodes.channels[0]
        answer = channel.ask({"do": "start", "argv": ["sleep", "3600"], "folder": None})[1]
        with pytest.raises(NodeLost, match=r"no answer within 0\.01 s"):
            channel.result(answer, 0.01)
    assert "no answer" in lost[0][1]


def test_a_node_that_never_tells_the_end_of_a_command_is_given_up(monkeypatch):
    monkeypatch.setattr(group, "_TELL_S", 0.2)
    with local_nodes(["alpha", "beta"], unique()) as found:
        ask = found["alpha"].channels[0].ask
        found["alpha"].channels[0].ask = lambda *words, **named: (ask(*words, **named)[0], Future())
        with within(HANG_S):
            assert list(found.run("true", timeout_s=0.2)) == ["beta"]
        assert found.names == ("beta",)


def test_no_process_is_left_of_a_session_that_was_killed():
    from lepaute.kit.sessions import kill_session

    process = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"], start_new_session=True)
    wait_until(lambda: len(session_members(process.pid)) >= 2, "both sleepers")
    kill_session(process.pid)
    process.wait()
    assert not session_members(process.pid)
