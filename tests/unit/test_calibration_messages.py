"""Messages in a calibration: how large they are, how long they may take, and tests of sends that hang."""

import pytest
from support_calibration import TWO

from lepaute.measure.archive import Archive
from lepaute.measure.calibration.attempt import limit_of
from lepaute.measure.calibration.campaign import calibrate
from lepaute.measure.layout import made_up_layout
from lepaute.measure.plan import QUICK, RING_SPARE_BYTES, largest_message, plan, room
from lepaute.stats.send_completion import rows_of, semantic_limits

pytest_plugins = ["support_calibration_fixtures"]


@pytest.mark.slow
def test_tests_of_sends_that_hang_are_answers_and_any_other_failure_of_theirs_is_told(machine, place):
    def limit(archive: Archive) -> float:
        return semantic_limits(rows_of(archive.table("observations/semantics.parquet"))).detached_up_to_bytes

    archive = Archive.open(calibrate(place, quick=True))
    assert limit(archive) == 1000
    place.unlink()
    machine.break_at(0, "hang")
    archive = Archive.open(calibrate(place, quick=True))
    assert limit(archive) == 1000
    assert "hung" in set(archive.table("observations/semantics.parquet")["outcome"])
    assert archive.metadata["warnings"] == []
    probe = machine.folder / "probe-semantics"
    works = probe.read_text()
    fails = "echo 'probe-semantics: no such luck' >&2\nexit 2\n"
    place.unlink()
    machine.break_at(0, "fail")
    once = works.split("\n", 1)
    probe.write_text(f"{once[0]}\nif [ ! -e {probe}.failed ]; then\ntouch {probe}.failed\n{fails}fi\n{once[1]}")
    archive = Archive.open(calibrate(place, quick=True))
    assert limit(archive) == 1000, archive.metadata["warnings"]
    (warning,) = archive.metadata["warnings"]
    assert warning.startswith("semantics0 failed and was repeated: ")
    place.unlink()
    probe.write_text(f"#!/bin/sh\n{fails}")
    archive = Archive.open(calibrate(place, quick=True))
    _, warning = archive.metadata["warnings"]
    assert warning.startswith("the send-completion semantics remain unknown: ")
    assert warning.endswith("no such luck")
    assert archive.metadata["status"] == "complete"


def test_messages_are_as_large_as_the_memory_has_room_for() -> None:
    gibibyte = 1 << 30
    assert largest_message(gibibyte, 64 * gibibyte, 2) == gibibyte
    # Two ranks with a region of two messages to send and one to receive each: 8 S in 40 % of the memory.
    assert largest_message(gibibyte, 10 * gibibyte, 2) == gibibyte // 2
    # A ring of 64 ranks: 2 S and 64 MiB for each.
    assert largest_message(gibibyte, 160 * gibibyte, 64) == (gibibyte - RING_SPARE_BYTES) // 2
    # What a plan then asks for.
    eight = made_up_layout("1x8", (0, 1))
    sizes = {
        run.probe: max(int(str(size)) for size in run.design.column("size_bytes"))
        for run in plan(QUICK, 1, eight, room(QUICK, 64 << 30, 8, 1 << 20))
        if "size_bytes" in run.design.columns
    }
    assert set(sizes) == {"p2p", "ring"}
    assert all(1 << 16 < size <= 1 << 20 for size in sizes.values())  # in the last sixth of the logarithm


def test_a_probe_of_larger_messages_may_take_longer_before_it_counts_as_hanging() -> None:
    def limit(most: int) -> float:
        runs = plan(QUICK, 1, TWO, room(QUICK, 64 << 30, 2, most))
        return max(limit_of(run) for run in runs)

    assert limit(1 << 20) == limit(64 << 20) == 180
    assert 180 * 8 < limit(1 << 30) <= 180 * 16
