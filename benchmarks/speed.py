"""The speed and memory of the native engine: one run on one core, beside the published emulation.

    .venv/bin/python benchmarks/speed.py [--quick] [--only TEXT] [--skip PART]...

Parts: table, scaling, sixteen, exact, sampled. Fixed before any result was looked at (the cases, limits and goals stand
in benchmarks/engine/cases.py):

* table: every case of the speed table in a fresh process on one core, full and sampled: user time of the whole process,
  start-up included (getrusage of the child; least of REPEATS where it takes less than 10 s, since other load only
  adds), engine_bytes as the prediction states them. A process is stopped after 4 times its limit, at least 60 s;
* scaling: stampede-like, NB 128, side x side ranks, N = 128 x steps; user time less that of a prediction of one panel
  on one rank; exponent of a least-squares line of log(time) on log(steps x ranks x log2 ranks); at most 1.1;
* sixteen: 16 runs on two cores / 1 run on one core, wall time of the simulation, Dahu, N = 100,000; medians of REPEATS
  taken in turn; at most 8.5;
* exact: the full cases of the table with exact max-min sharing; at most 3 times their limits;
* sampled: Dahu, N = 100,000, 250,000, 500,000, seeds 1 to 10: time predicted by sampled / full - 1, run by run; none
  above 0.5 %.

What the engine refuses is shown with its reason and counts as missed. Writes docs/speed/engine.csv,
docs/speed/scaling.png and the section of docs/speed.md; exits 1 where a limit is exceeded.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "validation"))

import numpy  # noqa: E402
import pandas  # noqa: E402
from engine import cases  # noqa: E402
from engine.command import Cost, predict  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from support.goals import Goal, markdown, status  # noqa: E402
from support.page import replace_section, save_figure, write_whole  # noqa: E402

REPEATS = 3
REPEAT_BELOW_S = 10.0
LEAST_TIMEOUT_S, TIMEOUT_FACTOR = 60.0, 4.0
SEEDS = 10


class Report:
    """What has been measured: rows for the CSV, sections for the page, goals for the exit status."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self.sections: list[str] = []
        self.goals: list[Goal] = []
        self.full: dict[str, Cost] = {}  # by case of the table

    def add(self, part: str, case: str, fidelity: str, cost: Cost) -> None:
        """One measurement."""
        values = asdict(cost) | {"times_s": " ".join(f"{time_s!r}" for time_s in cost.times_s), "fidelity": fidelity}
        self.rows.append({"part": part, "case": case} | values)
        found = cost.problem or f"{cost.user_s:.2f} s user, {cost.engine_bytes / 1e6:.1f} MB"
        print(f"{part}: {case}, {fidelity}: {found}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small cases, to see that the script works")
    parser.add_argument("--only", default="", help="cases of the table whose name contains this")
    parser.add_argument("--skip", action="append", choices=list(PARTS), default=[])
    parser.add_argument("--most", type=float, default=math.inf, metavar="S", help="stop a process after S seconds")
    parser.add_argument("--output", type=Path, help="where speed.md stands (docs; build/quick with --quick)")
    options = parser.parse_args()
    output = options.output or (ROOT / "build" / "quick" if options.quick else ROOT / "docs")
    report = Report()
    for name, part in PARTS.items():
        if name not in options.skip:
            part(report, options, output)
    write_whole(output / "speed" / "engine.csv", pandas.DataFrame(report.rows).to_csv(index=False).encode())
    warning = "**A quick trial of the script, no result.**\n\n" if options.quick else ""
    command = "    .venv/bin/python benchmarks/speed.py"
    section = f"{warning}## The engine\n\n{command}\n\n" + "\n\n".join(report.sections)
    replace_section(output / "speed.md", "engine", section)
    print(section)
    return status(report.goals)


def chosen(options: argparse.Namespace) -> list[cases.SpeedCase]:
    """The cases of the table that were asked for."""
    return [case for case in (cases.QUICK if options.quick else cases.CASES) if options.only in case.name]


def measured(arguments: dict[str, str], limit_s: float, most_s: float = math.inf) -> Cost:
    """The least user time of some repetitions; one where it takes long."""
    timeout_s = min(most_s, max(LEAST_TIMEOUT_S, TIMEOUT_FACTOR * limit_s))
    best = predict(arguments, timeout_s=timeout_s)
    for _ in range(REPEATS - 1 if best.user_s < REPEAT_BELOW_S else 0):
        again = predict(arguments, timeout_s=timeout_s)
        if again.user_s < best.user_s:
            best = again
    return best


def table(report: Report, options: argparse.Namespace, _: Path) -> None:
    """The speed table."""
    lines = []
    for case in chosen(options):
        for fidelity, budget in case.budgets.items():
            cost = measured(case.options | {"fidelity": fidelity}, budget.limit_s, options.most)
            report.add("table", case.name, fidelity, cost)
            if fidelity == "full":
                report.full[case.name] = cost
            memory_met = budget.engine_limit_bytes is None or cost.engine_bytes <= budget.engine_limit_bytes
            met = not cost.problem and cost.user_s <= budget.limit_s and memory_met
            report.goals.append(Goal(f"{case.name}, {fidelity}", "", "", met))
            goal = f"≤ {budget.limit_s:g}" + (f", goal {budget.goal_s:g}" if budget.goal_s else "")
            memory = f"≤ {budget.engine_limit_bytes / 1e6:g}" if budget.engine_limit_bytes else "–"
            found = [cost.problem, "–", "–"] if cost.problem else [
                f"{cost.user_s:.2f}", f"{cost.engine_bytes / 1e6:.1f}", f"{cost.peak_rss_bytes / 1e6:.0f}"
            ]  # fmt: skip
            lines.append(
                (case.name, fidelity, found[0], goal, found[1], memory, found[2], case.published, yes_or_no(met))
            )
    start = predict(small_case(), timeout_s=60.0)
    report.add("table", "start-up: N = 128 on one rank", "full", start)
    header = ("case", "fidelity", "user s", "limit", "engine MB", "limit", "process MB", "published emulation", "met")
    report.sections.append(
        f"One run on one core in a fresh process: user time of the whole process, of which {start.user_s:.2f} s are "
        f"start-up; memory of the engine, and of the whole process.\n\n{markdown(header, lines)}"
    )


def small_case() -> dict[str, str]:
    """A prediction that takes no time but for the start of the program."""
    return cases.hpl("stampede-like", 128, 128, "1x1")


def yes_or_no(met: bool) -> str:
    """For a table."""
    return "yes" if met else "NO"


def scaling(report: Report, options: argparse.Namespace, output: Path) -> None:
    """Is the time linear in steps x ranks x log2 ranks?"""
    start_s = min(predict(small_case()).user_s for _ in range(REPEATS))
    work, time_s, lines = [], [], []
    for side, steps in cases.QUICK_SCALING if options.quick else cases.SCALING:
        arguments = cases.hpl("stampede-like", 128 * steps, 128, f"{side}x{side}") | {"fidelity": "full"}
        cost = measured(arguments, 30.0)
        report.add("scaling", f"{side}x{side} ranks, {steps} steps", "full", cost)
        ranks = side * side
        spent_s = cost.user_s - start_s
        if not cost.problem and spent_s > 0.0:
            work.append(steps * ranks * math.log2(ranks))
            time_s.append(spent_s)
        unit_ns = 1e9 * spent_s / (steps * ranks * math.log2(ranks))
        found = (cost.problem, "–") if cost.problem else (f"{spent_s:.3f}", f"{unit_ns:.0f}")
        lines.append((f"{ranks}", f"{steps}", *found))
    exponent = float(numpy.polyfit(numpy.log(work), numpy.log(time_s), 1)[0]) if len(work) > 2 else math.nan
    met = exponent <= cases.EXPONENT_LIMIT
    report.goals.append(Goal("exponent of the time", "", "", met))
    if work:
        save_figure(scaling_picture(work, time_s, exponent), output / "speed" / "scaling.png")
    report.sections.append(
        "### Time against steps × ranks × log2 ranks\n\n"
        f"`stampede-like`, NB = 128, full; user time without start-up. Fitted exponent {exponent:.2f}, limit "
        f"{cases.EXPONENT_LIMIT:g}: {yes_or_no(met)}.\n\n![user time against the work](speed/scaling.png)\n\n"
        + markdown(("ranks", "steps", "user s", "ns for each step, rank and log2 rank"), lines)
    )


def scaling_picture(work: list[float], time_s: list[float], exponent: float) -> Figure:
    """Time over work on logarithmic axes, with the fitted line and one of exponent 1."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(work, time_s, "o", color="#4c78a8")
    ends = numpy.array([min(work), max(work)])
    centre = numpy.exp(numpy.mean(numpy.log(work))), numpy.exp(numpy.mean(numpy.log(time_s)))
    axes.loglog(
        ends, centre[1] * (ends / centre[0]) ** exponent, color="#4c78a8", lw=1, label=f"exponent {exponent:.2f}"
    )
    axes.loglog(ends, centre[1] * (ends / centre[0]), "--", color="#999999", lw=1, label="exponent 1")
    axes.set_xlabel("steps × ranks × log2 ranks")
    axes.set_ylabel("user time (s)")
    axes.legend(frameon=False)
    return figure


def sixteen(report: Report, options: argparse.Namespace, _: Path) -> None:
    """Sixteen runs on two cores against one run on one."""
    arguments = cases.hpl("dahu-2020-01", 8_000 if options.quick else 100_000, 128, "32x32") | {"fidelity": "full"}
    one, many = [], []
    for _ in range(REPEATS):
        one.append(predict(arguments))
        many.append(predict(arguments | {"runs": "16"}, cores=2))
        report.add("sixteen", "one run on one core", "full", one[-1])
        report.add("sixteen", "sixteen runs on two cores", "full", many[-1])
    wall_one, wall_many = (statistics.median(cost.simulation_s for cost in costs) for costs in (one, many))
    ratio = wall_many / wall_one
    met = ratio <= cases.SIXTEEN_RATIO_LIMIT
    report.goals.append(Goal("sixteen runs", "", "", met))
    report.sections.append(
        f"### Many runs\n\nSixteen runs on two cores take {wall_many:.2f} s, one run on one core {wall_one:.2f} s: "
        f"{ratio:.2f} times as long, limit {cases.SIXTEEN_RATIO_LIMIT:g}: {yes_or_no(met)} (Dahu, 1024 ranks, "
        f"N = {int(arguments['n']):,}; medians of {REPEATS}, taken in turn)."
    )


def exact(report: Report, options: argparse.Namespace, _: Path) -> None:
    """Exact max-min sharing against the usual one."""
    lines = []
    for case in chosen(options):
        budget = case.budgets.get("full")
        if budget is None:
            continue
        limit_s = cases.EXACT_FACTOR * budget.limit_s
        cost = measured(case.options | cases.EXACT | {"fidelity": "full"}, limit_s)
        report.add("exact", case.name, "full", cost)
        usual = report.full.get(case.name) or measured(case.options | {"fidelity": "full"}, budget.limit_s)
        met = not cost.problem and cost.user_s <= limit_s
        report.goals.append(Goal(f"{case.name}, exact", "", "", met))
        if cost.problem or usual.problem:
            lines.append((case.name, cost.problem or f"{cost.user_s:.2f}", f"≤ {limit_s:g}", "–", "–", yes_or_no(met)))
            continue
        difference = 100.0 * (usual.times_s[0] / cost.times_s[0] - 1.0)
        factor = f"{cost.user_s / usual.user_s:.2f}"
        lines.append(
            (case.name, f"{cost.user_s:.2f}", f"≤ {limit_s:g}", factor, f"{difference:+.3f} %", yes_or_no(met))
        )
    header = ("case, full", "user s", "limit", "times the default", "predicted time, default against exact", "met")
    report.sections.append(f"### Exact sharing (`--set network.sharing=exact`)\n\n{markdown(header, lines)}")


def sampled(report: Report, options: argparse.Namespace, _: Path) -> None:
    """The error of sampled fidelity, run by run."""
    lines = []
    for n in cases.QUICK_SAMPLED_SIZES if options.quick else cases.SAMPLED_SIZES:
        arguments = cases.hpl("dahu-2020-01", n, 128, "32x32") | {"runs": str(SEEDS), "seed": "1"}
        costs = {name: predict(arguments | {"fidelity": name}, cores=2) for name in ("full", "sampled")}
        for name, cost in costs.items():
            report.add("sampled", f"Dahu, N = {n}, seeds 1 to {SEEDS}", name, cost)
        problem = next((cost.problem for cost in costs.values() if cost.problem), "")
        errors = [
            100.0 * (ours / full - 1.0)
            for ours, full in zip(costs["sampled"].times_s, costs["full"].times_s, strict=not problem)
        ]
        met = bool(errors) and max(map(abs, errors)) <= cases.SAMPLED_ERROR_LIMIT_PERCENT
        report.goals.append(Goal(f"sampled, N = {n}", "", "", met))
        found = (f"{max(errors, key=abs):+.3f} %", f"{statistics.mean(errors):+.3f} %") if errors else (problem, "–")
        lines.append((f"{n:,}", *found, f"{cases.SAMPLED_ERROR_LIMIT_PERCENT:g} %", yes_or_no(met)))
    header = ("N", "largest error", "mean error", "limit for each", "met")
    report.sections.append(
        f"### Sampled against full\n\nDahu, 1024 ranks, NB = 128, seeds 1 to {SEEDS}: predicted time, sampled / full "
        f"− 1, run by run.\n\n{markdown(header, lines)}"
    )


PARTS: dict[str, Callable[[Report, argparse.Namespace, Path], None]] = {
    "table": table,
    "scaling": scaling,
    "sixteen": sixteen,
    "exact": exact,
    "sampled": sampled,
}

if __name__ == "__main__":
    sys.exit(main())
