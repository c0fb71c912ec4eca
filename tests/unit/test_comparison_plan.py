"""The plan of a campaign, and its archive: run-times and skews worked out by hand from clocks that are known."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas
import pytest

from lepaute.errors import InputError
from lepaute.kit.json_values import to_json
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.metadata import Metadata
from lepaute.measure.archive.mpi_campaign import CALLS, CLOCKS, KIND, MPIRUNS, calls, facts, mpiruns
from lepaute.measure.archive.setups import metadata_facts
from lepaute.measure.comparison import numbers
from lepaute.measure.comparison.campaign import check_same
from lepaute.measure.comparison.cases import (
    BLOCKING,
    NOTHING,
    OVERLAPPED,
    Case,
    ComparisonRequest,
    Reduction,
    cases_of,
    operations_of,
    reduction_of,
    sizes_of,
    with_overlapped,
)
from lepaute.measure.comparison.mpirun import parse_bindings

_CASES = [Case("Bcast", BLOCKING, 1 << exponent) for exponent in range(12)]
_WINDOWS = dict.fromkeys([*_CASES, Case(NOTHING, BLOCKING, 0)], 0)


def test_overlap_is_of_nonblocking_operations_beside_these_alone() -> None:
    assert with_overlapped(operations_of("bcast,iallreduce"))[2:] == (("Allreduce", OVERLAPPED),)
    with pytest.raises(InputError, match="--compute is for nonblocking operations, and --ops has none"):
        with_overlapped(operations_of("bcast"))
    alone, with_work = (Case("Allreduce", form, 8) for form in ("nonblocking", OVERLAPPED))
    windows = dict.fromkeys([alone, with_work, Case(NOTHING, BLOCKING, 0)], 0)
    text = numbers.design_text(numbers.shuffled_batches({alone: 4, with_work: 4}, windows, 1), "window", 1, 5000)
    assert any(row.endswith("Allreduce,nonblocking,8,4,window,0,0") for row in text.splitlines())
    assert any(row.endswith("Allreduce,overlapped,8,4,window,5000,0") for row in text.splitlines())


def test_a_range_of_sizes_has_powers_of_two_and_sizes_between_them() -> None:
    sizes = sizes_of("1:1M", 1)
    powers = {1 << exponent for exponent in range(21)}
    assert powers <= set(sizes)
    assert 3 <= len(set(sizes) - powers) <= 5  # a drawn size may be a power of two
    assert sizes == sizes_of("1:1M", 1)
    assert sizes != sizes_of("1:1M", 2)
    assert sizes_of("8,64K,8", 1) == (8, 65536)
    assert sizes_of("0,8", 1) == (0, 8)
    assert {0, 1, 64} <= set(sizes_of("0:64", 1))
    assert {1000, 5000} <= set(sizes_of("1000:5000", 1))


def test_reductions_are_of_one_datatype_and_operator_whatever_the_size() -> None:
    """Sizes of a range that are no whole counts are those of other operations; of a list they are refused."""
    doubles, operations = Reduction(), operations_of("bcast,allreduce")
    assert str(doubles) == "MPI_SUM of MPI_DOUBLE"
    cases = cases_of(operations, sizes_of("1:1K", 1, doubles), 2, doubles)
    assert {1, 2, 4} <= {case.size_bytes for case in cases if case.operation == "Bcast"}
    reduced = [case.size_bytes for case in cases if case.operation == "Allreduce"]
    assert {8, 16, 1024} <= set(reduced)
    assert all(size % 8 == 0 for size in reduced)
    assert sizes_of("4,12", 1, reduction_of("int", "max")) == (4, 12)
    for text, message in (
        ("8,12", r"--sizes has 12 bytes, no whole count of MPI_DOUBLE \(8 bytes\), which is reduced; give 8 or 16, or"),
        ("4", "no whole count of MPI_DOUBLE .* give 8, or another --datatype"),
        ("1:7", "--sizes has 1 bytes, no whole count .* give 8, or another"),
    ):
        with pytest.raises(InputError, match=message):
            sizes_of(text, 1, doubles)


@pytest.mark.parametrize(
    ("datatype", "op", "message"),
    [
        ("quad", "sum", "--datatype is 'MPI_QUAD'; choose one of MPI_BYTE"),
        ("double", "mean", "--op is 'MPI_MEAN'; choose one of MPI_SUM"),
        ("byte", "sum", "MPI does not define MPI_SUM for MPI_BYTE; choose --op MPI_BAND, MPI_BOR, MPI_BXOR"),
        ("MPI_Float", "bxor", "MPI does not define MPI_BXOR for MPI_FLOAT"),
    ],
)
def test_reductions_that_mpi_does_not_define_are_refused(datatype: str, op: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reduction_of(datatype, op)


def test_every_block_has_each_library_as_often_in_any_order() -> None:
    orders = [numbers.library_order(("a", "b"), 2, block, 7) for block in range(600)]
    count = Counter("".join(order) for order in orders)
    # All six orders are equally likely, and no block follows from the one before it.
    assert sorted(count) == ["aabb", "abab", "abba", "baab", "baba", "bbaa"]
    assert all(62 <= each <= 141 for each in count.values())  # of 100: beyond it once in ten thousand seeds
    assert 62 <= sum(a == b for a, b in zip(orders, orders[1:], strict=False)) <= 141
    assert orders[:9] == [numbers.library_order(("a", "b"), 2, block, 7) for block in range(9)]
    assert orders[:9] != [numbers.library_order(("a", "b"), 2, block, 8) for block in range(9)]
    assert sorted(numbers.library_order(("a", "b", "c"), 1, 0, 7)) == ["a", "b", "c"]


def test_batches_have_all_calls_and_cases_are_far_apart() -> None:
    calls = {case: 3 + 10 * number for number, case in enumerate(_CASES)}
    batches = numbers.shuffled_batches(calls, _WINDOWS, 3)
    count: Counter[Case] = Counter()
    for batch in batches:
        count[batch.case] += batch.calls
    assert count == {**calls, Case(NOTHING, BLOCKING, 0): numbers.NOTHING_CALLS}
    number = Counter(batch.case for batch in batches)
    assert all(number[case] == numbers.batches_of(calls[case]) for case in _CASES)
    assert all(batch.calls >= min(numbers.MIN_IN_BATCH, calls[batch.case]) for batch in batches if batch.case in calls)
    assert max(number.values()) == numbers.MAX_BATCHES
    # The last of a random order of some 40 batches is rarely of the same case as the one before.
    assert sum(a.case == b.case for a, b in zip(batches, batches[1:], strict=False)) < 10


def test_the_order_of_batches_is_that_of_the_seed() -> None:
    calls = dict.fromkeys(_CASES, 20)
    assert numbers.shuffled_batches(calls, _WINDOWS, 3) == numbers.shuffled_batches(calls, _WINDOWS, 3)
    assert numbers.shuffled_batches(calls, _WINDOWS, 3) != numbers.shuffled_batches(calls, _WINDOWS, 4)
    places = [
        (block, place, label, attempt)
        for block in (-1, 0, 1)
        for place in (0, 1)
        for label in "ab"
        for attempt in (0, 1)
    ]
    assert len({numbers.mpirun_seed(1, *place) for place in places}) == 24


_ASKED: dict[str, Any] = {
    "libraries": (("a", "openmpi"), ("b", "mpich")),
    "operations": operations_of("bcast"),
    "sizes_bytes": (8,),
    "ranks": 2,
}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ranks": 1}, "--np is 1; give 2 to 512"),
        ({"precision": 0.0}, "--precision is 0 %"),
        ({"budget_s": 0.0}, "--budget is 0 s"),
        ({"calls": 0}, "--calls is 0"),
        ({"mpiruns": 0}, "--mpiruns is 0"),
        ({"synchronisation": "gong"}, "--synchronisation is 'gong'; choose one of MPI_Barrier"),
        ({"root": 2}, "--root is 2; give 0 to 1"),
        ({"clock": "sundial"}, "--clock is 'sundial'"),
        ({"clock_method": "NTP"}, "--clock-method is 'NTP'"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ComparisonRequest(**{**_ASKED, **given})


def test_a_campaign_is_resumed_with_what_it_was_begun_with() -> None:
    begun = {"asked": to_json(ComparisonRequest(**_ASKED))}
    check_same(begun, ComparisonRequest(**_ASKED), [])
    with pytest.raises(InputError, match=r"begun with other sizes bytes .* resume it"):
        check_same(begun, ComparisonRequest(**{**_ASKED, "sizes_bytes": (16,)}), [])


_LOG = [
    *("ompi_coll_base_bcast_intra_basic_linear", "ompi_coll_base_framework"),  # before the first mark
    *("a64l", "ompi_coll_tuned_bcast_intra_dec_fixed", "ompi_coll_tuned_bcast_intra_do_this"),
    *("ompi_coll_base_bcast_intra_pipeline", "ompi_coll_base_bcast_intra_generic", "l64a"),
    *("a64l", "ompi_coll_libnbc_iscan", "l64a", "ompi_coll_base_scan_intra_linear"),
    *("a64l", "ompi_coll_base_reduce_intra_binomial", "ompi_coll_base_reduce_scatter_block_intra_basic_linear", "l64a"),
]


def test_the_first_function_of_an_operation_between_its_marks_is_the_algorithm_without_marks_none() -> None:
    assert parse_bindings(_LOG, ["Bcast", "Scan", "Reduce_scatter_block"]) == ["pipeline", "unknown", "basic_linear"]
    assert parse_bindings(_LOG, ["Bcast", "Scan"]) == ["unknown", "unknown"]
    assert parse_bindings([], ["Bcast"]) == ["unknown"]


_START_NS = 1_700_000_000_000_000_000  # more digits than a double has


def _row(rank: int, call: int, start_ns: int, end_ns: int, **more: Any) -> dict[str, Any]:
    usual = {
        "mpirun": 0, "batch": 0, "operation": "Bcast", "form": "blocking", "size_bytes": 8,
        "synchronisation": "window", "returned_ns": end_ns, "marks": 0, "window_ns": 50_000,
    }  # fmt: skip
    return {**usual, "rank": rank, "call": call, "start_ns": start_ns, "end_ns": end_ns, **more}


def _model(rank: int, **more: Any) -> dict[str, Any]:
    usual = {"mpirun": 0, "before_batch": 0, "x0_ns": _START_NS, "y0_ns": _START_NS, "drift": 0.0}
    errors = {"variance_ns2": 0.0, "drift_variance": 0.0, "covariance_ns": 0.0, "bound_ns": 0.0}
    return {**usual, **errors, "rank": rank, **more}


def _archive(folder: Path, rows: list[dict[str, Any]], models: list[dict[str, Any]], kind: str = KIND) -> Archive:
    runs = [
        {"mpirun": 0, "library": "openmpi", "block": 0, "place": 1, "trial": False, "attempt": 0},
        {"mpirun": 1, "library": "mpich", "block": 0, "place": 0, "trial": False, "attempt": 1},
    ]
    ends = [
        {"outcome": "complete", "disturbed": False, "started_s": 1.0},
        {"outcome": "failed", "disturbed": True, "started_s": 0.0},
    ]
    about = {"kind": kind, "created": "2026-01-01T00:00:00Z", KIND: {"ranks": 2, "libraries": [{"label": "openmpi"}]}}
    with ArchiveWriter(folder / "campaign.zip", about) as writer:
        writer.add_table(CALLS, pandas.DataFrame(rows))
        writer.add_table(CLOCKS, pandas.DataFrame(models))
        writer.add_table(MPIRUNS, pandas.DataFrame([{**run, **end} for run, end in zip(runs, ends, strict=True)]))
    return Archive.open(folder / "campaign.zip")


def test_both_run_times_and_the_skew_follow_from_the_clocks(tmp_path: Path) -> None:
    """Rank 1's clock is 1000 ns ahead and loses half a part in a thousand: at its 101000 rank 0's is 100050."""
    models = [_model(0), _model(1, x0_ns=_START_NS + 1000, drift=0.0005, variance_ns2=9.0, bound_ns=4.0)]
    rows = [
        _row(0, 0, _START_NS + 100_000, _START_NS + 100_700),
        _row(1, 0, _START_NS + 101_000, _START_NS + 103_000, marks=1),
        # Rank 0 is the first to start and the last to end: the clock of rank 1 has no part in it.
        _row(1, 1, _START_NS + 201_000, _START_NS + 201_100, marks=2),
        _row(0, 1, _START_NS + 200_000, _START_NS + 203_000),
    ]
    measured = calls(_archive(tmp_path, rows, models))
    first, second = (measured.iloc[number] for number in range(2))
    assert first["local_s"] == pytest.approx(2000e-9)
    # From rank 0's start at 100000 to rank 1's end, which reads 102000 after the origin and is 102051.
    assert (first["global_s"], first["start_skew_s"]) == (pytest.approx(2051e-9), pytest.approx(50e-9))
    # 1.96 deviations of 3 ns and the bound of 4 ns
    assert first["start_skew_low_s"] == pytest.approx((50 - 9.88) * 1e-9, abs=1e-11)
    assert first["start_skew_high_s"] == pytest.approx((50 + 9.88) * 1e-9, abs=1e-11)
    assert first["global_deviation_s"] == pytest.approx(3e-9)
    assert first["global_bound_s"] == pytest.approx(4e-9)
    assert (bool(first["started_late"]), bool(first["exceeded_window"])) == (True, False)
    assert second["global_s"] == pytest.approx(3000e-9)
    assert (second["global_deviation_s"], second["global_bound_s"]) == (0.0, 0.0)
    assert (bool(second["started_late"]), bool(second["exceeded_window"])) == (False, True)
    assert second["since_start_s"] == pytest.approx(100_000e-9)
    assert measured["window_s"].tolist() == pytest.approx([50e-6, 50e-6])


def test_the_last_model_before_a_batch_counts(tmp_path: Path) -> None:
    models = [_model(0), _model(1), _model(0, before_batch=2), _model(1, before_batch=2, y0_ns=_START_NS + 500)]
    rows = [_row(rank, 0, _START_NS, _START_NS + 100, batch=batch) for batch in range(4) for rank in range(2)]
    measured = calls(_archive(tmp_path, rows, models))
    assert measured["start_skew_s"].tolist() == pytest.approx([0.0, 0.0, 500e-9, 500e-9])


def test_calls_carry_what_became_of_their_mpirun_and_none_is_dropped(tmp_path: Path) -> None:
    rows = [
        *(_row(rank, call, _START_NS, _START_NS + 100) for call in (-1, 0) for rank in range(2)),
        *(_row(rank, 0, _START_NS, _START_NS + 100, mpirun=1) for rank in range(2)),
        _row(0, 1, _START_NS, _START_NS + 100, mpirun=1),  # rank 1 died in it
    ]
    models = [_model(rank, mpirun=mpirun) for mpirun in range(2) for rank in range(2)]
    archive = _archive(tmp_path, rows, models)
    measured = calls(archive)
    assert measured[["library", "failed", "disturbed", "attempt"]].to_numpy().tolist() == [
        ["openmpi", False, False, 0],
        ["mpich", True, True, 1],
    ]
    assert calls(archive, warm_up=True)["call"].tolist() == [-1, 0, 0]
    assert mpiruns(archive)["library"].tolist() == ["openmpi", "mpich"]
    assert facts(archive).labels == ("openmpi",)
    assert facts(archive).precision == 0.0  # missing


def test_what_a_campaign_found_out_is_no_difference_of_setups() -> None:
    about = {"kind": KIND, KIND: {"blocks": 7, "capped": True, "cases": [{"calls": 9}], "ranks": 2}}
    shown = [fact.what for _, fact in metadata_facts(Metadata.of(about), about)]
    assert "comparison.ranks" in shown
    assert not [what for what in shown if "cases" in what or "blocks" in what or "capped" in what]
