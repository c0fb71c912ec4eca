"""Probes that are compiled for one MPI library, and started with its own mpirun."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from support_limits import HANG_S

from lepaute.kit.mpi_launcher import Launcher
from lepaute.kit.mpi_library import MpiLibrary, find_library
from lepaute.measure.toolchain import C_FLAGS, probe_source

CLOCKS = ("clock_sync.c", "clock_exchange.c", "clock_model.c", "clock_offset.c", "clock_source.c")
COLLECTIVES = (
    *("probe_collectives.c", "collective_operations.c", "reductions.c", "point_to_point.c"),
    *("one_sided.c", "process_sync.c", "transports.c", *CLOCKS),
)
COMMON = ("probe_common.c", "probe_mpi.c")
needs_smpicc = pytest.mark.skipif(shutil.which("smpicc") is None, reason="no smpicc here (Debian: libsimgrid-dev)")


class MpiProbe:
    """A probe of one library; the test is skipped where the library is not installed."""

    def __init__(self, library: str, sources: Sequence[str], folder: Path) -> None:
        try:
            self.library: MpiLibrary = find_library(library)
        except Exception as problem:  # noqa: BLE001 - whatever is missing, there is nothing to test
            pytest.skip(f"no {library} here: {problem}")
        assert self.library.launcher is not None
        self.launcher: Launcher = self.library.launcher
        self.path = folder / f"{Path(sources[0]).stem}-{library}"
        files = [str(probe_source() / name) for name in (*sources, *COMMON)]
        self.library.compile([*C_FLAGS, "-Werror", *files, "-lm", "-o", str(self.path)], what="building the probe")

    @contextmanager
    def start(
        self,
        ranks: int,
        *options: str,
        environment: Mapping[str, str] | None = None,
        hosts: tuple[str, str] | None = None,
    ) -> Iterator[subprocess.Popen[str]]:
        """The program, which runs no longer than the test; hosts: a hostfile, and what reaches the hosts in it, by TCP
        and loopback."""
        if hosts is None:
            start = self.launcher.start(ranks, use_scheduler=False)
        else:
            tcp = ("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
            start = self.launcher.start(
                ranks, hostfile=hosts[0], remote_shell=hosts[1], options=tcp, use_scheduler=False
            )
        variables = {**os.environ, **start.environment, **(environment or {})}
        words = [*start.argv, str(self.path), *options]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()  # the launcher ends its ranks
                process.communicate(timeout=HANG_S)

    def run(
        self,
        ranks: int,
        *options: str,
        environment: Mapping[str, str] | None = None,
        hosts: tuple[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The program when it has ended."""
        with self.start(ranks, *options, environment=environment, hosts=hosts) as process:
            output, errors = process.communicate(timeout=HANG_S)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def prefix_of(folder: Path, compile_: str, launch: str = "mpirun.openmpi", shim: str = "") -> Path:
    """A prefix whose mpicc adds words to those of mpicc.openmpi, and whose mpirun is another one.

    shim: C code that is linked into every program
    """
    (folder / "bin").mkdir(parents=True)
    linked = ""
    if shim:
        source, linked = folder / "shim.c", f" {folder}/shim.o"
        source.write_text(f"#define _GNU_SOURCE\n#include <mpi.h>\n#include <signal.h>\n#include <unistd.h>\n{shim}")
        find_library(compile_).compile(["-c", str(source), "-o", str(folder / "shim.o")], what="the shim")
    mpicc = f'case "$*" in *-E*|*-show*|*--version*) ;; *) set -- "$@"{linked} ;; esac\nexec {compile_} "$@"'
    for name, line in (("mpicc", mpicc), ("mpirun", f'exec {launch} "$@"')):
        path = folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
    return folder
