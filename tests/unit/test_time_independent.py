"""Time-independent traces of SMPI: what lines become of, and what such a trace does not tell."""

from pathlib import Path

import pytest
from oracles.replays import NOTHING, replayed
from oracles.traces_by_hand import rows

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.simulate.platform.data_sheet import dgemm_rate
from lepaute.simulate.trace import foreign
from lepaute.simulate.trace.reading import kind_of
from lepaute.simulate.trace.table import NOBODY
from lepaute.simulate.trace.time_independent import convert

#: Written by smpirun -trace-ti of SimGrid 3.32: 4 ranks, messages of all modes, blocking and nonblocking collectives.
EXCHANGE = Path(__file__).parents[1] / "data" / "time_independent" / "exchange.txt"


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_list_of_files_their_folder_and_one_file_of_all_are_the_same(tmp_path: Path) -> None:
    files = sorted(EXCHANGE.with_name("exchange.txt_files").glob("*"))
    merged = tmp_path / "merged.txt"
    lines = [file.read_text().splitlines() for file in files]
    merged.write_text("".join(f"{line}\n" for at in range(99) for each in lines for line in each[at : at + 1]))
    of_list, of_folder, of_one = (lp.read_trace(path).to_frame() for path in (EXCHANGE, files[0].parent, merged))
    assert len(of_list) == 143
    assert of_list.equals(of_folder)
    assert of_list.drop(columns=["name", "completion"]).equals(of_one.drop(columns=["name", "completion"]))
    assert replayed(EXCHANGE).time_s.mean == replayed(merged).time_s.mean


def test_what_smpirun_wrote_is_replayed_as_each_rank_called_it() -> None:
    time_s = replayed(EXCHANGE, own_code=1.0).time_s.mean
    assert 0.005 < time_s < 0.0053  # what rank 3 computes at 1 Gflop/s, and some 30 small messages and operations


@pytest.mark.parametrize(("name", "low_s", "high_s"), [("with_isend", 3.0, 3.01), ("waitall", 1e-6, 1e-4),
                                                       ("reducescatter", 0.0125, 0.02)])  # fmt: skip
def test_examples_of_simgrid_take_what_they_compute_and_a_few_messages(name: str, low_s: float, high_s: float) -> None:
    """At 1 Gflop/s: of with_isend rank 2, which computes 3 Gflop and gets its message meanwhile."""
    assert low_s < replayed(EXCHANGE.with_name(f"simgrid_{name}.txt"), own_code=1.0).time_s.mean < high_s


def test_sizes_are_items_times_those_of_their_datatype(tmp_path: Path) -> None:
    path = written(
        tmp_path / "all.txt",
        *("0 init", "1 init 1", "0 finalize", "1 finalize"),  # counts of bytes, and of doubles
        *("0 send 1 5 10", "0 send 1 5 10 1", "1 recv 0 5 10", "1 recv 0 5 10 1"),
        *(f"{rank} {call}" for call in ("alltoall 3 3 1 1", "gatherv 4 4 4 1 1 1", "scatterv 4 4 3 1 5 5",
          "reducescatter 7 9 0 0", "alltoallv 9 2 3 9 2 3 4 4", "allreduce 6 0", "barrier") for rank in (0, 1)),
    )  # fmt: skip
    found = [(name, size) for name, _, _, size, _ in rows(convert(path), 1)]
    assert found == [
        ("Recv", 80.0), ("Recv", 40.0), ("Alltoall", 24.0), ("Gatherv", 16.0), ("Scatterv", 12.0),
        ("Reduce_scatter", 128.0), ("Alltoallv", 40.0), ("Allreduce", 48.0), ("Barrier", 0.0),
    ]  # fmt: skip
    roots = {name: peer for name, peer, *_ in rows(convert(path), 0)}
    assert (roots["Gatherv"], roots["Scatterv"], roots["Alltoall"]) == (1, 1, -1)


def test_sizes_and_communicators_that_are_not_told_are_read_and_refused_by_name_in_a_replay(tmp_path: Path) -> None:
    vectors = [f"{rank} {call}" for rank, call in enumerate(("send 1 0 8 6", "recv 0 0 1 -1", "barrier", "barrier"))]
    made = convert(path := written(tmp_path / "all.txt", *vectors, "0 barrier", "1 barrier"))
    assert made.metadata["unsized"] == ["MPI_Recv"]
    with pytest.raises(InputError, match="MPI_Recv"):
        replayed(path)
    halves = [f"{rank} alltoallv 9 2 3 9 2 3 4 4" for rank in range(4)]
    made = convert(path := written(tmp_path / "all.txt", *halves))
    assert (made.comm.tolist(), made.size_bytes.tolist()) == ([-1] * 4, [40.0] * 4)
    with pytest.raises(InputError, match="its ranks are not known"):
        replayed(path)


def test_amounts_take_the_rate_of_dgemm_or_that_which_is_given(tmp_path: Path) -> None:
    path = written(tmp_path / "one.txt", "0 init", "0 compute 3e9", "0 reduce 1 1e9 0 0", "0 finalize")
    assert replayed(path).time_s.mean == pytest.approx(4e9 / dgemm_rate(lp.load_platform("dahu")), rel=1e-3)
    assert replayed(path, own_code=0.5).time_s.mean == pytest.approx(2.0, rel=1e-3)  # of 1 Gflop/s
    assert main(["trace", "convert", str(path), "--flop-rate", "2e9", "-o", str(tmp_path / "x.parquet")]) == 0
    assert replayed(tmp_path / "x.parquet").time_s.mean == pytest.approx(2.0, rel=1e-3)
    found = lp.predict(lp.TraceReplay(path), "dahu", runs=1, layers=NOTHING)
    assert any("of dgemm, which most code does not reach" in warning for warning in found.warnings)


def test_a_wait_ends_the_request_of_its_name_and_the_last_test_one_that_nothing_waits_for(tmp_path: Path) -> None:
    path = written(
        tmp_path / "all.txt",
        *("0 irecv 1 3 1e6", "0 irecv 1 4 1e6", "0 ibarrier", "0 test 1 0 3", "0 compute 1e9", "0 test 1 0 3"),
        *("0 wait 1 0 4", "0 wait -333 -333 -779"),
        *("1 compute 2e9", "1 isend 0 4 1e6", "1 isend 0 3 1e6", "1 ibarrier", "1 waitall 3"),
    )
    made = convert(path)
    names = [made.names[code].removeprefix("MPI_") for code in made.name.tolist()]
    ended = {}
    for row, number in enumerate(made.completion.tolist()):
        if made.rank[row] == 0 and number >= 0:
            ended.setdefault(number, []).append((names[row], made.tag[row].item()))
    assert sorted(ended.values()) == [
        [("Ibarrier", -1), ("Wait", -1)], [("Irecv", 3), ("Test", -1)], [("Irecv", 4), ("Wait", -1)],
    ]  # fmt: skip
    tests = [row for row, name in enumerate(names) if name == "Test"]
    assert made.completion[tests].tolist()[0] == -1  # the one before the computing


def test_an_unknown_rank_is_nobody_where_no_message_is_left_and_any_source_otherwise(tmp_path: Path) -> None:
    lines = ["0 recv -333 1 8", "0 recv 1 1 8", "1 send 0 1 8", "1 send -333 1 8", "1 recv -333 2 8", "0 send 1 2 8"]
    path = written(tmp_path / "all.txt", *lines)
    found = [(name, rank, peer) for rank in (0, 1) for name, peer, *_ in rows(convert(path), rank)]
    assert found == [
        ("Recv", 0, NOBODY), ("Recv", 0, 1), ("Send", 0, 1), ("Send", 1, 0), ("Send", 1, NOBODY), ("Recv", 1, -1),
    ]  # fmt: skip
    replayed(path)
    with pytest.raises(
        InputError, match="of 2 receives of rank 0 with tag 1 the sender is not told, and there are 1 messages"
    ):
        convert(written(path, "0 recv -333 1 8", "0 recv -333 1 8", "1 send 0 1 8"))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("0 send 1 1e6", "send has 2 values; it has rank, tag, count and datatype"),
        ("0 bcast 3 0 77", "bcast is of datatype '77', whose size is not told"),
        ("0 testall", "testall: such a trace does not tell of which requests"),
        ("0 start 1 3 800 7", "start: such a trace does not tell"),
        ("0 put 1 8", "the action 'put' is not known"),
        ("0 compute fast", "compute's amount is 'fast'; it is a number, at least 0"),
        ("0 compute nan", "compute's amount is 'nan'"),
        ("0 isend 1 0 -5", "isend's count is '-5'"),
        ("0 allgatherv 1 2 0 0 0 0", "allgatherv on 2 ranks has 6 values"),
        ("0 reducescatter 1", "reducescatter on 2 ranks has 1 values"),
        ("x compute 1", "begins with 'x compute 1', which is not a rank and its action"),
        ("0", "begins with '0'"),
    ],
)
def test_a_line_that_cannot_be_is_named_with_file_and_number(line: str, complaint: str, tmp_path: Path) -> None:
    path = written(tmp_path / "all.txt", "# of a test", "1 init", line)
    with pytest.raises(InputError) as raised:
        convert(path)
    assert str(raised.value).startswith(f"{path}, line 3: {complaint}")


def test_what_does_not_say_where_it_ends_may_be_cut(tmp_path: Path) -> None:
    path = written(tmp_path / "all.txt", "0 compute 1e9", "0 compute 1e9")
    assert convert(path).metadata["warnings"][0].startswith("1 rank without init and finalize: whether")
    path.write_text("0 compute 1e9\n0 compute 1e")
    with pytest.raises(InputError, match="line 2: ends without a newline; the file is truncated"):
        convert(path)
    with pytest.raises(InputError, match="rank 0 ends and does not begin; it is truncated"):
        convert(written(path, "0 compute 1e9", "0 finalize"))


def test_more_calls_than_can_be_held_and_lines_without_end_are_refused(tmp_path, monkeypatch):
    path = written(tmp_path / "all.txt", *["0 compute 1e9"] * 4)
    monkeypatch.setattr(foreign.table, "MAX_TRACE_BYTES", 3 * foreign.table.ROW_BYTES)
    with pytest.raises(InputError, match=r"all.txt: has more than 3 calls; these can be held"):
        convert(path)
    monkeypatch.setattr(foreign, "LONGEST_LINE", 8)
    with pytest.raises(InputError, match="line 1: has more than 8 bytes"):
        convert(path)


def test_what_is_no_trace_is_no_trace(tmp_path: Path) -> None:
    path = written(tmp_path / "list.txt", "none.txt")
    with pytest.raises(InputError, match=r"list.txt, line 1: 'none.txt', a rank's file, does not exist"):
        lp.read_trace(path)
    assert kind_of(tmp_path / "nothing") is None
    assert kind_of(written(tmp_path / "words", "some words")) is None
    with pytest.raises(InputError, match="has no calls"):
        convert(written(path, "0 init", "0 finalize"))


def test_the_command_line_reads_both_kinds_of_file(tmp_path, capsys, refusal_of, json_of):
    converted = tmp_path / "x.parquet"
    assert main(["trace", "convert", str(EXCHANGE), "-o", str(converted)]) == 0
    assert "52 collective calls without a communicator, taken for all ranks" in capsys.readouterr().err
    words = ("predict", "trace", "-p", "dahu", "--without", "all", "--runs", "1", "--json")
    times = [json_of(*words, path)["time_s"]["mean"] for path in (EXCHANGE, converted)]
    assert times[0] == times[1] > 0.0
    assert "not a trace of another program" in refusal_of("trace", "convert", converted, "-o", tmp_path / "y.parquet")
