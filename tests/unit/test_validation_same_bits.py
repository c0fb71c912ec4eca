"""validation/same_bits.py: what it reads of the driver's output, and what counts as a difference."""

from pathlib import Path

from same_bits import compared, differing, judged, parsed
from support.same_bits_cases import CASES, Case, case_lines, hpl

PRINTED = "avx 1 fma 1 library 0f\na, depth 0 seed 1: time_s 0x1p+0 messages 3\nb seed 1: time_s 0x1p-1 messages 4\n"


def test_the_output_is_a_line_about_the_processor_and_one_for_each_run() -> None:
    output = parsed(PRINTED)
    assert output.processor == {"avx": "1", "fma": "1", "library": "0f"}
    assert output.results["a, depth 0 seed 1"] == "time_s 0x1p+0 messages 3"


def test_another_bit_a_missing_run_and_a_failed_one_count_as_differences() -> None:
    reference = {"a": "0x1p+0", "b": "0x1p-1", "c": "1"}
    assert differing(reference, reference) == []
    assert differing(reference, {"a": "0x1.0000000000001p+0", "b": "0x1p-1"}) == ["a", "c"]
    failed = {"a failed": "deadlock"}
    assert differing(failed, failed) == ["a failed"]


def test_what_was_skipped_is_named_and_does_not_count() -> None:
    reference = parsed(PRINTED)
    rows = [compared(reference, reference, ""), compared(reference, None, "skipped: no clang++")]
    assert rows[1]["first"] == "skipped: no clang++"
    assert judged(rows) == ("0 of 2", True)
    assert judged([*rows, {"runs": 2, "different": 1}]) == ("1 of 4", False)


def test_ranks_are_dealt_to_the_nodes_in_turn() -> None:
    lines = case_lines(hpl("one", grid=(1, 3), dealt_over=2, trace=True), Path("m"), 32)
    assert "cores 0 32 1" in lines  # ranks 0 and 2 on the first node, rank 1 on the second
    assert {"set q 3", "trace", "application hpl"} <= set(lines)
    assert not any(line.startswith(("topology", "without")) for line in lines)


def test_names_of_cases_tell_them_apart() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(isinstance(case, Case) and case.ranks > 0 for case in CASES)
