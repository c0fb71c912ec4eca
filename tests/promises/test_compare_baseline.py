"""Builds against baselines of several days: builds that changed nothing are red as seldom as promised."""

import numpy as np
import pytest
from long_tests import long_but
from scipy.stats import binom
from support_comparisons import World, build_and_days

from lepaute.measure.compare.baseline import day_verdicts
from lepaute.measure.compare.wording import gate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("days", long_but([4, 7, 14], 4))
@pytest.mark.parametrize("tails", long_but([3.0, 30.0], 3.0))
@pytest.mark.parametrize("rows", long_but([1, 12], 1))
def test_at_most_one_null_build_of_twenty_is_red(days: int, tails: float, rows: int) -> None:
    rng = np.random.default_rng((days, rows, int(tails)))
    world, builds = World(of_block=0.03, of_row=0.02, tails=tails), 300
    red = sum(
        gate(day_verdicts(build_and_days(rng, world, days, rows=rows), "new"), "new", 0.001).status() == 1
        for _ in range(builds)
    )
    assert red <= binom.ppf(1 - 1e-6, builds, 0.05)


@pytest.mark.parametrize(("days", "least"), long_but([(4, 0.25), (7, 0.8), (14, 0.95)], (7, 0.8)))
def test_a_build_that_is_a_fifth_slower_is_red_where_days_differ_by_three_per_cent(days: int, least: float) -> None:
    rng = np.random.default_rng(days)
    world, builds = World(of_block=0.03), 100
    red = sum(
        gate(day_verdicts(build_and_days(rng, world, days, 1.2), "new"), "new", 0.05).status() == 1
        for _ in range(builds)
    )
    assert red >= least * builds
