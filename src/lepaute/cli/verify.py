"""`lepaute verify hpl`: predict HPL, run the real one here, show both and the error."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.option_fields import with_options_of
from lepaute.cli.simulation_options import AsJson, Settings, platform_of
from lepaute.simulate.apps.hpl import Hpl

if TYPE_CHECKING:
    from lepaute.platform import Platform
    from lepaute.platform.schema import Blas
    from lepaute.verify.seal import Seal
    from lepaute.verify.verification import Verification

app = typer.Typer(help="Predict, run the real application here, show both and the error.")

CALIBRATION_FILE = "calibration.zip"
PLATFORM_FILE = "platform.yaml"
QUALITY_FILE = "fit_quality.csv"


@app.callback()
def group() -> None:
    """Predict, run the real application here, show both and the error."""


@app.command()
@with_options_of(Hpl, "values", leave_out=("n", "p", "q", "threads_per_rank"), make=dict)
def hpl(
    values: dict[str, Any],
    platform: Annotated[str | None, typer.Option("--platform", "-p", help="platform file of this machine")] = None,
    n: Annotated[str, typer.Option("--n", help="orders of the matrix, one or several; suffix k")] = "2000,4000,8000",
    grid: Annotated[str, typer.Option("--grid", help="process grids, one or several")] = "1x1,1x2,2x1",
    settings: Settings = None,
    runs: Annotated[int, typer.Option("--runs", help="simulated runs of each case")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="of the simulated runs, the order and the calibration")] = 1,
    repeats: Annotated[int, typer.Option("--repeats", help="real runs of each case")] = 4,
    xhpl: Annotated[Path | None, typer.Option("--xhpl", help="your own xhpl instead of the one built here")] = None,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", help="exit with status 1 if an error exceeds this, in per cent", min=0.0),
    ] = None,
    as_json: AsJson = False,
    output_dir: Annotated[Path, typer.Option("--output-dir", help="folder for all files")] = Path(
        "lepaute-verification"
    ),
    calibrate: Annotated[bool, typer.Option("--calibrate", help="measure and fit this machine first")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="a tiny calibration: only checks that everything works")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="resume the interrupted campaign in --output-dir")] = False,
) -> None:
    """Predicts HPL, seals the predictions, runs the real HPL in shuffled order, and compares.

    Real runs that other load disturbed are marked and made again, at most three times. Close other programs meanwhile.
    Each run is kept as it ends: the same command with --resume goes on with a campaign that was interrupted.
    """
    import signal
    import sys
    from dataclasses import replace

    from lepaute.cli.notes import notes_printed
    from lepaute.cli.progress import progress_bar
    from lepaute.kit.outputs import check_output_folder
    from lepaute.kit.quantities import grid_of, whole_of
    from lepaute.simulate import predict
    from lepaute.verify.campaign import Plan
    from lepaute.verify.real_run import built_program, check_machine, user_program
    from lepaute.verify.run_journal import held
    from lepaute.verify.verification import verify

    check_calibration_options(platform, calibrate, quick)
    check_output_folder(output_dir, "--output-dir")
    check_campaign_folder(output_dir, calibrate, resume)
    cases = [
        Hpl(n=order, p=p, q=q, **values)
        for p, q in map(grid_of, grid.split(","))
        for order in (whole_of(word, "n") for word in n.split(","))
    ]
    plan = Plan(repeats=repeats, order_seed=seed)
    for case in cases:
        check_machine(case)
    program = built_program(lambda what: print(what, file=sys.stderr)) if xhpl is None else user_program(xhpl)
    # A batch system ends a job with SIGTERM: the ranks of a real run must end too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = None if platform is None else given_platform(platform, settings)
    with held(output_dir), notes_printed():
        if given is None:
            measured, coretype = calibrated(output_dir, seed, quick, resume)
            machine, overrides = platform_of(measured, settings)
        else:
            machine, overrides, coretype = given
        with progress_bar() as tell:
            verification = verify(
                cases,
                replace(program, coretype=coretype),
                plan,
                lambda case: predict(case, machine, runs=runs, seed=seed, settings=overrides),
                output_dir,
                tell,
                tell_sealed,
                resume=resume,
            )
        try:
            print_results(verification, as_json)
        finally:  # whoever does not read the results to their end has them in the folder
            verification.save(output_dir, f"HPL on this machine, NB = {values['nb']}: predicted and measured")
    if not as_json:
        print_files(verification, output_dir)
    if tolerance is not None and verification.exceeds(tolerance):
        raise typer.Exit(1)


def check_calibration_options(platform: str | None, calibrate: bool, quick: bool) -> None:
    """Raises InputError for both or neither of a platform and a calibration."""
    from lepaute.errors import InputError

    if calibrate == (platform is not None):
        raise InputError("give either -p PLATFORM, or --calibrate to measure this machine first")
    if quick and not calibrate:
        raise InputError("--quick applies to the calibration; give --calibrate as well")


def check_campaign_folder(folder: Path, calibrate: bool, resume: bool) -> None:
    """Raises InputError where there is nothing to resume, or without `resume` something that would be lost."""
    from lepaute.measure.experiment.workspace import folder_of
    from lepaute.verify.verification import check_begun, check_unused

    if resume:
        check_begun(folder)
        return
    check_unused(folder)
    if calibrate:
        check_unused(folder, (CALIBRATION_FILE, folder_of(folder / CALIBRATION_FILE).name))


def given_platform(name: str, settings: list[str] | None) -> tuple["Platform", dict[str, str], str | None]:
    """The platform with its overrides, these, and the OPENBLAS_CORETYPE that its kernels want."""
    machine, overrides = platform_of(name, settings)
    return machine, overrides, chosen_coretype() if machine.blas is None else remembered_coretype(machine.blas)


def tell_sealed(seal: "Seal", finished: int) -> None:
    """Says that the predictions are on disk, and how many real runs a resumed campaign has already."""
    import sys

    print(f"predictions written before the first real run: {seal.path} at {seal.created}", file=sys.stderr)
    print(f"  SHA-256 {seal.sha256}", file=sys.stderr)
    if finished:
        print(f"  resumed after {finished} finished runs", file=sys.stderr)


def print_results(verification: "Verification", as_json: bool) -> None:
    """All results on standard output, flushed: before any file is written, so that a full disk hides none."""
    import json
    import sys

    from lepaute.verify.report import show, warning_lines

    if as_json:
        json.dump(verification.to_dict(), sys.stdout, indent=2)
        print()
    else:
        for line in warning_lines(verification.cases):
            print(line, file=sys.stderr)
        show(verification.table, verification.run_table, sys.stdout)
    sys.stdout.flush()


def print_files(verification: "Verification", folder: Path) -> None:
    """Where the picture is, and the seal."""
    from lepaute.verify.verification import PLOT_FILE

    print(f"Picture: {folder / PLOT_FILE}; predictions sealed as {verification.seal.sha256[:16]} before the runs.")


def calibrated(folder: Path, seed: int, quick: bool, resume: bool) -> tuple["Platform", str | None]:
    """Measures and fits this machine into the folder; its platform, and the OPENBLAS_CORETYPE it was measured with.

    resume: what the folder holds of a calibration is used: a whole one as it is, and an interrupted one goes on
    """
    import sys
    from dataclasses import asdict

    import pandas

    from lepaute.archive import Archive
    from lepaute.cli.fit import quality_table
    from lepaute.cli.progress import progress_bar
    from lepaute.fit import platform_and_models
    from lepaute.kit.files import write_whole
    from lepaute.measure.calibration.campaign import calibrate
    from lepaute.measure.experiment.workspace import folder_of
    from lepaute.platform import dump_platform

    path = folder / CALIBRATION_FILE
    begun = resume and folder_of(path).is_dir()
    with progress_bar() as tell:
        if begun or not path.exists():
            print("calibrating this machine: about two minutes, both cores", file=sys.stderr)
            calibrate(path, quick=quick, seed=seed, progress=tell, resume=begun)
        tell("fitting the models", 1.0)
        archive = Archive.open(path)
        platform, fitted = platform_and_models(archive, "calibrated")
    for warning in (*archive.about.warnings, *fitted.warnings):
        print(f"warning: {warning}", file=sys.stderr)
    dump_platform(platform, folder / PLATFORM_FILE)
    print(quality_table(fitted.quality), file=sys.stderr)
    write_whole(
        folder / QUALITY_FILE, pandas.DataFrame([asdict(row) for row in fitted.quality]).to_csv(index=False).encode()
    )
    return platform, archive.about.blas.coretype_env


def remembered_coretype(blas: "Blas") -> str | None:
    """The OPENBLAS_CORETYPE that a platform was measured with; warns where other kernels run here all the same.

    Raises EnvironmentProblem when OpenBLAS cannot be run with it.
    """
    import os
    import sys

    from lepaute.errors import EnvironmentProblem
    from lepaute.measure.kernel_set import CORETYPE, time_kernels

    # Where the platform wants none, the user's own stays in force, for the real HPL as well.
    setting = blas.coretype_env or os.environ.get(CORETYPE) or None
    seen = time_kernels(setting)
    if seen is None:
        with_setting = f" with {CORETYPE}={setting}" if setting else ""
        raise EnvironmentProblem(
            f"OpenBLAS cannot be loaded or run here{with_setting}; see lepaute doctor, and calibrate this machine"
        )
    if seen.core_name != blas.core:
        print(
            f"warning: the platform was measured with OpenBLAS's {blas.core} kernels, but "
            f"its {seen.core_name} kernels run here: expect an error of prediction from that",
            file=sys.stderr,
        )
    return blas.coretype_env


def chosen_coretype() -> str | None:
    """The OPENBLAS_CORETYPE that a calibration here would choose now; its warnings go to standard error."""
    import sys

    from lepaute.measure.kernel_set import choose_kernel_set

    kernels = choose_kernel_set()
    for warning in kernels.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return kernels.coretype_env
