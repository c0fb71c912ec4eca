"""Raw files of the recorder and of emulations, written byte by byte, and kernels in the place of time that passed."""

import dataclasses
import struct
import subprocess
from pathlib import Path

import numpy
import pytest
from oracles.traces_by_hand import call, trace
from support_limits import HANG_S
from support_record_files import KERNEL, written

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.record import library_of_command
from lepaute.measure.record_file import trace_of_records
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.breakdown import COMPUTE, NO_CORE, breakdown_of
from lepaute.simulate.trace.kernels import MAGIC, KernelCalls, merge_kernels, read_kernels
from lepaute.simulate.trace.recorded_calls import merge_calls
from lepaute.simulate.trace.table import caveats_of


def test_a_row_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = written(
        tmp_path / "0",
        (5_000, "dgemm", 700, 3, (10, 20, 30)),
        (6_000, "MPI_Send", 9_000_000_000, -1, (4, 77, 1 << 40)),
        (7_000, "MPI_Iprobe", 12, 3, (4, -1, -25)),
        (8_000, "MPI_Testany", 900, 3, (-1, 640, -12)),
    )
    trace = trace_of_records([record], {"source": "recording"})
    assert [trace.names[i] for i in trace.name] == ["dgemm", "MPI_Send", "MPI_Iprobe", "MPI_Testany"]
    assert trace.start_s.tolist() == pytest.approx([5e-6, 6e-6, 7e-6, 8e-6])
    assert trace.duration_s[[0, 2]].tolist() == pytest.approx([700e-9, 12e-9])
    assert trace.duration_s[1] == pytest.approx(9.0, abs=1.1e-6)  # beyond 2.1 s in units of 1024 ns
    assert trace.step.tolist() == [3, -1, 3, 3]
    assert (trace.m[0], trace.n[0], trace.k[0]) == (10, 20, 30)
    assert (trace.peer[1], trace.tag[1], trace.size_bytes[1]) == (4, 77, 2.0**40)
    assert (trace.n[2], trace.size_bytes[2], trace.tag[2]) == (25, 0, -1)  # 25 looks that found nothing
    assert (trace.n[3], trace.m[3], trace.tag[3]) == (12, 640, -1)  # 12 tests, with 640 ns between them
    assert trace.peer[0] == -1


def test_waits_lie_between_the_calls_of_their_thread_or_are_taken_from_the_kernel_before(tmp_path: Path) -> None:
    record = written(
        tmp_path / "0",
        (1_000_000, "MPI_Send", 10_000, -1, (0, 1, 8)),
        (1_000_000, "MPI_Irecv", 0, -1, (0, 1, 8)),  # the other row of the same call
        (900_000, "(waited)", 400_000, -1, (0, -1, 0)),  # seen at 1.3 ms: in part from before the call
        (1_300_000, "(slept)", 200_000, -1, (0, -1, 0)),
        (1_500_000, "dgemm", 500_000, -1, (9, 9, 9)),
        (1_700_000, "(waited)", 300_000, -1, (1, -1, 0)),
        (1_600_000, "MPI_Send", 10_000, -1 + (1 << 6), (0, 1, 8)),  # the step stands above the thread
    )
    found = trace_of_records([record], {"source": "recording"})
    columns = (found.name, found.start_s, found.duration_s)
    seen = {found.names[name]: (start_s, took_s) for name, start_s, took_s in zip(*columns, strict=True)}
    assert found.names[found.name[2]] == "waiting_for_a_core"
    assert (found.start_s[2], found.duration_s[2]) == pytest.approx((1.01e-3, 0.29e-3))
    assert seen["sleeping"] == pytest.approx((1.3e-3, 0.2e-3))
    assert seen["dgemm"] == pytest.approx((1.5e-3, 0.2e-3))
    assert seen["waiting_for_a_core"] == pytest.approx((1.7e-3, 0.3e-3))
    assert (found.thread == 0).all()
    assert breakdown_of(found).by_rank_s[0][[NO_CORE, COMPUTE]] == pytest.approx([0.59e-3, 0.2e-3])


def test_how_a_run_ended_and_how_many_shared_its_cores_comes_first(tmp_path: Path) -> None:
    def caveats(how: int) -> list[str]:
        calls = [(1_000 + 20 * at, "MPI_Send", 10, -1, (0, 1, 8)) for at in range(501)]
        records = [
            written(tmp_path / str(at), *calls, rank=at, ranks=4, cores=(0, 3), finished=1, threads=2)
            for at in range(3)
        ]
        last = written(tmp_path / "3", *calls, rank=3, ranks=4, cores=(0, 3), finished=how, abort_code=3)
        records = [dataclasses.replace(each, host="node") for each in (*records, last)]
        return caveats_of(trace_of_records(records, {}).metadata)

    shared = "4 ranks shared 2 cores: 0.0 % of the time outside of MPI they waited for a core, which replays leave out"
    threads = "a rank has up to 2 threads, one of them calls MPI or BLAS: own code is what these take"
    assert caveats(1) == [shared, threads]
    rest = "(of rank 3, status 3): the trace is of what ran until then"
    assert caveats(2) == [f"ended by MPI_Abort after 501 calls {rest}", shared, threads]
    assert caveats(3)[0].startswith("ended by exit without MPI_Finalize after 501 calls (of rank 3, ")


def test_requests_are_joined_with_the_wait_that_completed_them(tmp_path: Path) -> None:
    record = written(
        tmp_path / "0",
        (1_000, "MPI_Irecv", 100, -1, (-1, -1, 800)),  # from any source, any tag
        (2_000, "MPI_Irecv", 100, -1, (-2, 5, 0)),  # from MPI_PROC_NULL
        (3_000, "MPI_Isend", 100, -1, (1, 5, 800)),
        (4_000, "MPI_Isend", 100, -1, (1, 6, 800)),  # of which nothing more is recorded
        (1_000, "(completed)", 0, -1, (3, 9, 5_000)),
        (2_000, "(completed)", 0, -1, (-2, 5, 5_000)),
        (3_000, "(completed)", 0, -1, (1, 5, 5_000)),
        (5_000, "MPI_Waitall", 900, -1, (-1, -1, 1600)),
    )
    trace = trace_of_records([record], {"source": "recording"})
    assert [trace.names[i] for i in trace.name] == ["MPI_Irecv", "MPI_Irecv", "MPI_Isend", "MPI_Isend", "MPI_Waitall"]
    assert (trace.completion[:3] == trace.completion[4]).all()
    assert trace.completion[4] >= 0
    assert trace.completion[3] == -1
    assert trace.peer.tolist() == [3, -2, 1, 1, -1]
    assert trace.tag.tolist() == [9, 5, 5, 6, -1]


def test_a_program_in_fortran_gets_one_reason_for_what_is_missing(tmp_path: Path) -> None:
    trace = trace_of_records([written(tmp_path / "0", (1_000, "dgemm", 10, -1, (1, 1, 1)), fortran=1)], {})
    (warning,) = trace.metadata["warnings"]
    assert warning.startswith("the program calls MPI from Fortran: ")


def test_messages_have_the_numbers_of_the_communicators_that_collectives_name(tmp_path: Path) -> None:
    known, size, looks = 5 << 16 | 9, 1 << 40, (1 << 48) - 25
    rows = [
        (1_000, "MPI_Allreduce", 10, -1, (-1, known, 8)),
        *((2_000 + comm, "MPI_Send", 10, -1, (1, 7, comm << 48 | size)) for comm in (0, 3, 9)),
        (4_000, "MPI_Iprobe", 10, -1, (1, 7, 9 << 48 | looks)),
    ]
    trace = trace_of_records([written(tmp_path / "0", *rows)], {"source": "recording"})
    assert trace.comm.tolist() == [1, 0, 2, 1, 1]
    assert trace.size_bytes.tolist() == [8, size, size, size, 0]
    assert trace.n.tolist() == [0, 0, 0, 0, 25]


def test_the_time_of_a_rank_goes_on_to_where_it_ended(tmp_path: Path) -> None:
    trace = trace_of_records([written(tmp_path / "0", (5_000, "dgemm", 700, 3, (1, 1, 1)), end_ns=9_000)], {})
    assert (trace.metadata["begins_s"], trace.metadata["ends_s"]) == ([0.0], pytest.approx([9e-6]))


def test_stamps_go_to_the_clock_of_rank_0_along_a_straight_line(tmp_path: Path) -> None:
    # This clock is 1000 ns behind at 0 and 3000 ns behind at 1 s.
    record = written(
        tmp_path / "0",
        (0, "dgemm", 1, 0, (1, 1, 1)),
        (500_000_000, "dgemm", 1, 0, (1, 1, 1)),
        (1_000_000_000, "dgemm", 1, 0, (1, 1, 1)),
        clocks=(0, 1000, 400, 1_000_000_000, 3000, 200),
    )
    assert record.rows["start_ns"].tolist() == [500_002_000, 1_000_003_000]  # a stamp of 0 is a row never written
    assert record.clock_error_ns == 200


def test_of_a_program_that_marks_its_region_only_that_is_kept(tmp_path: Path) -> None:
    rows = [
        (1_000, "dgemm", 10, -1, (1, 1, 1)),  # before
        (2_000, "dgemm", 10, 0, (2, 2, 2)),
        (2_000, "factorisation", 500, -1, (100, 8, 0)),
        (2_600, "dgemm", 10, -1, (3, 3, 3)),
        (2_550, "pdtrsv", 100, -1, (0, 100, 0)),
        (2_700, "dgemm", 10, -1, (4, 4, 4)),  # after
        (5_000, "factorisation", 500, -1, (200, 8, 0)),
        (5_100, "dgemm", 10, 0, (5, 5, 5)),
        (5_550, "pdtrsv", 100, -1, (0, 200, 0)),
    ]
    record = written(tmp_path / "0", *rows, notes='{"n": 100}\n{"n": 200}\n')
    first = trace_of_records([record], {})
    assert first.m[first.kind == KERNEL].tolist() == [2, 3]
    assert first.start_s.min() == 0.0
    assert first.metadata["time_s"] == pytest.approx(650e-9)
    assert first.metadata["parameters"] == {"n": 100}
    second = trace_of_records([record], {}, solve=2)
    assert second.m[second.kind == KERNEL].tolist() == [5]
    assert second.metadata["parameters"] == {"n": 200}
    with pytest.raises(InputError, match="the program solved 2 systems"):
        trace_of_records([record], {}, solve=3)


def test_what_the_recorder_did_before_the_program_is_no_call(tmp_path: Path) -> None:
    rows = [(1_000, "MPI_Testany", 1, -1, (-1, 0, 0)), (2_000, "dgemm", 1, 0, (1, 1, 1))]
    record = written(tmp_path / "0", *rows, start_ns=1_500)  # when all ranks had come together in MPI_Init
    assert record.rows["start_ns"].tolist() == [2_000]


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    killed = written(tmp_path / "0", (1, "dgemm", 1, 0, (1, 1, 1)), ranks=3, finished=0, lost=5, spare_bytes=3200)
    assert len(killed.rows["code"]) == 1  # the room that was never written holds no calls
    assert caveats_of(trace_of_records([killed], {}).metadata) == [
        "1 rank did not come to MPI_Finalize, the first is rank 0: the trace is of what ran until then",
        "1 of 3 ranks left a recording",
        "5 calls found no room and are missing",
    ]


def test_a_launcher_that_is_not_installed_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentProblem, match=r"mpirun is missing .*apt-get install openmpi-bin"):
        library_of_command(["mpirun", "-np", "2", "./program"])
    with pytest.raises(InputError, match="no such program; write lepaute record"):
        library_of_command(["./program"])


Record = tuple[int, int, float, float, float, float, float]


def packed_kernels(names: list[str], records: list[Record]) -> bytes:
    text = "".join(name + "\n" for name in names).encode()
    text += b"\0" * (-len(text) % 8)
    head = MAGIC + struct.pack("<II", len(names), len(text))
    return head + text + b"".join(struct.pack("<ii5d", *record) for record in records)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kernels"


def kernels_of(file: Path, names: list[str], *records: Record) -> KernelCalls:
    file.write_bytes(packed_kernels(names, list(records)))
    return read_kernels(file)


def named(found: Trace) -> list[tuple[int, str, float, float]]:
    names = [found.names[code] for code in found.name]
    return list(zip(found.rank.tolist(), names, found.start_s.tolist(), found.duration_s.tolist(), strict=True))


def test_kernels_take_the_place_of_time_that_merely_passed(file: Path) -> None:
    smpi = trace(
        call(0, "computing", 0.0, 3.0),
        call(0, "MPI_Send", 3.0, 1.0, peer=1, tag=2, size_bytes=8),
        call(1, "computing", 0.0, 1.0),
        resolution_s=1e-9,
    )
    found = merge_kernels(
        smpi, kernels_of(file, ["dgemm", "dtrsm"], (0, 1, 0.0, 1.0, 10, 20, 0), (0, 0, 1.0, 2.0, 30, 40, 50))
    )
    assert named(found) == [
        (0, "dtrsm", 0.0, 1.0), (0, "dgemm", 1.0, 2.0), (0, "MPI_Send", 3.0, 1.0), (1, "computing", 0.0, 1.0),
    ]  # fmt: skip
    assert (found.m[1], found.n[1], found.k[1]) == (30, 40, 50)
    assert (found.peer[2], found.tag[2], found.size_bytes[2]) == (1, 2, 8)
    assert numpy.isnan(found.late_s).all()


def test_calls_of_mpi_that_the_runtime_saw_replace_those_of_smpi(file: Path) -> None:
    smpi = trace(
        call(0, "MPI_Bcast", 0.0, 1.0),
        call(0, "MPI_Send", 1.0, 1.0, peer=1, tag=2, size_bytes=8),
        resolution_s=0.0,
        unsized=["MPI_Bcast", "MPI_Reduce"],
    )
    found = merge_kernels(
        smpi, kernels_of(file, ["MPI_Bcast", "MPI_Iprobe"], (0, 0, 0.0, 1.0, 800, 3, -1), (0, 1, 2.0, 0.5, 0, 1, 9))
    )
    assert [row[1] for row in named(found)] == ["MPI_Bcast", "MPI_Send", "MPI_Iprobe"]
    assert found.size_bytes.tolist() == [800, 8, 0]
    assert found.peer.tolist() == [3, 1, 1]
    assert found.tag.tolist() == [-1, 2, 9]
    assert found.metadata["unsized"] == ["MPI_Reduce"]


def test_time_is_neither_lost_nor_counted_twice(file: Path) -> None:
    """Random kernels inside random states: what all rows of a rank take together is the union of both."""
    draw = numpy.random.default_rng(3)
    for _ in range(20):
        edges = numpy.cumsum(draw.uniform(0.1, 1.0, 40))
        smpi = trace(
            *(call(0, "computing", low, high - low) for low, high in zip(edges[::2], edges[1::2], strict=True)),
            resolution_s=0.0,
        )
        records: list[Record] = []
        for low, high in zip(edges[::2], edges[1::2], strict=True):
            cuts = numpy.sort(draw.uniform(low, high, 2 * int(draw.integers(0, 4))))
            pairs = zip(cuts[::2], cuts[1::2], strict=True)
            records += [(0, 0, float(one), float(other - one), 1, 1, 1) for one, other in pairs]
        found = merge_kernels(smpi, kernels_of(file, ["dgemm"], *records))
        assert found.duration_s.sum() == pytest.approx(smpi.duration_s.sum(), rel=1e-12)
        assert (found.start_s[1:] >= found.end_s[:-1] - 1e-12).all()


WHOLE = packed_kernels(["dgemm"], [(0, 0, 0.0, 1.0, 1, 2, 3)])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "does not begin with LEPKERN1"),
        (b"PAR1" + WHOLE[4:], "does not begin with LEPKERN1"),
        (WHOLE[:20], "expected 1 names, got 0; the file is truncated or damaged"),
        (WHOLE[:-1], "ends inside call 0; the file is truncated"),
        (WHOLE[:12] + b"\xff\xff\xff\xff" + WHOLE[16:], "the table of names has 4294967295 bytes"),
        (packed_kernels(["dgemm"], [(-1, 0, 0.0, 1.0, 1, 2, 3)]), "call 0 has an invalid rank"),
        (packed_kernels(["dgemm"], [(0, 1, 0.0, 1.0, 1, 2, 3)]), "call 0 has an invalid name"),
        (packed_kernels(["dgemm"], [(0, 0, float("nan"), 1.0, 1, 2, 3)]), "call 0 has an invalid start"),
        (packed_kernels(["dgemm"], [(0, 0, 0.0, -1.0, 1, 2, 3)]), "call 0 has an invalid duration"),
        (packed_kernels(["dgemm"], [(0, 0, 0.0, 1.0, 1, float("inf"), 3)]), "call 0 has invalid sizes"),
    ],
)
def test_a_damaged_file_is_refused(file: Path, content: bytes, complaint: str) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError, match=f"^{file}: {complaint}"):
        read_kernels(file)


PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "kernel_trace_program.cpp").read_text()


@pytest.mark.machine
def test_what_simblas_writes_is_read(tmp_path: Path) -> None:
    import shutil

    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here")
    (tmp_path / "main.cpp").write_text(PROGRAM)
    headers = Path(__file__).parents[2] / "simblas"
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{headers}"]
    subprocess.run([compiler, *flags, "-o", tmp_path / "main", tmp_path / "main.cpp"], check=True, timeout=HANG_S)
    subprocess.run([tmp_path / "main", tmp_path / "kernels"], check=True, timeout=HANG_S)
    found = read_kernels(tmp_path / "kernels")
    i = numpy.arange(40000)
    assert found.names == ("dgemm", "dtrsm_left")
    assert (found.rank == i % 3).all()
    assert (found.name == i % 2).all()
    assert (found.start_s == i * 0.5).all()
    assert (found.numbers == numpy.stack((i, i + 1, i + 2), axis=1)).all()
    assert subprocess.run([tmp_path / "main", tmp_path], check=False, timeout=HANG_S).returncode == 1


KERNEL_NAMES = ("MPI_Irecv", "MPI_Waitall", "(completed)", "MPI_Allreduce", "MPI_Test")


def written_kernels(folder: Path, *rows: tuple[int, str, int, float, float, int, int, int]) -> Path:
    """Rows of rank, name, stamp, start and end in seconds, peer, tag and bytes."""
    path = folder / "calls"
    (folder / "calls.names").write_text("\n".join(KERNEL_NAMES) + "\n")
    packed_kernels = (struct.pack("<iiqddiiq", row[0], 1 + KERNEL_NAMES.index(row[1]), *row[2:]) for row in rows)
    path.write_bytes(b"LEPCALL1" + b"".join(packed_kernels))
    return path


def test_calls_of_the_recorder_take_the_place_of_smpis(tmp_path: Path) -> None:
    smpi = trace(
        call(0, "computing", 0.0, 1.0),
        call(0, "MPI_Irecv", 1.0, 0.0),
        call(0, "MPI_Start", 1.0, 0.0),  # of simblas itself: the recorder has those of the program
        call(0, "MPI_Ialltoallw", 1.0, 0.0),
        call(0, "MPI_Waitall", 1.0, 2.0),
        call(0, "MPI_Allreduce", 3.0, 1.0),
        call(1, "MPI_Allreduce", 3.0, 1.0),
        source="simulation",
        unsized=["MPI_Allreduce", "MPI_Ialltoallw", "MPI_Start"],
        warnings=["what 1 calls of MPI_Irecv received, if anything, is unknown"],
    )
    path = written_kernels(
        tmp_path,
        (0, "MPI_Irecv", 1, 1.0, 1.0, -1, 5, 800),
        (0, "MPI_Irecv", 3, 1.0, 1.0, 1, 6, 800),
        (0, "(completed)", 1, 0.0, 0.0, 1, 5, 5),
        (0, "(completed)", 3, 0.0, 0.0, 1, 6, 5),
        (0, "MPI_Waitall", 5, 1.0, 3.0, -1, -1, 1600),
        (1, "MPI_Test", 1, 1.0, 3.0, -1, -1, -40),
        (1, "MPI_Allreduce", 3, 3.0, 4.0, -1, 0, 8),
        (0, "MPI_Allreduce", 7, 3.0, 4.0, -1, 0, 8),
    )
    made = merge_calls(smpi, path)
    rows = [(int(rank), made.names[code]) for rank, code in zip(made.rank, made.name, strict=True)]
    assert sorted(rows) == sorted(
        [
            *(
                (0, name)
                for name in ("computing", "MPI_Irecv", "MPI_Irecv", "MPI_Ialltoallw", "MPI_Waitall", "MPI_Allreduce")
            ),
            (1, "MPI_Test"),
            (1, "MPI_Allreduce"),
        ]
    )
    receives, wait = made.where(made.named(["MPI_Irecv"])), made.where(made.named(["MPI_Waitall"]))
    assert receives.peer.tolist() == [1, 1]
    assert set(receives.completion.tolist()) == set(wait.completion.tolist()) != {-1}
    reductions = made.where(made.named(["MPI_Allreduce"]))
    assert reductions.comm.tolist() == [0, 0]
    assert reductions.size_bytes.tolist() == [8.0, 8.0]
    looks = made.where(made.named(["MPI_Test"]))
    assert (looks.n[0], looks.size_bytes[0]) == (40, 0)
    assert (made.metadata["unsized"], made.metadata["warnings"]) == (["MPI_Ialltoallw"], [])


def test_a_file_that_is_cut_is_refused(tmp_path: Path) -> None:
    path = written_kernels(tmp_path, (0, "MPI_Irecv", 1, 1.0, 1.0, -1, 5, 800))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="truncated"):
        merge_calls(trace(call(0, "computing", 0.0, 1.0)), path)


def test_a_run_without_calls_leaves_what_smpi_knows(tmp_path: Path) -> None:
    made = merge_calls(trace(call(0, "computing", 0.0, 1.0)), written_kernels(tmp_path))
    assert [made.names[code] for code in made.name] == ["computing"]
