"""Time-independent traces that smpirun wrote, replayed by SMPI and by Lepaute on one platform."""

import re
import subprocess
from pathlib import Path

import pytest
from support_limits import ran
from support_mpi_probes import needs_smpicc

import lepaute as lp
from lepaute.simulate.machine.mapping import Mapping, Slot
from lepaute.simulate.platform.simgrid.exporting import export_xml
from lepaute.simulate.platform.simgrid.zones import node_speeds_flops

pytestmark = [pytest.mark.machine, needs_smpicc]
RANKS = 8
#: Neighbours at changing distances, both protocols, waits in both forms, computing that differs between ranks.
PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "replay_of_time_independent_program.c").read_text()


def test_a_trace_of_smpirun_takes_as_long_as_its_replay_by_smpi(tmp_path: Path) -> None:
    """Within 2 %, fixed before; one rank a node, as SMPI's file has one factor for messages within nodes."""
    (tmp_path / "program.c").write_text(PROGRAM)
    platform = lp.override(lp.load_platform("dahu"), {"network.flow_factor": "scale", "network.progress": "background"})
    xml = export_xml(platform).text
    (tmp_path / "dahu.xml").write_text(xml)
    (tmp_path / "hosts").write_text("\n".join(re.findall('<host id="([^"]*)', xml)[:RANKS]) + "\n")
    subprocess.run(["smpicc", "-O2", "program.c", "-o", "program"], cwd=tmp_path, check=True)
    smpirun = ["smpirun", "-np", str(RANKS), "-platform", "dahu.xml", "-hostfile", "hosts"]

    def run(*more: str) -> str:
        done = ran([*smpirun, *more], cwd=tmp_path, check=True)
        return done.stdout + done.stderr

    run("-trace-ti", "-trace-file", "run.txt", "--cfg=smpi/simulate-computation:no", "./program")
    told = run("-replay", "run.txt", "--cfg=smpi/coll-selector:ompi", "--cfg=smpi/simulate-computation:yes")
    found = re.search(r"Simulation time (\S+)", told)
    assert found is not None, told
    speeds = node_speeds_flops(platform)
    replay = lp.TraceReplay(tmp_path / "run.txt", own_code=1e9 / (sum(speeds) / len(speeds)), collectives="openmpi")
    mapping = Mapping(slots=tuple(Slot(node, 0) for node in range(RANKS)))
    ours = lp.predict(replay, platform, runs=1, layers=lp.Layers.only(), mapping=mapping)
    assert ours.time_s.mean == pytest.approx(float(found[1]), rel=0.02)
