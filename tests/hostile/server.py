"""Runs command lines, each in a process forked off one that has the package imported already: milliseconds each."""

import contextlib
import ctypes
import gc
import json
import os
import pkgutil
import resource
import shutil
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

import lepaute

WALL_LIMIT_S = 5.0
CPU_LIMIT_S = 5
MEMORY_BYTES = 1 << 30
#: Of addresses: libraries reserve more than they use.
RESERVED_BYTES = 3 << 30
#: Of other packages; of ours, everything.
PRELOADED = ("pyarrow.parquet", "matplotlib.figure", "matplotlib.backends.backend_agg")
#: Needs packages of an extra.
NOT_PRELOADED = ("lepaute.fit.population.posterior",)


def serve() -> None:
    """Reads {"words": [...], "folder": ..., "fifo": ...} as lines of JSON, and answers each with what became of it."""
    for module in pkgutil.walk_packages(lepaute.__path__, "lepaute."):
        if module.name not in NOT_PRELOADED and "node_agent" not in module.name and not module.name.endswith("main"):
            import_module(module.name)
    for name in PRELOADED:
        import_module(name)
    import_module("lepaute.cli.main")
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run_one(request["words"], Path(request["folder"]), Path(request["fifo"]))), flush=True)


def run_one(words: list[str], folder: Path, fifo: Path) -> dict[str, object]:
    """Status (negative: signal), output, seconds and bytes of one command line; what it has left in its folders."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("work", "tmp", "home", "path"):
        (folder / name).mkdir(parents=True)
    began_s = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_the_command(words, folder)
    # Somebody at the other end of the pipe, who writes nothing and reads all.
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    timed_out = False
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() - began_s > WALL_LIMIT_S + 1.0:
            timed_out = True
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
            os.read(reader, 1 << 20)
        time.sleep(0.002)
    os.close(reader)
    left = {name: sorted(os.listdir(folder / name)) for name in ("work", "tmp", "home")}
    return {
        "status": -9999 if timed_out else os.waitstatus_to_exitcode(status),
        "stdout": (folder / "stdout").read_text(errors="surrogateescape")[:100_000],
        "stderr": (folder / "stderr").read_text(errors="surrogateescape")[:100_000],
        "wall_s": time.monotonic() - began_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "memory_bytes": used.ru_maxrss * 1024,
        "left": left,
    }


def _be_the_command(words: list[str], folder: Path) -> None:
    status = 99
    try:
        os.setsid()
        os.environ.update(TMPDIR=str(folder / "tmp"), LEPAUTE_HOME=str(folder / "home"), PATH=str(folder / "path"))
        os.chdir(folder / "work")
        for descriptor, name, flags in ((0, os.devnull, os.O_RDONLY), (1, "stdout", 0), (2, "stderr", 0)):
            opened = os.open(folder / name if descriptor else name, flags or os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(opened, descriptor)
            os.close(opened)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        _obey_permissions()
        size_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size_bytes + RESERVED_BYTES,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        import tempfile

        from lepaute.cli.main import main

        tempfile.tempdir = None
        sys.argv = ["lepaute", *words]
        status = main()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - as the interpreter does
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        status = 1
    finally:
        os._exit(status)


def _obey_permissions() -> None:
    """Lets root do no more with files than their owner may."""
    if os.geteuid() != 0:
        return
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.capget(header, data)
    for at in (0, 1):  # effective and permitted: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
        data[at] &= ~0b110
    libc.capset(header, data)


if __name__ == "__main__":
    serve()
