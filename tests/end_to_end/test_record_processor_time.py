"""Recordings of programs whose processor time is known: on shared cores, asleep, with threads, cut short."""

from collections.abc import Callable
from pathlib import Path

import pytest
from oracles.recorded_hpl import library_named
from oracles.recorded_hpl import recorded as record_program
from oracles.replays import replayed

from lepaute.errors import InputError
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.breakdown import NO_CORE, breakdown_of
from lepaute.simulate.trace.table import MPI, SLEEPING, caveats_of

pytestmark = pytest.mark.machine

SOURCE = Path(__file__).parents[1] / "data" / "programs" / "record_processor_time.c"
Recorded = Callable[..., tuple[Trace, Path, str]]


@pytest.fixture(params=["openmpi", "mpich"])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Recorded:
    """Records the program with a word and ranks: its trace, the file, and the output."""
    library = library_named(request.param)
    words = ["-O2", "-w", "-pthread", str(SOURCE), "-o", str(tmp_path / "program")]
    library.compile(words, what="building the program")

    def run(how: str, ranks: int) -> tuple[Trace, Path, str]:
        trace, done = record_program(library, tmp_path, how, ranks=ranks)
        return trace, tmp_path / "trace.parquet", done.stdout

    return run


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_own_code_is_processor_time_however_many_ranks_share_the_cores(recorded: Recorded, ranks: int) -> None:
    trace, path, output = recorded("whole", ranks)
    # What the program measured of its own, and some milliseconds of messages: 3 % for either library.
    assert replayed(path, own_code=1.0).time_s.mean == pytest.approx(float(output), rel=0.03)
    cores = sum(trace.metadata["cores"])
    assert trace.metadata["affinity"][0]["ranks"] <= ranks
    if ranks > cores:
        assert caveats_of(trace.metadata)[0].startswith(f"{ranks} ranks shared {cores} core")
        assert breakdown_of(trace).by_rank_s[:, NO_CORE].sum() > 0.1


def test_sleep_is_told_from_waiting_for_a_core_and_stays(recorded: Recorded) -> None:
    trace, path, output = recorded("sleeps", 4)
    slept_s = trace.duration_s[trace.named(SLEEPING)]
    # Of 4 ranks 20 times 5 ms at least; another core's clock may take a little of it.
    assert slept_s.sum() >= 0.9 * 0.4
    assert replayed(path, own_code=1.0).time_s.mean >= float(output) + 0.9 * 0.1


def test_threads_that_are_in_calls_at_once_are_refused_by_name(recorded: Recorded) -> None:
    trace, path, _ = recorded("threads", 2)
    assert sorted(set(zip(trace.rank.tolist(), trace.thread.tolist(), strict=True))) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert any("2 of them call MPI" in caveat for caveat in caveats_of(trace.metadata))
    with pytest.raises(InputError, match=r"thread . of rank . calls MPI_Send at .*, while its thread . is in MPI_Recv"):
        replayed(path)


def test_threads_that_a_program_began_before_mpi_are_its_own(recorded: Recorded) -> None:
    assert [recorded(how, 1)[0].metadata["threads"] for how in ("whole", "early")] == [1, 2]


def test_a_run_that_is_cut_short_has_its_own_calls_alone_and_says_so_first(recorded: Recorded) -> None:
    trace, path, _ = recorded("aborts", 2)
    assert caveats_of(trace.metadata)[0].startswith("ended by MPI_Abort after 501 calls (of rank 0, status 3)")
    # 20 receives, sends and waits, and 441 sends; the tests of the recorder's own are no rows.
    assert ((trace.rank == 0) & (trace.kind == MPI)).sum() == 501
    assert not trace.named("MPI_Test").any()
    found = replayed(path, own_code=1.0)
    assert found.time_s.mean == pytest.approx(0.2, rel=0.1)
    assert found.application.subject == "program up to its end by MPI_Abort"
    trace, path, _ = recorded("exits", 2)
    assert caveats_of(trace.metadata)[0].startswith("ended by exit without MPI_Finalize after ")
