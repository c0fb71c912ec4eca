"""`lepaute calibrate` and `lepaute fit`: platforms of what was measured just now, or of archives; quality of models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.fit_text import dependence_text, quality_table, selection_table, verdict_text
from lepaute.cli.options import AsJson, Details, Force, argument, is_given, page_option
from lepaute.cli.run import PythonOnNodes, SchedulerName
from lepaute.cli.terminal import BAR_AFTER_S, announce, json_text, note, notes_printed, progress_bar, say, warn
from lepaute.cli.watch_store import check_text
from lepaute.errors import InputError
from lepaute.kit.options import SHARE, TIME, option_field
from lepaute.kit.outputs import check_archive_output, check_outputs
from lepaute.kit.picture import files_of, picture_files
from lepaute.kit.printable import terminal_columns
from lepaute.kit.quantities import numbers_of
from lepaute.kit.report.page import check_page_name
from lepaute.kit.text import folded
from lepaute.measure.archive import Archive
from lepaute.measure.schedulers import Request, default_scheduler
from lepaute.measure.schedulers.types import Switches, switches_of

if TYPE_CHECKING:
    from lepaute.measure.calibration.precision import Goal
    from lepaute.measure.fit.diagnostics import Diagnosis
    from lepaute.measure.fit.fitted_models import FittedModels
    from lepaute.measure.fit.memory import MemoryHierarchy
    from lepaute.measure.fit.observations.factors import FactorTest
    from lepaute.simulate.platform import Platform

#: Serious findings that are printed; a report has them all.
MAX_TOLD = 6
Report = Annotated[Path | None, page_option("a page: what is wrong with the models, and where")]


@dataclass(frozen=True)
class CalibrateOptions:
    """What is measured, and the files."""

    output: Path = option_field(Path("platform.yaml"), "Platform file to write.", also=("-o",))
    archive: Path = option_field(Path("calibration.zip"), "Archive to write.")
    quick: bool = option_field(False, "Two tiny blocks, to check that everything works.")
    network_bytes: int | None = option_field(None, "Largest message, up to 1 GiB; default: 64 MiB.")
    nbs: tuple[int, ...] = option_field(
        "64,128,256", "Block sizes of HPL to measure.", name="nb", metavar="NB,...", quantity=numbers_of
    )
    threads_per_rank: tuple[int, ...] = option_field(
        "1", "BLAS threads of a rank, each number measured in turn.", metavar="T,...", quantity=numbers_of
    )
    switches: Switches | None = option_field(
        None, "Nodes of each switch; default: as Slurm knows them.", metavar="NODES;NODES...", parse=switches_of
    )
    seed: int = option_field(1, "Seed of the designs and of their order.", minimum=0)
    budget_s: float | None = option_field(None, "Time with all fits; default: 4min, or for the fewest blocks.", **TIME)
    precision: float | None = option_field(
        None, "Half-width of the mean of a reference run of HPL at which it ends; default: 5%.", **SHARE
    )
    resume: bool = option_field(False, "Resume an interrupted calibration, or add blocks to a complete one.")

    def goal(self) -> "Goal | None":
        """None of a quick calibration. Raises InputError where that is asked for a precision or a time."""
        from lepaute.measure.calibration.precision import DEFAULT_PRECISION, Goal

        if not self.quick:
            return Goal(DEFAULT_PRECISION if self.precision is None else self.precision, self.budget_s)
        for option, value in (("--budget", self.budget_s), ("--precision", self.precision)):
            if value is not None:
                raise InputError(f"{option} applies to a whole calibration; leave out --quick")
        return None


def calibrate(
    options: CalibrateOptions,
    request: Request,
    scheduler: SchedulerName = None,
    python: PythonOnNodes = None,
    report: Report = None,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Measures this machine (all its cores at once, in about four minutes), fits its models and writes its platform.

    With --nodes or --scheduler it measures those nodes, which must be alike, in parallel, and then the messages
    between pairs of them, on one switch and across.
    Close other programs first; `lepaute doctor` reports what would disturb.
    """
    from lepaute.measure.calibration.campaign import calibrate as measure
    from lepaute.measure.calibration.reference import precision_of
    from lepaute.measure.fit import diagnose, platform_and_models

    output, archive, goal = options.output, options.archive, options.goal()
    check_page_name(report)
    check_text(output.stem, "--output")
    force = force or options.resume
    check_outputs({"--output": output, "--archive": archive, "--report": report}, force=force)
    check_archive_output(archive, force=force)
    with notes_printed(), progress_bar() as tell:
        path = measure(
            archive,
            quick=options.quick,
            network_bytes=options.network_bytes,
            nbs=options.nbs,
            threads=options.threads_per_rank,
            switches=options.switches,
            seed=options.seed,
            progress=tell,
            goal=goal,
            announce=announce,
            scheduler=default_scheduler(request.nodes) if scheduler is None else scheduler,
            request=request,
            python=python,
            resume=options.resume,
        )
    note(f"lepaute: {path} is written; fitting the models")
    measured = Archive.open(path)
    with progress_bar(BAR_AFTER_S) as tell:
        platform, fitted = platform_and_models(measured, output.stem, progress=tell)
    precision: dict[str, Any] = {}
    if goal is not None:
        text, precision = precision_of(goal, measured, platform, fitted)
        note(f"lepaute: {text}")
    caveats = (*measured.about.warnings, *fitted.warnings)
    diagnosis = diagnose(measured, fitted)
    _tell(fitted, diagnosis, platform, output, caveats, precision, report=report, details=details, as_json=as_json)
    platform.to_yaml(output)
    if not as_json:
        say(f"{path}: archive {measured.id[:12]}, {len(measured.members())} members")
        say(f"{output}: platform {platform.sha256[:12]}")


@dataclass(frozen=True)
class FitOptions:
    """What is fitted, and what is told of it."""

    output: Path = option_field(Path("fitted.yaml"), "platform to write", also=("-o",), metavar="FILE")
    name: str = option_field("", "name of the platform; default: that of the file")
    kernel_model: list[str] | None = option_field(
        None, "auto, a form of all kernels such as M'-H/N-2, or KERNEL=FORM; may be repeated", metavar="FORM"
    )
    network_condition: str = option_field(
        "", "messages measured under idle, dgemm, iprobe or iprobe+dgemm; default: two ranks alone", metavar="CONDITION"
    )
    plot: Path | None = option_field(None, "picture of an experiment's memory hierarchy, .png or .svg", metavar="FILE")
    factor: list[str] | None = option_field(
        None, "a column of an experiment's observations to test besides its design's; may be repeated", metavar="COLUMN"
    )
    column: str | None = option_field(None, "result of an experiment to compare; default: duration_s", metavar="COLUMN")

    def __post_init__(self) -> None:
        from lepaute.measure.fit.messages.conditions import CONDITIONS

        if self.network_condition not in ("", *CONDITIONS):
            raise InputError(f"--network-condition is {self.network_condition}; it is one of {', '.join(CONDITIONS)}")


def fit(
    context: typer.Context,
    archives: Annotated[list[Path], argument("ARCHIVE...", "calibrations of one machine")],
    options: FitOptions,
    report: Report = None,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Fit kernel and network models to calibrations and write a platform.

    Of experiments (`lepaute run`) it reports which factors matter, or the memory hierarchy; they yield no platform.
    """
    from lepaute.measure.fit.kernels.form import requested_forms

    forms = requested_forms(options.kernel_model or [])
    check_text(options.name or options.output.stem, "--name" if options.name else "--output")
    check_page_name(report)
    opened = [Archive.open(path) for path in archives]
    of_experiments = all(archive.about.kind == "experiment" for archive in opened)
    outputs = {
        "--output": None if of_experiments else options.output,
        "--plot": files_of(options.plot),
        "--report": report,
    }
    check_outputs(outputs, inputs=archives, force=force)
    if of_experiments:
        of_models = {
            "--output": is_given(context, "output"), "--name": options.name, "--report": report,
            "--kernel-model": forms, "--network-condition": options.network_condition,
        }  # fmt: skip
        if given := [option for option, value in of_models.items() if value]:
            raise InputError(f"{given[0]} applies to models, and experiments yield none; give calibrations")
        _print_findings(opened, options, as_json=as_json)
        return
    for option, value in (("--factor", options.factor), ("--column", options.column)):
        if value:
            raise InputError(f"{option} names a column of an experiment; calibrations declare theirs")
    if options.plot is not None:
        raise InputError("--plot draws the memory hierarchy of an experiment; calibrations have none")
    from lepaute.measure.fit import diagnose, platform_and_models

    condition, output = options.network_condition or None, options.output
    with progress_bar(BAR_AFTER_S) as tell:
        platform, fitted = platform_and_models(opened, options.name or output.stem, forms, condition, tell)
    diagnosis = diagnose(opened, fitted, alone=condition is None)
    _tell(fitted, diagnosis, platform, output, fitted.warnings, {}, report=report, details=details, as_json=as_json)
    platform.to_yaml(output)
    note(f"wrote {output}")


def _print_findings(archives: list[Archive], options: FitOptions, *, as_json: bool) -> None:
    """What experiments show that are no calibrations; they make no platform."""
    from lepaute.measure.fit.experiments import findings
    from lepaute.measure.fit.memory import finding, hierarchy_lines, plot_hierarchies
    from lepaute.measure.fit.observations.factors import DURATION

    hierarchies: list[MemoryHierarchy] = []
    objects: list[dict[str, object]] = []
    for archive in archives:
        for result in findings(archive, options.factor or (), options.column or DURATION):
            hierarchies += result.hierarchies
            if as_json:
                objects.append({"archive": str(archive.path), **result.to_dict()})
                continue
            lines = [finding(hierarchy) for hierarchy in result.hierarchies] or [f"{archive.path}: {result.table}"]
            say("\n".join(lines))
            _print_factors(result.factor_tests)
            for line in result.notes:
                say(line)
            for hierarchy in result.hierarchies:
                say("\n".join(hierarchy_lines(hierarchy)), 4)
    if as_json:
        print(json_text({"findings": objects}))
    if options.plot is not None:
        if not hierarchies:
            raise InputError("--plot draws the memory hierarchy, and these archives measured none")
        measured = ", ".join(f"{archive.path.name} ({archive.id[:12]})" for archive in archives)
        plot_hierarchies(tuple(hierarchies), options.plot, measured)
        note(f"wrote {' and '.join(map(str, picture_files(options.plot)))}")


def _print_factors(tests: "Sequence[FactorTest]") -> None:
    """What the factors besides sizes do to durations, if any was varied."""
    from lepaute.measure.fit.observations.factors import factor_table

    if tests:
        say(f"\n{factor_table(tests)}\n")


def _tell(
    fitted: "FittedModels",
    diagnosis: "Diagnosis",
    platform: "Platform",
    output: Path,
    caveats: Sequence[str],
    more: Mapping[str, Any],
    *,
    report: Path | None,
    details: bool,
    as_json: bool,
) -> None:
    """Prints the verdict, with details all tables and warnings, or the facts and `more` as JSON; writes the report."""
    from lepaute.measure.fit.fitted_models import DISTURBED
    from lepaute.measure.fit.report import write_report

    if report is not None:
        write_report(diagnosis, report)
    if as_json:
        files = {"platform": str(output), "platform_sha256": platform.sha256}
        print(json_text({**diagnosis.to_dict(), **more, **files, "warnings": list(caveats)}))
    else:
        disturbed = any(caveat.startswith(DISTURBED) for caveat in caveats)
        shown = () if details else caveats
        print(verdict_text(diagnosis, shown, report is not None, terminal_columns(), disturbed=disturbed))
        if details:
            warn(caveats)
            _print_tables(fitted, terminal_columns())
            warn(f"{flag.subject}: {flag.sentence}" for flag in diagnosis.serious[:MAX_TOLD])
    if report is not None:
        note(f"wrote {report}")


def _print_tables(fitted: "FittedModels", width: int) -> None:
    sentences = [effect.sentence() for effect in fitted.conditions]
    if fitted.frequency is not None:
        sentences.insert(0, fitted.frequency.sentence)
    tables = (
        quality_table(fitted.quality, width),
        selection_table(fitted.selections, width),
        folded(dependence_text(fitted.dependence, fitted.quality), width, 2),
        "\n".join(folded(sentence, width, 2) for sentence in sentences),
    )
    print("".join(f"\n{text}\n" for text in tables if text), end="")
    _print_factors(fitted.factor_tests)
