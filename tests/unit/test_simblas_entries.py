"""What the generated BLAS charges, answers and leaves behind, called as programs call it."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from simblas_recorder import (
    COLUMN_MAJOR,
    CONJ_TRANS,
    NO_TRANS,
    ROW_MAJOR,
    TRANS,
    Charge,
    Library,
    doubles,
    integers,
    library,
)
from support_limits import HANG_S, ran

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(shutil.which("g++") is None, reason="the entries are compiled with g++"),
]
A = doubles(*[0.0] * 64)
ONE = 1.0


@pytest.fixture
def blas() -> Library:
    loaded = library()
    loaded.charges()
    return loaded


def dgemm(blas: Library, transa: str, transb: str, m: int, n: int, k: int) -> Charge:
    blas.fortran("dgemm", transa, transb, m, n, k, ONE, A, 8, A, 8, ONE, A, 8)
    return blas.charge()


@pytest.mark.parametrize(("transb", "kernel"), [("N", "dgemm_nn"), ("n", "dgemm_nn"), ("T", "dgemm"), ("c", "dgemm")])
def test_the_second_matrix_of_dgemm_decides_its_kernel(blas: Library, transb: str, kernel: str) -> None:
    assert dgemm(blas, "T", transb, 2, 3, 4) == Charge("dgemm", kernel, 2, 3, 4, 48)


def test_sizes_beyond_the_product_of_integers_are_exact(blas: Library) -> None:
    assert dgemm(blas, "N", "N", 2_000_000, 3_000_000, 1000).flops == 2 * 2e6 * 3e6 * 1e3


def cblas_dgemm(blas: Library, order: int, transa: int, transb: int) -> Charge:
    blas.c("cblas_dgemm", order, transa, transb, 2, 3, 4, ONE, A, 8, A, 8, ONE, A, 8)
    return blas.charge()


def test_a_column_major_cblas_call_is_fortrans_and_a_row_major_one_that_of_the_transposes(blas: Library) -> None:
    charge = cblas_dgemm(blas, COLUMN_MAJOR, TRANS, NO_TRANS)
    assert (charge.kernel, charge.size) == ("dgemm_nn", (2, 3, 4))
    # C' = B' A': the second operand is A, the rows are those of C'.
    charge = cblas_dgemm(blas, ROW_MAJOR, TRANS, NO_TRANS)
    assert (charge.kernel, charge.size) == ("dgemm", (3, 2, 4))
    assert cblas_dgemm(blas, ROW_MAJOR, NO_TRANS, CONJ_TRANS).kernel == "dgemm_nn"
    blas.c("cblas_dgemv", ROW_MAJOR, NO_TRANS, 5, 7, ONE, A, 8, A, 1, ONE, A, 1)
    blas.c("cblas_dger", ROW_MAJOR, 5, 7, ONE, A, 1, A, 1, A, 8)
    assert [(charge.kernel, charge.size) for charge in blas.charges()] == [("dgemv", (7, 5, 0)), ("dger", (7, 5, 0))]


@pytest.mark.parametrize(("side", "kernel", "order"), [("L", "dtrsm_left", 5), ("r", "dtrsm", 7)])
def test_the_side_of_dtrsm_decides_kernel_and_order(blas: Library, side: str, kernel: str, order: int) -> None:
    blas.fortran("dtrsm", side, "U", "N", "N", 5, 7, ONE, A, 8, A, 8)
    charge = blas.charge()
    # One multiplication for each of the order·(order + 1)/2 elements of the triangle, an addition off the diagonal.
    assert (charge.kernel, charge.size, charge.flops) == (kernel, (5, 7, order), 5 * 7 * order)


def test_kernels_of_vectors_have_their_length_as_n_and_only_double_routines_have_kernels(blas: Library) -> None:
    blas.fortran("dscal", 9, ONE, A, 1)
    blas.fortran("daxpy", 9, ONE, A, 1, A, 1)
    blas.fortran("idamax", 9, A, 1, result=ctypes.c_int)
    blas.fortran("dtrsv", "L", "N", "U", 9, A, 9, A, 1)
    assert [(c.kernel, c.size) for c in blas.charges()] == [
        (kernel, (0, 9, 0)) for kernel in ("dscal", "daxpy", "idamax", "dtrsv")
    ]
    blas.fortran("zgemm", "N", "N", 2, 3, 4, A, A, 8, A, 8, A, A, 8)
    blas.fortran("sgemm", "N", "N", 2, 3, 4, A, A, 8, A, 8, A, A, 8)
    complex_call, single = blas.charges()
    assert (complex_call.kernel, complex_call.flops) == ("", 8 * 24)
    assert (single.kernel, single.flops) == ("", 2 * 24)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (-1, 3, 4)])
def test_an_empty_product_costs_nothing(blas: Library, sizes: tuple[int, int, int]) -> None:
    blas.fortran("dgemm", "N", "N", *sizes, ONE, A, 8, A, 8, ONE, A, 8)
    assert not blas.charges()


def test_results_of_reductions_are_one_of_empty_vectors_zero_and_an_index_is_the_runtimes_answer(blas: Library) -> None:
    for name, arguments in [("ddot", (A, 1, A, 1)), ("dnrm2", (A, 1)), ("dasum", (A, 1)), ("dznrm2", (A, 1))]:
        assert blas.fortran(name, 5, *arguments, result=ctypes.c_double) == 1.0
        assert blas.fortran(name, 0, *arguments, result=ctypes.c_double) == 0.0
    assert blas.fortran("sdot", 5, A, 1, A, 1, result=ctypes.c_float) == 1.0
    assert blas.fortran("dsdot", 5, A, 1, A, 1, result=ctypes.c_double) == 1.0
    assert blas.c("cblas_dasum", 5, A, 1, result=ctypes.c_double) == 1.0
    assert len(blas.charges()) == 7
    with blas.answering(3):
        assert blas.fortran("idamax", 5, A, 1, result=ctypes.c_int) == 4
        assert blas.c("cblas_izamax", 5, A, 1, result=ctypes.c_size_t) == 3
        assert ctypes.c_int.in_dll(blas.loaded, "asked_of").value == 5
        assert blas.fortran("idamax", 0, A, 1, result=ctypes.c_int) == 0
        assert blas.c("cblas_idamax", 0, A, 1, result=ctypes.c_size_t) == 0
    assert [charge.name for charge in blas.charges()] == ["idamax", "izamax"]


def test_small_copies_really_move_also_backwards(blas: Library) -> None:
    x, y = doubles(1, 2, 3), doubles(0, 0, 0, 0, 0)
    blas.fortran("dcopy", 3, x, -1, y, 2)
    assert list(y) == [3, 0, 2, 0, 1]
    blas.c("cblas_dswap", 2, x, 1, y, 1)
    assert list(x) == [3, 0, 3]
    assert list(y) == [1, 2, 2, 0, 1]


def test_a_copy_along_a_row_is_dcopy_with_its_stride_and_a_contiguous_one_has_no_kernel(blas: Library) -> None:
    blas.c("cblas_dcopy", 3, A, 7, A, 1)
    blas.c("cblas_dcopy", 3, A, 1, A, 1)
    along_row, contiguous = blas.charges()
    assert (along_row.kernel, along_row.size) == ("dcopy", (0, 3, 7))
    assert (contiguous.kernel, contiguous.size, contiguous.flops) == ("", (0, 3, 1), 0)


@pytest.mark.parametrize(
    ("n", "stride", "moves"), [(8192, 1, True), (8193, 1, False), (2, 8191, True), (2, 8192, False)]
)
def test_what_extends_over_more_than_64_kib_stays(blas: Library, n: int, stride: int, moves: bool) -> None:
    x, y = (ctypes.c_double * 9000)(*[5.0] * 9000), (ctypes.c_double * 9000)()
    blas.fortran("dcopy", n, x, stride, y, 1)
    assert (y[0] == 5.0) == moves
    assert blas.charge().n == n


def test_dlacpy_moves_the_part_that_it_is_told_in_either_order(blas: Library) -> None:
    a = np.arange(1.0, 7.0)
    b = np.zeros(6)
    pointer = ctypes.POINTER(ctypes.c_double)
    blas.fortran("dlacpy", "U", 2, 3, a.ctypes.data_as(pointer), 2, b.ctypes.data_as(pointer), 2)
    assert b.tolist() == [1, 0, 3, 4, 5, 6]  # columns of two; the second element of the first is below the diagonal
    b[:] = 0
    rows = (2, 3, a.ctypes.data_as(pointer), 3, b.ctypes.data_as(pointer), 3)
    assert blas.c("LAPACKE_dlacpy", ROW_MAJOR, "U", *rows, result=ctypes.c_int) == 0
    assert b.tolist() == [1, 2, 3, 0, 5, 6]  # rows of three
    assert [charge.kernel for charge in blas.charges()] == ["dlacpy", "dlacpy"]


def test_nothing_is_written_before_a_matrix_whose_leading_dimension_is_negative(blas: Library) -> None:
    given, around = doubles(*[1.0] * 12), doubles(*[0.0] * 12)
    middle = ctypes.byref(around, 6 * ctypes.sizeof(ctypes.c_double))
    blas.fortran("dlacpy", "A", 1, 3, given, 1, middle, -3)
    blas.fortran("dlaset", "A", 1, 3, 0.5, 2.0, middle, -3)
    assert list(around) == [0.0] * 12


def test_dlaset_sets_off_and_on_the_diagonal_and_a_rotation_changes_nothing(blas: Library) -> None:
    a = doubles(*[9.0] * 6)
    blas.fortran("dlaset", "A", 2, 3, 0.5, 2.0, a, 2)
    assert list(a) == [2.0, 0.5, 0.5, 2.0, 0.5, 0.5]
    a, b, cosine, sine = doubles(3), doubles(4), doubles(9), doubles(9)
    blas.fortran("drotg", a, b, cosine, sine)
    assert [x[0] for x in (a, b, cosine, sine)] == [3, 0, 1, 0]


def test_dgetrf_leaves_the_matrix_and_gives_the_identity_as_pivots(blas: Library) -> None:
    a, pivots, info = doubles(*[7.0] * 6), integers(9, 9, 9), integers(9)
    blas.fortran("dgetrf", 3, 2, a, 3, pivots, info)
    charge = blas.charge()
    assert list(a) == [7.0] * 6
    assert (list(pivots), list(info)) == ([1, 2, 9], [0])
    # Two reciprocals, 2 + 1 scaled elements, and 2 elements updated by one product each.
    assert (charge.size, charge.flops) == ((3, 2, 0), 2 + 3 + 2 * 2)


def test_lapacke_has_no_workspace_and_a_question_for_one_is_answered_and_costs_nothing(blas: Library) -> None:
    pivots = integers(9, 9)
    assert blas.c("LAPACKE_dgetrf", ROW_MAJOR, 2, 2, A, 2, pivots, result=ctypes.c_int) == 0
    assert list(pivots) == [1, 2]
    values = doubles(0, 0, 0)
    assert blas.c("LAPACKE_dsyev", COLUMN_MAJOR, "V", "U", 3, A, 3, values, result=ctypes.c_int) == 0
    assert list(values) == [1, 2, 3]
    assert [charge.name for charge in blas.charges()] == ["dgetrf", "dsyev"]
    work, iwork, info, values = doubles(0), integers(0), integers(9), doubles(9, 9)
    blas.fortran("dsyevd", "V", "U", 10, A, 10, values, work, -1, iwork, -1, info)
    assert work[0] >= 1 + 6 * 10 + 2 * 10**2  # what LAPACK's documentation demands
    assert iwork[0] >= 3 + 5 * 10
    assert list(values) == [9, 9]
    assert list(info) == [0]
    asked = blas.c("LAPACKE_dgeqrf_work", COLUMN_MAJOR, 4, 10, A, 4, values, work, -1, result=ctypes.c_int)
    assert (asked, work[0] >= 10) == (0, True)
    assert not blas.charges()


def test_eigenvalues_and_singular_values_are_distinct_and_ordered(blas: Library) -> None:
    found, values = integers(0), doubles(0, 0, 0, 0)
    letters = ("V", "I", "L")
    limits = (0.0, 0.0, 2, 3, 0.0)
    blas.fortran(
        "dsyevr", *letters, 4, A, 4, *limits, found, values, A, 4, integers(*[0] * 8), A, 64, A, 64, integers(9)
    )
    assert (found[0], list(values)) == (2, [1, 2, 0, 0])
    blas.fortran("dgesvd", "N", "N", 4, 3, A, 4, values, A, 1, A, 1, A, 64, integers(9))
    assert list(values) == [3, 2, 1, 0]


@pytest.mark.parametrize(("name", "real"), [("dlamch", np.float64), ("slamch", np.float32)])
def test_machine_constants_are_true(blas: Library, name: str, real: type) -> None:
    limits = np.finfo(real)
    result = ctypes.c_double if real is np.float64 else ctypes.c_float
    got = {letter: blas.fortran(name, letter, result=result) for letter in "EPBSUO"}
    assert got == {"E": limits.eps / 2, "P": limits.eps, "B": 2, "S": limits.tiny, "U": limits.tiny, "O": limits.max}
    assert not blas.charges()


C_PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "simblas_entries_program.c").read_text()

FORTRAN_PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "simblas_entries_fortran.f90").read_text()


def run_linked(folder: Path, compiler: str, source: str, libraries: list[str]) -> str:
    """What the program prints; `libraries` are flags of the linker."""
    file = folder / ("caller.c" if "gcc" in compiler else "caller.f90")
    file.write_text(source)
    program = folder / "caller"
    subprocess.run([compiler, "-O1", "-o", program, file, *libraries, "-lm"], check=True, timeout=HANG_S)
    return ran([program], check=True).stdout


def ours() -> list[str]:
    path = library().path
    return [f"-L{path.parent}", f"-Wl,-rpath,{path.parent}", "-lsimblas_recorded"]


def has_real_blas(folder: Path, compiler: str, flag: str) -> bool:
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    command = [compiler, folder / "empty.c", flag, "-o", folder / "empty"]
    return subprocess.run(command, check=False, timeout=HANG_S, capture_output=True).returncode == 0


def test_a_c_program_sees_the_types_of_the_real_cblas(tmp_path: Path) -> None:
    probe = ran(["gcc", "-E", "-"], input="#include <cblas.h>\n")
    if probe.returncode:
        pytest.skip("no cblas.h here")
    printed = run_linked(tmp_path, "gcc", C_PROGRAM, ours())
    assert printed == "1 0\n" * 3 + "1 1 0\n"
    if has_real_blas(tmp_path, "gcc", "-lblas"):  # vectors of length one: the real results are the same
        assert run_linked(tmp_path, "gcc", C_PROGRAM, ["-lblas"]) == printed


PRELOADED = Path(__file__).parents[1].joinpath("data", "programs", "simblas_entries_preloaded.c").read_text()


def test_preloaded_it_wins_over_the_blas_that_a_program_is_linked_with(tmp_path: Path) -> None:
    if not has_real_blas(tmp_path, "gcc", "-lblas"):
        pytest.skip("no BLAS to link with here")
    assert run_linked(tmp_path, "gcc", PRELOADED, ["-lblas"]) == "13\n"
    preloaded = ran([tmp_path / "caller"], env={**os.environ, "LD_PRELOAD": str(library().path)}, check=True)
    assert preloaded.stdout == "1\n"


def test_a_fortran_program_sees_the_types_of_the_real_lapack(tmp_path: Path) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("no gfortran here")
    lines = run_linked(tmp_path, "gfortran", FORTRAN_PROGRAM, ours()).splitlines()
    assert [line.split() for line in lines] == [
        ["1.0", "0.0"], ["1.0", "0.0"], ["1.0", "1.0", "1.0", "1"], ["1", "2", "0"], ["0", "T"],
    ]  # fmt: skip
    if has_real_blas(tmp_path, "gcc", "-llapack"):
        assert run_linked(tmp_path, "gfortran", FORTRAN_PROGRAM, ["-llapack", "-lblas"]).splitlines() == lines
