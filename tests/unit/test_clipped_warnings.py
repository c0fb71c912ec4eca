"""A kernel whose model gives durations below zero is named, and loudly where that is much of it."""

import pytest

from lepaute.simulate.engine import KernelUse
from lepaute.simulate.platform import load_platform
from lepaute.simulate.prediction.warnings import kernel_warnings


def warnings_of(clipped: int) -> list[str]:
    return kernel_warnings({"dcopy": KernelUse(4000, 0.1, clipped_means=clipped)}, load_platform("dahu"))


@pytest.mark.parametrize(
    ("clipped", "costs", "percent"),
    [(4000, "next to nothing", "100 %"), (2500, "next to nothing", "62.5 %"), (401, "too little", "10.0 %")],
)
def test_a_kernel_that_is_mostly_taken_as_zero_says_so_and_one_that_seldom_is_is_counted(clipped, costs, percent):
    (warning,) = warnings_of(clipped)
    assert warning.startswith(f"dcopy costs {costs} in this prediction")
    assert f"{clipped} of 4000" in warning
    assert f"{percent} of its calls" in warning
    assert warnings_of(400) == ["400 of 4000 durations of dcopy were below zero and taken as zero"]
    assert warnings_of(40) == []
