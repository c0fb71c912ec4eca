"""The health of nodes by a store, and what is done about it: each step recorded, and drains counted, in one change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.errors import EnvironmentProblem
from lepaute.watch.alerts.open_regressions import open_regressions
from lepaute.watch.drains.decision import (
    CLOSED,
    DRAINED,
    FAILED,
    MARK,
    REQUESTED,
    RESUMED,
    SETTLED_S,
    SchedulerState,
    Verdict,
    verdict_of,
)
from lepaute.watch.report.summary import regressions_of
from lepaute.watch.report.texts import change_text

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store

_COLUMNS = ["cluster", "node", "revision", "action", "reason", "recorded_s"]


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """verdict : before anything was done; reason : of a regression, as a scheduler is given it.

    problem : why a node that is to be drained was not, "" otherwise
    """

    cluster: str
    node: str
    verdict: Verdict
    reason: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Drains:
    """How nodes are drained. states : of all nodes that share the limit, asked just before; most : of them, by us.

    drain : (node, reason), raises EnvironmentProblem where the scheduler refuses
    """

    states: Mapping[str, SchedulerState]
    most: int
    drain: Callable[[str, str], None]


def node_health(
    store: "Store", cluster: str | None, nodes: Sequence[str], now_s: float, drains: Drains | None = None
) -> list[NodeHealth]:
    """Of each node, in their order; with `drains` what is due is done and recorded, else nothing is changed."""
    found = open_regressions(store, nodes)
    values, rows = found.values, found.rows
    if cluster is not None:
        values, rows = values[values["cluster"] == cluster], rows[rows["cluster"] == cluster]
    health = []
    for node in nodes:
        own, regressed = values[values["node"] == node], rows[rows["node"] == node]
        of = str(own["cluster"].iloc[0]) if len(own) else cluster or ""
        reason = _reason(regressed)

        def judged(
            actions: "pd.DataFrame",
            own: "pd.DataFrame" = own,
            regressed: "pd.DataFrame" = regressed,
            of: str = of,
            node: str = node,
        ) -> Verdict:
            state = None if drains is None else drains.states.get(node)
            return verdict_of(regressed, own, _history(actions, of, node), state, now_s)

        if drains is None:
            health.append(NodeHealth(of, node, judged(store.node_actions()), reason))
        else:
            health.append(_act(store, of, node, reason, judged, drains, now_s))
    return health


def _act(
    store: "Store",
    cluster: str,
    node: str,
    reason: str,
    judged: Callable[["pd.DataFrame"], Verdict],
    drains: Drains,
    now_s: float,
) -> NodeHealth:
    verdicts: list[Verdict] = []
    full: list[bool] = []

    def decide(actions: "pd.DataFrame") -> "pd.DataFrame":
        verdict = judged(actions)
        verdicts.append(verdict)
        last = (_history(actions, cluster, node) or [(CLOSED, 0.0)])[-1][0]
        action = _next_action(verdict, last)
        if action == DRAINED and len(_ours(actions, drains, now_s) - {node}) >= drains.most:
            full.append(True)
            action = None
        return _rows(actions, cluster, node, action, reason, now_s)

    store.add_node_actions(decide)
    verdict, problem = verdicts[-1], ""
    if full:
        problem = f"not drained: {drains.most} nodes are, which is the limit"
    elif verdict is Verdict.DRAIN:
        try:
            drains.drain(node, f"{MARK}{reason}")
        except EnvironmentProblem as error:
            problem = f"not drained: {error}"
            store.add_node_actions(lambda rows: _rows(rows, cluster, node, FAILED, problem[:300], now_s))
    return NodeHealth(cluster, node, verdict, reason, problem)


def _next_action(verdict: Verdict, last: str) -> str | None:
    if verdict is Verdict.HEALTHY:
        return None if last == CLOSED else CLOSED
    if verdict is Verdict.RESUMED:
        return None if last == RESUMED else RESUMED
    return {Verdict.REQUEST: REQUESTED, Verdict.DRAIN: DRAINED}.get(verdict)


def _ours(actions: "pd.DataFrame", drains: Drains, now_s: float) -> set[str]:
    """Nodes that count against the limit: drained by us as the scheduler says, or recorded a moment ago."""
    ours = {name for name, state in drains.states.items() if state.is_ours}
    last = actions.sort_values("revision").drop_duplicates(["cluster", "node"], keep="last")
    fresh = last[(last["action"] == DRAINED) & (last["recorded_s"] > now_s - SETTLED_S)]
    return ours | (set(fresh["node"]) & drains.states.keys())


def _history(actions: "pd.DataFrame", cluster: str, node: str) -> list[tuple[str, float]]:
    mine = actions[(actions["cluster"] == cluster) & (actions["node"] == node)].sort_values("revision")
    return list(zip(mine["action"], mine["recorded_s"].astype(float), strict=True))


def _rows(
    actions: "pd.DataFrame", cluster: str, node: str, action: str | None, reason: str, now_s: float
) -> "pd.DataFrame":
    import pandas as pd

    count = len(_history(actions, cluster, node))
    rows = [] if action is None else [(cluster, node, count + 1, action, reason, now_s)]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _reason(rows: "pd.DataFrame") -> str:
    """dgemm_rate_flops -10.2 %, since 2026-02-10; the largest report of the node."""
    if rows.empty:
        return ""
    report = regressions_of(rows)[0]
    changes = ", ".join(change_text(change) for change in report.changes[:2])
    return f"{changes}, since {report.since}"
