"""The whole life of a run: every step in its order, whatever happens in between, and an archive at the end."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lepaute.errors import EnvironmentProblem, LepauteError
from lepaute.measure.experiment.closing import archive_workspace, partial_name
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.loader import line_in
from lepaute.measure.experiment.record import now
from lepaute.measure.nodes.results import CommandFailed

_TAIL_LINES = 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """status: complete, failed, or partial (interrupted); failure: in one line, None where there is none."""

    archive: Path
    status: str
    failure: str | None
    rows_done: int
    rows: int


def execute(job: Job, resume: bool = False) -> Outcome:
    """Runs an experiment from the first step to the archive.

    Raises LepauteError where it could not begin (bad options, no nodes); nothing is left then. From setup() on every
    end is an Outcome: also a failure, and Ctrl-C.
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
        if resume or job.workspace.entries("done"):
            return finish(job, problem)
        workspace = job.workspace
        job.close()
        workspace.remove()
        raise
    problem_seen: BaseException | None = None
    try:
        _phase(job, "setup", job.setup)
        _phase(job, "run", job.run)
    except BaseException as problem:  # noqa: BLE001 - Ctrl-C as well: it is archived, and told
        problem_seen = problem
    try:
        if job.nodes.channels:
            _phase(job, "teardown", job.teardown)
    except BaseException as problem:  # noqa: BLE001
        problem_seen = problem_seen or problem
    return finish(job, problem_seen)


def _phase(job: Job, name: str, step: Callable[[], None]) -> None:
    record, state = job.record_of_run, job.workspace.state
    record.phase = name
    entry: dict[str, Any] = {"name": name, "start": now(), "duration_s": None, "status": "running"}
    state["phases"].append(entry)
    job.workspace.save()
    began_s = time.monotonic()
    try:
        step()
    except BaseException as problem:
        entry["status"] = "interrupted" if isinstance(problem, KeyboardInterrupt) else "failed"
        if not isinstance(problem, KeyboardInterrupt) and "failure" not in state:
            state["failure"] = failure_of(job, name, problem)
        raise
    else:
        entry["status"] = "done"
    finally:
        entry["duration_s"] = time.monotonic() - began_s
        job.workspace.save()


def failure_of(job: Job, phase: str, problem: BaseException) -> dict[str, Any]:
    """What an archive says of a failure: enough to know why without reading anything else."""
    script = job.options.script
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
        commands = job.workspace.entries("commands")
        numbers = [
            number
            for number, entry in enumerate(commands)
            if entry["node"] == result.node
            and entry["start"] == result.start
            and entry["returncode"] == result.returncode
        ]
        failure["node"] = result.node
        failure["command"] = numbers[-1] if numbers else None
        failure["argv"] = job.record_of_run.clean_argv(result.argv)
        failure["returncode"] = result.returncode
        failure["stderr_tail"] = "\n".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-_TAIL_LINES:])
    return dict(job.record_of_run.clean(failure))


def finish(job: Job, problem: BaseException | None) -> Outcome:
    """Ends the watching, gives the nodes back, and archives what there is.

    A run that ended well leaves NAME.zip and nothing else. Another leaves NAME.partial.zip, and its workspace, from
    which it can go on. Raises EnvironmentProblem where the archive cannot be written: the workspace has it all then.
    """
    workspace = job.workspace
    try:
        return _finished(job, problem)
    except OSError as trouble:
        raise EnvironmentProblem(
            f"{trouble.filename or job.options.archive}: cannot be written ({trouble.strerror}); what was measured is "
            f"in {workspace.folder}: make room, then lepaute archive close {workspace.folder}"
        ) from problem
    except KeyboardInterrupt:
        folder = workspace.folder
        job.record_of_run.log(f"interrupted while archiving; what was measured is in {folder}: archive close {folder}")
        raise
    finally:
        job.close()


def _finished(job: Job, problem: BaseException | None) -> Outcome:
    workspace, record = job.workspace, job.record_of_run
    phase, record.phase = record.phase, "end"
    job.release_machine()
    state = workspace.state
    if problem is None:
        status = "complete"
    elif isinstance(problem, KeyboardInterrupt):
        status = "partial"
        record.warn(f"interrupted in phase {phase}: this archive holds what was measured until then")
    else:
        status = "failed"
        state.setdefault("failure", failure_of(job, phase, problem))
    state["status"] = status
    state["sessions"][-1].update({"end": now(), "status": status})
    workspace.save()
    record.log(f"archiving ({status})")
    target = job.options.archive if status == "complete" else partial_name(job.options.archive)
    done, rows = workspace.measured()
    archive_workspace(workspace, target)
    if status == "complete":
        job.close()
        workspace.remove()
        partial_name(job.options.archive).unlink(missing_ok=True)
    failure = state.get("failure")
    return Outcome(target, status, told_failure(failure) if failure else None, done, rows)


def told_failure(failure: Mapping[str, Any]) -> str:
    """In one line: the message, and before it the line of the script where it names one."""
    where = failure.get("where") or ""
    return f"{where}: {failure['message']}" if ":" in where else str(failure["message"])
