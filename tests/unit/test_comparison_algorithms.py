"""Names of algorithms from the dynamic linker's log."""

from lepaute.measure.comparison.algorithms import parse_bindings

_LOG = [
    *("ompi_coll_base_bcast_intra_basic_linear", "ompi_coll_base_framework"),  # before the first mark
    *("a64l", "ompi_coll_tuned_bcast_intra_dec_fixed", "ompi_coll_tuned_bcast_intra_do_this"),
    *("ompi_coll_base_bcast_intra_pipeline", "ompi_coll_base_bcast_intra_generic", "l64a"),
    *("a64l", "ompi_coll_libnbc_iscan", "l64a", "ompi_coll_base_scan_intra_linear"),
    *("a64l", "ompi_coll_base_reduce_intra_binomial", "ompi_coll_base_reduce_scatter_block_intra_basic_linear", "l64a"),
]


def test_the_first_function_of_an_operation_between_its_marks_is_the_algorithm() -> None:
    assert parse_bindings(_LOG, ["Bcast", "Scan", "Reduce_scatter_block"]) == ["pipeline", "unknown", "basic_linear"]


def test_marks_that_are_not_ours_leave_all_unknown() -> None:
    assert parse_bindings(_LOG, ["Bcast", "Scan"]) == ["unknown", "unknown"]
    assert parse_bindings([], ["Bcast"]) == ["unknown"]
