"""The words of refusals, a file a command in `refusals/`: what is printed for each hostile value that is refused.

    PYTHONPATH=src:tests .venv/bin/python tests/hostile/refusals.py ['emulate program' ...]

writes them anew, of all commands unless some are named; the difference is to be read. Other tests ask of a refusal its
type, place and value, not its words.
"""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hostile.cases import BASES, Case, cases_of, write_inputs
from support_limits import HANG_S

import lepaute

FOLDER = Path(__file__).with_name("refusals")
PACKAGE = str(Path(lepaute.__file__).parent)
#: Of a message, which may quote a value of 100,000 characters.
MAX_CHARACTERS = 240


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

    def run(self, cases: Sequence[Case], path: str | None = None, **more: Any) -> list[dict[str, Any]]:
        """What became of each; path and more as in server.Places."""
        words = [case.words for case in cases]
        folder, fifo = str(self.folder / "cases"), str(self.inputs / "fifo")
        request = {"cases": words, "folder": folder, "fifo": fifo, "path": path, **more}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answers: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return answers

    def refusals(self, cases: Sequence[Case], answers: Sequence[dict[str, Any]]) -> str:
        """A line for each case that was refused, and what was printed below it, without the names of folders."""
        lines = []
        for case, answer in zip(cases, answers, strict=True):
            if answer["status"] == 2:
                printed = answer["stderr"].strip().replace(str(self.inputs), "{in}").replace(PACKAGE, "{package}")
                printed = re.sub(rf"{re.escape(str(self.folder))}/cases/\d+/", "", printed)
                lines += [case.label.removeprefix(f"{case.command} "), f"    {printed[:MAX_CHARACTERS]}"]
        return "".join(f"{line}\n" for line in lines)


@contextmanager
def serving(inputs: Path, folder: Path, write: Callable[[Path], None] = write_inputs) -> Iterator[Server]:
    """A server of command lines; their inputs are in a folder that cannot be written, and are the same at the end."""
    write(inputs)
    before = contents(inputs)
    inputs.chmod(0o555)
    server = Server(folder, inputs)
    yield server
    server.process.communicate(timeout=HANG_S)
    inputs.chmod(0o755)
    assert contents(inputs) == before
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def contents(folder: Path) -> dict[str, object]:
    """What identifies the files of a folder."""
    files = {path.name: path.lstat() for path in folder.iterdir() if not path.is_fifo()}
    return {name: (each.st_ino, each.st_mode, each.st_size, each.st_mtime_ns) for name, each in files.items()}


def golden(command: str) -> Path:
    """The file of a command."""
    return FOLDER / f"{command.replace(' ', '_')}.txt"


def main(named: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for path in [] if named else FOLDER.glob("*.txt"):
        path.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        inputs, folder = Path(scratch, "in"), Path(scratch, "server")
        inputs.mkdir()
        folder.mkdir()
        with serving(inputs, folder) as server:
            for command in named or sorted(BASES):
                cases = list(cases_of(command, inputs))
                golden(command).write_text(server.refusals(cases, server.run(cases)))


if __name__ == "__main__":
    main(sys.argv[1:])
