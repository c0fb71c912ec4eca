"""Replays of what a real run has and a simulated one has not: shared cores, threads, an early end."""

from pathlib import Path

import pytest
from oracles.replays import LARGE, call, replayed, write

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.prediction.wording import takes


def test_waiting_for_a_core_is_left_out_and_sleeping_stays(tmp_path: Path) -> None:
    rows = [
        {"rank": 0, "name": name, "start_s": start_s, "duration_s": 2.0}
        for name, start_s in (("waiting_for_a_core", 1.0), ("sleeping", 4.0), ("zgemm", 7.0))
    ]
    path = write(tmp_path / "run.parquet", [*rows, call(0, "Barrier", comm=0, start_s=10.0)], waiting_share=0.2)
    assert replayed(path).time_s.mean == pytest.approx(10.0 - 2.0, rel=1e-3)
    lp.load_platform("dahu").to_yaml(tmp_path / "same.yaml")
    again = lp.TraceReplay(path, recorded_on=str(tmp_path / "same.yaml"))
    assert (factor := again.on(lp.load_platform(tmp_path / "same.yaml")).factor).same
    assert (factor.low, factor.high) == (1.0, pytest.approx(1.25))
    assert "up to 1.25 times as long where it waits for a core" in factor.words


def test_threads_in_calls_at_once_are_refused_and_others_take_turns(tmp_path: Path) -> None:
    def of(start_s: float) -> Path:
        rows = [
            call(0, "Recv", 1, 8.0, start_s=1.0, duration_s=2.0),
            call(0, "Send", 1, 8.0, start_s=start_s, thread=1),
            call(1, "Send", 0, 8.0, start_s=0.5),
            call(1, "Recv", 0, 8.0, start_s=0.6),
        ]
        return write(tmp_path / f"{start_s}.parquet", rows)

    assert replayed(of(3.5)).time_s.mean == pytest.approx(1.5, rel=1e-3)
    message = r"thread 1 of rank 0 calls MPI_Send at 2.00 s, while its thread 0 is in MPI_Recv: threads that are in"
    with pytest.raises(InputError, match=message):
        replayed(of(2.0))


def test_of_a_run_that_was_cut_short_what_lacks_its_other_side_is_left_out(tmp_path: Path) -> None:
    both = [row for rank in range(2) for row in (call(rank, "Barrier", comm=0), call(rank, "Barrier", comm=0))]
    more = [
        *(call(0, "Send", 1, LARGE), call(0, "Barrier", comm=0), call(0, "Irecv", 1, 8.0, 9, completion=7)),
        *(call(0, "Wait", completion=7), call(1, "Irecv", -1, LARGE), call(1, "Recv", 0, 8.0, 5)),
    ]
    whole, cut = (
        write(tmp_path / f"{name}.parquet", [*both, *rows], ends_s=[8.0, 8.0], **metadata)
        for name, rows, metadata in (("whole", [], {}), ("cut", more, {"ended_by": "MPI_Abort"}))
    )
    assert replayed(cut).time_s.mean == pytest.approx(replayed(whole).time_s.mean, rel=1e-3)
    assert "up to its end by MPI_Abort takes" in takes(replayed(cut))
