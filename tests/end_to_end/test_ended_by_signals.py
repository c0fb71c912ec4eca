"""Long commands end at Ctrl-C and SIGTERM, and what a machine lacks is named in one line."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from long_tests import long_but
from support_limits import HANG_S, ran, wait_until

EXPERIMENT = Path(__file__).parents[2] / "examples" / "experiments" / "memory_copy.py"
HPL = ("-p", "dahu", "--n", "20k")
#: Each with what it has done, in a file, when it is under way; or what it has said.
COMMANDS = {
    # A day: a thousand runs of 65 million messages and more, of which the signal comes in the middle of the first.
    "predict": (
        "predict hpl -p dahu --n 800k --nb 16 --grid 32x32 --runs 1000 --fidelity full".split(),
        "will take about",
    ),
    "study": (["study", "ready", "nb-and-grid", *HPL, "--runs", "500", "--scheduler", "threads"], " simulations"),
    "study of processes": (
        ["study", "ready", "nb-and-grid", *HPL, "--runs", "500", "--scheduler", "local"],
        "nb-and-grid.results/store/data/*/*",
    ),
    "run": (["run", str(EXPERIMENT), "--set", "replications=2000", "-o", "x.zip"], "x.work/done.jsonl"),
    "calibrate": (["calibrate", "-o", "c.yaml", "--quick"], "calibration.work/blocks.jsonl"),
    "compare": (["compare", "openmpi", "--ops", "bcast", "--sizes", "8", "--mpiruns", "200"], "comparison.work/*"),
}
#: What the end is said with.
LINE = re.compile(r"lepaute: interrupted(;.*)?")


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", long_but(COMMANDS, "predict", "study"))
def test_a_signal_ends_it_with_a_line_and_leaves_no_process(tmp_path: Path, name: str, number: signal.Signals) -> None:
    words, sign = COMMANDS[name]
    said = tmp_path / "said"
    folder = tmp_path / "here"
    folder.mkdir()
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "lepaute.cli.main", *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        wait_until(lambda: process.poll() is not None or sign in said.read_text() or any(folder.glob(sign)), "its work")
        assert process.poll() is None, said.read_text()
        begun = [each for each in psutil.process_iter() if os_session(each.pid) == process.pid]
        # A terminal sends Ctrl-C to all processes, a batch system SIGTERM often to the first alone.
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
        assert process.wait(HANG_S) == 130, said.read_text()
    told = said.read_text()
    assert "Traceback" not in told
    assert "resource_tracker" not in told
    assert [line for line in told.splitlines() if LINE.fullmatch(line)], told
    assert "lepaute: interrupted; --resume continues\n" in told or "study" not in name
    wait_until(lambda: not any(alive(each) for each in begun), "the end of what it started")
    assert not list(folder.rglob(".lepaute-*"))


def os_session(pid: int) -> int:
    """The session of a process; 0 where it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


COMPILER_WITHOUT_BLAS = """#!/bin/sh
for word in "$@"; do
[ "$word" = -lopenblas ] && { echo "ld: cannot find -lopenblas" >&2; exit 1; }
done
exec %s "$@"
"""


def assert_named_with_its_package(folder: Path, name: str, **environment: str) -> None:
    verify = "verify hpl -p dahu --other-machine --n 100 --grid 1x1 --output".split()
    result = ran(
        [sys.executable, "-m", "lepaute.cli.main", *verify, str(folder / "out")],
        env={**os.environ, "LEPAUTE_HOME": str(folder / "home"), **environment},
    )
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    (line,) = result.stderr.splitlines()
    assert name in line
    assert "apt-get install" in line


@pytest.mark.parametrize(
    ("there", "missing"),
    [(("mpirun", "ar", "gcc"), "mpicc"), (("mpicc", "ar", "gcc"), "mpirun"), (("mpicc", "mpirun", "ar"), "compiler")],
)
def test_a_missing_tool_is_named_with_the_command_that_installs_it(there, missing, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in there:
        (tools / tool).symlink_to(str(shutil.which(tool)))
    assert_named_with_its_package(tmp_path, missing, PATH=str(tools))


def test_a_missing_blas_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    # A compiler that does not find -lopenblas, as on a machine without it: everything else is the real one.
    compiler = tmp_path / "bin" / "gcc"
    compiler.parent.mkdir()
    compiler.write_text(COMPILER_WITHOUT_BLAS % shutil.which("gcc"))
    compiler.chmod(0o755)
    path = f"{compiler.parent}:{os.environ['PATH']}"
    assert_named_with_its_package(tmp_path, "libopenblas", PATH=path, OMPI_CC=str(compiler))
