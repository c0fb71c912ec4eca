"""HPL's own code under SMPI: the time, messages and kernels of the native engine on the same platform."""

import json
import shutil
from pathlib import Path

import pytest
from oracles.recorded_hpl import lepaute

from lepaute import Hpl
from lepaute.measure.hpl_source import SHA256, unpack_source
from lepaute.simulate import Layers, predict
from lepaute.simulate.apps.hpl.emulation import build_hpl_smpi
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.smpi.emulate import Smpi
from lepaute.simulate.trace import read_trace

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid (libsimgrid-dev) is not installed"),
]

QUIET = Layers.only()
# Grids of one node of Dahu and of two (8x8, 5x8), blocks that do not divide the order, every algorithm at least once.
# Without look-ahead all is determined; with it a panel may be seen one block of columns sooner or later.
CASES = [
    Hpl(n=700, nb=64, p=2, q=3, depth=0),
    Hpl(n=1000, nb=96, p=3, q=2, depth=0, bcast="1ring-modified", swap="spread-roll", pfact="left", rfact="crout"),
    Hpl(n=900, nb=64, p=4, q=4, depth=0, bcast="long", swap="mix", pmap="column", pfact="right", rfact="left"),
    Hpl(n=800, nb=64, p=2, q=4, depth=0, bcast="long-modified", l1="no-transposed", u="no-transposed"),
    Hpl(n=800, nb=64, p=3, q=3, depth=0, bcast="2ring-modified", nbmin=4, ndiv=3, u="no-transposed", equil=False),
    Hpl(n=1000, nb=64, p=8, q=8, depth=0, bcast="1ring"),
    Hpl(n=900, nb=64, p=4, q=4, depth=0, copy_l=True),
    Hpl(n=1500, nb=64, p=4, q=4, depth=1),
    Hpl(n=1500, nb=64, p=5, q=8, depth=1, swap="spread-roll"),
    Hpl(n=900, nb=64, p=4, q=4, depth=0, pivots="first-row"),
    Hpl(n=500, nb=64, p=1, q=1),
]
# What SMPI does: shares times factors, and one state of the network for all messages.
AS_SMPI = {"network.flow_factor": "scale", "network.loopback.busy": "null", "network.remote.busy": "null"}
PLATFORM = override(load_platform("dahu-2020-01"), AS_SMPI)


@pytest.mark.parametrize("hpl", CASES, ids=str)
def test_the_native_engine_and_the_real_code_agree(hpl: Hpl) -> None:
    program = build_hpl_smpi(unpack_source, SHA256, copy_l=hpl.copy_l)
    emulated = predict(hpl, PLATFORM, runs=1, layers=QUIET, engine=Smpi(program))
    native = predict(hpl, PLATFORM, runs=1, layers=QUIET)
    assert emulated.simulation.messages == native.simulation.messages
    # In so short a run small messages count: SMPI shows one to a probe when it is sent, not when it has come, and
    # charges no receive overhead for the synchronous sends of the long broadcasts.
    tolerance = 0.05 if hpl.bcast.startswith("long") else 5e-3 if hpl.depth == 0 else 0.02
    assert native.run_list[0].time_s == pytest.approx(emulated.run_list[0].time_s, rel=tolerance)
    for kernel, native_s in native.kernel_time_s.items():
        if hpl.depth == 0 or not kernel.startswith("d"):
            assert emulated.kernel_time_s.get(kernel, 0.0) == pytest.approx(native_s, rel=1e-9), kernel


def test_a_seed_draws_the_day_that_the_native_engine_draws() -> None:
    hpl = Hpl(n=2000, nb=128, p=1, q=1)  # nothing but computing: what differs is the noise of single calls
    program = build_hpl_smpi(unpack_source, SHA256)
    days = Layers(noise=False)
    emulated = predict(hpl, PLATFORM, runs=3, seed=5, layers=days, engine=Smpi(program))
    native = predict(hpl, PLATFORM, runs=3, seed=5, layers=days)
    for one, other in zip(emulated.run_list, native.run_list, strict=True):
        assert one.time_s == pytest.approx(other.time_s, rel=1e-6)
    assert len({run.time_s for run in emulated.run_list}) == 3


def test_the_command_prints_what_predict_prints(tmp_path: Path) -> None:
    options = ("hpl", "-p", "dahu", "--n", "1000", "--grid", "2x2", "--depth", "0", "--json", "--runs", "2")
    options += ("--set", "network.flow_factor=scale")
    trace = tmp_path / "trace.parquet"
    emulated = lepaute("emulate", *options, "--trace", trace, folder=tmp_path)
    predicted = lepaute("predict", *options, "--no-parts", folder=tmp_path)  # which emulations do not have
    assert (emulated.returncode, predicted.returncode) == (0, 0), emulated.stderr + predicted.stderr
    found, expected = json.loads(emulated.stdout), json.loads(predicted.stdout)
    assert set(found) == set(expected)
    assert (found["fidelity"], expected["fidelity"]) == ("smpi", "full")
    for key in ("application", "platform_sha256", "parameters", "seed", "version"):
        assert found[key] == expected[key], key
    assert found["time_s"]["mean"] == pytest.approx(expected["time_s"]["mean"], rel=0.02)
    rows = read_trace(trace)
    for name in ("dgemm", "MPI_Send"):
        assert rows.named([name]).any(), name
