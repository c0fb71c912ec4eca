"""Where in a program its calls stand: programs with calls at known places, recorded."""

import re
from collections import Counter
from pathlib import Path

import pytest
from oracles.recorded_hpl import library_named
from oracles.recorded_hpl import recorded as record_program
from support_limits import ran

from lepaute.kit.mpi_library import MpiLibrary
from lepaute.simulate.trace import Trace, read_trace, write_trace
from lepaute.simulate.trace.table import BETWEEN_CALLS

pytestmark = pytest.mark.machine

PROGRAM = Path(__file__).parents[1] / "data" / "programs" / "record_sites_program.c"
FORTRAN = """
program solver
  use MODULE
  implicit none
  integer :: e, i, x(1)
  x = 1
  call mpi_init(e)
  do i = 1, 3
    call mpi_bcast(x, 1, mpi_integer, 0, mpi_comm_world, e)
    call sweep()
  end do
  call mpi_bcast(x, 1, mpi_integer, 0, mpi_comm_world, e)
  call mpi_finalize(e)
contains
  subroutine sweep()
    call mpi_barrier(mpi_comm_world, e)
  end subroutine
end
"""

CXX = """
#include <mpi.h>
namespace solver { struct Halo { int exchange(); }; }
int solver::Halo::exchange() { return MPI_Barrier(MPI_COMM_WORLD) + 1; }
int main() { MPI_Init(0, 0); int done = solver::Halo().exchange(); return MPI_Finalize() + done - 1; }
"""


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def library(request: pytest.FixtureRequest) -> MpiLibrary:
    return library_named(request.param)


def calls_at(trace: Trace, name: str, rank: int = 0) -> Counter[str]:
    """How often a routine was called at each place."""
    rows = trace.where(trace.named((name,)) & (trace.rank == rank))
    return Counter(trace.metadata["sites"][site] for site in rows.site.tolist())


def functions(site: str) -> list[str]:
    return [frame.split(" ")[0] for frame in site.split(" < ")]


@pytest.mark.parametrize("flags", [("-O2",), ("-O0", "-no-pie"), ("-O2", "-fno-omit-frame-pointer")])
def test_each_place_is_one_in_every_run_and_on_every_rank(
    library: MpiLibrary, flags: tuple[str, ...], tmp_path
) -> None:
    library.compile([*flags, "-w", str(PROGRAM), "-o", str(tmp_path / "program")], what="building the program")
    first, second, alone = (record_program(library, tmp_path, ranks=ranks)[0] for ranks in (2, 2, 1))
    texts = set(first.metadata["sites"])
    assert texts == set(second.metadata["sites"]) == set(alone.metadata["sites"])
    assert all(re.fullmatch(r"[\w.]* ?\(program\+0x[0-9a-f]+\)( < .*)?", site) for site in texts), texts
    for trace, rank in ((first, 0), (first, 1), (second, 1), (alone, 0)):
        barriers = calls_at(trace, "MPI_Barrier", rank)
        # From main by two lines through halo, and by one directly, whatever size the frame in between has.
        assert sorted(barriers.values()) == [1, 20, 40]
        names = {count: functions(site) for site, count in barriers.items()}
        assert names[40] == names[1] == ["exchange", "halo", "main"]
        assert names[20] == ["exchange", "main"]
        # The innermost four functions: of seven, four calls look alike.
        assert sorted(calls_at(trace, "MPI_Allreduce", rank).values()) == [1, 1, 1, 4]
        assert sorted(calls_at(trace, "MPI_Bcast", rank).values()) == [1, 1]
        assert ((trace.site == -1) == trace.named(BETWEEN_CALLS)).all()


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
def test_the_wrappers_of_fortran_are_no_place(library: MpiLibrary, module: str, tmp_path: Path) -> None:
    if library.mpifort is None:
        pytest.skip("no Fortran compiler for this library")
    (tmp_path / "f.f90").write_text(FORTRAN.replace("MODULE", module))
    argv = [library.mpifort, "-O1", "-g", "-fno-inline", "-w", "f.f90", "-o", "program"]
    built = ran(argv, cwd=tmp_path)
    if built.returncode != 0:
        pytest.skip(built.stderr[-200:])
    trace, _ = record_program(library, tmp_path)
    assert sorted(calls_at(trace, "MPI_Bcast").values()) == [1, 3]
    lines = {count: re.findall(r"f.f90:\d+", site)[0] for site, count in calls_at(trace, "MPI_Bcast").items()}
    assert lines == {3: "f.f90:9", 1: "f.f90:12"}
    assert [functions(site)[:2] for site in calls_at(trace, "MPI_Barrier")] == [["sweep", "MAIN__"]]


def test_a_program_without_symbols_has_offsets_and_files_keep_them(library: MpiLibrary, tmp_path: Path) -> None:
    library.compile(["-O2", "-s", "-w", str(PROGRAM), "-o", str(tmp_path / "program")], what="building the program")
    trace, _ = record_program(library, tmp_path)
    assert sorted(calls_at(trace, "MPI_Barrier").values()) == [1, 20, 40]
    assert all(
        re.fullmatch(r"\(program\+0x[0-9a-f]+\)", frame)
        for site in trace.metadata["sites"]
        for frame in site.split(" < ")
    )
    write_trace(trace, tmp_path / "again.parquet")
    again = read_trace(tmp_path / "again.parquet")
    assert again.metadata["sites"] == trace.metadata["sites"]
    assert again.site.tolist() == trace.site.tolist()


def test_names_of_cxx_are_those_of_the_source(library: MpiLibrary, tmp_path: Path) -> None:
    (tmp_path / "program.cpp").write_text(CXX)
    if library.mpicxx is None:
        pytest.skip("no C++ compiler for this library")
    assert ran([library.mpicxx, "program.cpp", "-o", "program"], cwd=tmp_path).returncode == 0
    trace, _ = record_program(library, tmp_path)
    assert [functions(site) for site in calls_at(trace, "MPI_Barrier")] == [["solver::Halo::exchange", "main"]]
