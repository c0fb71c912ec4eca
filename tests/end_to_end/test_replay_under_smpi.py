"""Emulated programs, replayed from their traces on the same platform."""

import os
import subprocess
from pathlib import Path

import pytest
from support_mpi_probes import needs_smpicc

import lepaute as lp
from lepaute.cli.main import main
from lepaute.simulate.smpi.building import compilers

pytestmark = [pytest.mark.machine, pytest.mark.slow, needs_smpicc]
EXAMPLES = Path(__file__).parents[2] / "examples"
#: Source, ranks, arguments. SMPI takes the algorithms that a replay does where collective operations are of few bytes.
CASES = [
    ("applications/cg.c", 8, "2 2 2 16 5 2.7e-8 2.1e-9"),
    ("applications/fft.c", 64, "1024 2 1.5e-9"),
    ("emulation/cg/cg.c", 8, "128 40"),
]


#: Operations that do not block, on two ranks, where SMPI's direct messages are those of all libraries; some are waited
#: for when one rank has computed for a while, and the other one for twice as long.
NONBLOCKING = Path(__file__).parents[1].joinpath("data", "programs", "replay_under_smpi_nonblocking.c").read_text()


@pytest.mark.parametrize(("source", "ranks", "arguments"), CASES, ids=[case[0] for case in CASES])
def test_a_replayed_emulation_takes_as_long(source, ranks, arguments, tmp_path, capfd):
    emulated_s, replayed_s = both(EXAMPLES / source, ranks, arguments, tmp_path, capfd)
    assert replayed_s == pytest.approx(emulated_s, rel=0.02)


@pytest.mark.parametrize("arguments", ["8 100", "100000 500"])
def test_operations_that_do_not_block_take_as_long(arguments, tmp_path, capfd):
    source = tmp_path / "nonblocking.c"
    source.write_text(NONBLOCKING)
    emulated_s, replayed_s = both(source, 2, arguments, tmp_path, capfd)
    assert replayed_s == pytest.approx(emulated_s, rel=0.02)


def both(
    source: Path, ranks: int, arguments: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> tuple[float, float]:
    """Seconds under SMPI, and of the replay of its trace."""
    program, trace = folder / "program", folder / "run.parquet"
    path = {"PATH": f"{compilers()}:{os.environ['PATH']}"}
    subprocess.run(["mpicc", "-O2", str(source), "-o", str(program), "-lm"], check=True, env=os.environ | path)
    setting = {"network.flow_factor": "scale", "network.progress": "background"}  # as SMPI does
    emulate = [
        "emulate", "-p", "dahu", *(word for key, value in setting.items() for word in ("--set", f"{key}={value}")),
    ]  # fmt: skip
    timed = ["--computing", "none"] if source.parent.name == "applications" else []  # these sleep; load is not timed
    emulate += ["-np", str(ranks), "--without", "all", "--no-contention", "--collectives", "openmpi", *timed]
    assert main([*emulate, "--trace", str(trace), "--", str(program), *arguments.split()]) == 0, capfd.readouterr().err
    emulated_s = float(lp.read_trace(trace).end_s.max())
    platform = lp.override(lp.load_platform("dahu"), setting)
    replayed = lp.predict(lp.TraceReplay(trace), platform, runs=1, layers=lp.Layers.only())
    return emulated_s, replayed.time_s.mean
