"""libsimblas.so: compiled on this machine against its SimGrid, and kept in the cache."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lepaute.errors import EnvironmentProblem
from lepaute.kit.builds import built_once, digests
from lepaute.kit.command import run_command
from lepaute.simulate.smpi.entries import generate
from lepaute.simulate.smpi.routines import read_routines
from lepaute.simulate.smpi.simgrid import INSTALL

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
