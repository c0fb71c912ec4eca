"""A compiled program, looked at before it runs: was it built for emulation, and does it call simblas?

SMPI loads a program with RTLD_DEEPBIND: a function is looked for in the program first, then in the libraries that it
needs, in their order, and only then among what is preloaded. So a program that does not need simblas never calls it,
and a BLAS of the program's own, or a routine that simblas does not have, really runs.
"""

import functools
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from lepaute.errors import InputError
from lepaute.kit.mpi_library import LIBRARY_FILE
from lepaute.simulate.smpi.library import LIBRARY

_BUILD = "build it with the compilers of 'lepaute emulate compilers' (mpicc, mpicxx, mpif90)"
_BLAS_LIBRARY = re.compile(r"lib(?:\w*blas\w*|\w*lapack\w*|mkl_\w+|atlas|blis|flame)\.so")
#: What simblas defines for itself and for SMPI, beside routines.
_NOT_ROUTINES = re.compile(r"MPI_|_?smpi_|lepaute_|_|clock_gettime|pthread_create|openblas_|xerbla|cblas_xerbla|ls?ame")
#: Collective operations by their names in C and in Fortran, in small letters: blocking ones whose algorithms are much
#: simpler in SMPI by default, and non-blocking ones, which have none.
_NAIVE = re.compile(r"p?mpi_(reduce|allreduce|reduce_scatter|reduce_scatter_block|allgatherv?)_*")
_IMMEDIATE = re.compile(
    r"p?mpi_(i(?:bcast|allreduce|reduce|reduce_scatter|reduce_scatter_block|allgatherv?|gatherv?|scatterv?|"
    r"alltoall[vw]?|barrier|scan|exscan))_*"
)
_SHOWN = 6
_LIMIT_S = 60.0


def check_program(program: Path, library: Path, ranks: int = 1, collectives: str | None = None) -> tuple[str, ...]:
    """Sentences about what will not be emulated as it should.

    library     : libsimblas.so
    collectives : the MPI library whose algorithms they follow; None: SMPI's own
    Raises InputError where `program` is none that SMPI and simblas can run.
    """
    if not is_compiled(program):
        raise InputError(
            f"{program} is no compiled program; name the program itself, and {_BUILD}; scripts, as with mpi4py, "
            "cannot be emulated"
        )
    loaded = _loaded(program)
    for name, path in loaded.items():
        if LIBRARY_FILE.match(name):
            raise InputError(
                f"{program} needs {name}, another MPI than SimGrid's; {_BUILD}, all of it (make clean, make -B); "
                "a makefile that names another compiler or -lmpi needs --make 'make CC=mpicc'"
            )
        if path is None and name != LIBRARY:
            raise InputError(f"{program} needs {name}, which is not found; name its folder in LD_LIBRARY_PATH")
    if LIBRARY not in loaded:
        by_smpi = any(name.startswith("libsimgrid") for name in loaded)
        what = "by SMPI's own compilers" if by_smpi else "for this machine"
        raise InputError(f"{program} was built {what}, without simblas; {_BUILD}")
    return (
        *_own_routines(program, library),
        *_real_routines(program, library, loaded),
        *_collectives(program, ranks, collectives),
    )


def is_compiled(file: Path) -> bool:
    """Whether it is a program, library or object file."""
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def calls_blas(program: Path, library: Path) -> bool:
    """Whether a program refers to routines of BLAS or LAPACK that simblas has."""
    return bool(_symbols(program, "--undefined-only") & _routines(library))


def other_mpi_of(path: Path) -> str | None:
    """The library of an MPI other than SimGrid's that a compiled program needs; None for any other file."""
    if not path.is_file() or path.is_symlink() or not is_compiled(path):
        return None
    needed = re.findall(r"\(NEEDED\).*\[([^]]+)\]", _output_of("readelf", "-d", str(path)))
    return next((name for name in needed if LIBRARY_FILE.match(name)), None)


def _own_routines(program: Path, library: Path) -> list[str]:
    routines = _symbols(program, "--defined-only") & _routines(library)
    if not routines:
        return []
    return [f"the program has {_list(routines)} of its own: computed, and free of charge; leave them out of its build"]


def _real_routines(program: Path, library: Path, loaded: dict[str, Path | None]) -> list[str]:
    undefined = _symbols(program, "--undefined-only") - _symbols(library, "--defined-only")
    warnings = []
    for name, path in loaded.items():
        if path is not None and _BLAS_LIBRARY.match(name) and (real := undefined & _symbols(path, "--defined-only")):
            warnings.append(
                f"simblas has no {_list(real)}: that of {name} runs, on numbers that mean nothing, at no cost"
            )
    return warnings


def _collectives(program: Path, ranks: int, chosen: str | None) -> list[str]:
    """Those that SMPI 3.32 sends by other algorithms than MPI libraries, with more ranks than two."""
    if ranks <= 2:
        return []
    symbols = {name.lower() for name in _symbols(program, "--undefined-only")}
    naive, immediate = (
        ", ".join(sorted({f"MPI_{match[1].capitalize()}" for match in map(which.fullmatch, symbols) if match}))
        for which in (_NAIVE, _IMMEDIATE)
    )
    warnings = []
    if naive and chosen is None:
        warnings.append(
            f"{naive}: SMPI's own algorithms take up to ten times as long as those of MPI libraries; --collectives "
            "openmpi, mpich, mvapich2 or intelmpi"
        )
    if immediate:
        warnings.append(
            f"{immediate}: under SMPI each rank, or the root, sends to each other one directly, where MPI libraries "
            "use trees and rings; with many ranks or large vectors they come out too slow; compare with blocking ones"
        )
    return warnings


def _list(symbols: Iterable[str]) -> str:
    names = sorted({symbol.rstrip("_") for symbol in symbols})
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _routines(library: Path) -> frozenset[str]:
    return frozenset(name for name in _symbols(library, "--defined-only") if not _NOT_ROUTINES.match(name))


@functools.lru_cache(maxsize=16)
def _symbols(file: Path, which: str) -> frozenset[str]:
    """Names in the dynamic symbol table, without versions."""
    lines = _output_of("nm", "-D", which, str(file)).splitlines()
    return frozenset(line.split()[-1].partition("@")[0] for line in lines if line.split())


def _loaded(program: Path) -> dict[str, Path | None]:
    """The libraries that the loader takes for `program`; None where it finds none."""
    loaded: dict[str, Path | None] = {}
    for line in _output_of("ldd", str(program)).splitlines():
        if line_match := re.match(r"\s*(\S+) => (?:(/.*) \(0x|not found)", line):
            loaded[line_match[1]] = Path(line_match[2]) if line_match[2] else None
    return loaded


def _output_of(*argv: str) -> str:
    """What a tool prints; nothing where it is missing or fails, since it only serves a warning."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
