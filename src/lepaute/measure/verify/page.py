"""A verification as a page: what came of it, predicted beside measured, then every run."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lepaute.kit.report.figures import figure_svg
from lepaute.kit.report.page import records_table, render
from lepaute.kit.text import counted, significant
from lepaute.measure.verify.comparison import BASIS, sentence, sentence_without_drift
from lepaute.measure.verify.naming import names_of_cases
from lepaute.measure.verify.plot import plot
from lepaute.measure.verify.report import case_rows, predicted_and_measured, slow_state_line, warning_lines

if TYPE_CHECKING:
    from lepaute.measure.verify.known_results import KnownResults
    from lepaute.measure.verify.machine import MachineDrift
    from lepaute.measure.verify.seal import Seal
    from lepaute.measure.verify.verification import Verification

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
    head, rows = case_rows(table, with_drift=told)
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
    whole, _, parts = line.removesuffix(")").partition(" (")
    name, _, share = whole.partition(" ")
    return {"part": name, "share": share, "of which": parts}


def _figures(results: "Verification | KnownResults") -> list[tuple[str, str]]:
    """Of the case of the answer, or of the one that took longest."""
    rows = list(zip(results.cases, results.table.to_dict("records"), strict=True))
    answered = getattr(getattr(results, "verdict", None), "case", None)
    case, row = max(rows, key=lambda each: (each[0] is answered, each[1]["measured_time_s"]))
    (predicted_s, _), (measured_s, _) = predicted_and_measured(row)
    return [
        (f"{predicted_s} s", f"predicted for {case.full_label}"),
        (f"{measured_s} s", f"measured, mean of {counted(int(row['n_counting']), 'run')}"),
        (f"{row['error_percent']:+.1f} %", f"error, {BASIS}"),
    ]


def _runs(results: "Verification | KnownResults") -> list[dict[str, Any]]:
    names = names_of_cases(results.table)
    rows = []
    for run in results.run_table.to_dict("records"):
        told = names[run["case"]] | {"time, s": significant(run["time_s"], 4)}
        rows.append(told | {"disturbed": bool(run["disturbed"]), "by": run["causes"] if run["disturbed"] else ""})
    return rows
