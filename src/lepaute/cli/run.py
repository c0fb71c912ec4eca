"""`lepaute run`: an experiment, from a script to an archive."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli import node_options as on
from lepaute.cli.options import Force, with_options_of
from lepaute.measure.schedulers import Request, default_scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lepaute.measure.experiment.ending import Outcome
    from lepaute.measure.experiment.job import Job
    from lepaute.measure.experiment.options import Options


@with_options_of(Request, "request")
def command(
    script: Annotated[
        Path,
        typer.Argument(
            metavar="EXPERIMENT.py",
            help="A script with one subclass of lepaute.Job; node-test, for lepaute watch; or memory: its hierarchy.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Archive to write; EXPERIMENT-DATE.zip unless given.")
    ] = None,
    *,
    request: Request,
    scheduler: on.SchedulerName = None,
    python: on.PythonOnNodes = None,
    install: Annotated[Path | None, typer.Option("--install", help="Installation file: settings in YAML.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the experiment, NAME=VALUE.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the design and of everything random.", min=0)] = 1,
    monitor: Annotated[float | None, typer.Option(help="Seconds between samples of the monitor; 0 for none.")] = None,
    class_name: Annotated[
        str | None, typer.Option("--class", help="The experiment, where the script has several.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
    force: Force = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and do nothing.")] = False,
    keep_folders: Annotated[
        bool, typer.Option("--keep-folders", help="Do not delete the working folders on the nodes.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only how it ended.")] = False,
) -> int:
    """Runs an experiment and writes its archive: measurements, commands, environment, settings, monitoring.

    Exit status 1: the experiment failed; its archive says why. 130: it was interrupted.
    """
    import signal

    from lepaute.kit.quantities import settings_of
    from lepaute.measure.experiment.loader import load_job_class, made_job
    from lepaute.measure.experiment.options import options_of
    from lepaute.measure.shipped import shipped_experiments

    # A batch system ends a job with SIGTERM: the nodes must be given back then too, and what was measured be kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not script.is_file():
        # An archive names the script of an experiment, memory.py, in the command that resumes it.
        script = shipped_experiments().get(str(script).removesuffix(".py").replace("_", "-"), script)
    job_class = load_job_class(script, class_name)
    options = options_of(
        script=script,
        archive=output,
        scheduler=scheduler or default_scheduler(request.nodes),
        request=request,
        seed=seed,
        installation=install,
        parameters=settings_of(parameter or []),
        monitor_period_s=monitor,
        python=python,
        keep_folders=keep_folders,
        resume=resume,
        force=force,
    )
    if dry_run:
        from lepaute.measure.experiment.dry_run import planned_steps

        for line in planned_steps(job_class, options):
            print(line)
        return 0
    from lepaute.measure.experiment.life import execute

    experiment = made_job(job_class, options)
    with progress_of(experiment, quiet):
        outcome = execute(experiment, resume=resume)
    return print_outcome(outcome, options)


@contextmanager
def progress_of(job: "Job", quiet: bool) -> "Iterator[None]":
    """Shows the log on standard error while a job runs; on a terminal a progress bar with its latest line."""
    import sys

    from lepaute.cli.terminal import progress_bar

    if quiet or not sys.stderr.isatty():
        job.say = _silent if quiet else None
        yield
        return
    share, latest, before, planned = 0.0, "", -1, 0
    with progress_bar(after_s=2.0) as bar:

        def say(line: str) -> None:
            nonlocal latest
            latest = line[:60]
            bar(latest, share)

        def on_row(rows: int) -> None:
            nonlocal share, before, planned
            if before < 0:
                done, planned = job.workspace.measured()
                before = done - rows
            share = min(1.0, (before + rows) / planned) if planned else 0.0
            bar(latest, share)

        job.say, job.on_row = say, on_row
        yield


def _silent(_line: str) -> None:
    """For --quiet."""


def print_outcome(outcome: "Outcome", options: "Options") -> int:
    """Prints how it ended; the exit status."""
    import sys

    print(outcome)
    if outcome.status == "complete":
        return 0
    failure = " ".join((outcome.failure or "").split())
    print(f"lepaute: {failure or 'interrupted'}; resume with: {resume_command(options)}", file=sys.stderr)
    return 130 if outcome.status == "partial" else 1


def resume_command(options: "Options") -> str:
    """The command that resumes a run on the same nodes with the same settings; its workspace holds its parameters."""
    import shlex

    from lepaute.measure.experiment.options import DEFAULT_MONITOR_PERIOD_S
    from lepaute.measure.shipped import name_of_shipped

    script = name_of_shipped(options.script) if options.script is not None else None
    words = ["lepaute", "run", script or str(options.script), "--resume", "-o", str(options.archive)]
    if options.scheduler != default_scheduler(options.request.nodes):
        words.append(f"--scheduler={options.scheduler}")
    words += options.request.words()
    for option, value in (("--install", options.installation), ("--python", options.python)):
        if value is not None:
            words.append(f"{option}={value}")
    if options.monitor_period_s != DEFAULT_MONITOR_PERIOD_S:
        words.append(f"--monitor={options.monitor_period_s:g}")
    return shlex.join(words)
