"""validation/emulated_program.py: its cases, which runs count, and what is read from the program; nothing is run."""

import emulated_program
import pandas
import pytest

from lepaute.errors import LepauteError


def test_the_cases_cover_what_their_docstring_says_and_are_the_same_every_time() -> None:
    cases = emulated_program.cases_of(quick=False)
    assert cases == emulated_program.cases_of(quick=False)
    assert sorted(case.nb for case in cases) == [64, 64, 96, 96, 128, 128, 192, 192, 256, 256]
    assert sorted((case.p, case.q) for case in cases) == [(1, 2)] * 5 + [(2, 1)] * 5
    sizes = [case.n for case in cases]
    assert sizes == sorted(sizes)
    # A stratum each: ten equal factors from 800 to 5000, and the fraction cut off.
    for index, size in enumerate(sizes):
        assert 800 * 6.25 ** (index / 10) - 1 < size <= 800 * 6.25 ** ((index + 1) / 10)


def test_disturbed_runs_count_only_where_a_case_has_no_others() -> None:
    runs = pandas.DataFrame(
        {"case": [0, 0, 1, 1], "time_s": [1.0, 2.0, 3.0, 4.0], "disturbed_by": ["", "other", "other", "other"]}
    )
    assert emulated_program.undisturbed(runs)["time_s"].tolist() == [1.0, 3.0, 4.0]


def test_the_time_is_the_one_that_the_program_prints() -> None:
    assert emulated_program.time_in("rate: 3\ntime:     0.123456 s\nerror: 0\n") == 0.123456
    with pytest.raises(LepauteError, match="printed no time"):
        emulated_program.time_in("usage: summa")
