"""Costs that are measured in a recording: which times count, what a unit is, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from oracles.replays import call, write

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.apps.own.loading import loaded
from lepaute.simulate.apps.own.values import costs_of

FILE = """
import lepaute as lp
class Cg(lp.Application):
    ranks: int = 2
    n: int = 10
    work = lp.Cost.measured("run.parquet", between=("MPI_Waitall", "MPI_Allreduce"), per="n**3"{more})
    def run(self, me):
        yield me.compute(self.work, self.n**3)
        yield me.allreduce(8)
"""


def recording(path: Path, *, first_s: float = 9.0, **metadata: Any) -> Path:
    """Each rank: Irecv, Waitall, 2 s of computing with a probe of 0.5 s in it (the first time first_s), Allreduce; then
    an Irecv follows, so that what passes until the next Waitall does not count."""
    rows = []
    for rank, factor in ((0, 0.99), (1, 1.01)):
        now = 0.0
        for i in range(6):
            rows.append(call(rank, "Irecv", 1 - rank, start_s=now + 1.0))
            rows.append(call(rank, "Waitall", start_s=now + 30.0, duration_s=1.0))
            rows.append(call(rank, "Iprobe", 1 - rank, start_s=now + 32.0, duration_s=0.5, n=3))
            ends_s = now + 31.5 + factor * (2.0 if i else first_s)
            rows.append(call(rank, "Allreduce", size_bytes=8, start_s=ends_s, comm=0))
            now = ends_s
    return write(path, rows, **metadata)


def application(folder: Path, more: str = "", **fields: Any) -> lp.Application:
    (folder / "app.py").write_text(FILE.format(more=more))
    return loaded("app.py", folder)(**fields)


def test_the_time_between_two_calls_is_that_of_a_unit_of_the_recorded_run(tmp_path: Path) -> None:
    recording(tmp_path / "run.parquet")
    (cost,) = costs_of(application(tmp_path))
    assert cost[:2] == ("work", pytest.approx(2.0 / 10**3))  # the first of each rank, 9 s, is none of them
    assert cost[2] == pytest.approx(12.706 * 0.01 / 1.96, rel=1e-3)  # two ranks that differ by 2 %: Student's t
    assert cost[3] == pytest.approx(0.0, abs=1e-9)
    assert costs_of(application(tmp_path, n=20)) == costs_of(application(tmp_path))
    assert costs_of(application(tmp_path, ", n=20"))[0][1] == pytest.approx(2.0 / 20**3)
    recording(tmp_path / "run.parquet", parameters={"n": 5})
    assert costs_of(application(tmp_path))[0][1] == pytest.approx(2.0 / 5**3)


def test_a_prediction_takes_the_measured_time_and_says_where_it_is_from(tmp_path, json_of):
    recording(tmp_path / "run.parquet")
    application(tmp_path)
    told = json_of("predict", f"{tmp_path}/app.py", "-p", "dahu", "--without", "all", "--runs", "1", "--json")
    assert told["time_s"]["mean"] == pytest.approx(2.0, rel=1e-4)
    assert any(
        text.startswith(
            "the cost of work is as measured, on a machine that nothing tells of: 10 measurements on 2 ranks"
        )
        for text in told["warnings"]
    )


def test_another_recording_is_another_program(tmp_path: Path) -> None:
    recording(tmp_path / "run.parquet")
    before = application(tmp_path).on().code
    assert application(tmp_path).on().code == before
    recording(tmp_path / "run.parquet", parameters={"n": 11})
    assert application(tmp_path).on().code != before


MISUSE: dict[str, tuple[dict[str, Any], str]] = {
    "no file": ({"recording": "none.parquet"}, "the cost work: none.parquet: No such file"),
    "no such call": ({"between": ("MPI_Waitall", "MPI_Bcast")}, "no rank calls MPI_Bcast; they call MPI_Allreduce, "),
    "never": ({"between": ("MPI_Allreduce", "MPI_Waitall")}, "no MPI_Waitall is the next call after MPI_Allreduce"),
    "one call": ({"between": ("MPI_Waitall",)}, "between has 1 call; it is the one before and the one after"),
    "no expression": ({"per": "__import__('os')"}, r"per is \"__import__\('os'\)\"; the functions are min, max"),
    "a name": ({"per": "m"}, "the cost work: 'm': there is no m; known are "),
}


@pytest.mark.parametrize("what", MISUSE)
def test_what_no_recording_tells_is_refused(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording(tmp_path / "run.parquet")
    monkeypatch.chdir(tmp_path)
    changed, message = MISUSE[what]
    given = {"recording": str(tmp_path / "run.parquet"), "between": ("MPI_Waitall", "MPI_Allreduce")} | changed

    def made() -> None:
        cost = lp.Cost.measured(**given)
        cost.__set_name__(object, "work")
        cost.of(lp.Hpl(n=100, p=1, q=1))

    with pytest.raises(InputError, match=message):
        made()
