"""Judgements that are kept: they are what was worked out, follow every input, and a broken cache changes nothing."""

import datetime as dt
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest
from support_planted import Fault, planted

from lepaute.watch import kept
from lepaute.watch.alarms import procedure
from lepaute.watch.alarms.procedure import AlarmSettings, Judged, judge_days, judged_once
from lepaute.watch.changelog import Changelog, Event, NodeSet


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "judgements"


@pytest.fixture
def counted(monkeypatch) -> list[int]:
    calls: list[int] = []

    def judge(*arguments: object) -> Judged:
        calls.append(1)
        return judge_days(*arguments)

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
    monkeypatch.setattr(kept, "MOST_KEPT", 2 * len(fields(Judged)))
    for least in (0.001, 0.002, 0.003):
        judged_once(VALUES, Changelog(), AlarmSettings(least_change=least))
    assert len(list(folder.iterdir())) == 2 * len(fields(Judged))
