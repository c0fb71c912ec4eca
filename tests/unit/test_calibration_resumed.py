"""What becomes of a calibration that ends half-way: a partial archive, and what it is resumed with."""

from pathlib import Path

import pytest
from support_calibration import BLOCK, KINDS, RUNS, SEMANTIC_ROUNDS, FakeMachine, names_in

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.archive import Archive
from lepaute.measure.calibration.campaign import calibrate

pytest_plugins = ["support_calibration_fixtures"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["interrupt", "fail"])
def test_what_was_measured_before_a_failure_or_ctrl_c_is_archived_as_partial_and_gone_on_from(machine, place, how):
    place.write_bytes(b"an older archive")
    machine.break_at(BLOCK, how)
    with pytest.raises(KeyboardInterrupt if how == "interrupt" else EnvironmentProblem) as caught:
        calibrate(place, quick=True)
    partial = place.with_name("c.partial.zip")
    assert caught.value.__notes__[-1] == f"what was measured until then is in {partial}; resume with --resume"
    assert place.read_bytes() == b"an older archive"
    archive = Archive.open(partial)
    assert archive.metadata["partial"] is True
    if how == "fail":
        assert "probe-x: it broke" in str(caught.value)
        assert archive.metadata["failure"]["message"] == str(caught.value)
    assert len(archive.json("blocks.json")) == BLOCK - 1
    tables = [archive.table(f"observations/{kind}.parquet") for kind in KINDS]
    assert all(table["duration_s"].eq(0.001).all() for table in tables)  # the row that was cut is not among them
    with pytest.raises(InputError, match="an interrupted run is there"):
        calibrate(place, quick=True)
    done = len(machine.runs())
    Archive.open(calibrate(place, quick=True, resume=True))
    assert len(machine.runs()) - done == RUNS + SEMANTIC_ROUNDS - (BLOCK - 1)
    assert len(Archive.open(place).json("blocks.json")) == RUNS + SEMANTIC_ROUNDS
    assert names_in(place) == ["c.zip"]


def test_what_an_engine_leaves_can_be_archived_without_it(machine: FakeMachine, place: Path) -> None:
    machine.break_at(5, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True)
    place.with_name("c.partial.zip").unlink()
    assert main(["archive", "close", str(place.with_name("c.work"))]) == 0
    archive = Archive.open(place.with_name("c.partial.zip"))
    assert archive.metadata["kind"] == "calibration"
    assert len(archive.table("observations/kernels.parquet")) > 0


@pytest.mark.slow
def test_messages_that_no_probe_sends_are_refused_and_a_calibration_goes_on_with_those_it_began_with(machine, place):
    for size in (1, (1 << 30) + 1):
        with pytest.raises(InputError, match=f"the largest message is {size} bytes; give"):
            calibrate(place, quick=True, network_bytes=size)
    machine.break_at(4, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True, network_bytes=1 << 26)
    with pytest.raises(EnvironmentProblem, match=r"begun with other --network-bytes \(67108864, now None\)"):
        calibrate(place, quick=True, resume=True)
    machine.break_at(0, "never")
    archive = Archive.open(calibrate(place, quick=True, resume=True, network_bytes=1 << 26))
    assert archive.metadata["most_message_bytes"] == 1 << 26


@pytest.mark.slow
def test_a_calibration_goes_on_with_the_block_sizes_and_threads_that_it_began_with(machine, place):
    for wrong in ({"nbs": ()}, {"nbs": (64, 64)}, {"nbs": (5000,)}, {"threads": (0,)}, {"threads": (1, 2000)}):
        with pytest.raises(InputError, match="give different numbers from 1 to"):
            calibrate(place, quick=True, **wrong)
    machine.break_at(4, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True, nbs=(96, 160), threads=(1, 2))
    for other, begun in (({"threads": (1, 2)}, "--nb [(]96,160"), ({"nbs": (96, 160)}, "--threads-per-rank [(]1,2")):
        with pytest.raises(EnvironmentProblem, match=f"begun with other {begun}"):
            calibrate(place, quick=True, resume=True, **other)
    machine.break_at(0, "never")
    archive = Archive.open(calibrate(place, quick=True, resume=True, nbs=(96, 160), threads=(1, 2)))
    assert (archive.metadata["nbs"], archive.metadata["threads"]) == ([96, 160], [1, 2])
    kernels = archive.table("observations/kernels.parquet")
    assert set(zip(kernels["threads"], kernels["active_cores"], strict=True)) == {(1, 1), (1, 2), (2, 2)}


@pytest.mark.slow
def test_where_no_node_is_left_what_was_measured_is_archived_and_gone_on_from(machine, place):
    machine.break_at(4, "lose")
    with pytest.raises(EnvironmentProblem, match="no node is left"):
        calibrate(place, quick=True)
    partial = Archive.open(place.with_name("c.partial.zip"))
    assert partial.metadata["status"] == "failed"
    assert len(partial.json("blocks.json")) == 3
    calibrate(place, quick=True, resume=True)
    assert len(Archive.open(place).json("blocks.json")) == RUNS + SEMANTIC_ROUNDS


def test_a_calibration_goes_on_as_it_was_begun(machine: FakeMachine, place: Path) -> None:
    machine.break_at(4, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, quick=True)
    with pytest.raises(EnvironmentProblem, match=r"begun with other --quick \(True"):
        calibrate(place, resume=True)
    machine.nodes = ["other"]
    with pytest.raises(EnvironmentProblem, match=r"begun with other nodes \(alone, now other"):
        calibrate(place, quick=True, resume=True)
