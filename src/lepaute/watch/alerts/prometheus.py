"""The state of a store as a text file for the textfile collector of Prometheus' node exporter."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.kit.files import write_whole
from lepaute.watch.notices.absences import absences_of
from lepaute.watch.open_regressions import OpenRegressions

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_PREFIX = "lepaute_watch_"


def write_prometheus(found: OpenRegressions, path: Path, now_s: float) -> None:
    """Writes the file whole; raises OSError where it cannot be written."""
    from prometheus_client import generate_latest

    write_whole(path, generate_latest(registry_of(found, now_s)))


def is_state(path: Path) -> bool:
    """Whether the file is one that `write_prometheus` has written."""
    first = f"# HELP {_PREFIX}".encode()
    try:
        with path.open("rb") as file:
            return file.read(len(first)) == first
    except OSError:
        return False


def registry_of(found: OpenRegressions, now_s: float) -> "CollectorRegistry":
    """Gauges; their help says what they are. Relative changes are fractions: -0.1 is 10 % less."""
    from prometheus_client import CollectorRegistry, Gauge

    registry = CollectorRegistry()

    def gauge(name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}{name}", help_text, labels, registry=registry)

    regressions = gauge("open_regressions", "Open regressions: events, whatever their number of nodes", "cluster")
    nodes = gauge("nodes", "Nodes with factor values", "cluster")
    silent = gauge("silent_nodes", "Nodes that fail or do not report", "cluster")
    latest = gauge("latest_value_timestamp_seconds", "Start of the latest job with a value", "cluster")
    change = gauge("regression_ratio", "Relative change of an open regression", "cluster", "node", "cpu", "factor")
    for cluster, rows in found.values.groupby("cluster"):
        regressions.labels(cluster).set(sum(report.cluster == cluster for report in found.reports))
        nodes.labels(cluster).set(rows["node"].nunique())
        silent.labels(cluster).set(0)
        latest.labels(cluster).set(rows.loc[rows["state"] == "done", "started_s"].max())
    quiet: dict[str, set[str]] = {}
    for absence in absences_of(found.values):
        for cluster, node, _ in absence.machines:
            quiet.setdefault(cluster, set()).add(node)
    for cluster, names in quiet.items():
        silent.labels(cluster).set(len(names))
    for row in found.rows.to_dict("records"):
        change.labels(row["cluster"], row["node"], row["cpu"], row["factor"]).set(row["size"])
    if found.last_day:
        midnight = dt.datetime.combine(dt.date.fromisoformat(found.last_day), dt.time(), dt.UTC)
        gauge("judged_day_timestamp_seconds", "The last day that was judged").set(midnight.timestamp())
    gauge("written_timestamp_seconds", "When this file was written").set(now_s)
    return registry
