"""The agent on a node: how it ends, old interpreters that it runs in, and the silence of its engine."""

import contextlib
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import pytest
from support_limits import HANG_S, ran, wait_until
from support_nodes import Remembered

from lepaute.kit.sessions import kill_session, session_members
from lepaute.measure.node_agent.wire import Silence
from lepaute.measure.nodes import channel
from lepaute.measure.nodes.channel import BESIDE, PACKAGE
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.nodes.pool import Pool
from lepaute.measure.schedulers.types import NodeAddress


class BareAgent:
    """An agent that a test speaks to itself."""

    def __init__(self) -> None:
        _, _, program = channel.agent_program("nonce").partition(b"\n")
        for limit, shorter in {b"ALIVE_S = 5.0": b"ALIVE_S = 0.1", b"CUT_S = 60.0": b"CUT_S = 1.0"}.items():
            assert limit in program, "the limit is called otherwise now"
            program = program.replace(limit, shorter)
        argv = [sys.executable, "-I", "-c", channel._FIRST]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.write(str(len(program)).encode() + b"\n" + program)
        self.read()

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def tell(self, **message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        for stream in (self.process.stdout, self.process.stdin):
            with contextlib.suppress(OSError):
                stream.close()


@pytest.fixture
def agent() -> Iterator[BareAgent]:
    bare = BareAgent()
    yield bare
    bare.close()
    try:
        bare.process.wait(HANG_S)
    finally:
        bare.process.kill()


def started(folder: Path, agent: BareAgent, script: str) -> int:
    """The process, and session, of a shell script that the agent runs in `folder`."""
    agent.tell(do="call", id=1, what="folder", arguments={"path": str(folder)})
    while agent.read().get("id") != 1:  # it is made in a thread of its own
        pass
    agent.tell(do="start", id=2, argv=["sh", "-c", f"echo $$ > pid; {script}"])
    pid = folder / "pid"
    wait_until(lambda: pid.is_file() and pid.read_text().strip(), "the script")
    return int(pid.read_text())


@pytest.mark.parametrize("engine", ["was killed", "stands still"])
def test_an_agent_whose_engine_is_gone_finishes_its_cleaning_up(engine, agent, tmp_path):
    folder = tmp_path / uuid.uuid4().hex
    if engine == "was killed":
        session = started(folder, agent, "trap '' TERM; while :; do sleep 0.1; done")
        # While the program, deaf to SIGTERM, gets its second, the agent finds that nobody reads any more.
        agent.close()
    else:
        # Nothing is read from here on, nor sent, and nothing closed: the connection is full of output.
        session = started(folder, agent, "exec yes")
    agent.process.wait(HANG_S)
    left = session_members(session)
    kill_session(session)
    assert not left
    assert not folder.exists()


#: Where Debian, who compiles, pyenv and uv put interpreters, each named by its version.
INSTALLED = (
    "/usr/bin/python3.*",
    "/usr/local/bin/python3.*",
    "~/.pyenv/versions/*/bin/python3.*",
    "~/.local/share/uv/python/*/bin/python3.*",
)


def interpreters() -> dict[str, str]:
    """Those that are here from Python 3.9 on, by version: at least the one that runs this."""
    found = {}
    for pattern in INSTALLED:
        for path in sorted(Path("/").glob(str(Path(pattern).expanduser().relative_to("/")))):
            named = re.fullmatch(r"python3\.(\d+)", path.name)
            if named and int(named[1]) >= 9:
                found[f"3.{named[1]}"] = str(path)
    return found | {"{}.{}".format(*sys.version_info): sys.executable}


def sources() -> list[Path]:
    beside = [
        resources.files(package).joinpath(f"{module}.py")
        for package, _, module in (name.rpartition(".") for name in BESIDE)
    ]
    inside = [file for file in resources.files(PACKAGE).iterdir() if file.name.endswith(".py")]
    return [Path(str(file)) for file in (*inside, *beside)]


def asking_for_newer_python(files: Sequence[Path]) -> str:
    """What asks for a grammar or a standard library newer than Python 3.9, by file and line; empty if nothing does."""
    words = ["--target=3.9-", "--violations", "--no-tips", "--quiet", *map(str, files)]
    program = [sys.executable, "-c", "import vermin; vermin.main()"]
    done = ran([*program, *words])
    assert done.stderr == ""
    return done.stdout


def test_what_travels_to_nodes_asks_for_no_python_newer_than_3_9() -> None:
    assert asking_for_newer_python(sources()) == ""


@pytest.mark.parametrize(("version", "python"), interpreters().items(), ids=list(interpreters()))
def test_an_agent_works_in_the_python_of_a_node(version: str, python: str) -> None:
    """For real in the interpreters that are here: on Debian 12 alone that is 3.11, and the others, 3.9 too, are
    covered only by the reading of the sources above. pyenv and uv bring others."""
    with Pool([NodeAddress("n")], python=python, folder=f"lepaute-test-{os.urandom(4).hex()}") as pool:
        nodes = Nodes(pool.channels, Remembered())
        assert pool.channels[0].hello.python.startswith(f"{version}.")
        nodes.write("a", "b")
        assert nodes.read("a") == {"n": b"b"}
        assert nodes.shell("cat a; sleep 0.1", timeout_s=HANG_S).stdout == "b"
        assert nodes.call("monitor", period_s=0.05)["n"]["columns"]
        assert nodes.call("reference")["n"]["compute_s"] > 0
        assert nodes.call("control", wanted={"pinning": [0], "scheduling": {"nice": 1}})["n"]
        assert pool.channels[0].result(pool.channels[0].ask({"do": "environment"})[1], HANG_S)
        assert nodes.call("undo") == {"n": []}
        assert nodes.call("unmonitor")["n"]["samples"] >= 0


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_silence_is_the_time_since_something_was_heard_but_for_that_in_which_this_process_was_stopped():
    silence = Silence(10.0, clock := Clock())
    for expected_s in (10.0, 20.0, 30.0):
        clock.now_s += 10.0
        assert silence.seconds() == expected_s
    silence.heard()
    clock.now_s += 4.0
    assert silence.seconds() == 4.0
    silence = Silence(10.0, clock := Clock())
    clock.now_s += 9.0
    silence.seconds()
    clock.now_s += 3600.0  # stopped for an hour; what came meanwhile is not read yet
    assert silence.seconds() == 19.0
