"""HPL's own code under SMPI on nodes that differ: the time and messages of the native engine on the same platform."""

import shutil

import pytest

from lepaute import Hpl
from lepaute.measure.hpl_source import SHA256, unpack_source
from lepaute.simulate import Layers, predict
from lepaute.simulate.apps.hpl.emulation import build_hpl_smpi
from lepaute.simulate.platform import override
from lepaute.simulate.smpi.emulate import Smpi

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid (libsimgrid-dev) is not installed"),
]

AS_SMPI = {"network.flow_factor": "scale", "network.loopback.busy": "null", "network.remote.busy": "null"}
FAST = "{name: newer, nodes: 2, speed: 1.5}"
#: What the older nodes are, and a grid whose process columns cross nodes.
CASES = {
    "cores": ("cores: 2", (3, 4)),
    "link": ("link: {bandwidth_Bps: 6.25e+9}", (4, 4)),
    "latency": ("link: {latency_s: 5.0e-6}", (4, 4)),
}


@pytest.mark.parametrize("older", CASES)
def test_the_native_engine_and_the_real_code_agree_on_two_generations_of_nodes(older: str) -> None:
    """Without look-ahead, so that all is determined: 0.5 %, as on like nodes."""
    said, (p, q) = CASES[older]
    small = override("dahu-2020-01", AS_SMPI | {"nodes.count": "4", "nodes.cores": "4"})
    platform = override(small, {"groups": f"[{{name: older, nodes: 2, {said}}}, {FAST}]"})
    hpl = Hpl(n=1000, nb=64, p=p, q=q, depth=0)
    program = build_hpl_smpi(unpack_source, SHA256)
    emulated, native = (
        predict(hpl, platform, runs=1, layers=Layers.only(), **how) for how in ({"engine": Smpi(program)}, {})
    )
    assert emulated.simulation.messages == native.simulation.messages
    assert native.run_list[0].time_s == pytest.approx(emulated.run_list[0].time_s, rel=5e-3)
    slower = predict(hpl, override(platform, {"groups.newer.speed": 1.0}), runs=1, layers=Layers.only())
    assert native.run_list[0].time_s < slower.run_list[0].time_s
