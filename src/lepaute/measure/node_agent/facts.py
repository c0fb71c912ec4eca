"""What a machine is, in the few facts that a measurement is planned with."""

from __future__ import annotations

import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from .command_run import run_command
from .environment import COMMAND_LIMIT_S


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


def command_output(argv: tuple[str, ...]) -> str | None:
    """What a short command printed on both streams; None when it is not there, fails to start or hangs."""
    if shutil.which(argv[0]) is None:
        return None
    ran = run_command(list(argv), COMMAND_LIMIT_S)
    return None if ran.returncode is None else (ran.stdout + ran.stderr).decode(errors="replace")


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
