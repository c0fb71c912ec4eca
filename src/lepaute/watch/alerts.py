"""Open regressions, brought to where administrators look: messages, and a file for Prometheus.

A message is recorded before it is sent and once it is, so that two processes send one.
"""

import datetime as dt
import hashlib
import json
import logging
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.later import later
from lepaute.watch.notices.absences import absences_of
from lepaute.watch.open_regressions import OpenRegressions
from lepaute.watch.report.summary import Regression, change_text, regression_nodes, since_text
from lepaute.watch.store.tables import NOTIFICATIONS
from lepaute.watch.values import start_of

if TYPE_CHECKING:
    import apprise
    import prometheus_client
    from prometheus_client import CollectorRegistry

    from lepaute.watch.store import Store
else:
    apprise = later("apprise")
    prometheus_client = later("prometheus_client")

SENDING, SENT, FAILED, JOINED, CLOSED = "sending", "sent", "failed", "joined", "closed"
#: A message that has been on its way for longer was not recorded: its process died. It is sent again.
STALE_S = 900.0
GROWN = 2
#: (cluster, node, factor)
Pair = tuple[str, str, str]
#: Apprise's words for an answer that sends the message elsewhere.
_REDIRECT = re.compile(r"\berror[=:] ?(30[0-9])\b")
_PREFIX = "lepaute_watch_"


@dataclass(frozen=True, slots=True)
class Message:
    """One that is due. known_nodes : of the event, in earlier messages; pairs : to be recorded with it."""

    event: str
    regression: Regression
    known_nodes: int
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class _Last:
    revision: int
    state: str
    event: str
    recorded_s: float

    def is_open(self, now_s: float) -> bool:
        return self.state in (SENT, JOINED) or (self.state == SENDING and now_s - self.recorded_s < STALE_S)


def due(
    channel: str, regressions: Iterable[Regression], notifications: "pd.DataFrame", now_s: float
) -> tuple[list[Message], "pd.DataFrame"]:
    """The messages that are due, and the rows to record before they are sent, as those that the store has."""
    last = _last_of(channel, notifications)
    # the events of which a message has arrived, or is on its way: others may join these alone
    arrived = notifications[(notifications["channel"] == channel) & (notifications["state"] == SENT)]["event"]
    under_way = {*arrived, *(each.event for each in last.values() if each.state == SENDING and each.is_open(now_s))}
    messages, states, covered = [], dict[Pair, tuple[str, str]](), set[Pair]()
    for regression in regressions:
        factors = dict.fromkeys(change.factor for change in regression.changes)
        pairs = tuple((regression.cluster, node, factor) for node in regression.nodes for factor in factors)
        covered |= set(pairs)
        known = [last[pair] for pair in pairs if pair in last and last[pair].is_open(now_s)]
        content = json.dumps([channel, str(regression.since), pairs])
        event = known[0].event if known else hashlib.sha256(content.encode()).hexdigest()[:16]
        is_new = not known or event not in under_way
        new = tuple(pair for pair in pairs if is_new or pair not in last or not last[pair].is_open(now_s))
        named = {pair[1] for pair, each in last.items() if each.event == event and each.state in (SENT, SENDING)}
        is_due = is_new or len(set(regression.nodes) | named) >= GROWN * max(len(named), 1)
        if new and is_due:
            messages.append(Message(event, regression, 0 if is_new else len(named), new))
        states |= dict.fromkeys(new, (SENDING if is_due else JOINED, event))
    for pair, each in last.items():
        if pair not in covered and each.state != CLOSED:
            states[pair] = (CLOSED, each.event)
    return messages, _rows(channel, states, now_s, notifications)


def _last_of(channel: str, notifications: "pd.DataFrame") -> dict[Pair, _Last]:
    rows = notifications[notifications["channel"] == channel].sort_values("revision")
    return {
        (row["cluster"], row["node"], row["factor"]): _Last(
            int(row["revision"]), row["state"], row["event"], float(row["recorded_s"])
        )
        for row in rows.to_dict("records")
    }


def _rows(
    channel: str, states: dict[Pair, tuple[str, str]], now_s: float, notifications: "pd.DataFrame"
) -> "pd.DataFrame":
    last = _last_of(channel, notifications)
    rows = [
        (channel, *pair, last[pair].revision + 1 if pair in last else 1, state, event, now_s)
        for pair, (state, event) in states.items()
    ]
    return pd.DataFrame(rows, columns=list(NOTIFICATIONS.columns))


class Channel(Protocol):
    """name : of the channel in the store and in messages, without a password."""

    @property
    def name(self) -> str: ...

    def send(self, title: str, body: str) -> None:
        """Raises EnvironmentProblem if the message does not get there."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """One message. problem : why it was not sent, "" if it was."""

    channel: str
    title: str
    body: str
    problem: str = ""


def announce(
    store: "Store", channel: Channel, regressions: Sequence[Regression], *, now_s: float | None = None
) -> list[Announcement]:
    """Sends what is due on a channel and records it; a message that fails is due again.

    A message is repeated only where the process died between sending it and recording that.
    """
    moment_s = time.time() if now_s is None else now_s
    messages: list[Message] = []

    def claim(rows: "pd.DataFrame") -> "pd.DataFrame":
        messages[:], added = due(channel.name, regressions, rows, moment_s)
        return added

    store.add_notifications(claim)
    sent = []
    for message in messages:
        regression = message.regression
        lines = [
            f"{regression_nodes(regression)} regressed {since_text(regression)}; alarm of {regression.alarm}.",
            *(f"  {change_text(change)}" for change in regression.changes),
            *(f"archive {archive}" for archive in regression.archives),
            "",
            "To see it: lepaute watch test. To record a cause: lepaute watch events propose, then accept.",
        ]
        title, body, problem = title_of(message), "\n".join(lines), ""
        try:
            channel.send(title, body)
        except EnvironmentProblem as error:
            problem = str(error)
        states = dict.fromkeys(message.pairs, (FAILED if problem else SENT, message.event))
        store.add_notifications(partial(_rows, channel.name, states, moment_s))
        sent.append(Announcement(channel.name, title, body, problem))
    return sent


def title_of(message: Message) -> str:
    """dahu-[29-32]: dgemm_rate_flops -9.5 % since 2026-02-10; without line breaks, whatever the names are."""
    regression = message.regression
    further = len(regression.changes) - 1
    more = f" and {further} more" if further else ""
    first = f"{regression_nodes(regression)}: {change_text(regression.changes[0])}{more}, {since_text(regression)}"
    return " ".join((f"{first} (was {message.known_nodes} nodes)" if message.known_nodes else first).split())


@dataclass(frozen=True, slots=True)
class AppriseChannel:
    """name : the URL without its secrets, and a few digits of a digest that tell such URLs apart."""

    name: str
    _service: Any = field(repr=False)

    def send(self, title: str, body: str) -> None:
        heard = _Heard()
        logger = logging.getLogger("apprise")
        logger.addHandler(heard)
        before, logger.propagate = logger.propagate, False
        try:
            arrived = self._service.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
        except (OSError, TypeError, ValueError) as error:
            arrived, heard.texts = False, [f"{type(error).__name__}: {error}"]
        finally:
            logger.removeHandler(heard)
            logger.propagate = before
        if not arrived:
            why = "; ".join(" ".join(text.split()) for text in heard.texts)[:300]
            if redirect := _REDIRECT.search(why):
                why = f"the answer is a redirect, {redirect[1]}, which is not followed; give the address it leads to"
            raise EnvironmentProblem(f"{self.name}: the message could not be sent{f': {why}' if why else ''}")


def channels_of(urls: Iterable[str]) -> list[AppriseChannel]:
    """The channels of Apprise's URLs; raises InputError, without repeating a password, for what is none.

    No redirect is followed: a message that was posted would become a request without a body, whose answer would count.
    """
    asset = apprise.AppriseAsset(http_redirects=False)
    channels = []
    for number, url in enumerate(urls, 1):
        # its own warnings would repeat the URL
        logging.getLogger("apprise").setLevel(logging.CRITICAL)
        service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
        logging.getLogger("apprise").setLevel(logging.WARNING)
        if service is None:
            kind = url.partition("://")[0][:20] if "://" in url else "no URL"
            raise InputError(
                f"--notify: number {number} ({kind}) is no URL of Apprise; write one such as "
                "mailto://USER:PASSWORD@example.org, or jsons://example.org/hook"
            )
        service.redirects = False
        digest = hashlib.sha256(url.encode()).hexdigest()[:6]
        shown: str = service.url(privacy=True)  # type: ignore[no-untyped-call]
        name = f"{shown.partition('?')[0]} {digest}"
        channels.append(AppriseChannel(name, service))
    return channels


class _Heard(logging.Handler):
    """Keeps what Apprise warns of while a message is sent."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def write_prometheus(found: OpenRegressions, path: Path, now_s: float) -> None:
    """Writes the file whole; raises OSError if it cannot be written."""
    write_atomic(path, prometheus_client.generate_latest(registry_of(found, now_s)))


def is_state(path: Path) -> bool:
    """Whether the file is one that `write_prometheus` has written."""
    first = f"# HELP {_PREFIX}".encode()
    try:
        with path.open("rb") as file:
            return file.read(len(first)) == first
    except OSError:
        return False


def registry_of(found: OpenRegressions, now_s: float) -> "CollectorRegistry":
    """Gauges; their help says what they are. Relative changes are fractions: -0.1 is 10 % less."""
    registry = prometheus_client.CollectorRegistry()

    def gauge(name: str, help_text: str, *labels: str) -> prometheus_client.Gauge:
        return prometheus_client.Gauge(f"{_PREFIX}{name}", help_text, labels, registry=registry)

    regressions = gauge("open_regressions", "Open regressions: events, whatever their number of nodes", "cluster")
    nodes = gauge("nodes", "Nodes with factor values", "cluster")
    silent = gauge("silent_nodes", "Nodes that fail or do not report", "cluster")
    latest = gauge("latest_value_timestamp_seconds", "Start of the latest job with a value", "cluster")
    least = gauge("least_change_ratio", "Least change of a machine that would be named", "cluster")
    change = gauge("regression_ratio", "Relative change of an open regression", "cluster", "node", "cpu", "factor")
    for cluster, rows in found.values.groupby("cluster"):
        regressions.labels(cluster).set(sum(report.cluster == cluster for report in found.reports))
        nodes.labels(cluster).set(rows["node"].nunique())
        silent.labels(cluster).set(0)
        latest.labels(cluster).set(rows.loc[rows["state"] == "done", "started_s"].max())
    for cluster, _ in {machine[:2] for absence in absences_of(found.values) for machine in absence.machines}:
        silent.labels(cluster).inc()
    for notice in found.unseen():
        least.labels(notice.cluster).set(notice.size)
    for row in found.rows.to_dict("records"):
        change.labels(row["cluster"], row["node"], row["cpu"], row["factor"]).set(row["size"])
    if found.last_day:
        midnight_s = start_of(dt.date.fromisoformat(found.last_day))
        gauge("judged_day_timestamp_seconds", "The last day that was judged").set(midnight_s)
    gauge("written_timestamp_seconds", "When this file was written").set(now_s)
    return registry
