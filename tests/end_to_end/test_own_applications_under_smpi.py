"""The examples of applications of one's own against the same programs in C under SMPI, on the same platform."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support_mpi_probes import needs_smpicc

import lepaute as lp
from lepaute.simulate.apps.own.loading import loaded
from lepaute.simulate.smpi.building import compilers

pytestmark = [pytest.mark.machine, pytest.mark.slow, needs_smpicc]
EXAMPLES = Path(__file__).parents[2] / "examples" / "applications"
#: Name, fields, arguments of the program in C. SMPI takes the algorithms that the model names where ranks are 8 or 64.
CASES = [
    ("cg", {"grid": "2x2x1", "n": 64, "iterations": 3}, "2 2 1 64 3 2.7e-8 2.1e-9"),
    ("cg", {"grid": "2x2x2", "n": 16, "iterations": 5}, "2 2 2 16 5 2.7e-8 2.1e-9"),
    ("cg", {"grid": "4x4x4", "n": 24, "iterations": 5}, "4 4 4 24 5 2.7e-8 2.1e-9"),
    ("fft", {"ranks": 4, "n": 512, "repeats": 2}, "512 2 1.5e-9"),
    ("fft", {"ranks": 64, "n": 1024, "repeats": 2}, "1024 2 1.5e-9"),
    ("ring", {"ranks": 8}, "64 200000 2 1e-9"),
    ("workers", {"ranks": 4}, "100 10000 1000 1e-3"),
    ("workers", {"ranks": 40, "tasks": 300, "task_bytes": 100_000}, "300 100000 1000 1e-3"),
]


@pytest.mark.parametrize(("name", "fields", "arguments"), CASES, ids=[f"{name}-{given}" for name, _, given in CASES])
def test_an_example_takes_as_long_as_its_program_in_c(
    name: str, fields: dict[str, Any], arguments: str, tmp_path: Path
) -> None:
    program = tmp_path / name
    path = {"PATH": f"{compilers()}:{os.environ['PATH']}"}
    command = ["mpicc", "-O2", str(EXAMPLES / f"{name}.c"), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, env=os.environ | path)
    platform = lp.override(lp.load_platform("dahu"), {"network.flow_factor": "scale"})  # as SMPI uses its factors
    application = loaded(str(EXAMPLES / f"{name}.py"))(**fields)
    nothing = lp.Layers.only()
    model = lp.predict(application, platform, runs=1, layers=nothing)
    options = lp.Options(computing="none", contention=False, collectives="openmpi")
    emulated = lp.emulate(
        program, platform, ranks=application.ranks, arguments=arguments.split(), runs=1, layers=nothing, options=options
    )
    assert model.time_s.mean == pytest.approx(emulated.time_s.mean, rel=0.02)
