"""Named hosts for tests of ssh: real sshd's on ports of the loopback interface, with keys made for the test.

    with sshd_farm(tmp_path, ["node1", "node2", "node3", "node4"]) as farm:
        subprocess.run(["ssh", "-F", farm.ssh_config, "node1", "true"])

A session on such a host has LEPAUTE_NODE, its host's name, in its environment.
"""

import getpass
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from farms.daemons import (
    below,
    free_ports,
    listens,
    missing_programs,
    program,
    signal_all,
    start_daemon,
    wait_gone,
    wait_until,
    with_variable,
)

#: A free port may be taken by somebody else before sshd has it.
_PORT_TRIES = 5


@dataclass
class Sshd:
    """One daemon and the host names that lead to it."""

    names: tuple[str, ...]
    port: int
    process: subprocess.Popen[bytes]


@dataclass
class SshdFarm:
    folder: Path
    names: tuple[str, ...]
    ssh_config: Path
    token: str
    daemons: list[Sshd] = field(default_factory=list)

    def kill(self, name: str) -> None:
        """The host dies: its sshd and all that was started through it, at once; nothing listens on its port."""
        daemon = self._alone(name)
        signal_all([psutil.Process(daemon.process.pid)], signal.SIGSTOP)  # lets it start nothing more meanwhile
        victims = [*below(daemon.process.pid), *self.processes(name)]
        signal_all(victims, signal.SIGKILL)
        daemon.process.kill()
        daemon.process.wait()
        wait_gone(victims)

    def cut(self, name: str) -> None:
        """The host's connections end; what ran there lives on, its standard input and output closed."""
        daemon = self._alone(name)
        remote = {process.pid for process in self.processes(name)}
        connections = [process for process in below(daemon.process.pid) if process.pid not in remote]
        signal_all(connections, signal.SIGKILL)
        wait_gone(connections)

    def start(self, name: str) -> None:
        """Starts a killed host again, on its old port."""
        daemon = self._alone(name)
        assert daemon.process.poll() is not None, f"{name} is alive"
        daemon.process = self._sshd(daemon.port, daemon.names[0])

    def processes(self, name: str) -> list[psutil.Process]:
        """What runs on the host, sshd itself aside."""
        ours = {process.pid for process in with_variable("LEPAUTE_FARM", self.token)}
        return [process for process in with_variable("LEPAUTE_NODE", name) if process.pid in ours]

    def _alone(self, name: str) -> Sshd:
        (daemon,) = [each for each in self.daemons if name in each.names]
        assert daemon.names == (name,), f"{name} shares its sshd with other hosts"
        return daemon

    def _all(self, name: str) -> list[psutil.Process]:
        daemon = self._alone(name)
        return [psutil.Process(daemon.process.pid), *below(daemon.process.pid), *self.processes(name)]

    def _sshd(self, port: int, name: str) -> subprocess.Popen[bytes]:
        log = self.folder / f"sshd.{name}.log"
        argv = [program("sshd"), "-D", "-E", str(log), "-f", str(self.folder / "sshd_config"), "-p", str(port)]
        process = start_daemon(argv, log, os.environ)
        wait_until(lambda: process.poll() is not None or listens(port), f"sshd of {name}")
        if process.poll() is not None:
            raise ChildProcessError(f"sshd of {name} ended with {process.returncode}: {log.read_text()[-500:]}")
        return process

    def _add(self, names: Sequence[str]) -> None:
        for attempt in range(_PORT_TRIES):
            (port,) = free_ports(1)
            try:
                self.daemons.append(Sshd(tuple(names), port, self._sshd(port, names[0])))
                return
            except ChildProcessError:
                if attempt == _PORT_TRIES - 1:
                    raise

    def _stop(self) -> None:
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                children = below(daemon.process.pid)
                daemon.process.kill()
                signal_all(children, signal.SIGKILL)
            daemon.process.wait()
        left = with_variable("LEPAUTE_FARM", self.token)
        signal_all(left, signal.SIGKILL)
        wait_gone(left)


@contextmanager
def sshd_farm(folder: Path, names: Sequence[str], daemons: int | None = None) -> Iterator[SshdFarm]:
    """Hosts of these names, each with an sshd of its own, or dealt to that many sshd's. Skips the test without sshd."""
    missing = missing_programs(["sshd", "ssh", "ssh-keygen"])
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: openssh-server, openssh-client)")
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)  # sshd refuses to start without it
    for key in ("host_key", "user_key"):
        argv = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(folder / key)]
        subprocess.run(argv, check=True)
    farm = SshdFarm(folder, tuple(names), folder / "ssh_config", uuid.uuid4().hex)
    (folder / "sshd_config").write_text(_server_configuration(folder, farm.token))
    public = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text("".join(f"{name} {public}" for name in names))
    try:
        count = len(names) if daemons is None else daemons
        for first in range(count):
            farm._add(names[first::count])
        farm.ssh_config.write_text(_client_configuration(folder, farm.daemons))
        yield farm
    finally:
        farm._stop()


def _server_configuration(folder: Path, token: str) -> str:
    return f"""\
ListenAddress 127.0.0.1
HostKey "{folder}/host_key"
AuthorizedKeysFile "{folder}/user_key.pub"
# The folder of a test is below /tmp, which everybody may write to.
StrictModes no
PidFile none
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
PrintLastLog no
PermitUserRC no
MaxStartups 1000:30:2000
MaxSessions 1000
AcceptEnv LEPAUTE_NODE
# SHLVL: bash reads no ~/.bashrc of whoever runs the tests. Ranks give up the core while they wait: hosts share few.
SetEnv LEPAUTE_FARM={token} SHLVL=1 OMPI_MCA_mpi_yield_when_idle=1
"""


def _client_configuration(folder: Path, daemons: Sequence[Sshd]) -> str:
    hosts = "".join(
        f"Host {name}\n  Port {daemon.port}\n  HostKeyAlias {name}\n  SetEnv LEPAUTE_NODE={name}\n"
        for daemon in daemons
        for name in daemon.names
    )
    return f"""{hosts}
Host *
  HostName 127.0.0.1
  User {getpass.getuser()}
  IdentityFile "{folder}/user_key"
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile "{folder}/known_hosts"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  LogLevel ERROR
"""
