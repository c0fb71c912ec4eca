"""Nodes of Grid'5000: a job of its REST API, with an image deployed on the nodes where one is named.

Written after the documented API (https://www.grid5000.fr/w/API and /w/API_tutorial, and the server's own code,
github.com/grid5000/g5k-api: `sites/SITE/jobs` and `sites/SITE/deployments`, JSON, HTTP Basic authentication outside of
Grid'5000 and none inside); run against recorded answers only. EnOSlib, which offers more (networks, several sites,
virtual machines), is not needed and not used: who reserves nodes with it hands their names to `ssh`.
"""

import contextlib
import os
import re
import secrets
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.documents import read_text, read_yaml
from lepaute.kit.node_sets import fold_node_set
from lepaute.measure.schedulers import types
from lepaute.measure.schedulers.hosts import ssh_prefix

if TYPE_CHECKING:
    import requests

DEFAULT_URL = "https://api.grid5000.fr/stable"
#: Where the tests' server is; also a tunnel's end.
URL_VARIABLE = "LEPAUTE_GRID5000_API"
USER_VARIABLE, PASSWORD_VARIABLE = "LEPAUTE_GRID5000_USER", "LEPAUTE_GRID5000_PASSWORD"
#: The file that python-grid5000 documents: two keys, username and password.
CREDENTIALS_FILE = ".python-grid5000.yaml"
_TIMEOUTS_S = (10.0, 60.0)  # to connect, to answer
_TRIES = 4
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_POLL_S = 10.0
#: A node that fails once often comes up the second time; one that fails twice is for the site's staff.
_DEPLOYMENTS = 2
_PUBLIC_KEYS = ("id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub")
_DEPLOYMENT_BEFORE = {"waiting", "processing"}


class Grid5000Scheduler(types.Scheduler):
    """Submits a job and deploys `image`, or uses the running job `job` and leaves it alone afterwards."""

    supports = (
        "site", "job", "nodes", "count", "image", "ssh_config", "walltime_s", "queue", "account", "cluster",
        "properties",
    )  # fmt: skip

    def __init__(self, poll_s: float = _POLL_S, backoff_s: float = 0.5) -> None:
        self._poll_s = poll_s
        self._backoff_s = backoff_s

    def acquire(self, request: types.Request, tell: types.Tell) -> types.Allocation:
        self._check(request)
        api = Grid5000Api(_site(request), backoff_s=self._backoff_s)
        key = _public_key() if request.image is not None else ""
        if request.job is not None:
            return self._use(api, request, request.job, key, tell)
        return self._submit(api, request, key, tell)

    def plan(self, request: types.Request) -> types.Plan:
        self._check(request)
        url = Grid5000Api(_site(request)).url
        job = [f"POST {url}/jobs {_job(request, 'lepaute-NUMBER')}"] if request.job is None else []
        number = request.job or "JOB"
        deployment = {"nodes": ["NODE"], "environment": request.image, "key": "PUBLIC KEY"}
        return types.Plan(
            (
                *job,
                f"GET {url}/jobs/{number}",
                *([f"POST {url}/deployments {deployment}"] if request.image is not None else []),
                " ".join(_prefix("NODE", request)),
                *([f"DELETE {url}/jobs/{number}"] if job else []),
            )
        )

    def _check(self, request: types.Request) -> None:
        """Raises InputError for all that can be known to be wrong before anything is reserved."""
        types.existing_job(request, "grid5000", "Grid'5000", self.supports, "[0-9]{1,12}")
        request.check_ssh_config()
        if request.image is not None:
            types.check_word("--image", request.image)
        _job(request, "")

    def _use(
        self, api: "Grid5000Api", request: types.Request, number: str, key: str, tell: types.Tell
    ) -> types.Allocation:
        status = api.job(number)
        if status.get("state") != "running":
            raise EnvironmentProblem(
                f"Grid'5000 job {number} is {status.get('state')}; it has nodes only while it is running"
            )
        job_nodes = types.assigned_nodes(f"Grid'5000 job {number}", status.get("assigned_nodes"))
        names = request.choose(job_nodes, number, request.node_names())
        names, dropped = self._deploy(api, request, names, key, tell)
        facts = {"scheduler": "grid5000", "job": number, "submitted": False, "image": request.image, "dropped": dropped}
        return types.Allocation(_addresses(names, request), facts)

    def _submit(self, api: "Grid5000Api", request: types.Request, key: str, tell: types.Tell) -> types.Allocation:
        """Asks for a job and waits for it. However the wait ends, a job that is not returned is deleted."""
        name = f"lepaute-{secrets.token_hex(6)}"
        body = _job(request, name)
        numbers: list[str] = []

        def end() -> None:
            with contextlib.suppress(EnvironmentProblem):  # the error of the submission itself is reported already
                numbers.extend([] if numbers else api.jobs_named(name))
            for number in numbers:
                try:
                    api.delete_job(number)
                except EnvironmentProblem as problem:
                    tell(f"warning: Grid'5000 job {number} may still exist: {problem}")

        try:
            number = api.submit_job(body)
            numbers.append(number)
            job = f"Grid'5000 job {number}"
            tell(f"{job} is waiting for nodes")
            status = types.wait_until_running(job, lambda: api.job(number), self._poll_s, tell)
            reserved = types.assigned_nodes(job, status.get("assigned_nodes"))
            tell(f"{job} has {fold_node_set(reserved)}")
            names, dropped = self._deploy(api, request, reserved, key, tell)
        except BaseException:
            end()
            raise
        facts = {
            "scheduler": "grid5000", "job": number, "submitted": True, "asked": body, "nodes": list(names),
            "image": request.image, "dropped": dropped,
        }  # fmt: skip
        return types.Allocation(_addresses(names, request), facts, end)

    def _deploy(
        self, api: "Grid5000Api", request: types.Request, names: tuple[str, ...], key: str, tell: types.Tell
    ) -> tuple[tuple[str, ...], list[str]]:
        """The nodes on which the image was deployed, in order, and those on which every attempt failed."""
        if request.image is None:
            return names, []
        left, deadline = list(names), time.monotonic() + request.duration_s()
        for attempt in range(_DEPLOYMENTS):
            tell(f"deploying {request.image} on {fold_node_set(tuple(left))}{', second attempt' if attempt else ''}")
            identifier = api.submit_deployment({"nodes": left, "environment": request.image, "key": key})
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

    def _wait_until_deployed(self, api: "Grid5000Api", identifier: str, deadline: float) -> dict[str, str]:
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


def _site(request: types.Request) -> str:
    """The site that is named, or the one that this machine belongs to."""
    if request.site is not None:
        return check_g5k_name("site", request.site)
    domains = socket.getfqdn().split(".")
    if domains[-2:] == ["grid5000", "fr"] and len(domains) > 3:
        return check_g5k_name("site", domains[-3])
    raise InputError("outside of Grid'5000 the site must be given; give one such as --site grenoble")


def _job(request: types.Request, name: str) -> dict[str, object]:
    """The body of a submission; its members are those of oarsub's options."""
    names = request.node_names()
    duration_s = request.duration_s()
    properties = []
    if request.cluster is not None:
        properties.append(f"cluster='{check_g5k_name('cluster', request.cluster)}'")
    if names:  # letters, digits, dots and hyphens: nothing in them could leave the quotes
        properties.append(f"host in ({', '.join(repr(each) for each in names)})")
    if request.properties is not None:
        properties.append(types.check_word("--constraint", request.properties))
    body: dict[str, object] = {
        "name": name,
        "resources": f"nodes={request.size(names)},walltime={types.clock_time(duration_s)}",
        "command": f"sleep {duration_s}",
        "stdout": "/dev/null",
        "stderr": "/dev/null",
    }
    if properties:
        body["properties"] = " and ".join(f"({each})" for each in properties)
    if request.image is not None:
        body["types"] = ["deploy"]
    if request.queue is not None:
        body["queue"] = types.check_word("--queue", request.queue)
    if request.account is not None:
        body["project"] = types.check_word("--account", request.account)
    return body


def _public_key() -> str:
    """The user's public key, which lets root of the deployed image be reached."""
    folder = Path.home() / ".ssh"
    for name in _PUBLIC_KEYS:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (folder / name).read_text(encoding="utf-8").strip()
    raise InputError(
        f"deploying an image needs a public key, and {folder} has none of {', '.join(_PUBLIC_KEYS)}; run ssh-keygen"
    )


def _prefix(name: str, request: types.Request) -> tuple[str, ...]:
    """As root on a deployed image, else as the present user."""
    return ssh_prefix(name, request.ssh_config, user="root" if request.image is not None else None)


def _addresses(names: tuple[str, ...], request: types.Request) -> tuple[types.NodeAddress, ...]:
    return tuple(types.NodeAddress(name, _prefix(name, request), joined=True) for name in names)


class Grid5000Api:
    """Calls for one site. No message of an exception ever holds credentials."""

    def __init__(self, site: str, *, backoff_s: float = 0.5, timeouts_s: tuple[float, float] = _TIMEOUTS_S) -> None:
        """Raises InputError for a site or an address that cannot be, and for credentials that cannot be read."""
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util.retry import Retry

        url = os.environ.get(URL_VARIABLE, DEFAULT_URL).rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
            raise InputError(f"{URL_VARIABLE} is no address such as {DEFAULT_URL}; it takes no user and no password")
        self.url = f"{url}/sites/{check_g5k_name('site', site)}"
        self._timeouts_s = timeouts_s
        self._session = requests.Session()
        self._session.headers["Accept"] = "application/json"
        self._credentials = _credentials()
        if self._credentials is not None:
            _check_safe_for_credentials(self.url)
            self._session.auth = self._credentials
        # Only what can be asked twice: a second POST would be a second job.
        again = Retry(
            total=_TRIES,
            backoff_factor=backoff_s,
            status_forcelist=(500, 502, 503, 504),
            allowed_methods=("GET", "DELETE"),
            respect_retry_after_header=False,
            raise_on_status=False,
        )
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=again))

    def submit_job(self, body: Mapping[str, object]) -> str:
        return _identifier(self._call("POST", "jobs", body), "job")

    def job(self, number: str) -> Mapping[str, object]:
        return self._call("GET", f"jobs/{number}")

    def jobs_named(self, name: str) -> list[str]:
        """Numbers of the jobs of that name that wait or run."""
        items = self._call("GET", "jobs?state=waiting,hold,tolaunch,launching,running&limit=500").get("items")
        jobs = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        return [str(item["uid"]) for item in jobs if item.get("name") == name and "uid" in item]

    def delete_job(self, number: str) -> None:
        self._call("DELETE", f"jobs/{number}")

    def submit_deployment(self, body: Mapping[str, object]) -> str:
        return _identifier(self._call("POST", "deployments", body), "deployment")

    def deployment(self, identifier: str) -> Mapping[str, object]:
        return self._call("GET", f"deployments/{identifier}")

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Mapping[str, object]:
        import requests

        try:
            answer = self._session.request(
                method, f"{self.url}/{path}", json=body, timeout=self._timeouts_s, allow_redirects=False
            )
        except requests.RequestException as problem:
            # The exception's own text names addresses and headers at will.
            raise EnvironmentProblem(f"{self.url}/{path} gives no answer ({type(problem).__name__})") from None
        if answer.status_code == 401:
            raise EnvironmentProblem(f"{self.url} refuses us (401): {self._who()}")
        if not answer.ok or answer.is_redirect:
            message = _message(answer).replace(self._credentials[1] if self._credentials else "\0", "***")
            raise EnvironmentProblem(f"{method} {self.url}/{path} was answered with {answer.status_code}: {message}")
        if method == "DELETE":
            return {}
        try:
            document = answer.json()
        except requests.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            raise EnvironmentProblem(f"{method} {self.url}/{path} was answered with something else than a JSON object")
        return document

    def _who(self) -> str:
        if self._credentials is None:
            return (
                f"outside of Grid'5000 it wants a user and a password; set {USER_VARIABLE} and {PASSWORD_VARIABLE}, "
                f"or write username and password to ~/{CREDENTIALS_FILE}"
            )
        return "the user or the password is wrong"


def check_g5k_name(option: str, name: str) -> str:
    """The name of a site or of a cluster: it becomes a part of an address or of an SQL expression."""
    if not _NAME.fullmatch(name):
        raise InputError(f"--{option} is {name[:40]!r}; Grid'5000's are words such as grenoble or dahu")
    return name


def _check_safe_for_credentials(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
        raise InputError(f"{URL_VARIABLE} is not https, so the password would pass in the clear; use https")


def _credentials() -> tuple[str, str] | None:
    """User and password, from the environment or from python-grid5000's file; None where there are none."""
    user, password = os.environ.get(USER_VARIABLE), os.environ.get(PASSWORD_VARIABLE)
    if user and password:
        return user, password
    if user or password:
        raise InputError(f"{USER_VARIABLE} and {PASSWORD_VARIABLE} belong together; one of them is not set")
    file = Path.home() / CREDENTIALS_FILE
    if not file.exists():
        return None
    try:
        document = read_yaml(read_text(file, "a file of credentials"), str(file))
    except InputError:
        # The reader's own complaint would quote the line, and with it the password.
        raise InputError(f"{file} cannot be read as YAML; it has the keys username and password") from None
    if not isinstance(document, dict) or not document.get("username") or not document.get("password"):
        return None
    return str(document["username"]), str(document["password"])


def _identifier(answer: Mapping[str, object], what: str) -> str:
    uid = str(answer.get("uid", ""))
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", uid):
        raise EnvironmentProblem(f"Grid'5000 accepted a {what}, but returned no uid")
    return uid


def _message(answer: "requests.Response") -> str:
    """What a refusal says: the member `message` or `error` of its JSON, or its text."""
    text = answer.text
    try:
        body = answer.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        text = str(body.get("message") or body.get("error") or text)
    return " ".join(text.split())[:300] or "nothing more"
