"""A verification for people: what came of it, then the table of cases and every run; the same as a page."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import pandas
from markupsafe import Markup

from lepaute.kit.printable import terminal_columns
from lepaute.kit.report.page import figure_svg, records_table, render
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted, folded, significant, value_and_interval
from lepaute.measure.verify.campaign import Case
from lepaute.measure.verify.comparison import (
    CAUSES,
    decision_of,
    error_text,
    sentence,
    sentence_without_drift,
    times_as_long,
)
from lepaute.measure.verify.machine import MachineDrift
from lepaute.measure.verify.naming import names_of_cases, varied_columns
from lepaute.measure.verify.plot import plot
from lepaute.simulate.prediction.warnings import alike_warnings
from lepaute.simulate.prediction.wording import slow_state_sentence
from lepaute.stats.disturbance import disturbers

if TYPE_CHECKING:
    from lepaute.measure.verify.known_results import KnownResults
    from lepaute.measure.verify.seal import Seal
    from lepaute.measure.verify.verification import Verification

#: With the machine's drift since its calibration taken out.
DRIFT_HEADER = ("drift", "error", "mean")
#: Predicted, with the interval of a run and how many lie in it; measured mean, with its interval, and whether inside.
HEADER = ("predicted s", "95 % of runs", "in", "real s", "95 % of means", "error", "mean")

MAX_CAUSES = 5  # of disturbed runs that are told on the screen
MAX_WARNINGS = 5


def show(
    table: "pandas.DataFrame",
    runs: "pandas.DataFrame",
    stream: TextIO,
    drift: "MachineDrift | None" = None,
    causes: str = CAUSES,
) -> None:
    """Print the sentence, what the machine drifted by since it was calibrated, the table of cases, and every run.

    The table has a column with the drift taken out where it is worth saying.
    causes: as of comparison.sentence
    """
    show_drift = drift is not None and drift.significant
    header, rows = _case_rows(table, with_drift=show_drift)
    width = terminal_columns(stream)
    sentences = [sentence(table, causes)]
    if drift is not None:
        sentences += [drift.sentence, *([sentence_without_drift(table)] if show_drift else [])]
    print(*(folded(text, width, 2) for text in sentences), "", sep="\n", file=stream)
    # What a narrow terminal lacks: the intervals, which the verdicts beside them sum up.
    drop = [header.index(name) for name in ("95 % of means", "95 % of runs") if name in header]
    print(shown_table(header, rows, width, left=(), drop=drop), file=stream)
    if len(runs) > len(table) or table["n_disturbed"].any():
        lines = run_lines(table, runs).split("\n")
        print("", *(folded(line, width, 4) for line in lines), sep="\n", file=stream)


def _case_rows(table: "pandas.DataFrame", *, with_drift: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The table of cases: its head, and a row a case; of one run each, which is its mean, nothing twice."""
    names, single = names_of_cases(table), bool((table["n_counting"] == 1).all())
    kept = [place for place in range(len(HEADER)) if not single or place not in (2, 4)]
    head = [HEADER[place] for place in kept]
    head[-1] = "inside 95 %" if single else head[-1]
    rows = [
        (*name.values(), *(_cells(row)[place] for place in kept), *(_drift_cells(row) if with_drift else ()))
        for name, row in zip(names, table.to_dict("records"), strict=True)
    ]
    return (*names[0], *head, *(DRIFT_HEADER if with_drift else ())), rows


def slow_state_line(cases: "list[Case]") -> str:
    """On the longest case, whose runs meet the slow state of the machine most often; empty if it has none."""
    longest = max(cases, key=lambda case: case.prediction.time_s.mean)
    sentence = slow_state_sentence(longest.prediction)
    return (
        f"Intervals are of undisturbed runs. {longest.label}: {sentence[0].lower()}{sentence[1:]}." if sentence else ""
    )


def warning_lines(cases: "list[Case]", whole_in: str, most: int = MAX_WARNINGS) -> list[str]:
    """What the predictions warn of, at most `most` lines.

    Those that differ in numbers or kernels alone are one line, with the case of the largest number.
    whole_in: the file that has them all
    """
    lines = []
    for alike in alike_warnings([case.prediction for case in cases]):
        label = next(case.label for case in cases if alike.text in case.prediction.warnings)
        lines.append(f"warning ({label}): {alike.line(alike.number)}")
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"and {more} more warnings in {whole_in}"]


def run_lines(table: "pandas.DataFrame", runs: "pandas.DataFrame") -> str:
    """Every run that was made, one line a case, disturbed ones marked; then the causes."""
    disturbed = runs[runs["disturbed"].astype(bool)]
    by = disturbers(disturbed["causes"])
    excluded = "" if disturbed.empty else f" (in parentheses: disturbed {by}, excluded from the mean)"
    lines, varied = [f"All real runs, s{excluded}:"], varied_columns(table)
    for case in table.to_dict("records"):
        case_runs = runs[runs["case"] == case["case"]]
        texts = [significant(time_s, 4) for time_s in case_runs["time_s"]]
        times = [f"({text})" if run else text for text, run in zip(texts, case_runs["disturbed"], strict=True)]
        note = "  every run was disturbed: the mean includes all" if case["only_disturbed"] else ""
        beside = "".join(f"{case[column]}  " for column in varied)
        name = case.get("label") or f"N = {case['n']:<6} {beside}{case['p']}x{case['q']}"
        lines.append(f"  {name}  {'  '.join(times)}{note}")
    listed = disturbed.head(MAX_CAUSES)
    names = [run.get("label") or f"N = {run['n']}, {run['p']}x{run['q']}" for run in listed.to_dict("records")]
    lines += [f"  disturbed: {name}: {causes}" for name, causes in zip(names, listed["causes"], strict=True)]
    if len(disturbed) > len(listed):
        lines.append(f"  and {len(disturbed) - len(listed)} more disturbed runs; runs.csv holds the causes")
    return "\n".join(lines)


def _cells(row: dict[Any, Any]) -> tuple[str, ...]:
    number = row["n_inside"]
    return (
        *predicted_and_measured(row)[0],
        "-" if math.isnan(number) else f"{number:.0f}/{row['n_counting']}",
        *predicted_and_measured(row)[1],
        error_text(row["error_percent"]),
        decision_of(row).pick("in", "OUT", "in", "-"),
    )


def predicted_and_measured(row: Mapping[Any, Any]) -> list[tuple[str, str]]:
    """For a case, the predicted time of a run and the mean of those measured, in seconds, each with the interval
    in which it is expected; row: of `comparison.compare`."""
    predicted_s, measured_s = row["predicted_time_s"], row["measured_time_s"]
    figure, of_runs = value_and_interval(predicted_s, row["low_s"], row["high_s"])
    of_means = value_and_interval(predicted_s, row["mean_low_s"], row["mean_high_s"])[1]
    return [(figure or significant(predicted_s, 1), of_runs or "-"), (significant(measured_s), of_means or "-")]


def _drift_cells(row: dict[Any, Any]) -> tuple[str, ...]:
    if math.isnan(row["drift_percent"]):
        return "-", "-", "-"
    return (
        f"{row['drift_percent']:+.1f} %",
        error_text(row["error_without_drift_percent"]),
        decision_of(row | {"inside_interval": row["inside_without_drift"]}).pick("in", "OUT", "in", "-"),
    )


#: Heads in the table of cases that are two of one name there.
_HEADS = {"in": "runs inside", "mean": "mean inside"}
_MAX_WARNINGS = 40
_CAPTION = (
    "Blue: predicted, with the 95 % interval of one run; orange: every real run, and their mean. Above {}; below "
    "durations off the measured mean.{}"
)
_SCATTERED = (
    "Predicted durations with the 95 % interval of one run over the measured mean of each case, on one scale. Hollow: "
    "the mean is outside its interval; grey: every run was disturbed."
)


def page(
    results: "Verification | KnownResults",
    title: str,
    causes: str,
    further: Sequence[str] = (),
    *,
    answer: str = "",
    where: Sequence[str] = (),
    drift: "MachineDrift | None" = None,
    seal: "Seal | None" = None,
) -> str:
    """The page.

    title  : of what is verified; causes: as of comparison.sentence; further: sentences that follow those of the table
    answer : what comes first, by default the first sentence of the table;  where: the time of its case goes, a line
        "communication 8.5 % (transfers 1.0 %)" each
    drift  : of the machine since its calibration; seal: of predictions that were made before the runs
    """
    if not results.cases:
        facts, state = "nothing was predicted", results.decision.state("for")
        empty: dict[str, Any] = dict.fromkeys(("further", "beware", "pictures", "shown", "tables"), ())
        return render(
            "lepaute.kit.report", "evidence.html.j2", title=title, facts=facts, answer=answer, state=state, **empty
        )
    table, runs, first = results.table, results.run_table, results.cases[0].prediction
    told = drift is not None and drift.significant
    answer, *others = [*([answer] if answer else []), *sentence(table, causes).split("\n")]
    if drift is not None:
        others += [drift.sentence, *(sentence_without_drift(table).split("\n") if told else ())]
    drawn = table if told else table.assign(measured_without_drift_s=math.nan)
    figure = plot(drawn, runs, None, title, "", known=seal is None)
    marks = {line.get_marker() for axis in figure.axes for line in axis.lines}
    made_of = [("platform", f"{first.platform_name} {first.platform_sha256[:12]}"), ("seed", str(first.seed))]
    made_of += [] if seal is None else [("predictions", seal.sha256[:12])]
    head, rows = _case_rows(table, with_drift=told)
    simulated = sum(len(case.prediction.run_list) for case in results.cases)
    made = (
        f"{counted(len(results.cases), 'case')}, {counted(len(results.run_table), 'real run')}, {simulated} simulated"
    )
    return render(
        "lepaute.kit.report",
        "evidence.html.j2",
        title=title,
        facts=made if seal is None else f"{made}; predictions written at {seal.created}, before the first real run",
        answer=answer,
        state=results.decision.state("for"),
        figures=_figures(results),
        further=[line for line in (*others, slow_state_line(results.cases), *further) if line],
        beware=[
            line.removeprefix("warning (").replace("): ", ": ", 1)
            for line in warning_lines(results.cases, "--json", _MAX_WARNINGS)
        ],
        pictures=[
            {
                "svg": Markup(figure_svg(figure, f"Predicted and measured durations of every case. {answer}")),
                "caption": _CAPTION.format(
                    "rates" if "flop_count" in table else "durations",
                    (" Triangle: beyond the edge." if marks & {"^", "v"} else "")
                    + (" Hollow: disturbed by other load." if runs["disturbed"].astype(bool).any() else ""),
                )
                if len(figure.axes) > 1
                else _SCATTERED,
            }
        ],
        shown=[
            records_table("Every case", [dict(zip(_heads(head), row, strict=True)) for row in rows]),
            records_table("Where the predicted time goes", list(map(_part, where))),
        ],
        tables=[records_table("Every run", _runs(results))],
        made_of=made_of,
    )


def _heads(head: Sequence[str]) -> list[str]:
    """Each by itself: those of the drift, which come last, are of a mean and an error with it taken out."""
    drift_at = head.index("drift") if "drift" in head else len(head)
    plain = [_HEADS.get(name, name) for name in head[: drift_at + 1]]
    return [*plain, *(f"{_HEADS.get(name, name)}, without drift" for name in head[drift_at + 1 :])]


def _part(line: str) -> dict[str, str]:
    """Of the line `computing 91.5 % (dgemm 90.2 %)`."""
    first, _, parts = line.removesuffix(")").partition(" (")
    name, _, share = first.partition(" ")
    return {"part": name, "share": share, "of which": parts}


def _figures(results: "Verification | KnownResults") -> list[tuple[str, str]]:
    """Of the case of the answer, or of the one that took longest."""
    rows = list(zip(results.cases, results.table.to_dict("records"), strict=True))
    answered = getattr(getattr(results, "verdict", None), "case", None)
    case, row = max(rows, key=lambda each: (each[0] is answered, each[1]["measured_time_s"]))
    (predicted_s, _), (measured_s, _) = predicted_and_measured(row)
    ratio = row["measured_time_s"] / row["predicted_time_s"] if row["predicted_time_s"] > 0.0 else math.inf
    length, _, than = times_as_long(ratio).rpartition(" ")
    return [
        (f"{predicted_s} s", f"predicted for {case.full_label}"),
        (f"{measured_s} s", f"measured, mean of {counted(int(row['n_counting']), 'run')}"),
        (length, f"{than} predicted; error of the prediction: {error_text(row['error_percent'])}"),
    ]


def _runs(results: "Verification | KnownResults") -> list[dict[str, Any]]:
    names = names_of_cases(results.table)
    rows = []
    for run in results.run_table.to_dict("records"):
        told = names[run["case"]] | {"time, s": significant(run["time_s"], 4)}
        rows.append(told | {"disturbed": bool(run["disturbed"]), "by": run["causes"] if run["disturbed"] else ""})
    return rows
