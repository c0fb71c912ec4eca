"""The search for the send-completion limits, against made-up libraries: it must find their limits to the byte."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lepaute.measure.calibration.send_completion import BACKLOG, LONG_PATIENCE_MS, MAX_ROUNDS, next_tests, silent_tests
from lepaute.stats.send_completion import (
    LEAD,
    MAX_ANSWERS,
    Row,
    SemanticLimits,
    Verdict,
    bracket,
    semantic_limits,
    verdicts,
)

MOST = 16 << 20
#: (test, size_bytes, patience_ms) -> outcome
Library = Callable[[str, int, int], str]


def library(copied_up_to: float, returned_up_to: float, kept_ms: Callable[[], float] = lambda: 0.0) -> Library:
    """Copies and returns up to these sizes; a rank is kept from its core for `kept_ms` a test."""

    def answer(test: str, size: int, patience_ms: int) -> str:
        if test == "corruption":
            return "copied" if size <= copied_up_to else "changed"
        return "returned" if size <= returned_up_to and kept_ms() < patience_ms else "blocked"

    return answer


def search(answer: Library) -> tuple[list[Row], int]:
    """All answers, and how many rounds it took."""
    rows: list[Row] = []
    for number in range(MAX_ROUNDS):
        tests = next_tests(rows, MOST)
        if not tests:
            return rows, number
        rows += [(size, test, answer(test, size, wait), wait) for test, size, _, wait in tests]
    raise AssertionError("the search does not end")


sizes = st.integers(0, MOST).map(float) | st.sampled_from([math.inf, 4040.0, 65480.0, float(MOST)])


@settings(max_examples=60)
@given(copied=sizes, further=st.integers(0, 1 << 20))
def test_the_limits_of_a_library_are_found_to_the_byte(copied: float, further: int) -> None:
    rows, rounds = search(library(copied, copied + further))
    found = semantic_limits(rows)
    # A limit beyond what is tested, or at its end, is "all that were tested".
    assert found.asynchronous_up_to_bytes == (copied if copied < MOST else math.inf)
    assert found.detached_up_to_bytes == (copied + further if copied + further < MOST else math.inf)
    assert (found.unattended_up_to_bytes, found.tested_up_to_bytes, found.undecided_bytes) == (None, MOST, ())
    # Each test: a grid, then 16 times fewer sizes a round, from 3/4 of 2^24 on; and one to confirm what blocks.
    assert rounds <= 2 * (1 + 6) + 1


@pytest.mark.parametrize("seed", range(20))
def test_ranks_that_are_kept_from_their_cores_do_not_move_a_limit(seed: int) -> None:
    """One send in five comes back late, as on a machine with three times as many busy processes as cores."""
    rng = random.Random(seed)
    rows, _ = search(library(4040, 4040, lambda: rng.uniform(20, 90) if rng.random() < 0.2 else 0.0))
    assert semantic_limits(rows).detached_up_to_bytes == 4040


@pytest.mark.parametrize(("late", "rounds"), [("blocked", 1), ("blocked", 2), ("blocked", 3), ("hung", 1), ("hung", 2)])
def test_a_small_send_that_a_stall_of_the_network_delays_is_asked_again(late: str, rounds: int) -> None:
    """In the first starts that test MPI_Send, one byte comes back late, though larger messages pass."""
    rows, stalls = list[Row](), 0
    for _ in range(MAX_ROUNDS):
        tests = next_tests(rows, MOST)
        stalled = stalls < rounds and any((test, size) == ("deadlock", 1) for test, size, *_ in tests)
        stalls += stalled
        for test, size, _, wait in sorted(tests, key=lambda row: -row[1]):
            delayed = stalled and size == 1
            rows.append((size, test, late if delayed else library(4040, 4040)(test, size, wait), wait))
            if delayed and late == "hung":
                break
    assert next_tests(rows, MOST) == []
    assert semantic_limits(rows).detached_up_to_bytes == 4040


def test_one_odd_answer_decides_nothing_and_answers_that_never_agree_are_told() -> None:
    def told(*outcomes: str) -> Verdict:
        return verdicts([(8, "deadlock", outcome, 20) for outcome in outcomes], "deadlock")[8]

    assert told("returned", "returned", "blocked") is Verdict.OPEN
    assert told("returned", "returned", "blocked", "returned", "returned") is Verdict.PASSES
    assert told("blocked", "blocked", "blocked") is told("hung") is Verdict.FAILS
    both = ["returned", "blocked"] * MAX_ANSWERS
    assert told(*both) is Verdict.BOTH
    assert semantic_limits([(8, "deadlock", outcome, 20) for outcome in both]).undecided_bytes == (8,)
    outcomes = {1: "blocked", 4: "returned", 16: "blocked"}
    busy = [(size, "deadlock", outcome, 20) for size, outcome in outcomes.items() for _ in range(LEAD)]
    assert semantic_limits(busy).undecided_bytes == (1,)


def test_a_test_that_hangs_is_an_answer_though_it_ends_its_round() -> None:
    rng, rows = random.Random(5), list[Row]()
    for _ in range(MAX_ROUNDS):
        tests = next_tests(rows, MOST)
        rng.shuffle(tests)
        for test, size, _, wait in tests:
            hangs = test == "deadlock" and size > 4040
            rows.append((size, test, "hung" if hangs else library(4040, 4040)(test, size, wait), wait))
            if hangs:
                break
    assert next_tests(rows, MOST) == []
    assert semantic_limits(rows).detached_up_to_bytes == 4040


def test_a_longer_patience_overrules_what_a_shorter_one_took_for_a_block() -> None:
    short = [(8, "deadlock", "blocked", 20)] * 3
    assert verdicts(short, "deadlock") == {8: Verdict.FAILS}
    assert verdicts([*short, *[(8, "deadlock", "returned", LONG_PATIENCE_MS)] * 3], "deadlock") == {8: Verdict.PASSES}
    assert verdicts([*short, *[(8, "deadlock", "blocked", LONG_PATIENCE_MS)] * 3], "deadlock") == {8: Verdict.FAILS}


def test_without_sends_the_limits_are_no_bytes_else_silence_is_tested_at_powers_of_two_and_with_a_backlog() -> None:
    rows, _ = search(library(0, 0))
    found = semantic_limits(rows)
    assert (found.asynchronous_up_to_bytes, found.detached_up_to_bytes) == (0, 0)
    assert silent_tests(rows) == []
    assert semantic_limits([]) == SemanticLimits(0, 0, None, 0)
    rows, _ = search(library(100, 100))
    tests = silent_tests(rows)
    assert {(size, backlog) for _, size, backlog, _ in tests} == {
        *((size, 0) for size in (1, 2, 4, 8, 16, 32, 64, 100)), (1, BACKLOG), (100, BACKLOG)
    }  # fmt: skip
    # What now returns and now does not is not what one can count on.
    silent = [(size, "silent", "returned", 10) for size in (1, 2, 2, 4)] + [(4, "silent", "blocked", 10)]
    tripled = [row for row in silent for _ in range(3)]
    assert semantic_limits([*rows, *tripled]).unattended_up_to_bytes == 2


def test_a_bracket_stops_at_the_first_size_that_does_not_pass() -> None:
    told = {1: Verdict.PASSES, 4: Verdict.OPEN, 16: Verdict.PASSES, 64: Verdict.FAILS, 256: Verdict.PASSES}
    assert bracket(told) == (16, 64)
    assert bracket({}) == (0, math.inf)
