"""Paraver's traces: what events and communications become of, and that a recording written so is replayed as it was."""

from pathlib import Path

import numpy
import pytest
from oracles.paraver_by_hand import NAMES, prv, prv_of
from oracles.replays import recorded, replayed
from oracles.traces_by_hand import rows
from support_own import Mixed

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate.trace.paraver import convert
from lepaute.simulate.trace.table import GAPS, NOBODY


def call(task: int, begin: int, end: int, name: str, told: str = "", kind: int = 1) -> list[str]:
    head = f"2:{task}:1:{task}:1"
    return [f"{head}:{begin}:5000000{kind}:{NAMES.index(name)}{told}", f"{head}:{end}:5000000{kind}:0"]


def test_calls_messages_and_operations_are_read(tmp_path: Path) -> None:
    root, other = ":50100001:64:50100002:0:50100004:1:50100003:1", ":50100001:0:50100002:64:50100004:1"
    path = prv(
        tmp_path, 2,
        "1:1:1:1:1:0:100:1",  # a state
        *call(1, 0, 100, "MPI_Init", kind=3), *call(2, 0, 90, "MPI_Init", kind=3),
        *call(1, 200, 210, "MPI_Isend"), *call(1, 220, 230, "MPI_Send"), *call(1, 240, 250, "MPI_Wait"),
        *call(1, 260, 270, "MPI_Sendrecv"), *call(1, 280, 290, "MPI_Comm_rank", kind=3),
        *call(1, 300, 310, "MPI_Bcast", root, kind=2), *call(1, 400, 410, "MPI_Finalize", kind=3),
        *call(2, 200, 205, "MPI_Irecv"), *call(2, 215, 300, "MPI_Waitall"), *call(2, 302, 303, "MPI_Recv"),
        *call(2, 304, 306, "MPI_Sendrecv"), *call(2, 310, 320, "MPI_Bcast", other, kind=2),
        *call(2, 330, 340, "MPI_Test"), *call(2, 350, 360, "MPI_Comm_dup", kind=3), "2:2:1:2:1:370:42000050:17",
        *call(2, 370, 380, "MPI_Finalize", kind=3),
        "3:1:1:1:1:200:210:2:1:2:1:200:300:800:7",
        "3:1:1:1:1:260:270:2:1:2:1:304:306:8:1", "3:2:1:2:1:304:306:1:1:1:1:260:270:16:2",
    )  # fmt: skip
    made = convert(path)
    assert rows(made, 0) == [
        ("Isend", 1, 7, 800.0, -1), ("Send", NOBODY, -1, 0.0, -1), ("Wait", -1, -1, 0.0, -1),
        ("Sendrecv", 1, 1, 8.0, -1), ("Sendrecv_arrival", 1, 2, 16.0, -1), ("Bcast", 0, -1, 64.0, 0),
    ]  # fmt: skip
    assert rows(made, 1) == [
        ("Irecv", 0, 7, 800.0, -1), ("Waitall", -1, -1, 0.0, -1), ("Recv", NOBODY, -1, 0.0, -1),
        ("Sendrecv", 0, 2, 16.0, -1), ("Sendrecv_arrival", 0, 1, 8.0, -1), ("Bcast", 0, -1, 64.0, 0),
        ("Test", -1, -1, 0.0, -1),
    ]  # fmt: skip
    joined = [made.where(made.rank == rank).completion for rank in range(2)]
    assert joined[0][0] == joined[0][2] >= 0
    assert joined[1][0] == joined[1][1] >= 0
    assert made.metadata["begins_s"] == pytest.approx([1e-7, 0.9e-7])
    assert made.metadata["ends_s"] == pytest.approx([4e-7, 3.7e-7])
    assert made.metadata["warnings"] == [
        "which call ended the request of a send is not told: the oldest is taken",
        "1 send and 1 receive without a record of communication, taken for MPI_PROC_NULL's",
    ]
    assert made.metadata["omitted"] == [
        "1 state", "2 events of calls that move nothing", "2 events of creations of communicators without one",
        "1 event that is not of MPI",
    ]  # fmt: skip
    assert numpy.isclose(made.start_s[0], 2e-7)


def test_a_recording_written_so_is_replayed_as_the_recording(tmp_path: Path) -> None:
    found = recorded(tmp_path / "run.parquet", Mixed())
    recorded_s = replayed(tmp_path / "run.parquet").time_s.mean
    assert replayed(prv_of(found.trace, tmp_path)).time_s.mean == pytest.approx(recorded_s, rel=5e-3)


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        (["2:1:1:1:1:5:50000001:x"], "line 3: '2:1:1:1:1:5:50000001:x' is not a record of Paraver"),
        (["2:1:1:9:1:5:50000001:1"], "line 3: task 9 of 2"),
        (["2:1:1:1:2:5:50000001:1"], "line 3: MPI from thread 2 of task 1: only the first one is read"),
        (["2:1:1:1:1:5:50000001:0"], "line 3: task 1 leaves a call that it did not enter"),
        (["3:1:1:1:1:5:5:2:1:2:1:6:7:8:0"], "line 3: a message outside of calls that send it and receive it"),
        (
            call(1, 5, 6, "MPI_Neighbor_alltoall", kind=2),
            "line 4: task 1: MPI_Neighbor_alltoall: such a trace does not tell of which neighbours",
        ),
        (["3:1:1:1:1:5"], "line 3: '3:1:1:1:1:5' is not a record of Paraver"),
        (["2:1:1:1:1:5:50000001"], "line 3: '2:1:1:1:1:5:50000001' is not a record of Paraver"),
    ],
)
def test_records_that_cannot_be_are_named(records: list[str], complaint: str, tmp_path: Path) -> None:
    path = prv(tmp_path, 2, *records)
    with pytest.raises(InputError) as raised:
        convert(path)
    assert str(raised.value) == f"{path}, {complaint}"


def test_two_roots_and_an_end_before_that_of_the_header_are_refused(tmp_path: Path) -> None:
    told = ":50100001:8:50100002:8:50100004:1:50100003:1"
    records = [*call(1, 5, 9, "MPI_Bcast", told, 2), *call(2, 5, 9, "MPI_Bcast", told, 2)]
    path = prv(tmp_path, 2, *records)
    with pytest.raises(InputError, match="tasks 1 and 2 are both the root of MPI_Bcast, call 1 in communicator 1"):
        convert(path)
    lines = prv(tmp_path, 2, *(record.replace(":50100003:1", "") for record in records)).read_text().splitlines()
    ends = "\n".join(lines), "\n".join(record for record in lines if not record.startswith("2:2:")) + "\n"
    for cut, complaint in zip(ends, ("ends without a newline", "no record of task 2 of 2: truncated"), strict=True):
        path.write_text(cut)
        with pytest.raises(InputError, match=complaint):
            convert(path)
    path.write_text("\n".join(lines).replace(":9_ns", ":99_ns") + "\n")
    with pytest.raises(InputError, match=r"ends at 9.00 ns of 99.0 ns \(its header\): truncated"):
        convert(path)


def test_a_flush_and_tracing_that_is_off_are_no_computing(tmp_path: Path) -> None:
    head, second = "2:1:1:1:1", 10**9
    made = convert(
        prv(
            tmp_path, 1, *call(1, 0, 10, "MPI_Init", kind=3), f"{head}:{second}:40000003:1",
            f"{head}:{2 * second}:40000003:0", f"{head}:{3 * second}:40000012:0",
            *call(1, 5 * second, 6 * second, "MPI_Test"), *call(1, 7 * second, 8 * second, "MPI_Finalize", kind=3),
        )
    )  # fmt: skip
    gaps = made.where(made.named(GAPS))
    assert gaps.duration_s.tolist() == pytest.approx([1.0, 4.0])  # up to MPI_Finalize: it was never on again
    assert len(made.metadata["warnings"]) == 2


def test_what_is_cut_or_lacks_its_names_is_refused(tmp_path: Path) -> None:
    path = prv(tmp_path, 1, call(1, 5, 7, "MPI_Send")[0])
    with pytest.raises(InputError, match="task 1 is in MPI_Send at the end: truncated"):
        convert(path)
    with pytest.raises(InputError, match=r"MPI_Put, which rank 0 calls at 5.00 ns, cannot be replayed"):
        replayed(prv(tmp_path, 1, *call(1, 5, 7, "MPI_Put", kind=4)))
    path.with_suffix(".pcf").unlink()
    with pytest.raises(InputError, match=r"run.pcf: no such file; it has the names of calls"):
        convert(path)
    path.write_text("#Paraver of something else\n")
    with pytest.raises(InputError, match="line 1: not the header of a Paraver trace"):
        lp.read_trace(path)
