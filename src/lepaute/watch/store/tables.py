"""The tables of a store: names, columns, types and keys, declared here for all back ends; and those of older versions.

How a store of an older version becomes one of this version: a step says, for each table that it changes, what selects
the new rows from the old ones. Tables that the older version lacks are made empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow

from lepaute.errors import InputError

#: Version of what a store holds and how; see `STEPS`.
VERSION = 6
#: Version that a step leads to -> table -> query, {source} being the table as it was.
STEPS: Mapping[int, Mapping[str, str]] = {
    # version 1 did not tell failed jobs from others: they had no value
    2: {"factor_values": "select *, case when value is null then 'failed' else 'done' end as state from {source}"},
    3: {},  # alarms, and the days that were judged
    4: {},  # simulations of studies
    5: {},  # notifications, and what was done about nodes
    6: {},  # inventories
}

#: Only a real may be absent.
Kind = Literal["text", "integer", "real", "flag"]
ARROW_TYPES: Mapping[Kind, pyarrow.DataType] = {
    "text": pyarrow.string(),
    "integer": pyarrow.int64(),
    "real": pyarrow.float64(),
    "flag": pyarrow.bool_(),
}
#: The columns that are not text, which have the same type in all tables.
_KINDS: Mapping[Kind, tuple[str, ...]] = {
    "integer": ("cpu", "rows", "r", "p", "n", "direction", "missing", "revision", "seed", "repeat"),
    "real": (
        *("started_s", "ended_s", "ingested_s", "judged_s", "date_s", "recorded_s", "since_s", "changed_s"),
        *("value", "degrees_of_freedom", "statistic", "p_value", "low", "high", "evidence", "enough", "before"),
        *("size", "size_low", "size_high", "time_s", "rate_gflops", "energy_j", "extrapolated", "sampling_sd", "cpu_s"),
    ),
    "flag": ("pooled", "outlier", "withdrawn", "worse"),
}
_KIND_OF = {column: kind for kind, columns in _KINDS.items() for column in columns}


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its key, which is unique.

    as_added : what one change adds is kept in the order in which it comes; otherwise in that of the key
    """

    name: str
    columns: Mapping[str, Kind]
    key: tuple[str, ...]
    as_added: bool = False

    @property
    def repeated(self) -> tuple[str, ...]:
        """The texts that many rows have in common."""
        return tuple(name for name, kind in self.columns.items() if kind == "text" and name != "basis")

    @property
    def schema(self) -> pyarrow.Schema:
        return pyarrow.schema([pyarrow.field(name, ARROW_TYPES[kind]) for name, kind in self.columns.items()])


def _table(name: str, columns: str, key: str, *, as_added: bool = False) -> Table:
    kinds = {column: _KIND_OF.get(column, "text") for column in columns.split()}
    return Table(name, kinds, tuple(key.split()), as_added)


ARCHIVES = _table("archives", "id cluster kind name state cause nodes started_s ended_s ingested_s source", key="id")
ARCHIVE_NODES = _table("archive_nodes", "node archive state cause", key="node archive")
#: Raw tables of archives; place: where the back end keeps the rows; node_column: empty if rows have no node.
RAW_TABLES = _table("raw_tables", "archive name rows node_column place", key="archive name")
FACTOR_VALUES = _table(
    "factor_values",
    "cluster node cpu job started_s stratum factor value state archive",
    key="cluster node factor cpu job",
)
#: basis: what a verdict rests on besides the values, such as settings and the events that touch its node. They come by
#: machine and time, which packs better than the order of their bases, and without sorting millions of rows.
VERDICTS = _table(
    "verdicts",
    "cluster node cpu job started_s stratum archive factor r p pooled outlier n degrees_of_freedom statistic p_value "
    "direction low high missing basis judged_s",
    key="cluster node factor r pooled basis cpu job",
    as_added=True,
)
#: Each change is a row of its own: revision 1 records the entry, 2 withdraws it, 3 records it again.
EVENTS = _table("events", "id revision withdrawn date_s cluster nodes kind author reason recorded_s", key="id revision")
OUTLIERS = _table(
    "outliers", "id revision withdrawn date_s cluster nodes job author reason recorded_s", key="id revision"
)
#: Changes that the alarm procedure confirmed, and when: never altered. node "all": of what a cluster has in common.
ALARMS = _table(
    "alarms",
    "cluster node cpu factor stratum day stream since_s changed_s evidence enough direction before size size_low "
    "size_high worse archive judged_s",
    key="cluster node factor cpu stratum day",
)
#: The days that were judged, each with what it added to the state of the alarm procedure, as JSON.
ALARM_DAYS = _table("alarm_days", "day added judged_s", key="day")
#: Simulated runs of studies, by the digest of all that decides their results; refusal: "" if there is a result.
#: about: application, parameters, mapping and fidelity, as JSON.
SIMULATIONS = _table(
    "simulations",
    "key about platform_sha256 seed repeat time_s rate_gflops energy_j extrapolated sampling_sd refusal cpu_s version",
    key="key",
)
#: What messages were about, by channel (which names no password). Rows of one event are of one message; each change of
#: state is a row of its own: sending, sent or failed, joined (found later, no message of its own), closed.
NOTIFICATIONS = _table(
    "notifications",
    "channel cluster node factor revision state event recorded_s",
    key="channel cluster node factor revision",
)
#: What was done about a node that regressed, each step a row: requested (a confirmation run), drained, failed, resumed
#: (by somebody else), closed (the regression is over).
NODE_ACTIONS = _table("node_actions", "cluster node revision action reason recorded_s", key="cluster node revision")
#: What nodes share, the latest revision being in force: {kind: {node: name}} as JSON.
INVENTORIES = _table("inventories", "revision groups author recorded_s", key="revision")

TABLES = (
    *(ARCHIVES, ARCHIVE_NODES, RAW_TABLES, FACTOR_VALUES, VERDICTS, EVENTS, OUTLIERS, ALARMS, ALARM_DAYS),
    *(SIMULATIONS, NOTIFICATIONS, NODE_ACTIONS, INVENTORIES),
)
#: What decides what is said of machines; and this with what was said.
OBSERVED = (FACTOR_VALUES, EVENTS, OUTLIERS, INVENTORIES)
SAID = (*OBSERVED, VERDICTS, ALARMS, ALARM_DAYS)

#: What became of a job on a node: it ended, it failed, something else ended it, or it never reported.
STATES = ("done", "failed", "aborted", "missing")


def migrated(table: Table, source: str, version: int) -> str:
    """The query of a table's rows as of this version, from `source`, what stands for them in a store of `version`."""
    for step in range(version + 1, VERSION + 1):
        query = STEPS[step].get(table.name)
        if query is not None:
            source = f"({query.format(source=source)}) as of_version_{step}"
    return f"select {', '.join(table.columns)} from {source}"


def changed(table: Table, version: int) -> bool:
    """Whether a step since `version` changes the table."""
    return any(table.name in STEPS[step] for step in range(version + 1, VERSION + 1))


def check_version(version: object, where: str) -> int:
    """The version of a store, if it can be read; raises InputError otherwise."""
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{where}: does not say which version of a store it is; give a store that Lepaute made")
    if version > VERSION:
        raise InputError(f"{where}: is a store of version {version}, this Lepaute knows {VERSION} at most; upgrade it")
    return version
