"""What tests of the store share; processes that tests start and kill run functions of this module."""

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pandas

from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.watch.store import open_store
from lepaute.watch.store.postgresql import _SQL_TYPES, SCHEMA
from lepaute.watch.store.tables import ALARM_DAYS, ALARMS, TABLES

FACTORS = ("mean_frequency_Hz", "cpu_power_W")
#: Processes are copies of one that has imported all this, and used none of it. It finds packages, installed or on
#: PYTHONPATH, no module of tests: what cannot be imported is left out without a word, and each process pays for it.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "duckdb", "pyarrow.parquet", "pyarrow.csv", "psycopg", "pandas", "scipy.stats",
        "lepaute.measure.archive.writer", "lepaute.watch.watcher", "lepaute.watch.foreign.csv_table",
        "lepaute.watch.foreign.mapping", "lepaute.watch.judging.recorded_tests", "lepaute.watch.alarms.procedure",
        "lepaute.watch.report.summary",
    ]
)  # fmt: skip


def values(nodes: int = 3, jobs: int = 4, archive: str = "", first_job: int = 0) -> pandas.DataFrame:
    """Factor values of two CPUs a node, the third job of the first node failed; drawn with a fixed seed."""
    rng = np.random.default_rng(17)
    rows = [
        (f"{node + 1}", cpu, f"{first_job + job}", 1.5e9 + 86400.0 * job, factor)
        for node in range(nodes)
        for job in range(jobs)
        for cpu in range(2)
        for factor in FACTORS
    ]
    frame = pandas.DataFrame(rows, columns=["node", "cpu", "job", "started_s", "factor"])
    failed = (frame["node"] == "1") & (frame["job"] == f"{first_job + 2}")
    return frame.assign(
        cluster="dahu",
        stratum="s1",
        value=np.where(failed, np.nan, rng.normal(100.0, 1.0, len(frame))),
        state=np.where(failed, "failed", "done"),
        archive=archive,
    )


def values_of(archive: Archive) -> pandas.DataFrame:
    """Twelve values a job, which has the number of the archive's seed."""
    return values(nodes=3, jobs=1, archive=archive.id, first_job=1000 * archive.about.seed)


def small_archive(path: Path, number: int) -> Path:
    """An archive with a raw table of 60 rows of three nodes, in turn."""
    about = {
        "kind": "experiment", "created": "2026-11-21T09:14:00+00:00", "nodes": ["1", "2", "3"], "seed": number,
        "status": "complete",
    }  # fmt: skip
    rows = np.arange(60)
    table = pandas.DataFrame({"node": (rows % 3 + 1).astype(str), "duration_s": rows / 7.0, "size": rows})
    with ArchiveWriter(path, about) as writer:
        writer.add_table("observations/bench.parquet", table)
    return path


def ingest_one_by_one(where: str, archives: list[Path]) -> None:
    """What a process of a test does: an archive a change."""
    with open_store(where) as store:
        for archive in archives:
            store.ingest([archive], cluster="dahu", values_of=values_of)


def content(where: str) -> dict[str, object]:
    """All that a store holds, without dates of ingestion, to be compared."""
    with open_store(where) as store:
        frames = {
            "archives": store.archives().drop(columns="ingested_s"),
            "nodes": store.archive_nodes(),
            "values": store.values(),
            "raw_tables": store.raw_tables(),
        }
        if len(frames["raw_tables"]):
            frames["bench"] = store.observations("bench")
    return {name: json.loads(frame.to_json(orient="split", double_precision=15)) for name, frame in frames.items()}


def old_store(where: str, version: int) -> None:
    """A store of version 1 (whose rows had no state) or 2 with factor values, as that version wrote it."""
    if where.startswith("postgresql"):
        (_v1_database if version == 1 else _v2_database)(where)
        return
    place, old = f"data/change{version}", values()[V1_COLUMNS if version == 1 else V2_COLUMNS]
    (Path(where) / place).mkdir(parents=True)
    old.to_parquet(Path(where) / place / "factor_values-1.parquet", index=False)
    files = {"factor_values": [{"place": f"{place}/factor_values-1.parquet", "rows": len(old)}]}
    index = {"version": version, "number": 1, "change": f"change{version}", "files": files, "garbage": []}
    (Path(where) / "store.json").write_text(json.dumps(index))


def _v1_database(url: str) -> None:
    import psycopg

    texts = {"cluster", "node", "job", "stratum", "factor", "archive"}
    columns = ", ".join(
        f"{name} " + ('text collate "C"' if name in texts else "bigint" if name == "cpu" else "double precision")
        for name in V1_COLUMNS
    )
    old = values()[V1_COLUMNS].astype(object)
    rows = old.where(old.notna(), None).to_numpy().tolist()
    with psycopg.connect(url) as connection:
        connection.execute("create schema lepaute")
        connection.execute("create table lepaute.store (version bigint not null)")
        connection.execute("insert into lepaute.store values (1)")
        connection.execute(
            f"create table lepaute.factor_values ({columns}, primary key (cluster, node, factor, cpu, job))"
        )
        with connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(V1_COLUMNS))
            cursor.executemany(f"insert into lepaute.factor_values values ({marks})", rows)


def _v2_database(url: str) -> None:
    """The tables of version 2, of which the one with values has rows."""
    import psycopg

    old = values()[V2_COLUMNS].astype(object)
    rows = old.where(old.notna(), None).to_numpy().tolist()
    with psycopg.connect(url) as connection:
        connection.execute(f"create schema {SCHEMA}")
        connection.execute(f"create table {SCHEMA}.store (version bigint not null)")
        connection.execute(f"insert into {SCHEMA}.store values (2)")
        for table in TABLES:
            if table not in (ALARMS, ALARM_DAYS):
                columns = ", ".join(f"{name} {_SQL_TYPES[kind]}" for name, kind in table.columns.items())
                connection.execute(
                    f"create table {SCHEMA}.{table.name} ({columns}, primary key ({', '.join(table.key)}))"
                )
        marks = ", ".join(["%s"] * len(V2_COLUMNS))
        with connection.cursor() as cursor:
            cursor.executemany(f"insert into {SCHEMA}.factor_values ({', '.join(V2_COLUMNS)}) values ({marks})", rows)


V1_COLUMNS = ["cluster", "node", "cpu", "job", "started_s", "stratum", "factor", "value", "archive"]
V2_COLUMNS = [*V1_COLUMNS[:-1], "state", "archive"]
