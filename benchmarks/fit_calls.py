"""How the time of a fit grows with the calls: those of a kernel, 30,000 and 300,000.

    .venv/bin/python benchmarks/fit_calls.py

CPU time of one thread, as threads of the BLAS that only wait do not count; the two in turn, medians of three. Goal: ten
times the calls take at most ten times as long.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support_fit import kernel_rows, write_calibration

from lepaute.measure.archive import Archive
from lepaute.measure.fit import models

PROCESSES, CALLS = 10, (3000, 30_000)  # of each process
REPETITIONS, MAX_RATIO = 3, 10.0


def main() -> int:
    took_s: dict[int, list[float]] = {calls: [] for calls in CALLS}
    with tempfile.TemporaryDirectory() as folder:
        archives = {
            calls: Archive.open(write_calibration(Path(folder, f"{calls}.zip"), kernel_rows(PROCESSES, calls)))
            for calls in CALLS
        }
        for _ in range(REPETITIONS):
            for calls, archive in archives.items():
                began_s = time.thread_time()
                models(archive)
                took_s[calls].append(time.thread_time() - began_s)
    few_s, many_s = (median(took_s[calls]) for calls in CALLS)
    print("| calls | median CPU s |\n|---|---|")
    for calls, seconds in zip(CALLS, (few_s, many_s), strict=True):
        print(f"| {PROCESSES * calls:,} | {seconds:.2f} |")
    print(f"\nRatio {many_s / few_s:.1f}; goal: at most {MAX_RATIO:g}.")
    return 0 if many_s <= MAX_RATIO * few_s else 1


if __name__ == "__main__":
    sys.exit(main())
