"""What tests of the store share; processes that tests start and kill run functions of this module."""

import json
import multiprocessing
import random
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from support_limits import HANG_S

from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.watch.store import open_store
from lepaute.watch.store.postgresql import _SQL_TYPES, SCHEMA
from lepaute.watch.store.tables import ALARM_DAYS, ALARMS, FACTOR_VALUES, TABLES

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


def run_at_once(work: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Processes side by side, all of which end well."""
    writers = [PROCESSES.Process(target=work, args=each) for each in arguments]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(HANG_S)
        assert writer.exitcode == 0


def killed_at_random(work: Callable[..., None], where: str, files: list[Path], kills: int) -> Iterator[None]:
    """Works on two files, then on the others with so many kills, after each of which the caller looks; then on all."""
    began = time.monotonic()
    work(where, files[:2])
    one_s = (time.monotonic() - began) / 2
    moments = random.Random(20261123)
    cut_short = 0
    for _ in range(kills):
        writer = PROCESSES.Process(target=work, args=(where, files))
        writer.start()
        writer.join(moments.uniform(0.0, one_s))
        writer.kill()
        writer.join(HANG_S)
        cut_short += writer.exitcode != 0
        yield
    assert cut_short > kills // 4, "some were at work when they were killed"
    work(where, files)


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
    old = values()[OLD_COLUMNS[version]]
    if where.startswith("postgresql"):
        _old_database(where, version, old)
        return
    place = f"data/change{version}"
    (Path(where) / place).mkdir(parents=True)
    old.to_parquet(Path(where) / place / "factor_values-1.parquet", index=False)
    files = {"factor_values": [{"place": f"{place}/factor_values-1.parquet", "rows": len(old)}]}
    index = {"version": version, "number": 1, "change": f"change{version}", "files": files, "garbage": []}
    (Path(where) / "store.json").write_text(json.dumps(index))


def _old_database(url: str, version: int, old: pandas.DataFrame) -> None:
    """The tables of a version, of which the one with values has rows; version 1 had no others."""
    import psycopg

    rows = old.astype(object).where(old.notna(), None).to_numpy().tolist()
    with psycopg.connect(url) as connection:
        connection.execute(f"create schema {SCHEMA}")
        connection.execute(f"create table {SCHEMA}.store (version bigint not null)")
        connection.execute(f"insert into {SCHEMA}.store values ({version})")
        for table in (FACTOR_VALUES,) if version == 1 else TABLES:
            if table not in (ALARMS, ALARM_DAYS):
                kinds = {name: _SQL_TYPES[kind] for name, kind in table.columns.items()}
                if version == 1:  # whose columns could be null
                    kinds = {name: kind.removesuffix(" not null") for name, kind in kinds.items() if name in old}
                columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
                connection.execute(
                    f"create table {SCHEMA}.{table.name} ({columns}, primary key ({', '.join(table.key)}))"
                )
        marks = ", ".join(["%s"] * len(old.columns))
        with connection.cursor() as cursor:
            into = f"{SCHEMA}.factor_values ({', '.join(old.columns)})"
            cursor.executemany(f"insert into {into} values ({marks})", rows)


_FIRST = ["cluster", "node", "cpu", "job", "started_s", "stratum", "factor", "value"]
#: Version -> the columns of its factor values.
OLD_COLUMNS = {1: [*_FIRST, "archive"], 2: [*_FIRST, "state", "archive"]}
