"""A real Slurm on this machine: munged, slurmctld and one slurmd for each of several virtual nodes.

    with slurm_farm(tmp_path, nodes=4) as farm:
        subprocess.run(["srun", "-N4", "hostname"], env=farm.environment)

The daemons run in the foreground below the test, on ports and sockets of their own, and are gone afterwards with their
jobs. Nothing of an installed Slurm is read or written. The nodes n1, n2, ... are this one machine under several names.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from farms import daemons
from support_limits import ran, wait_until

#: Each pretended; a job of the tests computes nothing.
CPUS_PER_NODE = 2
MEMORY_PER_NODE_MIB = 512
#: Variables that Slurm's commands read.
_VARIABLES = ("SLURM_", "SALLOC_", "SRUN_", "SBATCH_")


@dataclass
class SlurmFarm:
    folder: Path
    names: tuple[str, ...]
    environment: Mapping[str, str]
    controller: subprocess.Popen[bytes]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self, *argv: str) -> str:
        """Output of a command of Slurm's; fails with what it said."""
        done = ran(argv, env=dict(self.environment))
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return done.stdout

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Makes this process, and what it starts, use this Slurm for the time of a test, outside of all jobs."""
        for name in os.environ:
            if name.startswith(_VARIABLES):
                monkeypatch.delenv(name)
        monkeypatch.setenv("SLURM_CONF", self.environment["SLURM_CONF"])
        # All nodes are one machine, and PMIx keeps what it knows of a node in shared memory.
        monkeypatch.setenv("PMIX_MCA_gds", "hash")

    def jobs(self) -> list[str]:
        """Numbers of the jobs that wait or run."""
        return self.run("squeue", "--noheader", "--format=%i", "--states=PENDING,RUNNING,CONFIGURING").split()

    def kill(self, name: str) -> None:
        """The node dies with all that ran on it, at once. Slurm notices after a while, or is told by `declare_down`."""
        daemon = self.daemons[name]
        victims = [*daemons.below(daemon.pid), *step_daemons(self.folder / f"slurmd.{name}.log"), *self.processes(name)]
        daemon.kill()
        daemons.signal_all(victims, signal.SIGKILL)
        daemon.wait()
        daemons.wait_gone(victims)

    def declare_down(self, name: str) -> None:
        """Slurm takes the node for dead now, as it does by itself some time after it died."""
        self.run("scontrol", "update", f"nodename={name}", "state=down", "reason=test")

    def processes(self, name: str) -> list[psutil.Process]:
        """What steps of jobs started on the node."""
        ours = {process.pid for process in daemons.with_variable("SLURM_CONF", self.environment["SLURM_CONF"])}
        return [process for process in daemons.with_variable("SLURMD_NODENAME", name) if process.pid in ours]

    def _all_idle(self) -> bool:
        for daemon in (self.controller, *self.daemons.values()):
            if daemon.poll() is not None:
                raise ChildProcessError(f"{daemon.args} ended with {daemon.returncode}; see {self.folder}")
        found = ran(["sinfo", "--noheader", "--Node", "--partition=all", "--format=%T"], env=dict(self.environment))
        return found.stdout.split() == ["idle"] * len(self.names)


@contextmanager
def slurm_farm(folder: Path, nodes: int = 4) -> Iterator[SlurmFarm]:
    """Slurm with nodes n1, n2, ... that are idle. Skips the test where it is not installed or we are not root."""
    wanted = ["slurmctld", "slurmd", "munged", "mungekey", "srun", "salloc", "scontrol", "sinfo", "squeue", "scancel"]
    missing = daemons.missing_programs(wanted)
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: slurmctld, slurmd, slurm-client, munge)")
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs, so it needs root")
    folder.mkdir(parents=True, exist_ok=True)
    names = tuple(f"n{index + 1}" for index in range(nodes))
    for name in names:
        # Of each node's own, as if it were a machine: PMIx keeps the sockets of a step there.
        (folder / f"tmp.{name}").mkdir(exist_ok=True)
    sockets = Path(tempfile.mkdtemp(prefix="slurm-"))  # the folder's path may be too long for the name of a socket
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_VARIABLES)}
    environment["SLURM_CONF"] = str(folder / "slurm.conf")
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        daemon = daemons.start_daemon(argv, folder / f"{name}.out", environment)
        started.append(daemon)
        return daemon

    try:
        controller_port, *ports = daemons.free_ports(1 + nodes)
        configuration = _configuration(folder, sockets, controller_port, dict(zip(names, ports, strict=True)))
        (folder / "slurm.conf").write_text(configuration)
        (folder / "topology.conf").write_text(_topology(names))
        start("munged", _munged(folder, sockets))
        wait_until((sockets / "munge").exists, "munged")
        controller = start("slurmctld", [daemons.program("slurmctld"), "-D", "-f", environment["SLURM_CONF"]])
        farm = SlurmFarm(folder, names, environment, controller)
        # A slurmd that finds no controller tries again only after a second.
        wait_until(lambda: daemons.listens(controller_port) or controller.poll() is not None, "slurmctld")
        for name in names:
            words = [daemons.program("slurmd"), "-D", "-N", name, "-f", environment["SLURM_CONF"]]
            farm.daemons[name] = start(name, words)
        wait_until(farm._all_idle, "nodes of Slurm")
        yield farm
    finally:
        children = [process for daemon in started if daemon.poll() is None for process in daemons.below(daemon.pid)]
        children += [process for name in names for process in step_daemons(folder / f"slurmd.{name}.log")]
        for daemon in started:
            daemon.kill()
            daemon.wait()
        left = [*children, *daemons.with_variable("SLURM_CONF", environment["SLURM_CONF"])]
        daemons.signal_all(left, signal.SIGKILL)
        daemons.wait_gone(left)
        shutil.rmtree(sockets, ignore_errors=True)


def step_daemons(log: Path) -> list[psutil.Process]:
    """The slurmstepd's that a slurmd started: they leave its process group, and share only its log."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name().startswith("slurmstepd") and str(log) in {file.path for file in process.open_files()}:
                found.append(process)
    return found


def _munged(folder: Path, sockets: Path) -> list[str]:
    subprocess.run([daemons.program("mungekey"), "--create", "--keyfile", str(folder / "munge.key")], check=True)
    return [
        daemons.program("munged"),
        "--foreground",
        "--force",  # it would insist on folders that everybody may enter
        f"--key-file={folder / 'munge.key'}",
        f"--socket={sockets / 'munge'}",
        f"--pid-file={folder / 'munged.pid'}",
        f"--log-file={folder / 'munged.log'}",
        f"--seed-file={folder / 'munged.seed'}",
    ]


def _topology(names: Sequence[str]) -> str:
    """A tree of two levels: the nodes on two switches, or on one where there is but one node."""
    half = (len(names) + 1) // 2
    parts = [part for part in (names[:half], names[half:]) if part]
    leaves = "".join(f"SwitchName=leaf{i + 1} Nodes={','.join(part)}\n" for i, part in enumerate(parts))
    return f"{leaves}SwitchName=top Switches={','.join(f'leaf{i + 1}' for i in range(len(parts)))}\n"


def _configuration(folder: Path, sockets: Path, controller_port: int, ports: Mapping[str, int]) -> str:
    nodes = "".join(
        f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
        f" CPUs={CPUS_PER_NODE} RealMemory={MEMORY_PER_NODE_MIB} Feature=farm State=UNKNOWN\n"
        for name, port in ports.items()
    )
    return f"""\
ClusterName=farm
SlurmctldHost={socket.gethostname().partition(".")[0]}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={sockets}/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
TmpFS={folder}/tmp.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SwitchType=switch/none
TopologyPlugin=topology/tree
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
# The machine has neither these CPUs nor this memory for every node.
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
EnforcePartLimits=ALL
ReturnToService=2
KillWait=2
SlurmdTimeout=60
{nodes}\
PartitionName=all Nodes={",".join(ports)} Default=YES MaxTime=INFINITE State=UP
PartitionName=other Nodes={next(iter(ports))} MaxTime=INFINITE State=UP
"""
