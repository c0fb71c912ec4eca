"""Changes that the data show in the end, and no alarm has confirmed: what is proposed as an event is told as well."""

from collections.abc import Collection
from math import inf

from lepaute.watch.alarms.steps import steps_of
from lepaute.watch.named_nodes import Node
from lepaute.watch.notices.notice import UNCONFIRMED, Notice
from lepaute.watch.open_regressions import OpenRegressions
from lepaute.watch.proposals.platform_events import propose
from lepaute.watch.proposals.proposed_event import DAYS
from lepaute.watch.proposals.standing_events import standing_events
from lepaute.watch.values import check_values


def unconfirmed_changes(found: OpenRegressions, nodes: Collection[Node] | None = None) -> tuple[Notice, ...]:
    """A notice for each proposal of a lasting change, better or worse, that no alarm has and no event is later than.

    found : of all nodes, who are asked together; nodes : (cluster, node) that are of interest, all by default
    """
    import pandas as pd

    steps = steps_of(found.judged.alarms, found.changelog, check_values(found.values))
    confirmed = pd.DataFrame(steps, columns=found.judged.alarms.columns)
    reported = standing_events(confirmed, found.values)
    notices = []
    for event in propose(found.values, found.changelog, standing=confirmed):
        resets = found.changelog.resets_s(event.nodes).values()
        over = all(max(each, default=-inf) > event.before_s for each in resets)
        wanted = nodes is None or not set(nodes).isdisjoint(event.nodes)
        if event.shape == DAYS or event in reported or over or not wanted:
            continue
        cluster, first = event.nodes[0]
        text = f"{event.nodes_text}, since {event.date}: {event.reason}; not confirmed (lepaute watch events propose)"
        node = first if len(event.nodes) == 1 else ""
        change = event.factors[0]
        since_s, p = event.before_s, event.p_value
        notices.append(Notice(UNCONFIRMED, cluster, node, -1, change.factor, since_s, change.size, p, text))
    return tuple(notices)
