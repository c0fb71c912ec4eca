"""Nodes of OAR: those of the job that we are in, of a job that is named, or of one that is submitted here.

Written after OAR 2's manual pages and its `oarsub`, `oarstat`, `oardel` and `oarsh`; run against recorded answers only.
A submitted job is a `sleep`: OAR keeps the nodes while it runs. Programs are started by `oarsh`, OAR's ssh.
"""

import contextlib
import os
import re
import secrets
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.documents import read_json
from lepaute.kit.node_sets import check_node_name, fold_node_set
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

_ANSWER_S = 60.0
#: OAR's documentation asks not to poll oarstat more often than needed.
_POLL_S = 5.0
_JOB_ID = re.compile(r"[0-9]{1,12}")
SUBMITTED = re.compile(r"^OAR_JOB_ID\s*=\s*([0-9]+)\s*$", re.MULTILINE)
#: States that a job passes on its way to Running, as `oarstat` spells them.
BEFORE_RUNNING = {"Waiting", "Hold", "toLaunch", "Launching", "toAckReservation", "Resuming", "Suspended"}


class OarScheduler(Scheduler):
    """Uses the job of `job` or OAR_JOB_ID and leaves it alone afterwards; without either submits one."""

    supports = ("nodes", "count", "walltime_s", "queue", "account", "properties", "job")

    def __init__(self, poll_s: float = _POLL_S) -> None:
        self._poll_s = poll_s

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        job = _existing_job(request)
        return self._submit(request, tell) if job is None else _use(job, request, tell)

    def plan(self, request: Request) -> Plan:
        job = _existing_job(request)
        if job is not None:
            return Plan((f"use the nodes of the existing job {job}", shlex.join(oarsh_prefix(job, "NODE"))))
        steps = (_oarsub(request, "lepaute-NUMBER"), _oarstat("JOB"), oarsh_prefix("JOB", "NODE"), ["oardel", "JOB"])
        return Plan(tuple(shlex.join(step) for step in steps))

    def rank_launch(self, request: Request) -> RankLaunch:  # noqa: ARG002 - the same for all
        return RankLaunch(remote_shell=("oarsh",))

    def _submit(self, request: Request, tell: Tell) -> Allocation:
        name = f"lepaute-{secrets.token_hex(6)}"
        argv = _oarsub(request, name)
        job: str | None = None
        try:
            answer = run_command(argv, what="oarsub", timeout_s=_ANSWER_S)
            submitted = SUBMITTED.search(answer.stdout)
            if submitted is None:
                output = (answer.stdout + answer.stderr).strip()[-400:]
                raise EnvironmentProblem(f"oarsub printed no job id: {output}")
            job = submitted[1]
            tell(f"OAR job {job} is waiting for nodes")
            names = self._wait_until_running(job, tell)
        except BaseException:
            _delete(job, name)
            raise
        tell(f"OAR job {job} has {fold_node_set(names)}")
        facts = {"scheduler": "oar", "job": job, "submitted": True, "argv": argv, "nodes": list(names)}
        return _OarJob(job, _addresses(job, names), facts)

    def _wait_until_running(self, job: str, tell: Tell) -> tuple[str, ...]:
        latest = ""
        while True:
            status = _status(job)
            state, message = str(status.get("state")), str(status.get("message") or "")
            if state == "Running":
                return _assigned(job, status)
            if state not in BEFORE_RUNNING:
                raise EnvironmentProblem(f"OAR job {job} is {state} and never ran: {message[:300]}")
            if message != latest:
                tell(f"OAR job {job} is {state}: {message[:200]}")
                latest = message
            time.sleep(self._poll_s)


@dataclass(slots=True)
class _OarJob:
    """A job that was submitted here."""

    job: str
    nodes: tuple[NodeAddress, ...]
    facts: Mapping[str, object] = field(default_factory=dict)
    _released: bool = False

    def release(self) -> None:
        if not self._released:
            self._released = True
            _delete(self.job, "")


def oarsh_prefix(job: str, node: str) -> tuple[str, ...]:
    """The words that make oarsh run a command on a node of a job; it joins them and gives them to a shell there.

    oarsh drops `-o` and `-l` unless the site's oar.conf (OPENSSH_OPTSTR_FILTERED) lets them pass, so that the interval
    of keep-alive messages may be the site's. `-e` must not be given: oarsh would pass it and its value as one word.
    """
    settings = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3")
    options = [word for setting in settings for word in ("-o", setting)]
    return ("env", f"OAR_JOB_ID={job}", "oarsh", "-T", "-x", *options, node, "--")


def _existing_job(request: Request) -> str | None:
    job = request.job or os.environ.get("OAR_JOB_ID")
    if job is not None and not _JOB_ID.fullmatch(job):
        raise InputError(f"{job[:40]!r} is not an OAR job id")
    if request.job is not None:
        request.refuse_all_but(USED_IN_A_JOB, "oar with --job")
    request.refuse_all_but(OarScheduler.supports, "oar")
    return job


def _use(job: str, request: Request, tell: Tell) -> Allocation:
    warn_of_unused(request, f"OAR job {job}", tell)
    node_file = os.environ.get("OAR_NODEFILE") if job == os.environ.get("OAR_JOB_ID") else None
    if node_file is not None:
        job_nodes = _read_node_file(Path(node_file))
    else:
        status = _status(job)
        if status.get("state") != "Running":
            raise EnvironmentProblem(f"OAR job {job} is {status.get('state')}; it has nodes only while it is running")
        job_nodes = _assigned(job, status)
    names = request.choose(job_nodes, job, request.node_names())
    tell(f"using {fold_node_set(names)} of OAR job {job}")
    return Given(_addresses(job, names), {"scheduler": "oar", "job": job, "submitted": False})


def _read_node_file(file: Path) -> tuple[str, ...]:
    """OAR_NODEFILE: a line for every reserved core, so that names repeat."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise EnvironmentProblem(f"{file}: the nodes of the job (OAR_NODEFILE): {problem.strerror}") from None
    return _checked([line.strip() for line in lines if line.strip()], f"{file}")


def _oarsub(request: Request, name: str) -> list[str]:
    names = request.node_names()
    duration_s = request.duration_s()
    properties = []
    if request.properties is not None:
        properties.append(check_word("properties", request.properties))
    if names:  # letters, digits, dots and hyphens: nothing in them could leave the quotes
        properties.append(f"network_address in ({', '.join(repr(each) for each in names)})")
    command = f"sleep {duration_s}"
    return [
        "oarsub",
        f"--name={name}",
        f"--resource=/nodes={request.size(names)},walltime={clock_time(duration_s)}",
        *([f"--property={' and '.join(f'({each})' for each in properties)}"] if properties else []),
        *([f"--queue={check_word('queue', request.queue)}"] if request.queue is not None else []),
        *([f"--project={check_word('account', request.account)}"] if request.account is not None else []),
        "--stdout=/dev/null",
        "--stderr=/dev/null",
        command,
    ]


def _oarstat(job: str) -> list[str]:
    return ["oarstat", "--full", "--json", "--job", job]


def _status(job: str) -> Mapping[str, object]:
    """What `oarstat` says of a job."""
    for status in answered_jobs(run_command(_oarstat(job), what="oarstat", timeout_s=_ANSWER_S).stdout):
        if str(status.get("Job_Id") or status.get("id") or job) == job:
            return status
    raise EnvironmentProblem(f"OAR knows no job {job}")


#: A job of thousands of cores has a line for each.
MOST_ANSWER_BYTES = 256 << 20


def answered_jobs(text: str) -> list[dict[str, object]]:
    """The jobs in the output of `oarstat --json`: an object with a member for each in OAR 2, a list in OAR 3."""
    try:
        document = read_json(text, "oarstat", most_bytes=MOST_ANSWER_BYTES)
    except InputError:
        raise EnvironmentProblem(f"oarstat did not print JSON: {text.strip()[:200]!r}") from None
    members = list(document.values()) if isinstance(document, dict) else document if isinstance(document, list) else []
    return [member for member in members if isinstance(member, dict)]


def _assigned(job: str, status: Mapping[str, object]) -> tuple[str, ...]:
    addresses = status.get("assigned_network_address")
    if not isinstance(addresses, list) or not addresses:
        raise EnvironmentProblem(f"OAR job {job} is running, but oarstat lists no assigned_network_address")
    return _checked([str(address) for address in addresses], f"OAR job {job}")


def _checked(names: list[str], where: str) -> tuple[str, ...]:
    if not names:
        raise EnvironmentProblem(f"{where} names no node")
    return tuple(check_node_name(name) for name in dict.fromkeys(names))


def _delete(job: str | None, name: str) -> None:
    """Deletes a job, or the one of that name where the submission was interrupted before its id was known."""
    # A job that has ended already is no failure, and any other failure could not be handled here.
    with contextlib.suppress(EnvironmentProblem):
        if job is None:
            jobs = answered_jobs(
                run_command(["oarstat", "--user", "--json"], what="oarstat", timeout_s=_ANSWER_S).stdout
            )
            ours = [str(each.get("Job_Id") or each.get("id")) for each in jobs if each.get("name") == name]
            job = ours[0] if ours else None
        if job is not None:
            run_command(["oardel", job], what="oardel", timeout_s=_ANSWER_S)


def _addresses(job: str, names: tuple[str, ...]) -> tuple[NodeAddress, ...]:
    return tuple(NodeAddress(name, oarsh_prefix(job, name), joined=True) for name in names)
