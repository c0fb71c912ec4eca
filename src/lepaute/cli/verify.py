"""`lepaute verify hpl`: predict HPL, run the real one here or on nodes, show both and the error."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli import node_options as on
from lepaute.cli.options import AsJson, is_given, with_options_of
from lepaute.cli.simulation import Settings, platform_of
from lepaute.measure.schedulers import Request
from lepaute.simulate.apps.hpl import Hpl

if TYPE_CHECKING:
    from lepaute.cli.verify_site import Where
    from lepaute.measure.sentinel import Guard
    from lepaute.platform import Platform
    from lepaute.verify.seal import Seal
    from lepaute.verify.verification import Verification

app = typer.Typer(help="Predict, run the real application here or on nodes, show both and the error.")

CALIBRATION_FILE = "calibration.zip"
PLATFORM_FILE = "platform.yaml"
QUALITY_FILE = "fit_quality.csv"
#: From 40 simulated runs on, an interval is that of the runs themselves; with ten, Student's is half as wide again.
_RUNS = 100
#: Of these as many are made once more on the same days, which says by what runs of one day differ.
_RUNS_AGAIN = 20
_RUNS_OF_RESULTS = 10


@app.callback()
def group() -> None:
    """Predict, run the real application here or on nodes, show both and the error."""


@app.command()
@with_options_of(Hpl, "values", leave_out=("n", "p", "q"), make=dict)
@with_options_of(Request, "request")
def hpl(
    context: typer.Context,
    values: dict[str, Any],
    platform: Annotated[
        str | None, typer.Option("--platform", "-p", help="platform file of this machine, or of the nodes")
    ] = None,
    n: Annotated[str, typer.Option("--n", help="orders of the matrix, one or several; suffix k")] = "2000,4000,8000",
    grid: Annotated[str, typer.Option("--grid", help="process grids, one or several")] = "1x1,1x2,2x1",
    dat: Annotated[
        Path | None, typer.Option("--dat", help="an HPL.dat: all its combinations, in the place of the options")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", help="an HPL.out: its cases are predicted and compared with it; nothing is run"),
    ] = None,
    settings: Settings = None,
    runs: Annotated[
        int | None, typer.Option("--runs", help="simulated runs of each case (default: 100; with --results 10)")
    ] = None,
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
    *,
    request: Request,
    scheduler: on.SchedulerName = None,
    python: on.PythonOnNodes = None,
    ranks_per_node: Annotated[
        int | None,
        typer.Option(
            "--ranks-per-node",
            help="ranks on each node in turn; unless given, one on each core",
            min=1,
            show_default=False,
        ),
    ] = None,
    other_machine: Annotated[
        bool, typer.Option("--other-machine", help="also where the platform is of another machine")
    ] = False,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="measure and fit this machine, or the nodes, first")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="a tiny calibration: only checks that everything works")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="resume the interrupted campaign in --output-dir")] = False,
) -> None:
    """Predicts HPL, seals the predictions, runs the real HPL in shuffled order, and compares.

    With --nodes or --scheduler it runs on those nodes, core by core and node by node as predicted.
    Real runs that other load disturbed are marked and made again, at most three times. Close other programs meanwhile.
    Each run is kept as it ends: the same command with --resume goes on with a campaign that was interrupted.
    With --results it compares an HPL.out with predictions of its cases, and runs nothing.
    """
    import signal
    import sys
    from contextlib import ExitStack
    from functools import partial

    from lepaute.cli.terminal import notes_printed, progress_bar
    from lepaute.cli.verify_site import opened_site, where_of
    from lepaute.kit.outputs import check_output_folder
    from lepaute.simulate import predict
    from lepaute.verify.campaign import Plan
    from lepaute.verify.real_run import built_program, check_machine, user_program
    from lepaute.verify.run_journal import held
    from lepaute.verify.verification import exceeds, verify

    if results is not None:
        from lepaute.cli.verify_results import compare_results

        compare_results(
            context,
            results,
            dat,
            values,
            platform,
            settings,
            runs=_RUNS_OF_RESULTS if runs is None else runs,
            seed=seed,
            ranks_per_node=ranks_per_node,
            as_json=as_json,
            output_dir=output_dir,
            tolerance=tolerance,
        )
        return
    check_calibration_options(platform, calibrate, quick)
    where = where_of(scheduler, request, python, ranks_per_node, other_machine=other_machine)
    check_output_folder(output_dir, "--output-dir")
    check_campaign_folder(output_dir, calibrate, resume)
    cases = cases_of(context, values, n, grid, dat)
    plan = Plan(repeats=repeats, order_seed=seed)
    if where.is_here:
        for case in cases:
            check_machine(case)
    given = None if platform is None else platform_of(platform, settings)
    progress = lambda what: print(what, file=sys.stderr)  # noqa: E731
    program = built_program(progress) if xhpl is None else user_program(xhpl, here=where.is_here)
    # A batch system ends a job with SIGTERM: the ranks of a real run must end too, and nodes be given back.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with held(output_dir), notes_printed(), ExitStack() as stack:
        coretype = None
        if given is None:
            measured, coretype, where = calibrated(output_dir, cases, seed, quick, resume, where)
            given = platform_of(measured, settings)
        machine, overrides = given
        threads = cases[0].threads_per_rank
        site, program, mapping = stack.enter_context(
            opened_site(
                where,
                machine,
                program,
                threads,
                coretype,
                calibrated=calibrate,
                resumed=output_dir if resume else None,
            )
        )
        guard = watching(machine, program.coretype, other_machine=where.other_machine)
        lag_s = lag_of_runs(machine, cases, repeats, output_dir, resume=resume)
        number = _RUNS if runs is None else runs
        predicted = partial(predict, platform=machine, seed=seed, applied=overrides, mapping=mapping, lag_s=lag_s)
        with progress_bar() as tell:
            verification = verify(
                cases,
                program,
                plan,
                partial(predicted, runs=number),
                output_dir,
                tell,
                tell_sealed,
                site=site,
                sentinel=None if guard is None else machine.sentinel,
                guard=guard,
                again=partial(predicted, runs=min(number, _RUNS_AGAIN), repeat=1),
                resume=resume,
            )
        tell_and_save(verification, output_dir, "this machine" if where.is_here else "the nodes", cases, as_json)
    if calibrate and not as_json:
        print_what_it_is_good_for(verification, output_dir)
    if tolerance is not None and exceeds(verification.table, tolerance):
        raise typer.Exit(1)


def tell_and_save(
    verification: "Verification", output_dir: Path, place: str, cases: "Sequence[Hpl]", as_json: bool
) -> None:
    """Prints the results, and writes all files."""
    try:
        print_results(verification, as_json)
    finally:  # whoever does not read the results to their end has them in the folder
        verification.save(output_dir, f"HPL on {place}{block_size(cases)}: predicted and measured")
    if not as_json:
        print_files(verification, output_dir)


def cases_of(context: typer.Context, values: dict[str, Any], orders: str, grids: str, dat: Path | None) -> "list[Hpl]":
    """The cases of an HPL.dat, each once, or those of the options: all orders on each grid.

    Raises InputError for an HPL.dat and options that say otherwise.
    """
    from lepaute.cli.options import flags_of
    from lepaute.errors import InputError
    from lepaute.kit.quantities import grid_of, whole_of
    from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat
    from lepaute.simulate.apps.hpl.parameters import places

    if dat is None:
        return [
            Hpl(n=order, p=p, q=q, **values)
            for p, q in map(grid_of, grids.split(","))
            for order in (whole_of(word, "n") for word in orders.split(","))
        ]
    decided = {name for name, _ in places()}
    given = [flag.name for flag in flags_of(Hpl) if flag.fields[0].name in decided and is_given(context, flag.argument)]
    if given:
        raise InputError(f"--dat and {', '.join(given)} contradict each other; give one or the others")
    others = {name: value for name, value in values.items() if name not in decided}
    return list(dict.fromkeys(read_hpl_dat(dat).combinations(**others)))


def block_size(cases: "Sequence[Hpl]") -> str:
    """That of all cases, for a title; empty where they differ."""
    sizes = {case.nb for case in cases}
    return f", NB = {sizes.pop()}" if len(sizes) == 1 else ""


def watching(machine: "Platform", coretype: str | None, *, other_machine: bool) -> "Guard | None":
    """How the platform's sentinel is run again, built first where it is not; None where it has none, or one of another
    machine, with which there is nothing to compare."""
    import sys

    from lepaute.measure.probes import build_probes
    from lepaute.verify.drift import guard_of

    if machine.sentinel is None or other_machine:
        return None
    return guard_of(machine, build_probes(progress=lambda what: print(what, file=sys.stderr)).dgemm, coretype)


def lag_of_runs(
    machine: "Platform", cases: "Sequence[Hpl]", repeats: int, folder: Path, *, resume: bool
) -> float | None:
    """Seconds between the calibration and the real runs; None where the platform does not say how the machine drifts.

    A resumed campaign keeps what its predictions were sealed with.
    """
    from lepaute.verify.drift import lag_of_campaign
    from lepaute.verify.seal import PREDICTIONS_FILE, sealed_lag_s

    if resume and (folder / PREDICTIONS_FILE).exists():
        return sealed_lag_s(folder)
    if machine.sentinel is None or machine.days is None or machine.days.drift is None:
        return None
    return lag_of_campaign(machine, cases, repeats)


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
        check_unused(folder, (CALIBRATION_FILE, folder_of(folder / CALIBRATION_FILE).name, PLATFORM_FILE, QUALITY_FILE))


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
    from lepaute.verify.seal import PREDICTIONS_FILE

    if as_json:
        json.dump(verification.to_dict(), sys.stdout, indent=2)
        print()
    else:
        for line in warning_lines(verification.cases, PREDICTIONS_FILE):
            print(line, file=sys.stderr)
        show(verification.table, verification.run_table, sys.stdout, verification.drift)
    sys.stdout.flush()


def print_files(verification: "Verification", folder: Path) -> None:
    """Where the picture is, and the seal."""
    from lepaute.verify.verification import PLOT_FILE

    print(f"Picture: {folder / PLOT_FILE}; predictions sealed as {verification.seal.sha256[:16]} before the runs.")


def print_what_it_is_good_for(verification: "Verification", folder: Path) -> None:
    """The longest case in one sentence, and how to predict others with the platform that was measured for it."""
    longest = max(verification.table.to_dict("records"), key=lambda row: row["measured_time_s"])
    grid = f"{longest['p']}x{longest['q']}"
    print(
        f"\nHPL of order {longest['n']} on {grid}: predicted {longest['predicted_time_s']:.3g} s, then measured "
        f"{longest['measured_time_s']:.3g} s.\nAny other run is predicted in seconds: "
        f"lepaute predict hpl -p {folder / PLATFORM_FILE} --n {3 * longest['n'] // 4} --grid {grid}"
    )


def beyond(sizes: "Collection[int]", measured: "Sequence[int]") -> list[int]:
    """The smallest and the largest of the sizes, where they are outside of those that are measured anyway."""
    low, high = min(sizes), max(sizes)
    return [size for size in sorted({low, high}) if not min(measured) <= size <= max(measured)]


def calibrated(
    folder: Path, cases: "Sequence[Hpl]", seed: int, quick: bool, resume: bool, where: "Where"
) -> tuple["Platform", str | None, "Where"]:
    """Measures and fits this machine, or the nodes, into the folder.

    Its platform, the OPENBLAS_CORETYPE it was measured with, and the place: of nodes those that were measured.

    cases : of the campaign, whose block sizes and threads the calibration covers
    resume: what the folder holds of a calibration is used: a whole one as it is, and an interrupted one goes on
    """
    import sys
    from dataclasses import asdict

    import pandas

    from lepaute.archive import Archive
    from lepaute.cli.fit import quality_table
    from lepaute.cli.terminal import progress_bar
    from lepaute.design.hpl_step import DEFAULT_NBS
    from lepaute.fit import platform_and_models
    from lepaute.kit.files import write_whole
    from lepaute.measure.calibration.campaign import calibrate
    from lepaute.measure.experiment.workspace import folder_of
    from lepaute.platform import dump_platform

    path = folder / CALIBRATION_FILE
    begun = resume and folder_of(path).is_dir()
    with progress_bar() as tell:
        if begun or not path.exists():
            print(f"calibrating {'this machine' if where.is_here else 'the nodes'}", file=sys.stderr)
            calibrate(
                path,
                quick=quick,
                # Between block sizes that are measured the models are tested, beyond them they are not.
                nbs=(*DEFAULT_NBS, *beyond({case.nb for case in cases}, DEFAULT_NBS)),
                threads=tuple(sorted({1, *(case.threads_per_rank for case in cases)})),
                seed=seed,
                progress=tell,
                scheduler=where.scheduler,
                request=where.request,
                python=where.python,
                resume=begun,
            )
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
    return platform, archive.about.blas.coretype_env, where.on(fitted.hosts)
