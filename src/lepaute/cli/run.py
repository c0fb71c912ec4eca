"""`lepaute run`: an experiment, from a script to an archive."""

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lepaute.cli.options import FORCE_HELP, argument, option
from lepaute.cli.terminal import BAR_AFTER_S, MIN_SPENT_S, announce, json_text, note, progress_bar, say
from lepaute.errors import InputError
from lepaute.kit.node_sets import folded
from lepaute.kit.options import option_field
from lepaute.kit.python_files import Program
from lepaute.kit.quantities import settings_of
from lepaute.kit.text import counted
from lepaute.measure.node_test_workloads import parameters_of
from lepaute.measure.schedulers import SCHEDULERS, Request, default_scheduler
from lepaute.measure.shipped import name_of_shipped, shipped_experiments
from lepaute.simulate.tasks import WORTH_TELLING_S

if TYPE_CHECKING:
    from lepaute.measure.experiment.closing import Outcome
    from lepaute.measure.experiment.job import Job
    from lepaute.measure.experiment.options import Options

#: Options of all commands that measure on nodes, besides a Request.
SchedulerName = Annotated[
    str | None, option(f"One of {', '.join(SCHEDULERS)}; default: ssh with --nodes, else local.", "--scheduler")
]
PythonOnNodes = Annotated[str | None, option("Python 3.9 or newer on the nodes.", "--python")]


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is run."""

    install: Path | None = option_field(None, "Installation file: settings in YAML.")
    parameter: list[str] | None = option_field(None, "A parameter of the experiment, NAME=VALUE.", name="set")
    workload: list[str] | None = option_field(
        None, "Of node-test: NAME=COMMAND, run in the shell of each node besides its own workloads."
    )
    workload_pattern: list[str] | None = option_field(
        None, "NAME=REGEX: named groups match the figures that the workload prints; else its duration is its figure."
    )
    seed: int = option_field(1, "Of the design and of everything random.", minimum=0)
    monitor: float | None = option_field(None, "Seconds between samples of the monitor; 0 for none.")
    class_name: str | None = option_field(None, "The experiment, where the script has several.", name="class")
    resume: bool = option_field(False, "Resume an interrupted run.")
    force: bool = option_field(False, FORCE_HELP)
    dry_run: bool = option_field(False, "Print what would be done, and do nothing.")
    keep_folders: bool = option_field(False, "Do not delete the working folders on the nodes.")
    quiet: bool = option_field(False, "Print only how it ended.", also=("-q",))
    as_json: bool = option_field(False, "One JSON object on standard output: how it ended.", name="json")


def command(
    script: Annotated[
        Path,
        argument(
            "EXPERIMENT.py",
            "A script with one subclass of lepaute.Job; node-test, for lepaute watch; or memory: its hierarchy.",
        ),
    ],
    request: Request,
    run: RunOptions,
    output: Annotated[Path | None, option("Archive; default: EXPERIMENT-DATE.zip.", "--output", "-o")] = None,
    scheduler: SchedulerName = None,
    python: PythonOnNodes = None,
) -> int:
    """Runs an experiment and writes its archive: measurements, commands, environment, settings, monitoring.

    Exit status 1: the experiment failed or lost a node; its archive says why. 130: it was interrupted.
    """
    from lepaute.measure.experiment.options import options_of
    from lepaute.measure.experiment.script import load_job_class, made_job, planned_steps

    if run.as_json:
        Program.divert_prints()
    if not script.is_file():
        # An archive names the script of an experiment, memory.py, in the command that resumes it.
        script = shipped_experiments().get(str(script).removesuffix(".py").replace("_", "-"), script)
    job_class = load_job_class(script, run.class_name)
    parameters = settings_of(run.parameter or [])
    if run.workload or run.workload_pattern:
        parameters |= workload_parameters(name_of_shipped(script), run.workload, run.workload_pattern)
    options = options_of(
        script=script,
        archive=output,
        scheduler=default_scheduler(request.nodes) if scheduler is None else scheduler,
        request=request,
        seed=run.seed,
        installation=run.install,
        parameters=parameters,
        monitor_period_s=run.monitor,
        python=python,
        keep_folders=run.keep_folders,
        resume=run.resume,
        force=run.force,
    )
    if run.dry_run:
        if run.resume:
            raise InputError("--dry-run shows a run from its beginning; leave out --resume")
        steps = planned_steps(job_class, options)
        if run.as_json:
            print(json_text({"archive": str(options.archive), "dry_run": True, "steps": steps}))
            return 0
        headline = f"{options.archive}: dry run: {counted(len(steps), 'step')}, nothing was done"
        say("\n".join([headline] if run.quiet else [headline, *steps]))
        return 0
    from lepaute.measure.experiment.life import execute

    experiment = made_job(job_class, options)
    with _progress_of(experiment, run.quiet):
        outcome = execute(experiment, resume=run.resume)
    return _print_outcome(outcome, options, as_json=run.as_json)


def workload_parameters(
    experiment: str | None, commands: Sequence[str] | None, patterns: Sequence[str] | None
) -> dict[str, str]:
    """What --workload and --workload-pattern are as parameters; raises InputError where they do not fit."""
    if experiment != "node-test":
        raise InputError("--workload and --workload-pattern go with node-test; an experiment runs commands of its own")
    return parameters_of(commands or (), patterns or ())


@contextmanager
def _progress_of(job: "Job", quiet: bool) -> "Iterator[None]":
    """Shows the log on standard error while a job runs, and on a terminal a bar with its latest line, in a file a line
    a minute; once the first rows of the design tell how long all will take, that is announced."""
    if quiet:
        job.say = lambda _line: None
        yield
        return
    share, latest, before, planned, began_s, announced = 0.0, "", -1, 0, 0.0, False
    with progress_bar(BAR_AFTER_S) as bar:

        def say(line: str) -> None:
            nonlocal latest
            latest = line[:60]
            if sys.stderr.isatty():
                bar(latest, share)
            else:
                note(line)

        def on_row(rows: int) -> None:
            nonlocal share, before, planned, began_s, announced
            now_s = time.monotonic()
            if before < 0:
                done, planned = job.workspace.measured()
                before, began_s = done - rows, now_s
            share = min(1.0, (before + rows) / planned) if planned else 0.0
            spent_s = now_s - began_s
            if not announced and rows > 1 and spent_s >= MIN_SPENT_S and planned:
                to_come = planned - before - rows
                announced = True
                if (to_come_s := spent_s * to_come / (rows - 1)) > WORTH_TELLING_S:
                    announce(to_come_s, f"{counted(to_come, 'row')} of {planned}, by the first ones")
            bar(latest if sys.stderr.isatty() else f"{before + rows} of {counted(planned, 'row')} measured", share)

        job.say, job.on_row = say, on_row
        yield


def _print_outcome(outcome: "Outcome", options: "Options", *, as_json: bool = False) -> int:
    # Why it failed is on standard error, once.
    print(json_text(outcome.to_dict()) if as_json else outcome.headline)
    if outcome.status == "complete":
        return 0
    if outcome.status == "incomplete":
        note(f"lepaute: {folded(outcome.lost)} lost: without what is measured there; the archive says why")
        return 1
    failure = " ".join((outcome.failure or "").split())
    note(f"lepaute: {failure or 'interrupted'}; resume with: {resume_command(options)}")
    return 130 if outcome.status == "partial" else 1


def resume_command(options: "Options") -> str:
    """The command that resumes a run on the same nodes with the same settings; its workspace holds its parameters."""
    from lepaute.measure.experiment.options import DEFAULT_MONITOR_PERIOD_S

    script = name_of_shipped(options.script) if options.script is not None else None
    words = ["lepaute", "run", script or str(options.script), "--resume", "-o", str(options.archive)]
    if options.scheduler != default_scheduler(options.request.nodes):
        words.append(f"--scheduler={options.scheduler}")
    words += options.request.words()
    for name, value in (("--install", options.installation), ("--python", options.python)):
        if value is not None:
            words.append(f"{name}={value}")
    if options.monitor_period_s != DEFAULT_MONITOR_PERIOD_S:
        words.append(f"--monitor={options.monitor_period_s:g}")
    return shlex.join(words)
