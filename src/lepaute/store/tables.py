"""The tables of a store: names, columns, types and keys, declared here for all back ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow

#: Of what a store holds and how; see `migrations`.
VERSION = 5

#: Only a real may be absent.
Kind = Literal["text", "integer", "real", "flag"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table, sorted by its key, which is unique."""

    name: str
    columns: Mapping[str, Kind]
    key: tuple[str, ...]

    @property
    def schema(self) -> "pyarrow.Schema":
        import pyarrow

        types = {
            "text": pyarrow.string(),
            "integer": pyarrow.int64(),
            "real": pyarrow.float64(),
            "flag": pyarrow.bool_(),
        }
        return pyarrow.schema([pyarrow.field(name, types[kind]) for name, kind in self.columns.items()])


ARCHIVES = Table(
    "archives",
    {
        "id": "text",
        "cluster": "text",
        "kind": "text",
        "name": "text",
        "state": "text",
        "cause": "text",
        "nodes": "text",
        "started_s": "real",
        "ended_s": "real",
        "ingested_s": "real",
        "source": "text",
    },
    ("id",),
)
ARCHIVE_NODES = Table(
    "archive_nodes",
    {"node": "text", "archive": "text", "state": "text", "cause": "text"},
    ("node", "archive"),
)
#: Raw tables of archives; place: where the back end keeps the rows; node_column: empty where rows have no node.
RAW_TABLES = Table(
    "raw_tables",
    {"archive": "text", "name": "text", "rows": "integer", "node_column": "text", "place": "text"},
    ("archive", "name"),
)
FACTOR_VALUES = Table(
    "factor_values",
    {
        "cluster": "text",
        "node": "text",
        "cpu": "integer",
        "job": "text",
        "started_s": "real",
        "stratum": "text",
        "factor": "text",
        "value": "real",
        "state": "text",
        "archive": "text",
    },
    ("cluster", "node", "factor", "cpu", "job"),
)
#: basis: what a verdict rests on besides the values, such as settings and the events that touch its node.
VERDICTS = Table(
    "verdicts",
    {
        "cluster": "text",
        "node": "text",
        "cpu": "integer",
        "job": "text",
        "started_s": "real",
        "stratum": "text",
        "archive": "text",
        "factor": "text",
        "r": "integer",
        "p": "integer",
        "pooled": "flag",
        "outlier": "flag",
        "n": "integer",
        "degrees_of_freedom": "real",
        "statistic": "real",
        "p_value": "real",
        "direction": "integer",
        "low": "real",
        "high": "real",
        "missing": "integer",
        "basis": "text",
        "judged_s": "real",
    },
    ("cluster", "node", "factor", "r", "pooled", "basis", "cpu", "job"),
)
#: Each change is a row of its own: revision 1 records the entry, 2 withdraws it, 3 records it again.
EVENTS = Table(
    "events",
    {
        "id": "text",
        "revision": "integer",
        "withdrawn": "flag",
        "date_s": "real",
        "cluster": "text",
        "nodes": "text",
        "kind": "text",
        "author": "text",
        "reason": "text",
        "recorded_s": "real",
    },
    ("id", "revision"),
)
OUTLIERS = Table(
    "outliers",
    {
        "id": "text",
        "revision": "integer",
        "withdrawn": "flag",
        "date_s": "real",
        "cluster": "text",
        "nodes": "text",
        "job": "text",
        "author": "text",
        "reason": "text",
        "recorded_s": "real",
    },
    ("id", "revision"),
)

#: Changes that the alarm procedure confirmed, on the day when it did: never changed afterwards. node "all": of what all
#: machines of the cluster have in common.
ALARMS = Table(
    "alarms",
    {
        "cluster": "text",
        "node": "text",
        "cpu": "integer",
        "factor": "text",
        "stratum": "text",
        "day": "text",
        "stream": "text",
        "since_s": "real",
        "changed_s": "real",
        "evidence": "real",
        "enough": "real",
        "direction": "integer",
        "before": "real",
        "size": "real",
        "size_low": "real",
        "size_high": "real",
        "worse": "flag",
        "archive": "text",
        "judged_s": "real",
    },
    ("cluster", "node", "factor", "cpu", "stratum", "day"),
)
#: The days that were judged, each with what it added to the state of the alarm procedure, as JSON.
ALARM_DAYS = Table("alarm_days", {"day": "text", "added": "text", "judged_s": "real"}, ("day",))

#: Simulated runs of studies, by the digest of all that decides their results; refusal: "" where there is a result.
#: about: application, parameters, mapping and fidelity, as JSON.
SIMULATIONS = Table(
    "simulations",
    {
        "key": "text",
        "about": "text",
        "platform_sha256": "text",
        "seed": "integer",
        "repeat": "integer",
        "time_s": "real",
        "rate_gflops": "real",
        "energy_j": "real",
        "extrapolated": "real",
        "sampling_sd": "real",
        "refusal": "text",
        "cpu_s": "real",
        "version": "text",
    },
    ("key",),
)

#: What messages were about, by channel (which names no password). Rows of one event are of one message; each change of
#: state is a row of its own: sending, sent or failed, joined (found later, no message of its own), closed.
NOTIFICATIONS = Table(
    "notifications",
    {
        "channel": "text",
        "cluster": "text",
        "node": "text",
        "factor": "text",
        "revision": "integer",
        "state": "text",
        "event": "text",
        "recorded_s": "real",
    },
    ("channel", "cluster", "node", "factor", "revision"),
)
#: What was done about a node that regressed, each step a row: requested (a confirmation run), drained, failed, resumed
#: (by somebody else), closed (the regression is over).
NODE_ACTIONS = Table(
    "node_actions",
    {
        "cluster": "text",
        "node": "text",
        "revision": "integer",
        "action": "text",
        "reason": "text",
        "recorded_s": "real",
    },
    ("cluster", "node", "revision"),
)

TABLES = (
    ARCHIVES,
    ARCHIVE_NODES,
    RAW_TABLES,
    FACTOR_VALUES,
    VERDICTS,
    EVENTS,
    OUTLIERS,
    ALARMS,
    ALARM_DAYS,
    SIMULATIONS,
    NOTIFICATIONS,
    NODE_ACTIONS,
)

#: What became of a job on a node: it ended, it failed, something else ended it, or it never reported.
STATES = ("done", "failed", "aborted", "missing")
