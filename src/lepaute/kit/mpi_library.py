"""The MPI libraries of this machine: how each is found, what compiles and starts its programs, how it selects.

A library is identified by its compiler wrapper, which alone determines the mpi.h that programs are compiled with.
"""

import functools
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit import mpi_launcher
from lepaute.kit.command import attempted, run_command
from lepaute.kit.documents import guess
from lepaute.kit.files import is_file

#: What compiler wrappers are called.
CC_NAMES = ("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicc", "mpiicx")
CXX_NAMES = ("mpicxx", "mpic++", "mpiCC", "mpiicpc", "mpiicpx")
FORTRAN_NAMES = ("mpif90", "mpifort", "mpif77", "mpiifort", "mpiifx")
#: File names of MPI libraries.
LIBRARY_FILE = re.compile(r"lib(?:mpi|mpich|mpifort|pmpich|mpi_[a-z]+)\.so")

WRAPPER_PACKAGE = "libopenmpi-dev"
_WRAPPER_PACKAGES = {mpi_launcher.OPEN_MPI: WRAPPER_PACKAGE, mpi_launcher.MPICH: "libmpich-dev"}
_LIMIT_S = 60.0
#: Macros of mpi.h that name the library, the most specific first: libraries derived from MPICH define its macro too.
_MACROS = (
    (mpi_launcher.INTEL_MPI, ("I_MPI_VERSION",)),
    (mpi_launcher.MVAPICH, ("MVAPICH_VERSION",)),
    (mpi_launcher.MVAPICH, ("MVAPICH2_VERSION",)),
    (mpi_launcher.MPICH, ("MPICH_VERSION",)),
    (mpi_launcher.OPEN_MPI, ("OMPI_MAJOR_VERSION", "OMPI_MINOR_VERSION", "OMPI_RELEASE_VERSION")),
)
#: SimGrid's mpi.h: a simulator, not a library that runs programs.
_SIMULATED = "SMPI_PREDEFINED_POINTER"
#: Folders below which libraries are installed, each with a folder `bin`.
_PLACES = "/usr/lib64/* /usr/lib/* /usr/lib/*-linux-gnu/* /usr/local /usr/local/* /opt/* /opt/*/mpi/*".split()
_PREFIX_VARIABLES = ("MPI_HOME", "MPI_ROOT", "I_MPI_ROOT")
_MARK = "lepaute-environment"
#: Run by a login shell, where the command `module` is defined.
_LOAD_MODULE = f"""
type module >/dev/null 2>&1 || {{ echo 'E: a login shell (bash -l) has no module command' >&2; exit 1; }}
mark() {{ printf '\\0{_MARK}\\0'; }}
mark; env -0; mark
module load "$1" >&2 || exit 1
env -0
"""
_OF_THE_SHELL = ("_", "SHLVL", "PWD", "OLDPWD")


@dataclass(frozen=True, slots=True)
class MpiLibrary:
    """An MPI library with what compiles programs for it and starts them.

    mpicxx, mpifort, launcher: None if they are not installed
    environment: what its compilers and programs need beside the environment of this process
    """

    family: str
    version: str
    mpicc: Path
    mpicxx: Path | None
    mpifort: Path | None
    launcher: mpi_launcher.Launcher | None
    environment: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{mpi_launcher.TITLES[self.family]} {self.version} ({self.mpicc})"

    @property
    def identity(self) -> str:
        """Differs where programs must be compiled again."""
        return f"{self.family} {self.version} {self.mpicc}"

    def compile(self, words: Sequence[str], *, what: str, timeout_s: float = 120.0) -> None:
        """Runs mpicc; raises EnvironmentProblem, which says `what` failed and the compiler's first complaints."""
        run_command([self.mpicc, *words], what=what, timeout_s=timeout_s, environment=dict(self.environment))


def find_library(name: str | Path = "mpicc") -> MpiLibrary:
    """A library by a compiler wrapper (name or path), a prefix, a launcher, or its family; the one on PATH by default.

    name: "mpicc.mpich", "/opt/x/bin/mpicc", "/opt/openmpi-5", "mpirun.mpich", "mpich", or "module:NAME"

    Raises InputError if `name` names none of these, EnvironmentProblem without an MPI library or a compiler that works.
    """
    text = str(name)
    if text.startswith("module:"):
        return _library_of_module(text.removeprefix("module:"))
    if text and text in mpi_launcher.TITLES:
        return _of_family(text)
    if (prefix := Path(text).absolute()).is_dir():
        if path := shutil.which("mpicc", path=f"{prefix / 'bin'}{os.pathsep}{prefix}"):
            return _library_at(Path(path))
        raise InputError(f"{prefix}: has no bin/mpicc; give the installation prefix of an MPI library")
    path = shutil.which(text)
    if path is None and text == "mpicc":
        raise EnvironmentProblem(
            f"mpicc is missing (Debian package {WRAPPER_PACKAGE}); "
            f"install an MPI library: apt-get install {mpi_launcher.LAUNCHER_PACKAGE} {WRAPPER_PACKAGE}"
        )
    if path is None:
        raise InputError(
            f"{text}: not found{guess(text, [*mpi_launcher.TITLES, *CC_NAMES])}; give the compiler wrapper of an MPI "
            f"library (mpicc.mpich), its prefix (/opt/mpich-4), its family "
            f"({', '.join(filter(None, mpi_launcher.TITLES))}), or its environment module (module:NAME)"
        )
    if Path(path).name.startswith(mpi_launcher.LAUNCHER_NAMES):
        return library_of_launcher(mpi_launcher.find_launcher(path))
    return _library_at(Path(path).absolute())


def installed_libraries() -> tuple[MpiLibrary, ...]:
    """All libraries that can be found on PATH and in the usual places, the one of `mpicc` first; broken ones left out.

    Each is listed once, also where several wrappers belong to it. Environment modules are not loaded.
    """
    libraries: dict[tuple[Path, str, str], MpiLibrary] = {}
    resolved: set[Path] = set()
    for path in _wrappers():
        if path.resolve() in resolved:
            continue
        resolved.add(path.resolve())
        try:
            library = _library_at(path)
        except EnvironmentProblem:
            continue
        libraries.setdefault((path.parent.resolve(), library.family, library.version), library)
    return tuple(libraries.values())


def library_of_launcher(launcher: mpi_launcher.Launcher) -> MpiLibrary:
    """The library that a launcher belongs to: its wrapper stands beside it, or on PATH.

    Raises EnvironmentProblem if no wrapper is found, InputError if only one of another library is.
    """
    beside = [launcher.path.parent / name for name in _sibling_names(launcher.path, launcher.family, ("mpicc",))]
    on_path = shutil.which("mpicc")
    candidates = [path for path in beside if os.access(path, os.X_OK)] if launcher.family else []
    candidates += [Path(on_path)] if on_path is not None else []
    if not candidates:
        package = _WRAPPER_PACKAGES.get(launcher.family, WRAPPER_PACKAGE)
        raise EnvironmentProblem(f"mpicc is missing (Debian package {package}): no compiler wrapper beside {launcher}")
    libraries = [_library_at(path) for path in candidates]
    library = next((each for each in libraries if launcher.starts(each.family)), libraries[0])
    check_same_library(launcher, library)
    return library


def _library_of_module(module: str) -> MpiLibrary:
    """The library whose mpicc `module load` brings in a login shell; raises EnvironmentProblem if there is none."""
    environment = _environment_of_module(module)
    path = shutil.which("mpicc", path=environment["PATH"]) if "PATH" in environment else None
    if path is None:
        remedy = "name a module of an MPI library (module avail)"
        raise EnvironmentProblem(f"module {module}: does not provide mpicc; {remedy}")
    return _library_at(Path(path), tuple(sorted(environment.items())))


def check_same_library(launcher: mpi_launcher.Launcher, library: MpiLibrary) -> None:
    """Raises InputError, one line, where the launcher starts programs of another library."""
    if not launcher.starts(library.family):
        raise InputError(
            f"{launcher.path} belongs to {mpi_launcher.TITLES[launcher.family]}, {library.mpicc} to "
            f"{mpi_launcher.TITLES[library.family]}: use the compiler of the program's own MPI library"
        )


def check_program(launcher: mpi_launcher.Launcher, program: Path) -> None:
    """Raises InputError, one line, where a compiled program is linked to another library than the launcher's.

    Each of its processes would then be the only rank of a run of its own.
    """
    family = _family_of_program(program) if launcher.family else ""
    if not launcher.starts(family):
        raise InputError(
            f"{program} is linked to {mpi_launcher.TITLES[family]}, and {launcher.path} starts programs of "
            f"{mpi_launcher.TITLES[launcher.family]}: use the mpirun of the program's own MPI library"
        )


def _family_of_program(program: Path) -> str:
    """The family of the MPI library that a program loads (MPICH for all that have its ABI), "" for none or unknown."""
    done = attempted(["ldd", program], {}, _LIMIT_S)
    if done is None:
        return ""
    if re.search(r"\blibopen-(?:pal|rte)\.so|\blibmpi\.so\.[24]0\b", done.stdout):
        return mpi_launcher.OPEN_MPI
    return mpi_launcher.MPICH if re.search(r"\blibmpich\w*\.so|\blibmpi\.so\.12\b", done.stdout) else ""


def _wrappers() -> Iterator[Path]:
    folders = [Path(folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    folders += [Path(os.environ[name], "bin") for name in _PREFIX_VARIABLES if os.environ.get(name)]
    folders += sorted(place / "bin" for pattern in _PLACES for place in Path("/").glob(pattern.lstrip("/")))
    paths = (folder / name for folder in folders for name in CC_NAMES)
    yield from (path for path in paths if os.access(path, os.X_OK) and is_file(path))


def _of_family(family: str) -> MpiLibrary:
    path = shutil.which(f"mpicc.{family}")
    if path is not None:
        return _library_at(Path(path).absolute())
    for library in installed_libraries():
        if library.family == family:
            return library
    package = f"; install it: apt-get install {_WRAPPER_PACKAGES[family]}" if family in _WRAPPER_PACKAGES else ""
    raise EnvironmentProblem(f"{mpi_launcher.TITLES[family]} was not found on PATH or in the usual places{package}")


def _sibling_names(path: Path, family: str, stems: tuple[str, ...]) -> list[str]:
    """What programs of the same library may be called: with the suffix of `path`, that of its family, or none."""
    suffix = path.name.partition(".")[2]
    suffixes = dict.fromkeys([f".{suffix}" if suffix in mpi_launcher.TITLES else "", "", f".{family}"])
    return [stem + each for each in suffixes for stem in stems]


def _library_at(mpicc: Path, environment: tuple[tuple[str, str], ...] | None = None) -> MpiLibrary:
    """The library of a wrapper; environment: that of a module, None for what a prefix that is not on PATH needs."""
    return _examined(mpicc, _environment_of(mpicc.parent) if environment is None else environment)


@functools.cache
def _examined(mpicc: Path, environment: tuple[tuple[str, str], ...]) -> MpiLibrary:
    """Asks the preprocessor which mpi.h there is, and beside that only a launcher for its version."""
    done = run_command(
        [mpicc, "-include", "mpi.h", "-dM", "-E", "-x", "c", "/dev/null"],
        what=f"{mpicc} (are mpi.h and a C compiler installed? apt-get install gcc libopenmpi-dev, or libmpich-dev)",
        timeout_s=_LIMIT_S,
        environment=dict(environment),
    )
    if _SIMULATED in done.stdout:
        raise EnvironmentProblem(
            f"{mpicc} is SimGrid's compiler wrapper, which simulates MPI; give that of an MPI library"
        )
    values = dict(re.findall(r"^#define (\w+) (\S+)", done.stdout, re.MULTILINE))
    family, macros = next(
        ((name, macros) for name, macros in _MACROS if all(macro in values for macro in macros)), ("", ())
    )
    version = ".".join(values[macro].strip('"') for macro in macros)

    def sibling(stems: tuple[str, ...]) -> Path | None:
        paths = (mpicc.parent / name for name in _sibling_names(mpicc, family, stems))
        return next((path for path in paths if os.access(path, os.X_OK)), None)

    launcher = _launcher_of(mpicc, family, environment)
    return MpiLibrary(family, version, mpicc, sibling(CXX_NAMES), sibling(FORTRAN_NAMES), launcher, environment)


def _launcher_of(mpicc: Path, family: str, environment: tuple[tuple[str, str], ...]) -> mpi_launcher.Launcher | None:
    paths = [mpicc.parent / name for name in _sibling_names(mpicc, family, mpi_launcher.LAUNCHER_NAMES[:2])]
    on_path = shutil.which("mpirun")
    for path in [*paths, *([Path(on_path)] if on_path is not None else [])]:
        if os.access(path, os.X_OK) and (launcher := mpi_launcher.launcher_at(path, environment)).starts(family):
            return launcher
    return None


def _environment_of(folder: Path) -> tuple[tuple[str, str], ...]:
    """What a library needs whose folder `bin` is not on PATH."""
    search = os.environ.get("PATH", os.defpath)
    if str(folder) in search.split(os.pathsep) or folder.name != "bin":
        return ()
    prefix = folder.parent
    variables = {"PATH": f"{folder}{os.pathsep}{search}"}
    libraries = [str(prefix / name) for name in ("lib", "lib64") if (prefix / name).is_dir()]
    if libraries:
        given = os.environ.get("LD_LIBRARY_PATH")
        variables["LD_LIBRARY_PATH"] = os.pathsep.join([*libraries, given] if given else libraries)
    if is_file(folder / "impi_info"):
        variables["I_MPI_ROOT"] = str(prefix)
    return tuple(sorted(variables.items()))


def _environment_of_module(module: str) -> dict[str, str]:
    """The variables to set in this process's environment for what an environment module brings.

    What the module puts before a list of folders is put before that of this process, which may be another one.
    Raises InputError for what is no module's name, EnvironmentProblem where there is no such module or no such command.
    """
    if not module or module.startswith("-"):
        raise InputError(f"{module!r} is not the name of an environment module")
    words = ["bash", "-l", "-c", _LOAD_MODULE, "bash", module]
    done = run_command(words, what=f"module load {module}", timeout_s=_LIMIT_S)
    before, after = (
        {
            name: value
            for name, equals, value in (entry.partition("=") for entry in part.split("\0"))
            if equals and name.isidentifier()
        }
        for part in done.stdout.split(f"\0{_MARK}\0")[1:]
    )
    changes = {}
    for name, value in after.items():
        old = before.get(name, "")
        if name not in _OF_THE_SHELL and (name not in before or value != old):
            continues = old and name in os.environ and value.endswith(os.pathsep + old)
            changes[name] = value.removesuffix(old) + os.environ[name] if continues else value
    return changes
