"""What MPI programs commonly do and SMPI does not, loops of MPI_Iprobe among it: provided, or told."""

import json
from pathlib import Path

import pytest
from oracles.emulated import build, command, compiler_folder, dgemm_s, source_of, tiny, tiny_text
from support_limits import HANG_S

from lepaute.errors import SimulationError
from lepaute.simulate.smpi.emulate import Options, emulate_run
from lepaute.simulate.smpi.emulated_run import EmulatedRun
from lepaute.simulate.smpi.process import Limits

pytestmark = pytest.mark.machine

#: Insists on a level of threads; columns of a matrix as datatypes; a non-blocking reduction; threads of OpenMP.
SOLVER = Path(__file__).parents[1].joinpath("data", "programs", "emulate_habits_solver.c").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler_folder()
    made = tmp_path_factory.mktemp("habits")
    (made / "solver.c").write_text(SOLVER)
    (made / "Makefile").write_text("bin/solver: solver.c\n\tmkdir -p bin\n\tmpicc -O2 -fopenmp -o $@ $<\n")
    (made / "p.yaml").write_text(tiny_text())
    return made


def emulated(folder: Path, *words: object, ranks: int = 4, program: str = "bin/solver"):
    options = ("-p", folder / "p.yaml", "-np", ranks, "--source", folder, "--no-contention")
    return command("emulate", *options, "--json", "--time-pattern", r"threads: (\S+)", "--", program, *words)


def test_each_level_of_threads_is_provided_and_openmp_has_one_thread(folder, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    said = emulated(folder)
    assert said.status == 0, said.err
    told = json.loads(said.out)
    assert told["time_s"]["mean"] == 1.0  # the number of threads that it printed; as many as cores without the setting
    assert not [text for text in told["warnings"] if "threads of their own" in text]


def test_threads_of_their_own_packing_and_naive_collectives_are_told(folder: Path) -> None:
    said = emulated(folder, 3)
    assert said.status == 0, said.err
    warnings = json.loads(said.out)["warnings"]
    for text in (
        "of their own, whose computing takes no simulated time",
        "200 messages, 800 KiB in all, have datatypes",
    ):
        assert len([warning for warning in warnings if text in warning]) == 1, warnings
    assert any(warning.startswith("MPI_Iallreduce: under SMPI each rank") for warning in warnings)


def test_collectives_by_the_algorithms_of_a_library_are_faster_than_by_those_of_smpi(folder: Path) -> None:
    source = (
        SOLVER.partition("    if (argc > 1)")[0]
        + r"""
    double* vector = calloc(N * N, sizeof *vector);
    MPI_Allreduce(MPI_IN_PLACE, vector, N * N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""
    )
    (folder / "reduce.c").write_text(source)
    options = (
        "-p", folder / "p.yaml", "-np", 16, "--source", folder, "--make", "mpicc -O2 -fopenmp reduce.c -o reduce",
    )  # fmt: skip
    times = {}
    smpi = ("--without", "collectives")
    for words in (smpi, ("--collectives", "openmpi"), ("--collectives", "mpich"), ()):
        said = command("emulate", *options, *words, "--computing", "none", "--json", "--", "reduce")
        assert said.status == 0, said.err
        told = json.loads(said.out)
        times[words[-1:]] = told["time_s"]["mean"]
        named = words[1] if words[:1] == ("--collectives",) else None
        assert told["parameters"]["collectives"] == named
        followed = "openmpi" if words == () else named  # drawn by the first seed
        assert [run["collectives"] for run in told["runs"]] == [followed] * len(told["runs"])
        advice = [text for text in told["warnings"] if text.startswith("MPI_Allreduce: SMPI's own algorithms")]
        assert len(advice) == (words == smpi)
        drawn = [text for text in told["warnings"] if "no MPI library is named" in text]
        assert len(drawn) == (words == ())
    assert max(times["openmpi",], times["mpich",]) < 0.5 * times["collectives",]


def test_a_program_in_a_folder_below_is_named_where_another_word_was_given(folder: Path) -> None:
    said = emulated(folder, program="solver")
    assert said.status == 2
    assert "solver was not built; what was built: bin/solver; name the program" in said.err


#: Rank 0 looks for messages that the others send late; it prints when each was found, and what it did then.
PROBES = source_of("emulate_probes.c")
EAGER, RENDEZVOUS = 8, 20000  # doubles


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
