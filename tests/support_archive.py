"""Archives of experiments as the engine writes them, with environments such as real nodes have."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pandas
import pytest

from lepaute.errors import ArchiveError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.container import seal
from lepaute.measure.archive.documents import Member, manifest_bytes

SCRIPT = """from lepaute import experiment


class Croaring(experiment.Job):
    def setup(self):
        self.packages("gcc", "cmake")

    def run(self, row):
        self.on(row.node, "./bench", "-n", row.size)
"""
DESIGN = "#@generator=factorial\n#@seed=7\nnode,size\n" + "".join(f"node{1 + row % 2},{2**row}\n" for row in range(10))
FLAGS = "fpu vme sse sse2 avx avx2 avx512f avx512cd"


@dataclass
class Node:
    """What differs between nodes of the tests; everything else is the same everywhere."""

    name: str
    microcode: str = "0x5003303"
    flags: str = FLAGS
    cores: int = 4
    memory_kb: int = 196_608_000
    bios: str = "2.8.2"
    kernel: str = "5.10.0-28-amd64"
    command_line: str = "quiet mitigations=auto"
    modules: tuple[str, ...] = ("ib_core", "mlx5_core", "nfs")
    governor: str = "performance"
    thp: str = "always [madvise] never"
    packages: dict[str, str] = field(default_factory=lambda: {"libc6": "2.31-13", "libopenblas0": "0.3.13+ds-3"})
    gcc: str = "gcc (Debian 10.2.1-6) 10.2.1 20210110"
    mpi: str = "mpirun (Open MPI) 4.1.0"
    variables: dict[str, str] = field(default_factory=lambda: {"OMP_NUM_THREADS": "4", "PATH": "/usr/bin:/bin"})
    l3_bytes: int = 23_068_672
    nic: str = "Ethernet controller: Intel Corporation Ethernet 10G X550T (rev 01)"
    mhz: float = 2100.0
    extra: dict[str, str] = field(default_factory=dict)

    def files(self) -> dict[str, str]:
        """The environment's files by name."""
        return {
            "cpuinfo.txt": self._cpuinfo(),
            "meminfo.txt": f"MemTotal:       {self.memory_kb} kB\nMemFree: {int(self.mhz * 1000)} kB\n"
            "Hugepagesize: 2048 kB\n",
            "lscpu.txt": f"Architecture: x86_64\nCPU(s): {self.cores}\nModel name: Xeon Gold 6130\nSocket(s): 1\n"
            f"NUMA node(s): 1\nCPU MHz: {self.mhz}\nBogoMIPS: {self.mhz * 2}\nCPU max MHz: 3700.0000\n"
            f"L3 cache: {self.l3_bytes // 2**20} MiB\nVulnerability Meltdown: Mitigation; PTI\n",
            "lstopo.xml": self._lstopo(),
            "lspci.txt": f"00:00.0 Host bridge: Intel Sky Lake-E\n3b:00.0 {self.nic}\n",
            "dmidecode.txt": "# dmidecode 3.3\nHandle 0x0000, DMI type 0\nBIOS Information\n\tVendor: Dell Inc.\n"
            f"\tVersion: {self.bios}\n\tRelease Date: 08/27/2020\n\nHandle 0x0100, DMI type 1\nSystem Information\n"
            f"\tManufacturer: Dell Inc.\n\tProduct Name: PowerEdge C6420\n\tSerial Number: SN{self.name}\n\n"
            "Handle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n\tSpeed: 2666 MT/s\n\tLocator: A1\n"
            "\tSerial Number: 12AB\n",
            "lsmod.txt": "Module                  Size  Used by\n"
            + "".join(f"{name}  {1000 + int(self.mhz)}  {int(self.mhz) % 7}\n" for name in self.modules),
            "dmesg.txt": f"[    0.{int(self.mhz)}] Linux version {self.kernel}\n[   12.5] usb 1-1: {self.mhz}\n",
            "cmdline.txt": f"BOOT_IMAGE=/boot/vmlinuz-{self.kernel} root=UUID=aa-{self.name} {self.command_line}\n",
            "uname.txt": f"Linux {self.name} {self.kernel} #1 SMP Debian 5.10.209-2 (2024-01-31) x86_64 GNU/Linux\n",
            "os-release.txt": 'PRETTY_NAME="Debian GNU/Linux 11 (bullseye)"\nID=debian\n',
            "loadavg.txt": f"0.{int(self.mhz)} 0.0 0.0 1/200 {int(self.mhz)}\n",
            "governor.txt": f"{self.governor}\n",
            "no_turbo.txt": "1\n",
            "transparent_hugepage.txt": f"{self.thp}\n",
            "clocksource.txt": "tsc\n",
            "gcc.txt": f"{self.gcc}\nCopyright (C) 2020 Free Software Foundation, Inc.\n",
            "mpirun.txt": f"{self.mpi}\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
            "packages.txt": "".join(f"{name}\t{version}\n" for name, version in self.packages.items()),
            "variables.json": json.dumps({"values": self.variables, "other_names": ["HOME", "TOKEN"]}),
            **self.extra,
        }

    def _cpuinfo(self) -> str:
        return "\n".join(
            f"processor\t: {core}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz\n"
            f"microcode\t: {self.microcode}\ncpu MHz\t\t: {self.mhz + core}\nflags\t\t: {self.flags}\n"
            f"bogomips\t: {self.mhz * 2}\n"
            for core in range(self.cores)
        )

    def _lstopo(self) -> str:
        cores = "".join(
            f'<object type="Core" os_index="{core}"><object type="PU" os_index="{core}"/></object>'
            for core in range(self.cores)
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">'
            f'<object type="Machine" os_index="0"><info name="HostName" value="{self.name}"/>'
            '<object type="Package" os_index="0">'
            f'<object type="NUMANode" os_index="0" local_memory="{self.memory_kb * 1024}"/>'
            f'<object type="L3Cache" cache_size="{self.l3_bytes}">{cores}</object></object></object></topology>\n'
        )


def metadata_of(nodes: list[Node], **changed: Any) -> dict[str, Any]:
    """metadata.json of an experiment that went well, with what is changed of it."""
    return {
        "kind": "experiment",
        "name": "croaring",
        "created": "2026-11-21T09:14:00+00:00",
        "lepaute_version": "0.1.0",
        "run_id": "20261121-091400-a1b2c3",
        "script": "croaring.py",
        "scheduler": {"name": "ssh", "nodes": "given"},
        "nodes": [node.name for node in nodes],
        "seed": 7,
        "parameters": {"repetitions": 5},
        "status": "complete",
        "partial": False,
        "failure": None,
        "phases": [
            {"name": "setup", "start": "2026-11-21T09:14:01+00:00", "duration_s": 31.5, "status": "complete"},
            {"name": "run", "start": "2026-11-21T09:14:33+00:00", "duration_s": 120.0, "status": "complete"},
            {"name": "teardown", "start": "2026-11-21T09:16:33+00:00", "duration_s": 0.5, "status": "complete"},
        ],
        "lost_nodes": [],
        "design": {"rows": 10, "done": 10},
        "warnings": [],
        **changed,
    }


def command(node: str, argv: list[str], **changed: Any) -> dict[str, Any]:
    """A record of commands.json."""
    return {
        "argv": argv,
        "returncode": 0,
        "stdout": "",
        "stderr": "",
        "start": "2026-11-21T09:14:02+00:00",
        "duration_s": 1.25,
        "node": node,
        "phase": "setup",
        "folder": "/tmp/lepaute/20261121-091400-a1b2c3",
        "environment": {},
        **changed,
    }


def experiment_archive(
    path: Path,
    nodes: list[Node] | None = None,
    *,
    script: str = SCRIPT,
    design_csv: str = DESIGN,
    commands: list[dict[str, Any]] | None = None,
    commit: str = "f00dfeed" * 5,
    more: Callable[[ArchiveWriter], object] | None = None,
    **changed: Any,
) -> Path:
    """Writes the archive of an experiment on `nodes` (default: node1 and node2); `changed` are keys of the metadata."""
    nodes = [Node("node1"), Node("node2", mhz=2345.0)] if nodes is None else nodes
    if commands is None:
        commands = [command(node.name, ["make", "-j", "4"]) for node in nodes]
    with ArchiveWriter(path, metadata_of(nodes, **changed)) as writer:
        writer.add_bytes("experiment/croaring.py", script.encode())
        writer.add_bytes("experiment/installation.yaml", b"packages: [gcc, cmake]\n")
        writer.add_bytes("design.csv", design_csv.encode())
        writer.add_bytes("raw/bench.csv", b"design_row,duration_s\n0,0.5\n1,0.25\n")
        table = pandas.DataFrame({"design_row": [0, 1], "duration_s": [0.5, 0.25], "node": ["node1", "node2"]})
        writer.add_table("observations/bench.parquet", table)
        for node in nodes:
            for name, content in node.files().items():
                writer.add_bytes(f"environment/{node.name}/{name}", content.encode())
            writer.add_table(f"monitoring/{node.name}.parquet", pandas.DataFrame({"t_s": [0.0], "load": [node.mhz]}))
            writer.add_bytes(f"files/{node.name}/result.txt", f"{node.mhz}\n".encode())
        repositories = [
            {
                "node": node.name, "url": "https://example.org/roaring.git", "revision": "v1", "commit": commit,
                "folder": "r",
            }
            for node in nodes
        ]  # fmt: skip
        writer.add_bytes("repositories.json", json.dumps(repositories).encode())
        controls = [
            {"node": node.name, "control": "turbo", "wanted": "off", "before": "1", "after": "0", "restored": True}
            for node in nodes
        ]
        writer.add_bytes("controls.json", json.dumps(controls).encode())
        writer.add_bytes("clock.json", b"[]\n")
        writer.add_bytes("log.txt", b"09:14:00 nodes: node[1-2]\n")
        for record in commands:
            writer.add_command(**record)
        if more is not None:
            more(writer)
    return path


def failed_archive(path: Path, **changed: Any) -> Path:
    """The archive of an experiment whose build failed on node2, after 4 of 10 rows."""
    stderr = (
        "".join(f"warning {number}\n" for number in range(30)) + "roaring.c:12:9: error: unknown type name 'uint'\n"
    )
    commands = [
        command("node1", ["make", "-j", "4"]),
        command("node2", ["make", "-j", "4", "CFLAGS=-O3 -march=native"], returncode=2, stderr=stderr, phase="run"),
    ]
    failure = {
        "phase": "run", "type": "CommandFailed", "message": "make ended with exit status 2", "node": "node2",
        "command": 1, "where": "croaring.py:9", "stderr_tail": stderr[-400:],
    }  # fmt: skip
    given = {
        "commands": commands,
        "status": "failed",
        "partial": True,
        "failure": failure,
        "phases": [
            {"name": "setup", "start": "2026-11-21T09:14:01+00:00", "duration_s": 31.5, "status": "complete"},
            {"name": "run", "start": "2026-11-21T09:14:33+00:00", "duration_s": 20.0, "status": "failed"},
            {"name": "teardown", "start": "2026-11-21T09:16:33+00:00", "duration_s": 0.5, "status": "complete"},
        ],
        "lost_nodes": [{"node": "node3", "when": "2026-11-21T09:14:40+00:00", "why": "the connection ended"}],
        "design": {"rows": 10, "done": 4},
        "warnings": ["node1: turbo cannot be set, no permission", "node2: clock offset 12 ms", "c", "d", "e"],
        **changed,
    }
    return experiment_archive(path, **given)


def sealed(path: Path, members: dict[Any, bytes], method: int = ZIP_DEFLATED, *, listed=None, manifest=b"") -> Path:
    """A sealed zip whose manifest lists its members, or others: damage that only the reader's checks see."""
    present = {name.filename if isinstance(name, ZipInfo) else name: data for name, data in members.items()}
    made = manifest_bytes({name: Member.of(data) for name, data in (listed or present).items()})
    with ZipFile(path, "w", method) as packed:
        for name, data in {**members, "manifest.json": manifest or made}.items():
            packed.writestr(name, data)
    seal(path)
    return path


def refused(path: Path) -> str:
    """The message with which an archive is refused; asserts that it is one plain line and names the file."""
    with pytest.raises(ArchiveError) as caught:
        Archive.open(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message
