"""Nodes of Slurm: those of the job that we are in, of a job that is named, or of one that is asked for here.

A submitted job lives as long as `salloc` does, which holds it for a `cat` that reads from us: it ends when we release
it, and also when we are killed. Programs are started by `srun`, a step for each; steps share the nodes.
"""

import contextlib
import os
import re
import secrets
import shlex
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.node_sets import check_node_name, fold_node_set
from lepaute.kit.sessions import kill_session
from lepaute.measure.schedulers.request import USED_IN_A_JOB, Request, check_word, warn_of_unused
from lepaute.measure.schedulers.types import (
    Allocation,
    Given,
    NodeAddress,
    Plan,
    RankLaunch,
    Scheduler,
    Tell,
    clock_time,
)
from lepaute.measure.switches import Switches, switches_of_slurm

_ANSWER_S = 60.0
_GRACE_S = 10.0
_POLL_S = 1.0
_JOB_ID = re.compile(r"[0-9]{1,12}([_+][0-9]{1,12})?")
_GRANTED = re.compile(r"Granted job allocation ([0-9]+)")
_PENDING = re.compile(r"Pending job allocation ([0-9]+)")


class SlurmScheduler(Scheduler):
    """Uses the job of `job` or SLURM_JOB_ID and leaves it alone afterwards; without either submits one."""

    supports = ("nodes", "count", "walltime_s", "queue", "account", "properties", "job")

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        job = _existing_job(request)
        return _submit(request, tell) if job is None else _use(job, request, tell)

    def plan(self, request: Request) -> Plan:
        job = _existing_job(request)
        if job is not None:
            nodes = request.nodes or (f"{request.count} nodes" if request.count else "all nodes")
            return Plan((f"use {nodes} of the existing job {job}", shlex.join(_srun(job, "NODE"))))
        return Plan((shlex.join(_salloc(request, "lepaute-NUMBER")), shlex.join(_srun("JOB", "NODE")), "scancel JOB"))

    def switches(self) -> Switches:
        """Those of topology.conf; none where the administrators wrote none."""
        try:
            return switches_of_slurm(_answer(["scontrol", "show", "topology"], "the switches of Slurm"))
        except EnvironmentProblem:
            return Switches()

    def rank_launch(self, request: Request) -> RankLaunch:  # noqa: ARG002 - the same for all
        return RankLaunch("srun")


@dataclass(slots=True)
class _SlurmJob:
    """A job that was submitted here."""

    job: str
    holder: "subprocess.Popen[str]"
    nodes: tuple[NodeAddress, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    _released: bool = False

    def release(self) -> None:
        if not self._released:
            self._released = True
            _end(self.holder, self.job, "")


def _existing_job(request: Request) -> str | None:
    job = request.job or os.environ.get("SLURM_JOB_ID")
    if job is not None and not _JOB_ID.fullmatch(job):
        raise InputError(f"{job[:40]!r} is not a Slurm job id")
    if request.job is not None:
        request.refuse_all_but(USED_IN_A_JOB, "slurm with --job")
    request.refuse_all_but(SlurmScheduler.supports, "slurm")
    return job


def _use(job: str, request: Request, tell: Tell) -> Allocation:
    warn_of_unused(request, f"Slurm job {job}", tell)  # the script that submits a job runs inside one as well
    names = request.choose(_job_nodes(job), job, request.node_names())
    tell(f"using {fold_node_set(names)} of Slurm job {job}")
    return Given(_addresses(job, names), {"scheduler": "slurm", "job": job, "submitted": False})


def _submit(request: Request, tell: Tell) -> Allocation:
    """Asks for a job and waits for it. However the wait ends, a job that is not returned is cancelled."""
    name = f"lepaute-{secrets.token_hex(6)}"
    argv = _salloc(request, name)
    try:
        # A session of its own: a Ctrl-C of the terminal's comes to us alone, and we end salloc.
        holder = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as problem:
        raise EnvironmentProblem(f"salloc cannot be started: {problem.strerror}; is Slurm installed here?") from None
    job: str | None = None
    try:
        job = _wait_until_granted(holder, tell)
        names = _job_nodes(job)
        tell(f"Slurm job {job} has {fold_node_set(names)}")
        facts = {"scheduler": "slurm", "job": job, "submitted": True, "argv": argv, "nodes": list(names)}
        return _SlurmJob(job, holder, _addresses(job, names), facts)
    except BaseException:
        _end(holder, job, name)
        raise


def _wait_until_granted(holder: "subprocess.Popen[str]", tell: Tell) -> str:
    assert holder.stderr is not None
    messages = []
    for line in holder.stderr:
        messages.append(line.strip())
        granted, pending = _GRANTED.search(line), _PENDING.search(line)
        if granted:
            return granted[1]
        if pending:
            tell(f"Slurm job {pending[1]} is waiting for nodes")
        elif "job allocation" not in line and line.strip():
            tell(line.strip())  # why it may wait for long: "Requested partition configuration not available now"
    raise EnvironmentProblem(f"Slurm granted no nodes: {' | '.join(messages[-3:])[:600] or 'salloc printed nothing'}")


def _end(holder: "subprocess.Popen[str]", job: str | None, name: str) -> None:
    """Ends salloc and the job that it holds, or waits for where it has no number; also when a Ctrl-C comes in between.

    The job is not cancelled while salloc ends of itself: salloc 22.05 may spin for ever when both come at once.
    """
    try:
        for stream in (holder.stdin, holder.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()  # `cat` ends, and with it salloc and the job
        if job is None:
            holder.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            holder.wait(_GRACE_S)
    finally:
        kill_session(holder.pid)
        holder.wait()
        # A job that has ended already is no failure, and any other failure could not be handled here.
        with contextlib.suppress(EnvironmentProblem):
            which = f"--name={name}" if job is None else job
            run_command(["scancel", "--quiet", which], what="scancel", timeout_s=_ANSWER_S)


def _salloc(request: Request, name: str) -> list[str]:
    """Whole nodes, with all their memory: what is measured on a shared node is its neighbours."""
    names = request.node_names()
    options = {
        "--partition": ("queue", request.queue),
        "--account": ("account", request.account),
        "--constraint": ("properties", request.properties),
    }
    return [
        "salloc",
        f"--job-name={name}",
        f"--nodes={request.size(names)}",
        f"--time={clock_time(request.duration_s())}",
        "--exclusive",
        "--mem=0",
        # The job outlives a node that dies: the others' measurements go on.
        "--no-kill",
        *(f"{option}={check_word(what, value)}" for option, (what, value) in options.items() if value is not None),
        *([f"--nodelist={fold_node_set(names)}"] if names else []),
        "cat",
    ]


def _job_nodes(job: str) -> tuple[str, ...]:
    """The nodes of a running job; waits for those that are being booted or prepared for it."""
    query = ["squeue", "--noheader", f"--jobs={job}", "--format=%T|%N"]
    state = "CONFIGURING"
    while state == "CONFIGURING":
        answer = _answer(query, f"what Slurm knows of job {job}")
        state, _, folded = (answer.splitlines() or ["gone"])[0].strip().partition("|")
        if state == "CONFIGURING":
            time.sleep(_POLL_S)
    if state != "RUNNING" or not folded:
        raise EnvironmentProblem(f"Slurm job {job} is {state.lower()}; it has nodes only while it is running")
    names = _answer(["scontrol", "show", "hostnames", folded], f"the names of {folded[:60]}").split()
    return tuple(check_node_name(name) for name in names)


def _answer(argv: list[str], what: str) -> str:
    return run_command(argv, what=what, timeout_s=_ANSWER_S).stdout


def _addresses(job: str, names: tuple[str, ...]) -> tuple[NodeAddress, ...]:
    return tuple(NodeAddress(name, _srun(job, name)) for name in names)


def _srun(job: str, node: str) -> tuple[str, ...]:
    """The words that make srun run one program on a node of a job, standard input and output passed byte by byte."""
    return (
        "srun",
        f"--jobid={job}",
        "--job-name=lepaute",
        f"--nodelist={node}",
        "--nodes=1",
        "--ntasks=1",
        # Another step may have the same CPUs and memory: a program that runs on all nodes beside this one.
        "--overlap",
        "--mem=0",
        "--cpu-bind=none",
        "--mpi=none",
        "--unbuffered",
        "--input=all",
        "--no-kill",
        "--kill-on-bad-exit=0",
        # One Ctrl-C ends it, where srun would tell the state of the step first.
        "--quit-on-interrupt",
        "--quiet",
    )
