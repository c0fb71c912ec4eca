"""SimGrid as it is installed here, and what is compiled against it and kept in the cache: libsimblas.so, and the
recorder of the calls of MPI."""

import functools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
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
LIBRARY = "libsimblas.so"
#: As the core is compiled: no contraction of floating point, so that draws are those of the native engine.
CXX_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra")
_CORE = (
    *(f"models/{name}.cpp" for name in ("machine", "machine_file", "kernel_model", "extrapolation", "noise_mixture")),
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
    smpif90: Path


@functools.cache
def find_simgrid() -> SimGrid:
    """SimGrid of this machine; raises EnvironmentProblem if it is missing or too old."""
    smpirun, *compilers = (
        _found((name,), f"SimGrid's {name}", "libsimgrid-dev") for name in ("smpirun", "smpicc", "smpicxx", "smpif90")
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


def build_library(progress: Callable[[str], None] = lambda _: None) -> Path:
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
        progress(f"compiling simblas ({len(units) + 1} files)")
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
