"""Which open regressions a channel has not heard of: one message an event, not one a node, none twice.

An event is a report of `watch.report.summary`: nodes and factors of a cluster that changed within a few days. Alarms of
its nodes may come on different days, and nothing but its nodes and factors tells that it is the same one; so each pair
of them is recorded with the event. A further message about an event is due when it has twice as many nodes as the last
one named. When a pair is no longer in any report, its event is over: the next one is new.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.watch.report.summary import Regression

if TYPE_CHECKING:
    import pandas as pd

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
