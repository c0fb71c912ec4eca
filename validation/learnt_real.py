"""Applications learnt from runs whose ranks share cores, against real runs on free ones.

Fixed before any result was looked at: jacobi, wavefront and transpose of validation/learnt.py, and ep of NAS where
--nas has its source; learnt from 1, 3 and 4 ranks on two cores, so that the latter two share them; predicted with 24
runs for 2 ranks, which were kept out, on a platform of this machine (--platform, else calibrated first); five real runs
of each with 2 ranks, recorded, from the last rank's MPI_Init to the last one's MPI_Finalize. One that learn refuses has
no runs. Goals: 90 % of all real runs inside the interval of 95 %, and half widths of 15 % or less. It needs a machine
with two cores and nothing else running: 7 minutes, 4 of them of the programs.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas
from learnt import BUILT_HERE, OTHERS, WORK, Program, build, quiet_learn, recorded
from support.real_runs import calibrated, quietly
from support.report import Goal, Options, at_least, at_most, run_study, say

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.trace import read_trace

POINTS, KEPT_OUT, RUNS, REPEATS = (1, 3, 4), 2, 24, 5
OWN = {
    "--nas": {"type": Path, "help": "the folder of the sources of the NAS benchmarks, 3.4-MPI"},
    "--platform": {"type": Path, "help": "a platform file of this machine, calibrated before"},
}


def compared(options: Options) -> pandas.DataFrame:
    folder = WORK / "real"
    folder.mkdir(parents=True, exist_ok=True)
    path = options.own.platform
    if path is None:
        calibrated(folder, "here", (64,), quick=True)
        path = folder / "platform.yaml"
    platform = lp.load_platform(path)
    build(WORK / "openmpi", options.own.nas, simulated=False)
    ep = [program for program in OTHERS if program.name == "ep" and options.own.nas]
    return pandas.DataFrame(
        [row for program in (*BUILT_HERE, *ep) for row in rows_of(program, platform, path, folder / program.name)]
    )


def rows_of(program: Program, platform: lp.Platform, path: Path, folder: Path) -> list[dict[str, object]]:
    """A row for each real run, or one that says why there is no prediction."""
    folder.mkdir(exist_ok=True)
    traces = [recorded(program, ranks, folder / f"r{ranks}.parquet") for ranks in POINTS]
    try:
        learnt = quiet_learn(traces, folder / "learnt.py", str(path))
    except InputError as problem:
        return [{"program": program.name, "reason": str(problem)}]
    time_s = quietly(learnt(ranks=KEPT_OUT), platform, runs=RUNS).time_s  # type: ignore[call-arg]
    rows = []
    for number in range(REPEATS):
        known = read_trace(recorded(program, KEPT_OUT, folder / f"run{number}.parquet")).metadata
        real_s = max(known["ends_s"]) - max(known["begins_s"])
        row = {"program": program.name, "real_s": real_s, "predicted_s": time_s.mean}
        row |= {"low_s": time_s.low, "high_s": time_s.high, "inside": time_s.low <= real_s <= time_s.high}
        say(*(f"{name} {value}" for name, value in row.items()), sep=", ")
        rows.append(row)
    return rows


def judged(frame: pandas.DataFrame) -> Sequence[Goal]:
    runs = frame.dropna(subset=["real_s"])
    half = 50.0 * (runs["high_s"] - runs["low_s"]) / runs["predicted_s"]
    inside = 100.0 * runs["inside"].astype(bool).mean()
    learnt, programs = runs["program"].nunique(), frame["program"].nunique()
    return [
        at_least("real runs inside", 90.0, inside, f"{inside:.0f} % of {len(runs)}"),
        at_most("widest half interval", 15.0, float(half.max())),
        Goal("programs that were learnt", "all", f"{learnt} of {programs}", learnt == programs),
    ]


TEXT = f"""## Learnt on shared cores, predicted for free ones

    .venv/bin/python validation/learnt_real.py --nas FOLDER

Learnt from {", ".join(map(str, POINTS[:-1]))} and {POINTS[-1]} ranks on two cores, predicted for {KEPT_OUT}.

{{goals}}

{{cases}}
"""

if __name__ == "__main__":
    run_study(compared, judged, TEXT, own=OWN, has_quick=False)
