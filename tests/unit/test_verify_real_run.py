"""Reading what the real HPL prints, and refusing what this machine cannot run."""

import json
import os

import pytest

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.verify.real_run import check_machine, parse_driver_output, parse_hpl_output, user_program
from lepaute.simulate import Hpl

HPL_OUTPUT = """
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR12R2C2        2000   128     1     2               0.09              6.098e+01
================================================================================
"""
RANK = {"rank": 0, "cpu": 1, "wall_s": 0.09, "cpu_s": 0.0899, "voluntary_switches": 3, "involuntary_switches": 1}


def driver_line(**changes):
    record = {"n": 2000, "nb": 128, "p": 1, "q": 2, "depth": 1, "time_s": 0.0876, "gflops": 61.0, "ranks": [RANK]}
    return json.dumps({**record, **changes})


@pytest.mark.parametrize(
    ("time", "rate", "duration_s"),
    [
        # 0.09 s is known to 5.6 %, 6.098e+01 Gflop/s to 0.01 %: 2/3 2000^3 + 3/2 2000^2 = 5.33933e9 flop / 60.98e9.
        ("    0.09", "6.098e+01", pytest.approx(5.339333333e9 / 60.98e9, rel=1e-9)),
        ("54321.98", "9.829e-05", 54321.98),
    ],
)
def test_the_duration_comes_from_the_time_or_the_rate_whichever_has_more_digits(time, rate, duration_s):
    output = HPL_OUTPUT.replace("    0.09", time).replace("6.098e+01", rate)
    for line in (output, output.replace("WR12R2C2", "WC12R2C2")):  # row-major and column-major
        assert parse_hpl_output(line, Hpl(n=2000, q=2)) == duration_s


@pytest.mark.parametrize(
    ("output", "hpl", "complaint"),
    [
        (HPL_OUTPUT.replace("0.09", "5.09"), Hpl(n=2000, q=2), "HPL:4: 5.09 s and 6.098e+01 Gflop/s are not of one"),
        (HPL_OUTPUT, Hpl(n=2000, p=2), "(2000, 128, 1, 2) instead of (2000, 128, 2, 1)"),
        ("HPL ERROR from process # 0:\n>>> Need at least 4 processes\n", Hpl(n=10), "Need at least 4 processes"),
    ],
)
def test_output_without_the_result_that_was_asked_for_is_an_error_of_one_line(output, hpl, complaint):
    with pytest.raises(EnvironmentProblem) as error:
        parse_hpl_output(output, hpl)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_the_json_line_of_the_driver_gives_time_and_ranks_among_other_lines():
    output = f"some warning of MPI\n{driver_line()}\n"
    time_s, ranks = parse_driver_output(output, Hpl(n=2000, q=2))
    assert time_s == 0.0876
    assert [(rank.cpu, rank.cpu_s) for rank in ranks] == [(1, 0.0899)]


@pytest.mark.parametrize("broken", ["{", "{}", driver_line(ranks=[{"rank": 0}]), driver_line(time_s=None)])
def test_a_broken_line_of_the_driver_is_an_error_and_no_traceback(broken):
    with pytest.raises(EnvironmentProblem, match="invalid result line"):
        parse_driver_output(broken, Hpl(n=2000, q=2))


def test_a_grid_larger_than_the_machine_is_refused_with_both_numbers():
    cores = len(os.sched_getaffinity(0))
    with pytest.raises(InputError, match=rf"needs {cores + 1} cores .* offers {cores}"):
        check_machine(Hpl(n=100, p=1, q=cores + 1))


def test_a_matrix_larger_than_the_free_memory_is_refused_before_anything_runs():
    # 8 * (10^7)^2 bytes are 800 TB.
    with pytest.raises(InputError, match=r"needs 9600\d\d\.\d GB .* Choose N <= \d+000"):
        check_machine(Hpl(n=10_000_000))


def test_an_xhpl_that_is_no_program_is_refused(tmp_path):
    (tmp_path / "text").write_text("not a program")
    for path in (tmp_path / "missing", tmp_path / "text", tmp_path):
        with pytest.raises(InputError, match="--xhpl"):
            user_program(path)
