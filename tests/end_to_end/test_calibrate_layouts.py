"""Calibrations of layouts that this machine does not have: the path for larger nodes, on two cores.

Processes share cores, so that no duration means anything; what is tested is that every core is measured under every
load and is in the platform.
"""

import json
import os
import subprocess
import sys

import pytest
from long_tests import long_but
from support_limits import CALIBRATION_HANG_S, ran

from lepaute.measure.archive import Archive
from lepaute.measure.calibration.campaign import calibrate
from lepaute.measure.layout import MADE_UP
from lepaute.simulate.platform import load_platform

pytestmark = [
    pytest.mark.machine,
    pytest.mark.slow,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="calibration needs two cores"),
]
#: Ranks that share a core wait for its other ranks at each pivot: small blocks have few of them.
SMALL_NBS = (32, 64)
#: Large messages between them take their turns on the cores, too.
SMALL_MESSAGE_BYTES = 1 << 20


def run(*arguments: str, layout: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({MADE_UP: layout} if layout else {})}
    return ran([sys.executable, "-m", "lepaute.cli.main", *arguments], timeout=CALIBRATION_HANG_S, env=environment)


def holds_every_core(measured: Archive, layout: str, active: set[int]) -> None:
    """Asserts that kernels were measured on all cores of the layout, and with so many of them computing at once."""
    sockets, each = map(int, layout.split("x"))
    kernels = measured.table("observations/kernels.parquet")
    for probe in ("dgemm", "hpl_steps_1x1"):
        mine = kernels[kernels["probe"] == probe]
        assert set(mine["active_cores"]) == active
        full = mine[mine["active_cores"] == sockets * each]
        assert set(full["active_socket_cores"]) == {each}
        assert set(full["cpu"]) == set(range(sockets * each))
        assert set(full["pu"]) <= os.sched_getaffinity(0)
    (machine,) = measured.about.machines.values()
    assert machine.layout.source == f"{MADE_UP}={layout}"


@pytest.mark.long
def test_every_core_of_one_socket_is_measured_under_half_and_full_load(tmp_path, monkeypatch):
    """Without a fit, which a layout of two sockets gets below."""
    monkeypatch.setenv(MADE_UP, "1x4")
    archive = calibrate(tmp_path / "calibration.zip", quick=True, nbs=SMALL_NBS[:1], network_bytes=SMALL_MESSAGE_BYTES)
    holds_every_core(Archive.open(archive), "1x4", {1, 2, 4})


# 32 ranks that poll on two cores take all of both for a minute and a half.
@pytest.mark.parametrize(
    ("layout", "active", "grid"), long_but([("2x2", {1, 2, 4}, "1x4"), ("2x16", {1, 2, 16, 32}, "4x8")])
)
def test_every_core_of_two_sockets_is_measured_fitted_and_predicted(tmp_path, layout, active, grid):
    sockets, each = map(int, layout.split("x"))
    platform, archive = tmp_path / "platform.yaml", tmp_path / "calibration.zip"
    sizes = ("--nb", ",".join(map(str, SMALL_NBS)), "--network-bytes", str(SMALL_MESSAGE_BYTES))
    done = run("calibrate", "--quick", *sizes, "-o", str(platform), "--archive", str(archive), layout=layout)
    assert done.returncode == 0, done.stderr
    measured = Archive.open(archive)
    assert measured.metadata["nbs"] == list(SMALL_NBS)
    holds_every_core(measured, layout, active)
    fitted = load_platform(str(platform))
    assert fitted.nodes.cores == sockets * each
    assert f"Its layout was made up ({MADE_UP}={layout})" in fitted.description
    predicted = run("predict", "hpl", "-p", str(platform), "--n", "2000", "--grid", grid, "--json")
    assert predicted.returncode == 0, predicted.stderr
    assert json.loads(predicted.stdout)["time_s"]["mean"] > 0
