"""A recorded run of a program in C, as the application of one's own that models it takes it."""

import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from oracles.recorded_hpl import MPIRUN, lepaute, library_named

import lepaute as lp
from lepaute.simulate.apps.own.loading import loaded
from lepaute.simulate.apps.own.measured import stretches_of

pytestmark = pytest.mark.machine
EXAMPLES = Path(__file__).parents[2] / "examples" / "applications"
N, SPMV_S = 16, 5e-7


def test_conjugate_gradients_make_the_recorded_calls_and_take_the_recorded_time(tmp_path: Path) -> None:
    mpicc = library_named().mpicc
    program, trace = tmp_path / "cg", tmp_path / "cg.parquet"
    subprocess.run([mpicc, "-O2", EXAMPLES / "cg.c", "-o", program], check=True)
    arguments = ("2", "1", "1", str(N), "30", str(SPMV_S), "0")
    done = lepaute("record", "-o", trace, "--", *MPIRUN, "2", program, *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    Cg: Any = loaded(str(EXAMPLES / "cg.py"))

    class Timed(Cg):
        """Behind the barrier from which the program takes the time."""

        def run(self, me: Any) -> Any:
            yield me.barrier()
            yield from super().run(me)

    found = lp.check(Timed(grid="2x1x1", n=N, iterations=30), trace)
    assert found.same, found.text
    assert found.calls == 2 * (1 + 30 * 5)
    found = lp.check(Timed(grid="2x1x1", n=N, iterations=29), trace)
    assert found.text.startswith("rank 0, call 147: nothing more in Timed, MPI_Irecv from rank 1, tag 0, at ")

    times = stretches_of(lp.read_trace(trace), ("MPI_Waitall", "MPI_Allreduce"), "cg.parquet")
    assert [len(stretch) for stretch in times] == [30, 30]
    # A sleep is never shorter, unless a rank loses its core on the way into it: then it waits for that meanwhile.
    assert min(median(stretch) for stretch in times) >= 0.98 * SPMV_S * N**3
