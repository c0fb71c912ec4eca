"""Where time went: by hand on small traces, and always adding up to the time of the rank."""

import pytest
from oracles.traces_by_hand import call, exchange, hpl_like, trace

from lepaute.simulate.trace import Trace
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
from lepaute.simulate.trace.messages import match_messages
from lepaute.simulate.trace.report import breakdown_text


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


def waitall(**joined: int) -> Trace:
    """Rank 1 posts a receive and a send and waits for both from 1 s on; rank 0 receives at 3 s and sends at 4 s."""
    return trace(
        call(0, "MPI_Recv", 3.0, 1.0, peer=1, tag=2, size_bytes=8),
        call(0, "MPI_Send", 4.0, 1.0, peer=1, tag=1, size_bytes=8),
        call(1, "MPI_Irecv", 0.0, 0.25, peer=0, tag=1, size_bytes=8, **joined),
        call(1, "MPI_Isend", 0.5, 0.25, peer=0, tag=2, size_bytes=8, **joined),
        call(1, "MPI_Waitall", 1.0, 4.0, size_bytes=16, **joined),
    )


def test_a_wait_for_several_requests_is_late_until_the_last_of_the_others_begins() -> None:
    found = breakdown_of(waitall(completion=7))
    # the send that it receives began at 4 s
    assert (found.by_rank_s[1, LATE], found.by_rank_s[1, TRANSFER]) == (3.0, 1.5)
    assert found.unknown == ()


def test_of_a_wait_whose_requests_are_not_known_the_table_says_that_it_holds_waiting() -> None:
    found = breakdown_of(waitall())
    assert found.by_rank_s[1, LATE] == 0.0
    assert found.unknown == ("MPI_Waitall",)
    assert "the waiting in MPI_Waitall" in breakdown_text(found)


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


def test_the_turns_of_two_groups_are_counted_apart() -> None:
    """Ranks 0 and 1 make an operation of their own before the one of all three."""
    found = breakdown_of(
        trace(
            call(0, "MPI_Barrier", 0.0, 1.0, comm=1),
            call(1, "MPI_Barrier", 1.0, 0.0, comm=1),
            call(0, "MPI_Barrier", 1.0, 2.0, comm=0),
            call(1, "MPI_Barrier", 1.0, 2.0, comm=0),
            call(2, "MPI_Barrier", 3.0, 0.0, comm=0),
        )
    )
    assert found.by_rank_s[:, LATE].tolist() == [3.0, 2.0, 0.0]


def test_a_collective_operation_of_an_unknown_group_is_said_to_hold_waiting() -> None:
    found = breakdown_of(trace(call(0, "MPI_Barrier", 0.0, 4.0), call(1, "MPI_Barrier", 4.0, 0.0)))
    assert found.by_rank_s[0, LATE] == 0.0
    assert found.unknown == ("MPI_Barrier",)


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


def test_of_a_simulation_own_code_is_what_its_rows_say() -> None:
    found = breakdown_of(
        trace(call(0, "computing", 0.0, 2.0), call(0, "MPI_Barrier", 3.0, 1.0, comm=0), source="simulation")
    )
    assert found.by_rank_s[0, OWN_CODE] == 2.0
    assert found.by_rank_s[0, OTHER] == 1.0  # steps that were not traced, perhaps


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
    assert {one.name for one in found.by_name} == {
        "dgemm",
        "idamax",
        "MPI_Send",
        "MPI_Recv",
        "computing",
    }  # no phases: they hold calls
    text = breakdown_text(found)
    assert "All ranks together" in text
    assert "Each step" in text


def test_messages_of_a_pair_and_a_tag_are_paired_in_their_order() -> None:
    made = trace(
        call(0, "MPI_Send", 0.0, 0.1, peer=1, tag=1, size_bytes=1),
        call(0, "MPI_Send", 1.0, 0.1, peer=1, tag=2, size_bytes=2),
        call(0, "MPI_Send", 2.0, 0.1, peer=1, tag=1, size_bytes=3),
        call(1, "MPI_Recv", 0.0, 1.0, peer=0, tag=2, size_bytes=2),
        call(1, "MPI_Recv", 1.0, 1.0, peer=0, tag=1, size_bytes=1),
        call(1, "MPI_Recv", 2.0, 1.0, peer=0, tag=1, size_bytes=3),
        call(1, "MPI_Recv", 3.0, 1.0, peer=0, tag=9, size_bytes=4),
    )
    matches = match_messages(made)
    assert made.size_bytes[matches.send].tolist() == made.size_bytes[matches.receive].tolist() == [1, 2, 3]
