"""--computing measured: a rank's computing is its own, whatever SMPI does between two of its calls."""

from pathlib import Path

import pytest
from support_limits import HANG_S

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem
from lepaute.kit.command import run_command
from lepaute.platform import load_platform
from lepaute.simulate.smpi.building import compilers
from lepaute.simulate.smpi.emulate import Options, emulate_run

RANKS = 6
#: All ranks compute the same after a call in which all of them take part, or which takes part of the others' time.
PROGRAM = r"""
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of the thread in which all ranks compute; the clock of clock_gettime() is that of the simulation. */
static double cpu_s(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main(int argc, char** argv) {
    int rank, ranks, no = 0, yes = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char* call = argv[1];
    MPI_Comm made, sub;
    MPI_Group all;
    MPI_Win window;
    double begun = cpu_s(), start = MPI_Wtime(), sum = 0, summed;
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
    double between = cpu_s();
    for (int i = 0; i < 400000; i++)
        sum += sin(i);
    double ended = cpu_s(), mine = MPI_Wtime() - start;
    printf("%.9f %.9f %.9f %.9f %g\n", mine, begun, between, ended, sum);
    MPI_Finalize();
    return 0;
}
"""
#: One rank computes, the other looks for its message meanwhile.
PROBING = r"""
#include <math.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, found = 0, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), sum = 0;
    if (rank == 0) {
        while (!found)
            MPI_Iprobe(1, 5, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        for (int i = 0; i < 400000; i++)
            sum += sin(i);
        MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
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
def folder() -> Path:
    try:
        return compilers()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def program(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(PROGRAM, folder, tmp_path_factory.mktemp("measured") / "calls.c")


def compiled(program: str, folder: Path, source: Path) -> Path:
    """The program, built beside its source by the compilers in `folder`."""
    source.write_text(program)
    built = source.with_suffix("")
    run_command([folder / "mpicc", "-O1", "-o", built, source, "-lm"], what="the program", timeout_s=HANG_S)
    return built


@pytest.mark.machine
@pytest.mark.parametrize("call", CALLS)
def test_no_rank_is_charged_for_what_others_compute(call: str, program: Path) -> None:
    run = emulate_run(program, [call], load_platform("dahu"), RANKS, options=Options(computing="measured"))
    ranks = [[float(word) for word in line.split()[:4]] for line in run.stdout]
    assert len(ranks) == RANKS
    charged, begun, between, ended = zip(*ranks, strict=True)
    # Each is charged for its own computing at least, and what all computed is charged once: it would be three times
    # and a half where each is charged for those before it. A call takes microseconds of simulated time.
    assert all(
        time_s >= (last - first) * (1 - 1e-6) for time_s, first, last in zip(charged, between, ended, strict=True)
    )
    assert sum(charged) <= max(ended) - min(begun) + RANKS * 1e-3


@pytest.mark.machine
def test_who_probes_for_a_message_has_it_when_its_sender_has_computed(folder: Path, tmp_path: Path) -> None:
    program = compiled(PROBING, folder, tmp_path / "probing.c")
    for sleeping in (True, False):
        options = Options(computing="measured", sleeping_probes=sleeping)
        run = emulate_run(program, [], load_platform("dahu"), 2, options=options)
        receiver, sender = (float(line.split()[2]) for line in sorted(run.stdout))
        assert receiver > 0.95 * sender


@pytest.mark.machine
def test_a_program_without_arguments_needs_no_dashes(folder, tmp_path, capsys):
    program = compiled(PROBING, folder, tmp_path / "probing.c")
    words = ["emulate", "-p", "dahu", "-np", "2", "--computing", "measured"]
    assert main([*words, "--binary", str(program)]) == 0
    assert capsys.readouterr().out.count("rank ") == 2
    assert main(words) == 2
    assert "no program is named" in capsys.readouterr().err
