"""Emulated programs, replayed from their traces on the same platform."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import lepaute as lp
from lepaute.cli.main import main
from lepaute.simulate.smpi.building import compilers

pytestmark = [
    pytest.mark.machine,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("smpicc") is None, reason="SimGrid's smpicc is not installed (Debian: libsimgrid-dev)"
    ),
]
EXAMPLES = Path(__file__).parents[2] / "examples"
#: Source, ranks, arguments. SMPI takes the algorithms that a replay does where collective operations are of few bytes.
CASES = [
    ("applications/cg.c", 8, "2 2 2 16 5 2.7e-8 2.1e-9"),
    ("applications/fft.c", 64, "1024 2 1.5e-9"),
    ("emulation/cg/cg.c", 8, "128 40"),
]


@pytest.mark.parametrize(("source", "ranks", "arguments"), CASES, ids=[case[0] for case in CASES])
def test_a_replayed_emulation_takes_as_long(
    source: str, ranks: int, arguments: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program, trace = tmp_path / "program", tmp_path / "run.parquet"
    path = {"PATH": f"{compilers()}:{os.environ['PATH']}"}
    command = ["mpicc", "-O2", str(EXAMPLES / source), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, env=os.environ | path)
    setting = "network.flow_factor=scale"  # as SMPI uses its factors
    emulate = ["emulate", "-p", "dahu", "--set", setting, "-np", str(ranks), "--without", "all", "--no-contention"]
    emulate += ["--collectives", "openmpi", "--trace", str(trace), "--", str(program), *arguments.split()]
    assert main(emulate) == 0, capfd.readouterr().err
    emulated_s = float(lp.read_trace(trace).end_s.max())
    platform = lp.override(lp.load_platform("dahu"), {"network.flow_factor": "scale"})
    replayed = lp.predict(lp.TraceReplay(trace), platform, runs=1, layers=lp.Layers.only())
    assert replayed.time_s.mean == pytest.approx(emulated_s, rel=0.02)
