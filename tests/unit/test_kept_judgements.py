"""What is kept is what was worked out: judgements and platforms; a broken cache changes nothing."""

import datetime as dt
import os
import shutil
import sys
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest
from support_limits import ran
from support_planted import Fault, planted

from lepaute.cli import watch_tests
from lepaute.cli.main import main
from lepaute.errors import PlatformError
from lepaute.simulate.platform import io, load_platform, shipped_names
from lepaute.simulate.platform.io import SHIPPED_FOLDER, parse_platform
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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where platforms are kept, which is not there yet."""
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "platforms"


def test_a_platform_from_the_cache_is_that_of_its_text(cache: Path) -> None:
    for number, path in enumerate(sorted(SHIPPED_FOLDER.glob("*.yaml")), start=1):
        first, again = load_platform(path), load_platform(path)
        assert len(list(cache.glob("*.json"))) == number
        made = parse_platform(path.read_text(encoding="utf-8"))
        assert repr(again.model_dump()) == repr(first.model_dump()) == repr(made.model_dump())
        assert (again, again.sha256) == (made, made.sha256)
        assert again.kernels[0].pieces[0] == made.kernels[0].pieces[0]


@pytest.mark.parametrize("damage", [b"", b"x" * 100, None])
def test_what_is_damaged_in_the_cache_is_made_anew(cache: Path, damage: bytes | None) -> None:
    whole = load_platform("stampede-like")
    (file,) = cache.glob("*.json")
    content = file.read_bytes()
    flipped = content[:900] + bytes([content[900] ^ 1]) + content[901:]
    file.write_bytes(flipped if damage is None else damage)
    assert load_platform("stampede-like") == whole
    assert file.read_bytes() == content


def test_a_text_that_changes_and_sources_that_change_are_checked(cache, tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    text = (SHIPPED_FOLDER / "stampede-like.yaml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    assert load_platform(path).nodes.count > 1
    path.write_text(text.replace("format: lepaute-platform/1", "format: lepaute-platform/9"), encoding="utf-8")
    with pytest.raises(PlatformError, match=r"mine\.yaml:1: format is 'lepaute-platform/9'"):
        load_platform(path)
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(io, "_sources", lambda: "others")
    load_platform(path)
    assert len(list(cache.glob("*.json"))) == 2


def test_no_cache_is_no_trouble_and_a_full_one_loses_its_oldest(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.parent.write_text("a file in the place of the folder")
    assert load_platform("dahu").name == "dahu-2020-01"
    cache.parent.unlink()
    monkeypatch.setattr(io, "MAX_KEPT", 3)
    for name in shipped_names():
        load_platform(name)
    assert len(list(cache.glob("*.json"))) == 3


def test_a_second_prediction_checks_nothing_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from lepaute.cli.main import main\n"
        "main('predict hpl -p dahu --n 1k --nb 128 --grid 1x2 --runs 1'.split())\n"
        "heavy = ('pydantic', 'yaml', 'numpy', 'pandas', 'scipy', 'rich', 'tempfile', 'concurrent.futures')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    outputs = [
        ran([sys.executable, "-c", code], check=True, env=os.environ | {"LEPAUTE_HOME": str(tmp_path)})
        for _ in range(2)
    ]
    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[1].stderr.splitlines()[-1] == "[]"
