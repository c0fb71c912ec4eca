"""Taking nodes that have regressed out of service: never without a confirmation, never against an administrator.

A node that regressed needs a confirmation run first. If a job that began after that was asked for shows the change as
well, the node is drained; if it does not, another run is asked for. A node that somebody else drained stays as it is,
and one that was resumed is left alone until its regression is over. Steps are recorded and counted in one change.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial

import numpy as np
import pandas as pd

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.text import counted
from lepaute.measure.schedulers.types import NodeState
from lepaute.watch.changelog import ALL, names_of_node
from lepaute.watch.named_nodes import known_text
from lepaute.watch.notices import notice
from lepaute.watch.notices.absences import LATE_DAYS, absences_of, last_data
from lepaute.watch.open_regressions import open_regressions
from lepaute.watch.report import summary
from lepaute.watch.store import Store
from lepaute.watch.store.tables import NODE_ACTIONS
from lepaute.watch.values import DAY_S, Node, start_of

#: Actions that a store keeps (store.tables.NODE_ACTIONS).
REQUESTED, DRAINED, FAILED, RESUMED, CLOSED = "requested", "drained", "failed", "resumed", "closed"
#: Begins the reason of a drain, by which it is known for ours.
MARK = "lepaute: "
#: A drain is recorded before it is carried out; a scheduler that does not show it so much later was overruled.
SETTLED_S = 300.0
#: Fewest jobs of a node and factor: three have a scatter, which another one is held against.
MIN_JOBS = 4


class Verdict(Enum):
    """Verdict of `lepaute watch health` on a node; DRAIN and REQUEST are what it would do next."""

    HEALTHY = summary.FINE
    REQUEST = "changed: a confirmation run is needed"
    WAITING = "changed: waiting for the confirmation run"
    DRAIN = "changed, and confirmed"
    DRAINED = "drained"
    TAKEN = "changed, and drained by somebody else"
    RESUMED = "changed, and resumed by somebody: left alone"
    SHARED = "changed, as all nodes of its cluster: nothing to drain it for"
    UNLIKE = summary.UNLIKE
    NOT_CONFIRMED = summary.NOT_CONFIRMED
    FAILED = summary.FAILED
    SILENT = summary.SILENT
    UNKNOWN = summary.UNKNOWN

    @property
    def state(self) -> str:
        """In the words of `watch test`, or drained."""
        return re.split("[:,]", self.value)[0]

    @property
    def is_unknown(self) -> bool:
        return self in (Verdict.FAILED, Verdict.SILENT, Verdict.UNKNOWN)

    @property
    def exit_status(self) -> int:
        """Exit status of a command that says so."""
        return summary.EXIT_STATUS[summary.UNKNOWN] if self.is_unknown else summary.EXIT_STATUS.get(self.value, 1)


def is_ours(state: NodeState) -> bool:
    """Whether it was us who drained the node."""
    return state.out_of_service and state.reason.startswith(MARK)


def verdict_of(
    regressions: "pd.DataFrame",
    values: "pd.DataFrame",
    actions: Sequence[tuple[str, float]],
    scheduler: NodeState | None,
    now_s: float,
    calm: Verdict = Verdict.HEALTHY,
) -> Verdict:
    """regressions : rows of watch.alarms.standing, of one node or of all; values : its factor values

    actions : (action, recorded_s) of the node, the earliest first
    scheduler : None if it was not asked; calm : of a node without an open regression
    """
    if regressions.empty:
        return calm if (values["state"] == "done").any() else Verdict.UNKNOWN
    own = regressions[regressions["node"] != ALL]
    if own.empty:
        return Verdict.SHARED
    action, recorded_s = actions[-1] if actions else (CLOSED, 0.0)
    if action == RESUMED:
        return Verdict.RESUMED
    if action == DRAINED:
        if scheduler is None or is_ours(scheduler) or now_s - recorded_s < SETTLED_S:
            return Verdict.DRAINED
        return Verdict.TAKEN if scheduler.out_of_service else Verdict.RESUMED
    if scheduler is not None and scheduler.out_of_service:
        return Verdict.DRAINED if is_ours(scheduler) else Verdict.TAKEN
    requested_s = None
    for name, at_s in actions:  # since the last regression was closed
        requested_s = None if name == CLOSED else at_s if name == REQUESTED else requested_s
    if requested_s is None:
        return Verdict.REQUEST
    confirmed = _confirmed(own, values, requested_s)
    return Verdict.WAITING if confirmed is None else Verdict.DRAIN if confirmed else Verdict.REQUEST


def _confirmed(regressions: "pd.DataFrame", values: "pd.DataFrame", since_s: float) -> bool | None:
    """Whether the latest job that began since then still shows one of the regressions; None if there is no job.

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


def limit_of(text: str, option: str) -> Callable[[int], int]:
    """Limit on a partition's nodes, such as 2 or 5%, rounded down; raises InputError for anything else."""
    word = text.strip()
    try:
        if word.endswith("%"):
            percent = float(word[:-1])
            if 0.0 <= percent <= 100.0:
                return lambda nodes: int(nodes * percent / 100.0)
        elif word.isascii() and word.isdigit():
            number = int(word)
            return lambda _: number
    except ValueError:
        pass
    raise InputError(f"{option} is {text[:40]!r}; write a number of nodes such as 2, or a share such as 5%")


def requested_runs(actions: "pd.DataFrame", cluster: str) -> dict[str, float]:
    """Node -> when a run of it was asked for, seconds since the epoch, where nothing was done about it since."""
    last = _last_actions(actions, cluster)
    rows = last[last["action"] == REQUESTED]
    return dict(zip(rows["node"], rows["recorded_s"].astype(float), strict=True))


def _last_actions(actions: "pd.DataFrame", cluster: str) -> "pd.DataFrame":
    return actions[actions["cluster"] == cluster].sort_values("revision").drop_duplicates("node", keep="last")


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """name : as it was asked for; cluster, node : of the store, where it has one, else "" and the name.

    verdict : before anything was done
    reason  : of a regression, as a scheduler is given it; why nothing is known
    problem : why a node that is to be drained was not, "" otherwise
    worth_a_look : lines of the second tier, which say nothing of the verdict
    """

    name: str
    cluster: str
    node: str
    verdict: Verdict
    reason: str = ""
    problem: str = ""
    worth_a_look: summary.WorthALook = field(default_factory=summary.WorthALook)


@dataclass(frozen=True, slots=True)
class Drains:
    """How nodes are drained. states : of all nodes that share the limit, asked just before; most : of them, by us.

    Only these nodes are drained, since only they are counted.
    drain : (node, reason), raises EnvironmentProblem if the scheduler refuses
    """

    states: Mapping[str, NodeState]
    most: int
    drain: Callable[[str, str], None]


def node_health(
    store: "Store", nodes: Mapping[str, Node | None], now_s: float, drains: Drains | None = None
) -> list[NodeHealth]:
    """Health of each node, in their order; with `drains` what is due is done and recorded, else nothing is changed.

    nodes : by the names that were asked for, which are the scheduler's; None if the store has none of the name
    Raises InputError if the store has no values, or a node is none of those that share the limit.
    """
    for name, known in nodes.items():
        if drains is not None and known is not None and name not in drains.states:
            raise InputError(
                f"{name} is none of the {len(drains.states)} nodes that --most counts, which `sinfo --Node` lists; "
                "nothing was done"
            )
    every, chosen = open_regressions(store), [node for node in nodes.values() if node is not None]
    found = every.of_nodes(chosen)
    away = {
        (cluster, node): (Verdict(summary.absence_state(absence)), summary.absence_text(absence, ""))
        for absence in absences_of(every.values)
        if absence.last is not None and absence.days >= LATE_DAYS
        for cluster, node, _ in absence.machines
    }
    last, late = last_data(every.values, now_s)
    peers = every.values[every.values["cluster"].isin({cluster for cluster, _ in chosen})]
    others = notice.worse_first([*notice.notices(peers, every.changelog), *notice.unconfirmed_changes(every, chosen)])
    seen = {least.cluster: least for least in notice.least_seen(every, {cluster for cluster, _ in chosen})}
    health = []
    for name, known in nodes.items():
        if known is None:
            there = known_text(every.values[["cluster", "node"]].itertuples(index=False, name=None))
            health.append(NodeHealth(name, "", name, Verdict.UNKNOWN, f"no results; the store has {there}"))
            continue
        cluster, node = known
        own = found.values[(found.values["cluster"] == cluster) & (found.values["node"] == node)]
        regressed = found.rows[(found.rows["cluster"] == cluster) & found.rows["node"].isin([node, ALL])]
        state = None if drains is None else drains.states.get(name)
        of_node = [each for each in others if each.cluster == cluster and node in (each.node, *each.nodes)]
        other = Verdict.HEALTHY, seen[cluster].text if cluster in seen else ""
        if (few := _few(own)) or (cluster in seen and seen[cluster].is_unknown):
            other = Verdict.UNKNOWN, few or seen[cluster].reason[0]
        for verdict, kind in ((Verdict.NOT_CONFIRMED, notice.UNCONFIRMED), (Verdict.UNLIKE, notice.UNLIKE_PEERS)):
            other = next(((verdict, each.text) for each in of_node if each.kind == kind), other)
        if known in away:
            other = away[known]
        elif late:
            ago = counted(int(now_s // DAY_S) - int(start_of(last) // DAY_S), "day")
            other = Verdict.UNKNOWN, f"no node has had a value since {last}, for {ago}"
        test = partial(verdict_of, regressed, own, scheduler=state, now_s=now_s, calm=other[0])
        reason = _reason(regressed) or other[1]
        if drains is None:
            health.append(NodeHealth(name, cluster, node, test(_history(store.node_actions(), *known)), reason))
        else:
            health.append(_act(store, name, known, reason, test, drains, now_s))
    looks = notice.worth_a_look(found)
    lines = [tuple(look for look in looks if (look.cluster, look.node) == known) for known in nodes.values()]
    return [replace(node, worth_a_look=summary.WorthALook(of)) for node, of in zip(health, lines, strict=True)]


def _few(values: "pd.DataFrame") -> str:
    """Why too few jobs of a node ended well to tell a change, "" if they are enough."""
    done = values[values["state"] == "done"]
    jobs = int(done.groupby(["cpu", "factor", "stratum"], observed=True).size().max()) if len(done) else 0
    if jobs >= MIN_JOBS:
        return ""
    return f"{counted(jobs, 'job')} of a factor, and {MIN_JOBS} are needed" if jobs else "no job has left a value"


def _act(
    store: "Store",
    name: str,
    known: Node,
    reason: str,
    test: Callable[[Sequence[tuple[str, float]]], Verdict],
    drains: Drains,
    now_s: float,
) -> NodeHealth:
    verdicts: list[Verdict] = []
    full: list[int] = []

    def decide(actions: "pd.DataFrame") -> "pd.DataFrame":
        history = _history(actions, *known)
        verdicts.append(test(history))
        action = _next_action(verdicts[-1], history[-1][0] if history else CLOSED)
        if action == DRAINED:
            drained = len(_ours(actions, known[0], drains, now_s) - {name})
            if drained >= drains.most:
                full.append(drained)
                action = None
        return _rows(actions, *known, action, reason, now_s)

    store.add_node_actions(decide)
    verdict, problem = verdicts[-1], ""
    if full:
        problem = f"not drained: the limit is {counted(drains.most, 'node')}, and Lepaute has drained {full[-1]}"
    elif verdict is Verdict.DRAIN:
        try:
            drains.drain(name, f"{MARK}{reason}")
        except EnvironmentProblem as error:
            problem = f"not drained: {error}"
            store.add_node_actions(lambda rows: _rows(rows, *known, FAILED, problem[:300], now_s))
    return NodeHealth(name, *known, verdict, reason, problem)


def _next_action(verdict: Verdict, last: str) -> str | None:
    if verdict in (Verdict.HEALTHY, Verdict.SHARED, Verdict.UNLIKE, Verdict.NOT_CONFIRMED):
        return None if last == CLOSED else CLOSED
    if verdict is Verdict.RESUMED:
        return None if last == RESUMED else RESUMED
    return {Verdict.REQUEST: REQUESTED, Verdict.DRAIN: DRAINED}.get(verdict)


def _ours(actions: "pd.DataFrame", cluster: str, drains: Drains, now_s: float) -> set[str]:
    """Nodes that count against the limit, as the scheduler names them: drained by us, or about to be."""
    ours = {name for name, state in drains.states.items() if is_ours(state)}
    last = _last_actions(actions, cluster)
    fresh = last[(last["action"] == DRAINED) & (last["recorded_s"] > now_s - SETTLED_S)]
    return ours.union(*(names_of_node(cluster, node) & drains.states.keys() for node in fresh["node"]))


def _history(actions: "pd.DataFrame", cluster: str, node: str) -> list[tuple[str, float]]:
    rows = actions[(actions["cluster"] == cluster) & (actions["node"] == node)].sort_values("revision")
    return list(zip(rows["action"], rows["recorded_s"].astype(float), strict=True))


def _rows(
    actions: "pd.DataFrame", cluster: str, node: str, action: str | None, reason: str, now_s: float
) -> "pd.DataFrame":
    count = len(_history(actions, cluster, node))
    rows = [] if action is None else [(cluster, node, count + 1, action, reason, now_s)]
    return pd.DataFrame(rows, columns=list(NODE_ACTIONS.columns))


def _reason(rows: "pd.DataFrame") -> str:
    """dgemm_rate_flops -10.2 %, since 2026-02-10; the largest report of the node."""
    if rows.empty:
        return ""
    report = summary.regressions_of(rows)[0]
    changes = ", ".join(summary.change_text(change) for change in report.changes[:2])
    return f"{changes}, {summary.since_text(report)}"
