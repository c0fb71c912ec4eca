"""Real campaigns of `lepaute compare` beside the simulated ones: a planted difference on a loaded machine.

    .venv/bin/python validation/comparison_real.py [--summarise]

Fixed before anything was looked at; by the command, with sentinels and repetitions as users have them: Open MPI against
itself, where Allreduce waits for 0.5 µs more and Bcast does not; 8 bytes and 1 KiB, 2 ranks; budgets of one and three
minutes, each with nothing more beside than others who use the machine, with a program that takes a core for 10 of every
40 s, and with it throughout. At most one campaign of six has a decided row of Bcast (two have with 3 %); no row of
Allreduce is decided the wrong way. How many are decided is the power. Builds against baselines need four days.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pandas
from support.mpi_campaigns import prefix
from support.real_runs import LEPAUTE
from support.report import Goal, Options, in_scratch, markdown, run_study, say

STUDY = "comparison_real"
LOADS, BUDGETS_MIN = ("nothing", "periodic", "throughout"), (1, 3)
BUSY_S, IDLE_S = 10, 30
COMMON = ("--np", "2", "--clock-method", "SKaMPI")
SHIM = """
#include <mpi.h>
#include <time.h>
static double now_s(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int result = PMPI_Allreduce(send, receive, count, type, op, comm);
    for (double end = now_s() + 5e-7; now_s() < end;) {}
    return result;
}
"""
TITLE = """## Real campaigns

`validation/comparison_real.py`, where it stands what was planted; on this machine, by the command.

{goals}

Rows decided, and the ratio (median of both sizes):

{power}
"""


def rows(_: Options) -> pandas.DataFrame:
    return in_scratch("comparison-real-", campaigns)


def campaigns(folder: Path) -> pandas.DataFrame:
    """A row of each verdict, with the load and the budget."""
    left = prefix(folder / "left", "mpicc.openmpi", "mpirun.openmpi")
    right = prefix(folder / "right", "mpicc.openmpi", "mpirun.openmpi", SHIM)
    rows = []
    for seed, (budget, load) in enumerate(product(BUDGETS_MIN, LOADS), 1):
        cases = ("--ops", "bcast,allreduce", "--sizes", "8,1K", "--budget", f"{budget}min", "--seed", str(seed))
        words = (f"left={left}", f"right={right}", *cases, *COMMON, "--json")
        with beside(load):
            done = subprocess.run((*LEPAUTE, "compare", *words), cwd=folder, capture_output=True, text=True, check=True)
        result = json.loads(done.stdout)
        names = ("operation", "size_bytes", "ratio", "outcome")
        rows += [{name: row[name] for name in names} | {"load": load, "budget_min": budget} for row in result["rows"]]
        say(f"{load}, {budget} min: {result['answer']}")
    return pandas.DataFrame(rows)


@contextmanager
def beside(load: str) -> Iterator[None]:
    """A program that takes core 0 meanwhile, throughout or now and then."""
    over = threading.Event()
    endless = [sys.executable, "-c", "import os; os.sched_setaffinity(0, {0})\nwhile True: pass"]

    def disturb() -> None:
        while not over.is_set():
            program = subprocess.Popen(endless)
            over.wait(BUSY_S if load == "periodic" else None)
            program.kill()
            program.wait()
            over.wait(IDLE_S)

    thread = threading.Thread(target=disturb)
    if load != "nothing":
        thread.start()
    try:
        yield
    finally:
        over.set()
        if load != "nothing":
            thread.join()


def is_decided(found: pandas.DataFrame) -> "pandas.Series[bool]":
    return found["outcome"].isin(("left faster", "right faster"))


def goals_of(found: pandas.DataFrame) -> list[Goal]:
    decided = found[is_decided(found)]
    nulls = len(decided[decided["operation"] == "bcast"].groupby(["load", "budget_min"]))
    wrong = int(((decided["operation"] == "allreduce") & (decided["outcome"] == "right faster")).sum())
    return [
        Goal("campaigns with a decided row of Bcast", "at most 1 of 6", f"{nulls} of 6", nulls <= 1),
        Goal("rows of Allreduce decided the wrong way", "none", str(wrong), wrong == 0),
    ]


def page(found: pandas.DataFrame) -> str:
    rows = []
    for (load, budget), of_campaign in found.groupby(["load", "budget_min"]):
        cells = [str(load), f"{budget} min"]
        for operation in ("bcast", "allreduce"):
            of_operation = of_campaign[of_campaign["operation"] == operation]
            cells.append(
                f"{is_decided(of_operation).sum()} of {len(of_operation)}, {of_operation['ratio'].median():.3f}"
            )
        rows.append(cells)
    return TITLE.replace("{power}", markdown(("beside", "budget", "Bcast: as fast", "Allreduce: 0.5 µs slower"), rows))


if __name__ == "__main__":
    run_study(STUDY, rows, goals_of, page)
