"""What a node is and runs: facts that a measurement is planned with, and the provenance that goes into an archive."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .redact import Redactor
from .system_files import Run, SystemFiles, parse_cpus, run_command, why

#: Variables whose values can change a measurement; of all others only the names are kept.
RELEVANT = re.compile(
    r"^(OMPI_|PMIX_|PRTE_|I_MPI_|MPICH_|MV2_|UCX_|FI_|PSM|OPENBLAS_|GOTO_|BLIS_|OMP_|MKL_|KMP_|GOMP_|LD_|MALLOC_"
    r"|GLIBC_TUNABLES|LEPAUTE_|SLURM_|OAR_|PBS_|LOADEDMODULES$|CUDA_|LANG$|LC_|PATH$|CC$|CXX$|FC$|CFLAGS$|TMPDIR$)"
)
#: Long enough for a cold start of any of them on a busy node.
COMMAND_LIMIT_S = 10.0
#: No member is larger: a kernel that complains without end would fill the archive.
LARGEST_BYTES = 4 << 20
_AT_ONCE = 4
_CPU = "sys/devices/system/cpu"
#: Member and its file; those with names that say so are of the first CPU.
_FILES = {
    "cpuinfo.txt": "proc/cpuinfo",
    "meminfo.txt": "proc/meminfo",
    "loadavg.txt": "proc/loadavg",
    "cmdline.txt": "proc/cmdline",
    "mounts.txt": "proc/mounts",
    "kernel.txt": "proc/version",
    "os-release.txt": "etc/os-release",
    "transparent_hugepage.txt": "sys/kernel/mm/transparent_hugepage/enabled",
    "numa_balancing.txt": "proc/sys/kernel/numa_balancing",
    "swappiness.txt": "proc/sys/vm/swappiness",
    "governor.txt": f"{_CPU}/cpu0/cpufreq/scaling_governor",
    "frequency_driver.txt": f"{_CPU}/cpu0/cpufreq/scaling_driver",
    "boost.txt": f"{_CPU}/cpufreq/boost",
    "no_turbo.txt": f"{_CPU}/intel_pstate/no_turbo",
    "smt.txt": f"{_CPU}/smt/control",
    "clocksource.txt": "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "microcode.txt": f"{_CPU}/cpu0/microcode/version",
}
#: Programs of hwloc that print the topology as XML.
LSTOPO = (("lstopo-no-graphics", "--of", "xml"), ("lstopo", "--of", "xml"), ("hwloc-ls", "--of", "xml"))
#: Member and the command lines that make it, the first that is installed and works.
_COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "uname.txt": (("uname", "-a"),),
    "lscpu.txt": (("lscpu",),),
    "lstopo.xml": LSTOPO,
    "lspci.txt": (("lspci", "-nn"),),
    "dmidecode.txt": (("dmidecode",),),
    "lsmod.txt": (("lsmod",),),
    "dmesg.txt": (("dmesg",),),
    "mpirun.txt": (("mpirun", "--version"),),
    "mpicc.txt": (("mpicc", "--showme:version"), ("mpicc", "-show")),
    "gcc.txt": (("gcc", "--version"),),
    "openblas.txt": (("dpkg-query", "-W"), ("rpm", "-qa")),
    "libraries.txt": (("ldconfig", "-p"),),
    "ulimit.txt": (("sh", "-c", "ulimit -a"),),
}
#: Lines kept of long lists: those that concern computing and communicating are kept.
_KEPT_LINES = {
    "libraries.txt": re.compile(
        r"blas|lapack|blis|mkl|libmpi|libfabric|libucp|libpsm|libibverbs|libpmix|libgomp|libc\.so", re.IGNORECASE
    ),
    "openblas.txt": re.compile(
        r"blas|lapack|blis|mkl|mpi|ucx|libfabric|pmix|^gcc|^gfortran|^clang|^llvm|^libc6[:\t]|^glibc"
        r"|^linux-image|^kernel|hwloc|numactl|slurm"
    ),
}
#: Values that are there for want of a serial number.
_NO_SERIAL = re.compile(
    r"\W*(|not (specified|provided|available|present|settable|applicable).*|n/?a|none|unknown|no asset.*|to be filled.*"
    r"|default string|system serial.*|0+|01234567.*)\W*",
    re.IGNORECASE,
)
_SERIALS = (
    re.compile(r"(?P<head>^\s*(?:Serial Number|UUID|Asset Tag|Service Tag):[ \t]*)(?P<value>[^\r\n]*)", re.MULTILINE),
    re.compile(r'(?P<head>name="\w{0,40}(?:Serial|UUID|AssetTag|SerialNumber)\w{0,20}" value=")(?P<value>[^"]*)'),
    re.compile(r"(?P<head>\bSerial ?Number:?[ \t]{1,3})(?P<value>\w[\w.-]{2,63})(?=[ \t]*$)", re.MULTILINE),
)
#: Six octets or more: of Ethernet, and of InfiniBand's longer ones.
_HARDWARE_ADDRESS = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5,31}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")
_NO_ADDRESS = re.compile(r"(?:00:)+00|(?:ff:)+ff", re.IGNORECASE)


def machine_facts() -> dict[str, Any]:
    """Processor, memory, cores, MPI and the choice of BLAS kernels that the environment makes."""
    return {
        "cpu_model": cpu_model(),
        "cpu_flags": sorted(cpu_flags()),
        "memory_bytes": memory_bytes(),
        "node_cores": os.cpu_count(),
        "mpi": first_line(("mpirun", "--version")),
        "coretype": os.environ.get("OPENBLAS_CORETYPE") or None,
    }


def first_line(argv: tuple[str, ...]) -> str | None:
    """The first line a short command printed on either stream; None when it does not start, hangs or prints nothing."""
    ran = run_command(list(argv), COMMAND_LIMIT_S)
    output = "" if ran.returncode is None else (ran.stdout + ran.stderr).decode(errors="replace")
    return output.splitlines()[0].strip() if output.strip() else None


def cpu_model() -> str:
    """The processor's name as the kernel gives it, or the architecture where it gives none."""
    return cpuinfo_field("model name") or platform.machine()


def cpu_flags() -> frozenset[str]:
    """Instruction-set flags of the first processor; empty if the kernel lists none."""
    return frozenset((cpuinfo_field("flags") or "").split())


def cpuinfo_field(field: str, text: str | None = None) -> str | None:
    """The first value of a field of /proc/cpuinfo (or of `text`), or None."""
    if text is None:
        try:
            text = Path("/proc/cpuinfo").read_text(errors="replace")
        except OSError:
            return None
    match = re.search(rf"^{re.escape(field)}[ \t]*:[ \t]*(.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def machine_load() -> dict[str, float]:
    """Counters now: busy and stolen seconds of all cores together, and CPU seconds of this process and its children.

    Children count from the moment they have been waited for.
    """
    busy_s, steal_s = parse_stat(Path("/proc/stat").read_text(), os.sysconf("SC_CLK_TCK"))
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    own_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return {"monotonic_s": time.monotonic(), "busy_s": busy_s, "steal_s": steal_s, "own_s": own_s}


def parse_stat(text: str, ticks_per_s: int) -> tuple[float, float]:
    """(busy, stolen) seconds of all cores since boot, from the first line of /proc/stat.

    Guest time is contained in user time there and must not be counted twice (proc(5)).
    """
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in text.split()[1:9])
    return (user + nice + system + irq + softirq) / ticks_per_s, steal / ticks_per_s


def layout_sources(files: SystemFiles, cpus: list[int]) -> dict[str, Any]:
    """`lstopo`: the XML or None; `sysfs`: of each of `cpus` the numbers that `from_sysfs` of the layout takes."""
    printed = (run_command(list(argv), COMMAND_LIMIT_S) for argv in LSTOPO)
    xml = next((ran.stdout.decode(errors="replace") for ran in printed if ran.returncode == 0), None)
    return {"lstopo": xml, "sysfs": [_place(files, cpu) for cpu in cpus]}


def _place(files: SystemFiles, cpu: int) -> dict[str, Any]:
    """Package, NUMA node and the CPUs that share core and last-level cache; null where the kernel does not tell."""
    shared = [files.read_or(name) for name in files.glob(f"{_CPU}/cpu{cpu}/cache/index*/shared_cpu_list")]
    nodes = files.glob(f"{_CPU}/cpu{cpu}/node[0-9]*")
    return {
        "cpu": cpu,
        "package": _number(files.read_or(f"{_CPU}/cpu{cpu}/topology/physical_package_id")),
        "numa": _number(nodes[0].rpartition("node")[2]) if nodes else None,
        "siblings": files.siblings(cpu),
        "cache": max((parse_cpus(text) for text in shared), key=len, default=[]),
    }


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isdigit() else None


def collect(files: SystemFiles, run: Run = run_command, environ: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """Name of a member (without folder) to its content; `absent.json` says what is missing or cut, and why.

    files  : the root of the system's files
    run    : runs a command for at most 10 s; several run at once
    environ: the variables to record in variables.json, by default none; secrets are kept out (redact.Redactor)

    Serial numbers, UUIDs, asset tags and hardware addresses are replaced by the first 12 digits of their SHA-256: a
    node, a disk or a memory module that is replaced can be seen over the years, and its number is in no archive. The
    digest hides such a number from readers, not from somebody who tries all numbers that a maker gives.
    """
    variables = {} if environ is None else environ
    redactor = Redactor(variables)
    absent: dict[str, str] = {}
    members: dict[str, bytes] = {}

    def keep(name: str, text: str) -> None:
        data = without_identities(redactor.redact(text)).encode(errors="replace")
        if len(data) > LARGEST_BYTES:
            absent[name] = f"cut: the last {LARGEST_BYTES} of {len(data)} bytes are kept"
            data = data[-LARGEST_BYTES:]
        members[name] = data

    for name, source in _FILES.items():
        try:
            keep(name, files.read(source))
        except OSError as error:
            absent[name] = f"/{source}: {why(error)}"
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        outcomes = {name: pool.submit(_first_that_works, lines, run) for name, lines in _COMMANDS.items()}
    for name, outcome in outcomes.items():
        output, problem = outcome.result()
        if output is not None:
            keep(name, _lines_to_keep(name, output))
        if problem:
            absent[name] = problem
    members["python.txt"] = f"{platform.python_implementation()} {sys.version}\n".encode()
    members["variables.json"] = _json(chosen_variables(variables, redactor))
    members["absent.json"] = _json(absent)
    return members


def chosen_variables(variables: Mapping[str, str], redactor: Redactor) -> dict[str, object]:
    """{"values": of the relevant variables, "other_names": of the rest}; what looks like a secret is replaced."""
    values = {name: redactor.variable(name, value) for name, value in variables.items() if RELEVANT.search(name)}
    return {"values": values, "other_names": sorted(set(variables) - set(values))}


def without_identities(text: str) -> str:
    """The text with digests in the place of serial numbers, UUIDs, asset tags and hardware addresses."""
    for pattern in _SERIALS:
        text = pattern.sub(lambda match: match["head"] + _digest(match["value"], _NO_SERIAL), text)
    return _HARDWARE_ADDRESS.sub(lambda match: _digest(match[0].lower(), _NO_ADDRESS), text)


def _digest(value: str, meaningless: re.Pattern[str]) -> str:
    stripped = value.strip()
    if meaningless.fullmatch(stripped) or stripped.startswith("sha256:"):
        return value
    return f"sha256:{hashlib.sha256(stripped.encode()).hexdigest()[:12]}"


def _first_that_works(lines: tuple[tuple[str, ...], ...], run: Run) -> tuple[str | None, str]:
    """(output or None, what went wrong or ""): output of a failed command is kept, and the failure reported."""
    problems: list[str] = []
    for argv in lines:
        ran = run(list(argv), COMMAND_LIMIT_S)
        output = ran.stdout.decode(errors="replace")
        if ran.returncode == 0:
            return (output or ran.stderr.decode(errors="replace")), ""
        message = ran.stderr.decode(errors="replace").strip().split("\n")[0]
        problem = ran.problem or f"{argv[0]}: exit status {ran.returncode}{': ' if message else ''}{message}"
        problems.append(problem)
        if output.strip():
            return output, problem
    return None, "; ".join(problems)


def _lines_to_keep(name: str, output: str) -> str:
    pattern = _KEPT_LINES.get(name)
    if pattern is None:
        return output
    return "".join(line.strip() + "\n" for line in output.splitlines() if pattern.search(line.strip()))


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"
