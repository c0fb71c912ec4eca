"""Sends the messages that are due: recorded before they are sent and once they are, so that two processes send one."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lepaute.errors import EnvironmentProblem
from lepaute.watch.alerts.due import FAILED, SENT, Message, due, outcome
from lepaute.watch.alerts.message_text import body_of, title_of
from lepaute.watch.report.summary import Regression

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store


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
