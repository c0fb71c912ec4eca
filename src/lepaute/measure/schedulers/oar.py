"""Nodes of OAR: those of the job that we are in, of a job that is named, or of one that is submitted here.

Written after the manual pages of OAR 2 and 3 (oarsub, oarstat, oardel, oarsh) and of Grid'5000's kadeploy3; run against
recorded answers only. A submitted job is a `sleep`: OAR keeps the nodes while it runs. Programs are started by `oarsh`,
OAR's ssh, and by ssh as root on nodes to which an image was deployed, as on the frontends of Grid'5000.
"""

import contextlib
import functools
import os
import re
import secrets
import shlex
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.documents import read_json
from lepaute.kit.node_sets import check_node_name, fold_node_set
from lepaute.measure.schedulers import types
from lepaute.measure.schedulers.hosts import ssh_prefix

#: OAR's documentation asks not to poll oarstat more often than needed.
_POLL_S = 5.0
_SUBMITTED = re.compile(r"^OAR_JOB_ID\s*=\s*([0-9]+)\s*$", re.MULTILINE)
#: States that a job passes on its way to Running.
_BEFORE_RUNNING = {"waiting", "hold", "tolaunch", "launching", "toackreservation", "resuming", "suspended"}
#: A job of thousands of cores has a line for each.
_MAX_ANSWER_BYTES = 256 << 20


class OarScheduler(types.Scheduler):
    """Uses the job of `job` or OAR_JOB_ID and leaves it alone afterwards; without either submits one."""

    supports = ("nodes", "count", "walltime_s", "queue", "account", "properties", "job", "image", "ssh_config")

    def __init__(self, poll_s: float = _POLL_S) -> None:
        self._poll_s = poll_s

    def acquire(self, request: types.Request, tell: types.Tell) -> types.Allocation:
        job = _existing_job(request)
        return self._submit(request, tell) if job is None else _use(job, request, tell)

    def plan(self, request: types.Request) -> types.Plan:
        job = _existing_job(request)
        deploying = [] if request.image is None else [_kadeploy(request, "NODES", "DEPLOYED")]
        prefix = _prefix(job or "JOB", "NODE", request)
        if job is not None:
            return types.Plan((f"use the nodes of the existing job {job}", *map(shlex.join, [*deploying, prefix])))
        submission = _oarsub(request, "lepaute-NUMBER")
        return types.Plan(tuple(map(shlex.join, (submission, _oarstat("JOB"), *deploying, prefix, ["oardel", "JOB"]))))

    def rank_launch(self, request: types.Request) -> types.RankLaunch:
        return types.RankLaunch(remote_shell=("oarsh",) if request.image is None else ())

    def _submit(self, request: types.Request, tell: types.Tell) -> types.Allocation:
        name = f"lepaute-{secrets.token_hex(6)}"
        argv = _oarsub(request, name)
        job: str | None = None
        try:
            answer = run_command(argv, what="oarsub", timeout_s=types.ANSWER_S)
            submitted = _SUBMITTED.search(answer.stdout)
            if submitted is None:
                raise EnvironmentProblem(f"oarsub printed no job id: {(answer.stdout + answer.stderr).strip()[-400:]}")
            job = submitted[1]
            tell(f"OAR job {job} is waiting for nodes")
            names = self._wait_for_nodes(job, tell)
            tell(f"OAR job {job} has {fold_node_set(names)}")
            names = _deploy(names, request, tell)
        except BaseException:
            _delete(job, name)
            raise
        facts = {"scheduler": "oar", "job": job, "submitted": True, "argv": argv, "nodes": list(names)}
        return types.Allocation(_addresses(job, names, request), facts, functools.partial(_delete, job, ""))

    def _wait_for_nodes(self, job: str, tell: types.Tell) -> tuple[str, ...]:
        """The nodes of a job once it runs; tells each new message of the job."""
        latest = ""
        while True:
            status = _status(job)
            state, message = str(status.get("state")), str(status.get("message") or "")
            if state == "Running":
                return _assigned_nodes(job, status)
            if state.lower() not in _BEFORE_RUNNING:
                raise EnvironmentProblem(f"OAR job {job} is {state} and never ran: {message[:300]}")
            if message != latest:
                tell(f"OAR job {job} is {state}: {message[:200]}")
                latest = message
            time.sleep(self._poll_s)


def _oarsh_prefix(job: str, node: str) -> tuple[str, ...]:
    """The words that make oarsh run a command on a node of a job; it joins them and gives them to a shell there.

    oarsh drops `-o` and `-l` unless the site's oar.conf (OPENSSH_OPTSTR_FILTERED) lets them pass, so that the interval
    of keep-alive messages may be the site's. `-e` must not be given: oarsh would pass it and its value as one word.
    """
    settings = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3")
    options = [word for setting in settings for word in ("-o", setting)]
    return ("env", f"OAR_JOB_ID={job}", "oarsh", "-T", "-x", *options, node, "--")


def _existing_job(request: types.Request) -> str | None:
    if request.image is not None:
        types.check_word("--image", request.image)
    elif request.ssh_config is not None:
        raise InputError("--ssh-config is used on nodes with an image; give --image too, or leave it out")
    request.check_ssh_config()
    return types.existing_job(request, "oar", "OAR", OarScheduler.supports, "[0-9]{1,12}", "OAR_JOB_ID")


def _use(job: str, request: types.Request, tell: types.Tell) -> types.Allocation:
    types.warn_of_unused(request, f"OAR job {job}", tell)
    node_file = os.environ.get("OAR_NODEFILE") if job == os.environ.get("OAR_JOB_ID") else None
    if node_file is not None:
        job_nodes = _read_node_file(Path(node_file))
    else:
        status = _status(job)
        if status.get("state") != "Running":
            raise EnvironmentProblem(f"OAR job {job} is {status.get('state')}; it has nodes only while it is running")
        job_nodes = _assigned_nodes(job, status)
    names = request.choose(job_nodes, job, request.node_names())
    tell(f"using {fold_node_set(names)} of OAR job {job}")
    names = _deploy(names, request, tell)
    return types.Allocation(_addresses(job, names, request), {"scheduler": "oar", "job": job, "submitted": False})


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
        *([f"--property={' and '.join(f'({text})' for text in properties)}"] if properties else []),
        *types.word_options({"--queue": ("--queue", request.queue), "--project": ("--account", request.account)}),
        *([] if request.image is None else ["--type=deploy"]),
        "--stdout=/dev/null",
        "--stderr=/dev/null",
        f"sleep {duration_s}",
    ]


def _deploy(names: tuple[str, ...], request: types.Request, tell: types.Tell) -> tuple[str, ...]:
    """The nodes that have the image; all of them where none is asked for."""
    if request.image is None:
        return names
    tell(f"deploying {request.image} on {fold_node_set(names)}")
    with tempfile.TemporaryDirectory() as folder:
        asked, deployed = Path(folder) / "nodes", Path(folder) / "deployed"
        asked.write_text("\n".join(names) + "\n", encoding="utf-8")
        argv = _kadeploy(request, str(asked), str(deployed))
        run_command(argv, what=f"deploying {request.image}", timeout_s=request.duration_s())
        done = deployed.read_text(encoding="utf-8").split() if deployed.exists() else []
    good = tuple(name for name in names if name in done)
    if not good:
        raise EnvironmentProblem(f"{request.image} could not be deployed on {fold_node_set(names)}; check its name")
    if failed := tuple(name for name in names if name not in done):
        tell(f"warning: {request.image} could not be deployed on {fold_node_set(failed)}; continuing without")
    return good


def _kadeploy(request: types.Request, nodes: str, deployed: str) -> list[str]:
    """Gives root of the image the keys of ~/.ssh/authorized_keys (-k)."""
    return ["kadeploy3", "-e", str(request.image), "-f", nodes, "-o", deployed, "-k"]


def _oarstat(job: str) -> list[str]:
    return ["oarstat", "--full", "--json", "--job", job]


def _status(job: str) -> Mapping[str, object]:
    for status in _jobs(_oarstat(job)):
        if (_number(status) or job) == job:
            return status
    raise EnvironmentProblem(f"OAR knows no job {job}")


def _jobs(argv: list[str]) -> list[dict[str, object]]:
    """The jobs that `oarstat --json` prints: an object with a member for each in OAR 2, a list in OAR 3."""
    answer = types.answer_of(argv, argv[0])
    try:
        document = read_json(answer, argv[0], most_bytes=_MAX_ANSWER_BYTES)
    except InputError:
        raise EnvironmentProblem(f"{argv[0]} did not print JSON: {answer.strip()[:200]!r}") from None
    members = list(document.values()) if isinstance(document, dict) else document if isinstance(document, list) else []
    return [member for member in members if isinstance(member, dict)]


def _number(job: Mapping[str, object]) -> str:
    return str(job.get("Job_Id") or job.get("id") or "")


def _assigned_nodes(job: str, status: Mapping[str, object]) -> tuple[str, ...]:
    names = status.get("assigned_network_address")
    if not isinstance(names, list) or not names:
        raise EnvironmentProblem(f"OAR job {job} is running, but lists no assigned_nodes")
    return tuple(check_node_name(str(name)) for name in dict.fromkeys(names))


def _delete(job: str | None, name: str) -> None:
    """Deletes a job, or the one of that name where the submission was interrupted before its id was known."""
    # A job that has ended already is no failure, and any other failure could not be handled here.
    with contextlib.suppress(EnvironmentProblem):
        if job is None:
            jobs = _jobs(["oarstat", "--user", "--json"])
            job = next((_number(each) for each in jobs if each.get("name") == name), None)
        if job is not None:
            types.answer_of(["oardel", job], "oardel")


def _prefix(job: str, node: str, request: types.Request) -> tuple[str, ...]:
    return _oarsh_prefix(job, node) if request.image is None else ssh_prefix(node, request.ssh_config, user="root")


def _addresses(job: str, names: tuple[str, ...], request: types.Request) -> tuple[types.NodeAddress, ...]:
    return tuple(types.NodeAddress(name, _prefix(job, name, request), joined=True) for name in names)
