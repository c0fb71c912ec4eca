"""Costs that are measured in a recording, and what a run under load says of code that waits for memory."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.emulated import tiny
from oracles.replays import call, write

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.apps.own.loading import loaded
from lepaute.simulate.apps.own.values import costs_of
from lepaute.simulate.smpi.emulated_run import (
    MIN_INTERVALS,
    OwnTimes,
    Place,
    Slowdowns,
    memory_shares,
    slowdown_of,
    slowdowns_of,
)

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


def place(alone_s: float, slowdown: float, count: int = 20) -> Place:
    logs = count * math.log(alone_s), count * math.log(alone_s * slowdown)
    return Place(2 * count, count * alone_s * (1 + slowdown), (count, logs[0]), (count, logs[1]))


def times(places: dict[str, Place], contention: float = 2.0) -> OwnTimes:
    return OwnTimes(1.0, 1.0, 1e10, 1e10 / contention, places)


@pytest.mark.parametrize(
    ("share", "ranks", "ratio", "expected"),
    [
        (0.0, 48, 0.1, 1.0),  # nothing waits for memory
        (1.0, 48, 0.1, 4.8),  # all do, all the time: 48 x B1 / Bn
        (1.0, 4, 0.1, 1.0),  # four cores do not fill the memory
        (0.7, 1, 0.5, 1.0),  # nobody to share it with
    ],
)
def test_the_ends_are_exact(share: float, ranks: int, ratio: float, expected: float) -> None:
    assert slowdown_of(share, ranks, ratio) == pytest.approx(expected, rel=1e-9)


def test_two_ranks_that_wait_for_memory_half_of_the_time() -> None:
    """With q the chance that the other waits as well, memory takes 1 + q times as long on two ranks of ratio 1; then
    q = (1 + q) / (2 + q), so that q is 0.618..., and the whole 0.5 + 0.5 (1 + q)."""
    q = (math.sqrt(5.0) - 1.0) / 2.0
    assert slowdown_of(0.5, 2, 1.0) == pytest.approx(0.5 + 0.5 * (1.0 + q), rel=1e-9)


def test_ranks_never_take_more_bandwidth_than_there_is_by_more_than_chance() -> None:
    """A node at its limit: what all ranks move in the time that they take is the bandwidth of all cores."""
    share, ranks, ratio = 0.5, 64, 0.1
    used = ranks * share / slowdown_of(share, ranks, ratio)  # in units of the bandwidth of one core
    assert used <= 1.0 / ratio * 1.02


def test_the_slowdown_under_load_tells_the_share_of_each_place_with_enough_intervals_and_contention() -> None:
    found = memory_shares(times({"a": place(1e-3, 1.0), "b": place(1e-3, 1.5), "c": place(1e-3, 2.4)}), 2.0)
    assert found == pytest.approx({"a": 0.0, "b": 0.5, "c": 1.0})
    few = {"a": place(1e-3, 1.5, MIN_INTERVALS - 1)}
    assert slowdowns_of(times(few), 2, 2, tiny()) == Slowdowns()
    assert slowdowns_of(times({"a": place(1e-3, 1.5)}, contention=1.05), 2, 2, tiny()) == Slowdowns()
    assert slowdowns_of(OwnTimes(), 2, 2, tiny()) == Slowdowns()
    assert slowdowns_of(times(few), 2, 2, tiny(), given_share=1.0) == Slowdowns(2.0, {}, 1.0)


def test_a_platform_with_the_bandwidth_of_its_cores_decides_and_else_this_machine() -> None:
    seen = times({"a": place(1e-3, 2.0)})
    here = slowdowns_of(seen, 2, 48, tiny())
    assert here.by_place["a"] == pytest.approx(2.0)  # as with two busy cores here
    known = tiny(cores="cores: 48, memory_bandwidth_Bps: 1e11, core_memory_bandwidth_Bps: 2e10")
    # 48 cores of 20 GB/s on 100 GB/s, and one core of it is twice as fast as one here.
    assert slowdowns_of(seen, 2, 48, known).by_place["a"] == pytest.approx(0.5 * 48 * 2e10 / 1e11)


def test_the_share_is_found_within_a_tenth_from_noisy_intervals() -> None:
    """A place of 40 + 40 intervals whose durations vary by 5 %, with a stream that becomes 1.8 times slower."""
    rng, errors = np.random.default_rng(16), []
    for _ in range(400):
        share = rng.uniform(0.1, 0.9)
        alone = rng.normal(0.0, 0.05, 40)
        loaded = rng.normal(math.log(1.0 + 0.8 * share), 0.05, 40)
        noisy = Place(80, 1.0, (40, float(alone.sum())), (40, float(loaded.sum())))
        errors.append(memory_shares(times({"a": noisy}), 1.8)["a"] - share)
    # sd of the difference of means: 0.05 sqrt(2 / 40) = 0.0112; of the share at most 0.0112 x 1.72 / 0.8 = 0.024.
    assert np.mean(np.abs(errors) < 0.1) > 0.99
    assert abs(np.mean(errors)) < 0.005
