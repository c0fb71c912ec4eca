"""validation/own_computing.py: its cases; nothing is run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "validation"))

import own_computing


def test_there_are_three_programs_of_three_sizes_on_one_and_two_ranks() -> None:
    cases = own_computing.cases_of(quick=False)
    assert len(set(cases)) == 3 * 3 * 2
    assert {case.ranks for case in cases} == {1, 2}
    assert all((own_computing.SOURCES / case.program / "Makefile").is_file() for case in cases)
