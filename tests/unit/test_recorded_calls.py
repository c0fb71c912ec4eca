"""Files of the recorder of emulations, written here byte by byte."""

import struct
from pathlib import Path

import pytest
from oracles.traces_by_hand import call, trace

from lepaute.errors import InputError
from lepaute.simulate.trace.recorded_calls import merge_calls

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
