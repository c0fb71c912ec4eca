"""Small programs under `lepaute emulate`: built once, run on a platform whose numbers are easy to follow."""

import contextlib
import io
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from support_limits import HANG_S

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem
from lepaute.kit.command import run_command
from lepaute.platform import Platform
from lepaute.platform.io import parse_platform
from lepaute.simulate.smpi.building import compilers

# Four nodes of four cores; dgemm takes 1 us and 0.1 ns an operation, without noise.
TINY = """
format: lepaute-platform/1
name: tiny
nodes: {count: 4, first_number: 1, cores: 4}
kernels:
- kernel: dgemm
  pieces:
  - mean: {mnk: 1.0e-10, "1": 1.0e-6}
    range: {m: [1, 8000], n: [1, 8000], k: [1, 8000]}
network:
  flow_factor: scale
  node_link: {bandwidth_Bps: 1.25e+10}
  loopback: {shared: false, bandwidth_Bps: 2e10}
  remote:
    segments:
    - {above_bytes: 0, protocol: eager, latency_s: 1e-6, bandwidth_Bps: 6.0e+09, send: [3.0e-07, 1.0e-10],
       receive: [2e-7, 0]}
    - {above_bytes: 4000, protocol: rendezvous, latency_s: 5e-6, bandwidth_Bps: 1.2e+10}
  costs: {iprobe_s: 2.0e-07, wtime_s: 1e-7}
"""

#: What a test's program begins with: a dgemm whose sizes are given, and the usual variables.
HEAD = """
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
static int rank, ranks;
static void dgemm(int m, int n, int k) {
    double one = 1, none[1] = {0};
    dgemm_("N", "T", &m, &n, &k, &one, none, &m, none, &n, &one, none, &m);
}
static void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}
"""


def dgemm_s(m: float, n: float, k: float) -> float:
    """What a dgemm takes on the platform TINY."""
    return 1e-10 * m * n * k + 1e-6


def tiny(**replaced: str) -> Platform:
    """The platform TINY, with texts replaced: tiny(iprobe_s="iprobe_s: 0")."""
    return parse_platform(tiny_text(**replaced))


def tiny_text(**replaced: str) -> str:
    lines = TINY
    for key, value in replaced.items():
        assert f"{key}: " in lines
        begin = lines.index(f"{key}: ")
        end = min(at for sign in ",}\n" if (at := lines.find(sign, begin)) >= 0)
        lines = lines[:begin] + value + lines[end:]
    return lines


def compiler_folder() -> Path:
    """Skips the test where there is no SimGrid."""
    if shutil.which("smpicc") is None or shutil.which("g++") is None:
        pytest.skip("SimGrid is not installed (Debian: libsimgrid-dev)")
    try:
        return compilers()
    except EnvironmentProblem as problem:
        pytest.fail(str(problem))


def build(folder: Path, name: str, source: str, *flags: str, compiler: str = "mpicc", suffix: str = ".c") -> Path:
    """The program `name` in `folder`, built by a compiler of emulation."""
    file = folder / f"{name}{suffix}"
    file.write_text(source)
    program = folder / name
    argv = [compiler_folder() / compiler, "-O1", file, "-o", program, *flags]
    run_command(argv, what=f"compiling {file.name}", timeout_s=HANG_S)
    return program


@dataclass(frozen=True, slots=True)
class Said:
    """What a command answered: its exit status, standard output and standard error."""

    status: int
    out: str
    err: str


def command(*arguments: object) -> Said:
    """`lepaute` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in arguments])
    return Said(status, out.getvalue(), err.getvalue())


def left_behind(temporary: Path) -> list[str]:
    """What emulations that used `temporary` for a temporary folder have left: files there, processes, shared memory."""
    files = [str(path) for path in temporary.rglob("*")]
    shared = [str(path) for path in Path("/dev/shm").iterdir() if re.search("lepaute|smpi|simgrid", path.name)]
    return files + shared + [f"process {pid}" for pid in emulations()]


def emulations(of: int | None = None) -> list[int]:
    """Processes of SMPI that descend from this process, or from `of`."""
    import psutil

    found = []
    for process in psutil.Process(of).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and "smpimain" in " ".join(process.cmdline()):
                found.append(process.pid)
    return found
