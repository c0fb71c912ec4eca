"""The sentinel: a fixed dgemm on all cores at once, which tells how fast the machine is at that moment.

It is run again and again, between the probes of a calibration and around the real runs of a verification, so that a
machine that wanders is seen: a slower host steals no CPU time and leaves no other trace on a virtual machine. Its size
is that of an update of HPL beyond any cache of a core, with operands at random places as the probes have them. What it
is worth is the mean of its calls without the slowest twentieth: a machine that is taken away for a moment again and
again is slower, one that was interrupted once is not.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.measure.design import Design
from lepaute.measure.kernel_set import blas_environment
from lepaute.measure.layout import Layout
from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.nodes.group import Nodes, for_each_machine
from lepaute.measure.raw_files import header_of_raw, rows_of
from lepaute.stats.intervals import upper_trimmed_mean
from lepaute.version import __version__

#: Name of the probe in the journals, and of the table of observations, with an s.
SENTINEL = "sentinel"
M, N, K = 1024, 1024, 128
#: All calls of a sentinel together, and the fewest, of which a mean is taken.
WANTED_S, MIN_CALLS = 0.3, 5
#: For the operands of each process: what fits into no cache, and does not take longer to fill than the calls.
OPERAND_BYTES = 64 << 20
#: At most so large a part of the time goes to sentinels, and they follow each other no more closely than this.
MAX_SHARE, MIN_GAP_S = 0.15, 2.0
#: Beside what takes a second itself: a sentinel that takes a tenth of one, and sees a machine that is half as fast.
_SHORT_SIZE, _SHORT_CALLS, _SHORT_BYTES = (512, 512, 128), 10, 12 << 20
#: One that takes this long hangs.
LIMIT_S = 300.0


def calls_of(call_s: float) -> int:
    """How many calls that take so long make a sentinel."""
    return max(MIN_CALLS, ceil(WANTED_S / call_s))


def call_seconds(gflops: float) -> float:
    """How long a call takes at this rate of a core."""
    return 2e-9 * M * N * K / gflops


def sentinel_design(calls: int, m: int = M, n: int = N, k: int = K) -> Design:
    """The table of a sentinel: the same product `calls` times."""
    header = {"generator": "lepaute sentinel", "version": __version__}
    return Design(header, ("kind", "m", "n", "k"), tuple(("dgemm", m, n, k) for _ in range(calls)))


def gap_s(cost_s: float) -> float:
    """Between the end of a sentinel that cost so much and the next one."""
    return max(MIN_GAP_S, cost_s * (1.0 - MAX_SHARE) / MAX_SHARE)


@dataclass(frozen=True, slots=True)
class Guard:
    """How a sentinel is run outside of a calibration: as the one that a platform remembers.

    size : m, n and k; operand_bytes: for these, of each core
    calls: of each core; cores: how many run at once, where there are this many
    """

    program: Path
    size: tuple[int, int, int]
    calls: int
    cores: int
    coretype: str | None = None
    operand_bytes: int = OPERAND_BYTES

    @property
    def design(self) -> str:
        return sentinel_design(self.calls, *self.size).to_csv()

    @property
    def environment(self) -> dict[str, str]:
        return blas_environment(1, self.coretype)

    def words(self, program: str, design: str, out: str, pus: Sequence[int]) -> list[str]:
        """Command to run; process r leaves the file `out`.r<r>. pus: hardware threads that may be used, in order."""
        places = ",".join(map(str, pus[: self.cores]))
        memory = ("--max-bytes", str(self.operand_bytes))
        return [program, "--design", design, "--out", out, "--seed", "1", "--cpus", places, *memory]


def short_guard(program: Path, cores: int) -> Guard:
    """Beside what takes about a second."""
    return Guard(program, _SHORT_SIZE, _SHORT_CALLS, cores, operand_bytes=_SHORT_BYTES)


class NodeSentinel:
    """A sentinel on nodes; on each machine one, whatever its names."""

    def __init__(self, nodes: Nodes, layouts: Mapping[str, Layout], guard: Guard) -> None:
        """Puts the program there. layouts: by node, of the cores that are used"""
        self._nodes, self._layouts, self._guard = nodes, layouts, guard
        nodes.put(guard.program, guard.program.name)
        nodes.write("sentinel/design.csv", guard.design)

    def watch(self) -> float:
        """Runs it on all machines at once; seconds of a call, the mean over them.

        Raises CommandFailed where it fails, NodeLost where no node is left.
        """
        found: dict[str, float] = {}

        def look(node: Nodes, _stopping: threading.Event) -> None:
            (channel,) = node.channels
            if channel.hello.boot in found:  # another name of the same machine
                return
            base, layout = node.place, self._layouts[channel.name]
            pus = layout.pus(range(min(self._guard.cores, len(layout.cores))))
            raw = f"{base}/sentinel/raw.csv"
            words = self._guard.words(f"{base}/{self._guard.program.name}", f"{base}/sentinel/design.csv", raw, pus)
            node.run(*words, environment=self._guard.environment, timeout_s=LIMIT_S)
            files = [node.read(f"{raw}.r{rank}").get(channel.name, b"") for rank in range(len(pus))]
            found[channel.hello.boot] = duration_of(text.decode() for text in files)

        for_each_machine(self._nodes, look)
        if not found:
            raise NodeLost(self._nodes.none_left())
        return sum(found.values()) / len(found)


def duration_of(files: Iterable[str]) -> float:
    """Seconds of a call: the trimmed mean of each raw file, which is of one core, and the mean over them.

    Raises EnvironmentProblem if there are no rows.
    """
    levels = []
    for text in files:
        cost_s = float(header_of_raw(text).get("clock_cost_s", 0.0))
        seconds = [float(row["duration_s"]) - cost_s for row in rows_of(text)]
        if not seconds:
            raise EnvironmentProblem("the sentinel left no rows; see lepaute doctor")
        levels.append(max(1e-9, upper_trimmed_mean(seconds)))
    if not levels:
        raise EnvironmentProblem("the sentinel left no rows; see lepaute doctor")
    return sum(levels) / len(levels)
