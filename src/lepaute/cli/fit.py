"""`lepaute fit ARCHIVE... -o platform.yaml`: models from archives, with the quality of each."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lepaute.fit.diagnostics import Diagnosis
    from lepaute.fit.quality import QualityRow

#: Serious findings that are printed; a report has them all.
MOST_TOLD = 6
Reports = Annotated[
    list[Path] | None,
    typer.Option("--report", metavar="FILE", help="what is wrong with the models: .html to read, .json for programs"),
]


def command(
    archives: Annotated[list[Path], typer.Argument(metavar="ARCHIVE...", help="calibrations of one machine")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="platform to write")] = Path(
        "platform.yaml"
    ),
    name: Annotated[str, typer.Option("--name", help="name of the platform; default: that of the file")] = "",
    report: Reports = None,
) -> None:
    """Fit kernel and network models to calibrations and write a platform."""
    from lepaute.archive import Archive
    from lepaute.fit import diagnose, platform_and_models
    from lepaute.fit.report.files import check_report_file
    from lepaute.platform import dump_platform

    for path in report or ():
        check_report_file(path)  # now, not after the fit
    opened = [Archive.open(path) for path in archives]
    platform, fitted = platform_and_models(opened, name or output.stem)
    for warning in fitted.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    tell_diagnosis(diagnose(opened, fitted), report or ())
    dump_platform(platform, output)
    print(quality_table(fitted.quality))
    print(f"wrote {output}", file=sys.stderr)


def tell_diagnosis(diagnosis: "Diagnosis", reports: Sequence[Path]) -> None:
    """Prints the serious findings as warnings, and writes the reports."""
    from lepaute.fit.report import write_report

    for flag in diagnosis.serious[:MOST_TOLD]:
        print(f"warning: {flag.subject}: {flag.sentence}", file=sys.stderr)
    more = len(diagnosis.flags) - len(diagnosis.serious[:MOST_TOLD])
    if more and not reports:
        print(f"{more} more finding(s) about the models; --report report.html shows them", file=sys.stderr)
    for path in reports:
        write_report(diagnosis, path)
        print(f"wrote {path}", file=sys.stderr)


def quality_table(rows: "list[QualityRow]") -> str:
    """The quality of each kernel's model as lines of text, those that took most time first."""
    header = ("kernel", "calls", "time", "R2", "call err", "class err", "held-out", "tail", "cold", "cores", "ranges")
    lines = [header]
    lines += [
        (
            row.kernel,
            str(row.n_calls),
            f"{row.time_s:.3g} s",
            f"{row.r_squared:.3f}",
            _percent(row.mean_abs_relative_error),
            _percent(row.group_error),
            _percent(row.discrepancy),
            _percent(row.tail_share),
            _percent(row.cold_excess),
            _percent(row.core_spread),
            row.ranges + (f"  ({row.note})" if row.note else ""),
        )
        for row in sorted(rows, key=lambda row: -row.time_s)
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    """Names and ranges to the left, numbers to the right."""
    last = len(cells) - 1
    padded = [
        cell.ljust(width) if column in (0, last) else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"
