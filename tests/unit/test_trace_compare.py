"""Comparison of two traces: planted differences are found where they are, and nothing else is called one."""

import dataclasses

import numpy
import pytest
from oracles.traces_by_hand import Call, call, exchange, hpl_like, trace

from lepaute.errors import InputError
from lepaute.simulate.trace import Trace
from lepaute.simulate.trace.compare import compare_traces, parameters_that_differ
from lepaute.simulate.trace.compare_report import comparison_dict, comparison_text


def test_a_trace_is_equal_to_itself() -> None:
    made = hpl_like(ranks=4, steps=6)
    found = compare_traces(made, made)
    assert found.same_calls
    assert found.same_sizes
    assert all(one.ratio_percentiles == (1.0,) * 5 for one in found.classes)
    assert all(one.same_sizes == one.left_calls == one.right_calls == one.paired for one in found.classes)


def test_a_duration_alone_is_no_difference_but_a_ratio() -> None:
    slow = hpl_like(ranks=4, steps=6)
    slow = dataclasses.replace(slow, duration_s=slow.duration_s * 1.25)
    found = compare_traces(hpl_like(ranks=4, steps=6), slow)
    assert found.same_sizes
    assert all(one.total_ratio == pytest.approx(1.25) for one in found.classes)


def kernels(*names: str, n: int = 8) -> list[Call]:
    return [call(0, name, float(i), 0.5, m=0, n=n) for i, name in enumerate(names)]


def test_the_first_call_that_differs_is_named_with_its_place() -> None:
    left = trace(*kernels("idamax", "dscal", "daxpy", "dscal"))
    right = trace(*kernels("idamax", "daxpy", "dscal", "dscal"))
    (first,) = compare_traces(left, right).first
    assert (first.rank, first.stream, first.position, first.left, first.right) == (0, "kernels", 1, "dscal", "daxpy")


def test_a_call_more_at_the_end_is_a_difference() -> None:
    (first,) = compare_traces(trace(*kernels("idamax", "dscal")), trace(*kernels("idamax", "dscal", "dscal"))).first
    assert (first.position, first.left, first.right) == (2, "(the end)", "dscal")


def test_a_size_that_differs_is_told_with_both_sizes_and_counted() -> None:
    left, right = trace(*kernels("idamax", "dscal")), trace(*kernels("idamax"), call(0, "dscal", 1.0, 0.5, n=9))
    found = compare_traces(left, right)
    assert found.same_calls
    assert not found.same_sizes
    (first,) = found.first_size
    assert (first.position, first.left, first.right) == (1, "dscal(0, 8, 0)", "dscal(0, 9, 0)")
    assert {one.name: one.same_sizes for one in found.classes} == {"idamax": 1, "dscal": 0}
    assert {one.name: one.paired for one in found.classes} == {"idamax": 1, "dscal": 0}


def test_durations_are_paired_by_size_so_that_a_call_more_shifts_nothing() -> None:
    left = trace(call(0, "dscal", 0.0, 1.0, n=1), call(0, "dscal", 1.0, 2.0, n=2))
    right = trace(call(0, "dscal", 0.0, 9.0, n=3), call(0, "dscal", 10.0, 1.5, n=1), call(0, "dscal", 12.0, 3.0, n=2))
    (dscal,) = compare_traces(left, right).classes
    assert (dscal.paired, dscal.ratio_percentiles) == (2, (1.5,) * 5)


def test_calls_that_one_side_alone_knows_are_listed_and_left_out_of_the_order() -> None:
    left = trace(*kernels("idamax", "dcopy_contiguous", "dscal"))
    right = trace(*kernels("idamax", "dscal", "pdfact_glue"))
    found = compare_traces(left, right)
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


def test_a_column_less_in_an_update_is_a_difference() -> None:
    found = compare_traces(trace(*pieces(10, 30, looks=1)), trace(*pieces(20, 19, looks=1)))
    assert [one.stream for one in found.first_size] == ["kernels"]
    assert "(40, 40, 64)" in found.first_size[0].left


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


def test_bytes_that_differ_are_found() -> None:
    found = compare_traces(trace(*exchange_of((1,))), trace(*exchange_of((1,), size=808.0)))
    assert [(one.left, one.right) for one in found.first_size] == [("MPI_Irecv of 800 bytes", "MPI_Irecv of 808 bytes")]


def test_only_common_ranks_are_compared_and_there_must_be_one() -> None:
    whole, part = hpl_like(ranks=4, steps=6), hpl_like(ranks=4, steps=6)
    found = compare_traces(whole, part.where(part.rank == 2))
    assert found.ranks == (2,)
    assert found.same_sizes
    with pytest.raises(InputError, match="no rank in common"):
        compare_traces(whole.where(whole.rank == 1), part.where(part.rank == 2))


def test_parameters_that_differ_are_told() -> None:
    one, other = {"parameters": {"n": 100, "nb": 8}}, {"parameters": {"n": 200, "nb": 8}}
    assert parameters_that_differ(one, other) == ["n: 100 and 200"]
    assert parameters_that_differ(one, {}) == []


def test_the_comparison_is_told_as_json_and_as_text() -> None:
    found = compare_traces(exchange(1.0), exchange(2.0))
    assert comparison_dict(found)["same_sizes"] is True
    text = comparison_text(found, "one", "other")
    assert "order of calls: equal on every rank" in text
    assert "dgemm" in text


def test_calls_with_mpi_proc_null_are_counted_and_no_difference() -> None:
    left = trace(call(0, "MPI_Send", 0.0, 1.0, peer=-2), call(0, "MPI_Barrier", 1.0, 1.0))
    right = trace(call(0, "MPI_Barrier", 1.0, 1.0))
    found = compare_traces(left, right)
    assert found.same_sizes
    assert found.nobody == (1, 0)
    assert "calls with MPI_PROC_NULL: 1 and 0" in comparison_text(found, "one", "other")


def test_how_often_waitsome_was_called_is_no_difference() -> None:
    left = trace(call(0, "MPI_Waitsome", 0.0, 1.0), call(0, "MPI_Waitsome", 1.0, 1.0), call(0, "MPI_Barrier", 2.0, 1.0))
    assert compare_traces(left, left.where(numpy.array([0, 2]))).same_sizes


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


def test_what_a_trace_does_not_know_explains_a_difference() -> None:
    unknown = trace(call(0, "MPI_Sendrecv", 0.0, 1.0), call(0, "MPI_Sendrecv", 1.0, 1.0, peer=1))
    found = compare_traces(sends(0, 0, name="MPI_Sendrecv"), unknown)
    assert any("the right trace does not know the partners of MPI_Sendrecv" in one.why for one in found.first)
