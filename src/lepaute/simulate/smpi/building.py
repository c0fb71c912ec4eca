"""mpicc and its like for a program that is to be emulated: SMPI's compilers, linked with simblas.

They stand in a folder of their own under the names that makefiles use, to be put first on PATH. Libraries of BLAS and
LAPACK are found there as well, under their names, and are simblas.
"""

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.builds import built_once
from lepaute.kit.command import run_command
from lepaute.kit.mpi_library import CC_NAMES, CXX_NAMES, FORTRAN_NAMES
from lepaute.kit.temporary import require_plain
from lepaute.simulate.smpi.library import LIBRARY, SimGrid, build_library, find_simgrid
from lepaute.simulate.smpi.program import is_compiled, other_mpi_of

_NAMES = {"smpicc": CC_NAMES, "smpicxx": CXX_NAMES, "smpif90": FORTRAN_NAMES}
#: What stands for them in the place of the real libraries.
_LIBRARIES = ("blas", "cblas", "openblas", "lapack", "lapacke", "atlas", "blis", "mkl_rt", "satlas", "tatlas")
#: Memory functions that SMPI's compilers do not rename: those of Fortran, C++ and of objects compiled otherwise.
_WRAPPED = (
    *("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"),
    *("_Znwm", "_Znam", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm"),
)
_SKIP_SOURCE = "long lepaute_skip(void) { return 0; }\n"
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.$]*")


def skip_flags(functions: Sequence[str], folder: Path) -> list[str]:
    """Linker options that let each of `functions` return at once, also under its Fortran name.

    folder : that of compilers()
    Raises InputError for what is no function's name.
    """
    for name in functions:
        if not _SYMBOL.fullmatch(name):
            raise InputError(f"--skip {name!r} is not the name of a function as the linker knows it")
    if not functions:
        return []
    # Not --wrap: that leaves calls from within the same file as they are.
    names = [symbol for name in functions for symbol in dict.fromkeys((name, name.rstrip("_") + "_"))]
    return [str(folder / "skip.o"), *(f"-Wl,--defsym={name}=lepaute_skip" for name in names)]


def compilers() -> Path:
    """The folder of the compilers; raises EnvironmentProblem where SimGrid or a compiler is missing."""
    simgrid = find_simgrid()
    library = build_library()
    require_plain(library, "SimGrid's compilers")
    scripts = [_script(program, library) for program in (simgrid.smpicc, simgrid.smpicxx, simgrid.smpif90)]
    inputs = [*scripts, *_LIBRARIES, _SKIP_SOURCE]
    return built_once("smpi-compilers", inputs, "skip.o", lambda folder: _write(folder, simgrid, library))


def _write(folder: Path, simgrid: SimGrid, library: Path) -> None:
    (folder / LIBRARY).symlink_to(library / LIBRARY)
    for name in _LIBRARIES:
        (folder / f"lib{name}.so").symlink_to(library / LIBRARY)
    for program in (simgrid.smpicc, simgrid.smpicxx, simgrid.smpif90):
        for name in _NAMES[program.name]:
            script = folder / name
            script.write_text(_script(program, library), encoding="utf-8")
            script.chmod(0o755)
    source = folder / "skip.c"
    source.write_text(_SKIP_SOURCE, encoding="utf-8")
    argv = ["gcc", "-O2", "-fPIC", "-c", str(source), "-o", str(folder / "skip.o")]
    run_command(argv, what="compiling what stands for skipped functions", timeout_s=60.0)


def _script(program: Path, library: Path) -> str:
    """A compiler: `program`, with simblas before all libraries where it links."""
    wrapped = "-Wl," + ",".join(f"--wrap={name}" for name in _WRAPPED)
    # SMPI loads the program with RTLD_DEEPBIND: what stands first among the libraries it needs is what it calls. SMPI's
    # compilers look for libraries in the system's folder before any other, and so find a real BLAS that is there.
    first = f"-Wl,--push-state,--no-as-needed {shlex.quote(str(library / LIBRARY))} -Wl,--pop-state"
    # smpif90 uses f2c's calling conventions, in which functions return other registers than those of every BLAS.
    abi = "-fno-f2c" if program.name == "smpif90" else ""
    return f"""#!/bin/sh
# {program.name} for a program that lepaute is to emulate.
here=$(dirname "$(readlink -f "$0")")
for word do
  case $word in
    -c | -E | -S | -M | -MM | -show | --showme* | -version | --version) exec {shlex.quote(str(program))} {abi} "$@" ;;
  esac
done
exec {shlex.quote(str(program))} {abi} {first} -L"$here" "$@" {wrapped} $LEPAUTE_LINK_FLAGS \\
  -Wl,-rpath,{shlex.quote(str(library))}
"""


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
