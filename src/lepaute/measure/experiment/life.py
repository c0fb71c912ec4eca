"""The life of a run: every step in its order, whatever happens in between, and an archive at the end."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.archive import Archive
from lepaute.archive.metadata import COMPLETE, FAILED, PARTIAL, DesignProgress, Failure, Phase
from lepaute.errors import EnvironmentProblem, LepauteError
from lepaute.kit.json_values import from_json, to_json
from lepaute.kit.later import later
from lepaute.kit.node_sets import folded
from lepaute.kit.numbers import of_type
from lepaute.kit.python_files import line_in
from lepaute.measure.experiment.closing import archive_workspace, partial_name
from lepaute.measure.experiment.entries import CommandSeen
from lepaute.measure.experiment.options import check_archive, new_name, options_from
from lepaute.measure.experiment.record import now
from lepaute.measure.experiment.workspace import Workspace, folder_of
from lepaute.measure.nodes.results import CommandFailed

if TYPE_CHECKING:
    from lepaute.measure.experiment import job as jobs
else:
    jobs = later("lepaute.measure.experiment.job")

_TAIL_LINES = 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """status: complete, incomplete (without the nodes that are lost), failed, or partial (interrupted); failure: in
    one line, None where there is none.

    problem: what was raised
    """

    archive: Path
    status: str
    failure: str | None
    rows_done: int
    rows: int
    problem: BaseException | None = None
    lost: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What JSON is made of: how it ended, and where."""
        return {
            "archive": str(self.archive),
            "status": self.status,
            "failure": self.failure,
            "lost": list(self.lost),
            "rows_done": self.rows_done,
            "rows": self.rows,
        }

    @property
    def headline(self) -> str:
        """The archive, the status, and the rows that were measured."""
        measured = DesignProgress(self.rows, self.rows_done).text
        lost = f", {folded(self.lost)} lost" if self.lost else ""
        return f"{self.archive}: {self.status}{measured and f', {measured}'}{lost}"


def failure_of(run: "jobs.Job", phase: str, problem: BaseException) -> Failure:
    """What an archive says of a failure: enough to know why without reading anything else."""
    script = run.options.script
    failure = Failure(
        phase=phase,
        type=type(problem).__name__,
        message=str(problem) if isinstance(problem, LepauteError) else f"{type(problem).__name__}: {problem}",
        where=f"{script.name}{line_in(problem, script)}" if script is not None else None,
    )
    if isinstance(problem, CommandFailed):
        result = problem.result
        failed = CommandSeen(result.node, result.start, result.returncode)
        numbers = [number for number, each in enumerate(run.workspace.noted(CommandSeen)) if each == failed]
        output = result.stderr.strip() or result.stdout.strip()
        failure = replace(
            failure,
            node=result.node,
            command=numbers[-1] if numbers else None,
            argv=tuple(run.record_of_run.clean_argv(result.argv)),
            returncode=result.returncode,
            stderr_tail="\n".join(output.splitlines()[-_TAIL_LINES:]),
        )
    return from_json(Failure, run.record_of_run.clean(to_json(failure)))


def finish(run: "jobs.Job", problem: BaseException | None) -> Outcome:
    """Stops monitoring, gives the nodes back, and archives what was measured.

    A complete run leaves NAME.zip and nothing else; any other leaves NAME.partial.zip, and its workspace, from which it
    can be resumed. Raises EnvironmentProblem where the archive cannot be written: everything is in the workspace then.
    """
    workspace = run.workspace
    try:
        return _finished(run, problem)
    except OSError as trouble:
        raise EnvironmentProblem(
            f"{trouble.filename or run.options.archive}: cannot be written ({trouble.strerror}); what was measured is "
            f"in {workspace.folder}: make room, then lepaute archive close {workspace.folder}"
        ) from problem
    except KeyboardInterrupt:
        folder = workspace.folder
        run.record_of_run.log(f"interrupted while archiving; what was measured is in {folder}: archive close {folder}")
        raise
    finally:
        run.close()


def _finished(run: "jobs.Job", problem: BaseException | None) -> Outcome:
    workspace, record = run.workspace, run.record_of_run
    phase, record.phase = record.phase, "end"
    run.release_machine()
    state = workspace.state
    if problem is None:
        state.status = COMPLETE
    elif isinstance(problem, KeyboardInterrupt):
        state.status = PARTIAL
        record.warn(f"interrupted in phase {phase}: this archive holds what was measured until then")
    else:
        state.status = FAILED
        state.failure = state.failure or failure_of(run, phase, problem)
    state.sessions[-1] = replace(state.sessions[-1], end=now(), status=state.status)
    workspace.save()
    record.log(f"archiving ({state.status})")
    target = run.options.archive if state.status == COMPLETE else partial_name(run.options.archive)
    done, rows = workspace.measured()
    archive_workspace(workspace, target, run.archive_content)
    if state.status == COMPLETE:
        run.close()
        workspace.remove()
        partial_name(run.options.archive).unlink(missing_ok=True)
    failure = failure_text(state.failure) if state.failure else None
    lost = tuple(dict.fromkeys(each.node for each in state.lost_nodes))
    status = "incomplete" if lost and state.status == COMPLETE else state.status
    return Outcome(target, status, failure, done, rows, problem, lost)


def failure_text(failure: Failure) -> str:
    """The message, and before it the line of the script where it names one."""
    where = failure.where or ""
    return f"{where}: {failure.message}" if ":" in where else failure.message


def execute(job: "jobs.Job", resume: bool = False) -> Outcome:
    """Runs an experiment from the first step to the archive.

    Raises LepauteError where it could not begin (bad options, no nodes); nothing is left then. From setup() on every
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


def _phase(job: "jobs.Job", name: str, step: Callable[[], None]) -> None:
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
    job_class: "type[jobs.Job]",
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
        with suppress(AttributeError):  # of an exception that has no notes
            outcome.problem.add_note(
                f"what was measured until then is in {partial_name(target)}; go on with lp.run(..., resume=True), or "
                "begin anew with force=True"
            )
        raise outcome.problem
    return Archive.open(outcome.archive)
