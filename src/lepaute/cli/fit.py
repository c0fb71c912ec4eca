"""`lepaute fit ARCHIVE... -o platform.yaml`: models from archives, with the quality of each."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lepaute.fit.quality import QualityRow


def command(
    archives: Annotated[list[Path], typer.Argument(metavar="ARCHIVE...", help="calibrations of one machine")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="platform to write")] = Path(
        "platform.yaml"
    ),
    name: Annotated[str, typer.Option("--name", help="name of the platform; default: that of the file")] = "",
    kernel_model: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel-model",
            metavar="FORM",
            help="auto, a form of all kernels such as M'-H/N-2, or KERNEL=FORM; may be repeated",
        ),
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="what was tried for each kernel, with its scores")] = False,
) -> None:
    """Fit kernel and network models to calibrations and write a platform."""
    from lepaute.archive import Archive
    from lepaute.cli.fit_kernels import dependence_text, selection_table
    from lepaute.fit import platform_and_models
    from lepaute.fit.form import wanted_forms
    from lepaute.platform import dump_platform

    forms = wanted_forms(kernel_model or [])
    opened = [Archive.open(path) for path in archives]
    platform, fitted = platform_and_models(opened, name or output.stem, forms)
    for warning in fitted.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    dump_platform(platform, output)
    print(quality_table(fitted.quality))
    if details:
        print("\n" + selection_table(fitted.selections))
    if told := dependence_text(fitted.dependence, fitted.quality, everything=details):
        print("\n" + told)
    print(f"wrote {output}", file=sys.stderr)


def quality_table(rows: "list[QualityRow]") -> str:
    """The quality of each kernel's model as lines of text, those that took most time first."""
    header = (
        "kernel",
        "calls",
        "model",
        "time",
        "R2",
        "call err",
        "class err",
        "held-out",
        "tail",
        "cold",
        "cores",
        "ranges",
    )
    lines = [header]
    lines += [
        (
            row.kernel,
            str(row.n_calls),
            row.form,
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
    return aligned(lines, left=(0, 2, len(header) - 1))


def aligned(lines: "Sequence[Sequence[str]]", left: tuple[int, ...] = (0,)) -> str:
    """Lines of cells as columns, two blanks apart; those numbered in `left` begin together, the others end together."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"
