"""`lepaute fit ARCHIVE... -o platform.yaml`: models from archives, with the quality of each."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.options import Force
from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.archive import Archive
    from lepaute.fit.diagnostics import Diagnosis
    from lepaute.fit.kernels.platform_kernel import QualityRow
    from lepaute.fit.kernels.selection import Selection
    from lepaute.fit.observations.factors import FactorTest
    from lepaute.fit.variability.episodes import DependenceReport

#: Serious findings that are printed; a report has them all.
MOST_TOLD = 6
Reports = Annotated[
    list[Path] | None,
    typer.Option("--report", metavar="FILE", help="what is wrong with the models: .html to read, .json for programs"),
]


def command(
    archives: Annotated[list[Path], typer.Argument(metavar="ARCHIVE...", help="calibrations of one machine")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="platform to write")] = Path(
        "fitted.yaml"
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
    network_condition: Annotated[
        str,
        typer.Option(
            "--network-condition",
            metavar="CONDITION",
            help="messages as measured under idle, dgemm, iprobe or iprobe+dgemm; default: two ranks, nothing else",
        ),
    ] = "",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="picture of a memory hierarchy (of an experiment)")
    ] = None,
    report: Reports = None,
    factor: Annotated[
        list[str] | None,
        typer.Option(
            "--factor",
            metavar="COLUMN",
            help="a column of an experiment's observations to test besides those of its design; may be repeated",
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option("--column", metavar="COLUMN", help="result of an experiment to compare; default: duration_s"),
    ] = None,
    force: Force = False,
) -> None:
    """Fit kernel and network models to calibrations and write a platform.

    Of experiments (`lepaute run`) it reports which factors matter, or the memory hierarchy; they yield no platform.
    """
    from lepaute.archive import Archive
    from lepaute.fit import diagnose, platform_and_models
    from lepaute.fit.kernels.form import requested_forms
    from lepaute.platform import dump_platform
    from lepaute.report.files import check_report_name

    _check_condition(network_condition)
    forms = requested_forms(kernel_model or [])
    for path in report or ():
        check_report_name(path)
    opened = [Archive.open(path) for path in archives]
    of_experiments = all(archive.about.kind == "experiment" for archive in opened)
    outputs = {"--output": None if of_experiments else output, "--plot": plot, "--report": report}
    check_outputs(outputs, inputs=archives, force=force)
    if of_experiments:
        of_models = {"--report": report, "--kernel-model": forms, "--network-condition": network_condition}
        if given := [option for option, value in of_models.items() if value]:
            raise InputError(f"{given[0]} applies to models, and experiments yield none; give calibrations")
        _print_findings(opened, plot, factor or (), column)
        return
    for option, value in (("--factor", factor), ("--column", column)):
        if value:
            raise InputError(f"{option} names a column of an experiment; calibrations declare theirs")
    if plot is not None:
        raise InputError("--plot draws the memory hierarchy of an experiment; calibrations have none")
    platform, fitted = platform_and_models(opened, name or output.stem, forms, network_condition or None)
    for warning in fitted.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(quality_table(fitted.quality))
    if details:
        print("\n" + selection_table(fitted.selections))
    if dependence := dependence_text(fitted.dependence, fitted.quality, everything=details):
        print("\n" + dependence)
    if fitted.frequency is not None:
        print(fitted.frequency.sentence)
    for effect in fitted.conditions:
        print(effect.sentence())
    print_factors(fitted.factor_tests)
    tell_diagnosis(diagnose(opened, fitted, alone=not network_condition), report or ())
    dump_platform(platform, output)
    print(f"wrote {output}", file=sys.stderr)


def _check_condition(condition: str) -> None:
    """Raises InputError where messages are not measured under it."""
    from lepaute.fit.messages.conditions import CONDITIONS

    if condition not in ("", *CONDITIONS):
        raise InputError(f"--network-condition is {condition}; it is one of {', '.join(CONDITIONS)}")


def _print_findings(archives: "list[Archive]", plot: Path | None, factors: Sequence[str], column: str | None) -> None:
    """What experiments show that are no calibrations; they make no platform."""
    from lepaute.fit.experiments import findings
    from lepaute.fit.memory import hierarchy_text
    from lepaute.fit.observations.factors import DURATION

    hierarchies = []
    for archive in archives:
        for result in findings(archive, factors, column or DURATION):
            print(f"{archive.path}: {result.table}")
            print_factors(result.factor_tests)
            for hierarchy in result.hierarchies:
                print(hierarchy_text(hierarchy))
                hierarchies.append(hierarchy)
    if plot is not None:
        from lepaute.fit.memory import plot_hierarchies

        if not hierarchies:
            raise InputError("--plot draws the memory hierarchy, and these archives measured none")
        plot_hierarchies(tuple(hierarchies), plot)
        print(f"wrote {plot}", file=sys.stderr)


def print_factors(tests: "Sequence[FactorTest]") -> None:
    """What the factors besides sizes do to durations, if any was varied."""
    from lepaute.fit.observations.factors import factor_table

    if tests:
        print(f"\n{factor_table(tests)}\n")


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
    from lepaute.kit.tables import text_table
    from lepaute.kit.text import percent, seconds

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
    lines = [
        (
            row.kernel if row.threads == 1 else f"{row.kernel} x{row.threads}",
            str(row.n_calls),
            row.form,
            seconds(row.time_s),
            f"{row.r_squared:.3f}",
            percent(row.mean_abs_relative_error),
            percent(row.group_error),
            percent(row.discrepancy),
            percent(row.tail_share),
            percent(row.cold_excess),
            percent(row.core_spread),
            row.ranges + (f"  ({row.note})" if row.note else ""),
        )
        for row in sorted(rows, key=lambda row: -row.time_s)
    ]
    return text_table(header, lines, left=(0, 2, len(header) - 1))


#: Kernels that take less of the time are passed over unless everything is asked for.
LEAST_SHARE = 0.01

_EXPLAINED = (
    "M-: error on blocks left out, relative, of single calls (one, -S, -H: of the mean taken); "
    "N-: BIC above the best, a call"
)


def selection_table(selections: "Sequence[Selection]") -> str:
    """A line a kernel: the model taken, and the score of everything that was tried."""
    from lepaute.kit.tables import text_table
    from lepaute.platform.kernel_model import MEANS, NOISES

    lines: list[tuple[str, ...]] = [("kernel", "model", *MEANS, "one", "-S", "-H", *NOISES, "")]
    for selection in selections:
        errors = {candidate.mean: candidate.error for candidate in selection.means}
        levels = [selection.levels.get(name) for name in ("", "-S", "-H")]
        cores = ["-" if candidate is None else f"{100 * candidate.error:.2f} %" for candidate in levels]
        noises = selection.noises
        bics = [f"{value / noises.n_calls:.2f}" for value in noises.bic] if noises else ["-"] * len(NOISES)
        means = [f"{100 * errors[mean]:.1f} %" if mean in errors else "-" for mean in MEANS]
        name = selection.kernel if selection.threads == 1 else f"{selection.kernel} x{selection.threads}"
        lines.append((name, str(selection.form), *means, *cores, *bics, selection.note))
    return f"{_EXPLAINED}\n{text_table(lines[0], lines[1:], left=(0, 1, len(lines[0]) - 1))}"


def dependence_text(
    reports: "Sequence[DependenceReport]", quality: "Sequence[QualityRow]", *, everything: bool = False
) -> str:
    """A sentence for each kernel whose sums the model's layers do not cover, or for each; "" where there is none."""
    time_s = {row.kernel: row.time_s for row in quality}
    whole = sum(time_s.values())
    chosen = [
        report
        for report in sorted(reports, key=lambda report: -time_s.get(report.kernel, 0.0))
        if everything or (report.is_limit and time_s.get(report.kernel, 0.0) > LEAST_SHARE * whole)
    ]
    lines = []
    for report in chosen:
        known = [(lag, value) for lag, value in zip((1, 10, 100), report.lags, strict=True) if math.isfinite(value)]
        lags = ", ".join(f"{value:.2f} at lag {lag}" for lag, value in known)
        lines.append(f"{report.sentence} (autocorrelation {lags})" if everything and known else report.sentence)
    return "\n".join(lines)
