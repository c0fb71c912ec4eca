"""The MPI libraries of a campaign: named by the user, each with the probe that its own mpicc has compiled.

Whether the variables that set a library have an effect: Open MPI's parameters are those that ompi_info(1) and
prte_info(1) list, MPICH's those whose names are in its shared library, which looks each up by its name. UCX says itself
what it ignores; what libfabric knows is not looked up.
"""

import difflib
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.builds import built_once, digests
from lepaute.kit.command import run_command
from lepaute.kit.mpi_launcher import INTEL_MPI, LAUNCHER_NAMES, MPICH, MVAPICH, OPEN_MPI, TITLES, Launcher, launcher_at
from lepaute.kit.mpi_library import MpiLibrary, check_program, find_library
from lepaute.kit.numbers import texts
from lepaute.measure.archive.mpi_campaign import LibraryFacts
from lepaute.measure.comparison.factors import USUAL, Build
from lepaute.measure.toolchain import C_FLAGS, probe_source
from lepaute.version import __version__

MAX_LIBRARIES = 16
PROGRAM, ALGORITHMS = "probe-collectives", "probe-algorithms"
UNKNOWN = "unknown"
_COMMON = ("collective_operations.c", "reductions.c", "probe_common.c", "probe_mpi.c")
#: What each program is compiled of.
SOURCES = {
    PROGRAM: (
        *("probe_collectives.c", "point_to_point.c", "one_sided.c", "process_sync.c", "clock_sync.c"),
        *("clock_exchange.c", "clock_model.c", "clock_offset.c", "clock_source.c", "transports.c", *_COMMON),
    ),
    ALGORITHMS: ("probe_algorithms.c", *_COMMON),
}
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}")
_LABELLED = re.compile(r"([^=/:,]+)=(.+)", re.DOTALL)
#: Before each variable that a library is measured with: openmpi,OMPI_MCA_pml=ob1.
_VARIABLE = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_]*=)")
_ASK_S = 30.0
#: Beginnings of the variables that set a library, and what it sends messages with.
PRELOAD = "LD_PRELOAD"
_TRANSPORTS = ("UCX_", "FI_", PRELOAD)
_PREFIXES = {
    OPEN_MPI: ("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_"),
    MPICH: ("MPIR_CVAR_", "MPICH_", "HYDRA_"),
    MVAPICH: ("MPIR_CVAR_", "MV2_", "MVP_"),
    INTEL_MPI: ("I_MPI_",),
}
#: A function that the library lacks ends the program when it is called, and says so.
_STUB = """
int {name}(void) {{
    fprintf(stderr, "probe-collectives: the library has no {name}\\n");
    exit(3);
}}
"""
_UNDEFINED = re.compile(r"undefined reference to [`']([A-Za-z_][A-Za-z0-9_]*)'")
_MAX_STUBS = 60
#: What tells of a library's configuration, beside its mpicc, and the line that does.
_BUILD_TOOLS = {
    OPEN_MPI: (("ompi_info", "--parsable"), re.compile(r"^config:cli:\s*(.*)$", re.MULTILINE)),
    MPICH: (("mpichversion",), re.compile(r"^MPICH configure:\s*(.*)$", re.MULTILINE)),
}


@dataclass(frozen=True, slots=True)
class NamedLibrary:
    """A library as the user named it; label: what tables call it; variables: of its programs, beside its own."""

    label: str
    spec: str
    library: MpiLibrary
    launcher: Launcher
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """All that its programs get beside the environment of this process."""
        return {**dict(self.library.environment), **dict(self.variables)}

    def settings(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The variables that set it: those that its specification gives, and what an environment has of its own, or of
        what it sends messages with."""
        prefixes = (*_PREFIXES.get(self.library.family, ()), *_TRANSPORTS)
        variables = {**environ, **self.environment}
        found = {name: value for name, value in variables.items() if value and name.startswith(prefixes)}
        return dict(sorted({**found, **dict(self.variables)}.items()))


@dataclass(frozen=True, slots=True)
class ReadyLibrary:
    """A library with its compiled probe, and what is known of it before it runs."""

    named: NamedLibrary
    program: Path
    facts: LibraryFacts
    build: Build = USUAL

    @property
    def label(self) -> str:
        return self.named.label

    @property
    def key(self) -> str:
        """Key of its program among those of a campaign."""
        return f"{self.label}{self.build.key}"


def named_libraries(specs: Sequence[str]) -> list[NamedLibrary]:
    """The libraries that the user names: SPEC or LABEL=SPEC, with variables of the environment: SPEC,NAME=VALUE,...

    SPEC: a family (openmpi, mpich), a prefix (/opt/mpi), a compiler wrapper (mpicc.mpich), or module:NAME. Without a
    label, the last part of SPEC is the label. Raises InputError if a spec names nothing or two labels are equal,
    EnvironmentProblem if a library has no mpirun of its own.
    """
    specs = texts(specs, "libraries", '["openmpi", "mpich"]')
    if not 1 <= len(specs) <= MAX_LIBRARIES:
        raise InputError(f"{len(specs)} libraries are named; name 1 to {MAX_LIBRARIES}")
    named = [_named(spec) for spec in specs]
    for label, count in Counter(each.label for each in named).items():
        if count > 1:
            raise InputError(f"{count} libraries are called {label}; name them apart, such as first={label} second=...")
    return named


def _named(text: str) -> NamedLibrary:
    match = _LABELLED.fullmatch(text)
    label, spec = (match[1], match[2]) if match else ("", text)
    spec, *settings = _VARIABLE.split(spec)
    if not label:
        last = spec.removeprefix("module:").rstrip("/") if spec.startswith("module:") else Path(spec).name
        label = re.sub(r"[^A-Za-z0-9_.+-]", "-", last).lstrip("-._+")[:40]
    if not _LABEL.fullmatch(label):
        raise InputError(
            f"{text[:80]!r}: {label[:40]!r} cannot be a label; write LABEL=SPEC with letters, digits, _ . + and -"
        )
    library = find_library(spec)
    if library.launcher is None:
        raise EnvironmentProblem(f"{label}: {_no_launcher(library)}")
    variables = tuple((name, value) for name, _, value in (setting.partition("=") for setting in settings))
    return NamedLibrary(label, ",".join((spec, *settings)), library, library.launcher, variables)


def _no_launcher(library: MpiLibrary) -> str:
    folder = library.mpicc.parent
    beside = next((folder / name for name in LAUNCHER_NAMES if (folder / name).is_file()), None)
    if beside is not None and (family := launcher_at(beside, library.environment).family):
        return (
            f"{beside} belongs to {TITLES[family]}, {library.mpicc} to {TITLES[library.family]}: "
            "a library is measured with its own mpirun; give a prefix that has both"
        )
    return f"no mpirun of {TITLES[library.family]} was found beside {library.mpicc}; install it, or give another prefix"


#: Variables that make mpicc call another compiler than its own.
_COMPILER = {OPEN_MPI: "OMPI_CC", MPICH: "MPICH_CC", MVAPICH: "MPICH_CC", INTEL_MPI: "I_MPI_CC"}


def ready_library(named: NamedLibrary, tell: Callable[[str], None], build: Build) -> ReadyLibrary:
    """Compiles the probe, unless it is there already, and asks the library's own programs what they are.

    Raises EnvironmentProblem if the probe cannot be compiled, InputError if it is linked to another mpirun's library.
    """
    library = named.library
    if build.compiler:
        if shutil.which(build.compiler) is None:
            raise EnvironmentProblem(
                f"--factor compiler: there is no {build.compiler} here; install it, or leave it out"
            )
        chosen = (_COMPILER.get(library.family, "MPICH_CC"), build.compiler)
        library = replace(library, environment=(*library.environment, chosen))
    c_flags = (*C_FLAGS, *build.flags.split())
    compiler = _said(library, [str(library.mpicc), "--version"]).partition("\n")[0]
    command = _said(library, [str(library.mpicc), "-show"])
    sources = {name: [probe_source() / source for source in needed] for name, needed in SOURCES.items()}
    headers = sorted(probe_source().glob("*.h"))

    def compile_all(folder: Path) -> None:
        tell(f"compiling the probe for {named.label}")
        for name, needed in sources.items():
            words = [*c_flags, f'-DLEPAUTE_VERSION="{__version__}"', *map(str, needed), "-lm", "-Wl,-z,lazy"]
            _compile(library, words, folder / name, f"building {name} for {named.label}")

    inputs = [
        *digests([*{each for needed in sources.values() for each in needed}, *headers, library.mpicc]),
        library.identity,
        compiler,
        command,
        __version__,
        *c_flags,
        _STUB,
    ]
    program = built_once("probe-collectives", inputs, PROGRAM, compile_all) / PROGRAM
    check_program(named.launcher, program)
    return ReadyLibrary(
        named,
        program,
        LibraryFacts(
            label=named.label,
            spec=named.spec,
            family=library.family,
            version=library.version,
            build=_build(library),
            mpicc=str(library.mpicc),
            mpirun=str(named.launcher.path),
            mpirun_version=named.launcher.version,
            compiler=compiler or UNKNOWN,
            flags=" ".join([command, *c_flags]).strip(),
            variables=named.environment,
            settings=named.settings(os.environ),
        ),
        build,
    )


def _compile(library: MpiLibrary, words: Sequence[str], program: Path, what: str) -> None:
    """Links a program, with stubs in the place of functions of MPI that the library lacks."""
    target = ["-o", str(program)]
    stubs, missing = program.with_suffix(".missing.c"), set[str]()
    while True:
        try:
            library.compile([*words, *([str(stubs)] if missing else []), *target], what=what)
        except EnvironmentProblem as problem:
            new = {name for name in _UNDEFINED.findall(str(problem)) if name.startswith("MPI_")} - missing
            missing |= new
            if not new or len(missing) > _MAX_STUBS:
                raise
            functions = "".join(_STUB.format(name=name) for name in sorted(missing))
            stubs.write_text(f"#include <stdio.h>\n#include <stdlib.h>\n{functions}")
        else:
            return


def _build(library: MpiLibrary) -> str:
    """How the library was configured, by its own tool, UNKNOWN where there is none beside it."""
    if library.family not in _BUILD_TOOLS:
        return UNKNOWN
    words, pattern = _BUILD_TOOLS[library.family]
    match = pattern.search(_said_by_tool(library, *words))
    return match[1].strip() if match else UNKNOWN


def _said_by_tool(library: MpiLibrary, tool: str, *options: str) -> str:
    """Output of a program that stands beside the library's mpicc prints, empty if there is none or where it fails."""
    suffix = library.mpicc.name.partition(".")[2]
    names = [f"{tool}.{suffix}", tool] if suffix else [tool]
    path = next(filter(None, (shutil.which(name, path=str(library.mpicc.parent)) for name in names)), None)
    return _said(library, [path, *options]) if path else ""


def _said(library: MpiLibrary, words: Sequence[str]) -> str:
    try:
        done = run_command(words, what=words[0], timeout_s=_ASK_S, environment=dict(library.environment))
    except EnvironmentProblem:
        return ""
    return done.stdout.strip()


_LINKER_S = 60.0
_PARAMETER = re.compile(r"^mca:[^:\n]*:[^:\n]*:param:([^:\n]+):", re.MULTILINE)
_INFO = (("ompi_info", "--all", "--level", "9", "--parsable"), ("prte_info", "--all", "--parsable"))
_CONTROL_VARIABLE = re.compile(rb"(?:MPIR_CVAR|MPIR_PARAM|MPICH)_[A-Z0-9_]+")
_LIBRARY_FILE = re.compile(r"\blib(?:mpi|mpich)\w*\.so\S* => (\S+)")
_NOT_PRELOADED = re.compile(r"object '([^']*)' from LD_PRELOAD cannot be preloaded \(([^)]*)\)")


def doubts(library: ReadyLibrary, ignored: Sequence[str]) -> list[str]:
    """A sentence for each variable that sets the library and has no effect; ignored: those of UCX, as it says."""
    named, settings = library.named, library.facts.settings
    family = named.library.family
    refused = dict(_NOT_PRELOADED.findall(_linked(library)[1])) if settings.get(PRELOAD) else {}
    lines = [f"{library.label}: {file} of {PRELOAD} is not loaded: {why}" for file, why in refused.items()]
    lines += [f"{named.label}: UCX knows no {name}, which has no effect" for name in ignored]
    prefix = {OPEN_MPI: "OMPI_MCA_", MPICH: "MPIR_CVAR_"}.get(family, "")
    asked = [name for name in settings if prefix and name.startswith(prefix)]
    known = _known(library, prefix) if asked else set()
    for name in asked:
        if known and name not in known:
            meant = difflib.get_close_matches(name, known, 1)
            lines.append(
                f"{named.label}: {TITLES[family]} {named.library.version} knows no {name}, which has no effect"
                + (f"; is {meant[0]} meant?" if meant else "")
            )
    return lines


def _known(library: ReadyLibrary, prefix: str) -> set[str]:
    """Names of all variables of the library; none where it does not tell."""
    named = library.named
    if named.library.family == OPEN_MPI:
        return {prefix + name for words in _INFO for name in _PARAMETER.findall(_said_by_tool(named.library, *words))}
    match = _LIBRARY_FILE.search(_linked(library)[0])
    try:
        content = Path(match[1]).read_bytes() if match else b""
    except OSError:
        return set()
    return {name.decode() for name in _CONTROL_VARIABLE.findall(content)}


def _linked(library: ReadyLibrary) -> tuple[str, str]:
    """Answer of the dynamic linker about the probe, on both streams, without running it (ld.so(8))."""
    variables = {**library.named.environment, "LD_TRACE_LOADED_OBJECTS": "1", "LC_ALL": "C"}
    try:
        done = run_command([library.program], what="the dynamic linker", timeout_s=_LINKER_S, environment=variables)
    except EnvironmentProblem:
        return "", ""
    return done.stdout, done.stderr
