"""Runs the blocks of a page in one folder: commands in one bash, Python in one interpreter.

`lepaute` is there a small program that asks a server for a process. The server has imported the package once and forks
for each command, which saves a second of imports a command; what a command sees (arguments, folder, environment,
streams) is what it sees from a shell. The server of a page and its interpreter are forks, too, of one for all pages.
"""

import atexit
import contextlib
import ctypes
import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support_documents import ROOT, Block, Page, Step
from support_limits import HANG_S

#: Of the terminal that the output of a step is taken for.
COLUMNS = 80
#: Imported by the server: what most commands import.
WARM = (
    "lepaute.cli.main typer numpy pandas scipy.stats yaml pydantic pyarrow.parquet matplotlib.figure"
    " lepaute.simulate.platform duckdb jinja2 lepaute.watch lepaute.study lepaute.measure.fit"
)
#: The folder's name in a page, for people whose folder is another.
HOME = "/home/jane"

#: How long something will take, how far it is, and that it was disturbed: what depends on the processors and on what
#: else they do, each with the lines in which it goes on.
ANNOUNCED = re.compile(
    r"^(?:lepaute: (?:this will take about |[\d,]+ simulations(?: \([^)]*\))?, about "
    r"|.*its duration is not known in advance"
    r"|.* is written; fitting the models$|simulated .* in |.*, \d+ %(?:, about .* left)?$)"
    r"|simulated [\d.]+ \w+ in |warning: the run was disturbed on this machine).*\n(?:  \S.*\n)*",
    re.MULTILINE,
)
#: Of Linux's prctl: the signal when the process that started this one has ended.
PR_SET_PDEATHSIG = 1

_CLIENT = """#!{python} -IS
import json, os, socket, sys
asked = json.dumps([{program!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(asked).to_bytes(8, "little")], [0, 1, 2])
    server.sendall(asked)
    status = server.recv(1)
sys.exit(status[0] if status else 137)
"""


class Session:
    """What a page runs in. Ends its processes when it is closed; a context manager."""

    def __init__(self, folder: Path, *, examples: bool = True) -> None:
        """folder: empty; the page's own is `page` in it. examples: whether the examples are there already."""
        self._scratch = folder / "session"
        self.folder = folder / "page"
        for path in (self._scratch / "bin", self.folder):
            path.mkdir(parents=True)
        if examples:
            (self.folder / "examples").symlink_to(ROOT / "examples")
        self._environment = _environment(self._scratch / "bin")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._groups: list[int] = []
        self._bash: subprocess.Popen[bytes] | None = None
        self._python: subprocess.Popen[bytes] | None = None
        self._steps = 0

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        for group in (*self._groups, *(process.pid for process in reversed(self._processes))):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def run(self, block: Block, step: Step) -> tuple[list[str], int]:
        """The lines that it printed, and its exit status (of Python code 1 where it raised)."""
        if block.kind == "file":
            target = self.folder / block.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(step.code, encoding="utf-8")
            return [], 0
        self._steps += 1
        source, output = (self._scratch / f"{self._steps}.{name}" for name in ("source", "output"))
        source.write_text(step.code + "\n", encoding="utf-8")
        status = self._ask(block.kind, source, output, step.code)
        printed = output.read_bytes().decode(errors="replace").replace(str(self.folder), HOME)
        printed = re.sub(r".*\r\x1b\[K", "", printed)  # lines that a terminal shows no longer
        return ANNOUNCED.sub("", printed).splitlines(), status

    def _ask(self, kind: str, source: Path, output: Path, code: str) -> int:
        if kind == "console":
            self._bash = self._bash or self._started_bash()
            process = self._bash
            # The status goes to the next command too, for an `echo $?` of its own.
            paths = f"{shlex.quote(str(source))} >{shlex.quote(str(output))}"
            asked = f'source {paths} 2>&1 </dev/null; _s=$?; echo "$_s" >&3; (exit "$_s")\n'
        else:
            self._python = self._python or self._forked("interpret", stdin=subprocess.PIPE)
            process = self._python
            asked = json.dumps([str(source), str(output)]) + "\n"
        process.stdin.write(asked.encode())
        process.stdin.flush()
        return self._status(process, code)

    def _status(self, process: "subprocess.Popen[bytes]", code: str) -> int:
        answer = b""
        while not answer.endswith(b"\n"):
            ready = select.select([process.stdout], [], [], HANG_S)[0]
            read = os.read(process.stdout.fileno(), 100) if ready else b""
            if not read:
                raise TimeoutError(f"{code}: " + ("ended its shell" if ready else f"not within {HANG_S:g} s"))
            answer += read
        return int(answer)

    def _started_bash(self) -> "subprocess.Popen[bytes]":
        address = str(self._scratch / "server")
        _write_client(self._scratch / "bin" / "lepaute", "main", address)
        self._forked("serve", address)
        # What a step prints is in a file; descriptor 3 says that it has ended.
        bash = self._started(["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        bash.stdin.write(b"exec 3>&1\n")
        return bash

    def _forked(self, program: str, *arguments: str, **streams: int) -> "subprocess.Popen[bytes]":
        """The process for which the client of a fork of the server of all pages stands."""
        client = self._scratch / program
        _write_client(client, program, _server_of_all())
        process = self._started([str(client), *arguments], stdout=subprocess.PIPE, **streams)
        self._groups.append(int(process.stdout.readline()))
        return process

    def _started(self, words: list[str], **streams: int) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(words, cwd=self.folder, env=self._environment, start_new_session=True, **streams)  # type: ignore[call-overload]
        self._processes.append(process)
        return process


def _write_client(path: Path, program: str, address: str) -> None:
    path.write_text(_CLIENT.format(python=sys.executable, program=program, address=address), encoding="utf-8")
    path.chmod(0o755)


@cache
def _server_of_all() -> str:
    """The address of the server that the servers of pages are forked off; it ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="lepaute-pages-")
    address = str(Path(folder.name, "server"))
    words = [sys.executable, "-u", __file__, address]  # what is printed on both streams comes in its order
    server = subprocess.Popen(
        words, stdout=subprocess.PIPE, env=_environment(Path(folder.name)), cwd=folder.name, start_new_session=True
    )
    atexit.register(lambda: (server.kill(), server.wait(), folder.cleanup()))
    if not server.stdout.readline():
        raise RuntimeError("the server of commands has not started")
    return address


def run_blocks(blocks: list[Block], session: Session) -> Iterator[tuple[Block, Step, list[str], int]]:
    """Each step with its output and exit status, one after the other."""
    for block in blocks:
        for step in block.steps:
            yield block, step, *session.run(block, step)


def pictures(page: Page) -> list[Path]:
    """The pictures of a page that are files of the repository."""
    links = re.findall(r"!\[[^\]]*\]\(([^)\s]+)", "\n".join(page.lines))
    links += re.findall(r"^```\{(?:figure|image)\}\s+(\S+)", "\n".join(page.lines), re.MULTILINE)
    return [(page.path.parent / link).resolve() for link in links if "://" not in link]


def _environment(programs: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("LEPAUTE_STORE", "PYTEST_"))}
    return ours | {
        "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH", "")])),
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "MPLBACKEND": "agg",
        # Open MPI refuses root, who runs tests in containers, unless asked twice.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


# The processes


def serve(address: str) -> str | None:
    """Forks for what is asked for; returns in the fork, with the name of what it is to do."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print(os.getpgrp(), flush=True)
        while True:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            client, _ = listening.accept()
            if os.fork():
                client.close()
                continue
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            command = os.fork()
            if command:
                _, status = os.waitpid(command, 0)
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    client.sendall(bytes([code if code >= 0 else 128 - code]))
                os._exit(0)
            return _become(client)


def _become(client: socket.socket) -> str:
    """Takes on the client's streams, folder, environment and arguments; returns what it is to do."""
    head, descriptors, _, _ = socket.recv_fds(client, 8, 3)
    length, asked = int.from_bytes(head, "little"), b""
    while len(asked) < length:
        asked += client.recv(length - len(asked))
    client.close()
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    program, arguments, folder, environment = json.loads(asked)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["lepaute", *arguments]
    return str(program)


def interpret() -> None:
    """Runs the sources named on the standard input in one namespace, each with its output in a file."""
    import traceback

    answers = os.fdopen(os.dup(1), "w")
    print(os.getpgrp(), file=answers, flush=True)
    names: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        source, output = json.loads(line)
        code, status = Path(source).read_text(encoding="utf-8"), 0
        with open(output, "w", encoding="utf-8") as file:  # noqa: PTH123 - descriptors 1 and 2 go there
            os.dup2(file.fileno(), 1)
            try:
                exec(compile(code, source, "exec"), names)  # noqa: S102 - what the page says
            except BaseException:  # noqa: BLE001 - also one that ends the interpreter
                status = 1
                print(traceback.format_exc())
            sys.stdout.flush()
        answers.write(f"{status}\n")
        answers.flush()


def run() -> None:
    """Is the server of all pages, until it is a fork that does something else."""
    _end_with_parent()
    sys.path[:] = [path for path in sys.path if path != str(Path(__file__).parent)]
    for module in WARM.split():
        __import__(module)
    program = serve(sys.argv[1])
    if program != "main":  # of a page
        os.setsid()
        _end_with_parent()
    if program == "serve":
        program = serve(sys.argv[1])
    if program == "interpret":
        interpret()
    else:
        from rich.progress import Progress

        from lepaute.cli.main import main

        del sys.modules["__main__"].__file__  # which processes of a study would load
        Progress.start = Progress.refresh = Progress.stop = lambda *_: None  # type: ignore[method-assign]
        for stream in (sys.stdout, sys.stderr):
            if re.search(r"/session/\d+\.output$", str(Path(f"/proc/self/fd/{stream.fileno()}").readlink())):
                stream.isatty = lambda: True  # type: ignore[method-assign]
        sys.exit(main())


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    run()
