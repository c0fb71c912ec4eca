"""A store holds what was put into it, once, whole or not at all, in a folder as in PostgreSQL."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from long_tests import long_but
from support_archive import failed_archive
from support_store import (
    FACTORS,
    content,
    ingest_one_by_one,
    killed_at_random,
    old_store,
    run_at_once,
    small_archive,
    values,
    values_of,
)

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.watch.store import Store, open_store
from lepaute.watch.store.backend import NoStoreError
from lepaute.watch.store.folder import MERGED_FILES
from lepaute.watch.store.tables import VERDICTS


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    with open_store(where) as opened:
        yield opened


def test_a_store_that_is_not_there_is_made_only_where_that_is_wanted(where: str) -> None:
    for _ in range(2):
        with pytest.raises(NoStoreError, match="there is no store in"):
            open_store(where, create=False)
    assert "://" in where or not Path(where).exists()
    with open_store(where) as made:
        made.add_values(values())
    with open_store(where, create=False) as opened:
        assert len(opened.values()) == len(values())


@pytest.mark.parametrize(
    "place",
    ["postgressql://bob:hunter2@db/x", "https://bob:hunter2@db", "postgresql:/bob:hunter2@db/x", " postgres://h"],
)
def test_a_url_that_is_none_of_a_store_is_refused_without_its_password(place: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="write postgresql://USER@HOST/DATABASE, or a folder") as refused:
        open_store(place)
    assert "hunter2" not in str(refused.value)
    with open_store(tmp_path / "a:b"):
        assert (tmp_path / "a:b" / "store.json").exists()


def events(*reasons: str) -> pandas.DataFrame:
    return pandas.DataFrame(
        {
            "date_s": 1.5e9, "cluster": "dahu", "nodes": "13/14/15/16", "kind": "platform", "author": "jane",
            "reason": list(reasons),
        }
    )  # fmt: skip


def verdicts(p_value: float) -> pandas.DataFrame:
    row = dict.fromkeys(VERDICTS.columns, "x") | {name: 1 for name, kind in VERDICTS.columns.items() if kind != "text"}
    return pandas.DataFrame([row | {"pooled": False, "outlier": False, "p_value": p_value}])


def test_an_archive_is_found_with_its_nodes_raw_rows_and_values(store: Store, tmp_path: Path) -> None:
    (archive,) = store.ingest([small_archive(tmp_path / "a.zip", 1)], cluster="dahu", values_of=values_of).added
    assert store.archives(nodes=["2"])["id"].tolist() == [archive]
    assert store.archives(nodes=["4"]).empty
    assert store.archive_nodes()["state"].tolist() == ["done"] * 3
    assert len(store.values(nodes=["1"])) == 4, "two CPUs, two factors"
    rows = store.observations("bench", nodes=["2"], columns=["size"])
    assert rows["size"].tolist() == list(range(1, 60, 3)), "every third row, in the order of the archive"
    assert rows["archive"].unique().tolist() == [archive]
    assert len(store.observations("bench")) == 60
    assert store.observations("bench", until_s=1.0).empty, "the archive is of 2026"


def test_an_archive_twice_changes_nothing(where: str, tmp_path: Path) -> None:
    archives = [small_archive(tmp_path / f"{number}.zip", number) for number in range(2)]
    ingest_one_by_one(where, archives)
    before = content(where)
    with open_store(where) as store:
        again = store.ingest([*archives, archives[0]], values_of=values_of)
    assert (again.added, len(again.known)) == ((), 2)
    assert content(where) == before


def test_failed_jobs_are_stored_with_what_became_of_each_node(store: Store, tmp_path: Path) -> None:
    store.ingest([failed_archive(tmp_path / "failed.zip")])
    assert store.archives(state="failed")["cause"].tolist() == ["make ended with exit status 2"]
    states = store.archive_nodes().set_index("node")["state"].to_dict()
    assert states == {"node1": "aborted", "node2": "failed", "node3": "missing"}


def test_values_come_back_as_they_were_and_queries_choose_among_them(store: Store) -> None:
    given = values()
    assert (store.add_values(given), store.add_values(given)) == (len(given), 0)
    found = store.values()
    assert found["value"].isna().sum() == 4, "the failed job has its rows too"
    key = ["node", "factor", "cpu", "job"]
    pandas.testing.assert_frame_equal(
        found, given.sort_values(key, ignore_index=True)[list(found.columns)], check_exact=True
    )
    part = store.values(nodes=["1", "3"], factors=FACTORS[:1], since_s=1.5e9 + 86400.0, until_s=1.5e9 + 3 * 86400.0)
    assert len(part) == 2 * 2 * 2, "nodes, CPUs, days"
    assert store.values(cluster="none").empty


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"node": 13}, "column node is not of type text"),
        ({"cpu": 0.5}, "column cpu is not of type integer"),
        ({"value": "fast"}, "column value is not of type real"),
        ({"value": float("inf")}, "a value is infinite"),
        ({"started_s": float("nan")}, "started_s of row 1 is nan"),
        ({"state": "lost"}, "state 'lost'; one of done"),
        ({"job": "1"}, "row 5 is there twice"),
        ({"archive": "f00d"}, "archive f00d is not in the store"),
        ({"job": None}, "row 1 has no job"),
        ({"node": "a\0b"}, "column node is not of type text"),
        ({"speed": 1.0}, "have speed, which the store does not know"),
    ],
)
def test_values_that_cannot_be_are_refused_and_none_is_kept(store, wrong, message):
    with pytest.raises(InputError, match=message):
        store.add_values(values().assign(**wrong))
    assert store.values().empty


def test_a_value_is_never_replaced(store: Store) -> None:
    store.add_values(values())
    with pytest.raises(InputError, match=r"has stratum s1 in the store and s2 in what is added; a value is never repl"):
        store.add_values(values().assign(stratum="s2"))
    assert store.values()["stratum"].unique().tolist() == ["s1"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"value": 202.9}, "job 1 has value {value} in the store and 202.9 in what is added; a value"),
        ({"started_s": 1.5e9 + 0.5}, "has date 2017-07-14 02:40:00 in the store and 2017-07-14 02:40:00.500000 in"),
        ({"stratum": ""}, "has stratum s1 in the store and '' in what is added; a value"),
        ({"value": None, "state": "missing"}, "has value {value} in the store and none in what is added; state done"),
    ],
)
def test_what_differs_from_the_store_is_said_and_nothing_else(store, changed, said):
    one = values(nodes=1, jobs=1, first_job=1).iloc[:1]
    store.add_values(one)
    with pytest.raises(InputError) as refused:
        store.add_values(one.assign(**changed).astype({"value": float}))
    assert said.format(value=one["value"].item()) in str(refused.value)
    for name, word in {"value": "value ", "state": "state ", "started_s": "date ", "stratum": "stratum "}.items():
        assert (word in str(refused.value).removesuffix("; a value is never replaced")) == (name in changed)


def test_verdicts_are_frozen(store: Store) -> None:
    assert (store.add_verdicts(verdicts(0.01)), store.add_verdicts(verdicts(0.5))) == (1, 0)
    assert store.verdicts()["p_value"].tolist() == [0.01]
    assert store.add_verdicts(verdicts(0.5).assign(basis="another event")) == 1


def test_events_are_recorded_once_withdrawn_and_recorded_again(store: Store) -> None:
    ids = store.add_events(events("cooling", 'fan "3",\nnew', "cooling"))
    assert ids[0] == ids[2]
    assert store.add_events(events("cooling")) == ids[:1]
    assert store.events()["reason"].tolist().count("cooling") == 1
    assert (store.withdraw_events(ids[:1], "john"), store.withdraw_events(ids[:1], "john")) == (1, 0)
    assert store.events()["reason"].tolist() == ['fan "3",\nnew']
    store.add_events(events("cooling"))
    assert len(store.events()) == 2
    assert store.events(history=True).query("reason == 'cooling'")["author"].tolist() == ["jane", "john", "jane"]
    with pytest.raises(InputError, match="there is none with id 0"):
        store.withdraw_events(["0"], "john")


def test_an_unknown_raw_table_is_told(store: Store, tmp_path: Path) -> None:
    store.ingest([small_archive(tmp_path / "a.zip", 1)])
    with pytest.raises(InputError, match="no archive of the store has a raw table benhc; there are bench"):
        store.observations("benhc")
    with pytest.raises(InputError, match="the raw table bench has no column sise"):
        store.observations("bench", columns=["sise"])


def test_an_ingest_that_fails_leaves_the_store_as_it_was(where: str, tmp_path: Path) -> None:
    ingest_one_by_one(where, [small_archive(tmp_path / "0.zip", 5)])
    clash = [small_archive(tmp_path / "1.zip", 1), small_archive(tmp_path / "other.zip", 2)]
    same_job = values(nodes=1, jobs=1)
    with open_store(where) as store:
        store.add_values(same_job)
        before = content(where)
        with pytest.raises(InputError, match="a value is never replaced"):
            store.ingest(clash, values_of=lambda archive: same_job.assign(archive=archive.id))
    assert content(where) == before


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_older_version_is_read_and_becomes_one_of_this_version(where: str, version: int) -> None:
    old_store(where, version)
    expected = values().sort_values(["node", "factor", "cpu", "job"], ignore_index=True)
    for _ in range(2):  # migrated, then as it is
        with open_store(where) as store:
            found = store.values()
            pandas.testing.assert_frame_equal(found, expected[list(found.columns)], check_exact=True)
    with open_store(where) as store:
        assert store.add_values(values()) == 0


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("store.json", '{"version": 99}', "is a store of version 99, .* upgrade"),
        ("thesis.tex", "", "holds other files and no store"),
    ],
)
def test_a_folder_of_a_later_version_or_of_something_else_is_no_store(name, text, told, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=told):
        open_store(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "zeros", "another table"])
def test_a_damaged_file_of_a_store_is_named(damage: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        store.add_values(values())
        store.ingest([small_archive(tmp_path / "a.zip", 1)])
    (path,) = (tmp_path / "store" / "data").rglob("factor_values-*.parquet")
    whole = path.read_bytes()
    (other,) = (tmp_path / "store" / "data").rglob("archives-*.parquet")
    path.write_bytes(
        {"cut": whole[:-9], "zeros": whole[:50] + bytes(200) + whole[250:], "another table": other.read_bytes()}[damage]
    )
    told = f"{re.escape(str(path))}: .*; the store is damaged: restore the file"
    with open_store(tmp_path / "store") as store:
        with pytest.raises(InputError, match=told):
            store.values()
        if damage != "zeros":  # of a column that a writer does not compare
            with pytest.raises(InputError, match=told):
                store.add_values(values(first_job=50))
    path.write_bytes(whole)
    with open_store(tmp_path / "store") as store:
        assert len(store.values()) == len(values()), "what failed has changed nothing"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({"number": float("inf")}, "number is inf; it must be an integer"),
        ({"files": {"factor_values": [{"place": "data/x/../y", "rows": 1}]}}, "is no place of its files"),
        ({"files": {"factor_values": [{"place": "data/\ud800/y", "rows": 1}]}}, "is no place of its files"),
        ({"garbage": ["/etc/passwd"]}, "is no place of its files"),
        ({"garbage": [3]}, "garbage is .3.; it must be text"),
    ],
)
def test_a_damaged_index_of_a_store_is_refused_in_one_line(damage: dict[str, Any], told: str, tmp_path: Path) -> None:
    open_store(tmp_path / "store").close()
    index = tmp_path / "store" / "store.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | damage))
    with pytest.raises(InputError, match=rf"store\.json: .*{told}"):
        open_store(tmp_path / "store")


@pytest.mark.parametrize("values_are", ["texts", "bytes", "lists"])
def test_a_column_of_another_type_is_refused_as_damage(values_are: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        store.add_values(values())
    (path,) = (tmp_path / "store" / "data").rglob("factor_values-*.parquet")
    rows = pyarrow.parquet.read_table(path)
    other = {"texts": "slow", "bytes": b"\xff", "lists": [1]}[values_are]
    at = rows.column_names.index("value")
    pyarrow.parquet.write_table(rows.set_column(at, "value", pyarrow.array([other] * len(rows))), path)
    with open_store(tmp_path / "store") as store, pytest.raises(InputError, match="the store is damaged"):
        store.values()


def test_a_folder_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"store-.* is no text in UTF-8"):
        open_store(tmp_path / "store-\udcff")
    assert list(tmp_path.iterdir()) == []


def test_the_password_of_a_url_is_in_no_message() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(EnvironmentProblem, match=r"postgresql://127.0.0.1/db: cannot be reached") as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)


def test_many_small_changes_become_few_files_and_lose_nothing(tmp_path: Path) -> None:
    jobs = 2 * MERGED_FILES + 3
    with open_store(tmp_path / "store") as store, open_store(tmp_path / "store") as other:
        for job in range(jobs):
            store.add_values(values(nodes=1, jobs=1, first_job=job))
            assert len(other.values()) == 4 * (job + 1), "a reader that was there before sees every change"
        assert store.values()["job"].nunique() == jobs
    assert len(list((tmp_path / "store").rglob("factor_values*.parquet"))) <= 2 * MERGED_FILES


@pytest.mark.slow
def test_four_concurrent_writers_lose_and_double_nothing(where: str, tmp_path: Path) -> None:
    """Each has archives of its own, and four that all have."""
    archives = [small_archive(tmp_path / f"{number}.zip", number) for number in range(12)]
    each_has = [[*archives[:4], *archives[4 + 2 * n : 6 + 2 * n]] for n in range(4)]
    run_at_once(ingest_one_by_one, [(where, files) for files in each_has])
    with open_store(where) as store:
        assert len(store.archives()) == 12
        assert len(store.values()) == 12 * 12
        assert len(store.observations("bench")) == 12 * 60


@pytest.mark.slow
@pytest.mark.parametrize("kills", long_but([6, 20], 6))
def test_a_kill_at_any_moment_leaves_whole_archives_only(where: str, kills: int, tmp_path: Path) -> None:
    archives = [small_archive(tmp_path / f"{number}.zip", number) for number in range(kills + 4)]
    for _ in killed_at_random(ingest_one_by_one, where, archives, kills):
        with open_store(where) as store:
            whole = len(store.archives())
            assert whole >= 2
            assert len(store.values()) == 12 * whole
            assert len(store.observations("bench")) == 60 * whole
    with open_store(where) as store:
        assert len(store.archives()) == kills + 4
        assert len(store.values()) == (kills + 4) * 12
    if not where.startswith("postgresql"):
        referenced = json.loads((Path(where) / "store.json").read_text())
        assert not (Path(where) / "unfinished").exists()
        assert os.listdir(Path(where) / "data"), referenced["number"]


def test_a_store_that_another_process_makes_meanwhile_is_no_foreign_folder(tmp_path: Path, monkeypatch) -> None:
    listed = os.listdir

    def made_meanwhile(folder: Any = ".") -> list[str]:
        if folder == tmp_path:
            monkeypatch.undo()
            open_store(tmp_path).close()
        return listed(folder)

    monkeypatch.setattr(os, "listdir", made_meanwhile)
    open_store(tmp_path).close()
