"""The programs of this machine that measurements are built and run with."""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import EnvironmentProblem

INSTALL = "apt-get install openmpi-bin libopenmpi-dev libopenblas-dev gcc"

_PACKAGES = {"mpicc": "libopenmpi-dev", "mpirun": "openmpi-bin", "ar": "binutils"}
_BLAS_TRIAL = """
#include <cblas.h>
int main(void) { double x = 1.0; cblas_dscal(1, 2.0, &x, 1); return x == 2.0 ? 0 : 1; }
"""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """What is needed to build and run the probes and HPL.

    mpi, compiler : first line of what each says of its version
    blas_flags    : linker options that bring cblas_*
    """

    mpicc: Path
    mpirun: Path
    ar: Path
    mpi: str
    compiler: str
    blas_flags: tuple[str, ...] = ("-lopenblas",)


@functools.cache
def find_toolchain() -> Toolchain:
    """The tools of this machine; raises EnvironmentProblem that names the Debian package of the first one missing."""
    paths = {name: find_program(name, package) for name, package in _PACKAGES.items()}
    compiler = _first_line([paths["mpicc"], "--version"])
    if compiler is None:
        raise EnvironmentProblem(f"mpicc finds no C compiler (Debian package gcc); install it: {INSTALL}")
    mpi = _first_line([paths["mpirun"], "--version"])
    if mpi is None:
        raise EnvironmentProblem(f"{paths['mpirun']} does not run (Debian package openmpi-bin); install it: {INSTALL}")
    found = Toolchain(paths["mpicc"], paths["mpirun"], paths["ar"], mpi, compiler)
    _check_blas(found)
    return found


def find_program(name: str, package: str) -> Path:
    """The path of a program; raises EnvironmentProblem naming its Debian package where there is none."""
    path = shutil.which(name)
    if path is None:
        raise EnvironmentProblem(f"{name} is missing (Debian package {package}); install it: {INSTALL}")
    return Path(path)


def mpirun_argv(
    ranks: int, cpus: Sequence[int] | None = None, *, coretype: str | None = None
) -> tuple[list[str], dict[str, str]]:
    """Start of the command line that runs a program on `ranks` ranks, and the variables to add to the environment.

    cpus    : core of each rank, by default 0, 1, ...; mpirun binds the ranks to them where it can
    coretype: OPENBLAS_CORETYPE, None to leave it as it is

    Raises EnvironmentProblem when this process may not use that many cores.
    """
    allowed = os.sched_getaffinity(0)
    cores = list(range(ranks)) if cpus is None else list(cpus)
    if ranks > len(allowed):
        raise EnvironmentProblem(f"{ranks} ranks need {ranks} cores of their own; this process may use {len(allowed)}")
    if len(cores) < ranks or len(set(cores)) < len(cores) or not set(cores) <= allowed:
        usable = ",".join(map(str, sorted(allowed)))
        raise EnvironmentProblem(
            f"cores {','.join(map(str, cores))} do not give {ranks} ranks a core each; choose among {usable}"
        )
    argv = [str(find_program("mpirun", "openmpi-bin"))]
    # mpirun may see fewer places than there are cores (hardware threads, containers); never more ranks than cores.
    argv.append("--oversubscribe")
    argv += _binding(cores[:ranks]) if binding_works() else ["--bind-to", "none"]
    argv += ["-np", str(ranks)]
    environment = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if coretype is not None:
        environment["OPENBLAS_CORETYPE"] = coretype
    return argv, environment


@functools.cache
def binding_works() -> bool:
    """Whether mpirun may bind processes here; some containers forbid it."""
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    argv = [str(find_program("mpirun", "openmpi-bin")), "--bind-to", "core", "-np", "1", "true"]
    try:
        result = subprocess.run(argv, env={**os.environ, **environment}, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0


def _binding(cores: list[int]) -> list[str]:
    if cores == list(range(len(cores))):
        return ["--bind-to", "core", "--map-by", "core"]
    return ["--bind-to", "cpu-list:ordered", "--cpu-list", ",".join(map(str, cores))]


def _check_blas(tools: Toolchain) -> None:
    with tempfile.TemporaryDirectory(prefix="lepaute-blas-") as folder:
        source, program = Path(folder, "trial.c"), Path(folder, "trial")
        source.write_text(_BLAS_TRIAL)
        argv = [str(tools.mpicc), str(source), *tools.blas_flags, "-o", str(program)]
        result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode == 0:
        return
    what = "the header cblas.h" if "cblas.h" in result.stderr else "the library libopenblas"
    if "stdio.h" in result.stderr or "crt1.o" in result.stderr:
        raise EnvironmentProblem(
            "the C library's headers are missing (Debian package libc6-dev); install it: apt-get install libc6-dev"
        )
    raise EnvironmentProblem(f"{what} is missing (Debian package libopenblas-dev); install it: {INSTALL}")


def _first_line(argv: Sequence[str | Path]) -> str | None:
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = result.stdout.strip().splitlines()
    return lines[0].strip() if result.returncode == 0 and lines else None
