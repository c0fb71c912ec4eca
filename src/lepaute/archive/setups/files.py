"""Which file of an environment is read how; files that are not known are compared as text."""

from collections.abc import Callable
from functools import partial

from lepaute.archive.setups import hardware, software, system
from lepaute.archive.setups.facts import OTHER, Fact
from lepaute.archive.setups.topology import lstopo

#: By the name of the file without its folders and its ending.
_READERS: dict[str, Callable[[str], list[Fact]]] = {
    "cpuinfo": hardware.cpuinfo,
    "lscpu": hardware.lscpu,
    "meminfo": hardware.meminfo,
    "lspci": hardware.lspci,
    "dmidecode": hardware.dmidecode,
    "lstopo": lstopo,
    "topology": lstopo,
    "uname": system.uname,
    "os-release": system.os_release,
    "cmdline": system.command_line,
    "lsmod": system.modules,
    "modules": system.modules,
    "dmesg": system.kernel_log,
    "ulimit": system.limits,
    "packages": software.packages,
    "dpkg": software.packages,
    "rpm": software.packages,
    "openblas": software.packages,
    "libraries": software.libraries,
    "variables": software.variables,
    "microcode": hardware.microcode,
    "mounts": system.mounts,
    "absent": system.absent,
    **{
        name: partial(system.setting, label)
        for name, label in {
            "governor": "frequency governor",
            "scaling_governor": "frequency governor",
            "scaling_driver": "frequency driver",
            "frequency_driver": "frequency driver",
            "boost": "boost",
            "no_turbo": "turbo switched off",
            "turbo": "turbo",
            "transparent_hugepage": "transparent huge pages",
            "thp": "transparent huge pages",
            "clocksource": "clock source",
            "smt": "hyper-threading",
            "aslr": "randomised addresses",
            "numa_balancing": "NUMA balancing",
            "swappiness": "swappiness",
        }.items()
    },
    **{
        name: partial(software.version, label)
        for name, label in {
            "gcc": "gcc",
            "g++": "g++",
            "gfortran": "gfortran",
            "clang": "clang",
            "icx": "icx",
            "ld": "linker",
            "ldd": "C library",
            "make": "make",
            "cmake": "cmake",
            "python": "Python",
            "mpirun": "MPI (mpirun)",
            "mpicc": "MPI compiler (mpicc)",
            "blas": "BLAS",
            "git": "git",
            "kernel": "build of the kernel",
        }.items()
    },
}
#: They differ whenever one looks.
LEFT_OUT = frozenset(
    "loadavg uptime date free ps top who w users processes vmstat stat interrupts softirqs diskstats df sensors "
    "clock clock_offset netstat ifconfig hostname".split()
)
_MOST_LINES = 5000


def file_facts(name: str, data: bytes) -> list[Fact]:
    """The facts in a file of an environment.

    name: its path below environment/ (and below the folder of the node)
    """
    stem = name.rpartition("/")[2]
    for ending in (".txt", ".json", ".xml", ".csv", ".log"):
        stem = stem.removesuffix(ending)
    if stem in LEFT_OUT:
        return []
    text = data.decode(errors="replace")
    reader = _READERS.get(stem)
    facts = reader(text) if reader is not None else []
    if facts or reader is not None:
        return facts or [Fact(OTHER, name, "is there, and is not what its name says")] if text.strip() else []
    return [Fact(OTHER, name, tuple(text.splitlines()[:_MOST_LINES]))]
