"""What measuring costs, and whether 10^6 rows are all there after a rank was killed.

With Debian's Open MPI and MPICH. Fixed before anything was looked at:

* two readings of a clock with nothing in between (the operation `none`, 100,000 calls after MPI_Barrier on 2 ranks):
  median and 99th percentile, for MPI_Wtime, clock_gettime and RDTSCP; this is in every time that is measured. Goal:
  medians below 100 ns;
* what the loop takes for a call beside it: from start to start on one rank, where MPI_Barrier has nobody to wait for;
* what a row takes to be written, outside of timed regions: time from the end of the last of 1,000,000 calls of `none`
  on one rank to the end of the program, over their number;
* 2 ranks and 500,000 calls each; when both files have the rows of this batch, during the next, rank 1 is killed. Goal:
  1,000,000 rows of the batch, each whole, each call of each rank once.
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas
import psutil
from support.mpi_probe import COLLECTIVES, LIBRARIES, TITLES, Program, design_words, program
from support.report import Goal, close, markdown, options_of, run_main

CLOCKS = ("MPI_Wtime", "clock_gettime", "rdtscp")
CALLS, ROWS, LIMIT_S = 100_000, 1_000_000, 60.0
TEXT = """## What measuring collective operations costs

    .venv/bin/python validation/probe_overhead.py

{goals}

Two readings of the clock with nothing in between, on 2 ranks, and the loop from start to start on one rank with its
barrier; a row is written outside of all timed regions; ns:

{rows}
"""


def main() -> int:
    options = options_of(__doc__, (), has_quick=False)
    if options.summarise:
        sys.exit("probe_overhead.py: no table of single calls is kept; without --summarise it measures anew")
    rows, goals = [], []
    with tempfile.TemporaryDirectory(prefix="probe-overhead-") as name:
        for library in LIBRARIES:
            probe = program(library, COLLECTIVES, Path(name))
            for clock in CLOCKS:
                middle, high, loop = overhead(probe, Path(name), clock)
                rows.append((TITLES[library], clock, f"{middle:.0f}", f"{high:.0f}", f"{loop:.0f}"))
                what = f"{TITLES[library]}, {clock}: two readings, median"
                goals.append(Goal(what, "below 100 ns", f"{middle:.0f} ns", middle < 100))
            written = writing(probe, Path(name))
            kept, whole = after_a_kill(probe, Path(name))
            what = f"{TITLES[library]}: rows left when a rank was killed"
            goals.append(Goal(what, f"{ROWS:,}, all whole", f"{kept:,}, {'' if whole else 'not '}all whole", whole))
            rows.append((TITLES[library], "a row is written", f"{written:.0f}", "", ""))
    table = markdown(("library", "", "median", "99th percentile", "loop"), rows)
    return close(options, "probe_overhead", goals, TEXT.replace("{rows}", table))


def words(folder: Path, *batches: str) -> tuple[str, ...]:
    """Of the command line of a probe, whose files are FILE.r0 ..."""
    return (*design_words(folder, batches), "--clock-method", "SKaMPI", "--warm-up", "0")


def rows_of(folder: Path, rank: int) -> pandas.DataFrame:
    return pandas.read_csv(folder / f"raw.r{rank}", comment="#")


def overhead(probe: Program, folder: Path, clock: str) -> tuple[float, float, float]:
    """Median and 99th percentile of two readings on 2 ranks; median from start to start on one; ns."""
    batch = f"none,blocking,0,{CALLS},MPI_Barrier,0,0"
    probe.run(2, *words(folder, batch), "--clock", clock)
    both = pandas.concat(rows_of(folder, rank) for rank in range(2))
    times = (both["end_ns"] - both["start_ns"]).to_numpy()
    probe.run(1, *words(folder, batch), "--clock", clock)
    # The mean of a hundred calls: clocks have a resolution of some tens of ns.
    starts = rows_of(folder, 0)["start_ns"].to_numpy()[::100]
    return float(np.median(times)), float(np.quantile(times, 0.99)), float(np.median(np.diff(starts)) / 100)


def writing(probe: Program, folder: Path) -> float:
    """From the end of the last call to the end of the program, ns a row."""
    probe.run(1, *words(folder, f"none,blocking,0,{ROWS},MPI_Barrier,0,0"))
    ended_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return float(ended_ns - int(rows_of(folder, 0)["end_ns"].iloc[-1])) / ROWS


def after_a_kill(probe: Program, folder: Path) -> tuple[int, bool]:
    """Rows of the first batch that are left when a rank is killed in the second; whether they are all, and whole."""
    calls = ROWS // 2
    for rank in range(2):
        (folder / f"raw.r{rank}").unlink(missing_ok=True)
    batches = f"none,blocking,0,{calls},MPI_Barrier,0,0", "Barrier,blocking,0,1000000,window,0,1000000"
    process = probe.start(2, *words(folder, *batches))
    raw = [folder / f"raw.r{rank}" for rank in range(2)]
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and not all(path.is_file() and ends(path, f",{calls - 1},") for path in raw):
        time.sleep(0.1)
    time.sleep(0.5)
    ranks = [
        child.pid
        for child in psutil.Process(process.pid).children(recursive=True)
        if child.name().startswith(probe.path.name[:15])
    ]
    os.kill(max(ranks), signal.SIGKILL)
    process.communicate(timeout=LIMIT_S)
    frames = [rows_of(folder, rank) for rank in range(2)]
    first = [frame[frame["design_row"] == 0] for frame in frames]
    whole = all(
        len(frame) == calls
        and sorted(frame["call"]) == list(range(calls))
        and not frame.isna().any().any()
        and bool((frame["rank"] == rank).all())
        for rank, frame in enumerate(first)
    )
    return sum(map(len, first)), whole


def ends(path: Path, text: str) -> bool:
    """Whether a text is in the last bytes of a file."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 400))
        return text.encode() in file.read()


if __name__ == "__main__":
    run_main(main)
