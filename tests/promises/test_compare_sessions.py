"""Verdicts over sessions whose ratio depends on a state of the machine: intervals, false alarms, forecasts, counted.

The worlds and what they are judged by were written down before; why sessions are compared so:
docs/design/decisions/clocks_and_comparisons.md. A bound of a correct program is missed by less than one seed
in a million.
"""

from collections.abc import Callable

import numpy as np
import pandas
import pytest
from long_tests import long_but
from scipy.stats import binom

from lepaute.measure.compare.sessions import session_means, student_test
from lepaute.measure.compare.verdicts import SIGNIFICANT, verdicts

pytestmark = pytest.mark.slow

BLOCKS, EACH, OF_MPIRUN, OF_STATE, OF_SESSION = 10, 4, 0.02, 0.15, 0.05


def lasting_ten_blocks(rng: np.random.Generator) -> np.ndarray:
    """A session begins anywhere in stretches of ten blocks."""
    return OF_STATE * (1 - 2 * ((rng.integers(20) + rng.random() + np.arange(BLOCKS)) // 10 % 2))


def ending_by_chance(rng: np.random.Generator) -> np.ndarray:
    """After each block with the chance of a tenth."""
    changes = np.append(rng.random() < 0.5, rng.random(BLOCKS - 1) < 0.1)
    return OF_STATE * (1 - 2.0 * (np.cumsum(changes) % 2))


def differing_by_session(rng: np.random.Generator) -> np.ndarray:
    return np.full(BLOCKS, rng.normal(0, OF_SESSION))


def lasting_a_session(rng: np.random.Generator) -> np.ndarray:
    return np.full(BLOCKS, OF_STATE * rng.choice((-1, 1)))


World = Callable[[np.random.Generator], np.ndarray]
WORLDS = {each.__name__: each for each in (lasting_ten_blocks, ending_by_chance, differing_by_session)}


def sessions_of(rng: np.random.Generator, world: World, sessions: int, effect: float = 0.0) -> pandas.DataFrame:
    """One value for each mpirun: a session after the other, each of BLOCKS blocks with EACH mpiruns of a library."""
    states = np.concatenate([world(rng) for _ in range(sessions)])
    block = np.repeat(np.arange(len(states)), 2 * EACH)
    second = np.tile(np.arange(2 * EACH) % 2 == 1, len(states))
    logs = rng.normal(0, 0.3, len(states))[block] + second * (effect + states[block])
    return pandas.DataFrame(
        {"library": np.where(second, "b", "a"), "block": block, "mpirun": np.arange(len(block))}
        | {"session": block // BLOCKS, "operation": "Bcast", "form": "blocking", "size_bytes": 8}
        | {"median_s": 1e-6 * np.exp(logs + rng.normal(0, OF_MPIRUN, len(block)))}
    )


def simulated(seed: int, world: World, sessions: int, trials: int) -> list:
    rng = np.random.default_rng((seed, sessions))
    tests = []
    for _ in range(trials):
        table = sessions_of(rng, world, sessions)
        means = session_means(np.log(table["median_s"]), table["library"] == "b", table["block"], table["session"])
        tests.append(student_test(means, 0.95))
    return tests


#: Of 95 % intervals, what is promised to hold the truth; t over few values that lie mostly at two ends holds less.
PROMISED = {"lasting_ten_blocks": 0.92, "ending_by_chance": 0.90, "differing_by_session": 0.95}


@pytest.mark.parametrize(
    ("name", "sessions"), long_but([(name, n) for name in WORLDS for n in (3, 5, 10)], ("ending_by_chance", 5))
)
def test_the_interval_over_sessions_holds_their_average_and_false_alarms_are_as_rare(name: str, sessions: int) -> None:
    trials = 1200
    tests = simulated(1, WORLDS[name], sessions, trials)
    held = sum(test.low <= 0 <= test.high for test in tests)
    assert binom.ppf(1e-6, trials, PROMISED[name]) <= held <= binom.ppf(1 - 1e-6, trials, 0.97)
    wrong = 1 - PROMISED[name]
    assert sum(test.two_sided <= SIGNIFICANT for test in tests) <= binom.ppf(1 - 1e-6, trials, wrong)
    for side in ("lower", "higher"):
        assert sum(getattr(test, side) <= SIGNIFICANT / 2 for test in tests) <= binom.ppf(1 - 1e-6, trials, wrong / 2)


@pytest.mark.long
def test_one_session_knows_its_own_ratio_and_not_the_average_over_sessions() -> None:
    """Why its sentence says that it speaks of this session only: a state lasts as long as it does."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(150):
        (one,) = verdicts(sessions_of(rng, lasting_ten_blocks, 1).drop(columns="session"), "a", "b")
        held += one.low <= 1 <= one.high
    assert held <= 150 * 0.8


@pytest.mark.long
@pytest.mark.parametrize("sessions", [3, 5])
def test_states_that_last_a_session_are_missed_as_often_as_all_sessions_are_in_one(sessions: int) -> None:
    """What the warning of few sessions says: 2 * 2^-n, and no method could do better."""
    trials = 1200
    missed = sum(not one.low <= 0 <= one.high for one in simulated(3, lasting_a_session, sessions, trials))
    share = 2.0 ** (1 - sessions)
    assert binom.ppf(1e-6, trials, share) <= missed <= binom.ppf(1 - 1e-6, trials, share + 0.03)


@pytest.mark.long
def test_with_many_rows_that_do_not_differ_few_comparisons_name_a_faster_library() -> None:
    """Ten rows of the same sessions; the corrected p-values bound the chance of any (all hypotheses are true)."""
    rng, trials, wrong = np.random.default_rng(6), 100, 0
    for _ in range(trials):
        rows = [sessions_of(rng, differing_by_session, 4).assign(size_bytes=2**row) for row in range(10)]
        wrong += any(verdict.p_corrected <= SIGNIFICANT for verdict in verdicts(pandas.concat(rows), "a", "b"))
    assert wrong <= binom.ppf(1 - 1e-6, trials, SIGNIFICANT)
