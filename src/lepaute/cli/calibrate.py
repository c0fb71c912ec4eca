"""`lepaute calibrate`: measure this machine or some nodes, fit their models, write their platform."""

from dataclasses import dataclass
from pathlib import Path

from lepaute.cli.fit import Reports, print_factors, quality_table, tell_diagnosis
from lepaute.cli.options import Force, with_options_of
from lepaute.cli.run import PythonOnNodes, SchedulerName
from lepaute.cli.terminal import interrupt_on_sigterm, notes_printed, progress_bar, warn
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_archive_output, check_outputs
from lepaute.kit.quantities import numbers_of
from lepaute.measure.schedulers import Request, default_scheduler
from lepaute.measure.switches import Switches, switches_of


@dataclass(frozen=True)
class CalibrateOptions:
    """What is measured, and the files."""

    output: Path = option_field(Path("platform.yaml"), "Platform file to write.", also=("-o",))
    archive: Path = option_field(Path("calibration.zip"), "Archive to write.")
    quick: bool = option_field(False, "Two tiny blocks, to check that everything works.")
    network_bytes: int | None = option_field(None, "Largest message, up to 1 GiB; 64 MiB unless given.")
    nbs: tuple[int, ...] = option_field(
        "64,128,256", "Block sizes of HPL to measure.", name="nb", metavar="NB,...", quantity=numbers_of
    )
    threads: tuple[int, ...] = option_field(
        "1", "BLAS threads of a process, each number measured in turn.", metavar="T,...", quantity=numbers_of
    )
    switches: Switches | None = option_field(
        None, "Nodes of each switch; as Slurm knows them unless given.", metavar="NODES;NODES...", parse=switches_of
    )
    seed: int = option_field(1, "Of the designs and of their order.", minimum=0)
    resume: bool = option_field(False, "Resume an interrupted calibration.")


@with_options_of(CalibrateOptions, "options")
@with_options_of(Request, "request")
def command(
    options: CalibrateOptions,
    request: Request,
    scheduler: SchedulerName = None,
    python: PythonOnNodes = None,
    report: Reports = None,
    force: Force = False,
) -> None:
    """Measures this machine (all its cores at once, about two minutes), fits its models and writes its platform.

    With --nodes or --scheduler it measures those nodes, which must be alike, in parallel, and then the messages
    between pairs of them, on one switch and across.
    Close other programs first; `lepaute doctor` reports what would disturb.
    """
    from lepaute.archive import Archive
    from lepaute.fit import diagnose, platform_and_models
    from lepaute.measure.calibration.campaign import calibrate
    from lepaute.platform import dump_platform
    from lepaute.report.files import check_report_name

    output, archive = options.output, options.archive
    interrupt_on_sigterm()
    for file in report or ():
        check_report_name(file)
    check_outputs({"--output": output, "--archive": archive, "--report": report}, force=force)
    check_archive_output(archive, force=force)
    with notes_printed(), progress_bar() as tell:
        path = calibrate(
            archive,
            quick=options.quick,
            network_bytes=options.network_bytes,
            nbs=options.nbs,
            threads=options.threads,
            switches=options.switches,
            seed=options.seed,
            progress=tell,
            scheduler=scheduler or default_scheduler(request.nodes),
            request=request,
            python=python,
            resume=options.resume,
        )
    measured = Archive.open(path)
    platform, fitted = platform_and_models(measured, output.stem)
    warn((*measured.about.warnings, *fitted.warnings))
    print(quality_table(fitted.quality))
    print_factors(fitted.factor_tests)
    tell_diagnosis(diagnose(measured, fitted), report or ())
    dump_platform(platform, output)
    print(f"{path}: archive {measured.id[:12]}, {len(measured.members())} members")
    print(f"{output}: platform {platform.sha256[:12]}")
