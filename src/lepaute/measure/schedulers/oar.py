"""Nodes of OAR: those of the job that we are in, of a job that is named, or of one that is submitted here.

Written after OAR 2's manual pages and its `oarsub`, `oarstat`, `oardel` and `oarsh`; run against recorded answers only.
A job of ours is a `sleep`: OAR keeps the nodes while it runs. Programs are started by `oarsh`, OAR's ssh.
"""

import contextlib
import json
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
from lepaute.measure.schedulers.node_sets import fold_node_set, parse_node_set
from lepaute.measure.schedulers.types import (
    Allocation,
    Given,
    NodeAddress,
    Plan,
    Request,
    Tell,
    check_node_name,
    check_word,
    choose_nodes,
    clock_time,
)

_ANSWER_S = 60.0
#: OAR's documentation asks not to poll oarstat more often than needed.
_POLL_S = 5.0
_USED = ("nodes", "count", "walltime_s", "queue", "account", "properties", "job")
_JOB_ID = re.compile(r"[0-9]{1,12}")
_SUBMITTED = re.compile(r"^OAR_JOB_ID\s*=\s*([0-9]+)\s*$", re.MULTILINE)
#: States that a job passes on its way to Running, as `oarstat` spells them.
_BEFORE = {"Waiting", "Hold", "toLaunch", "Launching", "toAckReservation", "Resuming", "Suspended"}


class OarScheduler:
    """Uses the job that `job` or OAR_JOB_ID names and leaves it alone afterwards; submits one where neither is."""

    def __init__(self, poll_s: float = _POLL_S) -> None:
        self._poll_s = poll_s

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        job = _found_job(request)
        if job is not None:
            return _nodes_of_found_job(job, request, tell)
        return self._submit(request, tell)

    def plan(self, request: Request) -> Plan:
        job = _found_job(request)
        if job is not None:
            return Plan((f"use the nodes of job {job}, which is there", shlex.join(oarsh_prefix(job, "NODE"))))
        steps = (_oarsub(request, "lepaute-NUMBER"), _oarstat("JOB"), oarsh_prefix("JOB", "NODE"), ["oardel", "JOB"])
        return Plan(tuple(shlex.join(step) for step in steps))

    def _submit(self, request: Request, tell: Tell) -> Allocation:
        name = f"lepaute-{secrets.token_hex(6)}"
        argv = _oarsub(request, name)
        job: str | None = None
        try:
            said = run_command(argv, what="oarsub", timeout_s=_ANSWER_S)
            found = _SUBMITTED.search(said.stdout)
            if found is None:
                raise EnvironmentProblem(f"oarsub names no job; it said: {(said.stdout + said.stderr).strip()[-400:]}")
            job = found[1]
            tell(f"job {job} of OAR's waits for nodes")
            names = self._wait_until_running(job, tell)
        except BaseException:
            _delete(job, name)
            raise
        tell(f"job {job} of OAR's has {fold_node_set(names)}")
        facts = {"scheduler": "oar", "job": job, "submitted": True, "argv": argv, "nodes": list(names)}
        return _OarJob(job, _addresses(job, names), facts)

    def _wait_until_running(self, job: str, tell: Tell) -> tuple[str, ...]:
        told = ""
        while True:
            shown = _show(job)
            state, message = str(shown.get("state")), str(shown.get("message") or "")
            if state == "Running":
                return _assigned(job, shown)
            if state not in _BEFORE:
                raise EnvironmentProblem(f"job {job} of OAR's is {state} before it ran: {message[:300]}")
            if message != told:
                tell(f"job {job} of OAR's is {state}: {message[:200]}")
                told = message
            time.sleep(self._poll_s)


@dataclass(slots=True)
class _OarJob:
    """A job of ours."""

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


def _found_job(request: Request) -> str | None:
    job = request.job or os.environ.get("OAR_JOB_ID")
    if job is not None and not _JOB_ID.fullmatch(job):
        raise InputError(f"{job[:40]!r} is not the number of a job of OAR's")
    if request.job is not None:
        request.refuse_all_but("oar in a job that is there", "job", "nodes", "count")
    request.refuse_all_but("oar", *_USED)
    return job


def _nodes_of_found_job(job: str, request: Request, tell: Tell) -> Allocation:
    unused = request.options_besides("job", "nodes", "count")
    if unused:
        tell(f"runs in job {job} of OAR's, which is there: {', '.join(unused)} ask for nothing")
    node_file = os.environ.get("OAR_NODEFILE") if job == os.environ.get("OAR_JOB_ID") else None
    if node_file is not None:
        there = _read_node_file(Path(node_file))
    else:
        shown = _show(job)
        if shown.get("state") != "Running":
            raise EnvironmentProblem(f"job {job} of OAR's is {shown.get('state')}; nodes are there while it runs")
        there = _assigned(job, shown)
    names = choose_nodes(there, request, parse_node_set(request.nodes) if request.nodes is not None else (), job)
    tell(f"uses {fold_node_set(names)} of job {job} of OAR's")
    return Given(_addresses(job, names), {"scheduler": "oar", "job": job, "submitted": False})


def _read_node_file(file: Path) -> tuple[str, ...]:
    """OAR_NODEFILE: a line for every reserved core, so that names repeat."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise EnvironmentProblem(f"{file}: the nodes of the job (OAR_NODEFILE): {problem.strerror}") from None
    return _checked([line.strip() for line in lines if line.strip()], f"{file}")


def _oarsub(request: Request, name: str) -> list[str]:
    names = parse_node_set(request.nodes) if request.nodes is not None else ()
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


def _show(job: str) -> Mapping[str, object]:
    """What OAR knows of a job."""
    for shown in _jobs(run_command(_oarstat(job), what="oarstat", timeout_s=_ANSWER_S).stdout):
        if str(shown.get("Job_Id") or shown.get("id") or job) == job:
            return shown
    raise EnvironmentProblem(f"OAR knows no job {job}")


def _jobs(text: str) -> list[dict[str, object]]:
    """The jobs that `oarstat --json` shows: an object with a member for each in OAR 2, a list in OAR 3."""
    try:
        shown = json.loads(text)
    except json.JSONDecodeError:
        raise EnvironmentProblem(f"oarstat answered no JSON: {text.strip()[:200]!r}") from None
    members = list(shown.values()) if isinstance(shown, dict) else shown if isinstance(shown, list) else []
    return [member for member in members if isinstance(member, dict)]


def _assigned(job: str, shown: Mapping[str, object]) -> tuple[str, ...]:
    addresses = shown.get("assigned_network_address")
    if not isinstance(addresses, list) or not addresses:
        raise EnvironmentProblem(f"job {job} of OAR's runs, but oarstat shows no assigned_network_address")
    return _checked([str(address) for address in addresses], f"job {job} of OAR's")


def _checked(names: list[str], where: str) -> tuple[str, ...]:
    if not names:
        raise EnvironmentProblem(f"{where} names no node")
    return tuple(check_node_name(name) for name in dict.fromkeys(names))


def _delete(job: str | None, name: str) -> None:
    """Deletes a job, or the one of that name where the submission was cut short before it told the number."""
    # A job that is gone already is no failure, and nobody could act on another one here.
    with contextlib.suppress(EnvironmentProblem):
        if job is None:
            shown = _jobs(run_command(["oarstat", "--user", "--json"], what="oarstat", timeout_s=_ANSWER_S).stdout)
            ours = [str(each.get("Job_Id") or each.get("id")) for each in shown if each.get("name") == name]
            job = ours[0] if ours else None
        if job is not None:
            run_command(["oardel", job], what="oardel", timeout_s=_ANSWER_S)


def _addresses(job: str, names: tuple[str, ...]) -> tuple[NodeAddress, ...]:
    return tuple(NodeAddress(name, oarsh_prefix(job, name), joined=True) for name in names)
