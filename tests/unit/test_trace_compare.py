"""Comparison of two traces, and what each command of `lepaute trace` writes."""

from pathlib import Path

import pytest
from oracles.traces_by_hand import Call, call, exchange, hpl_like, trace

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.simulate.trace import Trace, write_trace
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.compare_report import comparison_text


def test_a_trace_is_equal_to_itself() -> None:
    made = hpl_like(ranks=4, steps=6)
    found = compare_traces(made, made)
    assert found.same_calls
    assert found.same_sizes
    assert all(one.ratio_percentiles == (1.0,) * 5 for one in found.classes)
    assert all(one.same_sizes == one.left_calls == one.right_calls == one.paired for one in found.classes)


def kernels(*names: str, n: int = 8) -> list[Call]:
    return [call(0, name, float(i), 0.5, m=0, n=n) for i, name in enumerate(names)]


def test_the_first_call_that_differs_is_named_with_its_place() -> None:
    left = trace(*kernels("idamax", "dscal", "daxpy", "dscal"))
    (first,) = compare_traces(left, trace(*kernels("idamax", "daxpy", "dscal", "dscal"))).first
    assert (first.rank, first.stream, first.position, first.left, first.right) == (0, "kernels", 1, "dscal", "daxpy")


def test_a_size_that_differs_is_told_with_both_sizes_and_counted() -> None:
    left, right = trace(*kernels("idamax", "dscal")), trace(*kernels("idamax"), call(0, "dscal", 1.0, 0.5, n=9))
    found = compare_traces(left, right)
    assert found.same_calls
    assert not found.same_sizes
    (first,) = found.first_size
    assert (first.position, first.left, first.right) == (1, "dscal(0, 8, 0)", "dscal(0, 9, 0)")
    assert {one.name: one.same_sizes for one in found.classes} == {"idamax": 1, "dscal": 0}
    assert {one.name: one.paired for one in found.classes} == {"idamax": 1, "dscal": 0}


def test_calls_that_one_side_alone_knows_are_listed_and_left_out_of_the_order() -> None:
    left = trace(*kernels("idamax", "dcopy_contiguous", "dscal"))
    found = compare_traces(left, trace(*kernels("idamax", "dscal", "pdfact_glue")))
    assert found.same_calls
    assert [one[:3] for one in found.one_side] == [("dcopy_contiguous", 1, 0), ("pdfact_glue", 0, 1)]
    assert all("another name" in one[3] for one in found.one_side)
    assert "only in the right trace, not in the comparison of order: pdfact_glue (1): the other" in comparison_text(
        found, "l", "r"
    )


def pieces(*widths: int, looks: int) -> list[Call]:
    """An update of 0.5 s a column, in pieces of these widths, with probes and calls without work after each."""
    calls, at_s = [call(0, "pdupdate", 0.0, 1.0 + sum(widths), step=3)], 0.0
    for width in widths:
        calls.append(call(0, "dtrsm", at_s, 0.25 * width, m=width, n=width, k=64))
        calls.append(call(0, "dgemm", at_s + 0.25 * width, 0.25 * width, m=100, n=width, k=64))
        at_s += 0.5 * width
        for _ in range(looks):
            calls.append(call(0, "MPI_Iprobe", at_s, 0.001, peer=1, tag=5))
            calls.append(call(0, "dgemm", at_s + 0.002, 0.001, m=100, n=0, k=64))
            at_s += 0.004
    return calls


def test_pieces_of_an_update_and_looks_for_a_panel_are_no_difference() -> None:
    # dtrsm's m is as wide as the piece here: what is not the same in all pieces is summed.
    found = compare_traces(trace(*pieces(10, 10, 30, looks=2)), trace(*pieces(20, 30, looks=1)))
    assert found.same_sizes, found.first + found.first_size
    assert (found.probes, found.idle) == ((6, 2), (6, 2))
    assert {one.name: (one.left_calls, one.right_calls, one.total_ratio) for one in found.classes} == {
        "dgemm": (1, 1, pytest.approx(1.0)),
        "dtrsm": (1, 1, pytest.approx(1.0)),
    }


def exchange_of(order: tuple[int, ...], size: float = 800.0) -> list[Call]:
    """MPI_Irecv, MPI_Send, MPI_Wait with each of these partners in turn."""
    calls = []
    for i, peer in enumerate(order):
        calls.append(call(0, "MPI_Irecv", 3.0 * i, 0.1, peer=peer, tag=1, size_bytes=size))
        calls.append(call(0, "MPI_Send", 3.0 * i + 1, 0.1, peer=peer, tag=1, size_bytes=size))
        calls.append(call(0, "MPI_Wait", 3.0 * i + 2, 0.1))
    return calls


def test_the_order_of_partners_is_free_but_that_with_each_partner_is_not() -> None:
    assert compare_traces(trace(*exchange_of((1, 2))), trace(*exchange_of((2, 1)))).same_sizes
    swapped = exchange_of((1, 2))
    swapped[0]["start_s"], swapped[1]["start_s"] = swapped[1]["start_s"], swapped[0]["start_s"]
    (first,) = compare_traces(trace(*exchange_of((1, 2))), trace(*swapped)).first
    assert (first.stream, first.left, first.right) == ("messages with rank 1", "MPI_Irecv", "MPI_Send")


def test_a_wait_is_equal_whether_or_not_its_writer_knows_the_message() -> None:
    knowing = exchange_of((1,))
    knowing[2] |= {"peer": 1, "tag": 1, "size_bytes": 800.0}
    assert compare_traces(trace(*exchange_of((1,))), trace(*knowing)).same_sizes


def test_only_common_ranks_are_compared_and_there_must_be_one() -> None:
    whole, part = hpl_like(ranks=4, steps=6), hpl_like(ranks=4, steps=6)
    found = compare_traces(whole, part.where(part.rank == 2))
    assert found.ranks == (2,)
    assert found.same_sizes
    with pytest.raises(InputError, match="no rank in common"):
        compare_traces(whole.where(whole.rank == 1), part.where(part.rank == 2))


def test_calls_with_mpi_proc_null_are_counted_and_no_difference() -> None:
    left = trace(call(0, "MPI_Send", 0.0, 1.0, peer=-2), call(0, "MPI_Barrier", 1.0, 1.0))
    found = compare_traces(left, trace(call(0, "MPI_Barrier", 1.0, 1.0)))
    assert found.same_sizes
    assert found.nobody == (1, 0)
    assert "calls with MPI_PROC_NULL: 1 and 0" in comparison_text(found, "one", "other")


def sends(*sizes: int, name: str = "MPI_Send") -> Trace:
    return trace(*(call(0, name, float(at), 0.5, peer=1, tag=1, size_bytes=size) for at, size in enumerate(sizes)))


def test_each_difference_is_explained() -> None:
    more = compare_traces(sends(8, 8), sends(8, 8, 8))
    assert [one.why for one in more.first] == ["numbers of calls: MPI_Send 2 and 3"]
    sizes = compare_traces(sends(8, 8), sends(8, 16))
    assert [one.why for one in sizes.first_size] == ["1 of 2 calls: MPI_Send 1"]
    turned = (
        trace(call(0, "MPI_Barrier", 0.0, 1.0), call(0, "MPI_Bcast", 1.0, 1.0, peer=0)),
        trace(call(0, "MPI_Bcast", 0.0, 1.0, peer=0), call(0, "MPI_Barrier", 1.0, 1.0)),
    )
    assert [one.why for one in compare_traces(*turned).first] == ["the same calls in another order"]
    missing = compare_traces(turned[0], sends(8))
    assert {one[3] for one in missing.one_side} == {"the other program made none"}
    text = comparison_text(missing, "one", "other")
    assert "only in the left trace, not in the comparison of order: MPI_Barrier (1), MPI_Bcast (1): the other" in text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_trace(hpl_like(ranks=4, steps=6), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_show_names_the_run_and_its_calls(file, output_of):
    told = output_of("trace", "show", file)
    assert told.startswith("HPL N = 384, NB = 64, 4 × 1, recorded: 96 calls in 26.9 s on 4 ranks\n")
    assert "steps:    0 to 5" in told
    assert any(line.split()[:3] == ["dgemm", "kernel", "24"] for line in told.splitlines())


def test_each_command_writes_its_file(file, tmp_path, output_of, json_of):
    assert main(["trace", "gantt", str(file), "-o", str(tmp_path / "g.png"), "--ranks", "0,2-3", "--steps", "1:2"]) == 0
    output_of("trace", "perfetto", file, "-o", tmp_path / "p.json")
    assert json_of("trace", "breakdown", file, "--json", "--plot", tmp_path / "b.png")["all"][
        "compute"
    ] == pytest.approx(6 * (1 + 4 * 3))
    assert {path.name for path in tmp_path.iterdir()} == {"t.parquet", "g.png", "p.json", "b.png"}


def test_compare_exits_with_1_where_it_was_asked_for_sameness_and_finds_none(file, tmp_path, capsys, output_of):
    write_trace(hpl_like(ranks=4, steps=5), tmp_path / "other.parquet")
    both = [str(file), str(tmp_path / "other.parquet")]
    assert main(["trace", "compare", str(file), str(file), "--same"]) == 0
    output_of("trace", "compare", *both)
    assert main(["trace", "compare", *both, "--same", "--plot", str(tmp_path / "c.png")]) == 1
    told = capsys.readouterr()
    assert told.err == "warning: the traces are from different runs: n: 384 and 320\n"
    assert "order of calls: differs on 4 ranks, first" in told.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["gantt", "FILE", "-o", "g.png", "--ranks", "3-1"], "--ranks is '3-1'; a range must increase, such as 1-3"),
        (["gantt", "FILE", "-o", "g.png", "--ranks", "9"], "rank 9 is not in the trace; it holds 0-3"),
        (["gantt", "FILE", "-o", "g.png", "--steps", "1", "--from", "0"], "give either --steps, or --from and --to"),
        (["gantt", "FILE"], "missing option '--output' / '-o'; see"),
        (["gant", "FILE"], "there is no command 'gant'; did you mean 'gantt'? 'lepaute trace --help' lists them"),
        (["show", "--tail"], "there is no option '--tail'; 'lepaute trace show --help' lists them"),
        (["perfetto", "FILE", "-o", "none/p.json"], "--output none/p.json: there is no folder none"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(file, monkeypatch, refusal_of, words, complaint):
    monkeypatch.chdir(file.parent)
    line = refusal_of("trace", *(str(file) if word == "FILE" else word for word in words))
    assert line.startswith(f"lepaute: {complaint}")
    assert {path.name for path in file.parent.iterdir()} == {"t.parquet"}


def test_an_empty_trace_is_shown_and_refused_for_a_picture(tmp_path, refusal_of, output_of):
    whole = exchange()
    write_trace(whole.where(whole.rank > 9), tmp_path / "t.parquet")
    for command in ("show", "breakdown"):
        output_of("trace", command, tmp_path / "t.parquet")
    refusal = refusal_of("trace", "gantt", tmp_path / "t.parquet", "-o", tmp_path / "g.png")
    assert refusal == "lepaute: the trace is empty: nothing to draw\n"
