"""Hardware, as cpuinfo, lscpu, meminfo, lspci and dmidecode tell it; what changes by itself is left out.

Left out: present frequencies and bogomips, free and cached memory, addresses on buses, serial numbers and asset tags.
"""

import re

from lepaute.archive.setups.facts import HARDWARE, SYSTEM, Fact, chosen, counted, fields

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


def cpuinfo(text: str) -> list[Fact]:
    """Processor, number of hardware threads, microcode, flags and known faults."""
    values = fields(text)
    facts = chosen(HARDWARE, values, _CPU)
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


def microcode(text: str) -> list[Fact]:
    """The microcode, of the file of the system's first processor."""
    return [Fact(HARDWARE, "microcode", text.strip()[:100])]


def lscpu(text: str) -> list[Fact]:
    """Sockets, cores, caches, NUMA; and of the system the mitigations and whether boost is enabled."""
    values = fields(text)
    facts = chosen(HARDWARE, values, _LSCPU)
    numa = [f"{name.split()[1]}: {value}" for name, value in values.items() if _NUMA_CPUS.fullmatch(name)]
    if numa:
        facts.append(Fact(HARDWARE, "hardware threads of NUMA nodes", "; ".join(numa)))
    for name, value in values.items():
        if name.startswith("Vulnerability "):
            facts.append(Fact(SYSTEM, f"mitigation of {name.removeprefix('Vulnerability ')}", value))
    return facts + chosen(SYSTEM, values, {"Frequency boost": "frequency boost"})


def meminfo(text: str) -> list[Fact]:
    """Size of the memory in GiB, swap, and pages reserved."""
    values = fields(text)
    facts = []
    for name, label in (("MemTotal", "memory"), ("SwapTotal", "swap")):
        digits = values.get(name, "").removesuffix("kB").strip()
        if digits.isascii() and digits.isdigit() and len(digits) < 16:
            gib = int(digits) / 1024**2
            size = f"{gib:.0f} GiB" if gib >= _ROUND_ABOVE_GIB else f"{gib:.1f} GiB"
            facts.append(Fact(HARDWARE if name == "MemTotal" else SYSTEM, label, size))
    return facts + chosen(SYSTEM, values, {"HugePages_Total": "huge pages reserved", "Hugepagesize": "huge page size"})


def lspci(text: str) -> list[Fact]:
    """The devices, whatever their address."""
    lines = [line for line in text.splitlines() if line[:1].strip()]
    devices = counted(line.partition(" ")[2].strip() for line in lines if " " in line)
    return [Fact(HARDWARE, "PCI devices", devices)] if devices else []


def dmidecode(text: str) -> list[Fact]:
    """Versions of BIOS, system, board and processors; the memory modules."""
    facts: dict[str, Fact] = {}
    dimms = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        # A block begins with its handle; then its title, not indented.
        titles = [line.strip() for line in lines if line[:1].strip() and not line.startswith(("Handle", "#"))]
        title = titles[-1] if titles else ""
        values = fields("\n".join(line for line in lines if not line[:1].strip()))
        for name in _DMI.get(title, ()):
            what = f"{title.removesuffix(' Information')} {name}"
            if values.get(name) and what not in facts:
                facts[what] = Fact(HARDWARE, what, values[name])
        if title == "Memory Device" and values.get("Size", "No").partition(" ")[0] != "No":
            dimms.append(" ".join(values[name] for name in _DIMM if values.get(name)))
    listed = list(facts.values())
    return [*listed, Fact(HARDWARE, "memory modules", counted(dimms))] if dimms else listed
