"""`lepaute compare` with a library that was made slower: how many mpiruns it takes to see it.

    .venv/bin/python validation/comparison_power.py [--output DIR] [--reuse]

Fixed before anything was looked at; other programs use the machine meanwhile, at any load:

* Open MPI in six prefixes, each of which links a shim between program and library (PMPI) that waits after Bcast and
  Allreduce: `plain` and `again` for no time, `5 %` and `1 %` for that share of the row's median (of 6 mpiruns before),
  `one rank` for 5 % of it on rank 1 alone, `one call` for 20 % of it in one call of a hundred;
* 1 KiB, 32 KiB and 256 KiB (6 rows) on 2 ranks, 100 calls, 40 mpiruns of each in one campaign of all six;
* each is compared with `plain` in windows of 5, 10, 20 and 40 successive mpiruns of both that do not overlap; a row is
  detected where it is decided after the correction of the 6 rows, the right way round;
* goals: of the rows slower by 5 %, on all ranks or on one, at least 80 % are detected with 40 mpiruns; of all rows and
  windows of `again` at most 5 % are decided, and of all others at most 5 % the wrong way round. The comparison uses
  medians of mpiruns, which one call of a hundred does not change; beside it the same with means of all calls.

Writes data/comparison_power.csv.gz (a row an mpirun, operation and size) and its section of docs/evidence.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pandas
from support.evidence import EVIDENCE, write_section
from support.goals import Goal, at_most, markdown, status
from support.mpi_campaigns import goal_rows, measured, numbers, prefix

from lepaute.compare.verdicts import verdicts

SIZES, CALLS, BLOCKS, PILOT = "1K,32K,256K", 100, 40, 6
WINDOWS = (5, 10, 20, 40)
#: Label: share of the median, rank that waits (-1: all), one call of so many.
DELAYS = {
    "plain": (0.0, -1, 1),
    "again": (0.0, -1, 1),
    "5-percent": (0.05, -1, 1),
    "1-percent": (0.01, -1, 1),
    "one-rank": (0.05, 1, 1),
    "one-call": (0.2, -1, 100),
}
TITLES = {
    "again": "nothing",
    "5-percent": "5 %",
    "1-percent": "1 %",
    "one-rank": "5 % on one rank",
    "one-call": "20 % of one call in 100",
}
SHIM = """
#define _GNU_SOURCE
#include <mpi.h>
#include <time.h>
static int number;
static double now_s(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void wait_for(double seconds, MPI_Comm comm) {
    int rank;
    PMPI_Comm_rank(comm, &rank);
    if (seconds <= 0 || (RANK >= 0 && rank != RANK) || ++number % EVERY) return;
    for (double end = now_s() + seconds; now_s() < end;) {}
}
static double delay_s(int operation, int count, MPI_Datatype type) {
    int size;
    PMPI_Type_size(type, &size);
    long key = 2L * count * size + operation;
    switch (key) { TABLE default: return 0; }
}
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    int result = PMPI_Bcast(buffer, count, type, root, comm);
    wait_for(delay_s(0, count, type), comm);
    return result;
}
int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int result = PMPI_Allreduce(send, receive, count, type, op, comm);
    wait_for(delay_s(1, count, type), comm);
    return result;
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=EVIDENCE, help="folder of the pages")
    parser.add_argument("--reuse", action="store_true", help="judge the table that is there")
    options, _ = parser.parse_known_args()
    path = options.output / "data" / "comparison_power.csv.gz"
    if options.reuse:
        table = pandas.read_csv(path)
    else:
        with tempfile.TemporaryDirectory(prefix="comparison-power-") as name:
            table = campaign(Path(name))
        table.to_csv(path, index=False, compression={"method": "gzip", "mtime": 1})
    results = pandas.concat([detections(table, value).assign(value=value) for value in ("median_s", "mean_all_s")])
    goals = goals_of(results[results["value"] == "median_s"])
    write_section(options.output, "comparison_power", page(results, table, goals))
    for goal in goals:
        print(goal)
    return status(goals)


# ---- measuring -------------------------------------------------------------------------------------------------------


def campaign(folder: Path) -> pandas.DataFrame:
    pilot = measured(
        [f"{label}={slowed(folder / 'pilot' / label, (0.0, -1, 1), {})}" for label in ("plain", "again")],
        *("bcast,allreduce", SIZES, CALLS, PILOT),
        seed=1,
    )
    medians = pilot.groupby(["operation", "size_bytes"])["median_s"].median().to_dict()
    libraries = [f"{label}={slowed(folder / label, delay, medians)}" for label, delay in DELAYS.items()]
    table = measured(libraries, "bcast,allreduce", SIZES, CALLS, BLOCKS, seed=2)
    keys = pandas.MultiIndex.from_frame(table[["operation", "size_bytes"]])
    return table.assign(
        planned_s=[medians[key] * DELAYS[label][0] for key, label in zip(keys, table["library"], strict=True)]
    )


def slowed(folder: Path, delay: tuple[float, int, int], medians: Mapping[tuple[str, int], float]) -> Path:
    """A prefix of Open MPI that waits for a share of the medians, on one rank or all, in one call of so many."""
    share, rank, every = delay
    cases = " ".join(
        f"case {2 * size + (operation == 'Allreduce')}: return {share * median:.9e};"
        for (operation, size), median in medians.items()
    )
    shim = SHIM.replace("RANK", str(rank)).replace("EVERY", str(every)).replace("TABLE", cases)
    return prefix(folder, "mpicc.openmpi", "mpirun.openmpi", shim)


# ---- judging ---------------------------------------------------------------------------------------------------------


def detections(table: pandas.DataFrame, value: str) -> pandas.DataFrame:
    """A row a library, window and row of the comparison: `detected` and `wrong`, the wrong way round."""
    rows = []
    number = numbers(table)
    for mpiruns in WINDOWS:
        for first in range(0, BLOCKS - mpiruns + 1, mpiruns):
            window = table[(number >= first) & (number < first + mpiruns)]
            for label in TITLES:
                rows += [
                    {
                        "library": label,
                        "mpiruns": mpiruns,
                        "operation": one.operation,
                        "size_bytes": one.size_bytes,
                        "detected": one.outcome == "left faster",
                        "wrong": one.outcome == "right faster",
                    }
                    for one in verdicts(window, "plain", label, value=value)
                ]
    return pandas.DataFrame(rows)


def goals_of(results: pandas.DataFrame) -> list[Goal]:
    slower = results[results["library"].isin(["5-percent", "one-rank"]) & (results["mpiruns"] == max(WINDOWS))]
    seen = 100 * slower["detected"].mean()
    same = results[results["library"] == "again"]
    others = results[results["library"] != "again"]
    return [
        Goal(
            f"rows slower by 5 % that are detected with {max(WINDOWS)} mpiruns",
            "at least 80 %",
            f"{seen:.0f} % of {len(slower)}",
            bool(seen >= 80),
        ),
        at_most("rows decided without a delay", 5, 100 * float((same["detected"] | same["wrong"]).mean())),
        at_most("rows decided the wrong way round", 5, 100 * float(others["wrong"].mean())),
    ]


def page(results: pandas.DataFrame, table: pandas.DataFrame, goals: list[Goal]) -> str:
    def share(**chosen: object) -> str:
        mine = results
        for name, wanted in chosen.items():
            mine = mine[mine[name] == wanted]
        return f"{100 * mine['detected'].mean():.0f} %"

    def by_mpiruns(value: str) -> str:
        rows = [
            [TITLES[label], *(share(library=label, mpiruns=count, value=value) for count in WINDOWS)]
            for label in TITLES
        ]
        return markdown(("waits for", *(f"{count} mpiruns" for count in WINDOWS)), rows)

    keys = ["operation", "size_bytes"]
    plain = table[table["library"] == "plain"]
    spread = plain.groupby(keys)["median_s"].agg(
        lambda values: (values.quantile(0.75) / values.quantile(0.25) - 1) * 100
    )
    median = plain.groupby(keys)["median_s"].median()
    sizes = [
        [
            *(operation, f"{size // 1024} KiB"),
            f"{1e6 * median[operation, size]:.1f} µs",
            f"{spread[operation, size]:.0f} %",
            *(
                share(library=label, mpiruns=40, value="median_s", operation=operation, size_bytes=size)
                for label in ("5-percent", "one-rank", "1-percent")
            ),
        ]
        for operation, size in spread.index
    ]
    return "\n".join(
        [
            "## A library that was made slower",
            "",
            "`validation/comparison_power.py`: Debian's Open MPI with a shim that waits after each call, against itself"
            " with one that does not; 6 rows, share of rows that are detected after the correction.",
            "",
            goal_rows(goals),
            "",
            by_mpiruns("median_s"),
            "",
            "With the mean of all calls in the place of the median of an mpirun:",
            "",
            by_mpiruns("mean_all_s"),
            "",
            "Waits shorter than some 40 ns last longer than planned, since they end with a reading of the clock:"
            " 1 % of 0.4 µs is seen where it should not be. What decides is by how much mpiruns differ (quartiles"
            " of the medians of `plain`), rows with 40 mpiruns:",
            "",
            markdown(("", "", "median", "mpiruns differ by", "5 %", "5 % on one rank", "1 %"), sizes),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
