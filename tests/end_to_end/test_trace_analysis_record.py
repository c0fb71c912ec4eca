"""Regions of a program that is recorded, by MPI_Pcontrol."""

import subprocess
from pathlib import Path

import pytest
from oracles.recorded_hpl import MPIRUN, lepaute, library_named

from lepaute.simulate.analysis import analysis_of
from lepaute.simulate.trace import read_trace
from lepaute.simulate.trace.table import PHASE

pytestmark = pytest.mark.machine

#: The outer region holds the inner one; the third has no name that could be read, and 1 alone turns recording on.
SOURCE = """#include <mpi.h>
#include <unistd.h>
int main(void) {
    MPI_Init(0, 0), MPI_Pcontrol(1, "outer"), usleep(2000), MPI_Pcontrol(1, "inner");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(-1, "inner"), MPI_Pcontrol(-1, "outer");
    MPI_Pcontrol(1), MPI_Pcontrol(-1, (char *)16), MPI_Pcontrol(-1, "none is open"), MPI_Finalize();
}
"""


def test_regions_of_mpi_pcontrol_are_phases(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(SOURCE)
    subprocess.run([library_named().mpicc, tmp_path / "p.c", "-o", tmp_path / "p"], check=True)
    done = lepaute("record", "-o", "t.parquet", "--", *MPIRUN, "2", tmp_path / "p", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    trace = read_trace(tmp_path / "t.parquet")
    for rank in range(2):
        phases = trace.where(trace.of(PHASE) & (trace.rank == rank))
        assert [phases.names[code] for code in phases.name] == ["outer", "inner", "region"]
    regions = {region.name: region for region in analysis_of(trace).phases}
    assert regions["outer"].useful_s.min() >= 0.002
    assert regions["inner"].time_s >= trace.duration_s[trace.named("MPI_Barrier")].sum()
