"""The health of nodes by a store, and what is done about it: each step recorded, and drains counted, in one change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.text import counted
from lepaute.watch.changelog import ALL, names_of_node
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
from lepaute.watch.named_nodes import Node
from lepaute.watch.notices.absences import LATE_DAYS, absences_of
from lepaute.watch.open_regressions import open_regressions
from lepaute.watch.report.summary import regressions_of
from lepaute.watch.report.texts import change_text

if TYPE_CHECKING:
    import pandas as pd

    from lepaute.store import Store

_COLUMNS = ["cluster", "node", "revision", "action", "reason", "recorded_s"]


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """name : as it was asked for; cluster, node : of the store, where it has one, else "" and the name.

    verdict : before anything was done
    reason  : of a regression, as a scheduler is given it; of UNKNOWN, why nothing is known
    problem : why a node that is to be drained was not, "" otherwise
    """

    name: str
    cluster: str
    node: str
    verdict: Verdict
    reason: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Drains:
    """How nodes are drained. states : of all nodes that share the limit, asked just before; most : of them, by us.

    Only these nodes are drained, since only they are counted.
    drain : (node, reason), raises EnvironmentProblem where the scheduler refuses
    """

    states: Mapping[str, SchedulerState]
    most: int
    drain: Callable[[str, str], None]


def node_health(
    store: "Store", nodes: Mapping[str, Node | None], now_s: float, drains: Drains | None = None
) -> list[NodeHealth]:
    """Of each node, in their order; with `drains` what is due is done and recorded, else nothing is changed.

    nodes : by the names that were asked for, which are the scheduler's; None where the store has none of the name
    Raises InputError where the store has no values, or a node is none of those that share the limit.
    """
    for name, known in nodes.items():
        if drains is not None and known is not None and name not in drains.states:
            raise InputError(
                f"{name} is none of the {len(drains.states)} nodes that --most counts, which `sinfo --Node` lists; "
                "nothing was done"
            )
    every = open_regressions(store)
    found = every.of_nodes([node for node in nodes.values() if node is not None])
    values, rows, silent = found.values, found.rows, _silent(every.values)
    health = []
    for name, known in nodes.items():
        if known is None:
            health.append(NodeHealth(name, "", name, Verdict.UNKNOWN, "the store has no such node"))
            continue
        cluster, node = known
        own = values[(values["cluster"] == cluster) & (values["node"] == node)]
        regressed = rows[(rows["cluster"] == cluster) & rows["node"].isin([node, ALL])]
        unknown = "" if (own["state"] == "done").any() else "no job has left a value"
        unknown = unknown or silent.get(known, "")
        reason = _reason(regressed) or unknown
        state = None if drains is None else drains.states.get(name)

        def judged(
            actions: "pd.DataFrame",
            own: "pd.DataFrame" = own,
            regressed: "pd.DataFrame" = regressed,
            known: Node = known,
            state: SchedulerState | None = state,
            unknown: str = unknown,
        ) -> Verdict:
            verdict = verdict_of(regressed, own, _history(actions, *known), state, now_s)
            return Verdict.UNKNOWN if unknown and verdict is Verdict.HEALTHY else verdict

        if drains is None:
            health.append(NodeHealth(name, cluster, node, judged(store.node_actions()), reason))
        else:
            health.append(_act(store, name, known, reason, judged, drains, now_s))
    return health


def _silent(values: "pd.DataFrame") -> dict[Node, str]:
    """The nodes that have been away while others reported, each with a text that says so."""
    return {
        (cluster, node): f"no value since {each.last}; others reported on {counted(each.days, 'day')} since"
        for each in absences_of(values)
        if each.last is not None and each.days >= LATE_DAYS
        for cluster, node, _ in each.machines
    }


def _act(
    store: "Store",
    name: str,
    known: Node,
    reason: str,
    judged: Callable[["pd.DataFrame"], Verdict],
    drains: Drains,
    now_s: float,
) -> NodeHealth:
    cluster, node = known
    verdicts: list[Verdict] = []
    full: list[int] = []

    def decide(actions: "pd.DataFrame") -> "pd.DataFrame":
        verdict = judged(actions)
        verdicts.append(verdict)
        last = (_history(actions, cluster, node) or [(CLOSED, 0.0)])[-1][0]
        action = _next_action(verdict, last)
        if action == DRAINED:
            drained = len(_ours(actions, cluster, drains, now_s) - {name})
            if drained >= drains.most:
                full.append(drained)
                action = None
        return _rows(actions, cluster, node, action, reason, now_s)

    store.add_node_actions(decide)
    verdict, problem = verdicts[-1], ""
    if full:
        problem = f"not drained: the limit is {counted(drains.most, 'node')}, and Lepaute has drained {full[-1]}"
    elif verdict is Verdict.DRAIN:
        try:
            drains.drain(name, f"{MARK}{reason}")
        except EnvironmentProblem as error:
            problem = f"not drained: {error}"
            store.add_node_actions(lambda rows: _rows(rows, cluster, node, FAILED, problem[:300], now_s))
    return NodeHealth(name, cluster, node, verdict, reason, problem)


def _next_action(verdict: Verdict, last: str) -> str | None:
    if verdict in (Verdict.HEALTHY, Verdict.SHARED):
        return None if last == CLOSED else CLOSED
    if verdict is Verdict.RESUMED:
        return None if last == RESUMED else RESUMED
    return {Verdict.REQUEST: REQUESTED, Verdict.DRAIN: DRAINED}.get(verdict)


def _ours(actions: "pd.DataFrame", cluster: str, drains: Drains, now_s: float) -> set[str]:
    """Nodes that count against the limit, as the scheduler names them: drained by us, or about to be."""
    ours = {name for name, state in drains.states.items() if state.is_ours}
    mine = actions[actions["cluster"] == cluster]
    last = mine.sort_values("revision").drop_duplicates("node", keep="last")
    fresh = last[(last["action"] == DRAINED) & (last["recorded_s"] > now_s - SETTLED_S)]
    return ours.union(*(names_of_node(cluster, node) & drains.states.keys() for node in fresh["node"]))


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
