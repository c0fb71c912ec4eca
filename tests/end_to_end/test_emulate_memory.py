"""Memory of an emulated program: what is folded, what stays private, and whose variables are whose."""

from pathlib import Path

import pytest
from oracles.emulated import HEAD, build, command, compiler_folder, source_of, tiny, tiny_text

from lepaute.simulate.smpi.emulate import Options, emulate_run
from lepaute.simulate.smpi.emulated_run import EmulatedRun
from lepaute.simulate.smpi.request import Folding, Private

pytestmark = pytest.mark.machine

MIB = 1 << 20
#: Each rank writes its number at the first, the middle and the last byte of an allocation; all meet; what is there?
MEMORY = source_of("emulate_memory.c")
ALL_PRIVATE = 7  # a bit for each of the three bytes
ALL_SHARED = 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler_folder()
    return tmp_path_factory.mktemp("memory")


@pytest.fixture(scope="module")
def memory(folder: Path) -> Path:
    return build(folder, "memory", MEMORY)


def run(
    program: Path, *words: str, ranks: int = 2, private: tuple[Private, ...] = (), fold: int | None = MIB
) -> EmulatedRun:
    options = Options(computing="none", folding=Folding(fold, block_bytes=4 * MIB, private=private))
    return emulate_run(program, words, tiny(), ranks, options=options)


@pytest.mark.parametrize("how", ["malloc", "calloc", "realloc", "memalign", "aligned"])
def test_large_allocations_of_all_kinds_are_folded_and_small_thresholds_leave_them(how: str, memory: Path) -> None:
    folded, left = run(memory, how), run(memory, how, fold=16 * MIB)
    assert (folded.stdout, folded.folded, folded.folded_bytes) == ((str(ALL_SHARED),), 2, 2 * 8 * MIB)
    assert (left.stdout, left.folded) == ((str(ALL_PRIVATE),), 0)


GROWS = f"""{HEAD}
int main(int argc, char **argv) {{
    begin(&argc, &argv);
    int *small = malloc(64), *large = malloc({2 * MIB});
    small[5] = large[5] = 100 + rank;
    MPI_Barrier(MPI_COMM_WORLD);
    small = realloc(small, {4 * MIB}), large = realloc(large, {4 * MIB});
    printf("%d %d\\n", small[5], large[5]);
    free(small), free(large);
    MPI_Finalize();
    return 0;
}}
"""


def test_what_is_private_survives_a_change_of_size(folder: Path) -> None:
    found = run(build(folder, "grows", GROWS), private=(Private("grows.c", 0, 4095),))
    assert found.stdout == ("100 100", "101 101")
    assert found.folded == 4  # the two large ones, before and after
    last_shared = run(build(folder, "grows", GROWS)).stdout
    assert last_shared == ("100 101", "101 101")  # but what was small


def line_of(text: str) -> int:
    return 1 + next(number for number, line in enumerate(MEMORY.splitlines()) if text in line)


@pytest.mark.parametrize(
    ("kept", "private"),
    [
        (Private("memory.c"), ALL_PRIVATE),
        (Private(f"memory.c:{line_of('return malloc')}"), ALL_PRIVATE),
        (Private(f"memory.c:{line_of('return malloc') + 1}"), ALL_SHARED),
        (Private("other.c"), ALL_SHARED),
        (Private("memory.c", 0, 4095), 1),
        (Private("memory.c", -4096, -1), 4),
        (Private("memory.c", 4 * MIB, 5 * MIB), 2),
    ],
)
def test_what_is_declared_private_stays_so_and_nothing_else(kept: Private, private: int, memory: Path) -> None:
    assert run(memory, "malloc", private=(kept,)).stdout == (str(private),)


NEW = Path(__file__).parents[1].joinpath("data", "programs", "emulate_memory_new.c").read_text()


def test_new_of_cxx_is_folded_and_a_function_that_allocates_can_be_kept_private(folder: Path) -> None:
    program = build(folder, "new", NEW, compiler="mpicxx", suffix=".cpp")
    assert run(program).stdout == ("0",)
    assert run(program, private=(Private("from_new"),)).stdout == ("1",)
    assert run(program, fold=None).stdout == ("7",)


MANY = f"""{HEAD}
int main(int argc, char **argv) {{
    begin(&argc, &argv);
    double *data = malloc({64 * MIB});
    for (long i = 0; i < {64 * MIB} / 8; i += 512) data[i] = i;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {{ /* proportional: a page that is mapped n times counts as n-th part each time */
        char line[256];
        FILE *file = fopen("/proc/self/smaps_rollup", "r");
        long kib;
        while (fgets(line, sizeof line, file))
            if (sscanf(line, "Pss: %ld", &kib) == 1) printf("%ld\\n", kib);
        fclose(file);
    }}
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
    MPI_Finalize();
    return 0;
}}
"""


def test_many_ranks_take_the_memory_of_one_block(folder: Path) -> None:
    """16 ranks touch 64 MiB each; shared pages are told apart from those that count once for each mapping."""
    program = build(folder, "many", MANY)
    folded = run(program, ranks=16)
    assert folded.folded_bytes == 16 * 64 * MIB
    assert int(folded.stdout[0]) < 200 * 1024  # KiB; 1 GiB without


MESSAGE = f"""{HEAD}
int main(int argc, char **argv) {{
    begin(&argc, &argv);
    double *large = malloc({8 * MIB}), control[4] = {{0}}, got[4] = {{0}};
    for (int i = 0; i < 4; i++) control[i] = large[i] = 10 * rank + i;
    if (rank == 0) {{
        MPI_Send(large, {MIB}, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);   /* folded to private, to folded */
        MPI_Send(control, 4, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);     /* private to private */
        MPI_Send(control, 4, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD);     /* private to folded */
        MPI_Recv(got, 4, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%g %g\\n", got[0], got[3]);
    }} else {{
        double *mine = malloc({8 * MIB});
        MPI_Recv(mine, {MIB}, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(got, 4, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%g %g\\n", got[0], got[3]);
        MPI_Recv(mine, 4, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(got, 4, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
    }}
    MPI_Finalize();
    return 0;
}}
"""


def test_messages_between_folded_and_private_memory_leave_private_memory_whole(folder: Path) -> None:
    program = build(folder, "message", MESSAGE)
    folded, private = run(program), run(program, fold=None)
    assert folded.stdout == private.stdout == ("0 3", "0 3")
    assert folded.time_s == private.time_s  # folding is a matter of this machine, not of the simulated one


def test_what_a_part_kept_private_holds_travels_in_messages(folder: Path) -> None:
    """The first page of the large arrays is private: control data at their head arrives, as HPL's pivots do."""
    source = MESSAGE.replace("got[0], got[3]", "got[0] + large[1], got[3]").replace(
        "MPI_Recv(got, 4, MPI_DOUBLE, 0, 1,", 'printf("%g\\n", mine[3]); MPI_Recv(got, 4, MPI_DOUBLE, 0, 1,'
    )
    found = run(build(folder, "head", source), private=(Private("head.c", 0, 4095),))
    assert found.stdout == ("3", "11 3", "1 3")


GLOBALS = f"""{HEAD}
static int mine = 5;
int main(int argc, char **argv) {{
    begin(&argc, &argv);
    mine += rank;
    MPI_Barrier(MPI_COMM_WORLD);
    int sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 1 || rank == 0) printf("%d\\n", sum);
    MPI_Finalize();
    return 0;
}}
"""


def test_each_rank_has_global_variables_of_its_own_unless_told_otherwise(folder: Path) -> None:
    program = build(folder, "globals", GLOBALS)
    apart, together = (
        emulate_run(program, ["all"], tiny(), 3, options=Options(computing="none", privatize=privatize))
        for privatize in (True, False)
    )
    assert apart.stdout == ("18",) * 3  # 5 + 6 + 7
    assert set(together.stdout) == {"24"}  # 5 + 0 + 1 + 2 for each of them


def test_the_command_folds_and_keeps_private_what_its_options_say(memory: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(tiny_text())
    words = ("emulate", "-p", tmp_path / "p.yaml", "-np", 2, "--details", "--fold", "1M", "--private")
    said = command(*words, "with_malloc@0-63", "--", memory, "malloc")
    assert said.status == 0, said.err
    assert said.out.split() == [str(ALL_SHARED)]  # a C source is named by file and line
    said = command(*words, "memory.c@0-63", "--", memory, "malloc")
    assert said.out.split() == ["1"]
    assert "0.0168 GB folded" in said.err
