"""A program for emulation: SimGrid as it is installed here, and what is compiled against it and kept in the cache,
libsimblas.so and the recorder of the calls of MPI; the compilers that build the program, a copy of its source that is
built, and a look at it before it runs: was it built for emulation, and does it call simblas?

mpicc and its like are SMPI's compilers, linked with simblas. They stand in a folder of their own under the names that
makefiles use, to be put first on PATH. Libraries of BLAS and LAPACK there are simblas.

SMPI loads a program with RTLD_DEEPBIND: a function is looked for in the program first, then in the libraries that it
needs, in their order, and only then among what is preloaded. So a program that does not need simblas never calls it,
and a BLAS of the program's own, or a routine that simblas does not have, really runs.
"""

import functools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.builds import built_once, digests
from lepaute.kit.command import attempted, run_command
from lepaute.kit.mpi_library import CC_NAMES, CXX_NAMES, FORTRAN_NAMES, LIBRARY_FILE
from lepaute.kit.temporary import require_plain
from lepaute.simulate.smpi.entries import generate
from lepaute.simulate.smpi.routines import read_routines

INSTALL = "apt-get install libsimgrid-dev gfortran g++"
_OLDEST = (3, 32)
LIBRARY = "libsimblas.so"
#: As the core is compiled: no contraction of floating point, so that draws are those of the native engine.
CXX_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra")
_CORE = (
    *(f"models/{name}.cpp" for name in ("machine*", "kernel_model", "extrapolation", "noise_mixture")),
    "rng/*.cpp",
)
_COMPILE_JOBS = 2
_COMPILE_LIMIT_S = 300.0

CALL_RECORDER = "liblepaute-calls.so"
#: Names the file that the recorder writes.
RECORDER_VARIABLE = "LEPAUTE_RECORD_CALLS"
_RECORDER_SOURCES = tuple(f"record_{part}.c" for part in ("smpi", "world", "mpi", "requests", "collectives"))
_RECORDER_HEADERS = (
    *("record.h", *(f"record_{part}.h" for part in ("smpi", "inside", "calls", "requests", "world"))),
    "probe_common.h",
)
_RECORDER_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-DLEP_RECORD_SMPI", "-O2", "-fPIC", "-fvisibility=hidden", "-shared")


@dataclass(frozen=True, slots=True)
class SimGrid:
    """The programs of SimGrid; smpimain runs a program that one of the compilers has built."""

    version: str
    smpimain: Path
    smpicc: Path
    smpicxx: Path
    smpiff: Path


@functools.cache
def find_simgrid() -> SimGrid:
    """SimGrid of this machine; raises EnvironmentProblem if it is missing or too old."""
    smpirun, *compilers = (
        _found((name,), f"SimGrid's {name}", "libsimgrid-dev") for name in ("smpirun", "smpicc", "smpicxx", "smpiff")
    )
    # smpirun is a script around smpimain, which has no folder of its own on PATH.
    main = re.search(r'"(/[^"\s]*/smpimain)"', smpirun.read_text(encoding="utf-8", errors="replace"))
    if main is None or not Path(main[1]).is_file():
        raise EnvironmentProblem(f"{smpirun} names no smpimain; install SimGrid again: {INSTALL}")
    version_text = subprocess.run([smpirun, "-version"], capture_output=True, text=True, timeout=30, check=False).stdout
    numbers = re.search(r"(\d+)\.(\d+)", version_text)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
        version = version_text.strip() or "of unknown version"
        raise EnvironmentProblem(f"SimGrid is {version!r}; Lepaute needs 3.32 or later: {INSTALL}")
    return SimGrid(numbers[0], Path(main[1]), *compilers)


def _found(names: Iterable[str], what: str, package: str, purpose: str = "emulate") -> Path:
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise EnvironmentProblem(f"{what} is missing (Debian package {package}); to {purpose}, install it: {INSTALL}")
    return Path(path)


def simblas_source() -> Path:
    return _shipped("simblas", "_simblas", "state.hpp")


def probes_source() -> Path:
    """The folder of the probes' sources, which know HPL's loops."""
    return _shipped("probes", "_probes", "hpl_loops.h")


def _shipped(checkout: str, installed: str, known: str) -> Path:
    """The folder that holds the file `known`: that of a source checkout, else the copy in the installed package."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package.parents[1] / checkout, package / installed):
        if (folder / known).is_file():
            return folder
    raise EnvironmentProblem(f"the sources in {checkout} are missing from this installation; install lepaute again")


def core_source() -> Path:
    """The part of the core that simblas is compiled with."""
    source = simblas_source()
    return source / "core" if (source / "core").is_dir() else source.parent / "core"


def include_flags() -> tuple[str, str]:
    return (f"-I{simblas_source()}", f"-I{core_source()}")


def build_library() -> Path:
    """The folder with libsimblas.so; built where its sources or the compiler changed.

    Raises EnvironmentProblem if a compiler or SimGrid's headers are missing, or something does not compile.
    """
    source, core = simblas_source(), core_source()
    compiler = str(_found(("g++",), "g++", "g++"))
    units = [*sorted(source.glob("*.cpp")), *sorted(unit for pattern in _CORE for unit in core.glob(pattern))]
    headers = [*source.glob("*.h*"), *source.glob("*.txt"), *core.glob("models/*.hpp"), *core.glob("rng/*.hpp")]
    headers += [*core.glob("net/*.hpp"), core / "apps/hpl/kernels.hpp", core / "checks.hpp"]
    generated = generate(read_routines((source / "routines.txt").read_text(encoding="utf-8")))

    def build(folder: Path) -> None:
        routines = folder / "routines.cpp"
        routines.write_text(generated, encoding="utf-8")
        # Its own name, so that a program linked with it takes the one that is preloaded.
        link = [compiler, "-shared", f"-Wl,-soname,{LIBRARY}", "-Wl,-z,defs", "-lsimgrid", "-ldl"]
        compile_and_link(
            [*units, routines], folder / LIBRARY, lambda _: [compiler, *CXX_FLAGS, *include_flags()], link, "simblas"
        )

    return built_once("simblas", [generated, *CXX_FLAGS, compiler, *digests([*units, *headers])], LIBRARY, build)


def compile_and_link(
    units: Iterable[Path], target: Path, compiling: Callable[[Path], list[str]], linking: list[str], what: str
) -> None:
    """Compiles the units, several at a time, and links them to `target`, beside which their objects are for a while.

    compiling : of a unit the command, without what it compiles;  linking : the command, libraries last
    """

    def compiled(unit: Path) -> str:
        made = target.with_name(f"{unit.parent.name}-{unit.stem}.o")
        argv = [*compiling(unit), "-c", str(unit), "-o", str(made)]
        run_command(argv, what=f"compiling {unit.name} of {what}", timeout_s=_COMPILE_LIMIT_S)
        return str(made)

    with ThreadPoolExecutor(_COMPILE_JOBS) as pool:
        objects = list(pool.map(compiled, units))
    first_library = next(place for place, word in enumerate(linking) if word.startswith("-l"))
    argv = [*linking[:first_library], *objects, *linking[first_library:], "-o", str(target)]
    run_command(argv, what=f"linking {what}", timeout_s=_COMPILE_LIMIT_S)
    for made in objects:
        Path(made).unlink()


def build_call_recorder() -> Path:
    """The library that writes the calls of MPI as a recording has them, to be preloaded behind simblas.

    Raises EnvironmentProblem if it cannot be built.
    """
    include = find_simgrid().smpicc.resolve().parents[1] / "include" / "smpi"
    compiler = str(_found(("gcc", "cc"), "gcc", "gcc", "trace an emulation"))
    sources = [str(probes_source() / name) for name in _RECORDER_SOURCES]

    def build(folder: Path) -> None:
        target = str(folder / CALL_RECORDER)
        argv = [compiler, *_RECORDER_FLAGS, f"-I{include}", *sources, "-lsimgrid", "-ldl", "-o", target]
        run_command(argv, what="building the recorder of emulations", timeout_s=_COMPILE_LIMIT_S)

    inputs = digests(probes_source() / name for name in (*_RECORDER_SOURCES, *_RECORDER_HEADERS))
    inputs = [*inputs, compiler, str(include), *_RECORDER_FLAGS]
    return built_once("call-recorder", inputs, CALL_RECORDER, build) / CALL_RECORDER


_NAMES = {"smpicc": CC_NAMES, "smpicxx": CXX_NAMES, "smpiff": FORTRAN_NAMES}
#: What stands for them in the place of the real libraries.
_LIBRARIES = ("blas", "cblas", "openblas", "lapack", "lapacke", "atlas", "blis", "mkl_rt", "satlas", "tatlas")
#: Memory functions that SMPI's compilers do not rename: those of Fortran, C++ and of objects compiled otherwise.
_WRAPPED = (
    *("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"),
    *("_Znwm", "_Znam", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm"),
)
_UNREAD_FORTRAN = """for word do
  case $word in
    -*) ;;
    *.for | *.FOR | *.ftn | *.FTN | *.f77 | *.F77 | *.f95 | *.F95 | *.f03 | *.F03 | *.f08 | *.F08)
      echo "$(basename "$0"): $word: only .f, .F (fixed form), .f90 and .F90 are compiled for emulation; rename it" >&2
      exit 1 ;;
  esac
done
"""
#: SMPI's headers rename malloc and its like to functions of which compilers do not know that they allocate: arrays
#: might be anywhere, and loops over them are compiled several times as slow as in the real program.
_ALLOCATIONS = """#ifndef __ASSEMBLER__
#include <smpi/smpi_helpers_internal.h>
#define LEPAUTE_ALLOCATIONS \\
    void *smpi_shared_malloc_intercept(size_t, const char *, int) __attribute__((malloc, alloc_size(1))); \\
    void *smpi_shared_calloc_intercept(size_t, size_t, const char *, int) __attribute__((malloc, alloc_size(1, 2)));
#ifdef __cplusplus
extern "C" { LEPAUTE_ALLOCATIONS }
namespace std { extern "C" { LEPAUTE_ALLOCATIONS } }
#else
LEPAUTE_ALLOCATIONS
#endif
#endif
"""
_SKIP_SOURCE = "long lepaute_skip(void) { return 0; }\n"
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.$]*")


def _skip_flags(functions: Sequence[str], folder: Path) -> list[str]:
    """Linker options that let each of `functions` return at once, also under its Fortran name.

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
    """The folder of the compilers; raises EnvironmentProblem if SimGrid or a compiler is missing."""
    simgrid = find_simgrid()
    library = build_library()
    require_plain(library, "SimGrid's compilers")
    scripts = [_script(program, library) for program in (simgrid.smpicc, simgrid.smpicxx, simgrid.smpiff)]
    inputs = [*scripts, *_LIBRARIES, _ALLOCATIONS, _SKIP_SOURCE]
    return built_once("smpi-compilers", inputs, "skip.o", lambda folder: _write(folder, simgrid, library))


def _write(folder: Path, simgrid: SimGrid, library: Path) -> None:
    (folder / LIBRARY).symlink_to(library / LIBRARY)
    for name in _LIBRARIES:
        (folder / f"lib{name}.so").symlink_to(library / LIBRARY)
    for program in (simgrid.smpicc, simgrid.smpicxx, simgrid.smpiff):
        for name in _NAMES[program.name]:
            script = folder / name
            script.write_text(_script(program, library), encoding="utf-8")
            script.chmod(0o755)
    (folder / "allocations.h").write_text(_ALLOCATIONS, encoding="utf-8")
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
    # smpiff uses f2c's calling conventions, in which functions return other registers than those of every BLAS.
    abi = "-fno-f2c" if program.name == "smpiff" else '-include "$here/allocations.h"'
    # Others it passes over without a word, and with status 0; and a program without a name it calls as an object.
    unread = _UNREAD_FORTRAN if program.name == "smpiff" else ""
    named = 'case " $* " in *" -o"*) ;; *) set -- "$@" -o a.out ;; esac\n' if program.name == "smpiff" else ""
    return f"""#!/bin/sh
# {program.name} for a program that lepaute is to emulate.
here=$(dirname "$(readlink -f "$0")")
{unread}for word do
  case $word in
    -c | -E | -S | -M | -MM | -show | --showme* | -version | --version) exec {shlex.quote(str(program))} {abi} "$@" ;;
  esac
done
{named}exec {shlex.quote(str(program))} {abi} {first} -L"$here" "$@" {wrapped} $LEPAUTE_LINK_FLAGS \\
  -Wl,-rpath,{shlex.quote(str(library))}
"""


_BUILD_LIMIT_S = 1800.0
_MAX_NAMED = 8
_COMPILERS = {
    **dict.fromkeys(("CC", "MPICC"), "mpicc"),
    **dict.fromkeys(("CXX", "MPICXX"), "mpicxx"),
    **dict.fromkeys(("FC", "F77", "F90", "MPIF90", "MPIFC"), "mpif90"),
}


def build_program(source: Path, make: str, skip: Sequence[str], folder: Path) -> Path:
    """A copy of `source` in `folder`, built by the shell command `make`; mpicc and its like are those of emulation.

    Raises InputError if there is no such folder, EnvironmentProblem if it does not build.
    """
    if not source.is_dir():
        raise InputError(f"--source {source}: not a folder")
    wrappers = compilers()
    copy = folder / source.resolve().name
    shutil.copytree(source, copy, symlinks=True, ignore=_left_out)
    environment = _COMPILERS | {
        "PATH": f"{wrappers}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "LEPAUTE_LINK_FLAGS": " ".join(_skip_flags(skip, wrappers)),
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
        programs = [str(file.relative_to(folder)) for file in files if _is_compiled(file)]
        built = f"; what was built: {', '.join(programs[:_MAX_NAMED])}" if programs else ""
        raise EnvironmentProblem(f"{word} was not built{built}; name the program as it is called in the source folder")
    return path


_BUILD = "build it: PATH=$(lepaute emulate compilers):$PATH mpicc ... (mpicxx, mpif90, make)"
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


def resolve_program(program: Path) -> Path:
    """Its whole path; raises InputError if there is none."""
    if not program.is_file():
        raise InputError(
            f"there is no {program.resolve()}; name a program by its path, and {_BUILD}; scripts, as with mpi4py, "
            "cannot be emulated"
        )
    return program.resolve()


def emulable(program: Path) -> Path:
    """Its whole path; raises InputError if it is none that SMPI and simblas can run. Nothing is built for that."""
    program = resolve_program(program)
    if not _is_compiled(program):
        raise InputError(
            f"{program} is no compiled program; name the program itself, and {_BUILD}; scripts, as with mpi4py, "
            "cannot be emulated"
        )
    loaded = _loaded_by(program)
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
    return program


def program_caveats(
    program: Path, library: Path, ranks: int = 1, collectives: str | None = None, drawn: Sequence[str] = ()
) -> tuple[str, ...]:
    """Sentences about what will not be emulated as it should.

    collectives : the MPI library whose algorithms they follow; None: of `drawn` one a run, SMPI's own without any
    """
    routines = _symbols(program, "--defined-only") & _routines(library)
    has = f"the program has {_list(routines)} of its own: computed, and free of charge; leave them out of its build"
    return (
        *([has] if routines else []),
        *_real_routines(program, library, _loaded_by(program)),
        *_collectives(program, ranks, collectives, drawn),
    )


def _loaded_by(program: Path) -> dict[str, Path | None]:
    """The libraries that it needs, and where they are found."""
    lines = _output_of("ldd", str(program)).splitlines()
    matches = filter(None, (re.match(r"\s*(\S+) => (?:(/.*) \(0x|not found)", line) for line in lines))
    return {match[1]: Path(match[2]) if match[2] else None for match in matches}


def _is_compiled(file: Path) -> bool:
    """Whether it is a program, library or object file."""
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def calls_blas(program: Path, library: Path) -> bool:
    """Whether a program refers to routines of BLAS or LAPACK that simblas has."""
    return bool(_symbols(program, "--undefined-only") & _routines(library))


def other_mpi_of(path: Path) -> str | None:
    """The library of an MPI other than SimGrid's that a compiled program needs; None for any other file."""
    if not path.is_file() or path.is_symlink() or not _is_compiled(path):
        return None
    needed = re.findall(r"\(NEEDED\).*\[([^]]+)\]", _output_of("readelf", "-d", str(path)))
    return next((name for name in needed if LIBRARY_FILE.match(name)), None)


def _real_routines(program: Path, library: Path, loaded: dict[str, Path | None]) -> list[str]:
    undefined = _symbols(program, "--undefined-only") - _symbols(library, "--defined-only")
    return [
        f"simblas has no {_list(real)}: that of {name} runs, on numbers that mean nothing, at no cost"
        for name, path in loaded.items()
        if path is not None and _BLAS_LIBRARY.match(name) and (real := undefined & _symbols(path, "--defined-only"))
    ]


def _collectives(program: Path, ranks: int, chosen: str | None, drawn: Sequence[str]) -> list[str]:
    """Collective operations that SMPI 3.32 sends by other algorithms than MPI libraries, with more ranks than two."""
    if ranks <= 2:
        return []
    symbols = {name.lower() for name in _symbols(program, "--undefined-only")}
    naive, immediate = (
        ", ".join(sorted({f"MPI_{match[1].capitalize()}" for match in map(which.fullmatch, symbols) if match}))
        for which in (_NAIVE, _IMMEDIATE)
    )
    warnings = []
    if naive and chosen is None and drawn:
        warnings.append(
            f"{naive}: no MPI library is named for their algorithms; each run follows one of "
            f"{', '.join(drawn)} (--collectives names it)"
        )
    elif naive and chosen is None:
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


def _output_of(*argv: str) -> str:
    """Output of a tool; nothing if it is missing or fails, since it only serves a warning."""
    done = attempted(argv, {"LC_ALL": "C"}, _LIMIT_S)
    return "" if done is None else done.stdout
