"""The life of a run: every step in its order, whatever happens in between, and an archive at the end."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lepaute.archive.metadata import Phase
from lepaute.errors import EnvironmentProblem
from lepaute.measure.experiment.closing import partial_name
from lepaute.measure.experiment.ending import Outcome, failure_of, finish
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.record import now

#: Called with what is being done and the share of the work that is done, from 0 to 1.
Progress = Callable[[str, float], None]


def silent(_message: str, _share: float) -> None:
    """Progress that is not shown."""


def run_campaign(job: Job, tell: Progress, *, resume: bool) -> Path:
    """Runs a campaign to its end; the path of its archive.

    Raises EnvironmentProblem where it failed, KeyboardInterrupt where it was stopped; a note names the partial archive.
    """
    outcome = execute(job, resume)
    if outcome.status == "complete":
        tell("done", 1.0)
        return outcome.archive
    problem = EnvironmentProblem(outcome.failure) if outcome.status == "failed" else KeyboardInterrupt()
    problem.add_note(f"what was measured until then is in {partial_name(job.options.archive)}; resume with --resume")
    raise problem


def execute(job: Job, resume: bool = False) -> Outcome:
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
    except BaseException as problem:  # noqa: BLE001 - Ctrl-C as well: it is archived and reported
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
