"""The end of an agent, however it comes: nothing of it stays on the node. Its limits are shortened here."""

import contextlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from support_limits import HANG_S, wait_until

from lepaute.kit.sessions import kill_session, session_members
from lepaute.measure.nodes import channel

SHORTER = {b"ALIVE_S = 5.0": b"ALIVE_S = 0.1", b"CUT_S = 60.0": b"CUT_S = 1.0"}


class BareAgent:
    """An agent that a test speaks to itself."""

    def __init__(self) -> None:
        _, _, program = channel.agent_program("nonce").partition(b"\n")
        for limit, shorter in SHORTER.items():
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
