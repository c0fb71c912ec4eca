"""What is installed, what is missing and which command installs it, and what would disturb a measurement."""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from lepaute.errors import EnvironmentProblem, LepauteError
from lepaute.kit.cache import cache_folder
from lepaute.kit.mpi_launcher import LAUNCHER_PACKAGE, find_launcher
from lepaute.kit.mpi_library import WRAPPER_PACKAGE, find_library, installed_libraries
from lepaute.kit.temporary import check_room, temporary_folder, temporary_parent
from lepaute.measure.hpl_source import OVERRIDE, TARBALL
from lepaute.measure.kernel_set import choose_kernel_set
from lepaute.measure.layout import layout_here
from lepaute.measure.node_agent.facts import cpu_flags, cpu_model, first_line, memory_bytes

Status = Literal["ok", "warning", "missing"]

#: How long the load of others is watched.
WATCH_S = 0.5
_BUSY_SHARE = 0.05
_WANTED_STACK_BYTES = 8 << 20
_WANTED_FILES = 1024
_CPU = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: `found` is the state of the machine, `remedy` what to do about it (empty when all is well)."""

    name: str
    status: Status
    found: str
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


def examine(progress: Callable[[str, float], None] | None = None) -> list[Check]:
    """All checks, in the order of the path: build, libraries, machine, disturbances. Takes about four seconds."""
    checks: list[Check] = []
    for number, (title, check) in enumerate(_CHECKS):
        if progress is not None:
            progress(title, number / len(_CHECKS))
        checks.extend(check())
    return checks


def something_missing(checks: Sequence[Check]) -> bool:
    """Whether a calibration cannot be made as things are."""
    return any(check.status == "missing" for check in checks)


def check_compiler() -> list[Check]:
    """The C compiler that builds the probes and HPL."""
    path = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if path is None:
        return [Check("C compiler", "missing", "none", "apt-get install gcc libc6-dev")]
    version = first_line((path, "--version"))
    if version is None:
        return [Check("C compiler", "missing", f"{path} does not run", "apt-get install --reinstall gcc")]
    return [Check("C compiler", "ok", version)]


def check_mpi() -> list[Check]:
    """The MPI library: its compiler wrapper and its launcher, which must belong together."""
    checks = []
    library = None
    try:
        library = find_library()
        others = [str(other) for other in installed_libraries() if other.identity != library.identity]
        more = f"; also {', '.join(others)}" if others else ""
        checks.append(Check("mpicc", "ok", f"{library}{more}"))
    except EnvironmentProblem:
        path = shutil.which("mpicc")
        state = "none" if path is None else f"{path} does not compile"
        checks.append(Check("mpicc", "missing", state, f"apt-get install {WRAPPER_PACKAGE}"))
    install = f"apt-get install {LAUNCHER_PACKAGE}"
    try:
        launcher = find_launcher()
    except EnvironmentProblem:
        return [*checks, Check("mpirun", "missing", "none", install)]
    if not launcher.family:
        return [*checks, Check("mpirun", "missing", f"{launcher.path} does not run", install)]
    if library is not None and not launcher.starts(library.family):
        remedy = "choose one library: update-alternatives --config mpirun"
        return [
            *checks,
            Check("mpirun", "missing", f"{launcher}, which cannot start programs built with mpicc", remedy),
        ]
    return [*checks, Check("mpirun", "ok", str(launcher))]


def check_blas() -> list[Check]:
    """The BLAS library: whether programs can be linked with it, which kernels run, and how fast."""
    install = "apt-get install libopenblas-dev"
    checks = []
    if links_with("openblas") is False:
        checks.append(Check("BLAS to link with", "missing", "the linker cannot find libopenblas", install))
    try:
        chosen = choose_kernel_set()
    except LepauteError as problem:
        return [*checks, Check("BLAS kernels", "missing", str(problem).partition(";")[0], install)]
    version = " ".join(chosen.config.split()[:2])
    state = f"{version}, {chosen.core_name} kernels, {chosen.gflops:.1f} Gflop/s a core (dgemm)"
    if chosen.warnings:
        return [*checks, Check("BLAS kernels", "warning", state, "; ".join(chosen.warnings))]
    return [*checks, Check("BLAS kernels", "ok", state)]


def links_with(library: str) -> bool | None:
    """Whether an empty program can be linked with lib<library>; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    with temporary_folder("lepaute-link-") as folder:
        source = folder / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        argv = [compiler, str(source), f"-l{library}", "-o", str(source.with_suffix(""))]
        try:
            return subprocess.run(argv, capture_output=True, timeout=30, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return None


def check_temporary() -> list[Check]:
    """The folder for temporary files, which every build and measurement writes to."""
    name = "temporary files"
    try:
        folder = temporary_parent()
        check_room(folder)
    except EnvironmentProblem as problem:
        return [Check(name, "missing", str(problem), "set TMPDIR to a folder that can be written, with room")]
    return [Check(name, "ok", str(folder))]


def check_hpl() -> list[Check]:
    """HPL: built already, or its source at hand or to be had through apt."""
    name = "HPL"
    given, kept = os.environ.get(OVERRIDE), cache_folder() / "downloads" / TARBALL
    if given and not Path(given).is_file():
        return [Check(name, "missing", f"{OVERRIDE} is {given}; no such file", f"set it to the path of {TARBALL}")]
    if any(cache_folder().glob("*/xhpl-lepaute")):
        return [Check(name, "ok", "built")]
    if not _can_be_made(cache_folder()):
        return [
            Check(
                name,
                "missing",
                f"not built, and {cache_folder()} cannot be written",
                "set LEPAUTE_HOME to a folder that can",
            )
        ]
    if given or kept.is_file():
        return [Check(name, "ok", f"not built yet; source available ({given or kept})")]
    entries = [*Path("/etc/apt").glob("sources.list*"), *Path("/etc/apt").glob("sources.list.d/*")]
    if shutil.which("apt-get") is None or not any(path.is_file() for path in entries):
        remedy = f"copy {TARBALL} of Debian's source package hpcc here and set {OVERRIDE} to its path"
        return [Check(name, "missing", "not built, and apt is missing to fetch its source", remedy)]
    return [Check(name, "ok", "not built yet; its source (Debian package hpcc) will be fetched by apt")]


def _can_be_made(folder: Path) -> bool:
    """Whether a folder can be written, or made."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def check_simgrid() -> list[Check]:
    """SimGrid, which only `lepaute emulate` needs: without it nothing is missing for a calibration."""
    name, install = "SimGrid", "to emulate programs: apt-get install libsimgrid-dev gfortran g++"
    lacking = [program for program in ("smpirun", "smpicc", "smpicxx", "smpif90", "g++") if not shutil.which(program)]
    if len(lacking) == 5:
        return [Check(name, "warning", "none", install)]
    if lacking:
        return [Check(name, "warning", f"without {', '.join(lacking)}", install)]
    version = first_line(("smpirun", "-version"))
    if version is None:
        return [Check(name, "warning", "smpirun does not run", install)]
    return [Check(name, "ok", version.removeprefix("SimGrid version "))]


#: Optional programs of experiments: program, its Debian package, and what is missing without it.
_TOOLS = (
    ("ssh", "openssh-client", "other nodes"),
    ("stress-ng", "stress-ng", "warming up"),
    ("numactl", "numactl", "memory policies"),
    ("lstopo-no-graphics", "hwloc-nox", "the topology in archives"),
    ("lspci", "pciutils", "devices in archives"),
    ("dmidecode", "dmidecode", "firmware in archives"),
)


def check_experiment_tools() -> list[Check]:
    """Programs of the system that `lepaute run` uses; without one, an archive says what it lacks."""
    name = "tools of experiments"
    lacking = [(program, package, what) for program, package, what in _TOOLS if not shutil.which(program)]
    if not lacking:
        return [Check(name, "ok", ", ".join(program for program, _, _ in _TOOLS))]
    state = ", ".join(f"no {program} ({what})" for program, _, what in lacking)
    return [Check(name, "warning", state, f"apt-get install {' '.join(package for _, package, _ in lacking)}")]


def check_cores() -> list[Check]:
    """Cores and memory that this process may use."""
    layout, threads = layout_here(), len(os.sched_getaffinity(0))
    cores = len(layout.cores)
    sockets = "" if len(layout.sockets) < 2 else f" on {len(layout.sockets)} sockets"
    part = "" if threads == os.cpu_count() else f", {threads} of {os.cpu_count()} hardware threads"
    state = f"{cores} cores{sockets}{part}, {memory_bytes() / 1e9:.1f} GB of memory, {cpu_model()}"
    if cores < 2:
        remedy = (
            "measure messages on a machine with at least two cores, or widen the CPU affinity of this shell (taskset)"
        )
        return [Check("cores and memory", "missing", state, remedy)]
    return [Check("cores and memory", "ok", state)]


def check_frequency() -> list[Check]:
    """Whether the clock of the cores is held: governor and boost."""
    governors = sorted({_read(path) for path in _CPU.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {""})
    checks = []
    if not governors:
        state = "the frequency cannot be controlled" + (", as usual in a virtual machine" if _virtual() else "")
        remedy = "nothing to do; the blocks of a calibration measure the drift"
        checks.append(Check("frequency governor", "warning", state, remedy))
    elif governors != ["performance"]:
        checks.append(
            Check("frequency governor", "warning", ", ".join(governors), "cpupower frequency-set -g performance")
        )
    else:
        checks.append(Check("frequency governor", "ok", "performance"))
    boost, no_turbo = _read(_CPU / "cpufreq/boost"), _read(_CPU / "intel_pstate/no_turbo")
    if boost == "1" or no_turbo == "0":
        knob, off = ("cpufreq/boost", "0") if boost == "1" else ("intel_pstate/no_turbo", "1")
        remedy = f"for steadier measurements: echo {off} > {_CPU / knob}"
        checks.append(Check("turbo", "warning", "on: the frequency depends on temperature and load", remedy))
    elif boost or no_turbo:
        checks.append(Check("turbo", "ok", "off"))
    return checks


def check_virtual() -> list[Check]:
    """Virtual machines share their host; hyper-threads share their core."""
    checks = []
    if _virtual():
        remedy = "expect noise from neighbours; disturbed runs are detected and marked"
        checks.append(Check("virtual machine", "warning", "yes (hypervisor)", remedy))
    else:
        checks.append(Check("virtual machine", "ok", "no"))
    if _read(_CPU / "smt/active") == "1":
        remedy = f"use one hardware thread per core, or: echo off > {_CPU / 'smt/control'}"
        checks.append(Check("hyper-threads", "warning", "on: two ranks may share a core", remedy))
    else:
        checks.append(Check("hyper-threads", "ok", "off, or not visible"))
    return checks


def check_load() -> list[Check]:
    """Processes of others that use the processor now, and time that the hypervisor takes."""
    import psutil

    steal_before = getattr(psutil.cpu_times(), "steal", 0.0)
    watched = [process for process in psutil.process_iter() if process.pid != os.getpid()]
    for process in watched:
        _share(process, None)
    psutil.cpu_percent(WATCH_S)
    seen = [(_share(process, None), process) for process in watched]
    busy = sorted(((share, process.pid) for share, process in seen if share > _BUSY_SHARE), reverse=True)
    steal_s = getattr(psutil.cpu_times(), "steal", 0.0) - steal_before
    checks = []
    if busy:
        names = ", ".join(f"process {pid} at {100 * share:.0f} %" for share, pid in busy[:3])
        more = f" and {len(busy) - 3} more" if len(busy) > 3 else ""
        checks.append(Check("other load", "warning", f"{names}{more}", "wait until they finish, or stop them"))
    else:
        checks.append(Check("other load", "ok", f"nothing above {100 * _BUSY_SHARE:.0f} % of a core"))
    if steal_s > 0.02 * WATCH_S:
        state = f"the hypervisor took {100 * steal_s / WATCH_S:.0f} % of a core"
        checks.append(Check("stolen time", "warning", state, "measure at a quieter time, or on a dedicated machine"))
    return checks


def check_limits() -> list[Check]:
    """Limits of this shell that MPI programs run into."""
    checks = []
    for name, number, least, unit, remedy in (
        ("stack", resource.RLIMIT_STACK, _WANTED_STACK_BYTES, " bytes", "ulimit -s 8192"),
        ("open files", resource.RLIMIT_NOFILE, _WANTED_FILES, "", f"ulimit -n {_WANTED_FILES}"),
    ):
        soft, _hard = resource.getrlimit(number)
        enough = soft == resource.RLIM_INFINITY or soft >= least
        state = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft}{unit}"
        checks.append(Check(f"limit: {name}", "ok" if enough else "warning", state, "" if enough else remedy))
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    # Locked memory matters to network cards only: a figure to know, not a fault of a single machine.
    state = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft} bytes"
    checks.append(Check("limit: locked memory", "ok", state))
    return checks


def _share(process: object, interval: float | None) -> float:
    """Share of one core that a process used since the last call; 0 where it is gone or hidden."""
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        return float(process.cpu_percent(interval)) / 100
    except psutil.Error:
        return 0.0


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _virtual() -> bool:
    return "hypervisor" in cpu_flags()


_CHECKS: tuple[tuple[str, Callable[[], list[Check]]], ...] = (
    ("C compiler", check_compiler),
    ("MPI", check_mpi),
    ("BLAS", check_blas),
    ("temporary files", check_temporary),
    ("HPL", check_hpl),
    ("SimGrid", check_simgrid),
    ("tools of experiments", check_experiment_tools),
    ("cores and memory", check_cores),
    ("frequency", check_frequency),
    ("virtualisation", check_virtual),
    ("other load", check_load),
    ("limits", check_limits),
)
