"""Nodes of Grid'5000: a job of its REST API, with an image deployed on the nodes where one is named.

Written after the documented API; run against recorded answers only. EnOSlib, which offers more (networks, several
sites, virtual machines), is not needed and not used: who reserves nodes with it hands their names to `ssh`.
"""

import contextlib
import re
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.node_sets import check_node_name, fold_node_set
from lepaute.measure.schedulers.grid5000_api import Grid5000Api, check_g5k_name
from lepaute.measure.schedulers.request import USED_IN_A_JOB, Request, check_word
from lepaute.measure.schedulers.ssh import ssh_prefix
from lepaute.measure.schedulers.types import (
    Allocation,
    Given,
    NodeAddress,
    Plan,
    Scheduler,
    Tell,
    clock_time,
)

_POLL_S = 10.0
#: A node that fails once often comes up the second time; one that fails twice is for the site's staff.
_DEPLOYMENTS = 2
_USED_IN_A_JOB = ("site", *USED_IN_A_JOB, "image", "ssh_config")
_PUBLIC_KEYS = ("id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub")
_JOB_BEFORE = {"waiting", "hold", "tolaunch", "launching", "toackreservation", "resuming", "suspended"}
_DEPLOYMENT_BEFORE = {"waiting", "processing"}


class Grid5000Scheduler(Scheduler):
    """Submits a job and deploys `image`, or uses the running job `job` and leaves it alone afterwards."""

    supports = (*_USED_IN_A_JOB, "walltime_s", "queue", "account", "cluster", "properties")

    def __init__(self, poll_s: float = _POLL_S, backoff_s: float = 0.5) -> None:
        self._poll_s = poll_s
        self._backoff_s = backoff_s

    def acquire(self, request: Request, tell: Tell) -> Allocation:
        _check(request)
        api = Grid5000Api(_site(request), backoff_s=self._backoff_s)
        key = _public_key() if request.image is not None else None
        if request.job is not None:
            return self._use(api, request, key, tell)
        return self._submit(api, request, key, tell)

    def plan(self, request: Request) -> Plan:
        _check(request)
        url = Grid5000Api(_site(request)).url
        address = NodeAddress("NODE", _prefix("NODE", request))
        job = [f"POST {url}/jobs {_job(request, 'lepaute-NUMBER')}"] if request.job is None else []
        number = request.job or "JOB"
        deployment = [f"POST {url}/deployments {_deployment(['NODE'], request.image, 'PUBLIC KEY')}"]
        return Plan(
            (
                *job,
                f"GET {url}/jobs/{number}",
                *(deployment if request.image is not None else []),
                " ".join(address.prefix),
                *([f"DELETE {url}/jobs/{number}"] if job else []),
            )
        )

    def _use(self, api: Grid5000Api, request: Request, key: str | None, tell: Tell) -> Allocation:
        number = request.job or ""
        status = api.job(number)
        if status.get("state") != "running":
            raise EnvironmentProblem(
                f"Grid'5000 job {number} is {status.get('state')}; it has nodes only while it is running"
            )
        names = request.choose(_assigned(number, status), number, request.node_names())
        names, dropped = self._deploy(api, request, names, key, tell)
        facts = {"scheduler": "grid5000", "job": number, "submitted": False, "image": request.image, "dropped": dropped}
        return Given(_addresses(names, request), facts)

    def _submit(self, api: Grid5000Api, request: Request, key: str | None, tell: Tell) -> Allocation:
        """Asks for a job and waits for it. However the wait ends, a job that is not returned is deleted."""
        name = f"lepaute-{secrets.token_hex(6)}"
        body = _job(request, name)
        job = _Grid5000Job(api, name, tell)
        try:
            job.number = api.submit_job(body)
            tell(f"Grid'5000 job {job.number} is waiting for nodes")
            reserved = self._wait_until_running(api, job.number, tell)
            tell(f"Grid'5000 job {job.number} has {fold_node_set(reserved)}")
            names, dropped = self._deploy(api, request, reserved, key, tell)
        except BaseException:
            job.release()
            raise
        job.nodes = _addresses(names, request)
        job.facts = {
            "scheduler": "grid5000", "job": job.number, "submitted": True, "asked": body, "nodes": list(names),
            "image": request.image, "dropped": dropped,
        }  # fmt: skip
        return job

    def _wait_until_running(self, api: Grid5000Api, number: str, tell: Tell) -> tuple[str, ...]:
        latest = ""
        while True:
            status = api.job(number)
            state, message = str(status.get("state")).lower(), str(status.get("message") or "")
            if state == "running":
                return _assigned(number, status)
            if state not in _JOB_BEFORE:
                raise EnvironmentProblem(f"Grid'5000 job {number} is {state} and never ran: {message[:300]}")
            if message != latest:
                tell(f"Grid'5000 job {number} is {state}: {message[:200]}")
                latest = message
            time.sleep(self._poll_s)

    def _deploy(
        self, api: Grid5000Api, request: Request, names: tuple[str, ...], key: str | None, tell: Tell
    ) -> tuple[tuple[str, ...], list[str]]:
        """The nodes on which the image was deployed, in order, and those on which every attempt failed."""
        if request.image is None or key is None:
            return names, []
        left, deadline = list(names), time.monotonic() + request.duration_s()
        for attempt in range(_DEPLOYMENTS):
            tell(f"deploying {request.image} on {fold_node_set(tuple(left))}{', second attempt' if attempt else ''}")
            identifier = api.submit_deployment(_deployment(left, request.image, key))
            result = self._wait_until_deployed(api, identifier, deadline)
            left = [name for name in left if result.get(name) != "OK"]
            if not left:
                break
        good = tuple(name for name in names if name not in left)
        if not good:
            raise EnvironmentProblem(f"{request.image} could not be deployed on {fold_node_set(names)}; check its name")
        if left:
            tell(f"warning: {request.image} could not be deployed on {fold_node_set(tuple(left))}; continuing without")
        return good, left

    def _wait_until_deployed(self, api: Grid5000Api, identifier: str, deadline: float) -> dict[str, str]:
        """State of each node, OK or another."""
        while True:
            deployment = api.deployment(identifier)
            status = str(deployment.get("status")).lower()
            if status == "terminated":
                result = deployment.get("result")
                states = result.items() if isinstance(result, dict) else []
                return {str(name): str(each.get("state")) for name, each in states if isinstance(each, dict)}
            if status not in _DEPLOYMENT_BEFORE:
                output = " ".join(str(deployment.get("output") or "no output").split())[:300]
                raise EnvironmentProblem(f"Grid'5000 deployment {identifier} is {status}: {output}")
            if time.monotonic() > deadline:
                raise EnvironmentProblem(f"Grid'5000 deployment {identifier} took longer than the reservation")
            time.sleep(self._poll_s)


@dataclass(slots=True)
class _Grid5000Job:
    """A job that was submitted here; without a number until it is known to be accepted."""

    api: Grid5000Api
    name: str
    tell: Tell
    number: str | None = None
    nodes: tuple[NodeAddress, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    _released: bool = False

    def release(self) -> None:
        if self._released:
            return
        self._released = True
        numbers = [self.number] if self.number is not None else self._by_name()
        for number in numbers:
            try:
                self.api.delete_job(number)
            except EnvironmentProblem as problem:
                self.tell(f"warning: Grid'5000 job {number} may still exist: {problem}")

    def _by_name(self) -> list[str]:
        # The error of the submission itself is reported already.
        with contextlib.suppress(EnvironmentProblem):
            return self.api.jobs_named(self.name)
        return []


def _check(request: Request) -> None:
    """Raises InputError for all that can be known to be wrong before anything is reserved."""
    if request.job is not None:
        request.refuse_all_but(_USED_IN_A_JOB, "grid5000 with --job")
        if not re.fullmatch(r"[0-9]{1,12}", request.job):
            raise InputError(f"{request.job[:40]!r} is not a Grid'5000 job id")
    request.refuse_all_but(Grid5000Scheduler.supports, "grid5000")
    if request.ssh_config is not None and not request.ssh_config.is_file():
        raise InputError(f"{request.ssh_config}: no such file; give --ssh-config a configuration file for ssh")
    if request.image is not None:
        check_word("image", request.image)
    _job(request, "")


def _site(request: Request) -> str:
    """The site that is named, or the one that this machine belongs to."""
    if request.site is not None:
        return check_g5k_name("site", request.site)
    domains = socket.getfqdn().split(".")
    if domains[-2:] == ["grid5000", "fr"] and len(domains) > 3:
        return check_g5k_name("site", domains[-3])
    raise InputError("outside of Grid'5000 the site must be given; give one such as --site grenoble")


def _job(request: Request, name: str) -> dict[str, object]:
    """The body of a submission; its members are those of oarsub's options."""
    names = request.node_names()
    duration_s = request.duration_s()
    properties = []
    if request.cluster is not None:
        properties.append(f"cluster='{check_g5k_name('cluster', request.cluster)}'")
    if names:  # letters, digits, dots and hyphens: nothing in them could leave the quotes
        properties.append(f"host in ({', '.join(repr(each) for each in names)})")
    if request.properties is not None:
        properties.append(check_word("properties", request.properties))
    body: dict[str, object] = {
        "name": name,
        "resources": f"nodes={request.size(names)},walltime={clock_time(duration_s)}",
        "command": f"sleep {duration_s}",
        "stdout": "/dev/null",
        "stderr": "/dev/null",
    }
    if properties:
        body["properties"] = " and ".join(f"({each})" for each in properties)
    if request.image is not None:
        body["types"] = ["deploy"]
    if request.queue is not None:
        body["queue"] = check_word("queue", request.queue)
    if request.account is not None:
        body["project"] = check_word("account", request.account)
    return body


def _deployment(names: Sequence[str], image: str | None, key: str) -> dict[str, object]:
    return {"nodes": list(names), "environment": image, "key": key}


def _public_key() -> str:
    """The user's public key, which lets root of the deployed image be reached."""
    folder = Path.home() / ".ssh"
    for name in _PUBLIC_KEYS:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (folder / name).read_text(encoding="utf-8").strip()
    raise InputError(
        f"deploying an image needs a public key, and {folder} has none of {', '.join(_PUBLIC_KEYS)}; run ssh-keygen"
    )


def _assigned(number: str, status: Mapping[str, object]) -> tuple[str, ...]:
    names = status.get("assigned_nodes")
    if not isinstance(names, list) or not names:
        raise EnvironmentProblem(f"Grid'5000 job {number} is running, but lists no assigned_nodes")
    return tuple(check_node_name(str(name)) for name in dict.fromkeys(names))


def _prefix(name: str, request: Request) -> tuple[str, ...]:
    """As root on a deployed image, else as the present user."""
    config = None if request.ssh_config is None else request.ssh_config.absolute()
    return ssh_prefix(name, config, user="root" if request.image is not None else None)


def _addresses(names: tuple[str, ...], request: Request) -> tuple[NodeAddress, ...]:
    return tuple(NodeAddress(name, _prefix(name, request), joined=True) for name in names)
