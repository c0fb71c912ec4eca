"""What is installed, what is missing and which command installs it, and what would disturb a measurement."""

import os
import resource
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lepaute.errors import EnvironmentProblem, LepauteError
from lepaute.kit.builds import cache_folder
from lepaute.kit.extras import missing_modules
from lepaute.kit.files import is_file
from lepaute.kit.later import later
from lepaute.kit.mpi_launcher import LAUNCHER_PACKAGE, find_launcher
from lepaute.kit.mpi_library import WRAPPER_PACKAGE, find_library, installed_libraries
from lepaute.kit.temporary import check_room, temporary_folder, temporary_parent
from lepaute.kit.text import size_text
from lepaute.measure.hpl_source import OVERRIDE, TARBALL
from lepaute.measure.kernel_set import choose_kernel_set
from lepaute.measure.layout import layout_here
from lepaute.measure.node_agent.facts import cpu_flags, cpu_model, first_line, memory_bytes
from lepaute.measure.node_agent.system_files import run_command

if TYPE_CHECKING:
    import psutil
else:
    psutil = later("psutil")


#: "later": not there yet, and made where it is needed.
Status = Literal["ok", "later", "warning", "missing"]

#: How long the load of others is watched.
WATCH_S = 0.5
_BUSY_SHARE = 0.05
_WANTED_STACK_BYTES = 8 << 20
_MIN_OPEN_FILES = 1024
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
    """All checks. Takes about four seconds."""
    checks: list[Check] = []
    for number, (title, check) in enumerate(_CHECKS.items()):
        if progress is not None:
            progress(title, number / len(_CHECKS))
        try:
            checks.extend(check())
        except OSError as problem:
            state = f"not known: {problem.filename}: {problem.strerror}"
            checks.append(Check(title, "warning", state, "let this user read it, or name another folder"))
    return checks


def check_compiler() -> Iterator[Check]:
    path = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if path is None:
        yield Check("C compiler", "missing", "none", "apt-get install gcc libc6-dev")
    elif (version := first_line((path, "--version"))) is None:
        yield Check("C compiler", "missing", f"{path} does not run", "apt-get install --reinstall gcc")
    else:
        yield Check("C compiler", "ok", version)


def check_mpi() -> Iterator[Check]:
    """The MPI library: its compiler wrapper and its launcher, which must belong together."""
    library = None
    try:
        library = find_library()
        others = [str(other) for other in installed_libraries() if other.identity != library.identity]
        yield Check("mpicc", "ok", "; also ".join(filter(None, (str(library), ", ".join(others)))))
    except EnvironmentProblem:
        path = shutil.which("mpicc")
        state = "none" if path is None else f"{path} does not compile"
        yield Check("mpicc", "missing", state, f"apt-get install {WRAPPER_PACKAGE}")
    install = f"apt-get install {LAUNCHER_PACKAGE}"
    try:
        launcher = find_launcher()
    except EnvironmentProblem:
        yield Check("mpirun", "missing", "none", install)
        return
    if not launcher.family:
        yield Check("mpirun", "missing", f"{launcher.path} does not run", install)
    elif library is not None and not launcher.starts(library.family):
        remedy = "choose one library: update-alternatives --config mpirun"
        yield Check("mpirun", "missing", f"{launcher}, which cannot start programs built with mpicc", remedy)
    else:
        yield Check("mpirun", "ok", str(launcher))


def check_blas() -> Iterator[Check]:
    """The BLAS library: whether programs can be linked with it, which kernels run, and how fast."""
    install = "apt-get install libopenblas-dev"
    if links_with("openblas") is False:
        yield Check("BLAS to link with", "missing", "the linker cannot find libopenblas", install)
    try:
        chosen = choose_kernel_set()
    except LepauteError as problem:
        yield Check("BLAS kernels", "missing", str(problem).partition(";")[0], install)
        return
    version = " ".join(chosen.config.split()[:2])
    state = f"{version}, {chosen.core_name} kernels, {chosen.gflops:.1f} Gflop/s a core (dgemm)"
    yield Check("BLAS kernels", "warning" if chosen.warnings else "ok", state, "; ".join(chosen.warnings))


def links_with(library: str) -> bool | None:
    """Whether an empty program can be linked with lib<library>; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    with temporary_folder("lepaute-link-") as folder:
        source = folder / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        ran = run_command([compiler, str(source), f"-l{library}", "-o", str(source.with_suffix(""))], 30.0)
    return None if ran.returncode is None else ran.returncode == 0


def check_temporary() -> Iterator[Check]:
    """The folder for temporary files, which every build and measurement writes to."""
    name = "temporary files"
    try:
        folder = temporary_parent()
        check_room(folder)
        yield Check(name, "ok", str(folder))
    except EnvironmentProblem as problem:
        yield Check(name, "missing", str(problem), "set TMPDIR to a folder that can be written, with room")


def check_hpl() -> Iterator[Check]:
    """HPL: built already, or its source at hand or to be had through apt."""
    name = "HPL"
    given, kept = os.environ.get(OVERRIDE), cache_folder() / "downloads" / TARBALL
    entries = [*Path("/etc/apt").glob("sources.list*"), *Path("/etc/apt").glob("sources.list.d/*")]
    there = next(path for path in (cache_folder(), *cache_folder().parents) if os.access(path, os.F_OK))
    if given and not is_file(given):
        yield Check(name, "missing", f"{OVERRIDE} is {given}; no such file", f"set it to the path of {TARBALL}")
    elif any(cache_folder().glob("*/xhpl-lepaute")):
        yield Check(name, "ok", "built")
    elif not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        state = f"not built, and {cache_folder()} cannot be written"
        yield Check(name, "missing", state, "set LEPAUTE_HOME to a folder that can")
    elif given or is_file(kept):
        yield Check(name, "later", f"not built yet; source available ({given or kept})")
    elif shutil.which("apt-get") is None or not any(map(is_file, entries)):
        remedy = f"copy {TARBALL} of Debian's source package hpcc here and set {OVERRIDE} to its path"
        yield Check(name, "missing", "not built, and apt is missing to fetch its source", remedy)
    else:
        yield Check(name, "later", "not built yet; its source (Debian package hpcc) will be fetched by apt")


def _check_cache() -> Iterator[Check]:
    """Where builds and downloads are kept: what is left of Lepaute when it is uninstalled."""
    size = sum(Path(folder, name).lstat().st_size for folder, _, names in os.walk(cache_folder()) for name in names)
    yield Check("cache", "ok", f"{size / 1e6:.0f} MB in {cache_folder()}, which may be removed at any time")


def check_simgrid() -> Iterator[Check]:
    """SimGrid, which only `lepaute emulate` needs: without it nothing is missing for a calibration."""
    name, install = "SimGrid", "to emulate programs: apt-get install libsimgrid-dev gfortran g++"
    lacking = [program for program in ("smpirun", "smpicc", "smpicxx", "smpiff", "g++") if not shutil.which(program)]
    if lacking:
        yield Check(name, "warning", "none" if len(lacking) == 5 else f"without {', '.join(lacking)}", install)
    elif (version := first_line(("smpirun", "-version"))) is None:
        yield Check(name, "warning", "smpirun does not run", install)
    else:
        yield Check(name, "ok", version.removeprefix("SimGrid version "))


#: Optional programs of experiments: program, its Debian package, and what is missing without it.
_TOOLS = (
    ("ssh", "openssh-client", "other nodes"),
    ("stress-ng", "stress-ng", "warming up, workloads of the node test"),
    ("lstopo-no-graphics", "hwloc-nox", "the topology in archives"),
    ("lspci", "pciutils", "devices in archives"),
    ("dmidecode", "dmidecode", "firmware in archives"),
)


def check_experiment_tools() -> Iterator[Check]:
    """Programs of the system that `lepaute run` uses; without one, an archive says what it lacks."""
    name = "tools of experiments"
    lacking = [(program, package, what) for program, package, what in _TOOLS if not shutil.which(program)]
    if lacking:
        state = ", ".join(f"no {program} ({what})" for program, _, what in lacking)
        yield Check(name, "warning", state, f"apt-get install {' '.join(package for _, package, _ in lacking)}")
    else:
        yield Check(name, "ok", ", ".join(program for program, _, _ in _TOOLS))


def check_extras() -> Iterator[Check]:
    """The extras of the package; predictions need none, a calibration needs `fit`."""
    lack = missing_modules()
    absent = [name for name, modules in lack.items() if modules]
    found = ", ".join(name for name in lack if name not in absent) or "none"
    if absent:
        found += "; not " + ", ".join(f"{name} ({', '.join(lack[name])})" for name in absent)
    remedy = f"pip install 'lepaute[{','.join(absent)}]', or those of them that you need" if absent else ""
    yield Check("extras", "warning" if "fit" in absent else "ok", found, remedy)


def check_cores() -> Iterator[Check]:
    layout, threads = layout_here(), len(os.sched_getaffinity(0))
    cores = len(layout.cores)
    sockets = "" if len(layout.sockets) < 2 else f" on {len(layout.sockets)} sockets"
    part = "" if threads == os.cpu_count() else f", {threads} of {os.cpu_count()} hardware threads"
    state = f"{cores} cores{sockets}{part}, {memory_bytes() / 1e9:.1f} GB of memory, {cpu_model()}"
    remedy = "measure messages on a machine with at least two cores, or widen the CPU affinity of this shell (taskset)"
    few = cores < 2
    yield Check("cores and memory", "missing" if few else "ok", state, remedy if few else "")


def check_frequency() -> Iterator[Check]:
    """Whether the clock of the cores is held: governor and boost."""
    name = "frequency governor"
    governors = sorted({_read(path) for path in _CPU.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {""})
    if not governors:
        state = "the frequency cannot be controlled" + (", as usual in a virtual machine" if _virtual() else "")
        yield Check(name, "warning", state, "nothing to do; the blocks of a calibration measure the drift")
    elif governors != ["performance"]:
        yield Check(name, "warning", ", ".join(governors), "cpupower frequency-set -g performance")
    else:
        yield Check(name, "ok", "performance")
    boost, no_turbo = _read(_CPU / "cpufreq/boost"), _read(_CPU / "intel_pstate/no_turbo")
    if boost == "1" or no_turbo == "0":
        knob, off = ("cpufreq/boost", "0") if boost == "1" else ("intel_pstate/no_turbo", "1")
        remedy = f"for steadier measurements: echo {off} > {_CPU / knob}"
        yield Check("turbo", "warning", "on: the frequency depends on temperature and load", remedy)
    elif boost or no_turbo:
        yield Check("turbo", "ok", "off")


def check_virtual() -> Iterator[Check]:
    """Virtual machines share their host; hyper-threads share their core."""
    if _virtual():
        remedy = "expect noise from neighbours; disturbed runs are detected and marked"
        yield Check("virtual machine", "warning", "yes (hypervisor)", remedy)
    else:
        yield Check("virtual machine", "ok", "no")
    if _read(_CPU / "smt/active") == "1":
        remedy = f"use one hardware thread per core, or: echo off > {_CPU / 'smt/control'}"
        yield Check("hyper-threads", "warning", "on: two ranks may share a core", remedy)
    else:
        yield Check("hyper-threads", "ok", "off, or not visible")


def check_load() -> Iterator[Check]:
    """Processes of others that use the processor now, and time that the hypervisor takes."""
    steal_before = getattr(psutil.cpu_times(), "steal", 0.0)
    watched = [process for process in psutil.process_iter() if process.pid != os.getpid()]
    for process in watched:
        _share(process, None)
    psutil.cpu_percent(WATCH_S)
    seen = [(_share(process, None), process) for process in watched]
    busy = sorted(((share, process.pid, process) for share, process in seen if share > _BUSY_SHARE), reverse=True)
    steal_s = getattr(psutil.cpu_times(), "steal", 0.0) - steal_before
    if busy:
        names = ", ".join(f"{_name(process)} at {100 * share:.0f} %" for share, _, process in busy[:3])
        more = f" and {len(busy) - 3} more" if len(busy) > 3 else ""
        yield Check("other load", "warning", f"{names}{more}", "wait until they finish, or stop them")
    else:
        yield Check("other load", "ok", f"nothing above {100 * _BUSY_SHARE:.0f} % of a core")
    if steal_s > 0.02 * WATCH_S:
        state = f"the hypervisor took {100 * steal_s / WATCH_S:.0f} % of a core"
        yield Check("stolen time", "warning", state, "measure at a quieter time, or on a dedicated machine")


def check_limits() -> Iterator[Check]:
    for name, number, least, text_of, remedy in (
        ("stack", resource.RLIMIT_STACK, _WANTED_STACK_BYTES, size_text, "ulimit -s 8192"),
        ("open files", resource.RLIMIT_NOFILE, _MIN_OPEN_FILES, str, f"ulimit -n {_MIN_OPEN_FILES}"),
        # Locked memory matters to network cards only: a figure to know, not a fault of a single machine.
        ("locked memory", resource.RLIMIT_MEMLOCK, 0, size_text, ""),
    ):
        soft, _hard = resource.getrlimit(number)
        enough = soft == resource.RLIM_INFINITY or soft >= least
        state = "unlimited" if soft == resource.RLIM_INFINITY else text_of(soft)
        yield Check(f"limit: {name}", "ok" if enough else "warning", state, "" if enough else remedy)


def _name(process: object) -> str:
    """Name of a process for a person: its program and number; the number alone where it has ended."""
    assert isinstance(process, psutil.Process)
    try:
        return f"{process.name()} (process {process.pid})"
    except psutil.Error:
        return f"process {process.pid}"


def _share(process: object, interval: float | None) -> float:
    """Share of one core that a process used since the last call; 0 if it is gone or hidden."""
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


#: By title, in the order of the path: build, libraries, machine, disturbances.
_CHECKS: dict[str, Callable[[], Iterator[Check]]] = {
    "C compiler": check_compiler,
    "MPI": check_mpi,
    "BLAS": check_blas,
    "temporary files": check_temporary,
    "HPL": check_hpl,
    "cache": _check_cache,
    "SimGrid": check_simgrid,
    "tools of experiments": check_experiment_tools,
    "extras": check_extras,
    "cores and memory": check_cores,
    "frequency": check_frequency,
    "virtualisation": check_virtual,
    "other load": check_load,
    "limits": check_limits,
}
