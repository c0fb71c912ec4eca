"""A real run, recorded: a preloaded library writes its MPI and BLAS calls."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.builds import built_once, digests
from lepaute.kit.command import end_session
from lepaute.kit.files import scratch_folder
from lepaute.kit.mpi_launcher import OPEN_MPI, Launcher, find_launcher
from lepaute.kit.mpi_library import MpiLibrary, check_program, check_same_library, find_library, library_of_launcher
from lepaute.kit.temporary import check_room, plain_name, temporary_parent
from lepaute.measure.hpl_source import HPL_KERNELS, build_hpl, hpl_include_flags
from lepaute.measure.machine_load import load_between, sample
from lepaute.measure.record_file import read_rank, trace_of_records
from lepaute.measure.toolchain import C_FLAGS, find_toolchain, probe_source
from lepaute.simulate.trace import Trace
from lepaute.version import __version__

LIBRARY = "liblepaute-record.so"
HPL = "xhpl-lepaute"
FOLDER_VARIABLE = "LEPAUTE_RECORD_FOLDER"
EVERY_CALL_VARIABLE = "LEPAUTE_RECORD_EVERY_CALL"

_PARTS = "file world clock core init sites regions fortran mpi requests collectives neighbours blas".split()
_CLOCKS = ("clock_exchange", "clock_offset", "clock_model")
_SOURCES = tuple(f"{name}.c" for name in (*(f"record_{part}" for part in _PARTS), *_CLOCKS))
_HPL_SOURCES = ("xhpl_lepaute.c", "hpl_defaults.c", "record_hpl_wraps.c")
#: HPL's loops and phases, which the linker hands to record_hpl_wraps.c; HPL_pdgesv and fopen to the driver, as always.
HPL_WRAPPED = (
    *HPL_KERNELS,
    *(f"HPL_pdupdate{form}" for form in ("TT", "TN", "NT", "NN")),
    *(f"HPL_{name}" for name in ("pdfact", "bcast", "bwait", "pdtrsv", "pdgesv0", "pdgesvK2", "pdgesv")),
    "fopen",
)


def record(
    words: Sequence[str],
    *,
    workspace: Path,
    mpicc: Path | None = None,
    dat: Path | None = None,
    solve: int = 1,
    every_call: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Trace:
    """Runs a command with its standard streams as they are, and returns what its ranks did. Its metadata have its
    returncode, negative for a signal, and disturbed_by, causes of disturbance on this machine.

    words    : mpirun, its options, the program and its arguments. The word xhpl-lepaute stands for the HPL that is
               built here, whose own loops are recorded too
    workspace: a folder that all nodes see; the raw files are in it while the program runs
    mpicc    : the MPI library that the program uses, as find_library() takes it; by default the launcher's
    dat      : input file for that HPL, by default HPL.dat where the working folder has one
    solve    : which of the program's timed regions, see trace_of_records
    every_call: a row also for each of many successive probes that find nothing, and for kernels without columns

    Raises InputError for a command that cannot be run, EnvironmentProblem if a tool or all results are missing.
    """
    if not words:
        raise InputError("no command was given; write lepaute record -- mpirun -np 2 PROGRAM")
    launcher, library = library_of_command(words, mpicc)
    command, input_text = list(words), None
    if HPL in command and shutil.which(HPL) is None:
        command[command.index(HPL)] = str(build_recorded_hpl(library, progress))
        input_text = _hpl_input(dat)
    elif dat is not None:
        raise InputError(f"--dat is for the program {HPL}, which the command does not name")
    program = _program(command, launcher)
    if program is not None:
        check_program(launcher, program)
    recorder = build_recorder(library, progress)
    check_room(temporary_parent())  # where launchers keep their sessions
    with scratch_folder(workspace) as temporary:
        raw = (temporary / "ranks").resolve()
        raw.mkdir()
        folder = None
        if input_text is not None:
            folder = temporary
            (folder / "hpccinf.txt").write_text(input_text)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        with plain_name(recorder, temporary.resolve()) as preloaded:
            before = sample()
            returncode = _run(launcher, command, _variables(preloaded, raw, every_call), folder)
        load = load_between(before, sample(), os.cpu_count() or 1)
        if launcher.family != OPEN_MPI:  # in an allocation others start ranks that are no children of theirs
            load = load.with_own(load.own_cpu_s + load.others_cpu_s)
        files = sorted(raw.glob("rank-*.rec"))
        if not files:
            raise EnvironmentProblem(_nothing(returncode, library.mpicc))
        records = [read_rank(path) for path in files]
        metadata: dict[str, Any] = {
            "source": "recording",
            "application": program.name if program is not None else Path(words[-1]).name,
            "command": " ".join(words),
            "created": created,
            "version": __version__,
            "returncode": returncode,
            "disturbed_by": list(load.disturbances()),
            "load": asdict(load),
        }
        return trace_of_records(records, metadata, solve)


#: Programs of MPI libraries; where one is not there, find_launcher() says what to install.
_LAUNCHERS = frozenset({"mpirun", "mpiexec"})


def library_of_command(words: Sequence[str], mpicc: Path | None = None) -> tuple[Launcher, MpiLibrary]:
    """The launcher of a command, and the MPI library that the recorder is built for.

    mpicc: that library, as find_library() takes it; by default the one that belongs to the launcher
    Raises InputError for no such program, or two of different libraries; EnvironmentProblem for lack of tools.
    """
    if shutil.which(words[0]) is None and Path(words[0]).name not in _LAUNCHERS:
        raise InputError(f"{words[0]}: no such program; write lepaute record -- mpirun -np 2 PROGRAM")
    launcher = find_launcher(words[0])
    if mpicc is None:
        return launcher, library_of_launcher(launcher)
    try:
        library = find_library(mpicc)
    except InputError as problem:
        raise InputError(f"--mpicc {problem}") from None
    check_same_library(launcher, library)
    return launcher, library


def _variables(recorder: Path, raw: Path, every_call: bool) -> dict[str, str]:
    preloaded = os.environ.get("LD_PRELOAD")
    variables = {"LD_PRELOAD": f"{recorder}:{preloaded}" if preloaded else str(recorder), FOLDER_VARIABLE: str(raw)}
    return variables | ({EVERY_CALL_VARIABLE: "1"} if every_call else {})


def _run(launcher: Launcher, words: Sequence[str], variables: dict[str, str], folder: Path | None) -> int:
    """Exit status of the command; when this process is interrupted, all of the command's processes end first."""
    environment = dict(os.environ)
    if not launcher.passes_variables:
        environment |= variables
    # What HPL finds in its folder is a file of ours; output and relative paths of other programs are the user's.
    stdin = subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None
    argv = launcher.command(words, variables)
    sys.stdout.flush()
    try:
        process = subprocess.Popen(argv, env=environment, stdin=stdin, start_new_session=True, cwd=folder)
    except OSError as problem:
        raise InputError(f"{argv[0]} cannot be started: {problem.strerror}") from None
    try:
        return process.wait()
    except BaseException:
        end_session(process)
        raise


def _nothing(returncode: int, mpicc: Path) -> str:
    if returncode != 0:
        status = f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
        return f"the program ended with {status} before MPI_Init; nothing was recorded"
    return (
        f"the program left no recording: it did not call MPI_Init, or its MPI library is linked statically or is not "
        f"that of {mpicc} (then give --mpicc), or it calls MPI from Fortran by other names than gfortran's"
    )


def _program(words: Sequence[str], launcher: Launcher) -> Path | None:
    """The first word after the launcher that is the path of a file which can be run, else the name of a program."""
    words = words[1:] if launcher.family else words
    for word in words:
        if "/" in word and os.access(word, os.X_OK) and Path(word).is_file():
            return Path(word)
    found = [shutil.which(word) for word in words if not word.startswith("-") and "/" not in word]
    return next((Path(path) for path in found if path), None)


def _hpl_input(dat: Path | None) -> str | None:
    path = dat
    if path is None:
        if Path("hpccinf.txt").exists():
            return None
        path = Path("HPL.dat")
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not a text file"
        raise InputError(f"{path}: {reason}; {HPL} reads HPL.dat of the working folder, or the file of --dat") from None


def build_recorder(library: MpiLibrary, progress: Callable[[str], None] | None = None) -> Path:
    """The preloaded library that records programs of one MPI library; built at first use, in the cache."""

    def build(folder: Path) -> None:
        if progress is not None:
            progress("compiling the recorder that is loaded into the program (once per MPI library)")
        sources = [str(probe_source() / name) for name in _SOURCES]
        words = ("-fPIC", "-fvisibility=hidden", "-shared", "-pthread", *sources, "-ldl", "-lm")
        library.compile([*C_FLAGS, *words, "-o", str(folder / LIBRARY)], what="building the recorder")

    inputs = _digests(_SOURCES)
    return built_once("recorder", [*inputs, library.identity, *C_FLAGS], LIBRARY, build) / LIBRARY


def build_recorded_hpl(library: MpiLibrary, progress: Callable[[str], None] | None = None) -> Path:
    """xhpl-lepaute with HPL's loops and phases recorded too: linked of the objects that `verify` runs."""
    tools = find_toolchain(library)
    hpl = build_hpl(progress, tools)

    def build(folder: Path) -> None:
        sources = [str(probe_source() / name) for name in _HPL_SOURCES]
        wraps = [f"-Wl,--wrap={symbol}" for symbol in HPL_WRAPPED]
        words = [*C_FLAGS, *hpl_include_flags(hpl), *sources, *wraps, str(hpl / "libhpl.a")]
        words += [*tools.blas_flags, "-lm", "-ldl", "-o", str(folder / HPL)]
        library.compile(words, what=f"building {HPL} for recordings")

    inputs = _digests(_HPL_SOURCES)
    return built_once("recorded-hpl", [*inputs, hpl.name, *HPL_WRAPPED, *C_FLAGS], HPL, build) / HPL


def _digests(sources: Sequence[str]) -> list[str]:
    return digests([*(probe_source() / name for name in sources), *sorted(probe_source().glob("*.h"))])
