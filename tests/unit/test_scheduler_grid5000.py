"""The scheduler for Grid'5000 against a server that answers as tests/data/grid5000 says; nobody had an account."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.schedulers import Request, scheduler
from lepaute.measure.schedulers.grid5000 import Grid5000Scheduler

_DATA = Path(__file__).parents[1] / "data" / "grid5000"
_NODES = tuple(f"dahu-{index}.grenoble.g5k.example" for index in (3, 17, 20))
_JOB, _DEPLOYMENT = "/stable/sites/grenoble/jobs", "/stable/sites/grenoble/deployments"
_PASSWORD = "correct horse"


class Site:
    """A server with a list of answers for each method and path; the last one of a list is given again and again."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self.asked: list[tuple[str, str, dict[str, object]]] = []
        self.authorizations: set[str | None] = set()

    def answer(self, method: str, path: str, *answers: str | tuple[int, str]) -> None:
        """Each answer: the name of a recorded one, or a status and a text."""
        status = 201 if method == "POST" else 200
        recorded = {each: (_DATA / f"{each}.json").read_text() for each in answers if isinstance(each, str)}
        self.answers[method, path] = [(status, recorded[each]) if each in recorded else each for each in answers]

    def posted(self, path: str) -> list[dict[str, object]]:
        return [body for method, where, body in self.asked if (method, where) == ("POST", path)]

    def count(self, method: str, path: str) -> int:
        return sum((method, path) == each[:2] for each in self.asked)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    """A site where all goes well, and a home folder with a public key and no credentials."""
    site = Site()
    site.answer("POST", _JOB, "job_waiting")
    site.answer("GET", f"{_JOB}/1965464", "job_waiting", "job_waiting", "job_running")
    site.answer("DELETE", f"{_JOB}/1965464", (202, ""))
    site.answer("GET", _JOB, (200, '{"total": 0, "offset": 0, "items": []}'))
    site.answer("POST", _DEPLOYMENT, "deployment_processing")
    site.answer("GET", f"{_DEPLOYMENT}/D-7f3a", "deployment_processing", "deployment_terminated")

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            site.asked.append((self.command, path, json.loads(body) if body else {}))
            site.authorizations.add(self.headers.get("Authorization"))
            answers = site.answers.get((self.command, path), [(404, '{"message": "no such thing"}')])
            status, text = answers.pop(0) if len(answers) > 1 else answers[0]
            data = text.encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _reply  # noqa: N815  the names that http.server looks for

        def log_message(self, *_: object) -> None:
            """Says nothing on the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("LEPAUTE_GRID5000_API", f"http://127.0.0.1:{server.server_port}/stable")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LEPAUTE_GRID5000_USER", "LEPAUTE_GRID5000_PASSWORD", "http_proxy", "HTTP_PROXY", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text("ssh-ed25519 AAAA someone@laptop\n")
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


def _fast() -> Grid5000Scheduler:
    return Grid5000Scheduler(poll_s=0, backoff_s=0)


_DEPLOY = Request(site="grenoble", cluster="dahu", count=3, walltime_s=7200, image="debian12-min")


def test_nodes_are_reserved_deployed_and_given_back(site: Site) -> None:
    said: list[str] = []
    allocation = _fast().acquire(_DEPLOY, said.append)
    (job,) = site.posted(_JOB)
    assert str(job.pop("name")).startswith("lepaute-")
    assert job == {
        "resources": "nodes=3,walltime=02:00:00", "command": "sleep 7200", "stdout": "/dev/null", "stderr": "/dev/null",
        "properties": "(cluster='dahu')", "types": ["deploy"],
    }  # fmt: skip
    assert site.posted(_DEPLOYMENT) == [
        {"nodes": list(_NODES), "environment": "debian12-min", "key": "ssh-ed25519 AAAA someone@laptop"}
    ]
    assert tuple(node.name for node in allocation.nodes) == _NODES
    words = allocation.nodes[0].argv(["a b"])
    assert words[words.index("-l") + 1] == "root"  # the user of a deployed image
    assert words[-3:] == [_NODES[0], "--", "'a b'"]
    assert said == [
        "Grid'5000 job 1965464 is waiting for nodes",
        "Grid'5000 job 1965464 is waiting: R=96,W=2:0:0,J=B,T=deploy",
        "Grid'5000 job 1965464 has dahu-[3,17,20].grenoble.g5k.example",
        "deploying debian12-min on dahu-[3,17,20].grenoble.g5k.example",
    ]
    assert site.count("DELETE", f"{_JOB}/1965464") == 0
    allocation.release()
    allocation.release()
    assert site.count("DELETE", f"{_JOB}/1965464") == 1
    assert site.authorizations == {None}  # inside of Grid'5000 nobody is asked who he is


def test_without_an_image_nothing_is_deployed_and_our_own_user_is_used(site: Site) -> None:
    allocation = _fast().acquire(Request(site="grenoble", nodes="dahu-[3,17].grenoble.g5k.example"), print)
    (job,) = site.posted(_JOB)
    assert "types" not in job
    assert job["properties"] == "(host in ('dahu-3.grenoble.g5k.example', 'dahu-17.grenoble.g5k.example'))"
    assert site.posted(_DEPLOYMENT) == []
    assert "-l" not in allocation.nodes[0].prefix


def test_a_node_that_fails_to_take_the_image_is_tried_once_more(site: Site) -> None:
    site.answer("GET", f"{_DEPLOYMENT}/D-7f3a", "deployment_one_failed", "deployment_terminated")
    allocation = _fast().acquire(_DEPLOY, print)
    assert [body["nodes"] for body in site.posted(_DEPLOYMENT)] == [list(_NODES), [_NODES[1]]]
    assert tuple(node.name for node in allocation.nodes) == _NODES
    assert allocation.facts["dropped"] == []


def test_a_node_that_fails_twice_is_dropped_with_a_warning(site: Site) -> None:
    site.answer("GET", f"{_DEPLOYMENT}/D-7f3a", "deployment_one_failed")
    said: list[str] = []
    allocation = _fast().acquire(_DEPLOY, said.append)
    assert len(site.posted(_DEPLOYMENT)) == 2
    assert tuple(node.name for node in allocation.nodes) == (_NODES[0], _NODES[2])
    assert allocation.facts["dropped"] == [_NODES[1]]
    assert said[-1].startswith(f"warning: debian12-min could not be deployed on {_NODES[1]};")


@pytest.mark.parametrize(
    ("path", "answers", "complaint"),
    [
        (f"{_JOB}/1965464", ["job_waiting", "job_error"], "is error and never ran"),
        (f"{_JOB}/1965464", [(200, '{"state": "running"}')], "assigned_nodes"),
        (f"{_JOB}/1965464", [(200, "[]")], "something else than a JSON object"),
        (f"{_JOB}/1965464", [(200, "<html>")], "something else than a JSON object"),
        (f"{_JOB}/1965464", [(404, '{"message": "gone"}')], "404: gone"),
        (f"{_DEPLOYMENT}/D-7f3a", ["deployment_error"], "is error: Kadeploy error #5"),
        (f"{_DEPLOYMENT}/D-7f3a", [(200, '{"status": "terminated"}')], "could not be deployed on"),
    ],
)
def test_what_goes_wrong_after_the_submission_is_told_and_the_job_deleted(site, path, answers, complaint):
    site.answer("GET", path, *answers)
    with pytest.raises(EnvironmentProblem, match=complaint):
        _fast().acquire(_DEPLOY, print)
    assert site.count("DELETE", f"{_JOB}/1965464") == 1


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ((400, '{"message": "there are not enough resources"}'), "400: there are not enough resources"),
        ((403, '{"error": "no project of yours"}'), "403: no project of yours"),
        ((401, ""), "401.*LEPAUTE_GRID5000_USER"),
        ((503, "later"), "503: later"),
        ((302, ""), "302"),
        ((201, "{}"), "returned no uid"),
        ((201, '{"uid": "../../x"}'), "returned no uid"),
    ],
)
def test_a_submission_that_is_refused_is_told_in_the_sites_words_and_not_repeated(site, answer, complaint):
    site.answer("POST", _JOB, answer)
    with pytest.raises(EnvironmentProblem, match=complaint):
        _fast().acquire(_DEPLOY, print)
    assert site.count("POST", _JOB) == 1  # a second one might be a second job


def test_a_job_whose_submission_gave_no_answer_is_found_by_its_name_and_deleted(site, monkeypatch):
    monkeypatch.setattr("lepaute.measure.schedulers.grid5000.secrets.token_hex", lambda _: "abc")
    items = [{"uid": 1965464, "name": "lepaute-abc"}, {"uid": 5, "name": "another"}]
    site.answer("POST", _JOB, (504, ""))
    site.answer("GET", _JOB, (200, json.dumps({"items": items})))
    with pytest.raises(EnvironmentProblem, match="504"):
        _fast().acquire(_DEPLOY, print)
    assert [each[:2] for each in site.asked if each[0] == "DELETE"] == [("DELETE", f"{_JOB}/1965464")]


def test_a_site_that_stumbles_is_asked_again(site: Site) -> None:
    site.answer("GET", f"{_JOB}/1965464", (502, ""), (503, ""), "job_running")
    assert len(_fast().acquire(_DEPLOY, print).nodes) == 3


def test_a_site_that_stays_away_is_an_error_after_a_bounded_number_of_calls(site: Site) -> None:
    site.answer("GET", f"{_JOB}/1965464", (503, "down"))
    with pytest.raises(EnvironmentProblem, match="503"):
        _fast().acquire(_DEPLOY, print)
    assert site.count("GET", f"{_JOB}/1965464") == 5


def test_ctrl_c_while_waiting_deletes_the_job(site: Site) -> None:
    site.answer("GET", f"{_JOB}/1965464", "job_waiting")

    def interrupt(text: str) -> None:
        if " is waiting" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _fast().acquire(_DEPLOY, interrupt)
    assert site.count("DELETE", f"{_JOB}/1965464") == 1


def test_a_release_that_fails_is_told_and_does_not_raise(site: Site) -> None:
    said: list[str] = []
    allocation = _fast().acquire(_DEPLOY, said.append)
    site.answer("DELETE", f"{_JOB}/1965464", (403, '{"message": "not yours"}'))
    allocation.release()
    assert said[-1].startswith("warning: Grid'5000 job 1965464 may still exist")


def test_a_job_that_is_there_is_used_and_left_alone(site: Site) -> None:
    with pytest.raises(EnvironmentProblem, match="is waiting"):
        _fast().acquire(Request(site="grenoble", job="1965464"), print)
    site.answer("GET", f"{_JOB}/1965464", "job_running")
    allocation = _fast().acquire(Request(site="grenoble", job="1965464", count=2), print)
    assert tuple(node.name for node in allocation.nodes) == _NODES[:2]
    allocation.release()
    assert {each[0] for each in site.asked} == {"GET"}


@pytest.mark.parametrize("source", ["environment", "file"])
def test_credentials_go_to_the_site_and_into_no_message(site, source, monkeypatch, tmp_path):
    if source == "environment":
        monkeypatch.setenv("LEPAUTE_GRID5000_USER", "someone")
        monkeypatch.setenv("LEPAUTE_GRID5000_PASSWORD", _PASSWORD)
    else:
        (tmp_path / ".python-grid5000.yaml").write_text(f"username: someone\npassword: {_PASSWORD}\n")
    said: list[str] = []
    allocation = _fast().acquire(_DEPLOY, said.append)
    assert site.authorizations == {"Basic " + base64.b64encode(f"someone:{_PASSWORD}".encode()).decode()}
    shown = " ".join([*said, repr(allocation), str(allocation.facts), *_fast().plan(_DEPLOY).steps])
    assert _PASSWORD not in shown
    # A server that repeats what it was sent, in its refusal.
    site.answer("POST", _JOB, (400, json.dumps({"message": f"bad password {_PASSWORD}"})))
    with pytest.raises(EnvironmentProblem, match=r"bad password \*\*\*"):
        _fast().acquire(_DEPLOY, print)
    site.answer("POST", _JOB, (401, ""))
    with pytest.raises(EnvironmentProblem, match="the user or the password is wrong"):
        _fast().acquire(_DEPLOY, print)


def test_a_credentials_file_that_is_no_yaml_is_not_quoted(site: Site, tmp_path: Path) -> None:
    (tmp_path / ".python-grid5000.yaml").write_text(f"password: [{_PASSWORD}\n")
    with pytest.raises(InputError, match="cannot be read as YAML") as caught:
        _fast().acquire(_DEPLOY, print)
    assert _PASSWORD not in str(caught.value)
    assert site.asked == []


def test_credentials_never_leave_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEPAUTE_GRID5000_USER", "someone")
    monkeypatch.setenv("LEPAUTE_GRID5000_PASSWORD", _PASSWORD)
    for address in ("http://api.g5k.example/stable", f"https://someone:{_PASSWORD}@api.g5k.example", "ftp://x", ""):
        monkeypatch.setenv("LEPAUTE_GRID5000_API", address)
        with pytest.raises(InputError) as caught:
            _fast().acquire(Request(site="grenoble"), print)
        assert _PASSWORD not in str(caught.value)


def test_a_site_that_cannot_be_reached_is_told_without_details_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEPAUTE_GRID5000_API", "http://127.0.0.1:9")  # nobody listens on the discard port
    with pytest.raises(EnvironmentProblem, match=r"gives no answer \(ConnectionError\)"):
        _fast().acquire(Request(site="grenoble"), print)


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (Request(), "site must be given"),
        (Request(site="../x"), "site is"),
        (Request(site="grenoble", cluster="dahu' or '1'='1"), "cluster is"),
        (Request(site="grenoble", image=""), "image is"),
        (Request(site="grenoble", count=0), "count is 0"),
        (Request(site="grenoble", job="7/../8"), "is not an? .* job id"),
        (Request(site="grenoble", job="7", cluster="dahu"), "does not support --cluster"),
        (Request(site="grenoble", ssh_config=Path("/no/such/file")), "ssh-config"),
    ],
)
def test_bad_requests_are_refused_by_name_before_anything_is_sent(site, request_, complaint):
    for do in (scheduler("grid5000").plan, lambda request: scheduler("grid5000").acquire(request, print)):
        with pytest.raises(InputError, match=complaint):
            do(request_)
    assert site.asked == []


def test_an_image_without_a_public_key_is_refused_before_anything_is_sent(site: Site, tmp_path: Path) -> None:
    (tmp_path / ".ssh" / "id_ed25519.pub").unlink()
    with pytest.raises(InputError, match="public key"):
        _fast().acquire(_DEPLOY, print)
    assert site.asked == []


def test_a_plan_shows_the_calls_and_sends_none(site: Site) -> None:
    steps = scheduler("grid5000").plan(_DEPLOY).steps
    assert [step.split()[0] for step in steps] == ["POST", "GET", "POST", "ssh", "DELETE"]
    assert site.asked == []
