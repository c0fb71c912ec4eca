"""HPL, built from Debian's source package: the library, and xhpl-lepaute.

The source comes from this machine's own mirror. apt fetches sources only where a `deb-src` entry is configured, which a
fresh Debian does not have. The entries made here live in a folder of their own, so that no right is needed.
"""

import contextlib
import os
import platform
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from lepaute.errors import EnvironmentProblem
from lepaute.kit.builds import built_once, cache_folder, digests, make_cache, sha256_of
from lepaute.kit.command import run_command
from lepaute.measure.toolchain import C_FLAGS, Toolchain, find_program, find_toolchain, probe_source

PACKAGE = "hpcc"
TARBALL = "hpcc_1.5.0.orig.tar.gz"
SHA256 = "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8"
#: Names a file to use instead of asking apt: for machines without a mirror.
OVERRIDE = "LEPAUTE_HPCC_TARBALL"

_UPDATE_LIMIT_S = 300.0
#: HPL's own code is compiled as people compile it; its warnings are not ours to mend.
_HPL_FLAGS = ("-O3", "-w", "-DHPL_CALL_CBLAS")
#: Computes the machine's precision by a loop that never ends once the compiler keeps its sums in registers.
_UNOPTIMISED = "HPL_dlamch.c"
_HPL_SOURCES = (
    "hpl/src/*/*.c",
    *(f"hpl/testing/{part}/*.c" for part in ("matgen", "pmatgen", "ptest", "ptimer", "timer")),
)
#: HPL's own kernels, beside those of BLAS: functions of its library.
HPL_KERNELS = (
    *(f"HPL_{name}" for name in ("dlocswpT", "dlocswpN", "dlatcpy", "dlacpy")),
    *(f"HPL_dlaswp{name}" for name in ("00N", "02N", "10N")),
    *(f"HPL_dlaswp{number}{form}" for number in ("01", "03", "04", "05", "06") for form in "NT"),
)
_OWN_SOURCES = ("xhpl_lepaute.c", "hpl_defaults.c", "hpl_compat.h")
_WANTED = ("hpl/src/", "hpl/testing/", "hpl/include/", "include/")
_COMPILE_JOBS = 2
_COMPILE_LIMIT_S = 120.0
_MAX_BYTES = 64 << 20


def hpcc_tarball(progress: Callable[[str], None] | None = None) -> Path:
    """The archive that holds HPL's source, checked; from $LEPAUTE_HPCC_TARBALL, the cache, or apt.

    Raises EnvironmentProblem if it cannot be had, or is not the archive that it should be.
    """
    given = os.environ.get(OVERRIDE)
    if given:
        path = Path(given)
        if not path.is_file():
            raise EnvironmentProblem(f"{OVERRIDE} is {given}; no such file. Give the path of {TARBALL}.")
        _check_sha256(path)
        return path
    kept = cache_folder() / "downloads" / TARBALL
    if kept.is_file() and sha256_of(kept) == SHA256:
        return kept
    if progress is not None:
        progress("fetching the source of HPL (Debian source package hpcc)")
    make_cache(kept.parent)
    with tempfile.TemporaryDirectory(prefix="apt-", dir=kept.parent) as folder:
        fetched = _fetch(Path(folder))
        _check_sha256(fetched)
        fetched.replace(kept)
    return kept


def _check_sha256(path: Path) -> None:
    """Raise EnvironmentProblem unless the file is the archive that this version was made for."""
    actual = sha256_of(path)
    if actual != SHA256:
        raise EnvironmentProblem(
            f"{path} has SHA-256 {actual}, expected {SHA256}: it is damaged or another version. Remove it and "
            f"try again, or set {OVERRIDE} to the right file."
        )


def source_entries(one_line: str, deb822: str, codename: str) -> tuple[str, str]:
    """`deb-src` entries for the `deb` entries of a machine.

    one_line, deb822 : text of its entries in the two formats that apt knows
    codename         : of its release; entries of other suites are third parties and are left out, unless nothing
                       else is there
    Returns the text of a .list file and of a .sources file; either may be empty.
    """
    lines = [line for line in map(str.strip, one_line.splitlines()) if re.match(r"deb\s", line)]
    stanzas = [
        stanza
        for stanza in map(_fields, re.split(r"\n\s*\n", deb822))
        if "deb" in stanza.get("types", "").split() and stanza.get("enabled", "yes").lower() not in ("no", "false", "0")
    ]
    # deb [options] uri suite component...
    own_lines = [line for line in lines if codename in re.sub(r"\[[^]]*\]", "", line).split()[2:3]]
    own_stanzas = [stanza for stanza in stanzas if codename in stanza.get("suites", "").split()]
    if codename and (own_lines or own_stanzas):
        lines = own_lines
        # Updates and security hold no other version of the package; leaving them out halves what is fetched.
        stanzas = [{**stanza, "suites": codename} for stanza in own_stanzas]
    text = "".join(re.sub(r"^deb\s", "deb-src ", line) + "\n" for line in lines)
    sources = [{**stanza, "types": "deb-src"} for stanza in stanzas]
    return text, "\n".join("".join(f"{key.title()}: {value}\n" for key, value in source.items()) for source in sources)


def _fields(stanza: str) -> dict[str, str]:
    """Fields of a deb822 stanza by lower-case name; continuation lines keep their line breaks."""
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0] in " \t":
            fields[name] = f"{fields.get(name, '')}\n{line}"
        else:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def _read_all(pattern: str) -> str:
    return "\n\n".join(path.read_text(errors="replace") for path in sorted(Path("/etc/apt").glob(pattern)))


def _fetch(folder: Path) -> Path:
    """Have apt put the archive into the folder, with entries and lists of the folder's own."""
    apt = find_program("apt-get", "apt")
    one_line = "\n".join((_read_all("sources.list"), _read_all("sources.list.d/*.list")))
    codename = ""
    with contextlib.suppress(OSError):
        codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    lists, stanzas = source_entries(one_line, _read_all("sources.list.d/*.sources"), codename)
    if not lists and not stanzas:
        raise EnvironmentProblem(
            f"apt has no source entry for the package {PACKAGE}; set {OVERRIDE} to a copy of {TARBALL}"
        )
    entries = folder / "entries"
    for part in ("entries", "state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    (entries / "lepaute.list").write_text(lists)
    (entries / "lepaute.sources").write_text(stanzas)
    options = {
        "Dir::Etc::sourcelist": os.devnull,
        "Dir::Etc::sourceparts": str(entries),
        "Dir::State::lists": str(folder / "state/lists"),
        "Dir::Cache": str(folder / "cache"),
        "Acquire::Languages": "none",
    }
    if os.geteuid() == 0:
        options["APT::Sandbox::User"] = "root"  # apt's own user may not enter this folder
    argv = [str(apt), "-q", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    try:
        run_command([*argv, "update"], what="apt-get update", timeout_s=_UPDATE_LIMIT_S)
        run_command(
            [*argv, "source", "--tar-only", "--download-only", PACKAGE],
            what=f"apt-get source {PACKAGE}",
            timeout_s=_UPDATE_LIMIT_S,
            folder=folder,
        )
    except EnvironmentProblem as problem:
        if "deb-src" in str(problem):  # apt-get update does not fail where nothing can be fetched
            problem = EnvironmentProblem("apt-get update has fetched no list of source packages: is there a network?")
        raise EnvironmentProblem(
            f"{problem}. The source of HPL cannot be fetched; set {OVERRIDE} to a copy of {TARBALL}"
        ) from None
    fetched = folder / TARBALL
    if not fetched.is_file():
        others = ", ".join(path.name for path in folder.glob(f"{PACKAGE}_*")) or "nothing"
        raise EnvironmentProblem(f"apt fetched {others} instead of {TARBALL}; set {OVERRIDE} to a copy of {TARBALL}")
    shutil.rmtree(entries)
    return fetched


def build_hpl(progress: Callable[[str], None] | None = None, toolchain: Toolchain | None = None) -> Path:
    """A folder with libhpl.a, its headers (hpl/include, include) and the program xhpl-lepaute.

    What the cache has is used again as long as the source, the compiler, the MPI library and our own files are the
    same.
    Raises EnvironmentProblem if a tool or the source is missing, or something does not compile.
    """
    tools = toolchain or find_toolchain()
    tarball = hpcc_tarball(progress)

    def build(folder: Path) -> None:
        extract(tarball, folder)
        _compile_library(tools, folder, progress)
        driver_sources = [str(probe_source() / name) for name in _OWN_SOURCES if name.endswith(".c")]
        words = [*C_FLAGS, *hpl_include_flags(folder), *driver_sources, "-Wl,--wrap=HPL_pdgesv", "-Wl,--wrap=fopen"]
        words += [str(folder / "libhpl.a"), *tools.blas_flags, "-lm", "-o", str(folder / "xhpl-lepaute")]
        tools.mpi.compile(words, what="building xhpl-lepaute")
        for part in ("hpl/src", "hpl/testing", "objects"):
            shutil.rmtree(folder / part)

    driver_sources = digests(probe_source() / name for name in _OWN_SOURCES)
    inputs = [sha256_of(tarball), *driver_sources, *tools.identity, *_HPL_FLAGS, *C_FLAGS]
    return built_once("hpl", inputs, "xhpl-lepaute", build)


def unpack_source(folder: Path) -> None:
    """Writes HPL's source (hpl/src, hpl/include, include, ...); raises what hpcc_tarball() and extract() raise."""
    extract(hpcc_tarball(), folder)


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
                if written > _MAX_BYTES:
                    raise EnvironmentProblem(f"{tarball}: holds more than {_MAX_BYTES} bytes; is it {TARBALL}?")
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
