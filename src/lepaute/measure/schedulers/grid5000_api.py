"""The few calls of Grid'5000's REST API that reserve and deploy nodes.

Source: https://www.grid5000.fr/w/API and /w/API_tutorial, and the server's own code (github.com/grid5000/g5k-api):
`sites/SITE/jobs` and `sites/SITE/deployments`, JSON, HTTP Basic authentication outside of Grid'5000 and none inside.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.documents import read_text, read_yaml

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


class Grid5000Api:
    """Calls for one site. No message of an exception ever holds credentials."""

    def __init__(self, site: str, *, backoff_s: float = 0.5, timeouts_s: tuple[float, float] = _TIMEOUTS_S) -> None:
        """Raises InputError for a site or an address that cannot be, and for credentials that cannot be read."""
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util.retry import Retry

        self.url = f"{_base_url()}/sites/{check_g5k_name('site', site)}"
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
        """The number of the new job."""
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
        """The identifier of the new deployment."""
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
            message = self._redacted(_message(answer))
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

    def _redacted(self, text: str) -> str:
        return text.replace(self._credentials[1], "***") if self._credentials is not None else text


def check_g5k_name(option: str, name: str) -> str:
    """The name of a site or of a cluster: it becomes a part of an address or of an SQL expression."""
    if not _NAME.fullmatch(name):
        raise InputError(f"--{option} is {name[:40]!r}; Grid'5000's are words such as grenoble or dahu")
    return name


def _base_url() -> str:
    url = os.environ.get(URL_VARIABLE, DEFAULT_URL).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
        raise InputError(f"{URL_VARIABLE} is no address such as {DEFAULT_URL}; it takes no user and no password")
    return url


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
