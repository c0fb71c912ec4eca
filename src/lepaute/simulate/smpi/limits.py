"""Limits of this system that would stop an emulation half-way, checked before it starts."""

import resource
import shutil
from pathlib import Path

from lepaute.errors import EnvironmentProblem

_MAPPINGS_PER_RANK = 8  # a stack, its guard and the rank's copy of the program with its libraries
_MAPPINGS_OF_PROCESS = 2000


def check_limits(ranks: int, stack_kib: int, fold_bytes: int | None, root: Path = Path("/")) -> None:
    """Raises EnvironmentProblem for the first limit that `ranks` ranks exceed.

    stack_kib : stack of a rank; fold_bytes : size from which allocations are folded, None where they are not
    root : of the system's control files
    """
    most = _number(root / "proc/sys/vm/max_map_count")
    needed = _MAPPINGS_OF_PROCESS + ranks * _MAPPINGS_PER_RANK
    if most is not None and needed > most:
        raise EnvironmentProblem(
            f"{ranks} ranks need about {needed} memory mappings in one process, the system allows {most}; "
            f"set it as root: sysctl vm.max_map_count={2 * needed}"
        )
    if fold_bytes is not None and _number(root / "proc/sys/vm/overcommit_memory") == 2:
        raise EnvironmentProblem(
            "folded allocations overcommit memory, which this system does not allow "
            "(vm.overcommit_memory is 2); set it as root: sysctl vm.overcommit_memory=1"
        )
    free_bytes = _free_bytes(root)
    stacks = ranks * stack_kib * 1024
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and stacks > soft:
        raise EnvironmentProblem(
            f"the stacks of {ranks} ranks take {stacks / 1e9:.3g} GB of address space, this shell allows "
            f"{soft / 1e9:.3g} GB; raise it (ulimit -v unlimited) or take a smaller --stack"
        )
    if free_bytes is not None and stacks > 8 * free_bytes:  # most of a stack is never touched
        raise EnvironmentProblem(
            f"the stacks of {ranks} ranks take {stacks / 1e9:.3g} GB, {free_bytes / 1e9:.3g} GB are free; "
            "take a smaller --stack"
        )


def check_copies(ranks: int, program_bytes: int, folder: Path) -> None:
    """Raises EnvironmentProblem where `folder` has no room for a copy of the program for each rank, as SMPI makes to
    give each its own global variables."""
    needed, free = ranks * program_bytes, shutil.disk_usage(folder).free
    if needed > free:
        raise EnvironmentProblem(
            f"{ranks} copies of the program take {needed / 1e9:.3g} GB, {folder} has {free / 1e9:.3g} GB free; "
            "strip the program, name another folder in TMPDIR, or take --shared-globals"
        )


def free_huge_bytes(root: Path = Path("/")) -> int:
    """Memory available on huge pages of 2 MiB."""
    fields = {line.partition(":")[0]: line.split()[1] for line in _lines(root / "proc/meminfo") if ":" in line}
    size_kib, free = fields.get("Hugepagesize", "0"), fields.get("HugePages_Free", "0")
    return int(free) * (2 << 20) if size_kib == "2048" else 0


def _free_bytes(root: Path) -> int | None:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None
