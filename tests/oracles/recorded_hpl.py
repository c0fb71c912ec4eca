"""Recordings of programs, and of a real HPL, made here by `lepaute record`."""

import json
import subprocess
from pathlib import Path

import pytest
from support_run import run_here

from lepaute.errors import EnvironmentProblem
from lepaute.kit.mpi_library import MpiLibrary, find_library
from lepaute.measure.record import build_recorded_hpl
from lepaute.measure.verify.real_run import hpl_input_text
from lepaute.simulate import Hpl
from lepaute.simulate.trace import Trace, read_trace

MPIRUN = ("mpirun", "--oversubscribe", "-np")


def lepaute(*arguments: str | Path, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    consent = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1"}
    return run_here(*arguments, folder=folder, **consent, **environment)


def library_named(name: str = "mpicc") -> MpiLibrary:
    try:
        return find_library(name)
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))


def recorded(
    library: MpiLibrary, folder: Path, *words: str, ranks: int = 2
) -> "tuple[Trace, subprocess.CompletedProcess[str]]":
    """The trace of ./program of the folder, trace.parquet."""
    oversubscribe = ("--oversubscribe",) if library.family == "openmpi" else ()
    argv = (str(library.launcher.path), *oversubscribe, "-np", str(ranks), "./program", *words)
    done = lepaute("record", "--force", "--", *argv, folder=folder)
    return read_trace(folder / "trace.parquet"), done


def recorded_hpl(hpl: Hpl, folder: Path) -> tuple[Trace, float]:
    """The trace of a real HPL, and the time that HPL itself took."""
    try:
        build_recorded_hpl(find_library())
    except EnvironmentProblem as problem:
        pytest.skip(f"the real HPL cannot be built here: {problem}")
    (folder / "HPL.dat").write_text(hpl_input_text(hpl, to_stdout=False))
    done = lepaute("record", "--force", "-o", "t.parquet", "--", *MPIRUN, str(hpl.ranks), "xhpl-lepaute", folder=folder)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
    return read_trace(folder / "t.parquet"), float(json.loads(line)["time_s"])
