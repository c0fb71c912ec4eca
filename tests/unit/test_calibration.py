"""A calibration without a machine: what its archive holds, its messages, and what it is resumed with."""

import collections
from pathlib import Path

import pytest
from support_calibration import BLOCK, KINDS, RUNS, SEMANTIC_ROUNDS, TWO, FakeMachine, names_in

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.json_values import from_json
from lepaute.measure.archive import Archive
from lepaute.measure.calibration import machines
from lepaute.measure.calibration.attempt import limit_of
from lepaute.measure.calibration.campaign import calibrate
from lepaute.measure.calibration.entries import RawFile
from lepaute.measure.kernel_set import KernelSet
from lepaute.measure.layout import made_up_layout
from lepaute.measure.observation_columns import TABLES, columns_of_run
from lepaute.measure.plan import QUICK, RING_SPARE_BYTES, largest_message, plan, room
from lepaute.stats.send_completion import rows_of, semantic_limits

pytest_plugins = ["support_calibration_fixtures"]


def limit_of_sends(archive: Archive) -> float:
    return semantic_limits(rows_of(archive.table("observations/semantics.parquet"))).detached_up_to_bytes


def test_a_calibration_holds_designs_raw_files_observations_blocks_commands_and_environment(machine, place):
    shares: list[float] = []
    path = calibrate(place, quick=True, seed=5, progress=lambda _what, share: shares.append(share))
    archive = Archive.open(path)
    folders = collections.Counter(name.split("/")[0] for name in archive.members() if "/" in name)
    assert folders["designs"] == RUNS + SEMANTIC_ROUNDS
    # One a rank: all but three runs of a block have two, as the tests of send-completion semantics have.
    assert folders["raw"] == 2 * RUNS - 2 * 3 + 2 * SEMANTIC_ROUNDS
    assert {"environment/alone/cpuinfo.txt", "raw/alone/block0/ring.r1.csv"} <= set(archive.members())
    metadata = archive.metadata
    assert (metadata["kind"], metadata["seed"], metadata["blocks"], metadata["partial"]) == ("calibration", 5, 2, False)
    assert metadata["blas"]["core"] == metadata["machines"]["alone"]["blas"]["core"] == "Zen"
    kernels = archive.table("observations/kernels.parquet")
    both = {"hpl_steps_column", "hpl_steps_options"}
    assert set(kernels["probe"]) == {"dgemm", "dgemm_content", "hpl_steps_1x1", *both}
    assert set(kernels.loc[kernels["active_cores"] == 1, "probe"]) == {"dgemm", "dgemm_content", "hpl_steps_1x1"}
    assert set(kernels["cpu"]) == {0, 1}
    assert set(kernels["block"]) == {0, 1}
    assert set(kernels["clock_cost_s"]) == {2e-8}
    messages = archive.table("observations/p2p.parquet")
    assert set(zip(messages["host"], messages["peer"], messages["link"], strict=True)) == {("alone", "alone", "local")}
    ring = archive.table("observations/ring.parquet")
    assert set(zip(ring["host"], ring["peer"], ring["link"], strict=True)) == {("alone", "alone", "local")}
    for table in (kernels, messages, ring):
        assert set(table["attempt"]) == {0}
        assert table["disturbed"].dtype == bool
        assert not table["disturbed"].any()
    assert metadata["warnings"] == []
    assert limit_of_sends(archive) == 1000
    records = archive.json("blocks.json")
    assert len(records) == RUNS + SEMANTIC_ROUNDS
    assert {"others_cpu_s", "steal_s", "wall_s", "disturbed", "causes"} <= set(records[0])
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert names_in(place) == ["c.zip"]


def test_a_run_has_all_columns_that_are_declared_of_it_with_defaults_in_journals_of_older_versions():
    old = {"member": "a.csv", "node": "n", "host": "n", "name": "dgemm", "block": 0, "probe": "dgemm", "attempt": 0}
    entry = from_json(RawFile, old)
    columns = {column for table in TABLES for column in columns_of_run(table)} - {
        "disturbed",
        "slow",
    }  # not of its start
    values = {column: getattr(entry, column) for column in columns}
    assert values == dict.fromkeys(columns) | {name: old[name] for name in columns & old.keys()} | {
        "active_cores": 1, "active_socket_cores": 1, "threads": 1, "distance": ""
    }  # fmt: skip


def test_probes_that_ran_other_kernels_than_those_chosen_end_the_campaign(machine, place, monkeypatch):
    monkeypatch.setattr(machines, "choose_kernel_set", lambda **_options: KernelSet("Haswell", "Haswell", 50.0, ()))
    with pytest.raises(EnvironmentProblem, match="ran the Zen kernels of OpenBLAS instead of Haswell"):
        calibrate(place, quick=True)


@pytest.mark.slow
def test_a_made_up_layout_has_all_its_cores_in_the_archive(machine, place, monkeypatch):
    monkeypatch.setenv("LEPAUTE_LAYOUT", "2x4")
    archive = Archive.open(calibrate(place, quick=True))
    layout = archive.about.machines["alone"].layout
    assert (layout.source, layout.socket) == ("LEPAUTE_LAYOUT=2x4", (0,) * 4 + (1,) * 4)
    assert (archive.about.cores, archive.about.node_cores) == (tuple(range(8)), 8)
    kernels = archive.table("observations/kernels.parquet")
    full = kernels[kernels["active_cores"] == 8]
    assert set(full["cpu"]) == set(range(8))
    assert set(full["active_socket_cores"]) == {4}
    loads = set(zip(kernels["active_cores"], kernels["active_socket_cores"], strict=True))
    assert loads == {(1, 1), (2, 1), (4, 2), (8, 4)}
    assert set(archive.table("observations/p2p.parquet")["distance"]) == {"same-l3", "other-socket"}
    monkeypatch.setenv("LEPAUTE_LAYOUT", "none")
    place.unlink()
    with pytest.raises((InputError, EnvironmentProblem), match="LEPAUTE_LAYOUT is 'none'; it makes up a layout"):
        calibrate(place, quick=True)


@pytest.mark.slow
def test_tests_of_sends_that_hang_are_answers_and_any_other_failure_of_theirs_is_told(machine, place):
    machine.break_at(0, "hang")
    archive = Archive.open(calibrate(place, quick=True))
    assert limit_of_sends(archive) == 1000
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
    assert limit_of_sends(archive) == 1000, archive.metadata["warnings"]
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
def test_a_calibration_goes_on_with_what_it_began_with(machine, place):
    for wrong in ({"nbs": ()}, {"nbs": (64, 64)}, {"nbs": (5000,)}, {"threads": (0,)}, {"threads": (1, 2000)}):
        with pytest.raises(InputError, match="give different numbers from 1 to"):
            calibrate(place, quick=True, **wrong)
    begun = {"quick": True, "network_bytes": 1 << 26, "nbs": (96, 160), "threads": (1, 2)}
    machine.break_at(4, "fail")
    with pytest.raises(EnvironmentProblem):
        calibrate(place, **begun)
    machine.break_at(0, "never")
    for name, said in (
        ("quick", "--quick [(]True"),
        ("network_bytes", "--network-bytes [(]67108864, now None[)]"),
        ("nbs", "--nb [(]96,160"),
        ("threads", "--threads-per-rank [(]1,2"),
    ):
        others = {key: value for key, value in begun.items() if key != name}
        with pytest.raises(EnvironmentProblem, match=f"begun with other {said}"):
            calibrate(place, resume=True, **others)
    machine.nodes = ["other"]
    with pytest.raises(EnvironmentProblem, match=r"begun with other nodes [(]alone, now other"):
        calibrate(place, resume=True, **begun)
    machine.nodes = ["alone"]
    archive = Archive.open(calibrate(place, resume=True, **begun))
    assert archive.metadata["most_message_bytes"] == 1 << 26
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
