"""What the commands of `lepaute verify` share: options, the campaign that predicts, seals and runs, and its results."""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lepaute.cli.fit_text import quality_table
from lepaute.cli.options import DETAILS_HELP
from lepaute.cli.simulation import platform_of
from lepaute.cli.terminal import announce, end_by, json_text, note, notes_printed, progress_bar, say, warn
from lepaute.cli.verify_site import opened_site, refuse_other_machine, sentinel_guard
from lepaute.kit.files import write_atomic
from lepaute.kit.options import SHARE, option_field
from lepaute.kit.outputs import check_output_folder
from lepaute.kit.printable import terminal_columns
from lepaute.kit.text import caveat_line, significant
from lepaute.measure.archive import Archive
from lepaute.measure.verify.machine import lag_of_campaign
from lepaute.simulate.apps.hpl import Hpl

if TYPE_CHECKING:
    from lepaute.cli.verify_site import Where
    from lepaute.measure.verify.known_results import KnownResults
    from lepaute.measure.verify.real_run import Command, HplProgram
    from lepaute.measure.verify.seal import Seal
    from lepaute.measure.verify.verification import Verification
    from lepaute.simulate import Application
    from lepaute.simulate.platform import Platform

CALIBRATION_FILE = "calibration.zip"
PLATFORM_FILE = "platform.yaml"
QUALITY_FILE = "fit_quality.csv"
#: From 40 simulated runs on, an interval is that of the runs themselves; with ten, Student's is half as wide again.
_RUNS = 100
#: Of these as many are made once more on the same days, which says by what runs of one day differ.
_RUNS_AGAIN = 20


@dataclass(frozen=True)
class VerifyOptions:
    """What is predicted and run."""

    platform: str | None = option_field(None, "platform file of this machine, or of the nodes", also=("-p",))
    n: str = option_field("2000,4000,8000", "orders of the matrix, one or several; suffix k")
    grid: str = option_field("1x1,1x2,2x1", "process grids, one or several")
    dat: Path | None = option_field(None, "an HPL.dat: all its combinations, instead of the options")
    results: Path | None = option_field(None, "an HPL.out: its cases are predicted and compared with it; nothing runs")
    settings: list[str] | None = option_field(None, "FIELD=VALUE of the platform", name="set")
    runs: int | None = option_field(None, "simulated runs of each case (default: 100; with --results 10)")
    seed: int = option_field(1, "seed of the simulated runs, the order and the calibration")
    repeats: int = option_field(4, "real runs of each case")
    xhpl: Path | None = option_field(None, "your own xhpl instead of the one built here")
    tolerance: float | None = option_field(
        None, "exit with 1 if an error exceeds this, such as 5%, with 3 if one is unknown", **SHARE
    )
    details: bool = option_field(False, DETAILS_HELP)
    as_json: bool = option_field(False, "one JSON object on standard output", name="json")
    output: Path = option_field(Path("lepaute-verification"), "folder for all files", also=("-o",))
    report: Path | None = option_field(None, "also a page: results, predicted beside measured", metavar="FILE.html")
    ranks_per_node: int | None = option_field(None, "ranks on each node in turn; default: one on each core", minimum=1)
    other_machine: bool = option_field(False, "run even if the platform describes another machine")
    calibrate: bool = option_field(False, "measure and fit this machine, or the nodes, first")
    quick: bool = option_field(False, "a tiny calibration: only checks that everything works")
    resume: bool = option_field(False, "resume the interrupted campaign in --output")


def end_by_tolerance(table: Any, options: VerifyOptions) -> None:
    """Ends with status 1 where an error of the table exceeds --tolerance, with 3 where one is not known."""
    from lepaute.measure.verify.comparison import within

    if options.tolerance is not None:
        end_by(within(table, options.tolerance), "against")


def check_folder(options: VerifyOptions) -> None:
    """Raises InputError where there is nothing to resume, or without --resume something that would be lost."""
    from lepaute.measure.experiment.workspace import folder_of
    from lepaute.measure.verify.verification import check_begun, check_unused

    folder = options.output
    check_output_folder(folder, "--output")
    if options.resume:
        check_begun(folder)
        return
    check_unused(folder)
    if options.calibrate:
        check_unused(folder, (CALIBRATION_FILE, folder_of(folder / CALIBRATION_FILE).name, PLATFORM_FILE, QUALITY_FILE))


def verified(
    cases: "Sequence[Application]",
    find_program: "Callable[[], HplProgram | Command]",
    options: VerifyOptions,
    where: "Where",
    title: str,
    causes: str = "",
) -> Any:
    """Calibrates where that was asked for, makes all real runs, prints and saves the results; the table of cases.

    title: of pictures and page; causes: as of comparison.sentence
    """
    from lepaute.measure.verify.campaign import Plan
    from lepaute.measure.verify.comparison import CAUSES
    from lepaute.measure.verify.seal import held
    from lepaute.measure.verify.verification import chosen_runs, verify
    from lepaute.simulate import predict

    folder, resume = options.output, options.resume
    plan = Plan(repeats=options.repeats, order_seed=options.seed)
    given = None if options.platform is None else platform_of(options.platform, options.settings)
    if given is not None:
        refuse_other_machine(given[0], where)
    program = find_program()
    with held(folder), notes_printed(), ExitStack() as stack:
        coretype = None
        if given is None:
            measured, coretype, where = _calibrated(cast("Sequence[Hpl]", cases), options, where)
            given = platform_of(measured, options.settings)
        machine, overrides = given
        site, program, mapping = stack.enter_context(
            opened_site(
                where,
                machine,
                program,
                cases[0].threads_per_rank,
                coretype,
                calibrated=options.calibrate,
                resumed=folder if resume else None,
            )
        )
        guard = sentinel_guard(machine, program.coretype, other_machine=where.other_machine)
        lag_s = _lag_of_runs(machine, cases, options)
        runs = _RUNS if options.runs is None else options.runs
        predicted = partial(
            predict, platform=machine, seed=options.seed, applied=overrides, mapping=mapping, lag_s=lag_s
        )
        with progress_bar() as tell:
            campaign = chosen_runs(
                *(cases, program, plan, partial(predicted, runs=runs), folder, site, tell),
                guard=guard,
                again=partial(predicted, runs=min(runs, _RUNS_AGAIN), repeat=1),
                sealed=_tell_sealed,
                resume=resume,
            )
            verification = verify(campaign, None if guard is None else machine.sentinel)
        _print_and_save(verification, options, title, causes or CAUSES)
    return verification.table


def _lag_of_runs(machine: "Platform", cases: "Sequence[Application]", options: VerifyOptions) -> float | None:
    """Seconds between the calibration and the real runs; None where the platform does not say how the machine drifts.

    A resumed campaign keeps what its predictions were sealed with.
    """
    from lepaute.measure.verify.seal import PREDICTIONS_FILE, sealed_lag_s

    if options.resume and (options.output / PREDICTIONS_FILE).exists():
        return sealed_lag_s(options.output)
    if machine.sentinel is None or machine.days is None or machine.days.drift is None:
        return None
    return lag_of_campaign(machine, cases, options.repeats)


def _tell_sealed(seal: "Seal", finished: int) -> None:
    """Says that the predictions are on disk, and how many real runs a resumed campaign has already."""
    note(f"predictions written before the first real run: {seal.path} at {seal.created}")
    note(f"  SHA-256 {seal.sha256}")
    if finished:
        note(f"  resumed after {finished} finished runs")


def _print_and_save(verification: "Verification", options: VerifyOptions, title: str, causes: str) -> None:
    """Prints all results before any file is written, so that a full disk hides none."""
    from lepaute.measure.verify.seal import PREDICTIONS_FILE
    from lepaute.measure.verify.verification import PLOT_FILE

    folder = options.output
    try:
        print_results(verification, PREDICTIONS_FILE, options, drift=verification.drift, causes=causes)
    finally:  # whoever does not read the results to their end has them in the folder
        verification.save(folder, title)
        if options.report is not None:
            from lepaute.measure.verify.report import page

            text = page(verification, title, causes, drift=verification.drift, seal=verification.seal)
            write_atomic(options.report, text)
    if options.as_json:
        return
    say(f"Picture: {folder / PLOT_FILE}; predictions sealed as {verification.seal.sha256[:16]} before the runs.")
    if options.calibrate:
        longest = max(verification.table.to_dict("records"), key=lambda row: row["measured_time_s"])
        predicted_s, measured_s = (significant(longest[f"{how}_time_s"]) for how in ("predicted", "measured"))
        grid = f"{longest['p']}x{longest['q']}"
        command = f"lepaute predict hpl -p {folder / PLATFORM_FILE} --n {3 * longest['n'] // 4} --grid {grid}"
        print(
            f"\nHPL of order {longest['n']} on {grid}: predicted {predicted_s} s, then measured {measured_s} s."
            f"\nAny other run is predicted in seconds: {command}"
        )


def print_results(
    results: "Verification | KnownResults",
    warnings_in: str,
    options: VerifyOptions,
    further: Sequence[str] = (),
    **shown: Any,
) -> None:
    """The comparison, and further lines; warnings_in: where all warnings are."""
    from lepaute.measure.verify.report import show, slow_state_line, warning_lines

    if options.as_json:
        print(json_text(results.to_dict()))
    else:
        show(results.table, results.run_table, sys.stdout, **shown)
        for line in filter(None, (slow_state_line(results.cases), *further)):
            say(line, 10 if line.startswith(" ") else 2)
        warnings, width = warning_lines(results.cases, warnings_in), terminal_columns(sys.stderr)
        if options.details:
            for line in warnings:
                note(line)
        elif warnings:
            note(caveat_line([line.partition("): ")[2] or line for line in warnings], width))
    sys.stdout.flush()


def _calibrated(cases: Sequence[Hpl], options: VerifyOptions, where: "Where") -> tuple["Platform", str | None, "Where"]:
    """Measures and fits this machine, or the nodes, into the folder, for the block sizes and threads of the cases.

    Its platform, the OPENBLAS_CORETYPE it was measured with, and the place: of nodes those that were measured. With
    --resume a whole calibration of the folder is used as it is, and an interrupted one goes on.
    """
    import pandas

    from lepaute.measure.calibration.campaign import calibrate
    from lepaute.measure.calibration.precision import Goal
    from lepaute.measure.calibration.reference import precision_of
    from lepaute.measure.design.hpl_step import DEFAULT_NBS
    from lepaute.measure.experiment.workspace import folder_of
    from lepaute.measure.fit import platform_and_models

    folder = options.output
    path, goal = folder / CALIBRATION_FILE, None if options.quick else Goal()
    begun = options.resume and folder_of(path).is_dir()
    sizes = {case.nb for case in cases}
    extremes = sorted({min(sizes), max(sizes)})
    with progress_bar() as tell:
        if begun or not path.exists():
            note(f"calibrating {'this machine' if where.is_here else 'the nodes'}")
            calibrate(
                path,
                quick=options.quick,
                # Between block sizes that are measured the models are tested, beyond them they are not.
                nbs=(*DEFAULT_NBS, *(nb for nb in extremes if not min(DEFAULT_NBS) <= nb <= max(DEFAULT_NBS))),
                threads=tuple(sorted({1, *(case.threads_per_rank for case in cases)})),
                seed=options.seed,
                progress=tell,
                goal=goal,
                announce=announce,
                scheduler=where.scheduler,
                request=where.request,
                python=where.python,
                resume=begun,
            )
        tell("fitting the models", 1.0)
        archive = Archive.open(path)
        platform, fitted = platform_and_models(archive, "calibrated")
    warn((*archive.about.warnings, *fitted.warnings))
    if goal is not None:
        note(f"lepaute: {precision_of(goal, archive, platform, fitted)[0]}")
    platform.to_yaml(folder / PLATFORM_FILE)
    note(quality_table(fitted.quality, terminal_columns(sys.stderr)))
    rows = pandas.DataFrame([asdict(row) for row in fitted.quality])
    write_atomic(folder / QUALITY_FILE, rows.to_csv(index=False).encode())
    return platform, archive.about.blas.coretype_env, where.on(fitted.hosts)
