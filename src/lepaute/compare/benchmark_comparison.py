"""Two libraries by the output of other benchmarks, as far as that goes: one mean for each run, operation and size.

A file that holds several runs (the benchmark repeated, its output appended) gives one value for each, and verdicts are
by these as they are by mpiruns. One run gives times side by side, and no verdict.
"""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.archive.mpi_campaign import LibraryFacts
from lepaute.compare.benchmark_output import INTEL, OSU, BenchmarkOutput, Mean, is_benchmark_output, read_output
from lepaute.compare.comparison import Comparison
from lepaute.compare.sources import Source
from lepaute.compare.verdicts import MARGIN, Correction, verdicts
from lepaute.errors import InputError
from lepaute.fit.duration_tables import skipped_note

if TYPE_CHECKING:
    import pandas

#: The column of summaries that stands for an mpirun.
VALUE = "mean_all_s"
#: Runs of each library below which two libraries cannot differ significantly in a single row: 2 of 20 arrangements.
FEW_RUNS = 4
_START = {
    OSU: "ranks start each call after the MPI_Barrier of the library under test, which they leave at different times, "
    "and a call's time is the mean over ranks of what each saw (scheme MS1)",
    INTEL: "the calls of a run follow each other without a synchronisation, so that they may overlap (scheme MS2)",
}


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

    Raises InputError where a file is damaged or no such output, where the files are of different suites or the same,
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
    ranks = {one.ranks for each in both for one in each.means}
    return Comparison(
        left=labels[0],
        right=labels[1],
        libraries=tuple(LibraryFacts(label, one.path.name) for label, one in zip(labels, both, strict=True)),
        ranks=(ranks.pop() or 0) if len(ranks) == 1 else 0,
        run_time="mean over calls and ranks",
        margin=margin,
        verdicts=found,
        guidelines=(),
        summaries=summaries,
        flags=(),
        sample_means=(),
        left_out={},
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
    )


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


def _summaries(both: tuple[BenchmarkOutput, ...], labels: tuple[str, str]) -> "pandas.DataFrame":
    """As `mpirun_summaries`, of which only VALUE is known: a row a run and mean; all runs are one block."""
    import pandas

    several = len({one.ranks for each in both for one in each.means}) > 1
    runs_before = 1 + max(one.run for one in both[0].means)
    rows = [
        {
            "library": label,
            "block": 0,
            "mpirun": one.run + offset,
            "operation": _name(one, several),
            "form": one.form,
            "size_bytes": one.size_bytes,
            "calls": one.calls,
            VALUE: one.mean_s,
        }
        for each, label, offset in zip(both, labels, (0, runs_before), strict=True)
        for one in each.means
    ]
    return pandas.DataFrame(rows)


def _name(mean: Mean, several: bool) -> str:
    """The operation, with its ranks where the outputs have several numbers of them."""
    return f"{mean.operation}, {mean.ranks} ranks" if several and mean.ranks is not None else mean.operation


def _warnings(both: tuple[BenchmarkOutput, ...], runs: int) -> tuple[str, ...]:
    lines = [f"{one.path.name}: {skipped_note(one.skipped)}" for one in both if one.skipped]
    if runs < FEW_RUNS:
        few = "there is one run" if runs == 1 else f"there are {runs} runs"
        lines.append(
            f"{few} of a library: how far runs differ cannot be told from that, and no difference can be shown; repeat "
            "the benchmark with both libraries in turn, ten times or more, and append what it prints to the two files"
        )
    lines.append("what changed between the runs of one library and those of the other counts as a difference")
    lines.append(
        "each value is the mean of all calls of a run: their spread, outliers and filter are not in the output"
    )
    lines.append(_START[both[0].suite])
    if both[0].suite == OSU:
        lines.append("the outputs do not say how many ranks there were")
    if both[0].version != both[1].version:
        lines.append(f"the benchmarks have different versions ({both[0].version or '?'} and {both[1].version or '?'})")
    return tuple(lines)
