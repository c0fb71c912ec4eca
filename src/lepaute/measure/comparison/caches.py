"""The cache that makes calls cold when it is overwritten (section 5.8 of "MPI Benchmarking Revisited")."""

import re

from lepaute.errors import EnvironmentProblem
from lepaute.measure.node_agent.system_files import SystemFiles

_CACHES = "sys/devices/system/cpu/cpu0/cache"
_MOST_LEVELS = 10
_UNITS = {"K": 1 << 10, "M": 1 << 20}


def private_cache_bytes(files: SystemFiles) -> int:
    """Size of the last cache level that the first core shares with no other core.

    Raises EnvironmentProblem where the machine does not tell.
    """
    threads = files.read_or("sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    sizes = {}
    for index in range(_MOST_LEVELS):
        folder = f"{_CACHES}/index{index}"
        size = re.fullmatch(r"([0-9]{1,9})([KM])", files.read_or(f"{folder}/size"))
        private = files.read_or(f"{folder}/shared_cpu_list") in (threads, "0")
        if size and private and files.read_or(f"{folder}/type") != "Instruction":
            sizes[int(files.read_or(f"{folder}/level", "0"))] = int(size[1]) * _UNITS[size[2]]
    if not sizes:
        raise EnvironmentProblem("--cold: this machine does not tell the size of its private caches (/sys)")
    return sizes[max(sizes)]
