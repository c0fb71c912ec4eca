"""Laws of the generated BLAS: its names are those of the standard, its counts those of the textbook algorithms, and no
entry does anything that a program or the runtime could stumble over."""

import ctypes
import ctypes.util
import math
import random
import shutil
from itertools import product as all_of
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import operation_counts as textbook
from simblas_recorder import COLUMN_MAJOR, ROW_MAJOR, library, table
from support_limits import ran

from lepaute.simulate.smpi.entries import Member, members_of

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(shutil.which("g++") is None, reason="the entries are compiled with g++"),
]

# The reference BLAS, letters and stems, level by level.
REFERENCE = {
    "sd": "rotg rotmg rot rotm swap scal copy axpy dot nrm2 asum "
    "gemv gbmv symv sbmv spmv trmv tbmv tpmv trsv tbsv tpsv ger syr spr syr2 spr2 "
    "gemm symm syrk syr2k trmm trsm",
    "cz": "rotg swap scal copy axpy dotu dotc "
    "gemv gbmv hemv hbmv hpmv trmv tbmv tpmv trsv tbsv tpsv geru gerc her hpr her2 hpr2 "
    "gemm symm hemm syrk herk syr2k her2k trmm trsm",
}
REFERENCE_ODD = "isamax idamax icamax izamax scnrm2 dznrm2 scasum dzasum csscal zdscal csrot zdrot sdsdot dsdot"
# Extensions whose names a program may well have given to functions of its own, and what is internal to OpenBLAS.
LEFT_OUT = {f"{letter}{stem}_" for letter in "sd" for stem in ("amax", "amin", "max", "min", "sum")} | {
    *(f"{name}_" for name in ("scamax", "scamin", "scsum", "dzamax", "dzamin", "dzsum")),
    *(f"i{letter}{stem}_" for letter in "sd" for stem in ("max", "min")),
    *(f"cblas_i{letter}{stem}" for letter in "sdcz" for stem in ("max", "min")),
    *("cblas_ssum", "cblas_dsum", "cblas_scsum", "cblas_dzsum", "__xerbla"),
}


def exported(path: str | Path) -> set[str]:
    listed = ran(["nm", "-D", "--defined-only", path], check=True).stdout
    return {words[2] for line in listed.splitlines() if len(words := line.split()) == 3 and words[1] in "TWi"}


def reference_names() -> set[str]:
    names = {letter + stem for letters, stems in REFERENCE.items() for letter in letters for stem in stems.split()}
    return names | set(REFERENCE_ODD.split())


def test_every_routine_of_the_reference_blas_has_a_fortran_and_a_cblas_entry() -> None:
    ours = exported(library().path)
    missing = {f"{name}_" for name in reference_names()} - ours
    # C returns complex numbers through an argument.
    in_c = {name + "_sub" if name[1:] in {"dotu", "dotc"} else name for name in reference_names()}
    assert not missing | ({f"cblas_{name}" for name in in_c} - ours)
    assert {"lsame_", "xerbla_", "cblas_xerbla", "dcabs1_", "dlamch_", "ilaenv_"} <= ours


def test_every_name_of_the_blas_of_this_machine_is_there_but_those_left_out_on_purpose() -> None:
    found = ctypes.util.find_library("blas")
    folders = [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib")]
    paths = [folder / found for folder in folders if found and (folder / found).exists()]
    if not paths or shutil.which("nm") is None:
        pytest.skip("no BLAS, or no nm, on this machine")
    theirs = {name for name in exported(paths[0]) if name.startswith("cblas_") or name.endswith("_")}
    assert theirs - exported(library().path) <= LEFT_OUT
    assert not LEFT_OUT & exported(library().path)


SIZE = st.integers(1, 7)
A = (ctypes.c_double * 64)()
ONE = 1.0


def charged_flops(name: str, *arguments: Any) -> float:
    loaded = library()
    loaded.charges()
    loaded.fortran(name, *arguments)
    return loaded.charge().flops


def band(n: int, k: int) -> int:
    return min(k, n - 1)


def counted_calls(m: int, n: int, k: int) -> dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Arguments of a call, and the algorithm with its sizes."""
    return {
        "dgemm": (("N", "T", m, n, k, ONE, A, 8, A, 8, ONE, A, 8), (textbook.product, m, n, k)),
        "dsymm": (("R", "U", m, n, ONE, A, 8, A, 8, ONE, A, 8), (textbook.product, m, n, n)),
        "dsyrk": (("U", "N", n, k, ONE, A, 8, ONE, A, 8), (textbook.triangle_of_product, n, k)),
        "dsyr2k": (("U", "N", n, k, ONE, A, 8, A, 8, ONE, A, 8), (textbook.triangle_of_two_products, n, k)),
        "dgemmt": (("U", "N", "N", n, k, ONE, A, 8, A, 8, ONE, A, 8), (textbook.triangle_of_product, n, k)),
        "dtrmm": (("L", "U", "N", "N", m, n, ONE, A, 8, A, 8), (textbook.triangle_times_matrix, m, n)),
        "dtrsm": (("R", "U", "N", "N", m, n, ONE, A, 8, A, 8), (textbook.triangle_solved, n, m)),
        "dgemv": (("N", m, n, ONE, A, 8, A, 1, ONE, A, 1), (textbook.product, m, 1, n)),
        "dger": ((m, n, ONE, A, 1, A, 1, A, 8), (textbook.product, m, n, 1)),
        "dgbmv": (
            ("N", m, n, k - 1, 7 - k, ONE, A, 8, A, 1, ONE, A, 1),
            (textbook.band_times_vector, m, n, k - 1, 7 - k),
        ),
        "dsymv": (("U", n, ONE, A, 8, A, 1, ONE, A, 1), (textbook.product, n, 1, n)),
        "dsbmv": (("U", n, k, ONE, A, 8, A, 1, ONE, A, 1), (textbook.symmetric_band_times_vector, n, band(n, k))),
        "dtrsv": (("U", "N", "N", n, A, 8, A, 1), (textbook.triangle_solved, n, 1)),
        "dtrmv": (("U", "N", "N", n, A, 8, A, 1), (textbook.triangle_times_matrix, n, 1)),
        "dtbsv": (("U", "N", "N", n, k, A, 8, A, 1), (textbook.band_triangle_solved, n, band(n, k))),
        "dsyr": (("U", n, ONE, A, 1, A, 8), (textbook.triangle_of_product, n, 1)),
        "dspr2": (("U", n, ONE, A, 1, A, 1, A), (textbook.triangle_of_two_products, n, 1)),
        "dgetrf": ((m, n, A, 8, (ctypes.c_int * 8)(), ctypes.c_int()), (textbook.lu, m, n)),
        "dgetrs": (("N", n, k, A, 8, A, A, 8, ctypes.c_int()), (textbook.lu_solved, n, k)),
        "dpotrf": (("U", n, A, 8, ctypes.c_int()), (textbook.cholesky, n)),
        "dpotrs": (("U", n, k, A, 8, A, 8, ctypes.c_int()), (textbook.cholesky_solved, n, k)),
        "dpbtrf": (("U", n, k, A, 8, ctypes.c_int()), (textbook.band_cholesky, n, band(n, k))),
        "dpbtrs": (("U", n, k, m, A, 8, A, 8, ctypes.c_int()), (textbook.band_cholesky_solved, n, band(n, k), m)),
        "dtrtri": (("U", "N", n, A, 8, ctypes.c_int()), (textbook.triangle_inverted, n)),
        "dtrtrs": (("U", "N", "N", n, k, A, 8, A, 8, ctypes.c_int()), (textbook.triangle_solved, n, k)),
    }


@pytest.mark.parametrize("name", counted_calls(1, 1, 1))
@settings(max_examples=30)
@given(m=SIZE, n=SIZE, k=SIZE)
def test_counts_are_those_of_the_textbook_algorithm(name: str, m: int, n: int, k: int) -> None:
    arguments, (algorithm, *sizes) = counted_calls(m, n, k)[name]
    pointers = [ctypes.byref(a) if isinstance(a, ctypes.c_int) else a for a in arguments]
    multiplies, adds = textbook.counted(algorithm, *sizes)
    assert charged_flops(name, *pointers) == pytest.approx(multiplies + adds, rel=1e-12, abs=1e-9)
    # The complex routine of that name: six real operations a multiplication, two an addition.
    twin = {"dsyr2k": "zher2k", "dspr2": "zhpr2"}.get(name, "z" + name[1:])
    if twin in {member.name for member in members_of(table())}:
        assert charged_flops(twin, *(A if isinstance(a, float) else a for a in pointers)) == pytest.approx(
            6 * multiplies + 2 * adds, rel=1e-12, abs=1e-9
        )


MEMBERS = list(members_of(table()))


class Arguments:
    """Something for every kind of argument: integers from a generator, one buffer for all arrays."""

    def __init__(self, seed: int, integers: tuple[int, int], letters: str) -> None:
        self.random = random.Random(seed)
        self.integers = integers
        self.letters = letters
        self.buffers: dict[str, Any] = {}

    def fortran(self, member: Member) -> list[Any]:
        made: list[Any] = []
        for argument in member.block.arguments(member.letter):
            match argument.kind:
                case "letter":
                    made.append(self.random.choice(self.letters))
                case "integer":
                    made.append(self.random.randint(*self.integers))
                case "integers":
                    made.append(self.buffers.setdefault(argument.name, (ctypes.c_int * 1024)(*[77] * 1024)))
                case _:
                    made.append(self.buffers.setdefault(argument.name, (ctypes.c_double * 1024)()))
        return made


@pytest.mark.parametrize("integers", [(1, 9), (-3, 3), (0, 0)])
def test_no_fortran_entry_charges_twice_or_what_is_no_cost_and_every_info_is_zero(integers: tuple[int, int]) -> None:
    loaded = library()
    for seed, member in enumerate(MEMBERS):
        arguments = Arguments(seed, integers, "NTULRCVASPIE")
        loaded.charges()
        loaded.fortran(member.name, *arguments.fortran(member))
        charges = loaded.charges()
        assert len(charges) <= 1, member.name
        for charge in charges:
            assert charge.name == member.name
            values = (*charge.size, charge.flops)
            assert all(math.isfinite(value) and value >= 0 for value in values), (member.name, values)
        if "info" in arguments.buffers:
            assert list(arguments.buffers["info"][:2]) == [0, 77], member.name
        lets = set(member.block.lets)  # such as the number of rows from k1 to k2
        assert charges or integers != (1, 9) or lets & set(member.block.needs or ()), member.name


def test_larger_calls_never_cost_less() -> None:
    # All integers of a call doubled, and doubled again; letters stay.
    loaded = library()
    for seed, member in enumerate(MEMBERS):
        for letters in ("N", "V", "L"):
            costs = []
            for size in (4, 8, 16):
                loaded.charges()
                loaded.fortran(member.name, *Arguments(seed, (size, size), letters).fortran(member))
                costs += [charge.flops for charge in loaded.charges()]
            assert costs == sorted(costs), (member.name, letters, costs)


@pytest.mark.parametrize("stem", ["symm", "trmm", "trsm"])
def test_a_row_major_call_costs_what_the_call_of_the_transposes_costs(stem: str) -> None:
    loaded = library()
    loaded.charges()
    for side, m, n in all_of((141, 142), (2, 5), (3, 7)):
        head = (122,) if stem == "symm" else (122, 111, 131)
        tail = (ONE, A, 8, A, 8, ONE, A, 8) if stem == "symm" else (ONE, A, 8, A, 8)
        loaded.c(f"cblas_d{stem}", ROW_MAJOR, side, *head, m, n, *tail)
        loaded.c(f"cblas_d{stem}", COLUMN_MAJOR, 283 - side, *head, n, m, *tail)
        by_rows, by_columns = loaded.charges()
        assert by_rows == by_columns
