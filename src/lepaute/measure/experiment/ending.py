"""How a run ends: its outcome is noted, the nodes are given back, and what was measured becomes an archive."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lepaute.archive.metadata import COMPLETE, FAILED, PARTIAL, Failure
from lepaute.errors import EnvironmentProblem, LepauteError
from lepaute.kit.json_values import from_json, to_json
from lepaute.measure.experiment.closing import archive_workspace, partial_name
from lepaute.measure.experiment.content import Content
from lepaute.measure.experiment.entries import CommandSeen
from lepaute.measure.experiment.options import Options
from lepaute.measure.experiment.record import Record, now
from lepaute.measure.experiment.script import line_in
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.nodes.results import CommandFailed

_TAIL_LINES = 12


class Run(Protocol):
    """The part of a job that its end needs."""

    options: Options
    record_of_run: Record

    @property
    def workspace(self) -> Workspace: ...

    @property
    def archive_content(self) -> Content: ...

    def release_machine(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """status: complete, failed, or partial (interrupted); failure: in one line, None where there is none.

    problem: what was raised
    """

    archive: Path
    status: str
    failure: str | None
    rows_done: int
    rows: int
    problem: BaseException | None = None

    @property
    def headline(self) -> str:
        """The archive, the status, and the rows that were measured."""
        rows = f", {self.rows_done} of {self.rows} rows of the design measured" if self.rows else ""
        return f"{self.archive}: {self.status}{rows}"

    def __str__(self) -> str:
        why = f": {' '.join(self.failure.split())}" if self.failure and self.status != COMPLETE else ""
        return self.headline + why


def failure_of(run: Run, phase: str, problem: BaseException) -> Failure:
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


def finish(run: Run, problem: BaseException | None) -> Outcome:
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


def _finished(run: Run, problem: BaseException | None) -> Outcome:
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
    return Outcome(target, state.status, failure, done, rows, problem)


def failure_text(failure: Failure) -> str:
    """The message, and before it the line of the script where it names one."""
    where = failure.where or ""
    return f"{where}: {failure.message}" if ":" in where else failure.message
