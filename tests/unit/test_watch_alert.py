"""One message an event, not one a node, none twice; and the file for Prometheus."""

import datetime as dt
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.watch.alarms.procedure import Judged
from lepaute.watch.alerts import STALE_S, announce, channels_of, registry_of
from lepaute.watch.changelog import Changelog
from lepaute.watch.open_regressions import OpenRegressions
from lepaute.watch.report.summary import Change, Regression
from lepaute.watch.store import open_store

EXAMPLE = Path(__file__).parents[2] / "examples" / "watch"


def regression(*nodes: str, factor: str = "dgemm_rate_flops") -> Regression:
    machines = tuple(("dahu", node, 0) for node in nodes)
    change = Change(factor, -1, -0.1, -0.12, -0.08, len(nodes))
    return Regression("dahu", machines, dt.date(2026, 2, 10), dt.date(2026, 2, 12), (change,), ())


class Recorder:
    """A channel that keeps the titles; it fails while `broken`."""

    def __init__(self, name: str = "test") -> None:
        self.name, self.titles, self.broken = name, list[str](), False

    def send(self, title: str, body: str) -> None:
        if self.broken:
            raise EnvironmentProblem("no network")
        assert body
        self.titles.append(title)


def test_an_event_is_announced_once_and_again_when_it_has_twice_as_many_nodes(where: str) -> None:
    channel = Recorder()
    with open_store(where) as store:
        spreading = [["n1"], ["n1"], ["n1", "n2"], ["n1", "n2", "n3"], ["n1", "n2", "n3", "n4"], ["n1", "n2"]]
        sent = [len(announce(store, channel, [regression(*nodes)])) for nodes in spreading]
    assert sent == [1, 0, 1, 0, 1, 0]
    assert channel.titles[0] == "dahu n1 cpu 0: dgemm_rate_flops -10 %, since 2026-02-10"
    assert channel.titles[2].endswith("(was 2 nodes)")


def test_a_further_factor_is_no_event_of_its_own_but_another_event_is(tmp_path: Path) -> None:
    channel = Recorder()
    both = Regression(**{
        **{name: getattr(regression("n1"), name) for name in ("cluster", "machines", "since", "alarm", "archives")},
        "changes": regression("n1").changes + regression("n1", factor="mean_frequency_Hz").changes,
    })  # fmt: skip
    with open_store(tmp_path / "store") as store:
        assert len(announce(store, channel, [regression("n1")])) == 1
        assert announce(store, channel, [both]) == []
        assert announce(store, channel, [regression("n1", factor="mean_frequency_Hz")]) == []
        assert len(announce(store, channel, [both, regression("n1", factor="disk_write_B_per_s")])) == 1
        assert len(announce(store, Recorder("another"), [both])) == 1


def test_an_event_that_is_over_and_comes_back_is_a_new_one(tmp_path: Path) -> None:
    channel = Recorder()
    with open_store(tmp_path / "store") as store:
        counts = [len(announce(store, channel, found)) for found in ([regression("n1")], [], [regression("n1")], [])]
    assert counts == [1, 0, 1, 0]


def test_a_message_that_fails_or_whose_process_died_is_due_again(tmp_path: Path) -> None:
    channel = Recorder()
    with open_store(tmp_path / "store") as store:
        channel.broken = True
        (failed,) = announce(store, channel, [regression("n1")])
        assert failed.problem == "no network"
        channel.broken = False
        assert len(announce(store, channel, [regression("n1")])) == 1

        class Killed(Recorder):
            def send(self, title: str, body: str) -> None:
                raise KeyboardInterrupt(title, body)

        killed = Killed("other")
        with pytest.raises(KeyboardInterrupt):
            announce(store, killed, [regression("n1")], now_s=1000.0)
        again = Recorder("other")
        assert announce(store, again, [regression("n1")], now_s=1000.0 + STALE_S / 2) == []
        assert len(announce(store, again, [regression("n1")], now_s=1001.0 + STALE_S)) == 1


def test_what_joined_a_message_that_failed_is_announced_with_it(tmp_path: Path) -> None:
    def changed(*factors: str) -> Regression:
        changes = tuple(regression("n1", factor=factor).changes[0] for factor in factors)
        return replace(regression("n1"), changes=changes)

    with open_store(tmp_path / "store") as store:

        class Slow(Recorder):
            """While its message is on its way, another process finds a further factor; then it fails."""

            def send(self, title: str, body: str) -> None:
                assert body
                assert announce(store, Recorder(), [changed("dgemm_rate_flops", "mean_frequency_Hz")]) == []
                raise EnvironmentProblem(title)

        (failed,) = announce(store, Slow(), [changed("dgemm_rate_flops")])
        assert failed.problem
        channel = Recorder()
        for _ in range(2):
            announce(store, channel, [changed("dgemm_rate_flops", "mean_frequency_Hz")])
        (title,) = channel.titles
        assert "and 1 more" in title


def test_processes_that_run_at_once_send_one_message(where: str) -> None:
    channel = Recorder()
    with open_store(where):
        pass

    def once(_: int) -> int:
        with open_store(where) as store:
            return len(announce(store, channel, [regression("n1", "n2")]))

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(once, range(6))) == 1
    assert len(channel.titles) == 1


def test_names_become_neither_further_labels_nor_lines() -> None:
    hostile = 'a"} 1\nb'
    rows = pandas.DataFrame([{"cluster": "c", "node": hostile, "cpu": 0, "factor": "x_s", "size": 0.5}])
    values = pandas.DataFrame([{
        "cluster": "c", "node": hostile, "cpu": 0, "job": "1", "started_s": 1e9, "factor": "x_s", "value": 1.0,
        "state": "done",
    }])  # fmt: skip
    judged = Judged(pandas.DataFrame([{"day": "2026-02-12"}]), rows.assign(changed_s=1e9), rows[:0], rows[:0])
    found = OpenRegressions(rows, (regression(hostile),), values, judged, Changelog())
    from prometheus_client import generate_latest

    text = generate_latest(registry_of(found, 0.0)).decode()
    families = {family.name: family.samples for family in text_string_to_metric_families(text)}
    (sample,) = families["lepaute_watch_regression_ratio"]
    assert sample.labels == {"cluster": "c", "node": hostile, "cpu": "0", "factor": "x_s"}
    assert sample.value == 0.5


def test_a_url_that_is_none_is_refused_and_passwords_are_not_shown() -> None:
    with pytest.raises(InputError, match=r"number 2 \(mailto\) is no URL of Apprise") as refused:
        channels_of(["json://u:secret@localhost/x", "mailto://secret"])
    assert "secret" not in str(refused.value)
    first, second = channels_of(["json://u:secret@localhost/x", "json://u:other@localhost/x"])
    assert "secret" not in first.name
    assert first.name != second.name


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The URL of a webhook, and the messages that it gets."""
    messages: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with served(Handler) as address:
        yield f"json://{address}/hook", messages


@pytest.fixture
def moved() -> Iterator[tuple[str, list[str]]]:
    """The URL of a webhook that answers with a redirect to one that takes all, and what that one is asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(int(self.path.strip("/").partition("?")[0]))
            self.send_header("Location", "/new")
            self.end_headers()

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with served(Handler) as address:
        yield address, asked


@pytest.mark.parametrize("place", ["301", "302", "303", "307", "308", "302?redirect=yes"])
def test_a_redirect_is_a_failure_and_the_message_is_due_again(place, moved, tmp_path):
    address, asked = moved
    (channel,) = channels_of([f"json://{address}/{place}"])
    with open_store(tmp_path / "store") as store:
        for _ in range(2):
            (failed,) = announce(store, channel, [regression("n1")])
            assert f"the answer is a redirect, {place[:3]}, which is not followed" in failed.problem
        assert "sent" not in set(store.notifications()["state"])
    assert asked == []


def test_the_command_sends_once_and_writes_the_file(hook, tmp_path, capsys):
    url, messages = hook
    store, file = str(tmp_path / "store"), tmp_path / "lepaute.prom"
    mapping = str(EXAMPLE / "mapping.yaml")
    assert main(["watch", "ingest", str(EXAMPLE / "fleet.csv"), "--mapping", mapping, "--store", store]) == 0
    assert main(["watch", "test", "--store", store, "--json"]) == 1
    words = ["watch", "alert", "--store", store, "--notify", url, "--prometheus", str(file)]
    assert main(words) == 0
    assert main(words) == 0
    (message,) = messages
    assert message["title"].startswith("demo node7 cpu 0, 1: dgemm_rate_flops -")
    families = {each.name: each.samples for each in text_string_to_metric_families(file.read_text())}
    assert [(each.labels, each.value) for each in families["lepaute_watch_open_regressions"]] == [
        ({"cluster": "demo"}, 1)
    ]
    assert [each.value for each in families["lepaute_watch_silent_nodes"]] == [2]
    capsys.readouterr()
    assert main([*words[:4], "--notify", "json://127.0.0.1:9/nobody"]) == 2
    assert "could not be sent" in capsys.readouterr().err
    assert main(words[:4]) == 2
    assert "there is nothing to do" in capsys.readouterr().err
