"""Loops of MPI_Iprobe: a rank that sleeps until a message comes sees the same as one that turns."""

from pathlib import Path

import pytest
from oracles.emulated import HEAD, build, compiler_folder, dgemm_s, tiny
from support_limits import HANG_S

from lepaute.errors import SimulationError
from lepaute.simulate.smpi.emulate import Options, emulate_run
from lepaute.simulate.smpi.emulated_run import EmulatedRun
from lepaute.simulate.smpi.process import Limits

pytestmark = pytest.mark.machine

#: Rank 0 looks for messages that the others send late; it prints when each was found, and what it did then.
PROBES = f"""{HEAD}
static double data[20000];
static int found(int source, int tag, MPI_Comm comm) {{
    int flag = 0;
    MPI_Iprobe(source, tag, comm, &flag, MPI_STATUS_IGNORE);
    return flag;
}}
static void take(int source, int count) {{
    MPI_Recv(data, count, MPI_DOUBLE, source, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%.17g\\n", MPI_Wtime());
}}
int main(int argc, char **argv) {{
    begin(&argc, &argv);
    const char *how = argv[1];
    const int count = atoi(argv[2]);
    for (int round = 0; round < 3; round++) {{
        if (!strcmp(how, "never")) {{
            break;
        }} else if (rank != 0) {{
            dgemm(101 * rank, 103 + round, 97); /* never at the very date of a probe */
            MPI_Send(data, count, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD);
        }} else if (!strcmp(how, "one")) {{
            for (int source = 1; source < ranks; source++) {{
                while (!found(source, 5, MPI_COMM_WORLD)) {{ }}
                take(source, count);
            }}
        }} else if (!strcmp(how, "any")) {{
            for (int source = 1; source < ranks; source++) {{
                while (!found(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD)) {{ }}
                take(MPI_ANY_SOURCE, count);
            }}
        }} else if (!strcmp(how, "two")) {{
            for (int left = 3, next = 1; left != 0; next = 3 - next)
                if ((left & next) && found(next, 5, MPI_COMM_WORLD)) {{
                    take(next, count);
                    left -= next;
                }}
        }} else if (!strcmp(how, "clock")) {{
            for (int source = 1; source < ranks; source++) {{
                double began = MPI_Wtime(), slowest = 0;
                while (!found(source, 5, MPI_COMM_WORLD)) slowest = MPI_Wtime() - began;
                printf("%.17g\\n", slowest);
                take(source, count);
            }}
        }} else if (!strcmp(how, "work")) {{
            int turns = 0;
            for (int source = 1; source < ranks; source++) {{
                while (!found(source, 5, MPI_COMM_WORLD)) {{
                    dgemm(10, 10, 10);
                    turns++;
                }}
                take(source, count);
            }}
            printf("%d\\n", turns);
        }}
    }}
    if (rank == 0 && !strcmp(how, "never")) while (!found(1, 9, MPI_COMM_WORLD)) {{ }}
    MPI_Finalize();
    return 0;
}}
"""
EAGER, RENDEZVOUS = 8, 20000  # doubles


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler_folder()
    return build(tmp_path_factory.mktemp("probes"), "probes", PROBES)


def run(program: Path, *words: object, ranks: int = 3, sleeping: bool = True) -> EmulatedRun:
    options = Options(computing="none", sleeping_probes=sleeping, limits=Limits(HANG_S, HANG_S))
    return emulate_run(program, [str(word) for word in words], tiny(), ranks, options=options)


@pytest.mark.parametrize("count", [EAGER, RENDEZVOUS], ids=["eager", "rendezvous"])
@pytest.mark.parametrize("how", ["one", "any", "two", "clock", "work"])
def test_a_loop_of_probes_takes_as_long_asleep_as_awake(how: str, count: int, probes: Path) -> None:
    asleep, awake = (run(probes, how, count, sleeping=sleeping) for sleeping in (True, False))
    dates, expected = ([float(line) for line in found.stdout] for found in (asleep, awake))
    assert dates == pytest.approx(expected, rel=1e-9)
    assert asleep.time_s == pytest.approx(awake.time_s, rel=1e-9)
    assert asleep.time_s > 3 * dgemm_s(202, 103, 97)


def test_sleeping_spares_the_probes_in_vain(probes: Path) -> None:
    asleep, awake = (run(probes, "one", EAGER, sleeping=sleeping).probes for sleeping in (True, False))
    # A round of rank 2 takes 200 us and more, and a probe takes 0.2 us.
    assert awake > 3 * 1000
    assert asleep < awake / 5  # a few for each message before a rank goes to sleep


@pytest.mark.parametrize("sleeping", [True, False], ids=["asleep", "awake"])
def test_a_loop_of_probes_that_finds_nothing_ends(sleeping: bool, probes: Path) -> None:
    said = "deadlock: every rank waits" if sleeping else "it took longer than"
    limits = Limits(HANG_S if sleeping else 3, HANG_S)
    with pytest.raises(SimulationError, match=said):
        emulate_run(
            probes,
            ["never", str(EAGER)],
            tiny(),
            2,
            options=Options(computing="none", sleeping_probes=sleeping, limits=limits),
        )
