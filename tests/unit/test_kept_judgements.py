"""Judgements that are kept: they are what was worked out, follow every input, and a broken cache changes nothing."""

import datetime as dt
import shutil
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest
from support_planted import Fault, planted

from lepaute.cli import watch_tests
from lepaute.cli.main import main
from lepaute.watch import kept
from lepaute.watch import open as open_watch
from lepaute.watch.alarms import procedure
from lepaute.watch.alarms.procedure import AlarmSettings, Judged, judge_days, judged_once
from lepaute.watch.changelog import Changelog, Event, NodeSet
from lepaute.watch.judging import recorded_tests
from lepaute.watch.values import DAY_S


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "judgements"


@pytest.fixture
def counted(monkeypatch) -> list[int]:
    calls: list[int] = []

    def judge(*arguments: object, **options: object) -> Judged:
        calls.append(1)
        return judge_days(*arguments, **options)

    monkeypatch.setattr(procedure, "judge_days", judge)
    return calls


VALUES = planted(6, 80, (Fault((1,), -0.08, 56),), 73)
ASKED = (Changelog(), AlarmSettings())


def assert_equal(one: Judged, other: Judged) -> None:
    for field in fields(Judged):
        tables = [getattr(each, field.name).drop(columns="judged_s", errors="ignore") for each in (one, other)]
        pd.testing.assert_frame_equal(*tables)


@pytest.mark.slow
def test_what_is_kept_is_what_was_worked_out_and_any_other_input_is_judged_anew(folder, counted):
    first = judged_once(VALUES, *ASKED)
    assert len(first.alarms) > 0
    again = judged_once(VALUES, *ASKED)
    assert len(counted) == 1
    assert_equal(first, again)
    assert_equal(again, judge_days(VALUES, *ASKED))
    event = Event(dt.date(2026, 2, 1), NodeSet("all", "all"), "platform", "BIOS")
    others = [
        (VALUES.assign(value=VALUES["value"] * 1.0000001), *ASKED),
        (VALUES.iloc[:-1], *ASKED),
        (VALUES, replace(ASKED[0], events=(event,)), ASKED[1]),
        (VALUES, ASKED[0], AlarmSettings(least_change=0.01)),
    ]
    for number, other in enumerate(others, 2):
        judged_once(*other)
        assert len(counted) == number


@pytest.mark.slow
def test_a_cache_that_is_damaged_or_cannot_be_written_costs_time_only(folder, counted, monkeypatch):
    first = judged_once(VALUES, *ASKED)
    for path in folder.glob("*.looks.parquet"):
        path.write_bytes(path.read_bytes()[:100])
    assert_equal(first, judged_once(VALUES, *ASKED))
    assert len(counted) == 2
    file = folder.parent.parent / "file"
    file.write_text("")
    monkeypatch.setenv("LEPAUTE_HOME", str(file / "cache"))
    assert_equal(first, judged_once(VALUES, *ASKED))
    assert len(counted) == 3


@pytest.mark.slow
def test_the_oldest_are_removed(folder, monkeypatch):
    monkeypatch.setattr(kept, "MAX_KEPT", 2 * len(fields(Judged)))
    for least in (0.001, 0.002, 0.003):
        judged_once(VALUES, Changelog(), AlarmSettings(least_change=least))
    assert len(list(folder.iterdir())) == 2 * len(fields(Judged))


@pytest.mark.slow
def test_a_second_test_is_answered_from_the_cache_until_anything_comes_in(folder, tmp_path, monkeypatch, capsys):
    asked: list[int] = []
    tested = watch_tests._tested

    def counting(*arguments: object) -> object:
        asked.append(1)
        return tested(*arguments)

    def said(*words: str) -> str:
        capsys.readouterr()
        main(["watch", "test", *words, "--store", str(tmp_path / "store"), "--json"])
        return capsys.readouterr().out.partition('"new_alarms"')[0]

    monkeypatch.setattr(watch_tests, "_tested", counting)
    early = VALUES["started_s"] < VALUES["started_s"].max()
    with open_watch(tmp_path / "store") as watch:
        watch.store.add_values(VALUES[early])
    first = said()
    assert said() == first
    assert len(asked) == 1
    assert said("--node", "n1") != first
    for path in folder.glob("*.state"):
        path.write_bytes(path.read_bytes()[:-20])
    assert said() == first
    assert len(asked) == 3
    with open_watch(tmp_path / "store") as watch:
        watch.store.add_values(VALUES[~early])
    assert said() != first
    with open_watch(tmp_path / "store") as watch:
        watch.add_changelog(Changelog((Event(dt.date(2026, 3, 1), NodeSet("all", "all"), "platform", "BIOS"),)))
    assert '"regressions": []' in said()
    assert len(asked) == 5


@pytest.mark.slow
def test_what_is_kept_of_earlier_days_changes_no_answer(folder, tmp_path, monkeypatch, capsys):
    """After a further day, a job of the day before that comes in late, and an event."""
    days = VALUES["started_s"] // DAY_S
    late = (days == days.max() - 2) & (VALUES["node"] == "n2")
    event = Event(dt.date(2026, 2, 1), NodeSet("all", "n3"), "platform", "BIOS")
    known: list[int] = []
    vector_tests = recorded_tests.vector_tests

    def spied(*arguments: object) -> object:
        known.append(len(arguments[-1]))
        return vector_tests(*arguments)

    def said(name: str) -> str:
        monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / f"home {name}"))
        capsys.readouterr()
        main(["watch", "test", "--store", str(tmp_path / name), "--json"])
        return capsys.readouterr().out.partition('"new_alarms"')[0]

    monkeypatch.setattr(recorded_tests, "vector_tests", spied)
    steps = [VALUES[(days <= days.max() - 2) & ~late], VALUES[days == days.max() - 1], VALUES[late], event]
    for number, step in enumerate(steps):
        with open_watch(tmp_path / "store") as watch:
            watch.add_changelog(Changelog((step,))) if isinstance(step, Event) else watch.store.add_values(step)
        shutil.copytree(tmp_path / "store", tmp_path / f"copy {number}")
        assert said("store") == said(f"copy {number}")
    factors = VALUES["factor"].nunique()
    assert known == [0, 0, factors, 0, 0, 0, 0, 0]
