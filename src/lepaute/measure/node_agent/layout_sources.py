"""What tells how the cores of a node lie: hwloc's XML, or the kernel's own numbers where there is no hwloc."""

from __future__ import annotations

from typing import Any

from .command_run import run_command
from .environment import COMMAND_LIMIT_S, LSTOPO
from .system_files import SystemFiles, parse_cpus

_CPU = "sys/devices/system/cpu"


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
