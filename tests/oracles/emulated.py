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
from lepaute.simulate.platform import Platform
from lepaute.simulate.platform.io import parse_platform
from lepaute.simulate.smpi.building import compilers

# Four nodes of four cores; dgemm takes 1 us and 0.1 ns an operation, without noise.
TINY = Path(__file__).parents[1].joinpath("data", "texts", "emulated.yaml").read_text()

#: What a test's program begins with: a dgemm whose sizes are given, and the usual variables.
HEAD = Path(__file__).parents[1].joinpath("data", "programs", "emulated_head.c").read_text()


def source_of(name: str) -> str:
    """HEAD, and a file of tests/data/programs."""
    return HEAD + "\n" + Path(__file__).parents[1].joinpath("data", "programs", name).read_text()


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
