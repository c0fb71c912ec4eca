"""Recorded runs that are replayed: against the runs that they were recorded of, and against what a call has to take."""

import json
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from oracles.replays import LARGE, NOTHING, call, replayed, write

import lepaute as lp
from lepaute.errors import InputError, SimulationError
from lepaute.simulate.apps.replay.own_code import between
from lepaute.simulate.trace import write_trace
from lepaute.simulate.trace.table import NOBODY


def recorded(path: Path, application: Any, platform: Any = "dahu") -> float:
    """Writes the trace of one run, and returns its time."""
    found = lp.predict(application, platform, runs=1, layers=NOTHING, trace=lp.TraceRequest())
    assert found.trace is not None
    write_trace(found.trace, path)
    return found.time_s.mean


# ---- of a run that is known ------------------------------------------------------------------------------------------


class Random(lp.Application):
    """Each rank draws the same phases: neighbours, collective operations, computing of its own length."""

    ranks: int = 6
    which: int = 0
    unit = lp.Cost(1.0)

    def run(self, me: Any) -> Any:
        draws = random.Random(self.which)
        half = yield me.split(me.rank % 2)
        for _ in me.steps(12):
            what = draws.randrange(7)
            size = draws.choice((8, 3000, 200_000))
            shift = draws.randrange(1, me.size)
            yield me.compute(self.unit, draws.random() * 1e-3 * (1 + me.rank * (draws.random() < 0.5)))
            to, source = (me.rank + shift) % me.size, (me.rank - shift) % me.size
            if what == 0:
                got = yield me.irecv(source, 3)
                yield me.compute(self.unit, 1e-4)
                sent = yield me.isend(to, size, 3)
                yield me.wait(got)
                yield me.wait(sent)
            elif what == 1:
                yield me.exchange([(to, size), (source, size)] if to != source else [(to, size)])
            elif what == 2 and me.rank != 0:
                yield me.send(0, size, 5)
            elif what == 2:
                for rank in range(1, me.size):
                    yield me.receive(rank, 5)
            elif what == 3:
                yield half.allreduce(size)
            elif what == 4:
                yield me.bcast(size, shift)
            elif what == 5:
                yield me.alltoall(size // 8)
            else:
                yield half.barrier()


@pytest.mark.parametrize("which", range(6))
def test_a_predicted_run_replayed_takes_as_long(which: int, tmp_path: Path) -> None:
    time_s = recorded(tmp_path / "run.parquet", Random(which=which))
    assert replayed(tmp_path / "run.parquet").time_s.mean == pytest.approx(time_s, rel=3e-3)


def test_hpl_replayed_takes_as_long_as_hpl(tmp_path: Path) -> None:
    hpl = lp.Hpl(n=1500, nb=128, p=2, q=2)
    time_s = recorded(tmp_path / "run.parquet", hpl)
    found = replayed(tmp_path / "run.parquet")
    assert found.time_s.mean == pytest.approx(time_s, rel=0.01)
    assert found.application.steps == hpl.steps  # of the trace


def test_on_another_platform_the_replay_takes_what_the_program_takes_there(tmp_path: Path) -> None:
    recorded(tmp_path / "run.parquet", Random(which=1))
    slow = lp.override(lp.load_platform("dahu"), {"scale.bandwidth": "0.25", "scale.latency": "4"})
    there = lp.predict(Random(which=1), slow, runs=1, layers=NOTHING).time_s.mean
    assert replayed(tmp_path / "run.parquet", slow).time_s.mean == pytest.approx(there, rel=3e-3)


# ---- what a call takes -----------------------------------------------------------------------------------------------


def test_time_between_calls_is_the_programs_own_and_that_in_calls_is_not(tmp_path: Path) -> None:
    rows = [call(rank, "Barrier", comm=0, start_s=1.0, duration_s=5.0) for rank in range(2)]
    path = write(tmp_path / "run.parquet", rows, begins_s=[0.5, 0.0], ends_s=[8.0, 7.0])
    assert replayed(path).time_s.mean == pytest.approx(1.0 + 2.0, rel=1e-3)  # the later to come, the later to go


def test_a_test_that_finds_nothing_waits_for_nothing_and_one_that_does_is_a_wait(tmp_path: Path) -> None:
    receiver = [
        call(0, "Irecv", 1, LARGE, completion=4, start_s=0.0),
        call(0, "Test", n=1000.0, start_s=0.0, duration_s=8.0),
        call(0, "Test", completion=4, start_s=8.0),
        call(0, "Barrier", comm=0, start_s=8.5),
    ]
    sender = [call(1, "Send", 0, LARGE, start_s=3.0), call(1, "Barrier", comm=0, start_s=3.0)]
    path = write(tmp_path / "run.parquet", [*receiver, *sender])
    assert replayed(path).time_s.mean == pytest.approx(3.5, rel=1e-2)


def test_a_probe_waits_for_its_message(tmp_path: Path) -> None:
    receiver = [
        call(0, "Iprobe", 1, 8.0, n=7.0, start_s=0.0, duration_s=1.0),
        call(0, "Iprobe", 1, 8.0, start_s=1.0),
        {"rank": 0, "name": "computing", "start_s": 1.0, "duration_s": 1.0},
        call(0, "Recv", 1, 8.0, start_s=2.0),
    ]
    path = write(tmp_path / "run.parquet", [*receiver, call(1, "Send", 0, 8.0, start_s=2.0)])
    assert replayed(path).time_s.mean == pytest.approx(3.0, rel=1e-2)


def test_any_source_is_the_one_that_came(tmp_path: Path) -> None:
    receiver = [call(0, "Recv", 2, 8.0, start_s=0.0), call(0, "Recv", 1, 8.0, start_s=0.0)]
    senders = [call(1, "Send", 0, 8.0, start_s=1.0), call(2, "Send", 0, 8.0, start_s=4.0)]
    assert replayed(write(tmp_path / "run.parquet", [*receiver, *senders])).time_s.mean == pytest.approx(4.0, rel=1e-2)


def test_sendrecv_goes_both_ways_and_nobody_is_nobody(tmp_path: Path) -> None:
    rows = []
    for rank in range(3):
        up, down = rank + 1 if rank < 2 else NOBODY, rank - 1 if rank else NOBODY
        rows += [call(rank, "Sendrecv", up, LARGE, start_s=1.0 + rank, duration_s=0.1)]
        rows += [call(rank, "Sendrecv_arrival", down, LARGE, start_s=1.0 + rank)]
    assert replayed(write(tmp_path / "run.parquet", rows)).time_s.mean == pytest.approx(3.0, rel=1e-2)


@pytest.mark.parametrize("free", [True, False])
def test_requests_that_nobody_waits_for_need_no_wait(free: bool, tmp_path: Path) -> None:
    sender = [call(0, "Isend", 1, LARGE, start_s=0.0), *([call(0, "Request_free", start_s=0.0)] if free else [])]
    path = write(tmp_path / "run.parquet", [*sender, call(1, "Recv", 0, LARGE, start_s=0.5)])
    assert replayed(path).time_s.mean == pytest.approx(0.5, rel=1e-2)


def test_collective_operations_take_the_mean_of_sizes_that_differ(tmp_path: Path) -> None:
    def of(name: str, sizes: Sequence[float]) -> float:
        rows = [call(rank, name, comm=0, size_bytes=size, start_s=0.0) for rank, size in enumerate(sizes)]
        return replayed(write(tmp_path / f"{name}{sizes[0]}.parquet", rows)).time_s.mean

    assert of("Allgatherv", (2e6, 0.0, 1e6, 1e6)) == of("Allgather", (1e6,) * 4) > 0.0
    assert of("Alltoallv", (8e6, 0.0, 4e6, 4e6)) == of("Alltoall", (4e6,) * 4) > 0.0
    assert of("Reduce_scatter", (4e6,) * 4) == of("Reduce_scatter_block", (1e6,) * 4) > 0.0


def test_kernels_take_the_time_of_the_platforms_models_and_others_that_recorded(tmp_path: Path) -> None:
    def of(name: str) -> float:
        row = {"rank": 0, "name": name, "m": 500.0, "n": 500.0, "k": 500.0, "start_s": 0.0, "duration_s": 7.0}
        return replayed(write(tmp_path / f"{name}.parquet", [row])).time_s.mean

    assert of("zgemm") == pytest.approx(7.0)
    assert of("dgemm") < 0.1


# ---- on another machine ----------------------------------------------------------------------------------------------


def test_own_code_takes_as_many_times_as_long_and_its_bounds_hold_95_of_100_runs(tmp_path: Path) -> None:
    path = write(tmp_path / "run.parquet", [call(0, "Barrier", comm=0, start_s=2.0)])
    assert replayed(path, own_code=0.5).time_s.mean == pytest.approx(1.0, rel=1e-3)
    only = lp.Layers.only("own_code")
    found = lp.predict(lp.TraceReplay(path, own_code=(0.8, 1.0)), "dahu", runs=300, layers=only)
    inside = sum(1.6 <= run.time_s <= 2.0 for run in found.run_list)
    assert 274 <= inside <= 296  # 0.95 of 300, three standard deviations
    assert any("0.8 to 1 times as long as recorded, as given" in warning for warning in found.warnings)


def test_bounds_between_platforms_are_those_of_computing_and_of_memory() -> None:
    dahu = lp.load_platform("dahu")
    nodes = {"nodes.memory_bandwidth_Bps": "2e11"}
    old = lp.override(dahu, nodes).model_copy(update={"name": "old"})
    new = lp.override(dahu, {"nodes.memory_bandwidth_Bps": "1e11", "scale.dgemm": "0.8"})
    factor = between(old, new, 1, 1.0)
    assert factor.high == pytest.approx(2.0)
    assert factor.low == pytest.approx(0.8, rel=1e-3) or factor.low == pytest.approx(1.25, rel=1e-3)
    assert "by the rate of dgemm" in factor.words
    again = between(old, old, 1, 1.0)
    assert (again.low, again.high, again.same) == (1.0, 1.0, True)


def test_a_trace_of_the_same_platform_takes_as_recorded_and_one_of_nowhere_says_so(tmp_path: Path) -> None:
    rows = [call(0, "Barrier", comm=0, start_s=2.0)]
    same = replayed(write(tmp_path / "same.parquet", rows, platform=lp.load_platform("dahu").name))
    assert any("as recorded, on the same platform" in warning for warning in same.warnings)
    nowhere = replayed(write(tmp_path / "nowhere.parquet", rows))
    assert any("on a machine that nothing tells of" in warning for warning in nowhere.warnings)


@pytest.mark.parametrize("bounds", [(1.0, 0.5), (0.0, 1.0), (1.0, 4.0), "fast", (1.0,), (float("nan"), 1.0)])
def test_bounds_that_cannot_be_are_refused(bounds: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^own_code is "):
        lp.TraceReplay(tmp_path / "run.parquet", own_code=bounds)


# ---- what is not complete --------------------------------------------------------------------------------------------


def test_a_message_that_lacks_a_side_is_named_with_who_waits(tmp_path: Path) -> None:
    rows = [call(0, "Send", 1, 8.0, 3), call(1, "Recv", 0, 8.0, 3), call(1, "Recv", 0, 8.0, 3)]
    path = write(tmp_path / "run.parquet", rows)
    with pytest.raises(
        InputError, match=r"rank 1 waits for a message from rank 0, tag 3, in MPI_Recv at 2.00 s, which"
    ):
        replayed(path)
    with pytest.raises(InputError, match=r"rank 0 sends a message to rank 1, tag 3, in MPI_Send at 1.00 s, which that"):
        replayed(write(path, rows[:1]))


def test_a_recording_that_does_not_tell_its_ranks_has_those_of_its_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "run.parquet", [call(0, "Send", 1, 8.0), call(1, "Recv", 0, 8.0)], ranks=None)
    assert lp.TraceReplay(path).ranks == 2
    replayed(path)


def test_a_collective_operation_that_a_rank_leaves_out_is_named(tmp_path: Path) -> None:
    rows = [call(0, "Allreduce", comm=0, size_bytes=8.0), call(1, "Allreduce", comm=0, size_bytes=8.0)]
    path = write(tmp_path / "run.parquet", [*rows, call(1, "Barrier", comm=0)])
    with pytest.raises(InputError, match=r"rank 1 calls barrier \(MPI_Barrier\), which rank 0 leaves out"):
        replayed(path)


def test_numbers_of_groups_may_have_gaps(tmp_path: Path) -> None:
    def time_s(number: int) -> float:
        rows = [call(rank, "Allreduce", comm=comm, size_bytes=8.0) for comm in (0, number) for rank in range(2)]
        return replayed(write(tmp_path / f"{number}.parquet", rows)).time_s.mean

    assert time_s(1) == time_s(7) == time_s(2**31 - 1)


def test_an_order_in_which_all_wait_is_a_deadlock(tmp_path: Path) -> None:
    rows = [call(rank, name, 1 - rank, LARGE) for rank in range(2) for name in ("Recv", "Send")]
    with pytest.raises(SimulationError, match=r"deadlock: rank 0 in receive \(MPI_Recv\) from rank 1, tag 0"):
        replayed(write(tmp_path / "run.parquet", rows))


def test_a_program_computes_between_tests_and_the_recorder_has_its_own_time(tmp_path: Path) -> None:
    rows = [
        call(0, "Barrier", comm=0, start_s=1.0),
        call(0, "Test", n=1001.0, m=2.0e9, start_s=2.0, duration_s=5.0),  # the rest is in MPI, where nothing is done
        call(0, "Barrier", comm=0, start_s=8.0),
    ]
    found = [
        replayed(write(tmp_path / f"{at}.parquet", rows, ends_s=[9.0], recorder_s=[0.1 * at, 1e-3 * at])).time_s.mean
        for at in (0, 1)
    ]
    # 1 s before the first call, 1 s after it, 2 s between tests, 1 s after them, 1 s at the end; of three gaps between
    # calls and 1000 between tests the recorder's own.
    assert found[0] == pytest.approx(6.0, rel=1e-3)
    assert found[1] == pytest.approx(6.0 - 3 * 0.1 - 1000 * 1e-3, rel=1e-3)


@pytest.mark.parametrize("name", ["Put", "Start", "Ineighbor_alltoall"])
def test_calls_that_cannot_be_replayed_are_refused_by_name(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "run.parquet", [call(0, "Barrier", comm=0), call(0, name, 0)])
    with pytest.raises(InputError, match=f"MPI_{name}, which rank 0 calls at 2.00 s, cannot be replayed"):
        replayed(path)
    unknown = write(path, [call(rank, "Bcast", 0, 8.0) for rank in range(2)])
    with pytest.raises(InputError, match=r"the ranks of MPI_Bcast, which rank 0 calls at 1.00 s, are not known"):
        replayed(unknown)


# ---- as any application ----------------------------------------------------------------------------------------------


def test_the_command_line_predicts_compares_and_traces(tmp_path, refusal_of, json_of):
    path, traced = tmp_path / "run.parquet", tmp_path / "again.parquet"
    time_s = recorded(path, Random(which=2))
    command = ["predict", "trace", str(path), "-p", "dahu", "--without", "all", "--runs", "2", "--json"]
    found = json_of(*command, "--against", "own-code=0.5", "--trace", traced)
    assert found["application"] == "trace"
    assert found["time_s"]["mean"] == pytest.approx(time_s, rel=1e-3)
    assert found["differences"][0]["time_s"]["mean"] < 0.9 * time_s
    assert replayed(traced).time_s.mean == pytest.approx(time_s, rel=3e-3)
    assert "none.parquet: No such file" in refusal_of(*command[:2], tmp_path / "none.parquet", *command[3:])


def test_a_replay_can_be_sent_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    recorded(path, Random(which=3))
    replay = lp.TraceReplay(path, own_code=(0.9, 1.1))
    assert pickle.loads(pickle.dumps(replay)) == replay
    saved = tmp_path / "prediction.json"
    saved.write_text(json.dumps(lp.predict(replay, "dahu", runs=2).to_dict()))
    assert lp.read_prediction(saved).application == replay
    found = repr(lp.read_prediction(saved))
    path.unlink()
    assert repr(lp.read_prediction(saved)) == found
