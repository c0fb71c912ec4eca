"""The life of a run: every step of its job in order, whatever happens in between, and an archive at the end; and the
campaigns of Lepaute itself, calibration or comparison: runs whose steps follow from a request, and show a bar."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from lepaute.errors import EnvironmentProblem, InputError, LibraryFailure
from lepaute.kit.files import check_output
from lepaute.kit.json_values import to_json
from lepaute.kit.numbers import of_type
from lepaute.measure.archive import Archive
from lepaute.measure.archive.metadata import Phase
from lepaute.measure.experiment.closing import Outcome, failure_of, finish, partial_name
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.options import Options, check_archive, new_name, options_from
from lepaute.measure.experiment.record import now
from lepaute.measure.experiment.workspace import Workspace, folder_of
from lepaute.measure.schedulers import Request


def execute(job: Job, resume: bool = False) -> Outcome:
    """Runs an experiment from the first step to the archive.

    Raises LepauteError if it could not begin (bad options, no nodes); nothing is left then. From setup() on every
    end is an Outcome, a failure and Ctrl-C too.
    """
    try:
        job.begin(resume)
    except BaseException:
        job.close()
        raise
    try:
        _phase(job, "acquire", job.acquire)
        _phase(job, "connect", job.connect)
        _phase(job, "prepare", job.prepare_machine)
    except BaseException as problem:
        if resume or job.workspace.done():
            return finish(job, problem)
        workspace = job.workspace
        job.close()
        workspace.remove()
        raise
    problem_seen: BaseException | None = None
    try:
        _phase(job, "setup", job.setup)
        _phase(job, "run", job.run)
    except BaseException as problem:  # noqa: BLE001 - Ctrl-C as well: it is archived and reported
        problem_seen = problem
    try:
        if job.nodes.channels:
            _phase(job, "teardown", job.teardown)
        if problem_seen is None and not resume and (unread := job.parameters.unread_text()):  # a design is drawn once
            job.record_of_run.warn(unread)
    except BaseException as problem:  # noqa: BLE001
        problem_seen = problem_seen or problem
    return finish(job, problem_seen)


def _phase(job: Job, name: str, step: Callable[[], None]) -> None:
    record, state = job.record_of_run, job.workspace.state
    record.phase = name
    phase = Phase(name, now(), None, "running")
    state.phases.append(phase)
    job.workspace.save()
    began_s = time.monotonic()
    status = "done"
    try:
        step()
    except BaseException as problem:
        status = "interrupted" if isinstance(problem, KeyboardInterrupt) else "failed"
        if status == "failed" and state.failure is None:
            state.failure = failure_of(job, name, problem)
        raise
    finally:
        state.phases[-1] = replace(phase, duration_s=time.monotonic() - began_s, status=status)
        job.workspace.save()


def run(
    job_class: type[Job],
    archive: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    **settings: Any,
) -> Archive:
    """Runs an experiment, setup to teardown, and opens its archive: `lepaute run` for a class of a notebook.

    archive  : the file to write; EXPERIMENT-DATE.zip unless given
    resume   : go on with the interrupted run of that archive, after its last complete row
    force    : replace an archive of that name, and what a failed run has left beside it
    settings : seed, parameters, control, nodes, scheduler, ...: the settings of `Job`
    What fails is raised once it is archived, as NAME.partial.zip; Ctrl-C (interrupting the kernel) too.
    """
    of_type(job_class, "the experiment", type, "a class derived from lepaute.Job")
    target = Path(archive) if archive is not None else new_name(job_class.__name__.lower())
    check_archive(target, force=force)
    if force and not resume and folder_of(target).is_dir():
        Workspace.reopen(folder_of(target)).remove()
    job = job_class(options_from(job_class.__name__, {**settings, "archive": target}, force=force))
    outcome = execute(job, resume=resume)
    job.record_of_run.tell(outcome.headline)
    if outcome.problem is not None:
        outcome.problem.add_note(
            f"what was measured until then is in {partial_name(target)}; go on with lp.run(..., resume=True), or "
            "begin anew with force=True"
        )
        raise outcome.problem
    return Archive.open(outcome.archive)


#: Called with what is being done and the share of the work that is done, from 0 to 1.
Progress = Callable[[str, float], None]
_MAX_SHOWN = 80


#: Called once with how long the measurements will take, in seconds, and what they are.
Announce = Callable[[float, str], None]


def silent(_message: str, _share: float) -> None:
    """Progress that is not shown."""


def ignore_announcement(_wall_s: float, _what: str) -> None:
    """An `Announce` that does nothing."""


class Campaign(Job):
    """A job without a script. What differs: its request, `archive_content`, `prepare_machine` and `run`.

    Blocks have the same measurements, which are the reference: none runs in between.
    """

    monitor_period_s: ClassVar[float | None] = 5.0
    reference_period_s: ClassVar[float | None] = 0.0

    def __init__(self, options: Options, tell: Progress) -> None:
        super().__init__(options, say=lambda _line: None)  # the log is in the archive
        self.tell = tell
        self.announce: Announce = ignore_announcement

    def warn(self, text: str) -> None:
        self.record_of_run.warn(text)

    def to_the_end(self, *, resume: bool) -> Path:
        """Runs the campaign; the path of its archive.

        Raises EnvironmentProblem if it failed, KeyboardInterrupt if it was stopped, with a note on the partial archive.
        """
        outcome = execute(self, resume)
        if outcome.status in ("complete", "incomplete"):
            self.tell("done", 1.0)
            return outcome.archive
        type_of = LibraryFailure if isinstance(outcome.problem, LibraryFailure) else EnvironmentProblem
        problem = type_of(outcome.failure) if outcome.status == "failed" else KeyboardInterrupt()
        partial = partial_name(self.options.archive)
        problem.add_note(f"what was measured until then is in {partial}; resume with --resume")
        raise problem


def campaign_options(
    archive: str | Path, seed: int, scheduler: str = "local", request: Request | None = None, python: str | None = None
) -> Options:
    """The options of a campaign; raises InputError if its archive cannot be written."""
    check_output(Path(archive))
    return Options(
        archive=Path(archive),
        scheduler=scheduler,
        request=request or Request(),
        seed=seed,
        python=python,
        system_root=os.environ.get("LEPAUTE_SYSTEM_ROOT", "/"),
    )


def check_begun_with(what: str, begun: object, given: object) -> None:
    """Raises InputError, one line, where a campaign that goes on was begun with something else.

    what: the campaign; begun, given: values by name, such as that of an option, or requests that have them
    """
    known, values = (
        each if isinstance(each, Mapping) else {name.replace("_", " "): value for name, value in to_json(each).items()}
        for each in (begun, given)
    )
    for name, value in values.items():
        if (before := known.get(name, value)) != value:
            raise InputError(
                f"the {what} was begun with other {name} ({_shown(before)}, now {_shown(value)}); resume it as it was "
                "begun"
            )


def _shown(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return (text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}...") or "none"
