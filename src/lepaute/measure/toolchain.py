"""The programs of this machine that measurements are built and run with, and where the sources of the probes are."""

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.command import run_command
from lepaute.kit.mpi_launcher import Start, binding_works, find_launcher
from lepaute.kit.mpi_library import MpiLibrary, find_library
from lepaute.kit.temporary import temporary_folder
from lepaute.measure.kernel_set import blas_environment

#: Flags of our own C files. No -march=native: a probe calls libraries, its own loops are not what is measured.
C_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra")
INSTALL = "apt-get install openmpi-bin libopenmpi-dev libopenblas-dev gcc"
_BLAS_TRIAL = """
#include <cblas.h>
int main(void) { double x = 1.0; cblas_dscal(1, 2.0, &x, 1); return x == 2.0 ? 0 : 1; }
"""


def probe_source() -> Path:
    """The folder of the C sources: that of a source checkout, else the copy inside the installed package.

    Raises EnvironmentProblem if neither is there.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package.parents[1] / "probes", package / "_probes"):
        if (folder / "probe_common.h").is_file():
            return folder
    raise EnvironmentProblem("the sources of the probes are missing from this installation; install lepaute again")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Tools to build the probes and HPL.

    compiler  : first line of what mpicc's compiler says of its version
    blas_flags: linker options that bring cblas_*
    """

    mpi: MpiLibrary
    ar: Path
    compiler: str
    blas_flags: tuple[str, ...] = ("-lopenblas",)

    @property
    def identity(self) -> tuple[str, ...]:
        """Differs where programs must be compiled again."""
        return (self.compiler, self.mpi.identity, *self.blas_flags)


def find_toolchain(mpi: MpiLibrary | None = None) -> Toolchain:
    """The tools of this machine, for an MPI library or else the default one.

    Raises EnvironmentProblem that names the Debian package of the first one missing.
    """
    return _toolchain(mpi or find_library())


@functools.cache
def _toolchain(mpi: MpiLibrary) -> Toolchain:
    compiler = run_command(
        [mpi.mpicc, "--version"], what=f"{mpi.mpicc}", timeout_s=30.0, environment=dict(mpi.environment)
    )
    tools = Toolchain(mpi, find_program("ar", "binutils"), compiler.stdout.strip().partition("\n")[0])
    _check_blas(tools)
    return tools


def find_program(name: str, package: str) -> Path:
    """The path of a program; raises EnvironmentProblem naming its Debian package where there is none."""
    path = shutil.which(name)
    if path is None:
        raise EnvironmentProblem(f"{name} is missing (Debian package {package}); install it: {INSTALL}")
    return Path(path)


def start_here(ranks: int, cpus: Sequence[int] | None = None, *, coretype: str | None = None) -> Start:
    """Start of a program on `ranks` ranks of this machine, one thread each, with the mpirun on PATH.

    cpus    : core of each rank, by default 0, 1, ...; the ranks are bound to them where that is allowed
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
    launcher = find_launcher()
    start = launcher.start(ranks, cores=cores[:ranks] if binding_works(launcher) else None)
    return Start(start.argv, {**start.environment, **blas_environment(1, coretype)})


def _check_blas(tools: Toolchain) -> None:
    with temporary_folder("lepaute-blas-") as folder:
        source, program = folder / "trial.c", folder / "trial"
        source.write_text(_BLAS_TRIAL)
        argv = [str(tools.mpi.mpicc), str(source), *tools.blas_flags, "-o", str(program)]
        environment = {**os.environ, **dict(tools.mpi.environment)}
        result = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode == 0:
        return
    if "No space left" in result.stderr or "quota exceeded" in result.stderr:
        raise EnvironmentProblem("the compiler finds no room on the disk for temporary files; make some, or set TMPDIR")
    missing = "the header cblas.h" if "cblas.h" in result.stderr else "the library libopenblas"
    if "stdio.h" in result.stderr or "crt1.o" in result.stderr:
        raise EnvironmentProblem(
            "the C library's headers are missing (Debian package libc6-dev); install it: apt-get install libc6-dev"
        )
    raise EnvironmentProblem(f"{missing} is missing (Debian package libopenblas-dev); install it: {INSTALL}")
