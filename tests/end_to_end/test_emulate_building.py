"""Programs built for emulation: from a folder of sources, with functions left out, with a BLAS that is not simblas."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from oracles.emulated import HEAD, Said, build, command, compiler_folder, dgemm_s, source_of, tiny, tiny_text
from support_limits import ran

from lepaute.simulate.smpi.building import other_mpi_of
from lepaute.simulate.smpi.emulate import Options, emulate_run

pytestmark = pytest.mark.machine

MAIN = source_of("emulate_building.c")
CHECK = """
#include <mpi.h>
void check(void) { MPI_Abort(MPI_COMM_WORLD, 1); }
"""
MAKEFILE = """
CC = cc
solver: main.o check.o
\t$(CC) -o $@ $^ -lopenblas -lm
main.o check.o: %.o: %.c
\t$(CC) -O0 -c $<
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    compiler_folder()
    folder = tmp_path / "solver-1.0"
    folder.mkdir()
    for name, text in (("main.c", MAIN), ("check.c", CHECK), ("Makefile", MAKEFILE), ("p.yaml", tiny_text())):
        (folder / name).write_text(text)
    return folder


def emulate(source: Path, *words: str) -> Said:
    options = ("-p", source / "p.yaml", "-np", 1, "--computing", "none", "--details", "--source", source)
    return command("emulate", *options, *words, "--", "solver", "input.dat")


def time_s(said: Said) -> float:
    found = re.search(r"^ *time +(\S+) (s|ms) ", said.err, re.MULTILINE)
    assert found is not None, said.err
    return float(found[1]) * (1e-3 if found[2] == "ms" else 1.0)


def test_a_folder_is_built_as_its_makefile_says_and_left_as_it_was(source: Path) -> None:
    before = sorted(source.iterdir())
    said = emulate(source, "--make", "make CC=mpicc", "--skip", "check")
    assert said.status == 0, said.err
    assert said.out == "done with input.dat\n"
    assert time_s(said) == pytest.approx(dgemm_s(100, 100, 100) + dgemm_s(10, 10, 10), rel=1e-3)
    assert sorted(source.iterdir()) == before


def test_what_another_mpi_has_built_in_the_folder_is_built_again(source: Path) -> None:
    """make would take the copy of it for up to date."""
    stale, other = source / "solver", source.parent / "other.c"
    other.write_text("#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n")
    if subprocess.run(["mpicc", "-o", stale, other], capture_output=True, check=False).returncode:
        pytest.skip("no mpicc of a real MPI")
    assert other_mpi_of(stale) is not None
    assert other_mpi_of(Path(sys.executable).resolve()) is None
    said = emulate(source, "--make", "make CC=mpicc", "--skip", "check")
    assert said.status == 0, said.err
    assert said.out == "done with input.dat\n"


@pytest.mark.parametrize(("compiler", "suffix"), [("mpicc", ".c"), ("mpicxx", ".cpp")])
def test_compilers_know_that_nothing_else_is_where_malloc_allocates(compiler: str, suffix: str, tmp_path: Path) -> None:
    """Else loops over arrays are compiled several times as slow as in the real program."""
    text = Path(__file__).parents[1].joinpath("data", "programs", "emulate_allocations.c").read_text()
    build(tmp_path, "allocations", text, "-O2", compiler=compiler, suffix=suffix)


def test_a_skipped_function_returns_at_once_in_its_own_file_too(source: Path) -> None:
    said = emulate(source, "--make", "make CC=mpicc", "--skip", "check", "--skip", "initialise")
    assert time_s(said) == pytest.approx(dgemm_s(10, 10, 10), rel=1e-3)


def test_without_a_skip_the_program_does_all_it_does(source: Path) -> None:
    said = emulate(source, "--make", "make CC=mpicc")
    assert said.status == 2
    assert "rank 0 called MPI_Abort with code 1" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--make", "make CC=mpicc nonsense"], "'make CC=mpicc nonsense' in a copy of"),
        (["--make", "make CC=gcc"], "main.c:2:10: fatal error: mpi.h: No such file or directory"),
        (["--make", "true"], "solver was not built"),
        (["--make", "make CC=mpicc", "--skip", "9lives"], "--skip '9lives' is not the name of a function"),
        (["--binary", "solver"], "give one of them"),
    ],
)
def test_what_does_not_build_is_told_in_one_line(words: list[str], said: str, source: Path) -> None:
    answer = emulate(source, *words)
    assert answer.status == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1


FORTRAN = Path(__file__).parents[1].joinpath("data", "programs", "emulate_building_fortran.f90").read_text()


def test_a_program_in_fortran_is_built_charged_folded_and_skipped(tmp_path: Path) -> None:
    if not (compiler_folder() / "mpif90").exists() or subprocess.run(["which", "gfortran"], check=False).returncode:
        pytest.skip("gfortran is not installed")
    (tmp_path / "solver.f90").write_text(FORTRAN)
    (tmp_path / "p.yaml").write_text(tiny_text(wtime_s="wtime_s: 0"))
    said = command(
        *(
            "emulate", "-p", tmp_path / "p.yaml", "-np", 1, "--computing", "none", "--details", "--source",
            tmp_path, "--skip", "initialise",
        ),
        *("--fold", "1M", "--make", "mpif90 -O1 solver.f90 -o solver -lblas", "--", "solver"),
    )  # fmt: skip
    assert said.status == 0, said.err
    took, dot = (float(word) for word in said.out.split()[1:])
    assert took == pytest.approx(dgemm_s(3, 3, 3), rel=1e-9)
    assert dot == 1.0  # what simblas answers; a function, whose convention of calling matters
    assert "0.00800 GB folded" in said.err


def real_blas() -> Path:
    found = re.search(r"libopenblas\.so\S* .*=> (\S+)", ran(["/sbin/ldconfig", "-p"]).stdout)
    if found is None:
        pytest.skip("there is no real BLAS here")
    return Path(found[1])


def test_a_real_blas_linked_by_its_full_path_is_not_called_and_a_routine_of_it_alone_told(tmp_path: Path) -> None:
    source = HEAD + "int main(int c, char **v) { begin(&c, &v); dgemm(3, 3, 3); MPI_Finalize(); return 0; }"
    program = build(tmp_path, "full", source, str(real_blas()))
    found = emulate_run(program, [], tiny(), 1, options=Options(computing="none"))
    assert found.time_s == pytest.approx(dgemm_s(3, 3, 3), rel=1e-12)
    assert found.warnings == ()
    source = HEAD + (
        "extern void dhgeqz_(void); static void (*volatile never)(void) = dhgeqz_;"
        "int main(int c, char **v) { begin(&c, &v); dgemm(3, 3, 3); MPI_Finalize(); return never == 0; }"
    )
    program = build(tmp_path, "lapack", source, str(real_blas()))
    (warning,) = emulate_run(program, [], tiny(), 1).warnings
    assert warning.startswith("simblas has no dhgeqz: that of libopenblas.so")


def test_a_blas_that_the_program_brings_along_is_told(tmp_path: Path) -> None:
    source = HEAD + (
        "void dscal_(const int *n, const double *a, double *x, const int *step) { x[0] += n == a || step != n; }"
        "int main(int c, char **v) { begin(&c, &v); double x = 0; dscal_(0, 0, &x, 0); MPI_Finalize(); return x != 1; }"
    )
    (warning,) = emulate_run(build(tmp_path, "own", source), [], tiny(), 1).warnings
    assert warning.startswith("the program has dscal of its own")
