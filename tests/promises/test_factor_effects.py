"""Effects of factors in campaigns: intervals, false alarms, changes of the order of libraries, on simulated truth.

The world and what it is judged by were written down before; reasons: docs/design/decisions/clocks_and_comparisons.md.
A bound of a correct program is missed by less than one seed in a million.
"""

import itertools

import numpy as np
import pandas
import pytest
from long_tests import long_but
from scipy.stats import binom

from lepaute.measure.compare.factor_effects import factor_effects

pytestmark = pytest.mark.slow

BLOCKS, EACH, OF_MPIRUN, OF_BLOCK = 2, 4, 0.1, 0.1
VARIED = {"cache": ("warm", "cold"), "pinning": ("core", "none")}
NOISES = ("normal", "with outliers")
MISSED = 1e-6


def campaign(rng: np.random.Generator, noise: str, effects: dict[tuple[str, str], float]) -> pandas.DataFrame:
    """One row, libraries a and b; effects: of a library and the second level of a factor, or of the library ("")."""
    rows = []
    for block, library, cache, pinning, _ in itertools.product(range(BLOCKS), "ab", *VARIED.values(), range(EACH)):
        log = effects.get((library, ""), 0.0)
        log += effects.get((library, "cache"), 0.0) * (cache == "cold")
        log += effects.get((library, "pinning"), 0.0) * (pinning == "none")
        rows.append((block, library, {"cache": cache, "pinning": pinning}, log))
    table = pandas.DataFrame(rows, columns=["block", "library", "levels", "log"])
    logs = table["log"] + rng.normal(0, OF_BLOCK, BLOCKS)[table["block"]] + rng.normal(0, OF_MPIRUN, len(table))
    if noise == "with outliers":
        logs += np.log(3.0) * (rng.random(len(table)) < 0.1)
    row = {"operation": "Bcast", "form": "blocking", "size_bytes": 8, "ranks": 2, "slow_share": 0.0}
    return table.assign(mpirun=range(len(table)), median_s=1e-6 * np.exp(logs), **row)


@pytest.mark.parametrize(
    ("noise", "campaigns"), long_but([("normal", 20), *((each, 400) for each in NOISES)], ("normal", 20))
)
def test_intervals_of_effects_hold_the_truth(noise: str, campaigns: int) -> None:
    """Of one effect of each campaign: those of one campaign share its blocks."""
    rng = np.random.default_rng(20261127)
    truth = 0.2
    held = 0
    for _ in range(campaigns):
        table = campaign(rng, noise, {("a", "cache"): truth, ("b", "cache"): -0.1, ("b", "pinning"): 0.3})
        found = factor_effects(table, VARIED, margin=0.02)
        (one,) = [each for each in found if (each.factor, each.library) == ("cache", "a")]
        held += one.low <= np.exp(truth) <= one.high
    print(f"{held} of {campaigns} intervals")
    assert held >= binom.ppf(MISSED, campaigns, 0.95)


@pytest.mark.parametrize(
    ("noise", "campaigns"), long_but([("normal", 12), *((each, 250) for each in NOISES)], ("normal", 12))
)
def test_where_factors_do_nothing_few_campaigns_say_that_they_do(noise: str, campaigns: int) -> None:
    """An effect in at most 5 % of campaigns."""
    rng = np.random.default_rng(20261128)
    shown = 0
    for _ in range(campaigns):
        table = campaign(rng, noise, {})
        shown += any(effect.outcome in ("slower", "faster") for effect in factor_effects(table, VARIED, margin=0.02))
    assert shown <= binom.ppf(1 - MISSED, campaigns, 0.05)
