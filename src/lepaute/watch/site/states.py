"""The map of a cluster: each node and factor in one state, so that a glance at thousands of nodes says where to look.

What is not known is not fine: a factor that a node no longer has is silent, and one with too few jobs since an event is
unknown. The states are those of the lists of `lepaute watch test`; nothing is decided here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lepaute.kit.text import natural_order
from lepaute.watch.changelog import Inventory
from lepaute.watch.factors.dgemm import MODEL_FACTORS, RESIDUAL_FACTORS
from lepaute.watch.notices.absences import Absence, absences_of
from lepaute.watch.notices.notice import SMALL, UNLIKE_PEERS, Notice
from lepaute.watch.report.factor_history import FactorRows
from lepaute.watch.report.models import title_of
from lepaute.watch.report.summary import NOT_CONFIRMED, UNLIKE, absence_text, recent_s

#: The weightiest first: name, letter in a large cell. Their colours are COLOURS.
STATES = {
    "changed": "C", "failed": "F", "silent": "·", "unlike": "U", "unconfirmed": "N", "suspicious": "?", "unknown": "–",
    "fine": "",
}  # fmt: skip
#: State -> the larger the weightier.
WEIGHT = {state: len(STATES) - at for at, state in enumerate(STATES)}
#: In words: those of `lepaute watch test` and `health`.
IN_WORDS = {state: state for state in STATES} | {"unlike": UNLIKE, "unconfirmed": NOT_CONFIRMED}
#: Up to this many nodes cells have names and letters; up to this many they are large enough to be hit by a finger.
NAMED, MEDIUM = 64, 400
COEFFICIENTS = frozenset((*MODEL_FACTORS, *RESIDUAL_FACTORS))


@dataclass(slots=True)
class StateMap:
    """rows : title and page of each factor or model; of_node : node -> state of each row, "" if it has no value.

    lost : factors that machines no longer have, though they report others, as lines of text
    """

    rows: list[tuple[str, str]] = field(default_factory=list)
    of_node: dict[str, list[str]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def worst(self, node: str) -> tuple[str, list[str]]:
        """The weightiest of its states, and what is in it."""
        own = self.of_node[node]
        worst = max((state for state in own if state), key=WEIGHT.__getitem__, default="unknown")
        return worst, [title for (title, _), state in zip(self.rows, own, strict=True) if state == worst]


def _factor_states(factor: FactorRows, away: Sequence[Absence], looks: "Iterable[Notice]") -> dict[str, str]:
    """Node -> its state by one factor: the weightiest of its CPUs.

    away : who fails or does not report, of this factor; looks: lines and notices that name a node
    """
    rows = factor.rows
    of_cluster = [look for look in looks if look.cluster == factor.cluster]
    calm = "unknown" if any(look.is_unknown for look in of_cluster) else "fine"
    found = dict.fromkeys(rows["node"].astype(str).unique(), calm)
    last = rows[~rows["outlier"]].drop_duplicates(["node", "cpu"], keep="last")
    untested = set(last.loc[last["p_value"].isna(), "node"].astype(str)) | (set(found) - set(last["node"].astype(str)))
    suspects = factor.suspects
    if len(rows):
        suspects = suspects[suspects["started_s"] >= recent_s(float(rows["started_s"].max()))]
    of_factor = [look for look in of_cluster if look.factor in factor.names]
    worse = [look for look in of_factor if look.is_worse or look.kind == SMALL]
    for state, nodes in (
        ("unknown", untested),
        ("suspicious", set(suspects["node"].astype(str))),
        ("unconfirmed", set[str]().union(*(look.nodes or (look.node,) for look in worse))),
        ("unlike", {look.node for look in worse if look.kind == UNLIKE_PEERS}),
        ("silent", {node for each in away if not each.jobs for _, node, _ in each.machines}),
        ("failed", {node for each in away if each.jobs for _, node, _ in each.machines}),
        ("changed", set(rows.loc[rows["regressed"], "node"].astype(str))),
    ):
        found |= dict.fromkeys(nodes & found.keys(), state)
    return found


@dataclass(frozen=True, slots=True)
class FactorStates:
    """names : of the factors of a model, or its own; page : its page; of_node : node -> its state

    lost : as in StateMap
    """

    name: str
    names: tuple[str, ...]
    page: str
    of_node: Mapping[str, str]
    lost: tuple[str, ...] = ()


def states_of(
    factor: FactorRows, page: str, away: Sequence[Absence], looks: "Sequence[Notice]", before: Sequence[FactorStates]
) -> FactorStates:
    """States of a factor, or of a model, which also stands for its coefficients.

    away : of whole machines; before : of all single factors, for a model
    """
    if factor.is_vector:
        own = _factor_states(factor, (), looks)
        parts = [each.of_node for each in before if each.name in factor.names]
        weightiest = {
            node: max((own[node], *(part[node] for part in parts if node in part)), key=WEIGHT.__getitem__)
            for node in own
        }
        return FactorStates(factor.name, factor.names, page, weightiest)
    lacking = absences_of(factor.rows.assign(cluster=factor.cluster))
    machines_away = {machine for each in away for machine in each.machines}
    lost = (each for each in lacking if not machines_away.issuperset(each.machines))
    lines = tuple(f"{factor.name} of {absence_text(each)}" for each in lost)
    return FactorStates(factor.name, factor.names, page, _factor_states(factor, lacking, looks), lines)


def state_map(factors: Sequence[FactorStates]) -> StateMap:
    """State map of a cluster: a row for each factor, and one for each model."""
    folded = {name for factor in factors if len(factor.names) > 1 for name in factor.names if name in COEFFICIENTS}
    shown = [factor for factor in factors if factor.name not in folded]
    nodes = sorted({node for factor in factors for node in factor.of_node}, key=natural_order)
    return StateMap(
        [(title_of(each.name), each.page) for each in shown],
        {node: [each.of_node.get(node, "") for each in shown] for node in nodes},
        [line for factor in factors for line in factor.lost],
    )


def drawn(found: StateMap, number: int, cluster: str, pages: Mapping[str, str], inventory: Inventory) -> dict[str, Any]:
    """The map as the template has it: a strip a node with a cell a factor, strips of a rack side by side.

    number : of the map on its page; pages: node -> page
    Strips that look alike share a style, so that a page of thousands stays small.
    """
    styles: dict[tuple[str, ...], str] = {}
    size = "named" if len(found.of_node) <= NAMED else "medium" if len(found.of_node) <= MEDIUM else "small"
    kind, groups = _grouped(list(found.of_node), cluster, inventory)
    counts = dict.fromkeys(STATES, 0)
    strips: list[dict[str, Any]] = []
    for title, nodes in groups:
        own = []
        for node in nodes:
            states = tuple(found.of_node[node])
            counts[found.worst(node)[0]] += 1
            said = ", ".join(
                f"{name}: {IN_WORDS[state]}"
                for (name, _), state in zip(found.rows, states, strict=True)
                if state not in ("", "fine")
            )
            own.append(
                {
                    "name": node,
                    "page": pages[node],
                    "style": styles.setdefault(states, f"s{len(styles)}"),
                    "cells": [(state, STATES.get(state, "")) for state in states],
                    "said": f"{node}: {said or IN_WORDS['fine']}",
                }
            )
        strips.append({"title": title, "nodes": own})
    return {
        "id": number,
        "cluster": cluster,
        "size": size,
        "rows": [{"title": title, "page": page} for title, page in found.rows],
        "kind": kind,
        "groups": strips,
        "styles": [(name, _gradient(states)) for states, name in styles.items()],
        "counts": [(state, IN_WORDS[state], count) for state, count in counts.items() if count],
        "total": len(found.of_node),
    }


def _gradient(states: tuple[str, ...]) -> str:
    """A background of a cell a state, with a gap of a pixel below each."""
    stops = []
    for at, state in enumerate(states):
        colour = "transparent" if not state else f"var(--{state}-cell)"
        stops.append(f"{colour} calc(var(--h)*{at}) calc(var(--h)*{at + 1} - 1px)")
        stops.append(f"transparent calc(var(--h)*{at + 1} - 1px) calc(var(--h)*{at + 1})")
    return ",".join(stops)


def _grouped(nodes: list[str], cluster: str, inventory: Inventory) -> tuple[str, list[tuple[str, list[str]]]]:
    """The kind of group that parts the nodes into the fewest groups, two at least, and its groups; ("", one group)."""
    best: tuple[str, dict[str, list[str]]] | None = None
    for kind in inventory.groups:
        groups: dict[str, list[str]] = {}
        for node in nodes:
            groups.setdefault(inventory.group_of(kind, cluster, node) or "", []).append(node)
        if len(groups) >= 2 and any(groups) and (best is None or len(groups) < len(best[1])):
            best = kind, groups
    if best is None:
        return "", [("", nodes)]
    kind, groups = best
    names = sorted(groups, key=lambda name: (not name, natural_order(name)))
    return kind, [(f"{kind} {name}" if name else f"no {kind} known", groups[name]) for name in names]
