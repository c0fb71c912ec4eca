"""A program's source, built for emulation in a folder of its own."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.simulate.smpi.compilers import compilers, skip_flags
from lepaute.simulate.smpi.program import is_compiled, other_mpi_of

_BUILD_LIMIT_S = 1800.0
_MOST_NAMED = 8
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
    try:
        run_command(
            ["sh", "-c", make],
            what=f"'{make}' in a copy of {source}",
            timeout_s=_BUILD_LIMIT_S,
            environment=environment,
            folder=copy,
        )
    except EnvironmentProblem as problem:
        advice = _advice(copy, make, str(problem))
        raise EnvironmentProblem(f"{str(problem).rstrip('.')}; {advice}" if advice else str(problem)) from None
    return copy


def _advice(copy: Path, make: str, complaint: str) -> str:
    """What to do where the reason of a failed build is known."""
    if "mpi_f08" in complaint:
        return "SMPI has no module mpi_f08: use mpi, or include 'mpif.h'"
    if make == "make" and not any((copy / name).exists() for name in ("Makefile", "makefile", "GNUmakefile")):
        if (copy / "CMakeLists.txt").exists():
            return "a project of CMake needs --make 'cmake -B b && cmake --build b', and its program is b/NAME"
        return "name the command that builds it: --make 'mpicc -O2 -o solver solver.c -lm'"
    return ""


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What must not be copied: make would take for up to date what was built with another MPI."""
    of_another_build = set(shutil.ignore_patterns(".git", "*.o", "*.a", "*.mod")(folder, names))
    return of_another_build | {name for name in names if other_mpi_of(Path(folder, name)) is not None}


def program_in(folder: Path, word: str) -> Path:
    """The program that `word` names in the folder where it was built."""
    path = folder / word
    if not path.is_file():
        files = (file for file in sorted(folder.rglob("*")) if os.access(file, os.X_OK) and file.is_file())
        programs = [str(file.relative_to(folder)) for file in files if is_compiled(file)]
        built = f"; what was built: {', '.join(programs[:_MOST_NAMED])}" if programs else ""
        raise EnvironmentProblem(f"{word} was not built{built}; name the program as it is called in the source folder")
    return path
