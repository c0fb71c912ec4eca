"""Programs that cannot be emulated, or fail: one line that says what happened, exit status 2, nothing left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from oracles.emulated import Said, build, command, compiler_folder, emulations, left_behind, source_of, tiny_text
from support_limits import HANG_S, ran, wait_until

from lepaute.simulate.smpi.library import find_simgrid

pytestmark = pytest.mark.machine

BAD = source_of("emulate_failures.c")


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler_folder()
    return build(tmp_path_factory.mktemp("bad"), "bad", BAD)


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    path = tmp_path / "p.yaml"
    path.write_text(tiny_text())
    return path


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of the test's own, which is empty again at its end."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert left_behind(folder) == []


#: Program -> seconds until it is stopped, and without a call of MPI: more than it takes to begin.
LIMITS = {"nan": (HANG_S, 3), "endless": (HANG_S, 3), "converging": (5, HANG_S)}


def emulate(platform: Path, *words: object, ranks: object = 2) -> Said:
    timeout_s, stall_s = LIMITS.get(str(words[-1]), (HANG_S, HANG_S))
    return command(
        "emulate",
        "-p",
        platform,
        "-np",
        ranks,
        "--computing",
        "none",
        "--timeout",
        timeout_s,
        "--stall",
        stall_s,
        *words,
    )


def complaint(said: Said) -> str:
    """The one line that a failed command ends with."""
    lines = [
        line for line in said.err.splitlines() if not line.startswith("lepaute: emulating ")
    ]  # told after a second
    assert said.status == 2, said.err
    assert [line.startswith("lepaute: ") for line in lines].count(True) == 1
    assert lines[-1].startswith("lepaute: ")
    assert "Traceback" not in said.err
    assert not any(word in said.err for word in ("CRITICAL", "gdb", "Backtrace", "SimGrid team", "simblas:"))
    return lines[-1]


BOGUS = "results of BLAS are not computed"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("deadlock", ["deadlock: every rank waits for a message that nobody sends", BOGUS]),
        ("nan", ["stopped, for 3 s it made no MPI call and its simulated date stood still", BOGUS]),
        ("endless", ["stopped, for 3 s it made no MPI call", BOGUS]),
        ("converging", ["stopped, it took longer than 5 s; simulated so far: ", BOGUS]),
        ("pivot", ["it ended by SIGSEGV", BOGUS]),
        ("stack", ["it ended by SIGSEGV, as where a stack is too small (more: --stack, in KiB)"]),
        ("status", ["rank 1 ended with exit status 3 before it called MPI_Finalize: cannot read input.dat"]),
        ("result", ["it ended with exit status 4: it printed nothing"]),
        ("abort", ["rank 1 called MPI_Abort with code 7: grid of 0 points"]),
        ("argument", ["MPI_Send of rank 0 failed: MPI_ERR_RANK, param 4 dst (=99)"]),
        ("truncated", ["of rank 1 failed: MPI_ERR_TRUNCATE"]),
        ("lacking", ["this version of SimGrid has no MPI_Neighbor_allgather"]),
        ("unfinished", ["it ended when 0 of 2 ranks had called MPI_Finalize"]),
    ],
)
def test_a_program_that_fails_or_hangs_is_told_in_one_line_and_leaves_nothing(how, said, bad, platform, temporary):
    line = complaint(emulate(platform, "--", bad, how))
    assert line.startswith("lepaute: bad on 2 ranks: ")
    for words in said:
        assert words in line


def test_a_rank_that_aborts_is_named_also_where_simgrid_ends_by_a_signal(bad, platform, temporary):
    """With four ranks SimGrid 3.32 aborts while it ends those that have communicated with nobody."""
    line = complaint(command("emulate", "-p", platform, "-np", 4, "--", bad, "abort"))
    assert line == "lepaute: bad on 4 ranks: rank 1 called MPI_Abort with code 7: grid of 0 points"


def test_a_larger_stack_mends_what_the_message_says_it_mends(bad: Path, platform: Path, temporary: Path) -> None:
    assert emulate(platform, "--stack", 8192, "--", bad, "stack").status == 0


def test_an_option_of_the_program_without_two_dashes_is_told_where_it_belongs(platform: Path) -> None:
    said = complaint(command("emulate", "-p", platform, "-np", 2, "solver", "--verbose"))
    assert "no such option: --verbose" in said
    assert "options of the program come after two dashes: -- PROGRAM ARGS" in said


@pytest.mark.parametrize(
    ("compiler", "flags", "said"),
    [
        (None, [], "is no compiled program"),
        ("gcc", [], "was built for this machine, without simblas"),
        ("smpicc", [], "was built by SMPI's own compilers, without simblas"),
        ("mpicc", ["-lm"], "another MPI than SimGrid's"),
    ],
)
def test_a_program_that_is_not_built_for_emulation_is_refused_with_how_to_build_it(
    compiler: str | None, flags: list[str], said: str, platform: Path, temporary: Path, tmp_path: Path
) -> None:
    compiler_folder()
    program = tmp_path / "other"
    program.write_text("#!/bin/sh\n")
    if compiler is not None:
        mpi = "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); return MPI_Barrier(MPI_COMM_WORLD); }\n"
        (tmp_path / "other.c").write_text("int main(void) { return 0; }\n" if compiler == "gcc" else mpi)
        subprocess.run([compiler, "other.c", "-o", "other", *flags], cwd=tmp_path, check=True, timeout=HANG_S)
    line = complaint(emulate(platform, "--", program))
    assert said in line
    assert "lepaute emulate compilers" in line


def test_samples_of_smpi_are_refused_by_name(platform: Path, tmp_path: Path) -> None:
    code = "#include <mpi.h>\n#include <smpi/smpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); double x = 0;\n"
    sample = "SMPI_SAMPLE_GLOBAL(int i = 0, i < 9, i++, 1, 0.1) { x += i; }\nMPI_Finalize(); return x < 0; }\n"
    program = build(tmp_path, "sampled", code + sample)
    assert "sampled uses SMPI_SAMPLE_LOCAL or SMPI_SAMPLE_GLOBAL" in complaint(emulate(platform, "--", program))


def test_fortran_that_smpi_passes_over_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.f").write_text("      end\n")
    done = ran([compiler_folder() / "mpif90", "-c", "a.f"], cwd=tmp_path)
    assert done.returncode != 0
    assert "a.f: programs for emulation are built of .f90" in done.stderr


def test_without_simgrid_the_package_is_named(bad, platform, temporary, monkeypatch):
    monkeypatch.setenv("PATH", str(temporary))
    find_simgrid.cache_clear()
    try:
        line = complaint(emulate(platform, "--", bad, "none"))
        assert line == (
            "lepaute: SimGrid's smpirun is missing (Debian package libsimgrid-dev); to emulate, install it: "
            "apt-get install libsimgrid-dev gfortran g++"
        )
    finally:
        find_simgrid.cache_clear()


def test_memory_that_runs_out_is_told_with_what_helps(bad: Path, platform: Path, temporary: Path) -> None:
    words = ["emulate", "-p", platform, "-np", "4", "--", bad, "memory"]
    python = [sys.executable, "-m", "lepaute.cli.main"]
    shell = ["sh", "-c", 'ulimit -v 1500000; exec "$@"', "sh"]
    done = ran([*shell, *python, *words])
    line = complaint(Said(done.returncode, done.stdout, done.stderr))
    assert "there was no memory for 16,777,216 bytes; fold large allocations (--fold 1M)" in line


def test_a_run_that_works_leaves_nothing(bad: Path, platform: Path, temporary: Path) -> None:
    said = emulate(platform, "--fold", "64K", "--trace", platform.parent / "t.parquet", "--", bad, "none")
    assert said.status == 0, said.err


def test_an_interrupt_ends_the_program_and_leaves_nothing(bad: Path, platform: Path, temporary: Path) -> None:
    words = ["emulate", "-p", platform, "-np", "2", "--fold", "64K", "--", bad, "endless"]
    process = subprocess.Popen(
        [sys.executable, "-m", "lepaute.cli.main", *map(str, words)], stderr=subprocess.PIPE, start_new_session=True
    )
    wait_until(lambda: emulations(process.pid), "the emulation")
    time.sleep(0.2)  # it is under way
    found = emulations(process.pid)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert err.decode().splitlines() == ["lepaute: interrupted"]
    # A killed process takes a moment to be gone.
    wait_until(lambda: not any(map(psutil.pid_exists, found)), "end of the emulation")
