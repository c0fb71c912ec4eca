"""Emulated programs that fail, and the memory that they take."""

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
from oracles.emulated import Said, build, command, compiler_folder, emulations, left_behind, source_of, tiny, tiny_text
from support_limits import HANG_S, ran, wait_until

from lepaute.simulate.smpi.building import find_simgrid
from lepaute.simulate.smpi.emulate import Options, emulate_run
from lepaute.simulate.smpi.emulated_run import EmulatedRun
from lepaute.simulate.smpi.request import Folding, Private

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("bad"), "bad", source_of("emulate_failures.c"))


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


def emulate(platform: Path, *words: object) -> Said:
    timeout_s, stall_s = LIMITS.get(str(words[-1]), (HANG_S, HANG_S))
    limits = ("--timeout", timeout_s, "--stall", stall_s)
    return command("emulate", "-p", platform, "-np", 2, "--computing", "none", *limits, *words)


def complaint(said: Said) -> str:
    """The one line that a failed command ends with."""
    lines = [line for line in said.err.splitlines() if not line.startswith("lepaute: emulating ")]  # after a second
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
    assert "there is no option '--verbose'" in said
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
def test_a_program_that_is_not_built_for_emulation_is_refused_before_anything_else_is_built(
    compiler: str | None, flags: list[str], said: str, platform: Path, temporary: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "home"))
    program = tmp_path / "other"
    program.write_text("#!/bin/sh\n")
    if compiler is not None:
        mpi = "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); return MPI_Barrier(MPI_COMM_WORLD); }\n"
        (tmp_path / "other.c").write_text("int main(void) { return 0; }\n" if compiler == "gcc" else mpi)
        subprocess.run([compiler, "other.c", "-o", "other", *flags], cwd=tmp_path, check=True, timeout=HANG_S)
    line = complaint(emulate(platform, "--", program))
    assert said in line
    assert "lepaute emulate compilers" in line
    assert not (tmp_path / "home" / "simblas").exists()


def test_mpi_within_a_sample_of_smpi_is_refused_by_name(platform: Path, tmp_path: Path) -> None:
    code = "#include <mpi.h>\n#include <smpi/smpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v);\n"
    sample = "SMPI_SAMPLE_GLOBAL(int i = 0, i < 9, i++, 3, 0.1) { MPI_Barrier(MPI_COMM_WORLD); }\n"
    program = build(tmp_path, "sampled", code + sample + "return MPI_Finalize(); }\n")
    assert "MPI is called within SMPI_SAMPLE_LOCAL" in complaint(emulate(platform, "--", program))


@pytest.mark.parametrize("name", ["a.f", "a.F"])
def test_fortran_of_fixed_form_is_built_and_runs(name: str, platform: Path, tmp_path: Path) -> None:
    lines = ["program a", "include 'mpif.h'", "integer i", "call mpi_init(i)", "call mpi_barrier(mpi_comm_world,"]
    body = "".join(f"      {line}\n" for line in lines) + "     & i)\n      call mpi_finalize(i)\n      end\n"
    (tmp_path / name).write_text(body)
    for words in (["mpif77", "-c", name], ["mpif90", name]):
        done = ran([compiler_folder() / words[0], *words[1:]], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.o").exists()
    assert emulate(platform, "--", tmp_path / "a.out").status == 0


def test_fortran_that_smpi_passes_over_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.f95").write_text("end\n")
    done = ran([compiler_folder() / "mpif90", "-c", "a.f95"], cwd=tmp_path)
    assert done.returncode != 0
    assert "a.f95: only .f, .F (fixed form), .f90" in done.stderr


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


MIB = 1 << 20
#: Each rank writes its number at the first, the middle and the last byte of an allocation; all meet; what is there?
MEMORY = source_of("emulate_memory.c")
ALL_PRIVATE = 7  # a bit for each of the three bytes
ALL_SHARED = 0


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("memory"), "memory", MEMORY)


def run(
    program: Path, *words: str, ranks: int = 2, private: tuple[Private, ...] = (), fold: int | None = MIB
) -> EmulatedRun:
    options = Options(computing="none", folding=Folding(fold, block_bytes=4 * MIB, private=private))
    return emulate_run(program, words, tiny(), ranks, options=options)


@pytest.mark.parametrize("how", ["malloc", "calloc", "realloc", "memalign", "aligned"])
def test_large_allocations_of_all_kinds_are_folded_and_small_thresholds_leave_them(how: str, memory: Path) -> None:
    folded, left = run(memory, how), run(memory, how, fold=16 * MIB)
    assert (folded.stdout, folded.folded, folded.folded_bytes) == ((str(ALL_SHARED),), 2, 2 * 8 * MIB)
    assert (left.stdout, left.folded) == ((str(ALL_PRIVATE),), 0)


GROWS = source_of("emulate_memory_grows.c")


def test_what_is_private_survives_a_change_of_size(tmp_path: Path) -> None:
    found = run(build(tmp_path, "grows", GROWS), private=(Private("grows.c", 0, 4095),))
    assert found.stdout == ("100 100", "101 101")
    assert found.folded == 4  # the two large ones, before and after
    assert run(build(tmp_path, "grows", GROWS)).stdout == ("100 101", "101 101")  # but what was small


def line_of(text: str) -> int:
    return 1 + next(number for number, line in enumerate(MEMORY.splitlines()) if text in line)


@pytest.mark.parametrize(
    ("kept", "private"),
    [
        (Private("memory.c"), ALL_PRIVATE),
        (Private(f"memory.c:{line_of('return malloc')}"), ALL_PRIVATE),
        (Private(f"memory.c:{line_of('return malloc') + 1}"), ALL_SHARED),
        (Private("other.c"), ALL_SHARED),
        (Private("memory.c", 0, 4095), 1),
        (Private("memory.c", -4096, -1), 4),
        (Private("memory.c", 4 * MIB, 5 * MIB), 2),
    ],
)
def test_what_is_declared_private_stays_so_and_nothing_else(kept: Private, private: int, memory: Path) -> None:
    assert run(memory, "malloc", private=(kept,)).stdout == (str(private),)


NEW = Path(__file__).parents[1].joinpath("data", "programs", "emulate_memory_new.c").read_text()


def test_new_of_cxx_is_folded_and_a_function_that_allocates_can_be_kept_private(tmp_path: Path) -> None:
    program = build(tmp_path, "new", NEW, compiler="mpicxx", suffix=".cpp")
    assert run(program).stdout == ("0",)
    assert run(program, private=(Private("from_new"),)).stdout == ("1",)
    assert run(program, fold=None).stdout == ("7",)


def test_many_ranks_take_the_memory_of_one_block(tmp_path: Path) -> None:
    """16 ranks touch 64 MiB each; shared pages are told apart from those that count once for each mapping."""
    folded = run(build(tmp_path, "many", source_of("emulate_memory_many.c")), ranks=16)
    assert folded.folded_bytes == 16 * 64 * MIB
    assert int(folded.stdout[0]) < 200 * 1024  # KiB; 1 GiB without


MESSAGE = source_of("emulate_memory_message.c")


def test_messages_between_folded_and_private_memory_leave_private_memory_whole(tmp_path: Path) -> None:
    program = build(tmp_path, "message", MESSAGE)
    folded, private = run(program), run(program, fold=None)
    assert folded.stdout == private.stdout == ("0 3", "0 3")
    assert folded.time_s == private.time_s  # folding is a matter of this machine, not of the simulated one


def test_what_a_part_kept_private_holds_travels_in_messages(tmp_path: Path) -> None:
    """The first page of the large arrays is private: control data at their head arrives, as HPL's pivots do."""
    source = MESSAGE.replace("got[0], got[3]", "got[0] + large[1], got[3]").replace(
        "MPI_Recv(got, 4, MPI_DOUBLE, 0, 1,", 'printf("%g\\n", mine[3]); MPI_Recv(got, 4, MPI_DOUBLE, 0, 1,'
    )
    found = run(build(tmp_path, "head", source), private=(Private("head.c", 0, 4095),))
    assert found.stdout == ("3", "11 3", "1 3")


def test_each_rank_has_global_variables_of_its_own_unless_told_otherwise(tmp_path: Path) -> None:
    program = build(tmp_path, "globals", source_of("emulate_memory_globals.c"))
    apart, together = (
        emulate_run(program, ["all"], tiny(), 3, options=Options(computing="none", privatize=privatize))
        for privatize in (True, False)
    )
    assert apart.stdout == ("18",) * 3  # 5 + 6 + 7
    assert set(together.stdout) == {"24"}  # 5 + 0 + 1 + 2 for each of them


def test_the_command_folds_and_keeps_private_what_its_options_say(memory: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(tiny_text())
    words = ("emulate", "-p", tmp_path / "p.yaml", "-np", 2, "--details", "--fold", "1M", "--private")
    said = command(*words, "with_malloc@0-63", "--", memory, "malloc")
    assert said.status == 0, said.err
    assert said.out.split() == [str(ALL_SHARED)]  # a C source is named by file and line
    said = command(*words, "memory.c@0-63", "--", memory, "malloc")
    assert said.out.split() == ["1"]
    assert "0.0168 GB folded" in said.err
