"""Which node is tested next: requested ones first, then those whose last result is oldest."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lepaute.measure.idle_nodes.records import SubmittedTest

#: A test that failed is not repeated at once: the next one would fail as well, and other nodes would wait.
RETRY_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """last_s : when the node's last successful job began, None: never; requested_s : since when a run is asked for."""

    last_s: float | None = None
    requested_s: float | None = None


def due_nodes(
    nodes: Collection[str],
    histories: Mapping[str, NodeHistory],
    records: Sequence[SubmittedTest],
    every_s: float,
    now_s: float,
    seed: int,
) -> list[str]:
    """The nodes to test, the most urgent first; nodes that are as urgent in random order.

    A node is due `every_s` after its last result began, or once a run of it is requested. After a test that failed it
    is not due for RETRY_S, and while a test of it has not ended, not at all.
    """
    shuffled = sorted(nodes)
    random.Random(seed).shuffle(shuffled)
    latest = {record.node: record for record in records}  # of several the last
    due = []
    for node in shuffled:
        history, record = histories.get(node, NodeHistory()), latest.get(node)
        last_s = history.last_s
        if record is not None:
            if record.outcome == "submitted":
                continue
            if record.outcome == "failed" and now_s < (record.ended_s or 0.0) + RETRY_S:
                continue
            if record.outcome in ("done", "not stored"):
                last_s = max(last_s or 0.0, record.submitted_s)
        requested_s = history.requested_s
        if requested_s is not None and (last_s is None or last_s < requested_s):
            due.append(((0, requested_s), node))
        elif last_s is None or last_s + every_s <= now_s:
            due.append(((1, last_s or 0.0), node))
    return [node for _, node in sorted(due, key=lambda one: one[0])]
