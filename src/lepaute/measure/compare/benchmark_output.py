"""Two libraries by the output of other benchmarks, as far as that goes: one mean for each run, operation and size.

The OSU micro-benchmarks (collectives and latency, versions 3 to 7) and the Intel MPI Benchmarks print blocks of rows
under a title and a heading; a file may hold the output of several runs, one after the other, and what else a shell or
mpirun printed. What is read of a row is the size and the mean over calls and ranks: `Avg Latency(us)`, `Latency (us)`
or `Pure Comm.(us)` of OSU, `t_avg[usec]`, `t[usec]` or `t_pure[usec]` of Intel; of a table of rates, such as `osu_bw`,
the rate, compared as the time that the bytes of a message take by it. Minima, maxima and percentiles beside the mean
are its spread in a run, failed checks (`Validation`, `defects`) and tables that end early are failures.

A file that holds several runs (the benchmark repeated, its output appended) gives one value for each, and verdicts are
by these as they are by mpiruns. One run of each gives a ratio, which is not tested.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path

import pandas

from lepaute.errors import InputError
from lepaute.kit.documents import read_bytes
from lepaute.kit.quantities import without_prefix
from lepaute.kit.text import exact_size
from lepaute.measure.archive.mpi_campaign import LibraryFacts
from lepaute.measure.compare.comparison import Comparison
from lepaute.measure.compare.failures import Failure, missing_failures
from lepaute.measure.compare.setting import Source
from lepaute.measure.compare.verdicts import MARGIN, RATE, Correction, verdicts
from lepaute.measure.comparison.cases import name_of
from lepaute.measure.fit.column_names import rate_in
from lepaute.measure.fit.duration_tables import HEADING, Block, benchmark_blocks, notes_on

OSU, INTEL = "OSU micro-benchmarks", "Intel MPI Benchmarks"
MAX_BYTES = 32 << 20

_OSU_TITLE = re.compile(
    r"#\s*OSU MPI(?:-(?P<memory>\w+))?\s+(?P<name>.*?)\s+(?:Latency\s+)?Test\b(?:\s+v(?P<version>\S+))?"
)
_INTEL_TITLE = re.compile(r"#\s*Intel\s*\(R\) MPI Benchmark\D*(?P<version>[\d.]+[\w.]*)?")
_INTEL_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(?P<name>\S+)")
_WHOLE = re.compile(r"[0-9]{1,15}")
_SIZES, _COUNTS = ("Size", "#bytes"), ("Iterations", "#repetitions")
_MPI_NAMES = {
    "broadcast": "Bcast",
    "all-to-all personalized exchange": "Alltoall",
    "all-to-all": "Alltoall",
    "all-to-allv personalized exchange": "Alltoallv",
    "all-to-allw personalized exchange": "Alltoallw",
}
#: Columns of times beside the mean: over ranks, or percentiles of calls.
_SPREAD = re.compile(r"(?:Min|Max) Latency ?\(us\)|P\d+(?:\.\d+)? Tail Lat(?:ency)? ?\(us\)|t_(?:min|max)\[usec\]")
#: The column of summaries that stands for an mpirun.
VALUE = "mean_all_s"
#: Runs of each library below which two libraries cannot differ significantly in a single row: 2 of 20 arrangements.
FEW_RUNS = 4
_START = {
    OSU: "ranks start each call after the MPI_Barrier of the library under test, which they leave at different times, "
    "and a call's time is the mean over ranks of what each saw (scheme MS1)",
    INTEL: "the calls of a run follow each other without a synchronisation, so that they may overlap (scheme MS2)",
}


@dataclass(frozen=True, slots=True)
class Mean:
    """A row: the mean time of an operation.

    run   : number of the run of this benchmark in the file, from 0
    ranks : None if the output does not say; calls: 0 if it does not
    form  : RATE where a rate is printed: mean_s is what the bytes of the message take by it then
    low_s, high_s: the least and the most that is printed beside it; NaN if nothing is
    """

    operation: str
    form: str
    size_bytes: int
    ranks: int | None
    run: int
    calls: int
    mean_s: float
    low_s: float = nan
    high_s: float = nan


@dataclass(frozen=True, slots=True)
class BenchmarkOutput:
    """The rows of a file; suite: OSU or INTEL; version: as its titles say, empty if they do not.

    notes: sentences on the lines that are not used; wrong: operations whose own check failed
    """

    path: Path
    suite: str
    version: str
    means: tuple[Mean, ...]
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


def named_output(word: str) -> tuple[str | None, Path] | None:
    """The label, None for none, and the file where a word of the command line names an output, FILE or LABEL=FILE.

    A file that is neither an archive nor executable, as compiler wrappers are, is taken for one.
    """
    label, equals, rest = word.partition("=")
    for name, path in ((None, word), (label, rest)) if equals else ((None, word),):
        try:
            is_file = bool(path) and Path(path).is_file()
        except (OSError, ValueError):
            continue
        if is_file and not path.endswith(".zip") and (not os.access(path, os.X_OK) or is_benchmark_output(path)):
            return name, Path(path)
    return None


def outputs(
    left: str | Path,
    right: str | Path,
    *,
    left_label: str | None = None,
    right_label: str | None = None,
    margin: float = MARGIN,
    correction: Correction = "fdr",
) -> Comparison:
    """Compares what one benchmark printed with two libraries; labels are the names of the files unless given.

    Raises InputError if a file is damaged or no such output, where the files are of different suites or the same,
    where they have nothing in common, and for a margin that is not above 0.
    """
    both = read_output(left), read_output(right)
    if both[0].suite != both[1].suite:
        raise InputError(
            f"{left} is of the {both[0].suite}, {right} of the {both[1].suite}, which time in different ways; "
            "compare outputs of one of them"
        )
    digests = [hashlib.sha256(one.path.read_bytes()).hexdigest() for one in both]
    if digests[0] == digests[1]:
        raise InputError(f"{left} and {right} are the same output; give one of each library")
    labels = _labels(both, left_label, right_label)
    summaries = _summaries(both, labels)
    found = verdicts(summaries, *labels, margin=margin, value=VALUE, correction=correction)
    if not found:
        raise InputError(f"{left} and {right} have no benchmark and size in common; run the same with both libraries")
    ranks = {mean.ranks for each in both for mean in each.means}
    return Comparison(
        left=labels[0],
        right=labels[1],
        libraries=tuple(LibraryFacts(label, one.path.name) for label, one in zip(labels, both, strict=True)),
        ranks=(ranks.pop() or 0) if len(ranks) == 1 else 0,
        run_time="mean over calls and ranks",
        margin=margin,
        verdicts=found,
        summaries=summaries,
        warnings=_warnings(both, min(min(one.left_mpiruns, one.right_mpiruns) for one in found)),
        archives=tuple(
            Source(
                file=one.path.name,
                id=digest,
                kind=" ".join(filter(None, (one.suite, one.version))),
                argument=one.path.name if label == one.path.stem else f"{label}={one.path.name}",
            )
            for one, digest, label in zip(both, digests, labels, strict=True)
        ),
        value=VALUE,
        correction=correction,
        failures=tuple(_failures(both, labels, summaries)),
    )


def _failures(
    both: tuple[BenchmarkOutput, ...], labels: tuple[str, str], summaries: pandas.DataFrame
) -> Iterator[Failure]:
    """Checks that failed, benchmarks that one file alone has, and runs that end at a smaller size than others do."""
    for each, label in zip(both, labels, strict=True):
        for name in each.wrong:
            yield Failure(label, "wrong result", name, f"{name} of {label} gives wrong results")
    yield from missing_failures(summaries, *labels)
    runs = summaries.groupby(["operation", "form", "library", "mpirun"])["size_bytes"].max().reset_index()
    for (operation, form), table in runs.groupby(["operation", "form"]):
        most, name = table["size_bytes"].max(), name_of(str(operation), str(form))
        for label, early in table[table["size_bytes"] < most].groupby("library"):
            ends = f"ends at {exact_size(int(early['size_bytes'].min()))}"
            runs_text = (
                "" if (count := int((table["library"] == label).sum())) == 1 else f", in {len(early)} of {count} runs"
            )
            text = f"{name} of {label} {ends}, where another run goes to {exact_size(int(most))}{runs_text}"
            yield Failure(str(label), "ended early", name, text)


def _labels(both: tuple[BenchmarkOutput, ...], left: str | None, right: str | None) -> tuple[str, str]:
    names = [one.path.stem for one in both]
    if names[0] == names[1]:
        names = [one.path.name for one in both]
    if names[0] == names[1]:
        names = ["left", "right"]
    chosen = (left or names[0], right or names[1])
    if chosen[0] == chosen[1]:
        raise InputError(f"both outputs are called {chosen[0]}; give one another label: LABEL=FILE")
    return chosen


def _summaries(both: tuple[BenchmarkOutput, ...], labels: tuple[str, str]) -> pandas.DataFrame:
    """As `mpirun_summaries`, of which only VALUE is known: a row a run and mean; all runs are one block."""
    several = len({mean.ranks for each in both for mean in each.means}) > 1
    runs_before = 1 + max(mean.run for mean in both[0].means)
    rows = [
        {
            "library": label,
            "block": 0,
            "mpirun": mean.run + offset,
            "operation": _name(mean, several),
            "form": mean.form,
            "size_bytes": mean.size_bytes,
            "calls": mean.calls,
            VALUE: mean.mean_s,
            "low_s": mean.low_s,
            "high_s": mean.high_s,
        }
        for each, label, offset in zip(both, labels, (0, runs_before), strict=True)
        for mean in each.means
    ]
    return pandas.DataFrame(rows)


def _name(mean: Mean, several: bool) -> str:
    """The operation, with its ranks where the outputs have several numbers of them."""
    return f"{mean.operation}, {mean.ranks} ranks" if several and mean.ranks is not None else mean.operation


def _warnings(both: tuple[BenchmarkOutput, ...], runs: int) -> tuple[str, ...]:
    lines = [f"{one.path.name}: {text}" for one in both for text in one.notes]
    if runs < FEW_RUNS:
        few = "there is one run" if runs == 1 else f"there are {runs} runs"
        lines.append(
            f"{few} of a library: how far runs differ cannot be told from that, and no difference can be shown; repeat "
            "the benchmark with both libraries in turn, ten times or more, and append what it prints to the two files"
        )
    lines += [
        "what changed between the runs of one library and those of the other counts as a difference",
        "each value is the mean of all calls of a run: their spread, outliers and filter are not in the output",
        _START[both[0].suite],
    ]
    if both[0].suite == OSU:
        lines.append("the outputs do not say how many ranks there were")
    if both[0].version != both[1].version:
        lines.append(f"the benchmarks have different versions ({both[0].version or '?'} and {both[1].version or '?'})")
    return tuple(lines)


def is_benchmark_output(path: str | Path) -> bool:
    """Whether a file has a title of one of the suites."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(1 << 20).decode("utf-8", "replace")
    except (OSError, ValueError):
        return False
    return any(_title(line) is not None for line in without_prefix(head.splitlines(), HEADING)[0])


def read_output(path: str | Path) -> BenchmarkOutput:
    """Reads a file.

    Raises InputError if it is damaged, with the line, where it is of neither suite or of both, and without times.
    """
    path = Path(path)
    text = read_bytes(path, "the output of one of the benchmarks", MAX_BYTES).decode("utf-8", "replace")
    lines, others = without_prefix(text.splitlines(), HEADING)
    titles = [title for line in lines if (title := _title(line)) is not None]
    suites = {suite for suite, _ in titles}
    if len(suites) != 1:
        what = "is no output" if not suites else "has output of both"
        raise InputError(f"{path}: {what} of the {OSU} or the {INTEL}; give a file with what one of them printed")
    every = benchmark_blocks(lines, str(path))
    blocks = [
        block
        for block in every
        if (block.mean_column or _rate_column(block))
        and (_OSU_TITLE.match(f"# {block.title}") or (block.title and not block.title.startswith("OSU ")))
    ]
    means = tuple(_means(path, blocks))
    if not means:
        raise InputError(f"{path}: has no times and no rates; give the output of a benchmark of these")
    return BenchmarkOutput(
        path,
        suites.pop(),
        ", ".join(dict.fromkeys(version for _, version in titles if version)),
        means,
        (
            *notes_on(blocks),
            *others,
            *(f"a table without a mean time left out: {block.title[:80]}" for block in every if block not in blocks),
        ),
        tuple(dict.fromkeys(name_of(*_named(block)) for block in blocks if _has_wrong_results(block))),
    )


def _title(line: str) -> tuple[str, str] | None:
    """The suite and its version where the line is a title."""
    line = line.strip()
    if found := _OSU_TITLE.match(line):
        return OSU, found["version"] or ""
    if (found := _INTEL_TITLE.match(line)) or _INTEL_BENCHMARK.match(line):
        return INTEL, (found["version"] or "").rstrip(".,") if found else ""
    return None


def _means(path: Path, blocks: list[Block]) -> Iterator[Mean]:
    runs: Counter[tuple[str, str, int | None]] = Counter()
    for block in blocks:
        operation, form = _named(block)
        key = (operation, form, block.processes)
        for number, words in block.rows:
            size_bytes, *values = _row(f"{path}:{number}", dict(zip(block.columns, words, strict=True)), block)
            yield Mean(operation, form, int(size_bytes), block.processes, runs[key], int(values[0]), *values[1:])
        runs[key] += 1


def _named(block: Block) -> tuple[str, str]:
    title = _OSU_TITLE.match(f"# {block.title}")
    operation, form = _operation(title["name"], title["memory"]) if title else _intel_operation(block.title)
    return operation, form if block.mean_column else RATE


def _has_wrong_results(block: Block) -> bool:
    """Whether its own check failed: Validation of OSU's, defects of Intel's."""
    checks = [place for place, name in enumerate(block.columns) if name.lower() in ("validation", "defects")]
    cells = [words[place] for _, words in block.rows for place in checks]
    return any(cell.lower() == "fail" or _number(cell) > 0 for cell in cells)


def _rate_column(block: Block) -> str | None:
    return next((name for name in block.columns if rate_in(name)), None)


def _row(where: str, row: dict[str, str], block: Block) -> tuple[float, ...]:
    """Size, calls and mean of a row, and the least and the most of its spread."""
    size = next((row[name] for name in _SIZES if name in row), "0")
    count = next((row[name] for name in _COUNTS if name in row), "0")
    times = [_number(word) for name, word in row.items() if name.endswith(("(us)", "[usec]"))]
    if not (all(_WHOLE.fullmatch(one) for one in (size, count)) and all(time >= 0 for time in times)):
        raise InputError(
            f"{where}: {' '.join(row.values())[:60]!r} is no row of sizes and times of 0 or more; "
            "the file is damaged, run the benchmark again"
        )
    if not block.mean_column:
        rate = str(_rate_column(block))
        rate_Bps = _number(row[rate]) * (rate_in(rate) or nan)
        if not rate_Bps >= 0:
            raise InputError(f"{where}: {row[rate][:40]!r} is no rate of 0 or more; the file is damaged")
        return int(size), int(count), int(size) / rate_Bps if rate_Bps else nan, nan, nan
    spread = [_number(word) * 1e-6 for name, word in row.items() if _SPREAD.match(name)]
    spread = [time_s for time_s in spread if isfinite(time_s)] or [nan]
    return int(size), int(count), _number(row[block.mean_column]) * 1e-6, min(spread), max(spread)


def _number(word: str) -> float:
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
