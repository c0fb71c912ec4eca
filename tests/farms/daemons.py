"""Daemons of a test: started, waited for, and gone afterwards with all that they started."""

import contextlib
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil
from support_limits import wait_until

_PR_SET_PDEATHSIG = 1


def missing_programs(names: Sequence[str]) -> list[str]:
    """Those that are not here; Debian keeps daemons in /usr/sbin, which a user's PATH may lack."""
    return [name for name in names if program(name) is None]


def program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on now, all different, and where there are some of those that
    the kernel gives to no connection before they are listened on."""
    below = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = random.SystemRandom().sample(range(10_000, below), max(0, below - 10_000)) or [0] * count
    with contextlib.ExitStack() as stack:
        bound: list[int] = []
        while len(bound) < count:
            each = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                each.bind(("127.0.0.1", ports.pop()))
                bound.append(each.getsockname()[1])
        return bound


def start_daemon(argv: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts a daemon in the foreground, in a session of its own; it is killed when this process dies, however."""
    libc = ctypes.CDLL(None, use_errno=True)

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    with log.open("ab") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509  one system call, no Python lock taken
        )


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True
    return False


def below(pid: int) -> list[psutil.Process]:
    """The processes that descend from this one, now."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def with_variable(name: str, value: str) -> list[psutil.Process]:
    """The processes that were started with this environment variable, wherever they hang in the tree."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(name) == value:
                found.append(process)
    return found


def signal_all(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def wait_gone(processes: Iterable[psutil.Process]) -> None:
    """Returns when none of them runs; one that only waits to be collected, by whoever inherited it, does not."""

    def runs(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    left = list(processes)
    wait_until(lambda: not any(map(runs, left)), "end of killed processes")
