"""Data from elsewhere in a store: added twice it adds nothing; what is not taken in."""

import datetime as dt
import re
import time
from pathlib import Path

import pytest
from support_factors import calibration
from support_watch import MAPPING

import lepaute as lp
from lepaute.errors import InputError
from lepaute.watch.foreign import FORMATS, read_foreign
from lepaute.watch.judging.judge import judge
from lepaute.watch.store import Store, open_store

DATA = Path(__file__).parents[1] / "data" / "watch"
GRID5000 = Path(__file__).parents[2] / "examples" / "watch" / "grid5000.yaml"
FILES = {
    "reframe": (DATA / "foreign" / "reframe_results.db", None),
    "hpl": (DATA / "foreign" / "hpccoutf.txt", None),
    "csv": (DATA / "three_nodes.csv", GRID5000),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_is_added_again_adds_nothing(kind: str, tmp_path: Path) -> None:
    path, mapping = FILES[kind]
    more = {"node": "n1"} if kind == "hpl" else {}
    values = read_foreign(path, kind, mapping=mapping, **more)
    with open_store(tmp_path / "store") as store:
        assert store.add_values(values) == len(values)
        assert store.add_values(read_foreign(path, mapping=mapping, **more)) == 0
        kept = store.values()
        assert len(kept) == len(values)
        assert (kept["state"] == "failed").sum() == (values["state"] == "failed").sum()
        assert set(kept["archive"]) == {""}


def test_values_of_a_mapped_file_are_tested() -> None:
    tests = judge(read_foreign(DATA / "three_nodes.csv", mapping=GRID5000), factors=["cpu_power_W"], windows=[1])
    assert len(tests) == 536
    assert (tests["missing"] == 0).sum() > 500


DAY_S = 86_400.0


def table(path: Path, *rows: str) -> Path:
    (path.parent / "mapping.yaml").write_text(MAPPING)
    path.write_text("\n".join(["node,cpu,job,date,a,b", *rows]) + "\n")
    return path


def refusal(folder: Path, *files: Path) -> str:
    """Of an ingest into a new store, which stays empty."""
    mapping = folder / "mapping.yaml"
    with lp.watch.open(folder / "store") as watch:
        with pytest.raises(InputError) as refused:
            watch.ingest(files, mapping=mapping if mapping.exists() else None)
        assert is_empty(watch.store)
    return str(refused.value)


def is_empty(store: Store) -> bool:
    return store.values().empty and store.archives().empty


def test_a_file_with_a_job_of_the_future_is_refused_with_the_job_and_its_date(tmp_path: Path) -> None:
    ahead_s = time.time() + 300 * DAY_S
    date = dt.datetime.fromtimestamp(int(ahead_s), dt.UTC).strftime("%Y-%m-%d %H:%M")
    good = table(tmp_path / "good.csv", "1,0,7,86400,1,2")
    wrong = table(tmp_path / "wrong.csv", "1,0,8,172800,1,2", f"1,0,9,{ahead_s},1,2")
    said = refusal(tmp_path, good, wrong)
    assert said.startswith(f"{wrong}: job 9 starts in the future, at {date} UTC")
    assert "correct the date, or set the clock of this machine" in said


def test_clocks_may_differ_by_a_day(tmp_path: Path) -> None:
    file = table(tmp_path / "day.csv", f"1,0,7,{time.time() + DAY_S - 60},1,2")
    with lp.watch.open(tmp_path / "store") as watch:
        assert watch.ingest([file], mapping=tmp_path / "mapping.yaml").values == 2


def test_an_archive_of_the_future_is_refused_with_its_date(tmp_path: Path) -> None:
    start = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    phases = [{"name": "run", "start": start.isoformat(), "duration_s": 60.0, "status": "done"}]
    path = calibration(tmp_path / "a.zip", phases=phases)
    assert f"{path}: job" in (said := refusal(tmp_path, path))
    assert f"{start:%Y-%m-%d %H:%M} UTC" in said
    assert "measure again" in said


def test_two_files_with_other_values_of_one_job_are_named(tmp_path: Path) -> None:
    one = table(tmp_path / "one.csv", "1,0,7,86400,1,2", "2,0,7,86400,1,2")
    other = table(tmp_path / "other.csv", "2,0,8,86400,1,2", "2,0,7,86400,1,3")
    said = refusal(tmp_path, one, other)
    assert re.match(rf"{one} and {other}: b_W of node '2', cpu 0, job 7 is in both, and not the same; leave", said)
