"""Output of the OSU micro-benchmarks (collectives and latency, versions 3 to 7) and of the Intel MPI Benchmarks.

Both print blocks of rows under a title and a heading; a file may hold the output of several runs, one after the other,
and what else a shell or mpirun printed. What is read of a row is the size and the mean over calls and ranks: `Avg
Latency(us)`, `Latency (us)` or `Pure Comm.(us)` of OSU, `t_avg[usec]`, `t[usec]` or `t_pure[usec]` of Intel. Tables of
bandwidths are left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from lepaute.errors import InputError
from lepaute.fit.duration_tables import Block, benchmark_blocks
from lepaute.kit.documents import read_bytes

OSU, INTEL = "OSU micro-benchmarks", "Intel MPI Benchmarks"
MOST_BYTES = 32 << 20

_OSU_TITLE = re.compile(
    r"#\s*OSU MPI(?:-(?P<memory>\w+))?\s+(?P<name>.*?)\s+(?:Latency\s+)?Test\b(?:\s+v(?P<version>\S+))?"
)
_INTEL_TITLE = re.compile(r"#\s*Intel\s*\(R\) MPI Benchmark\D*(?P<version>[\d.]+[\w.]*)?")
_INTEL_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(?P<name>\S+)")
_WHOLE = re.compile(r"[0-9]{1,15}")
#: Means over calls and ranks, in microseconds, the best first.
_MEANS = ("Avg Latency(us)", "Latency(us)", "Pure Comm.(us)", "t_avg[usec]", "t[usec]", "t_pure[usec]")
_SIZES, _COUNTS = ("Size", "#bytes"), ("Iterations", "#repetitions")
_MPI_NAMES = {
    "broadcast": "Bcast",
    "all-to-all personalized exchange": "Alltoall",
    "all-to-all": "Alltoall",
    "all-to-allv personalized exchange": "Alltoallv",
    "all-to-allw personalized exchange": "Alltoallw",
}


@dataclass(frozen=True, slots=True)
class Mean:
    """A row: the mean time of an operation.

    run   : number of the run of this benchmark in the file, from 0
    ranks : None where the output does not say; calls: 0 where it does not
    """

    operation: str
    form: str
    size_bytes: int
    ranks: int | None
    run: int
    calls: int
    mean_s: float


@dataclass(frozen=True, slots=True)
class BenchmarkOutput:
    """The rows of a file; suite: OSU or INTEL; version: as its titles say, empty where they do not.

    skipped: numbers of lines among the rows that something else wrote
    """

    path: Path
    suite: str
    version: str
    means: tuple[Mean, ...]
    skipped: tuple[int, ...] = ()


def is_benchmark_output(path: str | Path) -> bool:
    """Whether a file has a title of one of the suites."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(1 << 20).decode("utf-8", "replace")
    except (OSError, ValueError):
        return False
    return any(_title(line) is not None for line in head.splitlines())


def read_output(path: str | Path) -> BenchmarkOutput:
    """Reads a file.

    Raises InputError where it is damaged, with the line, where it is of neither suite or of both, and without times.
    """
    path = Path(path)
    text = read_bytes(path, "the output of one of the benchmarks", MOST_BYTES).decode("utf-8", "replace")
    titles = [title for line in text.splitlines() if (title := _title(line)) is not None]
    suites = {suite for suite, _ in titles}
    if len(suites) != 1:
        what = "is no output" if not suites else "has output of both"
        raise InputError(f"{path}: {what} of the {OSU} or the {INTEL}; give a file with what one of them printed")
    blocks = [
        block
        for block in benchmark_blocks(text.splitlines())
        if _OSU_TITLE.match(f"# {block.title}") or (block.title and not block.title.startswith("OSU "))
    ]
    means = tuple(_means(path, blocks))
    if not means:
        raise InputError(f"{path}: has no times; bandwidths cannot be compared, give a benchmark of latency")
    versions = dict.fromkeys(version for _, version in titles if version)
    return BenchmarkOutput(
        path,
        suites.pop(),
        ", ".join(versions),
        means,
        tuple(sorted(number for block in blocks for number in block.skipped)),
    )


def _title(line: str) -> tuple[str, str] | None:
    """The suite and its version where the line is a title."""
    line = line.strip()
    if found := _OSU_TITLE.match(line):
        return OSU, found["version"] or ""
    if (found := _INTEL_TITLE.match(line)) or _INTEL_BENCHMARK.match(line):
        return INTEL, (found["version"] or "").rstrip(".,") if found else ""
    return None


def _means(path: Path, blocks: Iterable[Block]) -> Iterator[Mean]:
    runs: Counter[tuple[str, str, int | None]] = Counter()
    for block in blocks:
        title = _OSU_TITLE.match(f"# {block.title}")
        operation, form = _operation(title["name"], title["memory"]) if title else _intel_operation(block.title)
        key = (operation, form, block.processes)
        columns = [name.replace(" (", "(") for name in block.columns]
        for number, words in block.rows:
            if (row := _row(f"{path}:{number}", words, columns)) is not None:
                size_bytes, calls, mean_s = row
                yield Mean(operation, form, size_bytes, block.processes, runs[key], calls, mean_s)
        runs[key] += 1


def _row(where: str, words: list[str], columns: list[str]) -> tuple[int, int, float] | None:
    """Size, calls and mean of a row; None where its table has no mean time, as one of bandwidths."""
    wanted = next((name for name in _MEANS if name in columns), None)
    if wanted is None:
        return None
    if len(words) != len(columns):
        raise InputError(
            f"{where}: has {len(words)} columns where the heading has {len(columns)}; "
            "the file is damaged, run the benchmark again"
        )
    row = dict(zip(columns, words, strict=True))
    size = next((row[name] for name in _SIZES if name in row), "0")
    count = next((row[name] for name in _COUNTS if name in row), "0")
    mean_us = _number(row[wanted])
    whole = all(_WHOLE.fullmatch(one) for one in (size, count))
    times = [_number(word) for name, word in row.items() if name.endswith(("(us)", "[usec]"))]
    if not whole or not all(time >= 0 for time in times):
        raise InputError(
            f"{where}: {' '.join(words)[:60]!r} is no row of sizes and times of 0 or more; "
            "the file is damaged, run the benchmark again"
        )
    return int(size), int(count), mean_us * 1e-6


def _number(word: str) -> float:
    """The value, NaN where it is none."""
    try:
        value = float(word)
    except ValueError:
        return float("nan")
    return value if isfinite(value) else float("nan")


def _operation(name: str, memory: str | None) -> tuple[str, str]:
    """MPI's name and the form from a title of OSU's; the title's own words for what is no collective operation.

    memory: of buffers that are not the processor's, such as CUDA
    """
    words = name.removesuffix(" Latency").strip() or "Latency"
    plain = re.sub(r"^non-?blocking\s+", "", words, flags=re.IGNORECASE)
    form = "blocking" if plain == words else "nonblocking"
    return _MPI_NAMES.get(plain.lower(), plain) + (f" ({memory})" if memory else ""), form


def _intel_operation(name: str) -> tuple[str, str]:
    """Iallreduce and Iallreduce_pure are the nonblocking form of Allreduce."""
    name = name.split(maxsplit=1)[0]
    found = re.fullmatch(r"I([a-z]\w*?)(?:_pure)?", name)
    return (found[1].capitalize(), "nonblocking") if found else (name, "blocking")
