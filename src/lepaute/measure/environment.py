"""What the node is and runs: the provenance that goes into an archive."""

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

#: Variables whose values can change a measurement; of all others only the names are kept.
_RELEVANT = re.compile(
    r"^(OMPI_|PMIX_|PRTE_|UCX_|FI_|OPENBLAS_|GOTO_|BLIS_|OMP_|MKL_|KMP_|GOMP_|LD_|MALLOC_|GLIBC_TUNABLES"
    r"|LEPAUTE_|SLURM_|OAR_|LANG$|LC_|PATH$|CC$|CFLAGS$|TMPDIR$)"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|JWT", re.IGNORECASE)
_USER_IN_ADDRESS = re.compile(r"(://)[^/@\s]+@")
_REDACTED = "(redacted)"

_FILES = {
    "cpuinfo.txt": "/proc/cpuinfo",
    "meminfo.txt": "/proc/meminfo",
    "loadavg.txt": "/proc/loadavg",
    "os-release.txt": "/etc/os-release",
    "transparent_hugepage.txt": "/sys/kernel/mm/transparent_hugepage/enabled",
    "governor.txt": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "boost.txt": "/sys/devices/system/cpu/cpufreq/boost",
    "no_turbo.txt": "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "clocksource.txt": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
}
_COMMANDS = {
    "uname.txt": ("uname", "-a"),
    "lscpu.txt": ("lscpu",),
    "mpirun.txt": ("mpirun", "--version"),
    "mpicc.txt": ("mpicc", "--showme:version"),
    "gcc.txt": ("gcc", "--version"),
    "openblas.txt": ("dpkg-query", "-W", "libopenblas*", "libopenmpi*", "libc6"),
    "ulimit.txt": ("sh", "-c", "ulimit -a"),
}
#: Long enough for a cold start of any of them on a busy node.
_COMMAND_LIMIT_S = 10.0


def collect_environment(environment: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """The node's provenance: member name (without folder) to content; what the node does not have is left out.

    environment: variables to record, by default those of this process; values are kept only where they can
                 change a measurement, and never where the name or the value looks like a secret.
    """
    members: dict[str, bytes] = {}
    for name, source in _FILES.items():
        try:
            members[name] = redact_text(Path(source).read_text(errors="replace")).encode()
        except OSError:
            continue
    for name, argv in _COMMANDS.items():
        if (output := command_output(argv)) is not None:
            members[name] = redact_text(output).encode()
    chosen = redact(os.environ if environment is None else environment)
    members["variables.json"] = json.dumps(chosen, indent=1, sort_keys=True).encode() + b"\n"
    return members


def redact(environment: Mapping[str, str]) -> dict[str, object]:
    """{"values": of the relevant variables, "other_names": of the rest}; secret-looking values are replaced."""
    values = {
        name: _REDACTED if _SECRET.search(name) else redact_text(value)
        for name, value in environment.items()
        if _RELEVANT.search(name)
    }
    return {"values": values, "other_names": sorted(set(environment) - set(values))}


def redact_text(text: str) -> str:
    """The text without user names and passwords in addresses (scheme://user:password@host)."""
    return _USER_IN_ADDRESS.sub(rf"\1{_REDACTED}@", text)


def command_output(argv: tuple[str, ...]) -> str | None:
    """What a short command printed on both streams; None when it is not there, fails to start or hangs."""
    if shutil.which(argv[0]) is None:
        return None
    try:
        result = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMMAND_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.decode(errors="replace")


def first_line(argv: tuple[str, ...]) -> str | None:
    """The first line a short command printed, or None."""
    output = command_output(argv)
    return output.splitlines()[0].strip() if output and output.strip() else None


def cpu_model() -> str:
    """The processor's name as the kernel gives it, or the architecture where it gives none."""
    return cpuinfo_field("model name") or platform.machine()


def cpu_flags() -> frozenset[str]:
    """Instruction-set flags of the first processor; empty where the kernel lists none."""
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
    """Physical memory of the node."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
