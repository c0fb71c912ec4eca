"""`lepaute emulate` with the programs of examples/emulation: right results, in the time of the simulated machine."""

import json
import re
import shutil
from typing import Any

import pytest
from oracles.emulation_examples import EXAMPLES, PROGRAMS, values

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem
from lepaute.simulate.smpi.building import find_simgrid

PATTERN = r"time: +(\S+) s"
ARGUMENTS = {
    "halo": ("300", "40"), "cg": ("60", "400"), "fft": ("256", "2"), "summa_fortran": ("1000", "100", "2", "2"),
}  # fmt: skip
RANKS = 4


def no_simgrid() -> str:
    try:
        find_simgrid()
    except EnvironmentProblem as problem:
        return str(problem)
    return ""


pytestmark = [pytest.mark.machine, pytest.mark.skipif(bool(no_simgrid()), reason=no_simgrid() or "SimGrid is here")]


def emulate(example: str, *options: str, ranks: int = RANKS, arguments: tuple[str, ...] | None = None) -> int:
    """The command as a user gives it; its exit status."""
    if example == "summa_fortran" and shutil.which("gfortran") is None:
        pytest.skip("gfortran is not here")
    words = ["emulate", "-p", "dahu", "-np", str(ranks), "--source", str(EXAMPLES / example), "--time-pattern", PATTERN]
    return main([*words, *options, "--", PROGRAMS[example], *(arguments or ARGUMENTS[example])])


def found(capsys: pytest.CaptureFixture[str], example: str, *options: str) -> dict[str, Any]:
    """The JSON object of an emulation."""
    assert emulate(example, *options, "--json") == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize("example", ["halo", "cg", "fft"])
def test_a_program_with_computing_of_its_own_gets_right_what_it_computes(example, capsys):
    assert emulate(example) == 0
    out, err = capsys.readouterr()
    printed = values(out)
    errors = {name: value for name, value in printed.items() if name.startswith("error")}
    assert errors
    assert max(errors.values()) < 1e-12
    shown = re.search(r" takes (\S+) (s|ms) ", err)
    assert float(shown[1]) * {"s": 1.0, "ms": 1e-3}[shown[2]] == pytest.approx(printed["time"], rel=1e-3)
    assert "timed on this machine" in err


def test_the_halo_exchange_sends_its_messages_and_has_the_checksum_of_one_rank(capsys):
    sums = []
    for ranks in (1, RANKS):
        assert emulate("halo", "--details", ranks=ranks) == 0
        out, err = capsys.readouterr()
        sums.append(values(out)["checksum"])
    assert sums[0] == pytest.approx(sums[1], rel=1e-11)
    # On a grid of 2 x 2 each rank has two neighbours in each of the 40 sweeps.
    assert f"{RANKS * 2 * 40} point-to-point messages" in err
    assert "timed on this machine" in err


def test_measured_computing_comes_on_top_of_the_messages(capsys: pytest.CaptureFixture[str]) -> None:
    free = found(capsys, "fft", "--computing", "none")
    messages = free["time_s"]["mean"]
    assert found(capsys, "fft", "--computing", "none")["time_s"]["mean"] == messages
    assert any("of the computing was not charged" in warning for warning in free["warnings"])
    assert found(capsys, "fft")["time_s"]["mean"] > 2 * messages > 0


def test_the_product_takes_the_time_of_its_dgemm_and_some_more_for_messages(capsys: pytest.CaptureFixture[str]) -> None:
    answer = found(capsys, "summa_fortran", "--computing", "none")
    # Blocks of 500 in panels of 100: ten panels on each rank, and nothing but dgemm.
    assert {name: use["calls"] for name, use in answer["routines"].items()} == {"dgemm": 10 * RANKS}
    share = answer["routines"]["dgemm"]["time_s"] / RANKS
    assert share < answer["time_s"]["mean"] < 2 * share
    assert answer["unmodelled_share"] == 0.0


def test_folding_the_matrices_of_the_product_changes_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    whole, folded = (found(capsys, "summa_fortran", "--computing", "none", *words) for words in ((), ("--fold", "1M")))
    assert folded["time_s"] == whole["time_s"]
    assert whole["simulation"]["folded_bytes"] == 0
    # Of each rank: a, bt and c, 500 x 500; a panel has 400 kB.
    assert folded["simulation"]["folded_bytes"] == pytest.approx(RANKS * 3 * 500 * 500 * 8, rel=0.01)


def test_the_trace_of_the_halo_exchange_holds_its_calls_and_its_computing(tmp_path, capsys):
    trace, picture = tmp_path / "halo.parquet", tmp_path / "halo.png"
    assert emulate("halo", "--computing", "measured", "--trace", str(trace), "--gantt", str(picture)) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert main(["trace", "show", str(trace)]) == 0
    shown = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert shown["MPI_Waitall"][2] == str(RANKS * 40)
    assert shown["MPI_Allreduce"][2] == str(RANKS * 4)
    assert shown["computing"][1] == "kernel"
