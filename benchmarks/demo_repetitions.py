"""Whole demos (calibration, fit, predictions, real runs of HPL), and what all of them show together.

    python benchmarks/demo_repetitions.py DIR                  one demo, in DIR/1, and so on (about seven minutes)
    python benchmarks/demo_repetitions.py DIR --demos 4        four, a quarter of an hour apart from start to start
    python benchmarks/demo_repetitions.py DIR --append         no demo: those in DIR that the table does not have yet
    python benchmarks/demo_repetitions.py --page               no demo: the page by the table as it is

Each demo is appended to docs/evidence/data/demo_runs.csv, a row a real run, whatever came of it, and the section of the
page is written anew. Goals, fixed before the first of them: those of `goals_of`; exit status 1 where one is missed.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas
from matplotlib.figure import Figure
from scipy.stats import t as student

from lepaute.kit.files import write_atomic
from lepaute.kit.picture import MEASURED, PREDICTED, RULE, SOFT, bare, new_figure

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "validation"))

from support.report import EVIDENCE, Goal, at_most, goals_table, markdown, save_figure, status, write_section  # noqa: E402

#: From start to start: a machine that others share is another one by then.
APART_S = 900.0
TABLE = EVIDENCE / "data" / "demo_runs.csv"
LARGE_N, LARGEST_N = 4000, 8000
LEVEL = 0.95
# Far apart: prediction run i of a demo uses seed + i.
SEED_STEP = 1000
CASE = ["demo", "n", "p", "q"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--demos", type=int, default=1)
    parser.add_argument("--append", action="store_true", help="no demo, but those that the folder has")
    parser.add_argument("--page", action="store_true", help="no demo, but the page")
    options, demo_options = parser.parse_known_args()
    if options.folder is None and not options.page:
        print("ten demos take hours, so not here: python benchmarks/demo_repetitions.py DIR --demos 10")
        return 0
    if not options.append and not options.page:
        start_s = time.monotonic()
        for position in range(options.demos):
            time.sleep(max(0.0, start_s + position * APART_S - time.monotonic()))
            run_demo(options.folder, demo_options)
            append(options.folder)
    elif options.append:
        append(options.folder)
    runs = pandas.read_csv(TABLE)
    goals = goals_of(runs)
    text = section(runs, goals)
    write_section(EVIDENCE, "demo_runs", text, max_rows=demos_of(runs))
    finding = f"{inside_text(cases_of(runs))} means of undisturbed runs are inside their 95 % intervals"
    source = f"{demos_of(runs)} demos of 9 cases"
    save_figure(picture(cases_of(runs)), EVIDENCE / "data" / "demo_runs.png", finding, source)
    print(text)
    return status(goals)


def run_demo(folder: Path, more: list[str]) -> None:
    """One whole demo, as `make demo` runs it, in the next folder; further options are passed on to it."""
    number = 1 + max((int(path.name) for path in folder.glob("*") if path.name.isdigit()), default=0)
    argv = [sys.executable, "-m", "lepaute.cli.main", "verify", "hpl", "--calibrate"]
    seed = 1 + SEED_STEP * (number - 1)
    subprocess.run([*argv, "--seed", str(seed), "--output", str(folder / str(number)), *more], check=True)


def append(folder: Path) -> None:
    """Appends to the table the real runs of the demos in a folder that it does not have yet, in the order of dates."""
    known = pandas.read_csv(TABLE) if TABLE.is_file() else pandas.DataFrame(columns=["demo"])
    tables = [rows_of(path.parent) for path in folder.glob("*/verification.json")]
    new = [table for table in tables if table["demo"][0] not in set(known["demo"])]
    table = pandas.concat([*([known] if len(known) else []), *sorted(new, key=lambda each: str(each["demo"][0]))])
    write_atomic(TABLE, table.to_csv(index=False, lineterminator="\n", float_format="%.5g").encode())


def rows_of(folder: Path) -> pandas.DataFrame:
    """A row for each real run of a demo, with what had been predicted."""
    sealed = json.loads((folder / "predictions.json").read_text())
    cases, runs = (pandas.read_csv(folder / f"{name}.csv") for name in ("results", "runs"))
    predictions = [sealed["predictions"][case] for case in runs["case"]]
    intervals = [prediction.get("any", prediction)["time_s"] for prediction in predictions]
    columns = {
        "demo": sealed["created"][:16] + "Z",
        "processor": processor(),
        **runs[["n", "p", "q"]],
        "predicted_s": [prediction["time_s"]["mean"] for prediction in predictions],
        **{f"{end}_s": [prediction["time_s"][end] for prediction in predictions] for end in ("low", "high")},
        **cases.set_index("case").loc[runs["case"], ["mean_low_s", "mean_high_s"]].reset_index(drop=True),
        **{f"any_{end}_s": [interval[end] for interval in intervals] for end in ("low", "high")},
        **runs[["time_s", "disturbed", "drift_percent"]],
    }
    return pandas.DataFrame(columns)


def processor() -> str:
    """The name of the processor of this machine, as the kernel has it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def demos_of(runs: pandas.DataFrame) -> int:
    return int(runs["demo"].nunique())


def cases_of(runs: pandas.DataFrame) -> pandas.DataFrame:
    """A row for each case of each demo: prediction, mean of undisturbed runs (NaN without), error, half-width."""
    quiet = runs[~runs["disturbed"]].groupby(CASE)["time_s"].mean()
    predicted = ["predicted_s", "low_s", "high_s", "mean_low_s", "mean_high_s"]
    table = runs.groupby(CASE)[predicted].first().assign(measured_s=quiet).reset_index()
    return table.assign(
        error_percent=100.0 * (table["predicted_s"] / table["measured_s"] - 1.0),
        half_width_percent=50.0 * (table["high_s"] - table["low_s"]) / table["predicted_s"],
        inside=table["measured_s"].between(table["mean_low_s"], table["mean_high_s"]),
    )


def inside_text(cases: pandas.DataFrame) -> str:
    """3 of 4: of the cases that had an undisturbed run."""
    return f"{int(cases['inside'].sum())} of {int(cases['measured_s'].count())}"


def share_inside(runs: pandas.DataFrame, low: str, high: str) -> tuple[float, float]:
    """Of single runs, and the half-width of its 95 % interval by demos, no less than that of independent runs."""
    inside = runs["time_s"].between(runs[low], runs[high])
    shares = inside.groupby(runs["demo"]).mean()
    clustered = float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else np.inf
    error = max(clustered, float(np.sqrt(LEVEL * (1.0 - LEVEL) / len(runs))))
    return float(inside.mean()), float(student.ppf(0.975, max(len(shares) - 1, 1))) * error


def goals_of(runs: pandas.DataFrame) -> list[Goal]:
    cases, quiet = cases_of(runs), runs[~runs["disturbed"]]
    dates = sorted({demo[:10] for demo in runs["demo"]})
    made = f"{demos_of(runs)}, {' and '.join(dates)}"
    error = cases.query(f"n >= {LARGE_N}")["error_percent"].abs().mean()
    half_width = cases.query(f"n == {LARGEST_N}")["half_width_percent"].median()
    goals = [
        Goal("demos", "10, over two days", made, demos_of(runs) >= 10 and len(dates) > 1),
        at_most(f"mean absolute error, N ≥ {LARGE_N}", 3, error),
        at_most(f"median half-width, N = {LARGEST_N}", 8, half_width),
    ]
    for what, some, low, high in (
        ("undisturbed runs inside", quiet, "low_s", "high_s"),
        ("all runs inside the interval of any run", runs, "any_low_s", "any_high_s"),
    ):
        share, error = share_inside(some, low, high)
        reached = f"{100 * share:.1f} ± {100 * error:.1f} % of {len(some)}"
        goals.append(Goal(what, "interval by demos contains 95 %", reached, abs(share - LEVEL) <= error))
    return goals


def section(runs: pandas.DataFrame, goals: list[Goal]) -> str:
    rows = []
    for demo, cases in cases_of(runs).groupby("demo"):
        mine = runs[runs["demo"] == demo]
        large, largest = cases[cases["n"] >= LARGE_N], cases[cases["n"] == LARGEST_N]
        rows.append(
            (
                str(demo).replace("T", " "),
                inside_text(cases),
                f"{large['error_percent'].mean():+.1f} %",
                f"{large['error_percent'].abs().mean():.1f} %",
                f"{largest['half_width_percent'].median():.1f} %",
                f"{int(mine['disturbed'].sum())} of {len(mine)}",
                f"{mine['drift_percent'].median():+.1f} %",
            )
        )
    header = ("demo, UTC", "means inside", "mean error", "absolute", "half-width", "disturbed", "machine slower by")
    return f"""## This machine: demos that are all counted

Whole demos on {" and ".join(sorted(set(runs["processor"])))} (2 cores, virtual, shared with others), at least a quarter
of an hour apart; each is appended, none is left out (`benchmarks/demo_repetitions.py`). Errors: N ≥ {LARGE_N};
half-widths: N = {LARGEST_N}; last column: real runs against the calibration, by sentinels.

{goals_table(goals)}

![Interval of each demo against the measured mean](data/demo_runs.png)

{markdown(header, rows)}
"""


def picture(cases: pandas.DataFrame) -> Figure:
    """A panel a grid and size: interval of each demo, relative to its measured mean."""
    cases = cases.assign(number=cases.groupby(CASE[1:]).cumcount() + 1)
    grids, sizes = sorted({*zip(cases["p"], cases["q"], strict=True)}), sorted(set(cases["n"]))
    figure: Figure = new_figure((1.2 + 3.0 * len(grids), 1.6 + 1.9 * len(sizes)), for_file=True)
    panels = figure.subplots(len(sizes), len(grids), squeeze=False, sharex=True, sharey=True)
    for row, n in enumerate(sizes):
        for axis, (p, q) in zip(panels[row], grids, strict=True):
            chosen = cases[(cases["n"] == n) & (cases["p"] == p) & (cases["q"] == q)]
            mean, low, high = (
                100 * (chosen[f"{name}_s"] / chosen["measured_s"] - 1)
                for name in ("predicted", "mean_low", "mean_high")
            )
            colours = [PREDICTED if inside else MEASURED for inside in chosen["inside"]]
            axis.axhline(0, color=SOFT, lw=0.9)
            axis.vlines(chosen["number"], low, high, color=colours, lw=6, alpha=0.35)
            axis.scatter(chosen["number"], mean, color=colours, marker="_", s=120, lw=2)
            axis.set_title(f"N = {n:,}, {p} × {q}", fontsize=9)
            axis.grid(axis="y", color=RULE, lw=0.8)
            axis.set_xticks(sorted(set(cases["number"])))
            axis.margins(x=0.12)
            bare(axis)
    for axis in panels[-1]:
        axis.set_xlabel("demo", fontsize=9)
    panels[len(sizes) // 2][0].set_ylabel("predicted against measured mean, %", fontsize=9)
    return figure


if __name__ == "__main__":
    sys.exit(main())
