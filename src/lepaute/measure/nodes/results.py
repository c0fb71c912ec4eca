"""What a command on nodes has left, one result a node; and why programs that are built here do not run there."""

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lepaute.errors import EnvironmentProblem, LepauteError
from lepaute.kit.command import complaint_of
from lepaute.kit.mpi_launcher import LAUNCHER_PACKAGE, MPIRUN_OF_NODES
from lepaute.measure.nodes.channel import Channel

#: Longer output is cut in the middle when it is kept.
MAX_OUTPUT_BYTES = 1 << 20
_LAST_LINES = 4
_MAX_FAILURE = 300
#: Messages of the loader: the library that a program needs and the node lacks.
_LIBRARY = re.compile(r"error while loading shared libraries: (\S+?):")
_VERSION = re.compile(r"version `([\w.]+)' not found")
#: Beginnings of libraries' names, and the Debian packages that hold them.
_PACKAGES = {
    "libopenblas": "libopenblas0",
    "libmpi": LAUNCHER_PACKAGE,
    "libopen-": LAUNCHER_PACKAGE,
    "libhwloc": "libhwloc15",
}


def command_text(argv: Sequence[str]) -> str:
    """A command in one line: of a word of several lines, which is a script, the first that says something."""
    words = []
    for word in argv:
        lines = [line.strip() for line in word.splitlines() if line.strip()]
        words.append(f"{lines[0]} ..." if len(lines) > 1 else word)
    return " ".join(" ".join(words).split())


class CommandFailed(LepauteError):
    """A command of an experiment has failed on a node; `result` tells all about it."""

    def __init__(self, message: str, result: "Result") -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, slots=True)
class Result:
    """One command on one node, ended.

    returncode : None if it could not be started (then `error` says why); negative: ended by that signal
    start      : ISO 8601, UTC, by the node's clock
    environment: the variables that were added
    left_behind: processes it had started that still ran when it ended; they were killed
    """

    node: str
    argv: tuple[str, ...]
    folder: str | None
    returncode: int | None
    stdout: str
    stderr: str
    start: str
    duration_s: float
    environment: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    timed_out: bool = False
    left_behind: int = 0

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out

    def complaint(self) -> str:
        """Complaint in one line: the status, and the last lines the program printed."""
        if self.error is not None:
            return self.error
        if self.timed_out:
            status = f"did not end within {self.duration_s:.3g} s"
        elif self.returncode is not None and self.returncode < 0:
            status = f"ended by signal {-self.returncode}"
        else:
            status = f"exit status {self.returncode}"
        lines = [line.strip() for line in (self.stderr.strip() or self.stdout.strip()).splitlines() if line.strip()]
        return f"{status}: {' | '.join(lines[-_LAST_LINES:])[:600]}" if lines else f"{status}, no output"

    def failure(self, limit_s: float) -> str:
        """Why ranks of MPI failed, as a campaign notes it; limit_s: after which it was ended."""
        if self.timed_out:
            return f"did not end within {limit_s:.0f} s and was ended"
        status = self.complaint().partition(":")[0]
        return f"{status}: {' '.join(complaint_of(self.stdout, self.stderr).split())}"[:_MAX_FAILURE]


class Results(Mapping[str, Result]):
    """The results of one command, by node, in the order of the nodes; nodes that were lost are not among them."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        self._results = dict(results)

    def __getitem__(self, node: str) -> Result:
        return self._results[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def only(self) -> Result:
        """The result of the only node. Raises ValueError if there are more, or none."""
        (result,) = self._results.values()
        return result

    @property
    def stdout(self) -> str:
        """Standard output of the only node."""
        return self.only.stdout

    def __repr__(self) -> str:
        return f"Results({', '.join(f'{node}: {result.returncode}' for node, result in self._results.items())})"


class Output:
    """Collects what a stream prints: all of it up to MAX_OUTPUT_BYTES, else its head and its tail."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, piece: bytes) -> None:
        room = MAX_OUTPUT_BYTES // 2 - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if (excess := len(self._tail) - MAX_OUTPUT_BYTES // 2) > MAX_OUTPUT_BYTES:
            del self._tail[:excess]
            self._dropped += excess

    def text(self) -> str:
        if (excess := len(self._tail) - MAX_OUTPUT_BYTES // 2) > 0:
            del self._tail[:excess]
            self._dropped += excess
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        return f"{head}\n[... {self._dropped} bytes cut ...]\n{tail}" if self._dropped else head + tail


def check_architecture(channel: Channel) -> None:
    """Raises EnvironmentProblem if a node is of another architecture than this machine."""
    architecture = platform.machine()
    if channel.hello.machine != architecture:
        raise EnvironmentProblem(
            f"{channel.name} is a {channel.hello.machine} and its programs are built here, on a {architecture}; "
            "start this from a machine like the nodes"
        )


def check_programs_fit(channels: Sequence[Channel]) -> None:
    """Raises EnvironmentProblem if programs of this machine cannot run on all of them, put at the same place."""
    for channel in channels:
        check_architecture(channel)
        check_same_place(channels[0], channel)


def check_same_place(first: Channel, other: Channel) -> None:
    """Raises EnvironmentProblem if two machines do not have the folder of the programs at the same place."""
    if first.hello.boot != other.hello.boot and first.folder != other.folder:
        raise EnvironmentProblem(
            f"the folders of temporary files differ ({first.folder} on {first.name}, {other.folder} on {other.name}); "
            "set TMPDIR alike"
        )


def check_started(trials: Mapping[str, Result]) -> None:
    """Raises EnvironmentProblem for the first node on which a program did not start: why, and what to do about it."""
    for trial in trials.values():
        if not trial.ok:
            raise EnvironmentProblem(f"{trial.node}: {why_not(trial)}")


def why_not(trial: Result) -> str:
    """Why a program did not start, and what to do about it."""
    text = trial.stderr + trial.stdout
    if trial.returncode is None and trial.argv[0] == str(MPIRUN_OF_NODES.path):
        return f"{trial.argv[0]} is missing; install it there: apt-get install {LAUNCHER_PACKAGE}"
    if missing := _LIBRARY.search(text):
        name = missing[1]
        package = next((package for start, package in _PACKAGES.items() if name.startswith(start)), None)
        remedy = f"install it there: apt-get install {package}" if package else "install it there"
        return f"{name} is missing, which programs built here use; {remedy}"
    if missing := _VERSION.search(text):
        return (
            f"programs built here need {missing[1]}, and the system there is older; "
            "start this from a machine with the nodes' system"
        )
    return f"a program built here does not start: {trial.complaint()}"
