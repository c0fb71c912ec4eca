"""`lepaute run`: an experiment, from a script to an archive."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli import node_options as on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lepaute.measure.experiment.ending import Outcome
    from lepaute.measure.experiment.job import Job
    from lepaute.measure.experiment.options import Options


def command(
    script: Annotated[
        Path,
        typer.Argument(
            metavar="EXPERIMENT.py", help="A script with one subclass of lepaute.Job, or memory: the memory hierarchy."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Archive to write; EXPERIMENT-DATE.zip unless given.")
    ] = None,
    nodes: on.NodeSet = None,
    scheduler: on.SchedulerName = None,
    count: on.Count = None,
    walltime: on.Walltime = None,
    queue: on.Queue = None,
    account: on.Account = None,
    constraint: on.Constraint = None,
    job: on.JobNumber = None,
    site: on.Site = None,
    cluster: on.Cluster = None,
    image: on.Image = None,
    ssh_config: on.SshConfig = None,
    python: on.PythonThere = None,
    install: Annotated[Path | None, typer.Option("--install", help="Installation file: settings in YAML.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the experiment, NAME=VALUE.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the design and of all that is drawn.", min=0)] = 1,
    monitor: Annotated[float | None, typer.Option(help="Seconds between samples of the monitor; 0 for none.")] = None,
    class_name: Annotated[
        str | None, typer.Option("--class", help="The experiment, where the script has several.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that did not end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would happen, and do none of it.")] = False,
    keep_folders: Annotated[
        bool, typer.Option("--keep-folders", help="Leave the working folders on the nodes.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on the way, only the end.")] = False,
) -> int:
    """Runs an experiment and writes its archive: measurements, commands, environment, settings, monitoring.

    Exit status 1: the experiment failed, or was interrupted with rows left; its archive says why.
    """
    import signal

    from lepaute.kit.quantities import settings_of
    from lepaute.measure.experiment.loader import load_job_class, made_job
    from lepaute.measure.experiment.options import options_of
    from lepaute.measure.shipped import shipped_experiments

    # A batch system ends a job with SIGTERM: the nodes must be given back then too, and what was measured be kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not script.is_file():
        script = shipped_experiments().get(str(script), script)
    job_class = load_job_class(script, class_name)
    request = on.request_of(
        nodes=nodes,
        count=count,
        walltime=walltime,
        queue=queue,
        account=account,
        constraint=constraint,
        job=job,
        site=site,
        cluster=cluster,
        image=image,
        ssh_config=ssh_config,
    )
    options = options_of(
        script=script,
        archive=output,
        scheduler=on.scheduler_of(scheduler, nodes),
        request=request,
        seed=seed,
        installation=install,
        parameters=settings_of(parameter or []),
        monitor_period_s=monitor,
        python=python,
        keep_folders=keep_folders,
        resume=resume,
    )
    if dry_run:
        from lepaute.measure.experiment.dry_run import told_plan

        for line in told_plan(job_class, options):
            print(line)
        return 0
    from lepaute.measure.experiment.life import execute

    experiment = made_job(job_class, options)
    with shown(experiment, quiet):
        outcome = execute(experiment, resume=resume)
    return tell(outcome, options)


@contextmanager
def shown(job: "Job", quiet: bool) -> "Iterator[None]":
    """What happens, on standard error: lines of the log, or on a terminal a bar with the latest of them."""
    import sys

    from lepaute.cli.progress import progress_bar

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


def tell(outcome: "Outcome", options: "Options") -> int:
    """Says how it ended; the exit status."""
    import sys

    rows = f", {outcome.rows_done} of {outcome.rows} rows of the design measured" if outcome.rows else ""
    if outcome.status == "complete":
        print(f"{outcome.archive}: complete{rows}")
        return 0
    failure = " ".join((outcome.failure or "").split())
    why = f": {failure}" if failure else ""
    print(f"{outcome.archive}: {outcome.status}{rows}{why}")
    print(f"lepaute: {failure or 'interrupted'}; go on with: {again(options)}", file=sys.stderr)
    return 130 if outcome.status == "partial" else 1


def again(options: "Options") -> str:
    """The command that goes on with a run, on the same nodes and with the same settings; its parameters it knows."""
    import shlex

    from lepaute.measure.experiment.options import DEFAULT_MONITOR_PERIOD_S

    words = ["lepaute", "run", str(options.script), "--resume", "-o", str(options.archive)]
    if options.scheduler not in ("local", "ssh"):  # these follow from the nodes
        words.append(f"--scheduler={options.scheduler}")
    words += options.request.words()
    for option, value in (("--install", options.installation), ("--python", options.python)):
        if value is not None:
            words.append(f"{option}={value}")
    if options.monitor_period_s != DEFAULT_MONITOR_PERIOD_S:
        words.append(f"--monitor={options.monitor_period_s:g}")
    return shlex.join(words)
