"""How many of all published runs of Dahu lie inside the predicted intervals: the studies of the other scripts together.

It reads the tables that factorial.py, geometry.py and matrix_size.py wrote, and simulates nothing (its name puts it
after them). Fixed in advance: over all runs at least 90 % and at most 99 % inside (an interval that holds all is no
information), median half-width over all cases at most 7 %.
"""

import pandas
from support.report import Goal, Options, markdown, run_study, signed
from support.simulations import coverage_goals, half_widths_percent, inside_percent

MAX_INSIDE_PERCENT = 99.0
#: A case is named where fewer of its real runs lie inside, of at least so many.
MISSED_SHARE, MIN_RUNS = 0.5, 5


def cases(options: Options) -> pandas.DataFrame:
    """A row a case of each study: study, case, predicted_s, low_s, high_s, real_s, real_runs, real_inside."""
    parts = []
    for study, names in (
        ("factorial", ("block_size", "depth", "bcast", "swap")),
        ("geometry", ("proc_p", "proc_q")),
        ("matrix_size", ("state", "matrix_size")),
    ):
        table = pandas.read_csv(options.table(study))
        table["case"] = [", ".join(f"{name} {row[name]}" for name in names) for row in table.to_dict("records")]
        parts.append(table.assign(study="matrix size, " + table["state"] if study == "matrix_size" else study))
    columns = ["study", "case", "predicted_s", "low_s", "high_s", "real_s", "real_runs", "real_inside", "error_percent"]
    return pandas.concat(parts, ignore_index=True)[columns]


def judged(frame: pandas.DataFrame) -> list[Goal]:
    share = inside_percent(frame)
    what, goal = "real runs inside the 95 % intervals, at most", f"at most {MAX_INSIDE_PERCENT:g} %"
    return [*coverage_goals(frame), Goal(what, goal, f"{share:.1f} %", share <= MAX_INSIDE_PERCENT)]


def text(frame: pandas.DataFrame) -> str:
    rows = [
        (
            str(study),
            f"{len(part)}",
            f"{part['real_inside'].sum()} of {part['real_runs'].sum()}",
            f"{inside_percent(part):.0f} %",
            f"{half_widths_percent(part).median():.1f} %",
            f"{part['error_percent'].abs().mean():.2f} %",
            signed(part["error_percent"].mean()),
        )
        for study, part in frame.groupby("study")
    ]
    some = frame[(frame["real_inside"] < MISSED_SHARE * frame["real_runs"]) & (frame["real_runs"] >= MIN_RUNS)]
    missed = "; ".join(
        f"{row['study']}, {row['case']}: {signed(row['error_percent'])}, {row['real_inside']} of {row['real_runs']}"
        for row in some.to_dict("records")
    )
    header = ("study", "cases", "runs inside", "share", "median half-width", "mean absolute error", "bias")
    return f"""## Dahu: real runs inside the intervals

Each published run against the 95 % interval for one further run, all studies above together. The intervals come from
kernels, network and days alone, from no result of an application (`validation/summary_of_coverage.py`).

{{goals}}

{markdown(header, rows)}

Cases with fewer than half of their runs inside: {missed or "none"}. {{cases}}
"""


if __name__ == "__main__":
    run_study(cases, judged, text, name="coverage")
