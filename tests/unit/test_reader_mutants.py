"""Damaged inputs to every reader, a hundred of each kind, with a fixed seed; `make fuzz` reads many more."""

import faulthandler
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from long_tests import long_but
from mutants import pool
from mutants.archives import archive_outcomes
from mutants.readers import FAILED, KINDS, READ, REFUSED, Outcome, outcome_of, outcomes

from lepaute.errors import InputError


@pytest.mark.slow
@pytest.mark.parametrize("count", long_but([100, 400], 100))
def test_every_mutant_is_read_or_refused_in_one_line(tmp_path: Path, count: int) -> None:
    """Also says that the mutants are worth something: some of each kind are read, some refused."""

    def source(kind: str) -> pool.Source:
        def started(first: int, some: int) -> Iterator[Outcome]:
            folder = tmp_path / f"{kind}-{first}"
            folder.mkdir()
            return outcomes(kind, first, some, 20261122, folder)

        return started

    ends: Counter[tuple[str, str]] = Counter()
    counts = {name: round(count * max(0.3, kind.share)) for name, kind in KINDS.items()}  # enough of dear ones, too
    for kind, outcome in pool.read_all({kind: source(kind) for kind in KINDS}, counts):
        assert outcome.result in (READ, REFUSED), f"{kind} {outcome.number} ({outcome.way}): {outcome.problem}"
        ends[kind, outcome.result] += 1
    for kind in KINDS:
        assert ends[kind, READ] >= 3, ends
        assert ends[kind, READ] + ends[kind, REFUSED] == counts[kind]
    assert sum(ends[kind, REFUSED] for kind in KINDS) > sum(counts.values()) / 2


@pytest.mark.slow
def test_every_mutant_of_an_archive_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Also says that the mutants are worth something: inner layers are reached, and damage is refused."""
    folder = tmp_path / "archives"
    folder.mkdir()
    ends: Counter[tuple[str, str]] = Counter()
    for outcome in archive_outcomes(0, 200, 20261121, folder):
        assert outcome.result in (READ, REFUSED), f"{outcome.number} ({outcome.way}): {outcome.problem}"
        ends[outcome.way, outcome.result] += 1
        if (outcome.way, outcome.result) == ("raw bytes", READ):  # some changes change nothing
            unharmed = [(folder / f"{name}.zip").read_bytes() for name in ("whole", "failed", "small")]
            assert (folder / "mutant.zip").read_bytes() in unharmed
    assert ends["bytes, sealed again", REFUSED] > 5
    assert ends["document, in order again", READ] > 20


def misbehaving(first: int, count: int) -> Iterator[Outcome]:
    """Number 1 crashes, number 2 computes for ever, number 3 takes all memory, number 4 raises what no reader may."""
    for number in range(first, first + count):
        if number == 1:
            faulthandler.disable()  # pytest's, whose report nobody needs
            os.kill(os.getpid(), signal.SIGSEGV)
        if number == 2:
            while True:
                pass
        yield outcome_of(number, "", {3: _takes_memory, 4: _raises}.get(number, _refuses), Path())


def _takes_memory(_path: Path) -> None:
    bytearray(8 << 30)


def _raises(_path: Path) -> None:
    raise KeyError("what")


def _refuses(_path: Path) -> None:
    raise InputError("no")


def test_a_crash_and_a_hang_and_a_glutton_are_counted_and_survived() -> None:
    read = pool.read_all({"x": misbehaving}, {"x": 6}, processes=1, most_cpu_s=1.0)
    results = {outcome.number: outcome.result for _, outcome in read}
    assert results == {0: REFUSED, 1: pool.CRASHED, 2: pool.SLOW, 3: FAILED, 4: FAILED, 5: REFUSED}


def test_a_mutant_depends_on_its_seed_and_number_alone(tmp_path: Path) -> None:
    assert list(outcomes("hostfile", 20, 10, 5, tmp_path)) == list(outcomes("hostfile", 0, 30, 5, tmp_path))[20:]
