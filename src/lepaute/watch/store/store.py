"""A store: what is asked of it and what is added to it, whatever keeps the tables."""

import datetime as dt
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas
import pyarrow

from lepaute.errors import InputError
from lepaute.kit.notebook import facts_html
from lepaute.kit.printable import printable
from lepaute.kit.text import counted
from lepaute.measure.archive import Archive
from lepaute.watch.store import additions
from lepaute.watch.store.additions import Decide
from lepaute.watch.store.backend import Backend, Parameters, Writer, fresh, same_key
from lepaute.watch.store.rows import ArchiveRows, archive_rows, packed_frame, rows_of
from lepaute.watch.store.tables import (
    ALARM_DAYS,
    ALARMS,
    ARCHIVE_NODES,
    ARCHIVES,
    EVENTS,
    FACTOR_VALUES,
    INVENTORIES,
    NODE_ACTIONS,
    NOTIFICATIONS,
    OUTLIERS,
    RAW_TABLES,
    VERDICTS,
    Table,
)

_FROM_GOOD_TO_BAD = ("done", "aborted", "failed", "missing")
_SAME_JOB = "factor values of a job are in the store or in another of the archives already; give each job once"
#: Factor values of an archive, as a data frame with the columns of FACTOR_VALUES.
ValuesOf = Callable[[Archive], pandas.DataFrame]


@dataclass(frozen=True, slots=True)
class Ingested:
    """Ids of the archives that were added and of those that were there already; how many factor values are new; what of
    other programs' files has no values, a text each; how columns were read whose mapping was inferred; in
    words what the values are of, new or not; "" where none is new."""

    added: tuple[str, ...]
    known: tuple[str, ...]
    values: int = 0
    omitted: tuple[str, ...] = ()
    read_as: tuple[str, ...] = ()
    values_of: str = ""

    def _repr_html_(self) -> str:
        facts = [("archives added", len(self.added)), ("known before", len(self.known)), ("new values", self.values)]
        return facts_html("Ingested", facts)


def _in_words(values: pyarrow.Table) -> str:
    """3 factors of 12 nodes, 2026-01-02 to 2026-02-28."""
    factors, nodes = len(values["factor"].unique()), len(values.group_by(["cluster", "node"]).aggregate([]))
    seconds = values["started_s"].to_numpy()
    days = [f"{dt.datetime.fromtimestamp(end_s, dt.UTC):%Y-%m-%d}" for end_s in (seconds.min(), seconds.max())]
    return f"{counted(factors, 'factor')} of {counted(nodes, 'node')}, {' to '.join(dict.fromkeys(days))}"


class Store:
    """Archives, their raw observations, factor values, verdicts, events and outliers; made by `open_store`.

    Every method that adds something adds all of it or, where it raises or the process is killed, nothing; adding again
    what is there changes nothing. Processes may read and add at the same time. Results are in the order of their keys.
    Times are seconds since the epoch; `since_s` is included, `until_s` is not.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __repr__(self) -> str:
        return f"<Store {self._backend.name!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        self._backend.close()

    def state(self, tables: Sequence[Table]) -> str:
        """A text that is another one after every change of these tables."""
        return self._backend.state(tables)

    def ingest(
        self,
        archives: Iterable[str | Path | Archive],
        *,
        cluster: str = "",
        values_of: ValuesOf | None = None,
        values: "pandas.DataFrame | None" = None,
    ) -> Ingested:
        """Adds archives, all of them in one change, each with its raw tables and, of `values_of`, its factor values.

        cluster: of the nodes, with whose names it tells machines apart
        values : further factor values, of no archive, added in the same change as by `add_values`
        Archives of failed runs are added like others. The ids of archives tell whether they are there already.
        Raises ArchiveError or InputError if one of the archives cannot be read.
        """
        ingested_s = time.time()
        opened = [Archive.open(one) for one in archives]
        first = {archive.id: archive for archive in reversed(opened)}
        known = self._known(self._backend.read, list(first))
        new = [
            (archive_rows(archive, cluster, ingested_s), self._values_of(archive, values_of))
            for archive in first.values()
            if archive.id not in known
        ]
        further = rows_of(FACTOR_VALUES, values) if values is not None else FACTOR_VALUES.schema.empty_table()
        if named := list(filter(None, further["archive"].unique().to_pylist())):
            raise InputError(f"values of archive {printable(named[0][:80])} cannot be given beside archives")
        count = 0
        if new or len(further):
            with self._backend.writing() as writer:
                late = self._known(writer.read, [rows.id for rows, _ in new])  # added by others meanwhile
                new = [(rows, of_archive) for rows, of_archive in new if rows.id not in late]
                count = self._add_archives(writer, new, further)
            known |= late
        ids = list(dict.fromkeys(archive.id for archive in opened))
        added, before = (tuple(id_ for id_ in ids if (id_ in known) == there) for there in (False, True))
        read = pyarrow.concat_tables([*(of_archive for _, of_archive in new), further])
        return Ingested(added, before, count, values_of=_in_words(read) if count else "")

    def add_values(self, values: pandas.DataFrame) -> int:
        """Adds factor values, of foreign data or of archives that are there; returns how many were new.

        Raises InputError if a value is there already and is another one, and where the archive of one is not there.
        """
        rows = rows_of(FACTOR_VALUES, values)
        with self._backend.writing() as writer:
            return self._add_values(writer, rows)

    def add_verdicts(self, verdicts: pandas.DataFrame) -> int:
        """Adds verdicts (columns of VERDICTS); returns how many were new. One that is there stays as it is.

        With another basis it is another verdict, beside the first.
        """
        rows = rows_of(VERDICTS, verdicts)
        # a basis tells the date, too: with it as few files are read as can have them
        keys = rows.select([*VERDICTS.key, "started_s"]).append_column("place", pyarrow.array(np.arange(len(rows))))
        with self._backend.writing() as writer:
            writer.stage(keys)
            same = f"{same_key(VERDICTS)} and n.started_s = o.started_s"
            there = writer.read(f"select n.place from staged n join verdicts o on {same}")
            if len(there):
                new = np.ones(len(rows), np.bool_)
                new[there["place"].to_numpy()] = False
                rows = rows.filter(pyarrow.array(new))
            writer.append(VERDICTS, rows)
        return len(rows)

    def add_events(self, events: pandas.DataFrame, *, once: bool = False) -> tuple[str, ...]:
        """Records events (columns date_s, cluster, nodes, kind, author, reason); returns their ids.

        One that is recorded stays as it is; one that was withdrawn is recorded again.
        once: also one that somebody else has recorded, or for another reason, stays as it is
        """
        return additions.add_entries(self._backend, EVENTS, events, once=once)

    def add_outliers(self, outliers: pandas.DataFrame, *, once: bool = False) -> tuple[str, ...]:
        """Records outliers (columns date_s, cluster, nodes, job, author, reason), as `add_events`."""
        return additions.add_entries(self._backend, OUTLIERS, outliers, once=once)

    def withdraw_events(self, ids: Collection[str], author: str, reason: str = "") -> int:
        """Withdraws events; they stay in the history with who withdrew them and why. Returns how many were in force."""
        return additions.withdraw_entries(self._backend, EVENTS, ids, author, reason)

    def withdraw_outliers(self, ids: Collection[str], author: str, reason: str = "") -> int:
        """Withdraws outliers, as `withdraw_events`."""
        return additions.withdraw_entries(self._backend, OUTLIERS, ids, author, reason)

    def events(self, *, history: bool = False) -> pandas.DataFrame:
        """The events in force; history: all revisions of all of them instead."""
        return additions.current_entries(self._backend, EVENTS, history=history)

    def outliers(self, *, history: bool = False) -> pandas.DataFrame:
        """The outliers in force, as `events`."""
        return additions.current_entries(self._backend, OUTLIERS, history=history)

    def archives(
        self,
        *,
        nodes: Collection[str] | None = None,
        cluster: str | None = None,
        state: str | None = None,
        since_s: float | None = None,
        until_s: float | None = None,
    ) -> pandas.DataFrame:
        """The archives, a row each; since_s and until_s: those that began then."""
        where = _Where().where_equal("cluster", cluster).where_equal("state", state)
        where.within("started_s", since_s, until_s)
        if nodes is not None:
            where.that("id in (select archive from archive_nodes where node = any(?))", list(nodes))
        return self._select(ARCHIVES, where)

    def archive_nodes(self, *, nodes: Collection[str] | None = None, state: str | None = None) -> pandas.DataFrame:
        """A row for each node of each archive: done, failed, aborted or missing, and why."""
        return self._select(ARCHIVE_NODES, _Where().among("node", nodes).where_equal("state", state))

    def values(
        self,
        *,
        nodes: Collection[str] | None = None,
        cluster: str | None = None,
        factors: Collection[str] | None = None,
        strata: Collection[str] | None = None,
        since_s: float | None = None,
        until_s: float | None = None,
        packed: bool = False,
    ) -> pandas.DataFrame:
        """Factor values, with the columns of FACTOR_VALUES; of what is given, only the matching rows are read.

        packed : texts are categories, in the order of texts; rows in any order: quicker, in a quarter of the memory
        """
        where = _Where().where_equal("cluster", cluster).among("node", nodes).among("factor", factors)
        where.among("stratum", strata).within("started_s", since_s, until_s)
        if not packed:
            return self._select(FACTOR_VALUES, where)
        return self._packed(FACTOR_VALUES, where, list(FACTOR_VALUES.columns))

    def factors(self) -> pandas.DataFrame:
        """The factors that have values, by cluster: columns cluster and factor."""
        return self._frame("select distinct cluster, factor from factor_values order by cluster, factor")

    def nodes(self, cluster: str) -> list[str]:
        """The nodes of a cluster that have factor values."""
        query = "select distinct node from factor_values where cluster = ? order by node"
        return list(self._frame(query, [cluster])["node"])

    def vectors(self, cluster: str) -> list[str]:
        """The names of the vectors of several factors that were tested together, such as "a & b"."""
        query = "select distinct factor from verdicts where cluster = ? and p > 1 order by factor"
        return list(self._frame(query, [cluster])["factor"])

    def job_states(self, cluster: str | None = None) -> pandas.DataFrame:
        """A row for each job of each node: columns cluster, node, job, started_s, state.

        The state is the worst of its factor values; without any that of the node in the archive, whose id is the job.
        """
        worst = "case max(case state {} end) {} end".format(
            " ".join(f"when '{state}' then {rank}" for rank, state in enumerate(_FROM_GOOD_TO_BAD)),
            " ".join(f"when {rank} then '{state}'" for rank, state in enumerate(_FROM_GOOD_TO_BAD)),
        )
        query = (
            f"select * from (select cluster, node, job, min(started_s) as started_s, {worst} as state "
            "from factor_values group by cluster, node, job union all "
            "select a.cluster, n.node, n.archive as job, a.started_s, n.state from archive_nodes n "
            "join archives a on a.id = n.archive where a.started_s is not null and not exists "
            "(select 1 from factor_values f where f.archive = n.archive and f.node = n.node)) as jobs"
        )
        query, parameters = (query, []) if cluster is None else (f"{query} where cluster = ?", [cluster])
        return self._frame(f"{query} order by cluster, node, started_s, job", parameters)

    def verdicts(
        self,
        *,
        nodes: Collection[str] | None = None,
        cluster: str | None = None,
        factors: Collection[str] | None = None,
        since_s: float | None = None,
        until_s: float | None = None,
        r: int | None = None,
        pooled: bool | None = None,
        columns: Sequence[str] | None = None,
    ) -> pandas.DataFrame:
        """Verdicts, with the columns of VERDICTS; or only `columns`, in any order of rows, packed as `values` are."""
        where = _Where().where_equal("cluster", cluster).among("node", nodes).among("factor", factors)
        where.where_equal("r", r).where_equal("pooled", pooled).within("started_s", since_s, until_s)
        return self._select(VERDICTS, where) if columns is None else self._packed(VERDICTS, where, columns)

    def windows(self, cluster: str, factor: str) -> list[int]:
        """The windows of the unpooled tests of a factor."""
        query = "select distinct r from verdicts where cluster = ? and factor = ? and not pooled order by r"
        windows: list[int] = self._frame(query, [cluster, factor])["r"].tolist()
        return windows

    def add_alarms(self, days: pandas.DataFrame, alarms: pandas.DataFrame, *, after: str) -> bool:
        """Records days that were judged (columns of ALARM_DAYS) and their alarms (columns of ALARMS), in one change.

        after: the last day that was judged before, as the caller knows it, "" for none
        Returns whether they were recorded: not where another process has judged a day since then; then judge again.
        """
        return additions.add_judged_days(self._backend, days, alarms, after)

    def alarms(
        self,
        *,
        nodes: Collection[str] | None = None,
        cluster: str | None = None,
        factors: Collection[str] | None = None,
    ) -> pandas.DataFrame:
        """Alarms, with the columns of ALARMS."""
        where = _Where().where_equal("cluster", cluster).among("node", nodes).among("factor", factors)
        return self._select(ALARMS, where)

    def alarm_days(self) -> pandas.DataFrame:
        """The days that were judged, ascending, with what each added to the state of the alarm procedure."""
        return additions.all_rows(self._backend, ALARM_DAYS)

    def add_notifications(self, decide: Decide) -> pandas.DataFrame:
        """Adds the rows (of NOTIFICATIONS) that `decide` makes of those that are there, in one change; returns them."""
        return additions.add_decided(self._backend, NOTIFICATIONS, decide)

    def notifications(self) -> pandas.DataFrame:
        """What messages were about, with the columns of NOTIFICATIONS: every state that it was in."""
        return additions.all_rows(self._backend, NOTIFICATIONS)

    def add_node_actions(self, decide: Decide) -> pandas.DataFrame:
        """As `add_notifications`, of what is done about nodes (NODE_ACTIONS)."""
        return additions.add_decided(self._backend, NODE_ACTIONS, decide)

    def node_actions(self) -> pandas.DataFrame:
        """What was done about nodes that regressed, every step, with the columns of NODE_ACTIONS."""
        return additions.all_rows(self._backend, NODE_ACTIONS)

    def add_inventory(self, decide: Decide) -> pandas.DataFrame:
        """As `add_notifications`, of what nodes share (INVENTORIES)."""
        return additions.add_decided(self._backend, INVENTORIES, decide)

    def inventories(self) -> pandas.DataFrame:
        """What nodes share, with the columns of INVENTORIES: every revision, the one in force last."""
        return additions.all_rows(self._backend, INVENTORIES)

    def add_simulations(self, simulations: pandas.DataFrame) -> int:
        """Adds simulated runs (columns of SIMULATIONS); returns how many were new. One that is there stays as it is."""
        return additions.add_simulations(self._backend, simulations)

    def simulations(self, keys: Collection[str] | None = None) -> pandas.DataFrame:
        """Simulated runs, with the columns of SIMULATIONS: those of the keys that are there; without keys, all."""
        return additions.simulations_of(self._backend, keys)

    def raw_tables(self, *, archives: Collection[str] | None = None) -> pandas.DataFrame:
        """Names and numbers of rows of the raw tables of archives."""
        return self._select(RAW_TABLES, _Where().among("archive", archives))[["archive", "name", "rows"]]

    def observations(
        self,
        name: str,
        *,
        archives: Collection[str] | None = None,
        nodes: Collection[str] | None = None,
        columns: Collection[str] | None = None,
        since_s: float | None = None,
        until_s: float | None = None,
    ) -> pandas.DataFrame:
        """Rows of the raw table `name` (`raw_tables`) of all archives that have it, with a column `archive`.

        A column `archive` of the table itself is called `archive_number` here.
        nodes  : only their rows, from those archives in which they took part
        columns: those to read; archives that lack one have absent values there
        since_s, until_s: of the beginning of the archive; clocks of raw rows need not tell the date
        Raises InputError if no archive has such a table.
        """
        where = _Where().where_equal("name", name).among("archive", archives)
        where.within("(select started_s from archives where id = archive)", since_s, until_s)
        if nodes is not None:
            where.that("archive in (select archive from archive_nodes where node = any(?))", list(nodes))
        pieces = []
        for table in self._backend.read(*where.query(RAW_TABLES)).to_pylist():
            if nodes is not None and not table["node_column"]:
                continue
            piece = self._backend.raw(table["place"], table["node_column"], nodes, columns)
            pieces.append(piece.append_column("archive", pyarrow.array([table["archive"]] * len(piece), "string")))
        if not pieces:
            names = list(self._frame("select distinct name from raw_tables order by name")["name"])
            if name not in names:
                others = f"; there are {', '.join(names[:20])}" if names else ""
                raise InputError(f"no archive of the store has a raw table {printable(name[:80])}{others}")
            pieces = [pyarrow.table({column: pyarrow.array([], "string") for column in [*(columns or ()), "archive"]})]
        rows = pyarrow.concat_tables(pieces, promote_options="permissive")
        if missing := [column for column in columns or () if column not in rows.column_names]:
            raise InputError(f"the raw table {printable(name[:80])} has no column {printable(missing[0][:80])}")
        frame: pandas.DataFrame = rows.to_pandas()
        return frame

    def _frame(self, query: str, parameters: Parameters = ()) -> pandas.DataFrame:
        frame: pandas.DataFrame = self._backend.read(query, parameters).to_pandas()
        return frame

    def _select(self, table: Table, where: "_Where") -> pandas.DataFrame:
        frame: pandas.DataFrame = self._backend.read(*where.query(table)).cast(table.schema).to_pandas()
        return frame

    def _packed(self, table: Table, where: "_Where", columns: Sequence[str]) -> pandas.DataFrame:
        query, parameters = where.query(table, columns, ordered=False)
        return packed_frame(self._backend.read(query, parameters, packed=table.repeated))

    @staticmethod
    def _known(read: Callable[..., pyarrow.Table], ids: list[str]) -> set[str]:
        """The ids whose archive is in the store."""
        return set(read("select id from archives where id = any(?)", [ids])["id"].to_pylist()) if ids else set()

    @staticmethod
    def _values_of(archive: Archive, values_of: ValuesOf | None) -> pyarrow.Table:
        if values_of is None:
            return FACTOR_VALUES.schema.empty_table()
        rows = rows_of(FACTOR_VALUES, values_of(archive))
        if rows["archive"].unique().to_pylist() not in ([], [archive.id]):
            raise InputError(f"{archive.path}: its factor values name another archive than {archive.id}")
        return rows

    def _add_values(self, writer: Writer, rows: pyarrow.Table) -> int:
        if not len(rows):
            return 0
        named = list(filter(None, rows["archive"].unique().to_pylist()))
        if missing := sorted(set(named) - self._known(writer.read, named)):
            raise InputError(f"archive {printable(missing[0][:80])} is not in the store; ingest it first")
        new = fresh(writer, FACTOR_VALUES, rows)
        if len(new) < len(rows):
            _refuse_other_values(writer)
        writer.append(FACTOR_VALUES, new)
        return len(new)

    def _add_archives(
        self, writer: Writer, new: list[tuple[ArchiveRows, pyarrow.Table]], further: "pyarrow.Table"
    ) -> int:
        """Adds archives with their values, and further values; returns how many values are new."""
        if not new:
            return self._add_values(writer, further)
        places = []
        for rows, _ in new:
            for raw in rows.raw:
                place = writer.add_raw(f"{rows.id}/{raw.name}", raw.rows, raw.node_column)
                cells = (rows.id, raw.name, len(raw.rows), raw.node_column, place)
                places.append(dict(zip(RAW_TABLES.columns, cells, strict=True)))
        writer.append(ARCHIVES, pyarrow.concat_tables([rows.archive for rows, _ in new]))
        writer.append(ARCHIVE_NODES, pyarrow.concat_tables([rows.nodes for rows, _ in new]))
        writer.append(RAW_TABLES, pyarrow.Table.from_pylist(places, RAW_TABLES.schema))
        values = pyarrow.concat_tables([values for _, values in new])
        if len(fresh(writer, FACTOR_VALUES, values)) < len(values):
            _refuse_other_values(writer)
            raise InputError(_SAME_JOB)
        if len(further):
            further = fresh(writer, FACTOR_VALUES, further)
            values = pyarrow.concat_tables([values, further])
        if values.select(list(FACTOR_VALUES.key)).to_pandas().duplicated().any():
            raise InputError(_SAME_JOB)
        writer.append(FACTOR_VALUES, values)
        return len(values)


class _Where:
    """Conditions of a query, all of which hold."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self._parameters: list[str | int | float | bool | list[str]] = []

    def that(self, condition: str, *parameters: str | float | list[str]) -> Self:
        self._conditions.append(condition)
        self._parameters += parameters
        return self

    def where_equal(self, column: str, value: str | int | None) -> Self:
        return self if value is None else self.that(f"{column} = ?", value)

    def among(self, column: str, values: Collection[str] | None) -> Self:
        if isinstance(values, str):
            raise InputError(f"{values[:60]!r} is one name; give a list of names")
        return self if values is None else self.that(f"{column} = any(?)", list(values))

    def within(self, column: str, since_s: float | None, until_s: float | None) -> Self:
        if since_s is not None:
            self.that(f"{column} >= ?", float(since_s))
        return self if until_s is None else self.that(f"{column} < ?", float(until_s))

    def query(
        self, table: Table, columns: Collection[str] | None = None, ordered: bool = True
    ) -> tuple[str, Parameters]:
        where = f" where {' and '.join(self._conditions)}" if self._conditions else ""
        order = f" order by {', '.join(table.key)}" if ordered else ""
        return f"select {', '.join(columns or table.columns)} from {table.name}{where}{order}", self._parameters


def _refuse_other_values(writer: Writer) -> None:
    """Raises InputError if a staged value is in the store with another value, state, date, stratum or archive."""
    columns = ("value", "state", "started_s", "stratum", "archive")
    both = ", ".join(f"o.{name} as {name}_before, n.{name} as {name}_now" for name in columns)
    other = " or ".join(f"n.{name} is distinct from o.{name}" for name in columns)
    for row in writer.read(
        f"select n.factor, n.node, n.cpu, n.job, {both} from staged n "
        f"join factor_values o on {same_key(FACTOR_VALUES)} where {other} limit 1"
    ).to_pylist():
        differ = [
            f"{'date' if name == 'started_s' else name} {_shown(name, before)} in the store and {_shown(name, now)} in "
            "what is added"
            for name in columns
            if (before := row[f"{name}_before"]) != (now := row[f"{name}_now"])
        ]
        raise InputError(
            f"{printable(row['factor'])} of node {printable(row['node'])}, cpu {row['cpu']}, "
            f"job {printable(row['job'])} has {'; '.join(differ)}; a value is never replaced"
        )


def _shown(column: str, cell: str | float | None) -> str:
    """A cell of a factor value as people read it."""
    if column == "started_s":
        return f"{dt.datetime.fromtimestamp(float(cell or 0.0), dt.UTC):%Y-%m-%d %H:%M:%S.%f}".removesuffix(".000000")
    return "none" if cell is None else printable(str(cell)) or "''"
