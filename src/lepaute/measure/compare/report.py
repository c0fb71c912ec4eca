"""A comparison on disk: the page, all data; for papers and scripts figures, a LaTeX table and the rows as CSV; for CI
servers JUnit's XML and Markdown."""

from collections.abc import Sequence
from itertools import zip_longest
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from lepaute.errors import InputError
from lepaute.kit import picture
from lepaute.kit.files import check_output, write_atomic
from lepaute.kit.printable import printable
from lepaute.kit.report import page as pages
from lepaute.kit.text import exact_size, significant, time_unit
from lepaute.measure.compare.verdicts import Verdict
from lepaute.measure.compare.wording import Gate, amount, operation_name, order_sentence, ratio_text
from lepaute.measure.comparison.cases import name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lepaute.measure.compare.comparison import Comparison

#: What a report can be, by the end of its name.
KINDS = {
    ".html": "a page",
    ".json": "all data",
    ".csv": "the rows",
    ".tex": "a table",
    **dict.fromkeys((".png", ".svg", ".pdf"), "a figure"),
}
_SHOWN, _FAINT = picture.BLUE, picture.APART
#: Rows that a picture of several numbers of ranks shows, and a summary in Markdown; those that fail come first.
MAX_PANELS, MAX_ROWS = 12, 100
#: Changes beyond are drawn at the edge, in per cent.
_FARTHEST = 400.0
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


#: What the options of the command line write.
OF_OPTION = {"--report": "a page", "--plot": "a figure", "--csv": "the rows", "--latex": "a table"}


def check_name(path: Path, option: str = "") -> None:
    """Raises InputError if the name of a report says no kind, or another than that of the option."""
    kinds = {suffix: what for suffix, what in KINDS.items() if not option or what == OF_OPTION[option]}
    if path.suffix.lower() not in kinds:
        named = ", ".join(kinds if option else (f"{suffix} ({what})" for suffix, what in kinds.items()))
        one_of = "one of " if len(kinds) > 1 else ""
        raise InputError(f"{option} {path}: the name must end in {one_of}{named}".lstrip())


def all_data(comparison: "Comparison") -> dict[str, Any]:
    """Content of the JSON: the comparison, and which rows another way to summarise calls would decide otherwise."""
    from lepaute.measure.compare.page import changed_rows, other_ways

    return {**comparison.to_dict(), "rows_that_depend_on_the_summary": changed_rows(comparison, other_ways(comparison))}


def write_report(comparison: "Comparison", path: str | Path) -> None:
    """Writes a comparison as what the end of the name says, see KINDS.

    Raises InputError for another suffix or a folder that is not there.
    """
    path = Path(path)
    check_name(path)
    suffix = path.suffix.lower()
    if suffix in pages.SUFFIXES:
        from lepaute.measure.compare.page import page

        pages.write_report(path, lambda: page(comparison), lambda: all_data(comparison))
        return
    check_output(path)
    if KINDS[suffix] == "a figure":
        _write_figure(comparison, path)
    else:
        write_atomic(path, comparison.to_frame().to_csv(index=False) if suffix == ".csv" else _latex_table(comparison))


def _write_figure(comparison: "Comparison", path: Path) -> None:
    """The change from the left library to the right one over the size, a panel an operation; .png, .svg or .pdf."""
    operations = list(dict.fromkeys(operation_name(row) for row in comparison.verdicts))
    figure = picture.new_figure((6.4, 1.1 + 1.9 * max(1, len(operations))), for_file=True)
    panels = figure.subplots(max(1, len(operations)), 1, squeeze=False)[:, 0]
    for panel, name in zip(panels, operations, strict=False):
        _draw(panel, name, [row for row in comparison.verdicts if operation_name(row) == name])
    picture.entitle(
        figure,
        f"{comparison.answer}\n{comparison.right} against {comparison.left}: above 0, {comparison.left} is faster",
        picture.measured_origin(", ".join(f"{archive.file} ({archive.id[:12]})" for archive in comparison.archives)),
    )
    picture.write_picture(figure, path)


def _draw(panel: "Axes", name: str, rows: Sequence[Verdict]) -> None:
    places = np.arange(len(rows))
    change = np.array([_percent(row.ratio) for row in rows])
    low, high = (np.array([_percent(getattr(row, end)) for row in rows]) for end in ("low", "high"))
    shown = np.array([row.decision.is_shown for row in rows], dtype=bool)
    panel.axhline(0.0, color=picture.SOFT, lw=0.8)
    panel.axhspan(*(_percent(1 + sign * rows[0].margin) for sign in (-1, 1)), color=picture.RULE, lw=0)
    for chosen, colour, marker, label in ((shown, _SHOWN, "o", "shown"), (~shown, _FAINT, "x", "not shown")):
        panel.vlines(places[chosen], low[chosen], high[chosen], color=colour, lw=1.6)
        panel.plot(places[chosen], change[chosen], marker, color=colour, ms=4, label=label)
    panel.set_xticks(places, [exact_size(row.size_bytes) for row in rows], rotation=60, ha="right", fontsize=7)
    panel.tick_params(axis="y", labelsize=8)
    panel.set_ylabel(f"{name} (%)", fontsize=9)
    picture.bare(panel)
    if not shown.all():
        panel.legend(frameon=False, fontsize=7, loc="best")


def _percent(ratio: float) -> float:
    return float(np.clip(100.0 * (ratio - 1.0), -100.0, _FARTHEST)) if isfinite(ratio) else _FARTHEST


def _latex_table(comparison: "Comparison") -> str:
    """A tabular of the rows: both times, the change with its interval, and stars."""
    left, right = _latex(comparison.left), _latex(comparison.right)
    lines = [
        f"% {comparison.answer}",
        f"% {'; '.join(f'{archive.file} {archive.id[:12]}' for archive in comparison.archives)}",
        r"\begin{tabular}{lrrrrl}",
        r"\hline",
        rf"operation & size & {left} & {right} & change, \% & 95\,\% interval \\",
        r"\hline",
    ]
    for row in comparison.verdicts:
        stars = rf"$^{{{row.stars}}}$" if row.stars else ""
        ends = [significant(100 * (end - 1)) if isfinite(end) else r"$\infty$" for end in (row.low, row.high)]
        times = " & ".join(_latex(amount(row, time_s)) for time_s in (row.left_s, row.right_s))
        lines.append(
            rf"{_latex(operation_name(row))} & {_latex(exact_size(row.size_bytes))} & {times} & "
            rf"{significant(100 * (row.ratio - 1))}{stars} & [{ends[0]}, {ends[1]}] \\"
        )
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _latex(text: str) -> str:
    escaped = "".join(_SPECIAL.get(letter, rf"\{letter}" if letter in "&%$#_{}" else letter) for letter in text)
    return escaped.replace("µ", r"$\mu$")


def ranks_sentence(comparisons: "Sequence[Comparison]") -> str:
    """Whether the order of the libraries depends on the number of ranks; comparisons: of the same libraries."""
    left, right = comparisons[0].left, comparisons[0].right
    return order_sentence(
        "the number of ranks", [(str(item.ranks), item.verdicts) for item in comparisons], left, right
    )


def write_scaling(comparisons: "Sequence[Comparison]", path: "Path") -> None:
    """A picture of times by the number of ranks, a panel a row, up to MAX_PANELS: every mpirun of both libraries, a
    line through their medians, filled where a difference is shown. comparisons: of `by_ranks`."""
    rows = list(dict.fromkeys(verdict.row for item in comparisons for verdict in item.verdicts))[:MAX_PANELS]
    columns = min(3, max(1, len(rows)))
    lines = max(1, -(-len(rows) // columns))
    figure = picture.new_figure((3.4 * columns + 0.6, 2.7 * lines + 1.0), for_file=True)
    numbers = [item.ranks for item in comparisons]
    for place, row in enumerate(rows):
        axes = figure.add_subplot(lines, columns, place + 1)
        shown = [(item, verdict) for item in comparisons for verdict in item.verdicts if verdict.row == row]
        unit, factor = time_unit(max(max(one.left_s, one.right_s) for _, one in shown))
        for label, colour, apart in ((shown[0][0].left, picture.BLUE, 0.97), (shown[0][0].right, picture.RED, 1.03)):
            times = [factor * (one.left_s if label == item.left else one.right_s) for item, one in shown]
            ranks = [item.ranks for item, _ in shown]
            axes.plot(ranks, times, color=colour, linewidth=1.4, label=label)
            for (item, one), number, time in zip(shown, ranks, times, strict=True):
                shade = colour if one.decision.is_shown else "white"
                axes.plot([number], [time], "o", color=colour, markerfacecolor=shade)
                mine = item.summaries[item.summaries["library"] == label]
                mine = mine[(mine["operation"] == row[0]) & (mine["form"] == row[1]) & (mine["size_bytes"] == row[2])]
                dots = factor * mine[item.value]
                axes.plot([number * apart] * len(dots), dots, ".", color=colour, alpha=0.3, markersize=4)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        picture.mark(axes.xaxis, numbers)
        picture.plain_decades(axes.yaxis, axes.get_ylim())
        axes.set_title(f"{name_of(row[0], row[1])} of {exact_size(row[2])}", fontsize=9)
        axes.set_xlabel("ranks", fontsize=8)
        axes.set_ylabel(f"time of a call, {unit}", fontsize=8)
        axes.tick_params(labelsize=8)
        picture.bare(axes)
    if rows:
        figure.axes[0].legend(fontsize=8, frameon=False)
    sentence = ranks_sentence(comparisons)
    foot = (
        "dots: mpiruns; lines: their medians; filled: a difference is shown, corrected for the rows of all numbers of "
        f"ranks · {picture.measured_origin(', '.join(archive.file for archive in comparisons[0].archives))}"
    )
    picture.entitle(figure, f"{sentence[:1].upper()}{sentence[1:]}", foot)
    picture.write_picture(figure, path)


def junit_text(comparisons: "Sequence[Comparison]", gates: Sequence[Gate]) -> bytes:
    """A suite a comparison, a case a row: failed where slower than a limit allows, skipped where it is not tested."""
    suites = ElementTree.Element("testsuites", name="lepaute compare")
    for comparison, gate in zip_longest(comparisons, gates):
        on = f" on {comparison.ranks} ranks" if comparison.all_ranks else ""
        name = f"{comparison.left} and {comparison.right}{on}"
        cases = [(item.operation or "campaign", "0", "error", item.text) for item in comparison.failures]
        for row in comparison.verdicts:
            outcome = "failure" if row in _slower(gate) else "skipped" if row.outcome == "untested" else ""
            cases.append((_title(row), f"{row.right_s:.9f}", outcome, comparison.sentence(row)))
        kinds = {"errors": "error", "failures": "failure", "skipped": "skipped"}
        numbers = {key: str(sum(item[2] == tag for item in cases)) for key, tag in kinds.items()}
        suite = ElementTree.SubElement(suites, "testsuite", {"name": name, "tests": str(len(cases)), **numbers})
        for title, time, outcome, words in cases:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=title, time=time)
            if outcome:
                ElementTree.SubElement(case, outcome, message=printable(words))
            ElementTree.SubElement(case, "system-out").text = printable(words)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))


def annotations_text(comparisons: "Sequence[Comparison]", gates: Sequence[Gate]) -> str:
    """Workflow commands of GitHub Actions, an error for each failure and row that fails the build."""
    lines = []
    for comparison, gate in zip_longest(comparisons, gates):
        failed = [item.text for item in comparison.failures]
        slower = [f"{_title(row)}: {comparison.sentence(row)}" for row in _slower(gate)]
        title = _annotated(f"{comparison.right} against {comparison.left}").replace(",", "%2C").replace(":", "%3A")
        lines += [f"::error title={title}::{_annotated(printable(each))}" for each in (*failed, *slower)]
    return "\n".join(lines)


def _title(row: Verdict) -> str:
    return f"{operation_name(row)} of {exact_size(row.size_bytes)}"


def _annotated(text: str) -> str:
    for letter in "%\r\n":
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


def _slower(gate: Gate | None) -> tuple[Verdict, ...]:
    """The rows that fail a build."""
    return () if gate is None or gate.cannot_fail else gate.of("for")


def markdown_text(comparisons: "Sequence[Comparison]", gates: Sequence[Gate]) -> str:
    """The answers, what failed first, and a table of the rows of each comparison, the slowest first."""
    lines = []
    for comparison, gate in sorted(zip_longest(comparisons, gates), key=lambda item: not item[0].failures):
        lines += [f"### {_cell(comparison.answer[:1].upper() + comparison.answer[1:])}", ""]
        lines += [_cell(gate.sentence), ""] if gate else []
        titles = [
            "",
            "operation",
            "size",
            comparison.left,
            comparison.right,
            f"{comparison.right} / {comparison.left}",
            "verdict",
        ]
        lines += [f"| {' | '.join(map(_cell, titles))} |", "|---|---|---|---|---|---|---|"]
        slower = _slower(gate)
        rows = sorted(comparison.verdicts, key=lambda row: (row not in slower, -row.ratio * row.decision.is_shown))
        for row in rows[:MAX_ROWS]:
            cells = [":x:" if row in slower else "", operation_name(row), exact_size(row.size_bytes)]
            cells += [amount(row, row.left_s), amount(row, row.right_s), ratio_text(row)]
            lines.append(f"| {' | '.join(map(_cell, (*cells, f'{row.outcome} {row.stars}')))} |")
        lines += ["", f"and {len(rows) - MAX_ROWS} more rows"] * (len(rows) > MAX_ROWS)
        lines.append("")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Cell of a table, as GitHub and GitLab show it."""
    for letter in "\\|<>*_`":
        text = text.replace(letter, f"\\{letter}")
    return " ".join(printable(text).split())
