"""Loops of MPI_Iprobe: a rank that sleeps until a message comes sees the same as one that turns."""

from pathlib import Path

import pytest
from oracles.emulated import build, compiler_folder, dgemm_s, source_of, tiny
from support_limits import HANG_S

from lepaute.errors import SimulationError
from lepaute.simulate.smpi.emulate import Options, emulate_run
from lepaute.simulate.smpi.emulated_run import EmulatedRun
from lepaute.simulate.smpi.process import Limits

pytestmark = pytest.mark.machine

#: Rank 0 looks for messages that the others send late; it prints when each was found, and what it did then.
PROBES = source_of("emulate_probes.c")
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
