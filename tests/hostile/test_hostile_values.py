"""Whatever an option or argument is given: status 0, 1 or 2, one line, no hang, little memory, and nothing left behind.

Options are found by themselves; a new command needs a cheap command line in `cases.BASES`.
"""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile.cases import BASES, Case, cases_of, commands, further_cases_of, unprintable, write_inputs
from hostile.server import MEMORY_BYTES
from support_limits import HANG_CPU_S, HANG_S

pytestmark = pytest.mark.slow

#: Cases that are known to fail: the beginning of their label, and why.
KNOWN: dict[str, str] = {}


class Server:
    """The process that forks."""

    def __init__(self, folder: Path, inputs: Path) -> None:
        self.folder, self.inputs = folder, inputs
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLCONFIGDIR": str(folder)}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(self, cases: list[Case]) -> list[dict[str, Any]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        words = [case.words for case in cases]
        request = {"cases": words, "folder": str(self.folder / "cases"), "fifo": str(self.inputs / "fifo")}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answers: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return answers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    inputs = tmp_path_factory.mktemp("in")
    write_inputs(inputs)
    before = contents(inputs)
    inputs.chmod(0o555)
    server = Server(tmp_path_factory.mktemp("server"), inputs)
    yield server
    server.process.communicate(timeout=HANG_S)
    inputs.chmod(0o755)
    assert contents(inputs) == before
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def contents(folder: Path) -> dict[str, object]:
    """What identifies the files of a folder."""
    files = {path.name: path.lstat() for path in folder.iterdir() if not path.is_fifo()}
    return {name: (each.st_ino, each.st_mode, each.st_size, each.st_mtime_ns) for name, each in files.items()}


def complaints(case: Case, answer: dict[str, Any], usual_bytes: int) -> list[str]:
    """What is wrong with how a case ended; usual_bytes: memory of the command with nothing hostile in it."""
    status, stderr, left = answer["status"], answer["stderr"], answer["left"]
    wrong = []
    if answer["timed_out"] or status == -signal.SIGPROF:
        wrong.append(f"it did not end within {HANG_S:g} s and {HANG_CPU_S:g} s of CPU time")
    elif status not in (0, 1, 2):
        wrong.append(f"status {status}: {stderr[-600:]}")
    if status == 2 and (len(stderr.splitlines()) > 1 or not (stderr or answer["stdout"])):
        wrong.append(f"{len(stderr.splitlines())} lines: {stderr[:600]!r}")
    if "Traceback" in stderr:
        wrong.append("a traceback")
    if unprintable(answer["stdout"]) or unprintable(stderr):
        wrong.append("control characters are printed")
    if answer["memory_bytes"] > usual_bytes + MEMORY_BYTES:
        wrong.append(f"{answer['memory_bytes'] >> 20} MiB, usually {usual_bytes >> 20}")
    written = {name for name in left["work"] if not any(name in word for word in case.words)}
    if left["tmp"] or left["home"] or (left["work"] if status == 2 else written):
        wrong.append(f"left behind: {left}")
    return wrong


def test_every_command_has_a_command_line_to_start_from() -> None:
    assert set(BASES) == set(commands())


def break_nothing(cases: Iterable[Case], server: Server) -> None:
    """Asserts that all end as they should, apart from those known to fail; the first has nothing hostile in it."""
    tried = [case for case in cases if not any(case.label.startswith(known) for known in KNOWN)]
    answers = server.run(tried)
    failures = [
        f"{case.label}: {each}"
        for case, answer in zip(tried, answers, strict=True)
        for each in complaints(case, answer, answers[0]["memory_bytes"])
    ]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("command", sorted(BASES))
def test_no_value_breaks(command: str, server: Server) -> None:
    break_nothing(cases_of(command, server.inputs), server)


@pytest.mark.long
@pytest.mark.parametrize("command", sorted(BASES))
def test_no_value_breaks_that_is_otherwise_left_to_other_commands(command: str, server: Server) -> None:
    break_nothing(further_cases_of(command, server.inputs), server)
