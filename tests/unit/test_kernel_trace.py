"""Files of the recorder of emulations, and kernels in the place of time that passed."""

import struct
import subprocess
from pathlib import Path

import numpy
import pytest
from oracles.traces_by_hand import call, trace
from support_limits import HANG_S

from lepaute.errors import InputError
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.kernels import MAGIC, KernelCalls, merge_kernels, read_kernels
from lepaute.simulate.trace.recorded_calls import merge_calls

Record = tuple[int, int, float, float, float, float, float]


def packed(names: list[str], records: list[Record]) -> bytes:
    text = "".join(name + "\n" for name in names).encode()
    text += b"\0" * (-len(text) % 8)
    head = MAGIC + struct.pack("<II", len(names), len(text))
    return head + text + b"".join(struct.pack("<ii5d", *record) for record in records)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kernels"


def kernels_of(file: Path, names: list[str], *records: Record) -> KernelCalls:
    file.write_bytes(packed(names, list(records)))
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


WHOLE = packed(["dgemm"], [(0, 0, 0.0, 1.0, 1, 2, 3)])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "does not begin with LEPKERN1"),
        (b"PAR1" + WHOLE[4:], "does not begin with LEPKERN1"),
        (WHOLE[:20], "expected 1 names, got 0; the file is truncated or damaged"),
        (WHOLE[:-1], "ends inside call 0; the file is truncated"),
        (WHOLE[:12] + b"\xff\xff\xff\xff" + WHOLE[16:], "the table of names has 4294967295 bytes"),
        (packed(["dgemm"], [(-1, 0, 0.0, 1.0, 1, 2, 3)]), "call 0 has an invalid rank"),
        (packed(["dgemm"], [(0, 1, 0.0, 1.0, 1, 2, 3)]), "call 0 has an invalid name"),
        (packed(["dgemm"], [(0, 0, float("nan"), 1.0, 1, 2, 3)]), "call 0 has an invalid start"),
        (packed(["dgemm"], [(0, 0, 0.0, -1.0, 1, 2, 3)]), "call 0 has an invalid duration"),
        (packed(["dgemm"], [(0, 0, 0.0, 1.0, 1, float("inf"), 3)]), "call 0 has invalid sizes"),
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
    assert subprocess.run([tmp_path / "main", "/dev/full"], check=False, timeout=HANG_S).returncode == 2
    assert subprocess.run([tmp_path / "main", tmp_path], check=False, timeout=HANG_S).returncode == 1


NAMES = ("MPI_Irecv", "MPI_Waitall", "(completed)", "MPI_Allreduce", "MPI_Test")


def written(folder: Path, *rows: tuple[int, str, int, float, float, int, int, int]) -> Path:
    """Rows of rank, name, stamp, start and end in seconds, peer, tag and bytes."""
    path = folder / "calls"
    (folder / "calls.names").write_text("\n".join(NAMES) + "\n")
    packed = (struct.pack("<iiqddiiq", row[0], 1 + NAMES.index(row[1]), *row[2:]) for row in rows)
    path.write_bytes(b"LEPCALL1" + b"".join(packed))
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
    path = written(
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
    path = written(tmp_path, (0, "MPI_Irecv", 1, 1.0, 1.0, -1, 5, 800))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="truncated"):
        merge_calls(trace(call(0, "computing", 0.0, 1.0)), path)


def test_a_run_without_calls_leaves_what_smpi_knows(tmp_path: Path) -> None:
    made = merge_calls(trace(call(0, "computing", 0.0, 1.0)), written(tmp_path))
    assert [made.names[code] for code in made.name] == ["computing"]
