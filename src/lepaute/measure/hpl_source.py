"""HPL, built from Debian's source package: the library, and xhpl-lepaute."""

import shutil
import tarfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from lepaute.errors import EnvironmentProblem
from lepaute.kit.builds import built_once, digests, sha256_of
from lepaute.kit.command import run_command
from lepaute.measure.apt_source import SHA256, TARBALL, hpcc_tarball
from lepaute.measure.probe_source import C_FLAGS, probe_source
from lepaute.measure.toolchain import Toolchain, find_toolchain

#: HPL's own code is compiled as people compile it; its warnings are not ours to mend.
_HPL_FLAGS = ("-O3", "-w", "-DHPL_CALL_CBLAS")
#: Computes the machine's precision by a loop that never ends once the compiler keeps its sums in registers.
_UNOPTIMISED = "HPL_dlamch.c"
_HPL_SOURCES = (
    "hpl/src/*/*.c",
    *(f"hpl/testing/{part}/*.c" for part in ("matgen", "pmatgen", "ptest", "ptimer", "timer")),
)
_OWN_SOURCES = ("xhpl_lepaute.c", "hpl_defaults.c", "hpl_compat.h")
_WANTED = ("hpl/src/", "hpl/testing/", "hpl/include/", "include/")
_COMPILE_JOBS = 2
_COMPILE_LIMIT_S = 120.0
_MOST_BYTES = 64 << 20


def build_hpl(
    build_dir: Path | None = None,
    progress: Callable[[str], None] | None = None,
    toolchain: Toolchain | None = None,
) -> Path:
    """A folder with libhpl.a, its headers (hpl/include, include) and the program xhpl-lepaute.

    build_dir: the folder to put that folder into, by default the cache. What is there already is used again as long
               as the source, the compiler, the MPI library and our own files are the same.
    Raises EnvironmentProblem where a tool or the source is missing, or something does not compile.
    """
    tools = toolchain or find_toolchain()
    tarball = hpcc_tarball(progress)

    def build(folder: Path) -> None:
        extract(tarball, folder)
        _compile_library(tools, folder, progress)
        _link_driver(tools, folder)
        for part in ("hpl/src", "hpl/testing", "objects"):
            shutil.rmtree(folder / part)

    driver_sources = digests(probe_source() / name for name in _OWN_SOURCES)
    inputs = [sha256_of(tarball), *driver_sources, *tools.identity, *_HPL_FLAGS, *C_FLAGS]
    return built_once("hpl", inputs, "xhpl-lepaute", build, build_dir)


def unpack_source(folder: Path) -> None:
    """Writes HPL's source (hpl/src, hpl/include, include, ...); raises what hpcc_tarball() and extract() raise."""
    extract(hpcc_tarball(), folder)


def source_key() -> str:
    """What names the version of HPL's source."""
    return SHA256


def hpl_include_flags(folder: Path) -> tuple[str, ...]:
    """Compiler options for a file of ours that includes hpl.h or hpcc.h of a built HPL."""
    return ("-DHPL_CALL_CBLAS", f"-I{folder / 'hpl/include'}", f"-I{folder / 'include'}")


def extract(tarball: Path, folder: Path) -> None:
    """Write the parts of the archive that HPL needs into the folder, without the archive's top folder.

    Only plain files with plain relative names are written; raises EnvironmentProblem for an archive that holds
    anything else where HPL's sources should be, or that is none.
    """
    written = 0
    try:
        with tarfile.open(tarball, "r:gz") as archive:
            for member in archive:
                path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                if member.isdir() or not str(path).startswith(_WANTED):
                    continue
                if not member.isfile() or path.is_absolute() or ".." in path.parts:
                    raise EnvironmentProblem(f"{tarball}: member {member.name} is not a plain file; is it {TARBALL}?")
                written += member.size
                if written > _MOST_BYTES:
                    raise EnvironmentProblem(f"{tarball}: holds more than {_MOST_BYTES} bytes; is it {TARBALL}?")
                content = archive.extractfile(member)
                assert content is not None  # isfile() above
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    except (tarfile.TarError, EOFError, OSError) as problem:
        raise EnvironmentProblem(f"{tarball}: cannot be unpacked ({problem})") from None
    if not (folder / "hpl/include/hpl.h").is_file():
        raise EnvironmentProblem(f"{tarball}: does not contain HPL; is it {TARBALL}?")


def _compile_library(tools: Toolchain, folder: Path, progress: Callable[[str], None] | None) -> None:
    sources = sorted(path for pattern in _HPL_SOURCES for path in folder.glob(pattern))
    objects = folder / "objects"
    objects.mkdir()
    if progress is not None:
        progress(f"compiling HPL ({len(sources)} files)")

    def compile_one(source: Path) -> str:
        target = objects / f"{source.stem}.o"
        # The last -O wins.
        extra: Sequence[str] = ("-O0",) if source.name == _UNOPTIMISED else ()
        include = ("-include", str(probe_source() / "hpl_compat.h"), *hpl_include_flags(folder))
        words = [*_HPL_FLAGS, *extra, *include, "-c", str(source), "-o", str(target)]
        tools.mpi.compile(words, what=f"compiling {source.name} of HPL")
        return str(target)

    with ThreadPoolExecutor(_COMPILE_JOBS) as pool:
        made = list(pool.map(compile_one, sources))
    argv = [str(tools.ar), "rcs", str(folder / "libhpl.a"), *made]
    run_command(argv, what="archiving HPL into a library", timeout_s=_COMPILE_LIMIT_S)


def _link_driver(tools: Toolchain, folder: Path) -> None:
    driver_sources = [str(probe_source() / name) for name in _OWN_SOURCES if name.endswith(".c")]
    words = [*C_FLAGS, *hpl_include_flags(folder), *driver_sources, "-Wl,--wrap=HPL_pdgesv", "-Wl,--wrap=fopen"]
    words += [str(folder / "libhpl.a"), *tools.blas_flags, "-lm", "-o", str(folder / "xhpl-lepaute")]
    tools.mpi.compile(words, what="building xhpl-lepaute")
