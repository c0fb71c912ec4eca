"""A comparison on disk: the page, all data, and for papers and scripts a figure, a LaTeX table and the rows as CSV."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.compare.verdicts import Verdict
from lepaute.compare.wording import amount, operation_name
from lepaute.errors import InputError
from lepaute.kit.files import check_output, write_whole
from lepaute.kit.picture import APART, BLUE, RULE, SOFT, bare, entitle, measured_origin, new_figure, write_picture
from lepaute.kit.text import exact_size, significant
from lepaute.report import page as pages

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lepaute.compare.comparison import Comparison

#: What a report can be, by the end of its name.
KINDS = {
    ".html": "a page",
    ".json": "all data",
    ".csv": "the rows",
    ".tex": "a table",
    ".png": "a figure",
    ".svg": "a figure",
    ".pdf": "a figure",
}
_SHOWN, _FAINT = BLUE, APART
#: Changes beyond are drawn at the edge, in per cent.
_FARTHEST = 400.0
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


#: What the options of the command line write.
OF_OPTION = {"--report": "a page", "--plot": "a figure", "--csv": "the rows", "--latex": "a table"}


def check_name(path: Path, option: str = "") -> None:
    """Raises InputError where the name of a report says no kind, or another than that of the option."""
    kinds = {suffix: what for suffix, what in KINDS.items() if not option or what == OF_OPTION[option]}
    if path.suffix.lower() not in kinds:
        named = ", ".join(kinds if option else (f"{suffix} ({what})" for suffix, what in kinds.items()))
        one_of = "one of " if len(kinds) > 1 else ""
        raise InputError(f"{option} {path}: the name must end in {one_of}{named}".lstrip())


def all_data(found: "Comparison") -> dict[str, Any]:
    """What JSON is made of: the comparison, and which rows another way to summarise calls would decide otherwise."""
    from lepaute.compare.page import changed_rows, other_ways

    return {**found.to_dict(), "rows_that_depend_on_the_summary": changed_rows(found, other_ways(found))}


def write_report(found: "Comparison", path: str | Path) -> None:
    """Writes a comparison as what the end of the name says, see KINDS.

    Raises InputError for another suffix or a folder that is not there.
    """
    path = Path(path)
    check_name(path)
    suffix = path.suffix.lower()
    if suffix in pages.SUFFIXES:
        from lepaute.compare.page import page

        pages.write_report(path, lambda: page(found), lambda: all_data(found))
        return
    check_output(path)
    if KINDS[suffix] == "a figure":
        _write_figure(found, path)
    else:
        write_whole(path, found.to_frame().to_csv(index=False) if suffix == ".csv" else _latex_table(found))


def _write_figure(found: "Comparison", path: Path) -> None:
    """The change from the left library to the right one over the size, a panel an operation; .png, .svg or .pdf."""
    operations = list(dict.fromkeys(operation_name(one) for one in found.verdicts))
    figure = new_figure((6.4, 1.1 + 1.9 * max(1, len(operations))), for_file=True)
    panels = figure.subplots(max(1, len(operations)), 1, squeeze=False)[:, 0]
    for panel, name in zip(panels, operations, strict=False):
        _draw(panel, name, [one for one in found.verdicts if operation_name(one) == name])
    source = ", ".join(f"{one.file} ({one.id[:12]})" for one in found.archives)
    entitle(
        figure,
        f"{found.answer}\n{found.right} against {found.left}: above 0, {found.left} is faster",
        measured_origin(source),
    )
    write_picture(figure, path)


def _draw(panel: "Axes", name: str, rows: Sequence[Verdict]) -> None:
    places = np.arange(len(rows))
    change = np.array([_percent(one.ratio) for one in rows])
    low, high = (np.array([_percent(getattr(one, end)) for one in rows]) for end in ("low", "high"))
    shown = np.array([one.decision.is_shown for one in rows], dtype=bool)
    panel.axhline(0.0, color=SOFT, lw=0.8)
    panel.axhspan(*(_percent(1 + sign * rows[0].margin) for sign in (-1, 1)), color=RULE, lw=0)
    for chosen, colour, marker, label in ((shown, _SHOWN, "o", "shown"), (~shown, _FAINT, "x", "not shown")):
        panel.vlines(places[chosen], low[chosen], high[chosen], color=colour, lw=1.6)
        panel.plot(places[chosen], change[chosen], marker, color=colour, ms=4, label=label)
    panel.set_xticks(places, [exact_size(one.size_bytes) for one in rows], rotation=60, ha="right", fontsize=7)
    panel.tick_params(axis="y", labelsize=8)
    panel.set_ylabel(f"{name} (%)", fontsize=9)
    bare(panel)
    if not shown.all():
        panel.legend(frameon=False, fontsize=7, loc="best")


def _percent(ratio: float) -> float:
    return float(np.clip(100.0 * (ratio - 1.0), -100.0, _FARTHEST)) if isfinite(ratio) else _FARTHEST


def _latex_table(found: "Comparison") -> str:
    """A tabular of the rows: both times, the change with its interval, and stars."""
    left, right = _latex(found.left), _latex(found.right)
    lines = [
        f"% {found.answer}",
        f"% {'; '.join(f'{one.file} {one.id[:12]}' for one in found.archives)}",
        r"\begin{tabular}{lrrrrl}",
        r"\hline",
        rf"operation & size & {left} & {right} & change, \% & 95\,\% interval \\",
        r"\hline",
    ]
    for one in found.verdicts:
        stars = rf"$^{{{one.stars}}}$" if one.stars else ""
        ends = [significant(100 * (end - 1)) if isfinite(end) else r"$\infty$" for end in (one.low, one.high)]
        times = " & ".join(_latex(amount(one, time_s)) for time_s in (one.left_s, one.right_s))
        lines.append(
            rf"{_latex(operation_name(one))} & {_latex(exact_size(one.size_bytes))} & {times} & "
            rf"{significant(100 * (one.ratio - 1))}{stars} & [{ends[0]}, {ends[1]}] \\"
        )
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _latex(text: str) -> str:
    escaped = "".join(_SPECIAL.get(letter, rf"\{letter}" if letter in "&%$#_{}" else letter) for letter in text)
    return escaped.replace("µ", r"$\mu$")
