"""Mutated archives end in an answer or in one line that says what is wrong: never in a traceback."""

from collections import Counter
from pathlib import Path

import pytest
from archive_mutants import mutate_archives
from archive_readers import OPENED, REFUSED, read_everything
from support_archive import experiment_archive, failed_archive

from lepaute.measure.archive import Archive
from lepaute.measure.archive.setups import setup_of

COUNT = 200


@pytest.mark.slow
def test_every_mutant_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Also says that the mutants are worth something: inner layers are reached, and damage is refused."""
    originals = [experiment_archive(tmp_path / "whole.zip"), failed_archive(tmp_path / "failed.zip")]
    whole = Archive.open(originals[0])
    other, known = setup_of(whole), frozenset(whole.members())
    mutant = tmp_path / "mutant.zip"
    ends: Counter[tuple[str, str]] = Counter()
    unharmed, opened = [path.read_bytes() for path in originals], 0
    for number, way in enumerate(mutate_archives(originals, mutant, COUNT, seed=20261121)):
        try:
            ends[way, read_everything(mutant, other, tmp_path / "out", known)] += 1
        except Exception as problem:
            raise AssertionError(f"mutant {number} ({way}): {type(problem).__name__}: {problem}") from problem
        if way == "raw bytes" and ends[way, OPENED] > opened:  # some changes change nothing
            assert mutant.read_bytes() in unharmed
            opened += 1
    assert ends["bytes, sealed again", REFUSED] > 5
    assert ends["document, in order again", OPENED] > 20
