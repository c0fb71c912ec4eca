"""Facts of a setup: one thing that could be otherwise, and how it was; and those in the files of an environment.

Left out is what changes by itself: present frequencies and bogomips, free and cached memory, addresses on buses, serial
numbers and asset tags, dates and counts of the kernel's log, variables of a job, a session or a user.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from lepaute.errors import ArchiveError
from lepaute.measure.archive.documents import bounded_json, mapping
from lepaute.measure.archive.setups.topology import Object, walk, whole

#: Groups of facts, the most important first: the order of a comparison.
OUTCOME, EXPERIMENT, SCRIPT, NODES = "outcome", "experiment", "script", "nodes"
HARDWARE, SYSTEM, SOFTWARE, VARIABLES = "hardware", "system", "software", "variables"
CONTROL, COMMANDS, OTHER = "machine control", "commands", "other files"
GROUPS = (OUTCOME, EXPERIMENT, SCRIPT, NODES, HARDWARE, SYSTEM, SOFTWARE, VARIABLES, CONTROL, COMMANDS, OTHER)

#: A text, a set of things that are there or not, or the lines of a text.
Value = str | frozenset[str] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """How one thing was; group is one of GROUPS, what names the thing."""

    group: str
    what: str
    value: Value


def _fields(text: str, separator: str = ":") -> dict[str, str]:
    """The first value of each "name: value" line."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, mark, value = line.partition(separator)
        if mark:
            values.setdefault(name.strip(), value.strip())
    return values


def _chosen(group: str, values: Mapping[str, str], names: Mapping[str, str]) -> list[Fact]:
    """Facts of those values that `names` has, by the name that it gives them."""
    return [Fact(group, label, values[name]) for name, label in names.items() if values.get(name)]


def _counted(items: Iterable[str]) -> frozenset[str]:
    """The items as a set; those that occur more than once with their number."""
    return frozenset(item if number == 1 else f"{number} x {item}" for item, number in Counter(items).items())


_CPU = {
    "model name": "processor",
    "cpu family": "processor family",
    "model": "processor model number",
    "stepping": "processor stepping",
    "cache size": "cache size",
}
_LSCPU = {
    "Architecture": "architecture",
    "Socket(s)": "sockets",
    "Core(s) per socket": "cores per socket",
    "Thread(s) per core": "threads per core",
    "NUMA node(s)": "NUMA nodes",
    "On-line CPU(s) list": "hardware threads in use",
    "CPU max MHz": "largest frequency (MHz)",
    "CPU min MHz": "smallest frequency (MHz)",
    "L1d cache": "L1d cache",
    "L1i cache": "L1i cache",
    "L2 cache": "L2 cache",
    "L3 cache": "L3 cache",
    "Hypervisor vendor": "hypervisor",
    "Virtualization type": "virtualization",
}
_NUMA_CPUS = re.compile(r"NUMA node[0-9]+ CPU\(s\)")
_DMI = {
    "BIOS Information": ("Vendor", "Version", "Release Date", "BIOS Revision", "Firmware Revision"),
    "System Information": ("Manufacturer", "Product Name", "Version"),
    "Base Board Information": ("Manufacturer", "Product Name", "Version"),
    "Processor Information": ("Version", "Max Speed", "Current Speed", "Core Enabled", "Thread Count"),
}
_DIMM = ("Size", "Type", "Speed", "Configured Memory Speed", "Configured Clock Speed", "Manufacturer", "Part Number")
#: Fields of two decimals in GiB below this; whole ones above, where the kernel's own share changes the last digits.
_ROUND_ABOVE_GIB = 8
#: Devices stand in lspci's list, and what the system makes of them is not hardware.
_NO_HARDWARE = frozenset({"PCIDev", "OSDev", "Bridge", "Misc", "Group"})


def _cpuinfo(text: str) -> list[Fact]:
    values = _fields(text)
    facts = _chosen(HARDWARE, values, _CPU)
    threads = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    if threads:
        facts.append(Fact(HARDWARE, "hardware threads", str(threads)))
    microcode = sorted(set(re.findall(r"^microcode\s*:\s*(\S+)", text, re.MULTILINE)))
    if microcode:
        facts.append(Fact(HARDWARE, "microcode", " and ".join(microcode)))
    for name, label in (("flags", "processor flags"), ("bugs", "processor faults known to the kernel")):
        if values.get(name):
            facts.append(Fact(HARDWARE, label, frozenset(values[name].split())))
    return facts


def _lscpu(text: str) -> list[Fact]:
    """Sockets, cores, caches, NUMA; and of the system the mitigations and whether boost is enabled."""
    values = _fields(text)
    facts = _chosen(HARDWARE, values, _LSCPU)
    numa = [f"{name.split()[1]}: {value}" for name, value in values.items() if _NUMA_CPUS.fullmatch(name)]
    if numa:
        facts.append(Fact(HARDWARE, "hardware threads of NUMA nodes", "; ".join(numa)))
    for name, value in values.items():
        if name.startswith("Vulnerability "):
            facts.append(Fact(SYSTEM, f"mitigation of {name.removeprefix('Vulnerability ')}", value))
    return facts + _chosen(SYSTEM, values, {"Frequency boost": "frequency boost"})


def _meminfo(text: str) -> list[Fact]:
    values = _fields(text)
    facts = []
    for name, label in (("MemTotal", "memory"), ("SwapTotal", "swap")):
        digits = values.get(name, "").removesuffix("kB").strip()
        if digits.isascii() and digits.isdigit() and len(digits) < 16:
            gib = int(digits) / 1024**2
            size = f"{gib:.0f} GiB" if gib >= _ROUND_ABOVE_GIB else f"{gib:.1f} GiB"
            facts.append(Fact(HARDWARE if name == "MemTotal" else SYSTEM, label, size))
    return facts + _chosen(SYSTEM, values, {"HugePages_Total": "huge pages reserved", "Hugepagesize": "huge page size"})


def _lspci(text: str) -> list[Fact]:
    """The devices, whatever their address."""
    lines = [line for line in text.splitlines() if line[:1].strip()]
    devices = _counted(line.partition(" ")[2].strip() for line in lines if " " in line)
    return [Fact(HARDWARE, "PCI devices", devices)] if devices else []


def _dmidecode(text: str) -> list[Fact]:
    """Versions of BIOS, system, board and processors; the memory modules."""
    facts: dict[str, Fact] = {}
    dimms = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        # A block begins with its handle; then its title, not indented.
        titles = [line.strip() for line in lines if line[:1].strip() and not line.startswith(("Handle", "#"))]
        title = titles[-1] if titles else ""
        values = _fields("\n".join(line for line in lines if not line[:1].strip()))
        for name in _DMI.get(title, ()):
            what = f"{title.removesuffix(' Information')} {name}"
            if values.get(name) and what not in facts:
                facts[what] = Fact(HARDWARE, what, values[name])
        if title == "Memory Device" and values.get("Size", "No").partition(" ")[0] != "No":
            dimms.append(" ".join(values[name] for name in _DIMM if values.get(name)))
    listed = list(facts.values())
    return [*listed, Fact(HARDWARE, "memory modules", _counted(dimms))] if dimms else listed


def lstopo(text: str) -> list[Fact]:
    """Facts of an XML document of hwloc; none where it is no such document."""
    count: Counter[str] = Counter()
    threads: list[str] = []

    def seen(part: Object, _around: list[Object]) -> None:
        if part.kind in _NO_HARDWARE:
            return
        if part.kind == "PU":
            threads.append(part.attributes.get("os_index", "?"))
        size = ""
        # Memory of a NUMA node in whole GiB: the kernel's own share differs between boots.
        for name, unit, divisor in (("local_memory", "GiB", 1 << 30), ("cache_size", "KiB", 1 << 10)):
            digits = part.attributes.get(name, "")
            if whole(digits) and int(digits):
                size = f" ({int(digits) / divisor:.0f} {unit})"
        count[part.kind + size] += 1

    if not walk(text, seen):
        return []
    parts = frozenset(f"{number} {kind}" for kind, number in count.items())
    facts = [Fact(HARDWARE, "topology", parts)] if parts else []
    if threads:
        facts.append(Fact(HARDWARE, "numbering of hardware threads along the topology", " ".join(threads)))
    return facts


#: Words of the kernel command line that name this node's disk, image or address, not how it runs.
_OWN_WORDS = re.compile(r"(BOOT_IMAGE|root|initrd|resume|ip|BOOTIF|hostname|nfsroot|UUID|ds)=.*", re.DOTALL)
_SELECTED = re.compile(r"\[([^\]\n]*)\]")
#: What the kernel says when hardware is ill or slowed down; the rest of its log is dates and enumeration.
_COMPLAINT = re.compile(
    r"machine check|hardware error|\bmce\b|\becc\b|throttl|overheat|thermal|i/o error|out of memory|oom-kill|"
    r"soft lockup|call trace|firmware bug|clocksource.*unstable|link is down",
    re.IGNORECASE,
)
#: Beyond this a line or a setting is none of the kernel's: bounds the work of the searches above.
_LONGEST_LINE, _LONGEST_SETTING = 1000, 4096
_TIME = re.compile(r"^\[[^\]]*\]\s*")
_NUMBER = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|[0-9]+", re.IGNORECASE)
_MAX_COMPLAINTS = 200
_REMOTE = re.compile(r"nfs4?|lustre|beegfs|gpfs|ceph|glusterfs|cifs|9p|orangefs|pvfs2|overlay|fuse\..*")


def _uname(text: str) -> list[Fact]:
    """Kernel release and build, of `uname -a`; the host's name is left out."""
    words = text.split()
    if len(words) < 3:
        return []
    return [Fact(SYSTEM, "kernel", words[2]), Fact(SYSTEM, "kernel build", " ".join(words[3:]))]


def _os_release(text: str) -> list[Fact]:
    values = {name: value.strip("\"'") for name, value in _fields(text, "=").items()}
    return _chosen(SYSTEM, values, {"PRETTY_NAME": "distribution", "VERSION_ID": "distribution version"})


def _command_line(text: str) -> list[Fact]:
    text = text[:_LONGEST_SETTING]
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [Fact(SYSTEM, "kernel command line", frozenset(word for word in words if not _OWN_WORDS.fullmatch(word)))]


def _modules(text: str) -> list[Fact]:
    """Names of the loaded modules; sizes and users are left out."""
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    return [Fact(SYSTEM, "modules", frozenset(names) - {"Module"})]


def _kernel_log(text: str) -> list[Fact]:
    """The kernel's complaints, without times and numbers; the rest of its log is left out."""
    heads = (line[:_LONGEST_LINE] for line in text.splitlines())
    lines = (_TIME.sub("", line) for line in heads if _COMPLAINT.search(line))
    # Each once: how often the kernel says a thing depends on how long it has run.
    plain = sorted({_NUMBER.sub("#", line)[:200] for line in lines})
    return [Fact(SYSTEM, "complaints of the kernel", frozenset(plain[:_MAX_COMPLAINTS]))]


def _limits(text: str) -> list[Fact]:
    """The lines of the shell's ulimit -a; how many signals may be pending depends on the memory."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return [Fact(SYSTEM, "limits of processes", _counted(line for line in lines if "pending signals" not in line))]


def _mounts(text: str) -> list[Fact]:
    """Where file systems of disks and of the network are mounted, with their type."""
    rows = [line.split() for line in text.splitlines()]
    passing = ("/run/", "/proc/", "/sys/", "/dev/", "/tmp/")
    rows = [row for row in rows if len(row) > 2 and not row[1].startswith(passing)]
    kept = [row for row in rows if row[0].startswith("/") or _REMOTE.fullmatch(row[2])]
    return [Fact(SYSTEM, "file systems", frozenset(f"{row[2]} at {row[1]}" for row in kept))]


def _absent(text: str) -> list[Fact]:
    """What could not be collected of the node: names only, the reasons are in the file."""
    try:
        names = frozenset(mapping(bounded_json(text.encode(), "absent.json")))
    except ArchiveError:
        return []
    return [Fact(OTHER, "files that could not be collected whole", names)]


def _setting(what: str, text: str) -> list[Fact]:
    """A control file of one or a few words: the selected one where it lists all, else what stands there."""
    text = text[:_LONGEST_SETTING]
    values = _SELECTED.findall(text) or text.split()
    # One line a core: the value once where all agree.
    return [Fact(SYSTEM, what, values[0] if len(set(values)) == 1 else " ".join(values))] if values else []


#: Variables of a job, a session or a user, not of a setup.
_OWN_VARIABLE = re.compile(
    r"SLURM_(JOB_?ID|JOBID|STEP.*|TASK_PID|JOB_START_TIME|JOB_END_TIME|TOPOLOGY_ADDR|NODEID|SRUN_COMM_PORT|JOB_UID"
    r"|LAUNCH_NODE_IPADDR|SUBMIT_.*|NODELIST|JOB_NODELIST|NODE_ALIASES|PROCID|LOCALID|GTIDS)"
    r"|OAR_(JOB_?ID|JOBID|NODE_FILE|NODEFILE|FILE_NODES|RESOURCE_.*|WORKDIR|O_WORKDIR|KEY)|PMIX_.*|PMI_.*"
    r"|LEPAUTE_(RUN|DEBUG).*|TMPDIR|PWD|OLDPWD|HOSTNAME|SHLVL"
)
_COPYRIGHT = re.compile(r"copyright|free software|warranty|report bugs|https?://", re.IGNORECASE)


def packages(text: str) -> list[Fact]:
    """One fact a package, of lines "name version" as dpkg-query -W and rpm print them, or of dpkg -l's table."""
    facts = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 and words[0] in ("ii", "hi"):
            words = words[1:3]
        if len(words) == 1 and words[0].count("-") >= 2:  # rpm's name-version-release.architecture
            name, number, release = words[0].rsplit("-", 2)
            words = [name, f"{number}-{release}"] if number[:1].isdigit() else words
        # dpkg-query lists names that it knows and that are not installed, without a version.
        if len(words) == 2 and words[1][:1].isalnum():
            facts.append(Fact(SOFTWARE, f"package {words[0]}", words[1]))
    return facts


def _libraries(text: str) -> list[Fact]:
    """Where the dynamic linker finds libraries, of lines "name (kind) => path"."""
    paths = frozenset(" ".join(line.split()) for line in text.splitlines() if "=>" in line)
    return [Fact(SOFTWARE, "shared libraries", paths)] if paths else []


def version(name: str, text: str) -> list[Fact]:
    """Version that a program prints: the first line that has a digit, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _COPYRIGHT.search(line)]
    if not lines:
        return []
    return [Fact(SOFTWARE, name, next((line for line in lines if any(map(str.isdigit, line))), lines[0]))]


def variables(text: str) -> list[Fact]:
    """One fact a variable whose value is recorded; mere names are left out."""
    try:
        values = mapping(mapping(bounded_json(text.encode(), "variables.json")).get("values"))
    except ArchiveError:
        return []
    return [
        Fact(VARIABLES, name, value)
        for name, value in values.items()
        if isinstance(value, str) and not _OWN_VARIABLE.fullmatch(name)
    ]


#: By the name of the file without its folders and its ending.
_READERS: dict[str, Callable[[str], list[Fact]]] = {
    "cpuinfo": _cpuinfo,
    "lscpu": _lscpu,
    "meminfo": _meminfo,
    "lspci": _lspci,
    "dmidecode": _dmidecode,
    "microcode": lambda text: [Fact(HARDWARE, "microcode", text.strip()[:100])],
    **dict.fromkeys(("lstopo", "topology"), lstopo),
    "uname": _uname,
    "os-release": _os_release,
    "cmdline": _command_line,
    **dict.fromkeys(("lsmod", "modules"), _modules),
    "dmesg": _kernel_log,
    "ulimit": _limits,
    "mounts": _mounts,
    "absent": _absent,
    **dict.fromkeys(("packages", "dpkg", "rpm", "openblas"), packages),
    "libraries": _libraries,
    "variables": variables,
    "governor": partial(_setting, "frequency governor"),
    "scaling_governor": partial(_setting, "frequency governor"),
    "scaling_driver": partial(_setting, "frequency driver"),
    "frequency_driver": partial(_setting, "frequency driver"),
    "boost": partial(_setting, "boost"),
    "no_turbo": partial(_setting, "turbo switched off"),
    "turbo": partial(_setting, "turbo"),
    "transparent_hugepage": partial(_setting, "transparent huge pages"),
    "thp": partial(_setting, "transparent huge pages"),
    "clocksource": partial(_setting, "clock source"),
    "smt": partial(_setting, "hyper-threading"),
    "aslr": partial(_setting, "randomised addresses"),
    "numa_balancing": partial(_setting, "NUMA balancing"),
    "swappiness": partial(_setting, "swappiness"),
    **{name: partial(version, name) for name in ("gcc", "g++", "gfortran", "clang", "icx", "make", "cmake", "git")},
    "ld": partial(version, "linker"),
    "ldd": partial(version, "C library"),
    "python": partial(version, "Python"),
    "mpirun": partial(version, "MPI (mpirun)"),
    "mpicc": partial(version, "MPI compiler (mpicc)"),
    "blas": partial(version, "BLAS"),
    "kernel": partial(version, "build of the kernel"),
}
#: They differ whenever one looks.
_LEFT_OUT = frozenset(
    "loadavg uptime date free ps top who w users processes vmstat stat interrupts softirqs diskstats df sensors "
    "clock clock_offset netstat ifconfig hostname".split()
)
_MAX_LINES = 5000


def file_facts(name: str, data: bytes) -> list[Fact]:
    """The facts in a file of an environment.

    name: its path below environment/ (and below the folder of the node)
    """
    stem = name.rpartition("/")[2]
    for ending in (".txt", ".json", ".xml", ".csv", ".log"):
        stem = stem.removesuffix(ending)
    if stem in _LEFT_OUT:
        return []
    text = data.decode(errors="replace")
    if (reader := _READERS.get(stem)) is None:
        return [Fact(OTHER, name, tuple(text.splitlines()[:_MAX_LINES]))]
    return reader(text) or ([Fact(OTHER, name, "is there, and is not what its name says")] if text.strip() else [])
