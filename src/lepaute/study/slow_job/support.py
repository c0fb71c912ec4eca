"""What a store of `lepaute watch` knows of the nodes of a run on its day."""

import datetime as dt
from pathlib import Path

from lepaute import watch as lepaute_watch
from lepaute.errors import InputError
from lepaute.simulate.trace import Trace
from lepaute.watch.changelog import Event
from lepaute.watch.named_nodes import nodes_named
from lepaute.watch.open_regressions import open_regressions
from lepaute.watch.report.summary import change_text, regression_nodes, since_text

#: Events of so many days before the run are named.
EVENT_DAYS = 30


def supported(trace: Trace, store: str | Path) -> tuple[str, ...]:
    """Regressions that are open for the nodes of the run, and events of the month before it, a line each.

    Raises InputError where the run does not name its nodes, or the store is not there or has no values.
    """
    hosts = [str(host) for host in trace.metadata.get("hosts") or ()]
    if not hosts:
        raise InputError("store is of no use: the recording does not name its nodes")
    day = _day_of(trace)
    with lepaute_watch.open(store, create=False) as watch:
        known = watch.nodes()
        names = {
            host: sorted(node for text in (host, host.split(".")[0]) for node in _named(known, text)) for host in hosts
        }
        nodes = sorted({node for nodes_of in names.values() for node in nodes_of})
        lines = [f"it has no values of {host}" for host in hosts if not names[host]]
        if not nodes:
            return tuple(lines)
        reports = open_regressions(watch.store).of_nodes(nodes).reports
        lines += [
            f"{regression_nodes(report)}: {change_text(report.changes[0])} {since_text(report)}"
            for report in reports
            if day is None or report.since <= day
        ]
        lines += [
            f"{event.date}: {event.reason} ({event.nodes.text})"
            for event in watch.changelog().events
            if _is_recent(event, day) and event.nodes.among(nodes)
        ]
    return tuple(lines) or (f"nothing is known to be worse on {', '.join(hosts)}",)


def _named(known: "frozenset[tuple[str, str]]", name: str) -> tuple[tuple[str, str], ...]:
    try:
        return nodes_named(known, name).get(name, ())
    except InputError:  # a host may be called what no set of nodes can be
        return ()


def _day_of(trace: Trace) -> dt.date | None:
    try:
        return dt.datetime.fromisoformat(str(trace.metadata.get("created"))).astimezone(dt.UTC).date()
    except ValueError:
        return None


def _is_recent(event: Event, day: dt.date | None) -> bool:
    return day is not None and day - dt.timedelta(days=EVENT_DAYS) <= event.date <= day
