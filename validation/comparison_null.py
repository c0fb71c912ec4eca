"""`lepaute compare` of a library with itself: how often it sees a difference where there is none.

Fixed before anything was looked at; other programs use the machine meanwhile, at any load:

* same: 20 campaigns of one library under two prefixes, Open MPI and MPICH in turn; Bcast and Allreduce of 8 bytes, 1
  and 32 KiB on 2 ranks, 40 calls, 12 mpiruns of each. Goals: at most 3 campaigns with a decided row (97.5 % quantile of
  the binomial with 5 %); rows with p <= 0.05 before the correction within 5 % -+ 2.09 standard errors (the larger one
  of the spread between campaigns and of independent rows);
* disturbed: 4 campaigns of 18 mpiruns, in the middle third of which another program takes a core; at most 1 with a
  decided row, 3.18 standard errors; slowed: the same with calls that take 5 µs longer then, of both libraries (a shim),
  added when the other program had shown not to change medians; periodic: 6 campaigns of 16 mpiruns, 5 µs longer in
  every third, fourth or fifth mpirun; 2.57 standard errors;
* beside it the usual order, all of one library first, and the test of Mann and Whitney, without blocks.

Of recorded mpiruns, fixed after a first look: 300 campaigns of one library, by 24 of the 30 of `mpi_benchmarking.py` in
3 blocks drawn anew, 4 rows: at most 5 % say anything. CI: the trials of `comparison_spread.py` are days; of 40 builds
against others of one library (not those of which every mpirun was disturbed, which cannot be red) at most 4 are red.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas
from support.mpi_campaigns import judged, measured, numbers, prefix
from support.report import Goal, close, in_scratch, options_of, run_main, say, stored_parts

from lepaute.measure.compare.baseline import day_verdicts
from lepaute.measure.compare.summaries import mpirun_summaries
from lepaute.measure.compare.verdicts import verdicts
from lepaute.measure.compare.wording import gate
from lepaute.stats.aligned_ranks import BLOCK

STUDY = "comparison_null"
LIBRARIES = ("openmpi", "mpich")
CALLS = {"ops": "bcast,allreduce", "sizes": "8,1K,32K", "calls": 40}
#: Campaigns by kind.
CAMPAIGNS = {"same": 20, "disturbed": 4, "slowed": 4, "periodic": 6}
#: Of each library.
MPIRUNS = {"same": 12, "disturbed": 18, "slowed": 18, "periodic": 16}
#: Campaigns with a decided row, at most; standard errors.
LIMITS = {"same": (3, 2.093), "disturbed": (1, 3.182), "slowed": (1, 3.182), "periodic": (1, 2.571)}
LEVEL, SEED = 0.05, 53
#: Waits after Bcast and Allreduce while a file is there.
SHIM = """
#include <mpi.h>
#include <time.h>
#include <unistd.h>
static int slow;
static double now_s(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void wait_if_slow(void) {
    if (!slow) return;
    for (double end = now_s() + 5e-6; now_s() < end;) {}
}
int MPI_Init(int *count, char ***words) {
    slow = access("FILE", F_OK) == 0;
    return PMPI_Init(count, words);
}
int MPI_Init_thread(int *count, char ***words, int wanted, int *given) {
    slow = access("FILE", F_OK) == 0;
    return PMPI_Init_thread(count, words, wanted, given);
}
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    int result = PMPI_Bcast(buffer, count, type, root, comm);
    wait_if_slow();
    return result;
}
int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int result = PMPI_Allreduce(send, receive, count, type, op, comm);
    wait_if_slow();
    return result;
}
"""
#: Of recorded ones: campaigns, and their blocks; builds, and days of baselines.
RECORDED, OF_RECORDED, BUILDS, DAYS = 300, 3, 40, (4, 7, 14)
TITLE = """## A library compared with itself

`validation/comparison_null.py`: Debian's Open MPI and MPICH under two prefixes each, on this machine, which other \
programs used at the same time.

{goals}
"""
OWN = {"--kind": {"choices": CAMPAIGNS, "help": "measure this kind alone; keep the tables of the others"}}


def main() -> int:
    options = options_of(__doc__, (), own=OWN, has_quick=False)
    measures = {kind: partial(in_scratch, "comparison-null-", campaigns, kind) for kind in CAMPAIGNS}
    table = pandas.concat(stored_parts(options, STUDY, "kind", measures, options.own.kind), ignore_index=True)
    results = pandas.DataFrame([result for _, one in table.groupby(["kind", "campaign"]) for result in rows(one)])
    tables = options.table("mpi_benchmarking_mpiruns", "csv.gz"), options.table("comparison_spread", "csv.gz")
    calls, trials = map(pandas.read_csv, tables)
    goals = [*goals_of(results), of_recorded(calls), *(builds(trials, days) for days in DAYS)]
    return close(options, STUDY, goals, page(results))


def campaigns(kind: str, folder: Path) -> pandas.DataFrame:
    """A row an mpirun, operation and size of each campaign of a kind, with `kind`, `campaign` and `family`."""
    tables, sign = [], folder / "slow"
    shim = SHIM.replace("FILE", str(sign)) if kind in ("slowed", "periodic") else ""
    for family in LIBRARIES:
        for label in ("first", "second"):
            prefix(folder / family / label, f"mpicc.{family}", f"mpirun.{family}", shim)
    count, seed = CAMPAIGNS[kind], 1 + sum(list(CAMPAIGNS.values())[: list(CAMPAIGNS).index(kind)])
    for campaign in range(seed - 1, seed - 1 + count):
        family = LIBRARIES[campaign % 2]
        libraries = [f"{label}={folder / family / label}" for label in ("first", "second")]
        mpiruns = MPIRUNS[kind]
        with disturbance(kind, sign, 3 + campaign % 3) as told:
            table = measured(libraries, **CALLS, mpiruns=mpiruns, seed=campaign + 1, progress=told)
        tables.append(table.assign(kind=kind, campaign=campaign, family=family))
        say(f"campaign {campaign + 1}: {kind}, {family}")
    return pandas.concat(tables, ignore_index=True)


@contextlib.contextmanager
def disturbance(kind: str, sign: Path, period: int) -> Iterator[Callable[[str, float], None]]:
    """What happens while some mpiruns are measured: a program that takes core 0, or the sign to be slow.

    It is given the progress of a campaign: "mpirun 7 of 36: first".
    """
    programs: list[subprocess.Popen[bytes]] = []

    def end() -> None:
        sign.unlink(missing_ok=True)
        while programs:
            programs[-1].kill()
            programs.pop().wait()

    def told(message: str, _share: float) -> None:
        words = message.split()
        if words[0] != "mpirun":
            return
        number, count = int(words[1]) - 1, int(words[3].rstrip(":"))
        if not (number % period == 0 if kind == "periodic" else count / 3 <= number < 2 * count / 3):
            end()
        elif kind in ("slowed", "periodic"):
            sign.touch()
        elif kind == "disturbed" and not programs:
            endless = [sys.executable, "-c", "import os; os.sched_setaffinity(0, {0})\nwhile True: pass"]
            programs.append(subprocess.Popen(endless))

    try:
        yield told
    finally:
        end()


def rows(table: pandas.DataFrame) -> list[dict[str, object]]:
    """A row of a campaign each: p-values before and after the correction, and the p-value of the usual order."""
    about = table.iloc[0][["kind", "campaign", "family"]].to_dict()
    return [
        {
            **about,
            "p_value": one.p_value,
            "decided": one.p_corrected <= LEVEL,
            "usual_p_value": usual(table, about["kind"], one.operation, one.size_bytes),
        }
        for one in judged(table, "first", "second")
    ]


def usual(table: pandas.DataFrame, kind: str, operation: str, size_bytes: int) -> float:
    """The p-value where the second library had been measured after the first."""
    from scipy.stats import mannwhitneyu

    mine = table[(table["operation"] == operation) & (table["size_bytes"] == size_bytes)]
    half, number = MPIRUNS[kind] // (3 if kind in ("disturbed", "slowed") else 2), numbers(mine)
    first = mine[(mine["library"] == "first") & (number < half)]["median_s"]
    second = mine[(mine["library"] == "second") & (number >= half) & (number < 2 * half)]["median_s"]
    return float(mannwhitneyu(first, second).pvalue)


def share_of_rows(results: pandas.DataFrame, column: str) -> tuple[float, float]:
    """The share of rows with p <= LEVEL and its standard error by campaigns, no less than that of independent rows."""
    shares = (results[column] <= LEVEL).groupby(results["campaign"]).mean()
    clustered = float(shares.std(ddof=1) / np.sqrt(len(shares)))
    return float(shares.mean()), max(clustered, float(np.sqrt(LEVEL * (1 - LEVEL) / len(results))))


def goals_of(results: pandas.DataFrame) -> list[Goal]:
    goals = []
    for kind, (most, factor) in LIMITS.items():
        mine = results[results["kind"] == kind]
        wrong = mine.groupby("campaign")["decided"].any()
        seen, allowed = f"{wrong.sum()} of {len(wrong)}", f"at most {most} of {len(wrong)}"
        goals.append(Goal(f"{kind}: campaigns with a decided row", allowed, seen, bool(wrong.sum() <= most)))
        share, error = share_of_rows(mine, "p_value")
        what, allowed = f"{kind}: rows with p <= 0.05 before the correction", f"5 % -+ {100 * factor * error:.1f}"
        is_met = bool(abs(share - LEVEL) <= factor * error)
        goals.append(Goal(what, allowed, f"{100 * share:.1f} % of {len(mine)}", is_met))
    return goals


def of_recorded(calls: pandas.DataFrame) -> Goal:
    """Campaigns that say anything of a library against itself; calls: of recorded mpiruns."""
    known = calls.assign(form="blocking", duration_s=1e-9 * calls["local_ns"], block=0)
    every, rng, says = mpirun_summaries(known), np.random.default_rng(SEED), []
    for library in LIBRARIES * (RECORDED // 2):
        labels = [rng.permutation(["first", "second"] * BLOCK) for _ in range(OF_RECORDED)] + [["not used"] * 30]
        table = every[every["library"] == library]
        place = rng.permutation(30)[table["mpirun"]]
        table = table.assign(library=np.concatenate(labels)[place], block=place // (2 * BLOCK))
        said = verdicts(table, "first", "second")
        says.append([any(row.slow_calls for row in said), any(row.p_corrected <= LEVEL for row in said)])
    slow, either = np.sum(says, axis=0)[0], int(np.any(says, axis=1).sum())
    reached, most = f"{either}, {slow} of them of slow calls", int(LEVEL * RECORDED)
    return Goal(
        "campaigns of recorded mpiruns that say anything", f"at most {most} of {RECORDED}", reached, either <= most
    )


def builds(trials: pandas.DataFrame, days: int) -> Goal:
    """Null builds that are red against days of baselines."""
    rng, red = np.random.default_rng((SEED, days)), 0
    trials = trials.assign(operation="Bcast", form="blocking", disturbed=trials["disturbed"].astype(bool))
    for library in LIBRARIES * (BUILDS // 2):
        table = trials[trials["library"] == library]
        build = rng.choice(table.loc[~table["disturbed"], "trial"].unique())
        others = rng.permutation(np.setdiff1d(table["trial"].unique(), build))[:days]
        table = table[table["trial"].isin([build, *others])]
        names = np.where(table["trial"] == build, "new", "baseline")
        rows_of_days = day_verdicts(table.assign(library=names, block=table["trial"]), "new")
        red += gate(rows_of_days, "new", LEVEL).status() == 1
    return Goal(f"null builds that are red against {days} days", f"at most 4 of {BUILDS}", str(red), red <= 4)


def page(results: pandas.DataFrame) -> str:
    lines = [TITLE]
    for kind, words in (
        ("same", "Had the second library been measured after the first"),
        ("disturbed", "Had the second been measured while the other program ran, and the first before"),
        ("slowed", "Had the second been measured while calls took 5 µs longer, and the first before"),
    ):
        mine = results[results["kind"] == kind]
        usual_share, _ = share_of_rows(mine, "usual_p_value")
        lines.append(f"{words}, {100 * usual_share:.0f} % of {len(mine)} rows would have had p <= 0.05.")
    return "\n".join(lines)


if __name__ == "__main__":
    run_main(main)
