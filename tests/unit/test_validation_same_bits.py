"""validation/same_bits.py: what it reads of the driver's output, and what counts as a difference."""

from same_bits import compared, differing, judged, parsed

PRINTED = "avx 1 fma 1 library 0f\na, depth 0 seed 1: time_s 0x1p+0 messages 3\nb seed 1: time_s 0x1p-1 messages 4\n"


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
