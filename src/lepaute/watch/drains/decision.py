"""What is to be done about a node: decided from its regressions, what was done before, and what its scheduler says.

A node that regressed needs a confirmation run first. If a job that began after that was asked for shows the change as
well, the node is drained; if it does not, another run is asked for. A node that somebody else drained stays as it is,
and one that somebody resumed is left alone until its regression is over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from lepaute.watch.changelog import ALL

if TYPE_CHECKING:
    import pandas as pd

#: Actions that a store keeps (store.tables.NODE_ACTIONS).
REQUESTED, DRAINED, FAILED, RESUMED, CLOSED = "requested", "drained", "failed", "resumed", "closed"
#: Begins the reason of a drain, by which it is known for ours.
MARK = "lepaute: "
#: A drain is recorded before it is carried out; a scheduler that does not show it so much later was overruled.
SETTLED_S = 300.0


class Verdict(Enum):
    """What `lepaute watch health` says of a node; DRAIN and REQUEST are what it would do next."""

    HEALTHY = "no open regression"
    REQUEST = "regressed: a confirmation run is needed"
    WAITING = "regressed: waiting for the confirmation run"
    DRAIN = "regressed, and confirmed"
    DRAINED = "drained"
    TAKEN = "regressed, and drained by somebody else"
    RESUMED = "regressed, and resumed by somebody: left alone"
    SHARED = "regressed, as all nodes of its cluster: nothing to drain it for"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """Of a node: whether it takes no new jobs (drained or down), and the reason that is given for it."""

    out_of_service: bool
    reason: str = ""

    @property
    def is_ours(self) -> bool:
        return self.out_of_service and self.reason.startswith(MARK)


def verdict_of(
    regressions: "pd.DataFrame",
    values: "pd.DataFrame",
    actions: Sequence[tuple[str, float]],
    scheduler: SchedulerState | None,
    now_s: float,
) -> Verdict:
    """regressions : rows of watch.alarms.standing, of one node or of all; values : its factor values

    actions : (action, recorded_s) of the node, the earliest first
    scheduler : None where it was not asked
    """
    if regressions.empty:
        return Verdict.HEALTHY if (values["state"] == "done").any() else Verdict.UNKNOWN
    own = regressions[regressions["node"] != ALL]
    if own.empty:
        return Verdict.SHARED
    action, recorded_s = actions[-1] if actions else (CLOSED, 0.0)
    if action == RESUMED:
        return Verdict.RESUMED
    if action == DRAINED:
        if scheduler is None or scheduler.is_ours or now_s - recorded_s < SETTLED_S:
            return Verdict.DRAINED
        return Verdict.TAKEN if scheduler.out_of_service else Verdict.RESUMED
    if scheduler is not None and scheduler.out_of_service:
        return Verdict.DRAINED if scheduler.is_ours else Verdict.TAKEN
    requested_s = [at_s for name, at_s in _since_closed(actions) if name == REQUESTED]
    if not requested_s:
        return Verdict.REQUEST
    confirmed = _confirmed(own, values, requested_s[-1])
    return Verdict.WAITING if confirmed is None else Verdict.DRAIN if confirmed else Verdict.REQUEST


def _since_closed(actions: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    closed = [place for place, (action, _) in enumerate(actions) if action == CLOSED]
    return list(actions[closed[-1] + 1 if closed else 0 :])


def _confirmed(regressions: "pd.DataFrame", values: "pd.DataFrame", since_s: float) -> bool | None:
    """Whether the latest job that began since then still shows one of the regressions; None where there is no job.

    A value shows it if it is nearer to what the alarm reported than to the level before.
    """
    later = values[(values["started_s"] >= since_s) & (values["state"] == "done")]
    seen: list[bool] = []
    for row in regressions.to_dict("records"):
        same = later[(later[["cpu", "factor", "stratum"]] == [row["cpu"], row["factor"], row["stratum"]]).all(axis=1)]
        if len(same):
            latest = float(same.sort_values("started_s")["value"].iloc[-1])
            reported = row["before"] * (1 + row["size"])
            seen.append(bool(np.abs(latest - reported) < np.abs(latest - row["before"])))
    return any(seen) if seen else None
