"""What SMPI wrote, as a trace of ours: which call a message belongs to, and one line for what cannot be read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oracles.paje_by_hand import PajeByHand, exchange

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.smpi import convert
from lepaute.simulate.trace.table import KINDS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "smpi.trace"


def rows(trace: Trace) -> list[tuple[Any, ...]]:
    """rank, name, start_s, duration_s, size_bytes, peer, tag."""
    columns = (trace.start_s, trace.duration_s, trace.size_bytes, trace.peer, trace.tag)
    names = [trace.names[code] for code in trace.name]
    return [
        (rank, name, *numbers)
        for rank, name, *numbers in zip(trace.rank.tolist(), names, *(c.tolist() for c in columns), strict=True)
    ]


def of(trace: Trace, rank: int, *names: str) -> list[tuple[Any, ...]]:
    """name, size_bytes, peer, tag of the calls of a rank."""
    return [(row[1], *row[4:]) for row in rows(trace) if row[0] == rank and row[1] in names]


def test_states_become_calls_and_links_their_peers_tags_and_bytes(file: Path) -> None:
    file.write_text(exchange().text())
    trace = convert(file)
    assert rows(trace) == [
        (0, "computing", 0.0, 2.0, 0.0, -1, -1),
        (0, "MPI_Send", 2.0, 1.0, 800.0, 1, 7),
        (0, "MPI_Bcast", 3.0, 0.5, 0.0, -1, -1),
        (1, "MPI_Recv", 0.0, 3.0, 800.0, 0, 7),
        (1, "MPI_Bcast", 3.0, 0.5, 0.0, -1, -1),
    ]
    assert [KINDS[kind] for kind in trace.kind] == ["kernel", "mpi", "mpi", "mpi", "mpi"]
    told = trace.metadata
    assert (told["source"], told["application"], told["ranks"]) == ("simulation", "program", 2)
    assert (told["command"], told["engine"]) == ("./program cluster.xml", "SimGrid 3.32.0")
    assert (told["unsized"], told["warnings"]) == (["MPI_Bcast"], [])


def test_what_the_caller_knows_stands_above_what_the_file_says(file: Path) -> None:
    file.write_text(exchange().text())
    told = convert(file, {"application": "hpl", "platform": "dahu", "warnings": ["a first one"]}).metadata
    assert (told["application"], told["platform"], told["warnings"]) == ("hpl", "dahu", ["a first one"])


def test_receives_that_were_posted_get_what_the_waits_for_them_received(file: Path) -> None:
    made = PajeByHand(2, "PMPI_Irecv", "PMPI_Isend", "PMPI_Send", "PMPI_Wait", "PMPI_Waitall")
    made.state(0.0, 0.0, 0, "PMPI_Irecv", "10")
    made.state(0.0, 0.0, 0, "PMPI_Irecv", "50")
    made.send(0.0, 1, "40", "2_1_4", 320)  # less than there is room for
    made.send(0.0, 1, "10", "2_1_3", 80)
    made.send(0.5, 0, "2", "1_2_9", 16, "PMPI_Isend")
    # SMPI writes the end of the message after the end of MPI_Wait. The one of 10 items is waited for first.
    made.state(1.0, 2.0, 0, "PMPI_Wait")
    made.end(2.0, 0, "2_1_3")
    made.push(2.0, 0, "PMPI_Waitall", "2.000000")
    made.end(3.0, 0, "2_1_4")
    made.pop(3.0, 0)
    file.write_text(made.text())
    trace = convert(file)
    assert of(trace, 0, "MPI_Irecv") == [("MPI_Irecv", 80.0, 1, 3), ("MPI_Irecv", 400.0, 1, 4)]
    assert of(trace, 0, "MPI_Wait", "MPI_Waitall") == [("MPI_Wait", 80.0, 1, 3), ("MPI_Waitall", 320.0, -1, -1)]
    assert trace.metadata["warnings"] == []


@pytest.mark.parametrize("told", [False, True])
def test_of_posted_receives_the_one_from_nobody_is_known_where_the_wait_tells_it(file: Path, told: bool) -> None:
    made = PajeByHand(2, "PMPI_Irecv", "PMPI_Send", "PMPI_Waitall")
    made.state(0.0, 0.0, 0, "PMPI_Irecv", "10")
    made.state(0.0, 0.0, 0, "PMPI_Irecv", "10")
    made.send(0.0, 1, "10", "2_1_3", 80)
    made.push(0.0, 0, "PMPI_Waitall", "2.000000")
    for key in ["-666_1_3"] * told + ["2_1_3"]:
        made.end(1.0, 0, key)
    made.pop(1.0, 0)
    file.write_text(made.text())
    trace = convert(file)
    if told:
        assert of(trace, 0, "MPI_Irecv") == [("MPI_Irecv", 0.0, -2, -1), ("MPI_Irecv", 80.0, 1, 3)]
        assert trace.metadata["warnings"] == []
    else:
        assert [row[2] for row in of(trace, 0, "MPI_Irecv")] == [-1, -1]
        assert "what 2 calls of MPI_Irecv received, if anything, is unknown" in trace.metadata["warnings"][0]


@pytest.mark.parametrize(
    ("sent", "received", "calls"),
    [
        # Of any tag (-444): the message that came first. Rank, key of the arrow, size; then what a receive names.
        ([(0, "1_2_5", 50), (0, "1_2_6", 60), (0, "1_2_5", 70)], [(1, "1_2_-444"), (1, "1_2_5"), (1, "1_2_6")],
         [(50.0, 0, 5), (70.0, 0, 5), (60.0, 0, 6)]),
        # From any source (-1): it leaves to others what they name; 2: process 2 is rank 1.
        ([(1, "2_1_5", 10), (2, "3_1_5", 20), (1, "2_1_5", 30)], [(0, "-1_1_5"), (0, "2_1_5"), (0, "2_1_5")],
         [(20.0, 2, 5), (10.0, 1, 5), (30.0, 1, 5)]),
    ],
)  # fmt: skip
def test_a_receive_of_any_message_takes_the_first_that_no_other_names(file: Path, sent, received, calls) -> None:
    made = PajeByHand(3, "PMPI_Send", "PMPI_Recv")
    for rank, key, size in sent:
        made.send(0.0, rank, str(size), key, size)
    for at_s, (rank, key) in enumerate(received, 1):
        made.push(at_s, rank, "PMPI_Recv", "100")
        made.end(at_s + 0.5, rank, key)
        made.pop(at_s + 0.5, rank)
    file.write_text(made.text())
    assert of(convert(file), received[0][0], "MPI_Recv") == [("MPI_Recv", *call) for call in calls]


def sendrecv(made: PajeByHand, partner_of: dict[int, tuple[int, int]]) -> None:
    """Each rank sends to the first and receives from the second; as SMPI does, keys have these numbers as they are."""
    for rank, (to, _) in partner_of.items():
        made.push(0.0, rank, "PMPI_Sendrecv", "50")
        made.start(0.0, rank, f"{rank + 1}_{to}_3", 400)
    for rank, (_, source) in partner_of.items():
        made.end(1.0, rank, f"{source}_{rank + 1}_3")
        made.pop(1.0, rank)


def test_sendrecv_is_two_rows_one_behind_the_other(file: Path) -> None:
    made = PajeByHand(3, "PMPI_Sendrecv", "PMPI_Barrier")
    sendrecv(made, {0: (1, 2), 1: (2, 0), 2: (0, 1)})
    made.state(1.0, 1.0, 0, "PMPI_Barrier")
    file.write_text(made.text())
    trace = convert(file)
    assert [row for row in rows(trace) if row[0] == 0] == [
        (0, "MPI_Sendrecv", 0.0, 1.0, 400.0, 1, 3),
        (0, "MPI_Sendrecv_arrival", 1.0, 0.0, 400.0, 2, 3),
        (0, "MPI_Barrier", 1.0, 0.0, 0.0, -1, -1),
    ]


def test_partners_in_a_communicator_that_is_not_told_are_unknown_and_not_wrong(file: Path) -> None:
    made = PajeByHand(4, "PMPI_Sendrecv")
    # Ranks 2 and 3 are 0 and 1 of a communicator of their own.
    sendrecv(made, {2: (1, 1), 3: (0, 0)})
    file.write_text(made.text())
    trace = convert(file)
    assert trace.peer.tolist() == [-1] * 4
    assert "the peer of 4 messages of MPI_Sendrecv is unknown" in trace.metadata["warnings"][0]


def test_calls_within_calls_are_not_the_programs(file: Path) -> None:
    made = PajeByHand(1, "PMPI_Bcast", "PMPI_Send", "computing")
    made.push(0.0, 0, "PMPI_Bcast", "10")
    made.state(0.1, 0.4, 0, "computing")
    made.state(0.4, 0.6, 0, "PMPI_Send")
    made.pop(1.0, 0)
    file.write_text(made.text())
    assert rows(convert(file)) == [(0, "MPI_Bcast", 0.0, 1.0, 0.0, -1, -1)]


def test_a_simulation_that_died_is_read_and_told(file: Path) -> None:
    made = exchange()
    made.push(4.0, 1, "PMPI_Recv", "5")
    file.write_text(made.text(end_s=5.0))
    trace = convert(file)
    assert rows(trace)[-1] == (1, "MPI_Recv", 4.0, 1.0, 0.0, -1, -1)
    assert trace.metadata["warnings"] == ["the simulation ended inside calls: rank 1 was in MPI_Recv"]


def test_dates_in_microseconds_are_told_to_be_coarse(file: Path) -> None:
    file.write_text(exchange().text().replace("6 0.000000000 ", "6 0.000000 "))
    assert "timestamps have only 6 decimals" in convert(file).metadata["warnings"][0]


def test_fields_stand_where_the_file_says(file: Path) -> None:
    plain = exchange().text()
    other = plain.replace("%       Size string\n", "")  # of states and links
    assert other != plain
    swapped = []
    for line in plain.splitlines():
        words = line.split()
        swapped.append(" ".join((words[0], words[2], words[1], words[3])) if words[0] == "13" else line)
    head = "%EventDef PajePopState 13\n%       "
    text = "\n".join(swapped).replace(f"{head}Time string\n%       Type", f"{head}Type string\n%       Time") + "\n"
    file.write_text(plain)
    expected = rows(convert(file))
    file.write_text(text)
    assert rows(convert(file)) == expected
    file.write_text(other)
    without = convert(file)
    assert without.size_bytes.tolist() == [0.0] * 5
    assert without.metadata["unsized"] == ["MPI_Bcast", "MPI_Recv", "MPI_Send"]
    assert any("messages have no sizes" in warning for warning in without.metadata["warnings"])


def test_sizes_that_one_side_does_not_know_are_no_difference(file: Path) -> None:
    file.write_text(exchange().text())
    smpi = convert(file)
    sized = replace(
        smpi, size_bytes=smpi.size_bytes + 80.0 * smpi.named(("MPI_Bcast",)), metadata={"source": "recording"}
    )
    found = compare_traces(sized, smpi)
    assert found.same_sizes
    assert {one.name: one.paired for one in found.classes}["MPI_Bcast"] == 2
    other = replace(smpi, size_bytes=smpi.size_bytes + 8.0 * smpi.named(("MPI_Send",)))
    assert not compare_traces(other, smpi).same_sizes


BROKEN = (
    ("PAR1\0\0", "line 1: not a Paje trace, which begins with %EventDef"),
    ("", "line 1: not a Paje trace"),
    ("# only a comment\n", "line 1: no event is defined"),
    ("%EventDef PajePopState 13\n%  Time date\n%EndEventDef\n", "line 3: PajePopState is defined without the field"),
    ("%EventDef PajePopState\n", "line 1: the line does not match the fields of its %EventDef"),
    ("%EndEventDef\n", "line 1: %EndEventDef without %EventDef"),
)


@pytest.mark.parametrize(("text", "complaint"), BROKEN)
def test_what_is_no_paje_trace_is_refused(file: Path, text: str, complaint: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=f"^{file}, {complaint}"):
        convert(file)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("12 2.000000000 2 1 102", "12 2.000000000 9 1 102", "the type '9' is not defined"),
        ("12 2.000000000 2 1 102", "12 2.000000000 2 7 102", "the container '7' is not defined"),
        ("12 2.000000000 2 1 102", "12 2.000000000 2 1 109", "the value '109' is not defined"),
        ("12 2.000000000 2 1 102", "12 1.999999999 2 1 102", "time goes backwards, from 2 to '1.999999999' s for"),
        ("12 2.000000000 2 1 102", "12 2e400 2 1 102", "the date '2e400' is not a valid simulated time"),
        ("12 2.000000000 2 1 102", "12 nan 2 1 102", "the date 'nan' is not a valid simulated time"),
        ("12 2.000000000 2 1 102", "12 soon 2 1 102", "the date is 'soon', which is not a number"),
        ("12 2.000000000 2 1 102 100", "12 2.000000000 2 1 102 some", "the size is 'some', which is not a number"),
        ("12 2.000000000 2 1 102 100", "12 2.000000000 2", "has 3 words, expected 5; the line is truncated"),
        ("12 2.000000000 2 1 102", "77 2.000000000 2 1 102", "the event '77' is not defined"),
        ("13 2.000000000 2 1 ", "13 2.000000000 2 1\n13 2.0 2 1", "'rank-0' leaves a state that it never entered"),
        ("1_2_7_1 800", "1_2_seven_1 800", "the message key is"),
        ("1_2_7_1 800", "1_2_-5_1 800", "run without --cfg=tracing/smpi/internals:yes"),
        ("1_2_7_1 800", f"1_2_{10**30}_1 800", "holds an invalid rank or tag"),
        ("1_2_7_1 800", "1_2_7_1 -8", "a message of -8 bytes"),
        ('"rank-1"', '"core-1"', "MPI calls of 'core-1', which is not a rank"),
        ('"rank-1"', '"rank-99999999999"', "which is not a rank"),
        ('"rank-1"', '"rank-0"', "the container 'rank-0' is defined twice"),
        ('6 0.000000000 2 1 0 "rank-1"', '6 0.000000000 1 1 0 "rank-1"', "the container '1' is already defined"),
        ('6 0.000000000 2 1 0 "rank-1"', '6 0.000000000 2 8 0 "rank-1"', "the type '8' is not defined"),
        ("7 10.000000000 1 1\n", "", "the file ends before rank 0 does; it is truncated"),
        ("7 10.000000000 1 1\n", "7 10.0 1 1\n13 10.0 2 1\n", "event for 'rank-0' after its end"),
        ("7 10.000000000 1 2\n", "7 10.000000000 1 2", "the last line is incomplete; the file is truncated"),
        ("1_2_7_1", "2_1_7_1", "a message that rank 0 sends is recorded as from process 2"),
        ("--cfg=tracing:yes", "--cfg=tracing/smpi/internals:yes", "which records each message twice"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(file, refusal_of, old, new, complaint):
    plain = exchange().text()
    assert old in plain
    file.write_text(plain.replace(old, new, 1))
    line = refusal_of("trace", "convert", file, "-o", file.parent / "t.parquet")
    assert line.startswith(f"lepaute: {file}")
    assert complaint in line
    assert not (file.parent / "t.parquet").exists()


def test_the_command_writes_a_trace_that_the_others_read(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(exchange().text())
    output = file.parent / "t.parquet"
    assert main(["trace", "convert", str(file), "-o", str(output)]) == 0
    assert capsys.readouterr().err.startswith(f"{output}: 5 calls in ")
    assert rows(read_trace(output)) == rows(convert(file))
    assert main(["trace", "gantt", str(output), "-o", str(file.parent / "g.png")]) == 0
    assert main(["trace", "compare", str(output), str(output), "--same"]) == 0
