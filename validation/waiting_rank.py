"""What a call costs for having waited for its window: what the processor forgets meanwhile, without any MPI.

    .venv/bin/python validation/waiting_rank.py [--output DIR]

In windows of 0.2 to 1 ms collective operations take longer the longer the ranks have waited (mpi_benchmarking.py). The
tasks of waiting_rank.c are done 500 times after each of seven waits, in 5 rounds; two of them live on what the
processor has learned of the code, one on its data caches. Fixed before this script was run, but after trials by hand
that had led to it: the wait acts through the code if from waits of 20 µs to 1 ms the mean of both tasks of code grows
by more than 10 %, and that of reading cache lines by less than that; means without the slowest 5 % of the calls.

Writes a section of docs/evidence.
"""

import argparse
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas
from support.evidence import EVIDENCE, write_section
from support.goals import Goal, markdown, status

CALLS, ROUNDS = 500, 5
SHORT_US, LONG_US = 20, 1000
TASKS = {
    "branches": "200 times three learned branches",
    "functions": "64 functions by pointer",
    "lines": "128 cache lines read",
    "flags": "a cache line to the other processor and back",
}
CODE, DATA = ("branches", "functions"), "lines"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=EVIDENCE, help="folder of the pages")
    options = parser.parse_args()
    calls = measured()
    goals = judged(calls)
    write_section(options.output, "waiting_rank", page(calls, goals))
    for goal in goals:
        print(goal)
    return status(goals)


def measured() -> pandas.DataFrame:
    """Columns task, wait_us, call, duration_ns."""
    with tempfile.TemporaryDirectory(prefix="waiting-rank-") as folder:
        program = str(Path(folder, "waiting_rank"))
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-std=c11", "-O1", "-o", program, str(source)], check=True)
        texts = [subprocess.run([program, str(CALLS)], check=True, capture_output=True).stdout for _ in range(ROUNDS)]
    return pandas.concat(pandas.read_csv(io.BytesIO(text)) for text in texts)


def judged(calls: pandas.DataFrame) -> list[Goal]:
    def trimmed_mean(durations: pandas.Series) -> float:
        return float(durations[durations <= durations.quantile(0.95)].mean())

    means = calls.groupby(["task", "wait_us"])["duration_ns"].agg(trimmed_mean)
    growth = {task: 100 * (means[task, LONG_US] / means[task, SHORT_US] - 1) for task in TASKS}
    what = "grows from waits of 20 µs to 1 ms by"
    goals = [Goal(f"{TASKS[task]} {what}", "above 10 %", f"{growth[task]:.0f} %", growth[task] > 10) for task in CODE]
    return [*goals, Goal(f"{TASKS[DATA]} {what}", "below 10 %", f"{growth[DATA]:.0f} %", growth[DATA] < 10)]


def page(calls: pandas.DataFrame, goals: list[Goal]) -> str:
    table = calls.groupby(["task", "wait_us"])["duration_ns"].quantile([0.5, 0.9]).unstack()
    waits = sorted(calls["wait_us"].unique())
    rows = [
        (title, *(f"{table.loc[(task, wait), 0.5]:.0f}, {table.loc[(task, wait), 0.9]:.0f}" for wait in waits))
        for task, title in TASKS.items()
    ]
    return f"""\
## What waiting for a window costs

    .venv/bin/python validation/waiting_rank.py

Why collective operations take longer in long windows: on this machine a processor that has waited for a millisecond
has forgotten part of what it had learned of the code that comes next (branches and their targets); interrupts of the
host may be what makes it forget, which was not examined. No MPI takes part in this, and a rank that computes for a
millisecond before it calls MPI pays the same.

{
        markdown(
            ("", "expected", "reached", "met"),
            [(goal.what, goal.goal, goal.reached, "yes" if goal.met else "NO") for goal in goals],
        )
    }

Median and 90th percentile, ns, by the wait in us; {ROUNDS} rounds of {CALLS} calls:

{markdown(("", *(str(wait) for wait in waits)), rows)}
"""


if __name__ == "__main__":
    sys.exit(main())
