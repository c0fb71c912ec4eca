"""Experiments on conditions and on memory, from `lepaute run` to what `lepaute fit` says of them, on this machine."""

import shutil
from pathlib import Path

import pytest
from support_run import run_here, run_lepaute

from lepaute.measure.archive import Archive
from lepaute.measure.fit.experiments import findings

pytestmark = pytest.mark.machine

ROOT = Path(__file__).parent.parent.parent
CONDITIONS = ROOT / "examples" / "experiments" / "dgemm_conditions.py"


def run(folder: Path, script: str, archive: str, *settings: str) -> Archive:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    words = [word for setting in settings for word in ("--set", setting)]
    done = run_lepaute("run", script, "-q", "--monitor", "0", *words, "-o", archive, folder=folder)
    assert done.returncode == 0, done.stderr
    return Archive.open(folder / archive)


@pytest.mark.slow
@pytest.mark.long
def test_conditions_of_dgemm_are_factors_that_are_all_tested(tmp_path: Path) -> None:
    archive = run(
        tmp_path, str(CONDITIONS), "c.zip", "blocks=2", "size=200,200,64", "calls=1", "contents=random,masked:40"
    )
    table = archive.table("observations/observations.parquet")
    processes = table.groupby("process")
    assert len(processes) == 2 * 2 * 2 * 2
    assert set(processes.size()) == {2 * 2}
    assert all(processes[name].nunique().eq(1).all() for name in ("pinning", "scheduling", "warmup_calls", "block"))
    assert set(table["scheduling"]) == {"other", "batch"}
    assert (table["duration_s"] > 0).all()
    (found,) = findings(archive)
    by_name = {test.factor: test for test in found.factor_tests}
    assert {"pinning", "scheduling", "warmup_calls", "content", "warm"} <= set(by_name)
    assert {by_name[name].exchanged for name in ("pinning", "scheduling", "warmup_calls")} == {"processes"}
    assert {by_name[name].exchanged for name in ("content", "warm")} == {"calls"}
    assert by_name["pinning"].n == 16


def test_the_memory_hierarchy_is_measured_fitted_printed_and_drawn(tmp_path, output_of):
    settings = ("max_bytes=4000000", "per_octave=2", "allocations=1", "blocks=2", "strides=1,8", "batch_bytes=200000")
    archive = run(tmp_path, "memory", "m.zip", *settings, "unrolls=8")
    table = archive.table("observations/observations.parquet")
    treatments = table.groupby(["size_bytes", "stride", "element_bytes", "allocation"]).size()
    assert set(treatments) == {2}
    assert len(treatments) == table["size_bytes"].nunique() * 2 * 2 * 2
    # Each block in an order of its own, none of them that of the sizes.
    orders = [tuple(rows["size_bytes"]) for _, rows in table.groupby("block")]
    assert orders[0] != orders[1]
    assert all(list(order) != sorted(order) for order in orders)
    (found,) = findings(archive)
    (hierarchy,) = found.hierarchies
    assert found.factor_tests == ()
    assert len(hierarchy.curves) == 4
    assert all(bandwidth.median > 0 for plateau in hierarchy.plateaus for bandwidth in plateau.bandwidths)
    told = output_of("fit", archive.path, "--plot", tmp_path / "picture")
    assert "(one core of " in told
    assert ("GB/s" in told) == (hierarchy.plateaus != ())  # other load may hide all caches
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "picture.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("experiment", "setting", "complaint"),
    [
        ("memory", "max_bytes=much", "max_bytes is 'much'; "),
        ("memory", "max_bytes=100", "sizes from 1024 to 100 bytes"),
        ("memory", "strides=1,x", "strides is '1,x'; "),
        ("memory", "allocations=1,2", "allocations is '1,2'; "),
        ("memory", "max_byte=100000", "there is no parameter max_byte; known: max_bytes, min_bytes"),
        ("node-test", "speed=9", "there is no parameter speed"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_in_one_line(tmp_path, experiment, setting, complaint):
    done = run_here("run", experiment, "--set", setting, "-q", "-o", "m.zip", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert complaint in done.stderr
    assert not list(tmp_path.iterdir())
