"""The programs of examples/emulation: right with a real MPI, and the same program under SMPI."""

from pathlib import Path

import pytest
from oracles.emulation_examples import ARGUMENTS, PROGRAMS, built, run, values

pytestmark = pytest.mark.machine

#: What each prints of its own mistakes; rounding stays far below.
ERRORS = {
    "halo": ("error",),
    "cg": ("error",),
    "fft": ("error of a coefficient", "error after the inverse"),
    "summa_fortran": ("error",),
}
KINDS = ("real", "smpi")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("example", PROGRAMS)
def test_an_example_gets_right_what_it_computes_on_two_ranks(example: str, kind: str, tmp_path: Path) -> None:
    done = run(built(example, kind, tmp_path), kind, 2, ARGUMENTS[example])
    assert done.returncode == 0, done.stderr
    found = values(done.stdout)
    assert found["time"] >= 0.0
    for name in ERRORS[example]:
        assert found[name] < 1e-12


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_the_checksum_of_the_halo_exchange_does_not_depend_on_the_ranks_or_the_mpi(ranks: int, tmp_path: Path) -> None:
    two = values(run(built("halo", "real", tmp_path), "real", 2, ARGUMENTS["halo"]).stdout)
    other = values(run(built("halo", "smpi", tmp_path), "smpi", ranks, ARGUMENTS["halo"]).stdout)
    # The order of a sum differs; 300 x 300 numbers of rounding 1e-16.
    assert other["checksum"] == pytest.approx(two["checksum"], rel=1e-11)
    assert other["last change"] == pytest.approx(two["last change"], rel=1e-6)


def test_a_grid_on_which_nothing_divides_evenly_gives_the_right_product(tmp_path: Path) -> None:
    # 97 over 4 in panels of 20: a panel ends where the block of its owner ends.
    done = run(built("summa_fortran", "smpi", tmp_path), "smpi", 4, ("97", "20", "1", "4"))
    assert values(done.stdout)["error"] == 0.0
