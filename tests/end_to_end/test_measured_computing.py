"""--computing measured: a rank's computing is its own, whatever SMPI does between two of its calls."""

from pathlib import Path

import pytest

from lepaute.command import run_command
from lepaute.errors import EnvironmentProblem
from lepaute.platform import load_platform
from lepaute.simulate.smpi.compilers import compilers
from lepaute.simulate.smpi.emulate import Options, emulate_run

RANKS = 6
#: All ranks compute the same after a call in which all of them take part, or which takes part of the others' time.
PROGRAM = r"""
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    int rank, ranks, no = 0, yes = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char* call = argv[1];
    MPI_Comm made, sub;
    MPI_Group all;
    MPI_Win window;
    double start = MPI_Wtime(), sum = 0, summed;
    if (strcmp(call, "Comm_dup") == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
    else if (strcmp(call, "Comm_dup_with_info") == 0)
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made);
    else if (strcmp(call, "Comm_split") == 0)
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made);
    else if (strcmp(call, "Comm_create") == 0) {
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Comm_create(MPI_COMM_WORLD, all, &made);
    } else if (strcmp(call, "Cart_create") == 0)
        MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &no, 0, &made);
    else if (strcmp(call, "Cart_sub") == 0) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &no, 0, &made);
        MPI_Cart_sub(made, &yes, &sub);
    } else if (strcmp(call, "Win_create") == 0)
        MPI_Win_create(&start, sizeof start, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    else if (strcmp(call, "Allreduce") == 0)
        MPI_Allreduce(&start, &summed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    else
        return 3;
    for (int i = 0; i < 400000; i++)
        sum += sin(i);
    double mine = MPI_Wtime() - start;
    printf("rank %d: %.9f s, %g\n", rank, mine, sum);
    MPI_Finalize();
    return 0;
}
"""
CALLS = (
    *("Comm_dup", "Comm_dup_with_info", "Comm_split", "Comm_create", "Cart_create", "Cart_sub"),
    *("Win_create", "Allreduce"),
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        folder = compilers()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    source = tmp_path_factory.mktemp("measured") / "calls.c"
    source.write_text(PROGRAM)
    built = source.with_suffix("")
    run_command([folder / "mpicc", "-O1", "-o", built, source, "-lm"], what="the program", timeout_s=60)
    return built


@pytest.mark.machine
@pytest.mark.parametrize("call", CALLS)
def test_no_rank_is_charged_for_what_others_compute(call: str, program: Path) -> None:
    run = emulate_run(program, [call], load_platform("dahu"), RANKS, options=Options(computing="measured"))
    times = sorted(float(line.split()[2]) for line in run.stdout)
    assert len(times) == RANKS
    # It would be up to six times as much for the last one.
    assert 0.0 < times[-1] < 2.5 * times[0]
