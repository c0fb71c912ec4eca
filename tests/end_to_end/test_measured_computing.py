"""--computing measured: a rank's computing is its own, whatever SMPI does between two of its calls."""

from pathlib import Path

import pytest
from support_limits import HANG_S

from lepaute.errors import EnvironmentProblem
from lepaute.kit.command import run_command
from lepaute.simulate.platform import load_platform
from lepaute.simulate.smpi.building import compilers
from lepaute.simulate.smpi.emulate import Options, emulate_run

RANKS = 6
#: All ranks compute the same after a call in which all of them take part, or which takes part of the others' time.
PROGRAM = Path(__file__).parents[1].joinpath("data", "programs", "measured_computing_program.c").read_text()
#: One rank computes, the other looks for its message meanwhile.
PROBING = Path(__file__).parents[1].joinpath("data", "programs", "measured_computing_probing.c").read_text()
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
    assert all(spent >= (last - first) * (1 - 1e-6) for spent, first, last in zip(charged, between, ended, strict=True))
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
def test_a_program_without_arguments_needs_no_dashes(folder, tmp_path, output_of, refusal_of):
    program = compiled(PROBING, folder, tmp_path / "probing.c")
    words = ["emulate", "-p", "dahu", "-np", "2", "--computing", "measured"]
    assert output_of(*words, "--binary", program).count("rank ") == 2
    assert "no program is named" in refusal_of(*words)
