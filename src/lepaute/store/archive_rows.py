"""What a store keeps of an archive."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lepaute.archive import Archive
from lepaute.archive.metadata import COMPLETE, FAILED, Metadata
from lepaute.errors import InputError
from lepaute.kit.node_sets import folded
from lepaute.kit.parquet import reading_table
from lepaute.kit.printable import printable
from lepaute.store.tables import ARCHIVE_NODES, ARCHIVES

if TYPE_CHECKING:
    import pyarrow

#: Where an archive keeps its measurements as tables.
_OBSERVATIONS, _PARQUET = "observations/", ".parquet"
#: Columns that name the node of a row, in the order of preference.
_NODE_COLUMNS = ("node", "host")


@dataclass(frozen=True, slots=True)
class RawTable:
    name: str
    rows: "pyarrow.Table"
    node_column: str


@dataclass(frozen=True, slots=True)
class ArchiveRows:
    """The row of an archive, a row for each of its nodes, and its raw tables."""

    id: str
    archive: "pyarrow.Table"
    nodes: "pyarrow.Table"
    raw: tuple[RawTable, ...]


def archive_rows(archive: Archive, cluster: str, ingested_s: float) -> ArchiveRows:
    """The rows of an archive; raises ArchiveError or InputError where a table of it cannot be read."""
    import pyarrow

    about = archive.about
    states = node_states(about)
    started_s, ended_s = run_dates(about)
    row = {
        "id": archive.id,
        "cluster": cluster,
        "kind": printable(about.kind),
        "name": printable(about.name),
        "state": about.outcome,
        "cause": printable(about.cause),
        "nodes": folded(states),
        "started_s": started_s,
        "ended_s": ended_s,
        "ingested_s": ingested_s,
        "source": printable(str(archive.path)),
    }
    nodes = [
        {"node": node, "archive": archive.id, "state": state, "cause": cause} for node, (state, cause) in states.items()
    ]
    raw = tuple(
        _raw_table(archive, member)
        for member in archive.members()
        if member.startswith(_OBSERVATIONS) and member.endswith(_PARQUET)
    )
    return ArchiveRows(
        archive.id,
        pyarrow.Table.from_pylist([row], ARCHIVES.schema),
        pyarrow.Table.from_pylist(nodes, ARCHIVE_NODES.schema),
        raw,
    )


def node_states(about: Metadata) -> dict[str, tuple[str, str]]:
    """What became of each node, and why: absence is an observation too.

    The node at which a run failed has failed, those that dropped out are missing, and what else a failed run ended has
    been aborted; in a run that completed, or went on with what it had, the others are done.
    """
    names = about.nodes or tuple(about.machines) or ((about.host,) if about.host else ())
    others = ("aborted", about.cause) if about.outcome == FAILED else ("done", "")
    states = dict.fromkeys(names, others)
    for lost in about.lost_nodes:
        states[lost.node] = ("missing", lost.why)
    if about.failure.node and about.outcome != COMPLETE:
        states[about.failure.node] = ("failed", about.cause)
    return {printable(node): (state, printable(cause)) for node, (state, cause) in states.items() if node}


def run_dates(about: Metadata) -> tuple[float | None, float | None]:
    """Beginning and end, in seconds since the epoch; None where the archive does not say."""
    times = [(when, phase.duration_s or 0.0) for phase in about.phases if (when := _date(phase.start)) is not None]
    if not times and (created := _date(about.created)) is not None:
        times = [(created, 0.0)]
    if not times:
        return None, None
    ends = [when + timedelta(seconds=min(max(duration_s, 0.0), 1e9)) for when, duration_s in times]
    return min(when for when, _ in times).timestamp(), max(ends).timestamp()


def _date(text: str) -> datetime | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return when if 1900 < when.year < 9000 else None


def _raw_table(archive: Archive, member: str) -> RawTable:
    import pyarrow

    frame = archive.table(member)
    node_column = next((name for name in _NODE_COLUMNS if name in frame), "")
    if "archive" in frame:  # the store says which archive a row is from
        name = "archive_number"
        while name in frame:
            name += "_"
        frame = frame.rename(columns={"archive": name})
    with reading_table(f"{archive.path}: member {member}"):
        rows = pyarrow.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    if node_column and rows[node_column].null_count:
        raise InputError(f"{archive.path}: member {member} has rows without a {node_column}")
    return RawTable(member.removeprefix(_OBSERVATIONS).removesuffix(_PARQUET), rows, node_column)
