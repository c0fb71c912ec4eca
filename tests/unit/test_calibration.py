"""A calibration without a machine: what its archive holds, and what is refused before anything runs.

The engine is the real one, and its nodes are agents on this machine; the probes are scripts that write raw files as
the real ones do. Those run in the end-to-end tests.
"""

import collections

import pytest
from support_calibration import RUNS, SEMANTIC_ROUNDS, names_in

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.json_values import from_json
from lepaute.measure.archive import Archive
from lepaute.measure.calibration import machines
from lepaute.measure.calibration.campaign import calibrate
from lepaute.measure.calibration.entries import RawFile
from lepaute.measure.kernel_set import KernelSet
from lepaute.measure.observation_columns import TABLES, columns_of_run

pytest_plugins = ["support_calibration_fixtures"]


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
