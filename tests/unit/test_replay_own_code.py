"""The layer of a replayed program's own code, and replayed operations that do not block."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.replays import LARGE, NOTHING, call, replayed, write

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.platform.schema import Wandering
from lepaute.simulate.trace.messages import BLOCKING_OF

BOUNDS = (0.7, 1.3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten seconds of own code on each of two ranks, and messages of a few milliseconds."""
    rows = []
    for _ in range(10):
        rows += [call(0, "Send", 1, 1e6), call(1, "Recv", 0)]
    return write(tmp_path / "run.parquet", rows)


def test_it_is_a_layer_of_its_own_in_the_interval(path: Path) -> None:
    found = lp.predict(lp.TraceReplay(path, own_code=BOUNDS), "dahu", runs=12, parts=True)
    assert max(found.parts.relative_sd, key=lambda name: found.parts.relative_sd[name]) == "own_code"
    assert found.parts.relative_sd["own_code"] == pytest.approx(0.3 / 1.96, rel=0.6)
    known = lp.predict(lp.TraceReplay(path, own_code=(1.0, 1.0)), "dahu", runs=12, parts=True)
    assert "own_code" not in known.parts.relative_sd


def test_its_interval_holds_what_programs_take_whose_own_code_is_between_the_bounds(path: Path) -> None:
    """Truth: programs whose own code is faster or slower by a factor from the bounds; nothing else is drawn."""
    interval = lp.predict(
        lp.TraceReplay(path, own_code=BOUNDS), "dahu", runs=60, layers=lp.Layers.only("own_code")
    ).time_s
    without = lp.predict(
        lp.TraceReplay(path, own_code=BOUNDS), "dahu", runs=12, layers=lp.Layers.without(["own_code"])
    ).time_s
    middle, draws = sum(BOUNDS) / 2, np.random.default_rng(1)
    normal = middle * np.exp(draws.normal(0.0, (BOUNDS[1] - middle) / 1.96 / middle, 200))
    held, missed = [], []
    for factors in (draws.uniform(*BOUNDS, 200), normal):
        # The time is linear in the factor: two replays tell that of each.
        low_s, high_s = (
            lp.predict(lp.TraceReplay(path, own_code=(bound, bound)), "dahu", runs=1, layers=NOTHING).time_s.mean
            for bound in BOUNDS
        )
        truth = low_s + (factors - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0]) * (high_s - low_s)
        held.append(np.mean((truth >= interval.low) & (truth <= interval.high)))
        missed.append(np.mean((truth >= without.low) & (truth <= without.high)))
    # 95 %: the width of an interval of 60 runs is known to 9 %, a share of 200 to 1.5 %.
    assert held[0] >= 0.9
    assert 0.9 <= held[1] <= 0.99
    assert max(missed) < 0.5


def test_on_its_own_machine_the_interval_holds_further_runs_though_days_runs_and_cores_differ(tmp_path: Path) -> None:
    """Truth: ten steps of a second, which the slower rank of two decides. A day and a run have their speed, and so has
    each core in each run: recording and later run have their own ones, which the replay knows of neither."""
    day, run, core, steps, recordings = 0.02, 0.01, 0.02, 10, 40
    days = {"common_relative_sd": day, "run_relative_sd": run, "cpu_relative_sd": core, "degrees_of_freedom": 100}
    platform = lp.override(lp.load_platform("dahu"), {f"days.{name}": value for name, value in days.items()})
    platform.to_yaml(tmp_path / "own.yaml")
    platform = lp.load_platform(tmp_path / "own.yaml")
    draws = np.random.default_rng(2)

    def step_s() -> np.ndarray:
        return np.exp(draws.normal(0.0, np.hypot(day, run)) + draws.normal(0.0, core, 2))

    inside, errors = 0, []
    for _ in range(recordings):
        each = step_s()
        rows = []
        for number in range(steps):
            begun_s = number * each.max()
            rows += [
                call(rank, "Barrier", comm=0, start_s=begun_s + each[rank], duration_s=each.max() - each[rank])
                for rank in (0, 1)
            ]
        path = write(tmp_path / "run.parquet", rows)
        replay = lp.TraceReplay(path, recorded_on=str(tmp_path / "own.yaml"))
        found = lp.predict(replay, platform, runs=12).time_s
        truth = steps * step_s().max()
        inside += found.low <= truth <= found.high
        errors.append(found.mean / truth - 1.0)
    assert inside >= 34  # of 40; 38 are expected, with a standard deviation of 1.4
    # Not longer by what the slower of two is slower than their mean, once more: that is 0.56 core / sqrt(0.5), 1.1 %.
    assert abs(np.mean(errors)) < 3.0 * np.std(errors) / np.sqrt(recordings)


def test_what_cores_differ_and_wander_by_is_in_a_recording_of_the_same_machine(path: Path, tmp_path: Path) -> None:
    cores = {"common_relative_sd": 0.0, "run_relative_sd": 0.0, "cpu_relative_sd": 0.05, "degrees_of_freedom": 100}
    platform = lp.override(lp.load_platform("dahu"), {f"days.{name}": value for name, value in cores.items()})
    platform = platform.model_copy(update={"wandering": Wandering(relative_sd=0.05, correlation_s=1.0)})
    platform.to_yaml(tmp_path / "own.yaml")

    def spread(replay: lp.TraceReplay) -> float:
        found = lp.predict(replay, platform, runs=6, layers=lp.Layers.only("days", "noise"))
        times_s = [run.time_s for run in found.run_list]
        return float(np.std(times_s) / np.mean(times_s))

    assert spread(lp.TraceReplay(path, recorded_on=str(tmp_path / "own.yaml"))) < 0.002  # of messages
    assert spread(lp.TraceReplay(path, own_code=1.0)) > 0.01


RANKS = 5


def run_s(path: Path, rows: list[dict[str, Any]], platform: Any = "dahu", **more: Any) -> float:
    """What the rows take beside a second of own code before each."""
    last_s = max(sum(row["rank"] == rank for row in rows) for rank in range(RANKS))
    return replayed(write(path, rows, mpi="MPICH"), platform, **more).time_s.mean - last_s


@pytest.mark.parametrize("name", sorted(BLOCKING_OF))
def test_one_that_is_waited_for_at_once_takes_as_long_as_the_blocking_one(name: str, tmp_path: Path) -> None:
    """By the rules of MPICH, which are the same for both. Trees send by MPI_Isend, whose CPU time is another one."""
    rooted = name.endswith(("cast", "educe", "gather", "gatherv", "scatter", "scatterv")) and "all" not in name
    more = {"size_bytes": LARGE, "comm": 0, "peer": 2 if rooted and "reduce_scatter" not in name else -1}
    ranks = range(4)
    blocking = [call(rank, BLOCKING_OF[name][4:], **more, start_s=1.0) for rank in ranks]
    begun = [call(rank, name[4:], **more, start_s=1.0, completion=1) for rank in ranks]
    waits = [call(rank, "Wait", start_s=1.0, completion=1) for rank in ranks]
    expected = replayed(write(tmp_path / "one.parquet", blocking, mpi="MPICH")).time_s.mean - 1.0
    found = replayed(write(tmp_path / "two.parquet", [*begun, *waits], mpi="MPICH")).time_s.mean - 1.0
    assert found == pytest.approx(expected, rel=0.03 if rooted else 1e-9)
    assert expected > (0.0 if name == "MPI_Ibarrier" else 1e-5)


def test_what_goes_on_while_a_rank_computes_is_what_the_platform_says_of_progress(tmp_path: Path) -> None:
    more: dict[str, Any] = {"size_bytes": LARGE, "comm": 0}
    alone_s = run_s(tmp_path / "a", [call(rank, "Allreduce", **more) for rank in range(RANKS)])
    begun = [call(rank, "Iallreduce", **more, completion=1) for rank in range(RANKS)]
    rows = [*begun, *(call(rank, "Wait", completion=1) for rank in range(RANKS))]
    dahu = lp.load_platform("dahu")
    found = {
        progress: run_s(tmp_path / "b", rows, lp.override(dahu, {"network.progress": progress}))
        for progress in ("background", "calls")
    }
    assert 0.0 < found["background"] < 0.1 * alone_s  # the CPU time of the library's calls
    # The first messages are sent when it begins; each step after them waits for the rank to be in a call.
    assert 0.3 * alone_s < found["calls"] < 1.1 * alone_s


def test_those_of_two_communicators_may_begin_in_any_order(tmp_path: Path) -> None:
    rows = []
    for rank in range(RANKS):
        first, second = (1, 2) if rank % 2 else (2, 1)
        rows += [call(rank, "Iallreduce", comm=comm, size_bytes=8.0 * comm, completion=1) for comm in (first, second)]
        rows.append(call(rank, "Waitall", completion=1))
    assert 0.0 <= run_s(tmp_path / "run.parquet", rows) < 1e-3
    one = [row | {"comm": 1} for row in rows]  # in one communicator they have an order
    with pytest.raises(InputError, match="nonblocking allreduce of 16 bytes"):
        run_s(tmp_path / "run.parquet", [row | {"size_bytes": 8.0 * (1 + (row["rank"] == 0))} for row in one[:4]])


def test_one_that_nobody_waits_for_and_one_of_two_parts(tmp_path: Path) -> None:
    never = [call(rank, "Ibarrier", comm=0) for rank in range(RANKS)]
    assert run_s(tmp_path / "never.parquet", never) == pytest.approx(0.0, abs=1e-9)
    parts = [call(rank, "Ireduce_scatter", comm=0, size_bytes=LARGE, completion=1) for rank in range(RANKS)]
    waits = [call(rank, "Wait", completion=1) for rank in range(RANKS)]
    calls = lp.override(lp.load_platform("dahu"), {"network.progress": "calls"})
    found = run_s(tmp_path / "parts.parquet", [*parts, *waits], calls, collectives="openmpi")  # reduces, then scatters
    assert found > run_s(tmp_path / "never.parquet", never) + 1e-5


def test_messages_of_one_tag_are_told_apart_by_their_communicators(tmp_path: Path) -> None:
    """The second is received first. Without communicators, the first receive would get the first message."""
    sends = [call(0, "Isend", 1, LARGE, comm=1, completion=1), call(0, "Isend", 1, 8.0, comm=2, completion=1)]
    receives = [call(1, "Recv", 0, comm=2), call(1, "Recv", 0, comm=1)]
    rows = [*sends, call(0, "Waitall", completion=1), *receives]
    for known, sizes in ((True, [8.0, LARGE]), (False, [LARGE, 8.0])):
        path = write(tmp_path / "run.parquet", [row if known else row | {"comm": -1} for row in rows])
        trace = lp.predict(lp.TraceReplay(path), "dahu", runs=1, layers=NOTHING, trace=lp.TraceRequest()).trace
        assert trace.size_bytes[trace.named("MPI_Recv")].tolist() == sizes
    with pytest.raises(InputError, match="rank 1 waits for a message from rank 0"):
        replayed(write(tmp_path / "run.parquet", [row | {"comm": 2} if row["rank"] == 0 else row for row in rows]))
