"""Sends the messages that are due: recorded before they are sent and once they are, so that two processes send one."""

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lepaute.errors import EnvironmentProblem
from lepaute.watch.report.summary import Regression
from lepaute.watch.report.texts import change_text, machines_text

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store

SENDING, SENT, FAILED, JOINED, CLOSED = "sending", "sent", "failed", "joined", "closed"
#: A message that has been on its way for longer was not recorded: its process died. It is sent again.
STALE_S = 900.0
GROWN = 2

#: (cluster, node, factor)
Pair = tuple[str, str, str]


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
    """The messages that are due, and the rows to record before they are sent (columns of store.tables.NOTIFICATIONS).

    notifications : all rows of the store
    """
    last = _last_of(channel, notifications)
    told = _told(channel, notifications, last, now_s)
    messages, states, covered = [], dict[Pair, tuple[str, str]](), set[Pair]()
    for regression in regressions:
        pairs = pairs_of(regression)
        covered |= set(pairs)
        known = [last[pair] for pair in pairs if pair in last and last[pair].is_open(now_s)]
        event = known[0].event if known else _event(channel, regression, pairs)
        is_new = not known or event not in told
        new = tuple(pair for pair in pairs if is_new or pair not in last or not last[pair].is_open(now_s))
        named = {pair[1] for pair, each in last.items() if each.event == event and each.state in (SENT, SENDING)}
        is_due = is_new or len(set(regression.nodes) | named) >= GROWN * max(len(named), 1)
        if new and is_due:
            messages.append(Message(event, regression, 0 if is_new else len(named), new))
        states |= dict.fromkeys(new, (SENDING if is_due else JOINED, event))
    for pair, each in last.items():
        if pair not in covered and each.state != CLOSED:
            states[pair] = (CLOSED, each.event)
    return messages, _rows(channel, states, last, now_s)


def outcome(channel: str, message: Message, state: str, notifications: "pd.DataFrame", now_s: float) -> "pd.DataFrame":
    """The rows that record what became of a message: SENT or FAILED."""
    states = dict.fromkeys(message.pairs, (state, message.event))
    return _rows(channel, states, _last_of(channel, notifications), now_s)


def pairs_of(regression: Regression) -> tuple[Pair, ...]:
    factors = dict.fromkeys(change.factor for change in regression.changes)
    return tuple((regression.cluster, node, factor) for node in regression.nodes for factor in factors)


def _told(channel: str, notifications: "pd.DataFrame", last: dict[Pair, _Last], now_s: float) -> frozenset[str]:
    """The events of which a message has arrived, or is on its way: others may join these alone."""
    sent = notifications[(notifications["channel"] == channel) & (notifications["state"] == SENT)]["event"]
    return frozenset(sent) | {each.event for each in last.values() if each.state == SENDING and each.is_open(now_s)}


def _event(channel: str, regression: Regression, pairs: tuple[Pair, ...]) -> str:
    text = json.dumps([channel, str(regression.since), pairs])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _last_of(channel: str, notifications: "pd.DataFrame") -> dict[Pair, _Last]:
    mine = notifications[notifications["channel"] == channel].sort_values("revision")
    return {
        (row["cluster"], row["node"], row["factor"]): _Last(
            int(row["revision"]), row["state"], row["event"], float(row["recorded_s"])
        )
        for row in mine.to_dict("records")
    }


def _rows(channel: str, states: dict[Pair, tuple[str, str]], last: dict[Pair, _Last], now_s: float) -> "pd.DataFrame":
    import pandas as pd

    rows = [
        (channel, *pair, last[pair].revision + 1 if pair in last else 1, state, event, now_s)
        for pair, (state, event) in states.items()
    ]
    columns = ["channel", "cluster", "node", "factor", "revision", "state", "event", "recorded_s"]
    return pd.DataFrame(rows, columns=columns)


class Channel(Protocol):
    """name : of the channel in the store and in messages, without a password."""

    @property
    def name(self) -> str: ...

    def send(self, title: str, body: str) -> None:
        """Raises EnvironmentProblem where the message does not get there."""


@dataclass(frozen=True, slots=True)
class Announced:
    """One message. problem : why it was not sent, "" where it was."""

    channel: str
    title: str
    body: str
    problem: str = ""


def announce(
    store: "Store", channel: Channel, regressions: Sequence[Regression], *, now_s: float | None = None
) -> list[Announced]:
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
        title, body, problem = title_of(message), body_of(message), ""
        try:
            channel.send(title, body)
        except EnvironmentProblem as error:
            problem = str(error)
        state = FAILED if problem else SENT

        def record(rows: "pd.DataFrame", message: Message = message, state: str = state) -> "pd.DataFrame":
            return outcome(channel.name, message, state, rows, moment_s)

        store.add_notifications(record)
        sent.append(Announced(channel.name, title, body, problem))
    return sent


def title_of(message: Message) -> str:
    """dahu-[29-32]: dgemm_rate_flops -9.5 % since 2026-02-10; without line breaks, whatever the names are."""
    regression = message.regression
    further = len(regression.changes) - 1
    more = f" and {further} more" if further else ""
    first = (
        f"{machines_text(regression.machines)}: {change_text(regression.changes[0])}{more}, since {regression.since}"
    )
    return " ".join((f"{first} (was {message.known_nodes} nodes)" if message.known_nodes else first).split())


def body_of(message: Message) -> str:
    regression = message.regression
    lines = [
        f"{machines_text(regression.machines)} regressed on {regression.since}; alarm of {regression.alarm}.",
        *(f"  {change_text(change)}" for change in regression.changes),
        *(f"archive {archive}" for archive in regression.archives),
        "",
        "To see it: lepaute watch test. To record a cause: lepaute watch events propose, then accept.",
    ]
    return "\n".join(lines)
