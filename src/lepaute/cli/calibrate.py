"""`lepaute calibrate`: measure this machine or some nodes, fit their models, write their platform."""

from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli import node_options as on
from lepaute.cli.fit import Reports
from lepaute.cli.options import Force, with_options_of
from lepaute.kit.outputs import check_archive_output, check_outputs
from lepaute.measure.schedulers import Request, default_scheduler


@with_options_of(Request, "request")
def command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Platform file to write.")] = Path("platform.yaml"),
    archive: Annotated[Path, typer.Option(help="Archive to write.")] = Path("calibration.zip"),
    quick: Annotated[bool, typer.Option("--quick", help="Two tiny blocks, to check that everything works.")] = False,
    network_bytes: Annotated[
        int | None, typer.Option(help="Largest message, up to 1 GiB; 64 MiB unless given.", show_default=False)
    ] = None,
    nb: Annotated[str, typer.Option(help="Block sizes of HPL to measure.", metavar="NB,...")] = "64,128,256",
    threads: Annotated[
        str, typer.Option(help="BLAS threads of a process, each number measured in turn.", metavar="T,...")
    ] = "1",
    switches: Annotated[
        str | None,
        typer.Option(
            help="Nodes of each switch; as Slurm knows them unless given.", metavar="NODES;NODES...", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the designs and of their order.", min=0)] = 1,
    *,
    request: Request,
    scheduler: on.SchedulerName = None,
    python: on.PythonOnNodes = None,
    report: Reports = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted calibration.")] = False,
    force: Force = False,
) -> None:
    """Measures this machine (all its cores at once, about two minutes), fits its models and writes its platform.

    With --nodes or --scheduler it measures those nodes, which must be alike, in parallel, and then the messages
    between pairs of them, on one switch and across.
    Close other programs first; `lepaute doctor` reports what would disturb.
    """
    import signal
    import sys

    from lepaute.cli.terminal import notes_printed, progress_bar
    from lepaute.kit.quantities import numbers_of
    from lepaute.measure.calibration.campaign import calibrate
    from lepaute.measure.switches import switches_of
    from lepaute.report.files import check_report_name

    # A batch system ends a job with SIGTERM: the probes must end too, and what was measured be kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for file in report or ():
        check_report_name(file)
    check_outputs({"--output": output, "--archive": archive, "--report": report}, force=force)
    check_archive_output(archive, force=force)
    with notes_printed(), progress_bar() as tell:
        path = calibrate(
            archive,
            quick=quick,
            network_bytes=network_bytes,
            nbs=numbers_of(nb, "--nb"),
            threads=numbers_of(threads, "--threads"),
            switches=None if switches is None else switches_of(switches),
            seed=seed,
            progress=tell,
            scheduler=scheduler or default_scheduler(request.nodes),
            request=request,
            python=python,
            resume=resume,
        )

    from lepaute.archive import Archive
    from lepaute.cli.fit import print_factors, quality_table, tell_diagnosis
    from lepaute.fit import diagnose, platform_and_models
    from lepaute.platform import dump_platform

    measured = Archive.open(path)
    platform, fitted = platform_and_models(measured, output.stem)
    for warning in (*measured.about.warnings, *fitted.warnings):
        print(f"warning: {warning}", file=sys.stderr)
    print(quality_table(fitted.quality))
    print_factors(fitted.factor_tests)
    tell_diagnosis(diagnose(measured, fitted), report or ())
    dump_platform(platform, output)
    print(f"{path}: archive {measured.id[:12]}, {len(measured.members())} members")
    print(f"{output}: platform {platform.sha256[:12]}")
