"""Nodes of OAR: those of the job that we are in, of a job that is named, or of one that is submitted here.

Written after OAR 2's and OAR 3's manual pages (oarsub, oarstat, oardel, oarsh, oarnodes); run against recorded answers
only. A submitted job is a `sleep`: OAR keeps the nodes while it runs. Programs are started by `oarsh`, OAR's ssh. Tests
of idle nodes are besteffort jobs, which OAR itself ends when another job wants the node.
"""

import contextlib
import functools
import os
import re
import secrets
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.documents import read_json
from lepaute.kit.node_sets import check_node_name, fold_node_set
from lepaute.measure.schedulers import types

#: OAR's documentation asks not to poll oarstat more often than needed.
_POLL_S = 5.0
_SUBMITTED = re.compile(r"^OAR_JOB_ID\s*=\s*([0-9]+)\s*$", re.MULTILINE)
_ENDED = {"Terminated", "Error"}
#: A job of thousands of cores has a line for each.
_MOST_ANSWER_BYTES = 256 << 20


class OarTests(types.BatchSystem):
    """partition, account: as queue and project of oarsub."""

    scheduler = "oar"

    def __init__(self, partition: str | None = None, account: str | None = None, qos: str | None = None) -> None:
        if qos is not None:
            raise InputError("--qos is of Slurm; oar has none")
        self._options = types.word_options({"--queue": ("--partition", partition), "--project": ("--account", account)})

    def idle(self) -> dict[str, bool]:
        alive: dict[str, bool] = {}
        for resource in _resources(_json_of(["oarnodes", "--json"])):
            name = check_node_name(str(resource["network_address"]))
            alive[name] = alive.get(name, True) and resource["state"] == "Alive"
        if not alive:
            raise InputError("OAR has no nodes; `oarnodes` lists them")
        busy = set()
        for job in _jobs():
            addresses = job.get("assigned_network_address")
            busy |= set(map(str, addresses)) if isinstance(addresses, list) else set()
        return {name: well and name not in busy for name, well in alive.items()}

    def waiting(self) -> list[types.WaitingJob]:
        return []

    def states(self, jobs: Collection[str]) -> dict[str, types.JobState]:
        states: dict[str, types.JobState] = {}
        for job in _jobs() if jobs else ():
            number, state = _number(job), str(job.get("state"))
            if number in jobs and state not in _ENDED:
                states[number] = "pending" if state.lower() in types.BEFORE_RUNNING else "running"
        return states

    def submit(self, node: str, words: Sequence[str], log: Path, walltime_s: int) -> str:
        argv = [
            "oarsub",
            f"--name={types.JOB_NAME}",
            "--type=besteffort",
            f"--resource=/nodes=1,walltime={types.clock_time(walltime_s)}",
            f"--property=network_address = '{check_node_name(node)}'",
            *self._options,
            f"--directory={log.parent}",
            f"--stdout={log}",
            f"--stderr={log}",
            shlex.join(words),
        ]
        return _submitted(argv, f"submitting the test of {node}")

    def cancel(self, job: str) -> None:
        types.answer_of(["oardel", job], f"deleting OAR job {job}")


class OarScheduler(types.Scheduler):
    """Uses the job of `job` or OAR_JOB_ID and leaves it alone afterwards; without either submits one."""

    supports = ("nodes", "count", "walltime_s", "queue", "account", "properties", "job")
    idle_tests = OarTests
    # Without this option dask-jobqueue warns that OAR is not told of the memory.
    worker_jobs = types.WorkerJobs("OARCluster", {"memory_per_core_property_name": "not_applicable"})

    def __init__(self, poll_s: float = _POLL_S) -> None:
        self._poll_s = poll_s

    def acquire(self, request: types.Request, tell: types.Tell) -> types.Allocation:
        job = self._existing_job(request)
        return self._submit(request, tell) if job is None else _use(job, request, tell)

    def plan(self, request: types.Request) -> types.Plan:
        job = self._existing_job(request)
        if job is not None:
            return types.Plan((f"use the nodes of the existing job {job}", shlex.join(oarsh_prefix(job, "NODE"))))
        steps = (_oarsub(request, "lepaute-NUMBER"), _oarstat("JOB"), oarsh_prefix("JOB", "NODE"), ["oardel", "JOB"])
        return types.Plan(tuple(shlex.join(step) for step in steps))

    def rank_launch(self, request: types.Request) -> types.RankLaunch:  # noqa: ARG002 - the same for all
        return types.RankLaunch(remote_shell=("oarsh",))

    def _existing_job(self, request: types.Request) -> str | None:
        return types.existing_job(request, "oar", "OAR", self.supports, "[0-9]{1,12}", "OAR_JOB_ID")

    def _submit(self, request: types.Request, tell: types.Tell) -> types.Allocation:
        name = f"lepaute-{secrets.token_hex(6)}"
        argv = _oarsub(request, name)
        job: str | None = None
        try:
            job = number = _submitted(argv, "oarsub")
            tell(f"OAR job {job} is waiting for nodes")
            status = types.wait_until_running(f"OAR job {job}", lambda: _status(number), self._poll_s, tell)
            names = types.assigned_nodes(f"OAR job {job}", status.get("assigned_network_address"))
        except BaseException:
            _delete(job, name)
            raise
        tell(f"OAR job {job} has {fold_node_set(names)}")
        facts = {"scheduler": "oar", "job": job, "submitted": True, "argv": argv, "nodes": list(names)}
        return types.Allocation(_addresses(job, names), facts, functools.partial(_delete, job, ""))


def oarsh_prefix(job: str, node: str) -> tuple[str, ...]:
    """The words that make oarsh run a command on a node of a job; it joins them and gives them to a shell there.

    oarsh drops `-o` and `-l` unless the site's oar.conf (OPENSSH_OPTSTR_FILTERED) lets them pass, so that the interval
    of keep-alive messages may be the site's. `-e` must not be given: oarsh would pass it and its value as one word.
    """
    settings = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3")
    options = [word for setting in settings for word in ("-o", setting)]
    return ("env", f"OAR_JOB_ID={job}", "oarsh", "-T", "-x", *options, node, "--")


def _use(job: str, request: types.Request, tell: types.Tell) -> types.Allocation:
    types.warn_of_unused(request, f"OAR job {job}", tell)
    node_file = os.environ.get("OAR_NODEFILE") if job == os.environ.get("OAR_JOB_ID") else None
    if node_file is not None:
        job_nodes = _read_node_file(Path(node_file))
    else:
        status = _status(job)
        if status.get("state") != "Running":
            raise EnvironmentProblem(f"OAR job {job} is {status.get('state')}; it has nodes only while it is running")
        job_nodes = types.assigned_nodes(f"OAR job {job}", status.get("assigned_network_address"))
    names = request.choose(job_nodes, job, request.node_names())
    tell(f"using {fold_node_set(names)} of OAR job {job}")
    return types.Allocation(_addresses(job, names), {"scheduler": "oar", "job": job, "submitted": False})


def _read_node_file(file: Path) -> tuple[str, ...]:
    """OAR_NODEFILE: a line for every reserved core, so that names repeat."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise EnvironmentProblem(f"{file}: the nodes of the job (OAR_NODEFILE): {problem.strerror}") from None
    names = dict.fromkeys(line.strip() for line in lines if line.strip())
    if not names:
        raise EnvironmentProblem(f"{file} names no node")
    return tuple(map(check_node_name, names))


def _oarsub(request: types.Request, name: str) -> list[str]:
    names = request.node_names()
    duration_s = request.duration_s()
    properties = []
    if request.properties is not None:
        properties.append(types.check_word("--constraint", request.properties))
    if names:  # letters, digits, dots and hyphens: nothing in them could leave the quotes
        properties.append(f"network_address in ({', '.join(map(repr, names))})")
    return [
        "oarsub",
        f"--name={name}",
        f"--resource=/nodes={request.size(names)},walltime={types.clock_time(duration_s)}",
        *([f"--property={' and '.join(f'({each})' for each in properties)}"] if properties else []),
        *types.word_options({"--queue": ("--queue", request.queue), "--project": ("--account", request.account)}),
        "--stdout=/dev/null",
        "--stderr=/dev/null",
        f"sleep {duration_s}",
    ]


def _submitted(argv: list[str], what: str) -> str:
    answer = run_command(argv, what=what, timeout_s=types.ANSWER_S)
    job = _SUBMITTED.search(answer.stdout)
    if job is None:
        raise EnvironmentProblem(f"oarsub printed no job id: {(answer.stdout + answer.stderr).strip()[-400:]}")
    return job[1]


def _oarstat(job: str) -> list[str]:
    return ["oarstat", "--full", "--json", "--job", job]


def _status(job: str) -> Mapping[str, object]:
    for status in _jobs(*_oarstat(job)):
        if (_number(status) or job) == job:
            return status
    raise EnvironmentProblem(f"OAR knows no job {job}")


def _jobs(*argv: str) -> list[dict[str, object]]:
    """The jobs that `oarstat --json` prints: an object with a member for each in OAR 2, a list in OAR 3."""
    document = _json_of(list(argv) or ["oarstat", "--json"])
    members = list(document.values()) if isinstance(document, dict) else document if isinstance(document, list) else []
    return [member for member in members if isinstance(member, dict)]


def _number(job: Mapping[str, object]) -> str:
    return str(job.get("Job_Id") or job.get("id") or "")


def _json_of(argv: list[str]) -> object:
    answer = types.answer_of(argv, argv[0])
    try:
        return read_json(answer, argv[0], most_bytes=_MOST_ANSWER_BYTES)
    except InputError:
        raise EnvironmentProblem(f"{argv[0]} did not print JSON: {answer.strip()[:200]!r}") from None


def _resources(value: object) -> Iterator[Mapping[str, object]]:
    """The resources of `oarnodes --json`: by node and number in OAR 2, a list in OAR 3; those without a node out."""
    if isinstance(value, dict) and "network_address" in value and "state" in value:
        if value["network_address"]:
            yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _resources(part)


def _delete(job: str | None, name: str) -> None:
    """Deletes a job, or the one of that name where the submission was interrupted before its id was known."""
    # A job that has ended already is no failure, and any other failure could not be handled here.
    with contextlib.suppress(EnvironmentProblem):
        if job is None:
            jobs = _jobs("oarstat", "--user", "--json")
            job = next((_number(each) for each in jobs if each.get("name") == name), None)
        if job is not None:
            types.answer_of(["oardel", job], "oardel")


def _addresses(job: str, names: tuple[str, ...]) -> tuple[types.NodeAddress, ...]:
    return tuple(types.NodeAddress(name, oarsh_prefix(job, name), joined=True) for name in names)
