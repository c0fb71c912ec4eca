"""SimGrid as it is installed here, and what its Debian package is called."""

import functools
import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.builds import built_once, digests
from lepaute.kit.command import run_command
from lepaute.simulate.smpi.entries import generate
from lepaute.simulate.smpi.routines import read_routines

INSTALL = "apt-get install libsimgrid-dev gfortran g++"
_OLDEST = (3, 32)


@dataclass(frozen=True, slots=True)
class SimGrid:
    """The programs of SimGrid; smpimain runs a program that one of the compilers has built.

    version : such as "3.32"
    """

    version: str
    smpimain: Path
    smpicc: Path
    smpicxx: Path
    smpif90: Path


@functools.cache
def find_simgrid() -> SimGrid:
    """SimGrid of this machine; raises EnvironmentProblem where it is missing or too old."""
    smpirun = _program("smpirun")
    text = smpirun.read_text(encoding="utf-8", errors="replace")
    # smpirun is a script around smpimain, which has no folder of its own on PATH.
    main = re.search(r'"(/[^"\s]*/smpimain)"', text)
    if main is None or not Path(main[1]).is_file():
        raise EnvironmentProblem(f"{smpirun} names no smpimain; install SimGrid again: {INSTALL}")
    version_text = subprocess.run([smpirun, "-version"], capture_output=True, text=True, timeout=30, check=False).stdout
    numbers = re.search(r"(\d+)\.(\d+)", version_text)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
        version = version_text.strip() or "of unknown version"
        raise EnvironmentProblem(f"SimGrid is {version!r}; Lepaute needs 3.32 or later: {INSTALL}")
    programs = [_program(name) for name in ("smpicc", "smpicxx", "smpif90")]
    return SimGrid(numbers[0], Path(main[1]), *programs)


def _program(name: str) -> Path:
    path = shutil.which(name)
    if path is None:
        raise EnvironmentProblem(
            f"SimGrid's {name} is missing (Debian package libsimgrid-dev); to emulate, install it: {INSTALL}"
        )
    return Path(path)


LIBRARY = "libsimblas.so"
#: As the core is compiled: no contraction of floating point, so that draws are those of the native engine.
CXX_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra")
_CORE = (
    "models/machine.cpp",
    "models/machine_file.cpp",
    "models/kernel_model.cpp",
    "models/extrapolation.cpp",
    "rng/*.cpp",
)
_COMPILE_JOBS = 2
_COMPILE_LIMIT_S = 300.0


def simblas_source() -> Path:
    """The folder of simblas' sources."""
    return _shipped("simblas", "_simblas", "state.hpp")


def probes_source() -> Path:
    """The folder of the probes' sources, which know HPL's loops."""
    return _shipped("probes", "_probes", "hpl_loops.h")


def _shipped(checkout: str, installed: str, known: str) -> Path:
    """The folder that holds the file `known`: that of a source checkout, else the copy in the installed package.

    Raises EnvironmentProblem where neither is there.
    """
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
    """Compiler options for a file that includes headers of simblas and of the core."""
    return (f"-I{simblas_source()}", f"-I{core_source()}")


def build_library(progress: Callable[[str], None] | None = None) -> Path:
    """The folder with libsimblas.so; built where its sources or the compiler changed.

    Raises EnvironmentProblem where a compiler or SimGrid's headers are missing, or something does not compile.
    """
    source, core = simblas_source(), core_source()
    compiler = find_compiler()
    units = [*sorted(source.glob("*.cpp")), *sorted(unit for pattern in _CORE for unit in core.glob(pattern))]
    headers = [*source.glob("*.h*"), *source.glob("*.txt"), *core.glob("models/*.hpp"), *core.glob("rng/*.hpp")]
    headers.append(core / "apps/hpl/kernels.hpp")
    generated = generate(read_routines((source / "routines.txt").read_text(encoding="utf-8")))
    return built_once(
        "simblas",
        [generated, *CXX_FLAGS, compiler, *digests([*units, *headers])],
        LIBRARY,
        lambda folder: _compile(folder, units, generated, progress),
    )


def find_compiler() -> str:
    """The C++ compiler; raises EnvironmentProblem where there is none."""
    path = shutil.which("g++")
    if path is None:
        raise EnvironmentProblem(f"g++ is missing (Debian package g++); to emulate, install it: {INSTALL}")
    return path


def _compile(folder: Path, units: list[Path], generated: str, progress: Callable[[str], None] | None) -> None:
    if progress is not None:
        progress(f"compiling simblas ({len(units) + 1} files)")
    routines = folder / "routines.cpp"
    routines.write_text(generated, encoding="utf-8")
    compiler = find_compiler()

    def compile_one(unit: Path) -> str:
        target = folder / f"{unit.parent.name}-{unit.stem}.o"
        argv = [compiler, *CXX_FLAGS, *include_flags(), "-c", str(unit), "-o", str(target)]
        run_command(argv, what=f"compiling {unit.name} of simblas", timeout_s=_COMPILE_LIMIT_S)
        return str(target)

    with ThreadPoolExecutor(_COMPILE_JOBS) as pool:
        objects = list(pool.map(compile_one, [*units, routines]))
    # Its own name, so that a program linked with it takes the one that is preloaded.
    argv = [compiler, "-shared", f"-Wl,-soname,{LIBRARY}", "-Wl,-z,defs", *objects, "-lsimgrid", "-ldl"]
    run_command([*argv, "-o", str(folder / LIBRARY)], what="linking simblas", timeout_s=_COMPILE_LIMIT_S)
    for made in objects:
        Path(made).unlink()


CALL_RECORDER = "liblepaute-calls.so"
#: Names the file that it writes.
RECORDER_VARIABLE = "LEPAUTE_RECORD_CALLS"

_RECORDER_SOURCES = ("record_smpi.c", "record_world.c", "record_mpi.c", "record_requests.c", "record_collectives.c")
_RECORDER_HEADERS = (
    *("record.h", *(f"record_{part}.h" for part in ("smpi", "inside", "calls", "requests", "world"))),
    "probe_common.h",
)
_RECORDER_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-DLEP_RECORD_SMPI", "-O2", "-fPIC", "-fvisibility=hidden", "-shared")


def build_call_recorder() -> Path:
    """The library, to be preloaded behind simblas; built at first use, in the cache.

    Raises EnvironmentProblem where it cannot be built.
    """
    smpicc = find_simgrid().smpicc
    include = smpicc.resolve().parents[1] / "include" / "smpi"
    compiler = _c_compiler()
    sources = [str(probes_source() / name) for name in _RECORDER_SOURCES]

    def build(folder: Path) -> None:
        argv = [
            compiler,
            *_RECORDER_FLAGS,
            f"-I{include}",
            *sources,
            "-lsimgrid",
            "-ldl",
            "-o",
            str(folder / CALL_RECORDER),
        ]
        run_command(argv, what="building the recorder of emulations", timeout_s=_COMPILE_LIMIT_S)

    inputs = digests(probes_source() / name for name in (*_RECORDER_SOURCES, *_RECORDER_HEADERS))
    return (
        built_once("call-recorder", [*inputs, compiler, str(include), *_RECORDER_FLAGS], CALL_RECORDER, build)
        / CALL_RECORDER
    )


def _c_compiler() -> str:
    found = next(filter(None, map(shutil.which, ("gcc", "cc"))), None)
    if found is None:
        raise EnvironmentProblem(f"gcc is missing (Debian package gcc); to trace an emulation, install it: {INSTALL}")
    return found
