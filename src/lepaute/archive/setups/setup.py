"""Everything that is known about the setup of an experiment: facts by group and name, and node."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from lepaute.archive.manifest import COMMANDS
from lepaute.archive.reader import Archive
from lepaute.archive.setups import hardware, software, system
from lepaute.archive.setups.facts import OTHER, Fact, Value
from lepaute.archive.setups.records import (
    Placed,
    command_facts,
    control_facts,
    design_facts,
    metadata_facts,
    repository_facts,
    script_facts,
)
from lepaute.archive.setups.topology import lstopo
from lepaute.errors import ArchiveError

_ENVIRONMENT = "environment/"
#: Larger files are no description of a node; what is read whole is bounded by this.
MOST_FILE_BYTES = 16 << 20


@dataclass(slots=True)
class Setup:
    """The facts of an archive.

    facts : by (group, name): by node the value; the node is "" where a fact is about the whole experiment
    nodes : all of them, in the order of the archive
    unread: members that describe the setup and were not read, with the reason
    """

    facts: dict[tuple[str, str], dict[str, Value]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    unread: list[str] = field(default_factory=list)

    def add(self, facts: Iterable[Placed]) -> None:
        """Takes facts in; the first about a thing counts."""
        for node, fact in facts:
            self.facts.setdefault((fact.group, fact.what), {}).setdefault(node, fact.value)


def setup_of(archive: Archive) -> Setup:
    """The setup that an archive describes; whatever cannot be read of it is named in `unread`."""
    setup = Setup(nodes=archive.about.nodes)
    setup.add(metadata_facts(archive.about, archive.metadata))
    members = archive.members()
    for name, facts_of in (
        ("repositories.json", repository_facts),
        ("controls.json", control_facts),
        (COMMANDS, lambda document: command_facts(document, archive.about.run_id)),
    ):
        if name in members:
            try:
                setup.add(facts_of(archive.json(name)))
            except ArchiveError as problem:
                setup.unread.append(str(problem))
    known: dict[tuple[str, str], list[Fact]] = {}
    for name, member in members.items():
        if not name.startswith((_ENVIRONMENT, "experiment/", "designs/", "design.csv")):
            continue
        if member.size_bytes > MOST_FILE_BYTES:
            setup.unread.append(f"{name} has {member.size_bytes} bytes")
            continue
        if name.startswith("experiment/"):
            setup.add(script_facts(name, archive.read_bytes(name)))
        elif name.startswith("design"):
            setup.add(design_facts(name, archive.read_bytes(name)))
        else:
            node, inner = _place(name, setup.nodes)
            key = (inner, member.sha256)
            # A hundred nodes mostly have the same files: each content is read once.
            if key not in known:
                known[key] = file_facts(inner, archive.read_bytes(name))
            setup.add((node, fact) for fact in known[key])
    return setup


def _place(name: str, nodes: tuple[str, ...]) -> tuple[str, str]:
    """Node and path of a file of an environment; calibrations of one host have no folder for it."""
    inner = name.removeprefix(_ENVIRONMENT)
    first, slash, rest = inner.partition("/")
    return (first, rest) if slash and (first in nodes or nodes) else ("", inner)


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
