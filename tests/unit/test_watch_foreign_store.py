"""Data from elsewhere in a store: adding a file again adds nothing, and failed jobs stay there."""

from pathlib import Path

import pytest

from lepaute.watch.foreign import FORMATS, read_foreign
from lepaute.watch.judging.judge import judge
from lepaute.watch.store import open_store

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
