"""A program's source, built for emulation in a folder of its own."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.simulate.smpi.compilers import compilers, skip_flags
from lepaute.simulate.smpi.program import other_mpi_of

_BUILD_LIMIT_S = 1800.0
_COMPILERS = {
    "CC": "mpicc",
    "CXX": "mpicxx",
    "FC": "mpif90",
    "F77": "mpif90",
    "F90": "mpif90",
    "MPICC": "mpicc",
    "MPICXX": "mpicxx",
    "MPIF90": "mpif90",
    "MPIFC": "mpif90",
}


def build_program(source: Path, make: str, skip: Sequence[str], folder: Path) -> Path:
    """A copy of `source` in `folder`, built by the shell command `make`; mpicc and its like are those of emulation.

    skip : functions that return at once
    Raises InputError where there is no such folder, EnvironmentProblem where it does not build.
    """
    if not source.is_dir():
        raise InputError(f"--source {source}: not a folder")
    wrappers = compilers()
    copy = folder / source.resolve().name
    shutil.copytree(source, copy, symlinks=True, ignore=_left_out)
    environment = _COMPILERS | {
        "PATH": f"{wrappers}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "LEPAUTE_LINK_FLAGS": " ".join(skip_flags(skip, wrappers)),
    }
    run_command(
        ["sh", "-c", make],
        what=f"'{make}' in a copy of {source}",
        timeout_s=_BUILD_LIMIT_S,
        environment=environment,
        folder=copy,
    )
    return copy


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What must not be copied: make would take for up to date what was built with another MPI."""
    of_another_build = set(shutil.ignore_patterns(".git", "*.o", "*.a", "*.mod")(folder, names))
    return of_another_build | {name for name in names if other_mpi_of(Path(folder, name)) is not None}


def program_in(folder: Path, word: str) -> Path:
    """The program that `word` names in the folder where it was built."""
    path = folder / word
    if not path.is_file():
        programs = sorted(file.name for file in folder.iterdir() if os.access(file, os.X_OK) and file.is_file())
        built = f"; there are {', '.join(programs)}" if programs else ""
        raise EnvironmentProblem(f"{word} was not built{built}; name the program as it is called in the source folder")
    return path
