"""Reading what the real HPL prints, and refusing what this machine cannot run."""

import pytest

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.verify.real_run import check_machine, parse_hpl_output
from lepaute.simulate import Hpl

HPL_OUTPUT = """
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR12R2C2        2000   128     1     2               0.09              6.098e+01
================================================================================
"""


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


def test_a_matrix_larger_than_the_free_memory_is_refused_before_anything_runs():
    # 8 * (10^7)^2 bytes are 800 TB.
    with pytest.raises(InputError, match=r"needs 9600\d\d\.\d GB .* Choose N <= \d+000"):
        check_machine(Hpl(n=10_000_000))
