"""Emulated programs against real ones: traces with every call, right results, and what changes one thing."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from oracles.emulated import build, command, source_of, tiny_text
from oracles.emulation_examples import ARGUMENTS, PROGRAMS, built, run, values
from oracles.recorded_hpl import MPIRUN, lepaute, library_named
from support_limits import HANG_S, ran

from lepaute.errors import EnvironmentProblem
from lepaute.simulate.smpi.building import compilers, find_simgrid
from lepaute.simulate.trace import Trace, read_trace
from lepaute.simulate.trace.breakdown import breakdown_of
from lepaute.simulate.trace.compare import compare_traces
from lepaute.simulate.trace.messages import match_messages

pytestmark = pytest.mark.machine

#: Each rank sends as many bytes as it is told around the ring.
RING = source_of("emulate_against.c")
STUDY = """
format: lepaute-study/1
question: whatif
base:
  application: {program: ring, np: 2, arguments: "100000", computing: none}
  platform: p.yaml
whatif: {factor: bytes}
factors:
  bytes: {path: application.arguments, levels: ["100000", "200000"]}
  np: {path: application.np, levels: [2, 4]}
runs: 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("against")
    build(made, "ring", RING)
    (made / "p.yaml").write_text(tiny_text())
    (made / "s.yaml").write_text(STUDY)
    return made


def emulated(folder: Path, *options: object, np: int | str = 2, size: int = 100_000):
    fixed = ("-p", folder / "p.yaml", "-np", np, "--computing", "none")
    return command("emulate", *fixed, *options, "--", folder / "ring", size)


def mean_s(folder: Path, *options: object, np: int = 2, size: int = 100_000) -> float:
    return json.loads(emulated(folder, *options, "--json", np=np, size=size).out)["time_s"]["mean"]


def test_ranks_are_where_the_mapping_places_them_and_a_difference_is_that_of_two_emulations(folder: Path) -> None:
    near_s, far_s = mean_s(folder, np=8), mean_s(folder, "--mapping", "random", np=8)
    assert far_s > 1.05 * near_s  # more neighbours are on another node
    against = [word for text in ("mapping=random", "np=4", "arguments=200000") for word in ("--against", text)]
    said = emulated(folder, "--json", *against, np=8)
    assert said.status == 0, said.err
    mapping, ranks, larger = json.loads(said.out)["differences"]
    assert mapping["ratio"]["mean"] == pytest.approx(far_s / near_s, rel=1e-9)
    assert ranks["ratio"]["mean"] == pytest.approx(mean_s(folder, np=4) / near_s, rel=1e-9)
    assert larger["ratio"]["mean"] == pytest.approx(mean_s(folder, np=8, size=200_000) / near_s, rel=1e-9)


def test_the_answer_begins_with_the_difference_and_the_program_prints_once(folder: Path) -> None:
    said = emulated(folder, "--against", "collectives=mpich", "--against", "network.costs.wtime_s=1e-6")
    assert said.status == 0, said.err
    assert said.out == "round and round\n"
    lines = [line for line in said.err.splitlines() if " against " in line or " takes " in line]
    assert lines[0].startswith("collectives mpich against the default: 0 % (one run")
    assert lines[1].startswith("network.costs.wtime_s 1e-6 against the unchanged platform: ")
    assert lines[2].startswith("ring takes ")


def test_of_many_ranks_a_few_are_tried_first_without_a_word_of_the_program_to_tell_how_long_all_take(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lepaute.cli.emulate._MANY_RANKS", 8)
    monkeypatch.setattr("lepaute.cli.emulate._RANKS_OF_TRIAL", 4)
    said = emulated(folder, np=8)
    assert said.out == "round and round\n"
    assert said.err.startswith("lepaute: trying 2 of 8 ranks, to tell how long all will take\nlepaute: this will take ")
    assert "a recorded run is replayed in seconds" in said.err
    assert "not known in advance" not in said.err
    assert "trying" not in emulated(folder, np=4).err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("color=red", "--against color=red: ring has no parameter 'color'; give time-pattern, fold"),
        ("np=2", "--against np=2: np has that value already"),
        ("np=0", "--against np=0: np is 0; it must be a whole number >= 1"),
        ("program=none", "--against program=none: there is no "),
        ("arguments='", "--against arguments=': arguments is \"'\": No closing quotation"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(folder: Path, text: str, complaint: str) -> None:
    said = emulated(folder, "--against", text)
    assert said.status == 2
    assert said.err.startswith(f"lepaute: {complaint}")
    assert len(said.err.splitlines()) == 1


def test_a_study_of_a_program_has_the_times_of_its_emulations(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    said = command("study", "check", "s.yaml")
    assert "8 simulations (at most 36 more to judge them) by emulation, one after the other; how long" in said.out
    assert command("study", "whatif", "s.yaml").status == 0
    answer = json.loads((folder / "s.results" / "answer.json").read_text())
    text = (folder / "s.results" / "results.csv").read_text()
    assert answer
    assert text.count("\n") == 1 + 8
    again = command("study", "whatif", "s.yaml", "--resume")
    assert "0 simulations, 8 known before" in again.out + again.err
    (folder / "t.yaml").write_text(STUDY.replace("program: ring", "program: rings"))
    said = command("study", "check", "t.yaml")
    assert said.status == 2
    assert "there is no " in said.err
    (folder / "t.yaml").write_text(STUDY + "budget: {seconds: 10}\n")
    said = command("study", "whatif", "t.yaml")
    assert said.status == 2
    assert "how long emulations take is not known in advance; give budget.simulations" in said.err


PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "emulated_trace_program.c").read_text()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Trace]:
    """A recording and an emulation of the program on four ranks."""
    mpicc = library_named().mpicc
    try:
        find_simgrid()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    folder = tmp_path_factory.mktemp("both")
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run([mpicc, "-w", "program.c", "-o", "real"], cwd=folder, check=True)
    path = {"PATH": f"{compilers()}:{os.environ['PATH']}"}
    subprocess.run(["mpicc", "-w", "program.c", "-o", "emulated"], cwd=folder, check=True, env=os.environ | path)
    recorded = lepaute("record", "-o", "real.parquet", "--", *MPIRUN, "4", "./real", folder=folder)
    assert recorded.returncode == 0, recorded.stderr
    options = ("-p", "dahu", "-np", "4", "--trace", "e.parquet", "--perfetto", "e.json.gz", "--binary", "./emulated")
    emulated = lepaute("emulate", *options, folder=folder)
    assert emulated.returncode == 0, emulated.stderr
    assert (folder / "e.json.gz").read_bytes().startswith(b"\x1f\x8b")
    return read_trace(folder / "real.parquet"), read_trace(folder / "e.parquet")


def test_no_difference_remains(traces: tuple[Trace, Trace]) -> None:
    found = compare_traces(*traces)
    assert found.first == ()
    assert found.first_size == ()
    assert found.one_side == ()
    # Of each round and rank at an end of the line one of each MPI_Sendrecv, of every rank a send and a receive.
    assert found.nobody == (3 * (2 * 2 + 4 * 2), 3 * (2 * 2 + 4 * 2))


def test_every_message_has_both_ends_and_their_waits(traces: tuple[Trace, Trace]) -> None:
    recorded, emulated = (match_messages(trace) for trace in traces)
    assert len(recorded.send) == len(emulated.send) == 3 * (3 + 4 + 3 + 4 + 4 + 4 + 3)
    for matches in (recorded, emulated):
        assert (matches.end >= 0).all()
        assert (matches.sent < 0).sum() == 3 * 4  # those whose request was freed


def test_waiting_at_collective_operations_is_told_of_all_groups(traces: tuple[Trace, Trace]) -> None:
    for trace in traces:
        assert breakdown_of(trace).unknown == ()
        halves = set(trace.comm[trace.named(["MPI_Allreduce"])].tolist())
        assert len(halves) == 2
        assert min(halves) > 0
        assert set(trace.comm[trace.named(["MPI_Barrier"])].tolist()) == {0}


def test_nodes_have_the_numbers_of_the_platform(traces: tuple[Trace, Trace]) -> None:
    _, emulated = traces
    assert emulated.metadata["nodes"] == [0] * 4
    assert emulated.metadata["first_node"] == 1


#: What each prints of its own mistakes; rounding stays far below.
ERRORS = {
    "halo": ("error",),
    "cg": ("error",),
    "fft": ("error of a coefficient", "error after the inverse"),
    "summa_fortran": ("error",),
}


@pytest.mark.parametrize("kind", ["real", "smpi"])
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


RANKS = 4
LATENCY_S, BYTES_PER_S = 10e-6, 1e9
LARGE = 100_000  # numbers of 8 bytes: more than SMPI sends without waiting for the receiver

TRACED_PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "smpi_trace_program.c").read_text()


def platform() -> str:
    hosts = "".join(f'<host id="h{rank}" speed="1Gf"/>' for rank in range(RANKS))
    links = routes = ""
    for one in range(RANKS):
        for other in range(one + 1, RANKS):
            links += f'<link id="l{one}{other}" bandwidth="1GBps" latency="10us"/>'
            routes += f'<route src="h{one}" dst="h{other}"><link_ctn id="l{one}{other}"/></route>'
    return (
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<zone id="z" routing="Full">{hosts}{links}{routes}</zone></platform>'
    )


PLAIN = (
    "smpi/lat-factor:0:1", "smpi/bw-factor:0:1", "network/crosstraffic:no", "network/TCP-gamma:0", "network/weight-S:0",
    "smpi/simulate-computation:no",
)  # fmt: skip
TRACED = ("computing:yes", "sleeping:yes", "display-sizes:yes")


@pytest.fixture(scope="module")
def traced_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for tool in ("smpicc", "smpirun"):
        if shutil.which(tool) is None:
            pytest.skip(f"SimGrid is not installed: there is no {tool}")
    made = tmp_path_factory.mktemp("smpi")
    (made / "program.c").write_text(TRACED_PROGRAM)
    (made / "platform.xml").write_text(platform())
    (made / "hosts").write_text("".join(f"h{rank}\n" for rank in range(RANKS)))
    subprocess.run(["smpicc", "-O1", "-o", "emulated", "program.c"], cwd=made, check=True, timeout=HANG_S)
    return made


@pytest.fixture(scope="module")
def emulated_program(traced_folder: Path) -> Trace:
    settings = [*PLAIN, "tracing/precision:12", *(f"tracing/smpi/{one}" for one in TRACED)]
    done = ran(
        [
            *("smpirun", "-np", str(RANKS), "-platform", "platform.xml", "-hostfile", "hosts"),
            *("-trace", "-trace-file", "smpi.trace", *(f"--cfg={setting}" for setting in settings), "./emulated"),
        ],
        cwd=traced_folder,
    )
    assert done.returncode == 0, done.stderr
    converted = lepaute("trace", "convert", "smpi.trace", "-o", "smpi.parquet", folder=traced_folder)
    assert converted.returncode == 0, converted.stderr
    return read_trace(traced_folder / "smpi.parquet")


def test_sleeping_and_messages_take_the_time_of_the_platform_and_every_message_has_both_ends(
    emulated_program: Trace,
) -> None:
    slept = [
        emulated_program.where((emulated_program.rank == rank) & emulated_program.named(("computing",)))
        for rank in range(RANKS)
    ]
    assert [one.duration_s.sum() for one in slept] == pytest.approx([5e-3, 2e-3, 3e-3, 4e-3], abs=1e-9)
    (send,) = (emulated_program.where((emulated_program.rank == 0) & emulated_program.named(("MPI_Send",))),)
    begun_s, moving_s = 5e-3, LATENCY_S + 8 * LARGE / BYTES_PER_S
    assert send.start_s.tolist() == pytest.approx([begun_s], abs=1e-6)
    assert send.duration_s.tolist() == pytest.approx([moving_s], rel=1e-3)
    receive = emulated_program.where((emulated_program.rank == 1) & emulated_program.named(("MPI_Recv",)))
    assert receive.start_s[0] == pytest.approx(2e-3, abs=1e-6)
    assert receive.end_s[0] == pytest.approx(begun_s + moving_s, rel=1e-3)
    assert receive.size_bytes.tolist() == [8 * LARGE, 24]
    assert receive.peer.tolist() == [0, 0]
    assert receive.tag.tolist() == [7, 9]
    matches = match_messages(emulated_program)
    assert len(matches.send) == 2 + 3 * 3 * RANKS
    assert (emulated_program.size_bytes[matches.receive] >= emulated_program.size_bytes[matches.send]).all()
    sendrecv = emulated_program.where(
        (emulated_program.rank == 2) & emulated_program.named(("MPI_Sendrecv", "MPI_Sendrecv_arrival"))
    )
    assert sendrecv.peer.tolist() == [3, 1] * 3
    assert sendrecv.size_bytes.tolist() == [416, 408] * 3
    assert emulated_program.metadata["warnings"] == []


def test_a_recording_of_the_same_program_has_the_same_calls_and_sizes(
    emulated_program: Trace, traced_folder: Path
) -> None:
    mpicc = shutil.which("mpicc")
    if mpicc is None or shutil.which("mpirun") is None:
        pytest.skip("no MPI library for a real run")
    subprocess.run([mpicc, "-O1", "-o", "real", "program.c"], cwd=traced_folder, check=True, timeout=HANG_S)
    done = lepaute("record", "-o", "real.parquet", "--", *MPIRUN, str(RANKS), "./real", folder=traced_folder)
    assert done.returncode == 0, done.stderr
    found = compare_traces(read_trace(traced_folder / "real.parquet"), emulated_program)
    assert found.one_side == ()
    assert found.same_sizes, (found.first, found.first_size)
    assert sum(one.left_calls for one in found.classes) == sum(one.right_calls for one in found.classes) > 100
