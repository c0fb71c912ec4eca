"""Speed and memory of the native engine: one run on one core, beside the version before and the published emulation.

    .venv/bin/python benchmarks/speed.py [--quick] [--part PART]... [--skip PART]... [--only TEXT] [--most S]
                                         [--against REVISION]

Parts: table, swaps, ranks, steps, sixteen, exact, sampled; all of them unless some are named. Fixed before any result
was looked at (the cases, limits and goals stand in benchmarks/engine/cases.py):

* every prediction runs in a fresh process on one core; user time of the whole process, start-up included (getrusage of
  the child); engine_bytes and peak_rss_bytes as the prediction states them. REVISION (6ac2120: before the engine was
  made faster) is built in build/before and measured in turn with this version, in alternating order; medians of 5, of 3
  from 8 s on, once from 40 s on. `--against none` leaves it out. A process is stopped after a CPU
  time of 4 times its limit (the version before: 600 s at most), or of 60 s where that is more, or of S seconds;
* table: every case of the speed table, full and sampled;
* swaps: spread-roll and mix against binary exchange, user time without start-up: at most 2 times, goal 1.3;
* ranks: a machine of 100,000 dies (exascale-like), side x side ranks, NB = side, steps for some seconds; user time
  without start-up over events (messages, and a turn of each rank in each step). No event costs more than 1.5 times what
  it costs on 1024 ranks; exponent of a least-squares line of log(time) on log(events), over these and the next, at most
  1.1;
* steps: the same on 1024 ranks with 100 to 6400 steps; no event costs more than 1.5 times what it costs with 800;
* sixteen: 16 runs on two cores / 1 run on one core, wall time of the simulation, Dahu, N = 100,000; medians of 3 taken
  in turn; at most 8.5;
* exact: the full cases of the table with exact max-min sharing; at most 3 times their limits;
* sampled: Dahu, N = 100,000, 250,000, 500,000, seeds 1 to 10: time predicted by sampled / full - 1, run by run; none
  above 0.5 %.

What the engine refuses is shown with its reason and counts as missed. Writes data/engine.csv of docs/evidence, pictures
beside it, and a section of its speed.md for each part; parts that are skipped keep theirs. Exits 1 where a limit is
exceeded.
"""

import argparse
import shlex
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "validation"))

import pandas  # noqa: E402
from engine import cases  # noqa: E402
from engine.before import built  # noqa: E402
from engine.command import NOW, Cost, Program, in_turn, predict  # noqa: E402
from engine.scaling import Point, exponent, flatness, picture  # noqa: E402
from support.report import EVIDENCE, Goal, markdown, replace_section, save_figure, status, write_atomic  # noqa: E402

BEFORE = "6ac2120"
MIN_LIMIT_S, MAX_FACTOR, MAX_BEFORE_S = 60.0, 4.0, 600.0
SIXTEEN_REPEATS = 3
SEEDS = 10


class Benchmark:
    """What was asked for, and what has been measured: rows for the CSV, sections for the page, goals for the status."""

    def __init__(self, options: argparse.Namespace, output: Path, before: Program | None) -> None:
        self.options, self.output, self.before = options, output, before
        self.rows: list[dict[str, object]] = []
        self.sections: dict[str, str] = {}  # by part
        self.goals: list[Goal] = []
        self.full: dict[str, Cost] = {}  # by case of the table
        self.start_s: dict[str, float] = {}  # by program
        self.points: list[Point] = []

    @property
    def table_path(self) -> Path:
        return self.output / "data" / "engine.csv"

    @property
    def old(self) -> pandas.DataFrame | None:
        """What earlier parts and runs of this script have measured."""
        return pandas.read_csv(self.table_path, keep_default_na=False) if self.table_path.is_file() else None

    def known(self, part: str, case: str) -> dict[str, Cost]:
        """What a prediction cost when it was measured before, by program."""
        rows = [] if self.old is None else self.old.to_dict("records")
        found = [row for row in rows if (row["part"], row["case"]) == (part, case)]
        return {str(row["program"]): Cost.of_row(row) for row in found}

    @property
    def programs(self) -> list[Program]:
        return [NOW] if self.before is None else [self.before, NOW]

    def choose(self, usual: Sequence[object], quick: Sequence[object]) -> list[object]:
        return list(quick if self.options.quick else usual)

    def add(self, part: str, case: str, fidelity: str, program: Program, cost: Cost) -> None:
        """One measurement."""
        values = asdict(cost) | {"times_s": " ".join(f"{time_s!r}" for time_s in cost.times_s), "fidelity": fidelity}
        self.rows.append({"part": part, "case": case, "program": program.name} | values)
        found = cost.problem or f"{cost.user_s:.2f} s user, {cost.engine_bytes / 1e6:.1f} MB"
        print(f"{part}: {case}, {fidelity}, {program.name}: {found}", file=sys.stderr, flush=True)

    def costs(self, part: str, case: str, arguments: dict[str, str], limit_s: float) -> dict[str, Cost]:
        """What a prediction costs with each program, by name; measured in turn."""
        most_s = min(self.options.most, max(MIN_LIMIT_S, MAX_FACTOR * limit_s))
        limits_s = {program: most_s if program is NOW else min(most_s, MAX_BEFORE_S) for program in self.programs}
        found = in_turn({one.name: partial(predict, arguments, 1, most, one) for one, most in limits_s.items()})
        for program in self.programs:
            self.add(part, case, arguments.get("fidelity", "full"), program, found[program.name])
        return found

    def start(self) -> None:
        """Measures the time that a process takes to start."""
        small = cases.hpl("stampede-like", 128, 128, "1x1")
        found = self.costs("start-up", "N = 128 on one rank", small, 1.0)
        self.start_s = {name: cost.user_s for name, cost in found.items()}

    def goal(self, what: str, met: bool) -> str:
        """Keeps whether something was reached; for a table."""
        self.goals.append(Goal(what, "", "", met))
        return "yes" if met else "NO"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small cases, to see that the script works")
    parser.add_argument(
        "--only",
        default="",
        help="cases of the table whose name contains this; what is not measured again keeps its rows",
    )
    parser.add_argument("--part", action="append", choices=list(PARTS), help="measure this part (and others named so)")
    parser.add_argument("--skip", action="append", choices=list(PARTS), default=[])
    parser.add_argument(
        "--most", type=float, default=3600.0, metavar="S", help="stop a process after S seconds of CPU time"
    )
    parser.add_argument("--against", default=BEFORE, metavar="REVISION", help=f"the version before ({BEFORE}); or none")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page; the last option")
    parser.add_argument("--output", type=Path, help="where speed.md stands (docs/evidence; build/quick with --quick)")
    options = parser.parse_args()
    output = options.output or (ROOT / "build" / "quick" if options.quick else EVIDENCE)
    before, problem = None, ""
    if options.against != "none":
        try:
            before = built(options.against)
        except RuntimeError as error:
            problem = f"The version before, {options.against}, could not be built: {error}."
            print(problem, file=sys.stderr)
    benchmark = Benchmark(options, output, before)
    benchmark.start()
    for name, part in PARTS.items():
        if name in (options.part or PARTS) and name not in options.skip:
            part(benchmark)
            write(benchmark, name, problem)
    return status(benchmark.goals)


def write(benchmark: Benchmark, part: str, problem: str) -> None:
    """Puts the rows of a part into the table of all, and its section into the page."""
    new = [row for row in benchmark.rows if row["part"] == part]
    rows, old = pandas.DataFrame(new), benchmark.old
    if old is not None:
        again = {(row["case"], row["program"]) for row in new}
        measured = [pair in again for pair in zip(old["case"], old["program"], strict=True)]
        kept = (old["part"] != part) | ((part == "table") & ~pandas.Series(measured, dtype=bool))
        rows = pandas.concat([old[kept], rows])
    write_atomic(benchmark.table_path, rows.to_csv(index=False).encode())
    section = benchmark.sections[part]
    if part == "table":
        command = f"    .venv/bin/python benchmarks/speed.py {shlex.join(sys.argv[1:]).partition('--note ')[0]}"
        section = f"## The engine\n\n{command}\n\n{introduction(benchmark, problem)}\n\n{section}"
    if benchmark.options.quick:
        section = f"**A quick trial of the script, no result.**\n\n{section}"
    if benchmark.options.note:
        section += f"\n\n{benchmark.options.note}"
    replace_section(benchmark.output / "speed.md", "engine" if part == "table" else f"engine_{part}", section)
    print(section)


def introduction(benchmark: Benchmark, problem: str) -> str:
    """What the figures are."""
    start = ", ".join(f"{start_s:.2f} s ({name})" for name, start_s in benchmark.start_s.items())
    lines = [
        "One run on one core in a fresh process: user time of the whole process, start-up included, and memory of the "
        f"engine; medians. Start-up: {start}.",
        f"Before: {benchmark.before.name}, measured in turn." if benchmark.before else problem,
    ]
    return " ".join(filter(None, lines))


def seconds(cost: Cost | None, runs: int = 1) -> str:
    """User seconds of a run, or why there are none."""
    return "–" if cost is None else cost.problem or f"{cost.user_s / runs:.2f}"


def megabytes(cost: Cost | None) -> str:
    return "–" if cost is None or cost.problem else f"{cost.engine_bytes / 1e6:.1f}"


def table(benchmark: Benchmark) -> None:
    """The speed table."""
    lines = []
    for case in benchmark.choose(cases.CASES, cases.QUICK):
        assert isinstance(case, cases.SpeedCase)
        for fidelity, budget in case.budgets.items():
            label = f"{case.name}, {fidelity}"
            costs = benchmark.known("table", label)
            if benchmark.options.only in case.name:
                arguments = case.options | {"fidelity": cases.FIDELITIES[fidelity], "runs": str(budget.runs)}
                costs |= benchmark.costs("table", label, arguments, budget.limit_s * budget.runs)
            if NOW.name not in costs:
                continue
            cost = costs[NOW.name]
            before = next((other for name, other in costs.items() if name != NOW.name), None)
            if fidelity == "full":
                benchmark.full[case.name] = cost
            memory_met = budget.engine_limit_bytes is None or cost.engine_bytes <= budget.engine_limit_bytes
            met = not cost.problem and cost.user_s / budget.runs <= budget.limit_s and memory_met
            faster = "–"
            if before is not None and not before.problem and not cost.problem:
                faster = f"{before.user_s / cost.user_s:.1f}"
            lines.append(
                (
                    *(case.name, fidelity, seconds(before, budget.runs), seconds(cost, budget.runs), faster),
                    f"≤ {budget.limit_s:g}" + (f", goal {budget.goal_s:g}" if budget.goal_s else ""),
                    *(megabytes(before), megabytes(cost)),
                    f"≤ {budget.engine_limit_bytes / 1e6:g}" if budget.engine_limit_bytes else "–",
                    "–" if cost.problem else f"{cost.peak_rss_bytes / 1e6:.0f}",
                    *(case.published, benchmark.goal(f"{case.name}, {fidelity}", met)),
                )
            )
    header = (
        *(
            "case",
            "fidelity",
            "before, s",
            "now, s",
            "times faster",
            "wanted, s",
            "before, MB",
            "now, MB",
            "wanted, MB",
        ),
        *("process, MB", "published emulation", "met"),
    )
    benchmark.sections["table"] = markdown(header, lines)


def swaps(benchmark: Benchmark) -> None:
    """The other swaps against binary exchange."""
    lines = []
    sizes = cases.QUICK_SWAP_SIZES if benchmark.options.quick else cases.SWAP_SIZES
    for name, size in sizes.items():
        spent_s: dict[str, dict[str, float]] = {}
        for swap in cases.SWAPS:
            arguments = cases.hpl(*size, swap=swap) | {"fidelity": "full"}
            costs = benchmark.costs("swaps", f"{name}, {swap}", arguments, 30.0)
            for program, cost in costs.items():
                spent_s.setdefault(program, {})[swap] = cost.user_s - benchmark.start_s[program]
        for swap in cases.SWAPS[1:]:
            ratios = {program: found[swap] / found[cases.SWAPS[0]] for program, found in spent_s.items()}
            met = ratios[NOW.name] <= cases.SWAP_FACTOR
            goal = f"≤ {cases.SWAP_FACTOR:g}, goal {cases.SWAP_GOAL:g}"
            before = f"{ratios[benchmark.before.name]:.2f}" if benchmark.before else "–"
            cells = (name, swap, before, f"{ratios[NOW.name]:.2f}", goal, benchmark.goal(f"{name}, {swap}", met))
            lines.append(cells)
    header = ("case, full", "swap", "before", "now", "wanted", "met")
    text = "User time without start-up over that of binary exchange."
    benchmark.sections["swaps"] = f"### Swaps\n\n{text}\n\n{markdown(header, lines)}"


def ranks(benchmark: Benchmark) -> None:
    """Does an event cost the same on 64 and on 100,000 ranks?"""
    squares = benchmark.choose(cases.AGAINST_RANKS, cases.QUICK_AGAINST_RANKS)
    against(benchmark, "ranks", squares, "Against the number of ranks")


def steps(benchmark: Benchmark) -> None:
    """Does an event cost the same however many steps there are?"""
    squares = benchmark.choose(cases.AGAINST_STEPS, cases.QUICK_AGAINST_STEPS)
    against(benchmark, "steps", squares, "Against the number of steps")
    now = [point for point in benchmark.points if point.program == NOW.name]
    slope = exponent(now)
    met = benchmark.goal("exponent of the time", slope <= cases.EXPONENT_LIMIT)
    benchmark.sections["steps"] += (
        f"\n\nUser time grows as events^{slope:.2f} over all these sizes, limit {cases.EXPONENT_LIMIT:g}: {met}."
    )


def against(benchmark: Benchmark, what: str, squares: Sequence[object], title: str) -> None:
    """The cost of an event over sizes: a table and a picture."""
    points, lines = [], []
    for square in squares:
        assert isinstance(square, cases.Square)
        costs = benchmark.costs(what, f"{square.ranks} ranks, {square.steps} steps", square.options, 30.0)
        found = {name: Point.of(name, square, cost, benchmark.start_s[name]) for name, cost in costs.items()}
        points += [point for point in found.values() if point is not None]
        now, before = found[NOW.name], found.get(benchmark.before.name) if benchmark.before else None
        cost = costs[NOW.name]
        lines.append(
            (
                *(f"{square.ranks:,}", f"{square.steps:,}"),
                *(
                    (cost.problem or "too short", "–")
                    if now is None
                    else (f"{now.spent_s:.2f}", f"{now.events / 1e6:.1f}")
                ),
                *("–" if point is None else f"{point.event_ns:.0f}" for point in (before, now)),
                "–" if cost.problem else f"{cost.engine_bytes / square.ranks:,.0f}",
            )
        )
    benchmark.points += points
    worst, reference = flatness([point for point in points if point.program == NOW.name], what)
    complete = all(line[3] != "–" for line in lines)
    met = benchmark.goal(f"cost of an event against {what}", complete and worst <= cases.FLAT_FACTOR)
    save_figure(picture(points, what), benchmark.output / "data" / f"{what}.png")
    header = ("ranks", "steps", "user s", "million events", "before, ns an event", "now, ns an event", "bytes a rank")
    benchmark.sections[what] = (
        f"### {title}\n\n`exascale-like` with 12,500 nodes, NB = √ranks, full; user time without start-up over "
        f"events (messages, and a turn of each rank in each step). An event costs at most {worst:.2f} times what it "
        f"costs with {reference:,} {what}, limit {cases.FLAT_FACTOR:g}: {met}.\n\n![cost of an event against {what}]"
        f"(data/{what}.png)"
        f"\n\n{markdown(header, lines)}"
    )


def sixteen(benchmark: Benchmark) -> None:
    """Sixteen runs on two cores against one run on one."""
    n = 8_000 if benchmark.options.quick else 100_000
    arguments = cases.hpl("dahu-2020-01", n, 128, "32x32") | {"fidelity": "full"}
    one, many = [], []
    for _ in range(SIXTEEN_REPEATS):
        one.append(predict(arguments))
        many.append(predict(arguments | {"runs": "16"}, cores=2))
        benchmark.add("sixteen", "one run on one core", "full", NOW, one[-1])
        benchmark.add("sixteen", "sixteen runs on two cores", "full", NOW, many[-1])
    wall_one, wall_many = (statistics.median(cost.simulation_s for cost in costs) for costs in (one, many))
    ratio = wall_many / wall_one
    met = benchmark.goal("sixteen runs", ratio <= cases.SIXTEEN_RATIO_LIMIT)
    benchmark.sections["sixteen"] = (
        f"### Many runs\n\nSixteen runs on two cores take {wall_many:.2f} s, one run on one core {wall_one:.2f} s: "
        f"{ratio:.2f} times as long, limit {cases.SIXTEEN_RATIO_LIMIT:g}: {met} (Dahu, 1024 ranks, N = {n:,}; wall "
        f"time, medians of {SIXTEEN_REPEATS}, taken in turn)."
    )


def exact(benchmark: Benchmark) -> None:
    """Exact max-min sharing against the usual one."""
    lines = []
    for case in benchmark.choose(cases.CASES, cases.QUICK):
        assert isinstance(case, cases.SpeedCase)
        budget = case.budgets.get("full")
        if budget is None or benchmark.options.only not in case.name:
            continue
        limit_s = cases.EXACT_FACTOR * budget.limit_s
        most_s = min(benchmark.options.most, max(MIN_LIMIT_S, MAX_FACTOR * limit_s))
        cost = predict(case.options | cases.EXACT | {"fidelity": "full"}, most_s=most_s)
        usual = benchmark.full.get(case.name) or predict(case.options | {"fidelity": "full"}, most_s=most_s)
        benchmark.add("exact", case.name, "full", NOW, cost)
        met = benchmark.goal(f"{case.name}, exact", not cost.problem and cost.user_s <= limit_s)
        if cost.problem or usual.problem:
            lines.append((case.name, seconds(cost), f"≤ {limit_s:g}", "–", "–", met))
            continue
        difference = 100.0 * (usual.times_s[0] / cost.times_s[0] - 1.0)
        factor = f"{cost.user_s / usual.user_s:.2f}"
        lines.append((case.name, seconds(cost), f"≤ {limit_s:g}", factor, f"{difference:+.3f} %", met))
    header = ("case, full", "user s", "limit", "times the default", "predicted time, default against exact", "met")
    benchmark.sections["exact"] = f"### Exact sharing (`--set network.sharing=exact`)\n\n{markdown(header, lines)}"


def sampled(benchmark: Benchmark) -> None:
    """The error of sampled fidelity, run by run."""
    lines = []
    for n in cases.QUICK_SAMPLED_SIZES if benchmark.options.quick else cases.SAMPLED_SIZES:
        arguments = cases.hpl("dahu-2020-01", n, 128, "32x32") | {"runs": str(SEEDS), "seed": "1"}
        costs = {name: predict(arguments | {"fidelity": name}, cores=2) for name in ("full", "sampled")}
        for name, cost in costs.items():
            benchmark.add("sampled", f"Dahu, N = {n}, seeds 1 to {SEEDS}", name, NOW, cost)
        problem = next((cost.problem for cost in costs.values() if cost.problem), "")
        errors = [
            100.0 * (ours / full - 1.0)
            for ours, full in zip(costs["sampled"].times_s, costs["full"].times_s, strict=not problem)
        ]
        good = bool(errors) and max(map(abs, errors)) <= cases.SAMPLED_ERROR_LIMIT_PERCENT
        met = benchmark.goal(f"sampled, N = {n}", good)
        found = (f"{max(errors, key=abs):+.3f} %", f"{statistics.mean(errors):+.3f} %") if errors else (problem, "–")
        lines.append((f"{n:,}", *found, f"{cases.SAMPLED_ERROR_LIMIT_PERCENT:g} %", met))
    header = ("N", "largest error", "mean error", "limit for each", "met")
    benchmark.sections["sampled"] = (
        f"### Sampled against full\n\nDahu, 1024 ranks, NB = 128, seeds 1 to {SEEDS}: predicted time, sampled / full "
        f"− 1, run by run.\n\n{markdown(header, lines)}"
    )


PARTS: dict[str, Callable[[Benchmark], None]] = {
    "table": table,
    "swaps": swaps,
    "ranks": ranks,
    "steps": steps,
    "sixteen": sixteen,
    "exact": exact,
    "sampled": sampled,
}

if __name__ == "__main__":
    sys.exit(main())
