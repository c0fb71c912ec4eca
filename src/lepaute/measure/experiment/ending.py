"""How a run ends: what became of it is said, the nodes go back, and what there is becomes an archive."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lepaute.errors import EnvironmentProblem, LepauteError
from lepaute.measure.experiment.closing import archive_workspace, partial_name
from lepaute.measure.experiment.options import Options
from lepaute.measure.experiment.record import Record, now
from lepaute.measure.experiment.script import line_in
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.nodes.results import CommandFailed

_TAIL_LINES = 12


class Run(Protocol):
    """What is ended: a job, as far as its end is concerned."""

    options: Options
    record_of_run: Record

    @property
    def workspace(self) -> Workspace: ...

    def release_machine(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """status: complete, failed, or partial (interrupted); failure: in one line, None where there is none."""

    archive: Path
    status: str
    failure: str | None
    rows_done: int
    rows: int


def failure_of(run: Run, phase: str, problem: BaseException) -> dict[str, Any]:
    """What an archive says of a failure: enough to know why without reading anything else."""
    script = run.options.script
    message = str(problem) if isinstance(problem, LepauteError) else f"{type(problem).__name__}: {problem}"
    failure: dict[str, Any] = {
        "phase": phase,
        "type": type(problem).__name__,
        "message": message,
        "node": None,
        "command": None,
        "where": f"{script.name}{line_in(problem, script)}" if script is not None else None,
        "stderr_tail": "",
    }
    if isinstance(problem, CommandFailed):
        result = problem.result
        commands = run.workspace.entries("commands")
        numbers = [
            number
            for number, entry in enumerate(commands)
            if entry["node"] == result.node
            and entry["start"] == result.start
            and entry["returncode"] == result.returncode
        ]
        failure["node"] = result.node
        failure["command"] = numbers[-1] if numbers else None
        failure["argv"] = run.record_of_run.clean_argv(result.argv)
        failure["returncode"] = result.returncode
        failure["stderr_tail"] = "\n".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-_TAIL_LINES:])
    return dict(run.record_of_run.clean(failure))


def finish(run: Run, problem: BaseException | None) -> Outcome:
    """Ends the watching, gives the nodes back, and archives what there is.

    A run that ended well leaves NAME.zip and nothing else. Another leaves NAME.partial.zip, and its workspace, from
    which it can go on. Raises EnvironmentProblem where the archive cannot be written: the workspace has it all then.
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
        status = "complete"
    elif isinstance(problem, KeyboardInterrupt):
        status = "partial"
        record.warn(f"interrupted in phase {phase}: this archive holds what was measured until then")
    else:
        status = "failed"
        state.setdefault("failure", failure_of(run, phase, problem))
    state["status"] = status
    state["sessions"][-1].update({"end": now(), "status": status})
    workspace.save()
    record.log(f"archiving ({status})")
    target = run.options.archive if status == "complete" else partial_name(run.options.archive)
    done, rows = workspace.measured()
    archive_workspace(workspace, target)
    if status == "complete":
        run.close()
        workspace.remove()
        partial_name(run.options.archive).unlink(missing_ok=True)
    failure = state.get("failure")
    return Outcome(target, status, told_failure(failure) if failure else None, done, rows)


def told_failure(failure: Mapping[str, Any]) -> str:
    """In one line: the message, and before it the line of the script where it names one."""
    where = failure.get("where") or ""
    return f"{where}: {failure['message']}" if ":" in where else str(failure["message"])
