"""Efficiencies, critical path, wait states, traffic and regions, by their definitions on small traces by hand."""

from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from oracles.traces_by_hand import call, trace
from support_pages import Elements, text_of, widths_offline

from lepaute.errors import InputError
from lepaute.simulate.analysis import Analysis, analysis_of
from lepaute.simulate.analysis.critical_path import PIECES, activities
from lepaute.simulate.analysis.page import page
from lepaute.simulate.analysis.regions import places_of
from lepaute.simulate.analysis.report import analysis_dict, facts_of, tables_text
from lepaute.simulate.analysis.wait_states import CAUSES
from lepaute.simulate.trace import Trace, write_trace


def late_send() -> Trace:
    """Rank 0 computes 4 s and sends; rank 1 computes 2 s, waits 2 s for that, and has the message after another."""
    return trace(
        call(0, "dgemm", 0.0, 4.0, m=1, n=1, k=1),
        call(0, "MPI_Send", 4.0, 0.5, peer=1, tag=1, size_bytes=800),
        call(1, "dgemm", 0.0, 2.0, m=1, n=1, k=1),
        call(1, "MPI_Recv", 2.0, 3.0, peer=0, tag=1, size_bytes=800),
        mpi="Open MPI v4.1.4",
        nodes=[0, 1],
        hosts=["a", "b"],
    )


def pieces(analysis: Analysis) -> list[tuple[str, str, int, float, float]]:
    """The path from its beginning: piece, call, rank and dates."""
    path, words = analysis.path, activities(analysis.path, analysis.trace)
    columns = (path.piece, words, path.rank, path.start_s, path.end_s)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(PIECES[piece], *others) for piece, *others in rows][::-1]


def waits(analysis: Analysis) -> list[tuple[str, int, int, float]]:
    """Cause, who waits, for whom, seconds."""
    columns = (analysis.waits.cause, analysis.waits.rank, analysis.waits.whom, analysis.waits.time_s)
    return sorted((CAUSES[cause], *others) for cause, *others in zip(*(each.tolist() for each in columns), strict=True))


def test_the_efficiencies_are_those_of_pop_to_the_last_digit() -> None:
    """C = 4 and 2 s, T = 5 s. On an ideal network rank 1 has its message when rank 0 sends it, at 4 s."""
    found = analysis_of(late_send()).efficiencies
    assert found.useful_s.tolist() == [4.0, 2.0]
    assert (found.runtime_s, found.ideal_s) == (5.0, 4.0)
    assert (found.load_balance, found.communication, found.parallel) == (0.75, 0.8, 0.6)
    assert (found.serialisation, found.transfer, found.core_availability) == (1.0, 0.8, 1.0)


def test_what_is_computed_one_after_another_is_serialisation() -> None:
    """Each of three ranks computes 2 s once the one before has sent: T_ideal = 6 s of T = 6.5 s."""
    found = analysis_of(
        trace(
            call(0, "dgemm", 0.0, 2.0),
            call(0, "MPI_Send", 2.0, 0.25, peer=1, tag=1, size_bytes=8),
            call(1, "MPI_Recv", 0.0, 2.25, peer=0, tag=1, size_bytes=8),
            call(1, "dgemm", 2.25, 2.0),
            call(1, "MPI_Send", 4.25, 0.25, peer=2, tag=1, size_bytes=8),
            call(2, "MPI_Recv", 0.0, 4.5, peer=1, tag=1, size_bytes=8),
            call(2, "dgemm", 4.5, 2.0),
        )
    ).efficiencies
    assert (found.load_balance, found.runtime_s, found.ideal_s) == (1.0, 6.5, 6.0)
    assert (found.serialisation, found.transfer, found.parallel) == (2.0 / 6.0, 6.0 / 6.5, 2.0 / 6.5)


def test_waiting_for_a_core_is_no_useful_computing_and_a_factor_of_its_own() -> None:
    """Rank 1 has no core for 2 of its 5 s before the barrier, which takes both a second after that: T = 6 s."""
    analysis = analysis_of(
        trace(
            call(0, "MPI_Barrier", 4.0, 2.0, comm=0),
            call(1, "waiting_for_a_core", 1.0, 2.0),
            call(1, "MPI_Barrier", 5.0, 1.0, comm=0),
            whole=True,
        )
    )
    found = analysis.efficiencies
    assert found.useful_s.tolist() == [4.0, 3.0]
    # Without the wait the barrier is over at 4 s, when rank 0 comes, with it at 5 s.
    assert (found.ideal_s, found.waits_s, found.runtime_s) == (4.0, 5.0, 6.0)
    assert found.factors == {
        "load balance": 3.5 / 4.0,
        "serialisation": 1.0,
        "transfer": 5 / 6,
        "core availability": 0.8,
    }
    assert prod(found.factors.values()) == pytest.approx(found.parallel, rel=1e-15)
    assert "16.7 % is waiting for a core" in analysis.sentence
    assert ("waiting for a core", "waiting for a core", 1, 1.0, 3.0) in pieces(analysis)


def test_the_path_goes_along_the_message_that_came_last_to_the_rank_that_sent_it() -> None:
    analysis = analysis_of(late_send())
    assert pieces(analysis) == [("computing", "dgemm", 0, 0.0, 4.0), ("messages", "message, MPI_Recv", 1, 4.0, 5.0)]
    assert (analysis.path.origin.tolist(), analysis.path.receiver.tolist()) == ([0, 0], [1, 0])


def test_the_path_stays_with_a_rank_whose_message_had_been_sent_before() -> None:
    analysis = analysis_of(
        trace(
            call(0, "MPI_Send", 0.0, 1.0, peer=1, tag=1, size_bytes=8),
            call(1, "dgemm", 0.0, 2.0),
            call(1, "MPI_Recv", 2.0, 0.5, peer=0, tag=1, size_bytes=8),
        )
    )
    assert pieces(analysis) == [("computing", "dgemm", 1, 0.0, 2.0), ("calls", "MPI_Recv", 1, 2.0, 2.5)]


def test_of_a_simulation_the_path_follows_a_message_that_was_under_way() -> None:
    parts = {"late_s": 0.0, "contention_s": 0.0}
    analysis = analysis_of(
        trace(
            call(0, "dgemm", 0.0, 1.0),
            call(0, "MPI_Send", 1.0, 0.5, peer=1, tag=1, size_bytes=8, transfer_s=0.0, **parts),
            call(1, "dgemm", 0.0, 2.0),
            call(1, "MPI_Recv", 2.0, 2.0, peer=0, tag=1, size_bytes=8, transfer_s=2.0, **parts),
            source="simulation",
        )
    )
    assert pieces(analysis) == [("computing", "dgemm", 0, 0.0, 1.0), ("messages", "message, MPI_Recv", 1, 1.0, 4.0)]


def test_probes_before_a_receive_wait_for_its_send() -> None:
    """Rank 1 looks from 1 s on for a message that is sent at 3 s."""
    analysis = analysis_of(
        trace(
            call(0, "dgemm", 0.0, 3.0),
            call(0, "MPI_Send", 3.0, 0.5, peer=1, tag=1, size_bytes=8),
            call(1, "dgemm", 0.0, 1.0),
            call(1, "MPI_Iprobe", 1.0, 2.5, n=9),
            call(1, "MPI_Recv", 3.5, 0.5, peer=0, tag=1, size_bytes=8),
        )
    )
    assert pieces(analysis) == [
        ("computing", "dgemm", 0, 0.0, 3.0),
        ("messages", "message, MPI_Iprobe", 1, 3.0, 3.5),
        ("calls", "MPI_Recv", 1, 3.5, 4.0),
    ]


def test_the_path_goes_through_a_collective_operation_to_the_rank_that_came_last() -> None:
    analysis = analysis_of(
        trace(
            *(call(rank, "MPI_Allreduce", begin, 5.0 - begin, comm=0) for rank, begin in enumerate((0.5, 4.0, 1.0))),
            call(2, "dgemm", 5.0, 1.0),
            whole=True,
        )
    )
    assert pieces(analysis) == [
        ("computing", "the program's own code", 1, 0.0, 4.0),
        ("collective operations", "MPI_Allreduce", 2, 4.0, 5.0),
        ("computing", "dgemm", 2, 5.0, 6.0),
    ]
    assert waits(analysis) == [("wait at NxN", 0, 1, 3.5), ("wait at NxN", 2, 1, 3.0)]
    assert "mostly for rank 1, above all in MPI_Allreduce (wait at NxN)" in analysis.sentence


@pytest.mark.parametrize(
    ("name", "root", "expected"),
    [
        ("MPI_Barrier", -1, [("wait at barrier", 0, 2, 4.0), ("wait at barrier", 1, 2, 3.0)]),
        ("MPI_Alltoallv", -1, [("wait at NxN", 0, 2, 4.0), ("wait at NxN", 1, 2, 3.0)]),
        ("MPI_Comm_split", -1, [("wait at communicator creation", rank, 2, 4.0 - rank) for rank in (0, 1)]),
        ("MPI_Bcast", 2, [("late broadcast", 0, 2, 4.0), ("late broadcast", 1, 2, 3.0)]),
        ("MPI_Scatter", 1, [("late broadcast", 0, 1, 1.0)]),
        ("MPI_Reduce", 0, [("early reduce", 0, 2, 4.0)]),
        ("MPI_Gatherv", 2, []),
    ],
)
def test_waits_in_collective_operations_have_scalascas_names(name, root, expected) -> None:
    """The ranks come at 0, 1 and 4 s."""
    made = trace(
        *(call(rank, name, begin, 5.0 - begin, peer=root, comm=0) for rank, begin in enumerate((0.0, 1.0, 4.0)))
    )
    assert waits(analysis_of(made)) == expected


def test_waits_for_messages_are_for_a_late_sender_or_a_late_receiver() -> None:
    analysis = analysis_of(
        trace(
            call(0, "MPI_Ssend", 0.0, 3.0, peer=1, tag=1, size_bytes=8),
            call(0, "MPI_Irecv", 3.0, 0.25, peer=1, tag=2, size_bytes=8, completion=1),
            call(0, "MPI_Wait", 4.0, 3.0, peer=1, tag=2, completion=1),
            call(1, "MPI_Recv", 2.5, 0.5, peer=0, tag=1, size_bytes=8),
            call(1, "MPI_Send", 6.0, 1.0, peer=0, tag=2, size_bytes=8),
        )
    )
    assert waits(analysis) == [("late receiver", 0, 1, 2.5), ("late sender", 0, 1, 2.0)]
    assert analysis.waits.by_rank(analysis.waits.whom) == [
        {"rank": 1, "time_s": 4.5, "by_cause_s": {"late receiver": 2.5, "late sender": 2.0}}
    ]


def test_the_matrix_has_bytes_messages_and_times_of_pairs_and_nodes_and_collectives_by_themselves() -> None:
    made = trace(
        call(0, "MPI_Send", 0.0, 1.0, peer=1, tag=1, size_bytes=100),
        call(0, "MPI_Send", 1.0, 1.0, peer=1, tag=1, size_bytes=50),
        call(0, "MPI_Send", 2.0, 1.0, peer=2, tag=1, size_bytes=7),
        call(0, "MPI_Bcast", 6.0, 1.0, peer=0, comm=0, size_bytes=9),
        call(1, "MPI_Recv", 0.0, 2.0, peer=0, tag=1, size_bytes=100),
        call(1, "MPI_Recv", 2.0, 3.0, peer=0, tag=1, size_bytes=50),
        call(1, "MPI_Bcast", 5.0, 2.0, peer=0, comm=0, size_bytes=9),
        call(2, "MPI_Recv", 2.0, 3.0, peer=0, tag=1, size_bytes=7),
        call(2, "MPI_Bcast", 6.0, 2.0, peer=0, comm=0, size_bytes=9),
        nodes=[0, 1, 1],
    )
    analysis = analysis_of(made)
    assert [tuple(row.values()) for row in analysis.pairs.to_list("from", "to")] == [
        (0, 1, 2, 150.0, 6.0),
        (0, 2, 1, 7.0, 3.0),
    ]
    assert analysis.nodes is not None
    assert [tuple(row.values()) for row in analysis.nodes.to_list("from", "to")] == [(0, 1, 3, 157.0, 9.0)]
    (use,) = analysis.collectives
    assert (use.call, use.members, use.operations, use.calls) == ("MPI_Bcast", 3, 1, 3)
    assert (use.size_bytes, use.time_s, use.waiting_s) == (27.0, 5.0, 1.0)


def test_a_rank_is_in_the_innermost_phase_and_own_code_is_cut_where_phases_begin_and_end() -> None:
    """Rank 0: own code from 0 to 8 s, of which 2 to 6 s in the outer and 3 to 4 s in the inner phase."""
    made = trace(
        call(0, "pdupdate", 2.0, 4.0),
        call(0, "pdfact", 3.0, 1.0),
        call(0, "MPI_Barrier", 8.0, 1.0, comm=0),
        call(1, "pdupdate", 0.0, 7.0),
        call(1, "MPI_Barrier", 7.0, 2.0, comm=0),
        whole=True,
    )
    regions = {region.name: region for region in analysis_of(made).phases}
    assert {name: region.useful_s.tolist() for name, region in regions.items()} == {
        "outside of any region": [4.0, 0.0], "pdupdate": [3.0, 7.0], "pdfact": [1.0, 0.0]
    }  # fmt: skip
    assert regions["pdupdate"].load_balance == 5.0 / 7.0
    assert (regions["pdupdate"].excess_s, regions["pdupdate"].slowest) == (2.0, 1)
    assert regions["outside of any region"].time_s == 7.0  # with both barriers


def test_calls_have_their_place_in_the_program_where_the_recording_has_it() -> None:
    sited: Any = SimpleNamespace(site=numpy.array([-1, 1, 0]), metadata={"sites": ["main", "solve < main"]})
    assert places_of(sited) == {1: " at solve", 2: " at main"}
    assert places_of(late_send()) == {}


def test_own_code_goes_by_the_call_after_it() -> None:
    made = trace(
        call(0, "MPI_Send", 3.0, 1.0, peer=1, tag=1, size_bytes=8),
        call(0, "dgemm", 4.0, 2.0, m=1, n=1, k=1),
        call(1, "MPI_Recv", 1.0, 3.0, peer=0, tag=1, size_bytes=8),
        whole=True,
        ends_s=[6.0, 6.0],
    )
    found = {region.name: region.useful_s.tolist() for region in analysis_of(made).computing}
    assert found == {
        "before MPI_Send": [3.0, 0.0],
        "before MPI_Recv": [0.0, 1.0],
        "dgemm": [2.0, 0.0],
        "before the end": [0.0, 2.0],
    }


def test_a_trace_that_cannot_be_replayed_keeps_the_other_efficiencies_and_says_why() -> None:
    alone = late_send().where(numpy.array([0, 1, 2]))  # the receive is missing
    analysis = analysis_of(alone)
    assert analysis.efficiencies.serialisation is None
    assert list(analysis.efficiencies.factors) == ["load balance", "communication efficiency"]
    assert "never receives" in " ".join(analysis.caveats)
    assert analysis_dict(analysis)["efficiencies"][0]["transfer"] is None


def test_calls_without_times_are_refused_with_what_to_do_instead() -> None:
    with pytest.raises(InputError, match="no times; analyze a replay"):
        analysis_of(trace(call(0, "MPI_Barrier", 1.0, 0.0, comm=0), call(1, "MPI_Barrier", 2.0, 0.0, comm=0)))


def test_the_text_begins_with_the_answer_and_fits_its_width() -> None:
    analysis = analysis_of(late_send())
    assert analysis.sentence == (
        "Parallel efficiency 60.0 %: load balance 75.0 %, serialisation 100.0 %, transfer 80.0 %; 20.0 % of the ranks' "
        "time is waiting for others, mostly for rank 0, above all in MPI_Recv (late sender)"
    )
    assert dict(facts_of(analysis))["path"].startswith(
        "critical path of 5.00 s: 80.0 % computing, 20.0 % messages; 80.0 % is on rank 0"
    )
    text = tables_text(analysis, 80, details=True)
    assert max(map(len, text.splitlines())) <= 80
    assert text.split("from node")[-1].splitlines()[1].split()[:3] == ["a", "b", "1"], "nodes have their names"


def test_the_command_prints_json_that_begins_with_the_answer_and_writes_its_page(
    tmp_path, monkeypatch, json_of, refusal_of
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(late_send(), Path("t.parquet"))
    data = json_of("trace", "analyze", "t.parquet", "-p", "dahu", "--json", "--report", "p.html")
    assert next(iter(data)) == "answer"
    recorded, on_dahu = data["efficiencies"]
    assert (recorded["parallel"], on_dahu["of"]) == (0.6, "on dahu-2020-01")
    # On the platform dgemm takes the time of its model, and a message some microseconds.
    assert on_dahu["runtime_s"] < 1e-3
    assert on_dahu["parallel"] == pytest.approx(
        on_dahu["load_balance"] * on_dahu["serialisation"] * on_dahu["transfer"], rel=1e-12
    )
    assert data["critical_path"]["links"] == [{"sender": 0, "receiver": 1, "time_s": 1.0}]
    text = text_of(Path("p.html").read_text())
    assert data["answer"] + "." in text
    assert "lepaute trace analyze t.parquet -p dahu --report p.html" in text
    assert ".html" in refusal_of("trace", "analyze", "t.parquet", "--report", "p.txt")


def test_names_on_the_page_are_no_markup_and_links_lead_somewhere() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    made = trace(call(0, hostile, 0.0, 1.0), call(1, "dgemm", 0.0, 2.0), application=hostile, hosts=[hostile])
    found = Elements(page(analysis_of(made), hostile))
    assert "img" not in found.tags
    assert len(found.ids) == len(set(found.ids))
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)


@pytest.mark.parametrize("width", [400, 1000])
def test_the_page_opens_offline_and_fits_its_width(browser, tmp_path, width) -> None:
    (tmp_path / "p.html").write_text(page(analysis_of(late_send()), "lepaute trace analyze t.parquet"))
    assert min(widths_offline(browser, tmp_path / "p.html", width)) >= 250
