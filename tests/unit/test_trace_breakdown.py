"""Trace files, read as they were written, and where time went: by hand on small traces."""

from pathlib import Path

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles.traces_by_hand import call, exchange, hpl_like, trace

from lepaute.errors import InputError
from lepaute.simulate.trace import read_trace, trace_of_columns
from lepaute.simulate.trace.breakdown import (
    COMPUTE,
    CONTENTION,
    LATE,
    OTHER,
    OVERHEAD,
    OWN_CODE,
    PROBE,
    TRANSFER,
    breakdown_of,
)
from lepaute.simulate.trace.report import breakdown_text
from lepaute.simulate.trace.table import check_metadata


def test_of_a_recording_a_receive_is_late_until_its_send_begins() -> None:
    found = breakdown_of(exchange(late_s=2.0))
    # Rank 0 computes 2 s and sends 1 s; rank 1 waits these 2 s, and the message takes the last.
    assert (found.by_rank_s[0, COMPUTE], found.by_rank_s[0, TRANSFER]) == (2.0, 1.0)
    assert (found.by_rank_s[1, LATE], found.by_rank_s[1, TRANSFER]) == (2.0, 1.0)
    assert found.estimated


def test_of_a_recording_a_send_is_late_only_where_it_ended_after_the_receive_began() -> None:
    blocked = trace(
        call(0, "MPI_Ssend", 0.0, 3.0, peer=1, tag=1, size_bytes=8),
        call(1, "dgemm", 0.0, 2.5, m=1, n=1, k=1),
        call(1, "MPI_Recv", 2.5, 0.5, peer=0, tag=1, size_bytes=8),
    )
    assert breakdown_of(blocked).by_rank_s[0, LATE] == 2.5
    eager = trace(
        call(0, "MPI_Send", 0.0, 0.1, peer=1, tag=1, size_bytes=8),
        call(1, "MPI_Recv", 2.5, 0.5, peer=0, tag=1, size_bytes=8),
    )
    assert breakdown_of(eager).by_rank_s[0, LATE] == 0.0


def test_of_an_immediate_receive_the_wait_is_late() -> None:
    posted = trace(
        call(0, "dgemm", 0.0, 4.0, m=1, n=1, k=1),
        call(0, "MPI_Send", 4.0, 1.0, peer=1, tag=1, size_bytes=8),
        call(1, "MPI_Irecv", 0.0, 0.25, peer=0, tag=1, size_bytes=8),
        call(1, "MPI_Wait", 1.0, 4.0, peer=0, tag=1, size_bytes=8),
    )
    found = breakdown_of(posted)
    assert (found.by_rank_s[1, LATE], found.by_rank_s[1, TRANSFER]) == (3.0, 1.25)
    assert found.by_rank_s[1, OWN_CODE] == 0.75  # between the two calls


def test_the_wait_for_a_send_is_late_until_the_receive_begins() -> None:
    blocked = trace(
        call(0, "MPI_Isend", 0.0, 0.5, peer=1, tag=1, size_bytes=8, completion=1),
        call(0, "MPI_Wait", 1.0, 3.0, peer=1, tag=1, completion=1),
        call(1, "dgemm", 0.0, 3.0, m=1, n=1, k=1),
        call(1, "MPI_Recv", 3.0, 1.0, peer=0, tag=1, size_bytes=8),
    )
    assert breakdown_of(blocked).by_rank_s[0, LATE] == 2.0


def test_what_a_sendrecv_waits_for_its_sender_is_late() -> None:
    found = breakdown_of(
        trace(
            call(0, "MPI_Sendrecv", 0.0, 4.0, peer=-2),  # sends to MPI_PROC_NULL
            call(0, "MPI_Sendrecv_arrival", 4.0, 0.0, peer=1, tag=1, size_bytes=8),
            call(1, "MPI_Send", 3.0, 1.0, peer=0, tag=1, size_bytes=8),
        )
    )
    assert (found.by_rank_s[0, LATE], found.by_rank_s[0, TRANSFER]) == (3.0, 1.0)


@pytest.mark.parametrize(
    ("name", "late_s"),
    [
        ("MPI_Allreduce", (4.0, 2.0, 0.0)),  # all wait for rank 2, which comes last
        ("MPI_Bcast", (1.0, 0.0, 0.0)),  # rank 0 for the root, which is rank 1
        ("MPI_Reduce", (0.0, 2.0, 0.0)),  # the root for rank 2
        ("MPI_Scan", (0.0, 0.0, 0.0)),  # which ranks are below is not recorded
    ],
)
def test_in_a_collective_operation_those_are_late_who_wait_for_others(name: str, late_s: tuple[float, ...]) -> None:
    begins = (0.0, 1.0, 4.0) if name == "MPI_Bcast" else (0.0, 2.0, 4.0)
    root = 1 if name in ("MPI_Bcast", "MPI_Reduce") else -1
    made = [call(rank, name, begin, 5.0 - begin, peer=root, comm=0) for rank, begin in enumerate(begins)]
    # Rank 3 is in another group, and its operation is over before.
    made.append(call(3, name, 0.0, 0.5, peer=-1, comm=1))
    found = breakdown_of(trace(*made))
    assert found.by_rank_s[:, LATE].tolist() == [*late_s, 0.0]
    assert found.unknown == ()


def test_of_a_recording_own_code_is_all_time_outside_of_calls() -> None:
    found = breakdown_of(
        trace(
            call(0, "MPI_Barrier", 2.0, 1.0, comm=0),
            call(0, "MPI_Barrier", 4.0, 1.0, comm=0),
            call(1, "MPI_Barrier", 1.0, 2.0, comm=0),
            call(1, "MPI_Barrier", 3.5, 1.5, comm=0),
            whole=True,
            begins_s=[0.5, 0.0],
            ends_s=[5.5, 6.0],
        )
    )
    assert found.by_rank_s[:, OWN_CODE].tolist() == [1.5 + 1.0 + 0.5, 1.0 + 0.5 + 1.0]
    assert found.by_rank_s[:, OTHER].tolist() == [1.0, 0.0]  # before the first rank began, and after it ended


def test_of_a_simulation_the_parts_are_its_own_and_the_rest_of_a_call_is_overhead() -> None:
    found = breakdown_of(
        trace(
            call(0, "MPI_Recv", 0.0, 10.0, peer=1, late_s=4.0, transfer_s=3.0, contention_s=2.0, size_bytes=8),
            call(0, "MPI_Iprobe", 10.0, 0.5, peer=1, late_s=0.0, transfer_s=0.0, contention_s=0.0),
            call(0, "pdfact", 0.0, 10.5),
            source="simulation",
        )
    )
    expected = {LATE: 4.0, TRANSFER: 3.0, CONTENTION: 2.0, OVERHEAD: 1.0, PROBE: 0.5, COMPUTE: 0.0, OTHER: 0.0}
    for category, value in expected.items():
        assert found.by_rank_s[0, category] == pytest.approx(value), category
    assert not found.estimated


def test_the_table_names_the_longest_calls_first_with_their_share() -> None:
    found = breakdown_of(hpl_like(ranks=3, steps=4))
    assert (found.by_name[0].name, found.by_name[0].calls) == ("dgemm", 12)
    assert found.by_name[0].time_s == pytest.approx(36.0)
    no_phases = {"dgemm", "idamax", "MPI_Send", "MPI_Recv", "computing"}  # they hold calls
    assert {one.name for one in found.by_name} == no_phases
    text = breakdown_text(found)
    assert "All ranks together" in text
    assert "Each step" in text


def test_alike_ranks_are_one_row_without_columns_of_nothing_and_details_have_all() -> None:
    """Rank 2 waits longer than the others, rank 5 is not in the trace."""
    made = trace(*(call(rank, "dgemm", 0.0, 0.8 if rank == 2 else 0.99) for rank in (0, 1, 2, 3, 4, 6, 7)), whole=True)
    found = breakdown_of(made)
    of_ranks = breakdown_text(found, 80).split("Each rank")[1].split("\n\n")[0].splitlines()
    assert of_ranks[0].endswith("those alike within 2 % in one row")
    assert of_ranks[1].split() == ["rank", "time,", "ms", "compute", "other"]
    assert [line.split()[0] for line in of_ranks[2:]] == ["0-1", "2", "3-4", "6-7"]
    of_ranks = breakdown_text(found, 200, details=True).split("Each rank")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in of_ranks[2:]] == ["0", "1", "2", "3", "4", "6", "7"]
    assert "contention" in of_ranks[1]


def test_a_column_that_means_nothing_may_be_left_out() -> None:
    columns = {"rank": numpy.array([0]), "start_s": numpy.array([0.0]), "duration_s": numpy.array([1.0])}
    columns |= {"kind": numpy.array([0]), "name": numpy.array([0])}
    made = trace_of_columns(columns, ["dgemm"], {})
    assert made.step.tolist() == [-1]
    assert made.peer.tolist() == [-1]
    assert numpy.isnan(made.late_s).all()


def test_calls_stand_in_the_order_of_rank_and_start_and_a_phase_before_what_it_holds() -> None:
    made = trace(
        call(1, "dgemm", 0.0, 1.0), call(0, "dscal", 2.0, 1.0), call(0, "idamax", 0.0, 1.0), call(0, "pdfact", 0.0, 3.0)
    )
    assert [made.names[i] for i in made.name] == ["pdfact", "idamax", "dscal", "dgemm"]


def parquet(path: Path, table: pa.Table, **metadata: str) -> Path:
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


GOOD = {"rank": [0], "start_s": [0.0], "duration_s": [1.0], "kind": ["kernel"], "name": ["dgemm"]}
FORMAT = {"lepaute-trace": '{"format": "lepaute-trace/1"}'}


@pytest.mark.parametrize(
    ("columns", "metadata", "complaint"),
    [
        (GOOD, {}, "not a Lepaute trace: the Parquet metadata 'lepaute-trace' is missing"),
        (GOOD, {"lepaute-trace": "3"}, "is not a JSON object"),
        (GOOD, {"lepaute-trace": '{"format": "lepaute-trace/9"}'}, "its format is 'lepaute-trace/9'"),
        ({**GOOD, "rank": ["zero"]}, FORMAT, "the column rank has the type string; it is int32"),
        ({**GOOD, "rank": [None]}, FORMAT, "the column rank has"),
        ({**GOOD, "kind": ["nap"]}, FORMAT, "kind is 'nap'"),
        ({**GOOD, "kind": [3]}, FORMAT, "the column kind has the type int64; it is text"),
        ({**GOOD, "duration_s": [-1.0]}, FORMAT, "duration_s of row 0 is -1.0; it is at least 0"),
        ({**GOOD, "start_s": [float("nan")]}, FORMAT, "start_s of row 0 is nan"),
        ({**GOOD, "rank": [-2]}, FORMAT, "rank of row 0 is -2"),
        ({name: GOOD[name] for name in GOOD if name != "name"}, FORMAT, "the column name is missing"),
        ({name: GOOD[name] for name in GOOD if name != "start_s"}, FORMAT, "the required column start_s is missing"),
    ],
)
def test_a_table_that_is_no_trace_is_refused_in_a_line_that_says_why(tmp_path, columns, metadata, complaint):
    path = parquet(tmp_path / "t.parquet", pa.table(columns), **metadata)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert complaint in str(caught.value)


def test_a_file_that_is_no_parquet_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("rank,start_s\n0,1\n")
    with pytest.raises(InputError, match=r"of no format that is read: Parquet"):
        read_trace(tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"no such file"):
        read_trace(tmp_path / "none.parquet")


def test_more_ranks_than_are_simulated_are_refused_when_the_file_is_opened() -> None:
    with pytest.raises(InputError, match="t: 1073741824 ranks; at most 4194304 are simulated"):
        check_metadata({"ranks": 2**30}, "t")
