"""False alarms, intervals, power and forecasts of comparisons of MPI libraries, counted on made-up ones."""

import numpy as np
import pytest
from long_tests import long_but
from scipy.stats import binom
from support_comparisons import World

from lepaute.compare.flags import ratio_warnings
from lepaute.compare.tuning import choices
from lepaute.compare.verdicts import SIGNIFICANT, verdicts
from lepaute.stats.aligned_ranks import aligned_rank_test

pytestmark = pytest.mark.slow

UNPLEASANT = {
    "even": World(),
    "outliers": World(tails=1.5),
    "blocks that differ by far": World(of_block=0.3),
    "a machine that slows down": World(drift=0.003),
    "mpiruns that differ by far": World(of_mpirun=0.1, of_row=0.001),
}


def at_most(count: int, share: float) -> int:
    """More of `count` than this, each with that chance, happen to one seed in a million."""
    return int(binom.ppf(1 - 1e-6, count, share))


@pytest.mark.parametrize("name", long_but(UNPLEASANT, "outliers", "mpiruns that differ by far"))
@pytest.mark.parametrize(("blocks", "mpiruns"), [(10, 1)])
def test_a_library_against_itself_is_declared_faster_in_at_most_one_comparison_of_twenty(
    name: str, blocks: int, mpiruns: int
) -> None:
    rng = np.random.default_rng((7, blocks, len(name)))
    trials, rows = 40, 3
    families = false = 0
    for _ in range(trials):
        results = verdicts(UNPLEASANT[name].summaries(rng, rows, blocks, mpiruns), "a", "b")
        families += any(one.p_corrected <= SIGNIFICANT for one in results)
        false += results[0].p_value <= SIGNIFICANT  # rows of one comparison are not independent: one of each
    assert families <= at_most(trials, SIGNIFICANT)
    assert false <= at_most(trials, SIGNIFICANT)


def test_p_values_of_a_library_against_itself_are_uniform() -> None:
    rng = np.random.default_rng(8)
    world = World(of_block=0.1, drift=0.002, tails=2.0)
    p_values = []
    for _ in range(800):
        table = world.summaries(rng, 1, 4, 3)
        p_values.append(aligned_rank_test(np.log(table["median_s"]), table["library"] == "b", table["block"]).two_sided)
    for level in (0.01, 0.05, 0.2, 0.5):
        below = np.count_nonzero(np.array(p_values) <= level)
        assert below <= at_most(800, level)
        assert below >= binom.ppf(1e-6, 800, 0.9 * level)  # an exact test of so many arrangements wastes little


@pytest.mark.parametrize("name", long_but(UNPLEASANT, "outliers", "mpiruns that differ by far"))
@pytest.mark.parametrize("effect", [0.05])
def test_intervals_hold_the_true_ratio(name: str, effect: float) -> None:
    rng = np.random.default_rng((9, len(name)))
    world = World(**{**{key: getattr(UNPLEASANT[name], key) for key in World.__dataclass_fields__}, "effect": effect})
    trials = 60
    missed = 0
    for _ in range(trials):
        (one,) = verdicts(world.summaries(rng, 1, 6, 2), "a", "b")
        missed += not one.low <= np.exp(effect) <= one.high
    assert missed <= at_most(trials, 0.05)


def test_five_per_cent_are_shown_by_ten_blocks_and_one_per_cent_by_none() -> None:
    rng = np.random.default_rng(10)
    shown = {
        effect: sum(
            one.outcome == "left faster"
            for _ in range(6)
            for one in verdicts(World(effect=effect).summaries(rng, 4, 10, 2), "a", "b")
        )
        for effect in (0.05, 0.002)
    }
    assert shown[0.05] >= 20
    assert shown[0.002] <= 3


@pytest.mark.long
def test_a_forecast_holds_what_it_takes_in_the_share_it_says() -> None:
    """The middle four fifths of a forecast hold the mpiruns that decide in at least six of ten rows."""
    rng = np.random.default_rng(11)
    inside = near = count = 0
    for _ in range(40):
        world = World(effect=float(rng.uniform(0, 0.04)), of_mpirun=0.03)
        table = world.summaries(rng, 1, 60, 2)
        (first,) = verdicts(table[table["block"] < 8], "a", "b")
        if first.forecast is None:
            continue
        needed = next(
            (
                2 * blocks
                for blocks in np.unique(np.round(9 * 1.2 ** np.arange(11)).astype(int))
                if verdicts(table[table["block"] < blocks], "a", "b")[0].outcome != "undecided"
            ),
            120,
        )
        count += 1
        inside += first.forecast.low <= needed <= max(first.forecast.high, 120 * (first.forecast.high > 120))
        near += 0.5 <= first.forecast.likely / needed <= 2
    assert count >= 15
    assert inside >= 0.6 * count
    assert near >= 0.4 * count


def test_a_ratio_that_changes_while_the_campaign_runs_is_noticed_and_a_steady_one_seldom() -> None:
    """Blocks that differ as a whole change no ratio; a machine in whose other state one library is slower does."""
    rng = np.random.default_rng(11)
    world = World(of_block=0.3)
    trials, noticed = 30, 0
    for _ in range(trials):
        steady = world.summaries(rng, rows=4, blocks=24, mpiruns=1)
        noticed += bool(ratio_warnings(steady, "a", "b"))
    assert noticed <= at_most(trials, SIGNIFICANT)
    changed = world.summaries(rng, rows=4, blocks=24, mpiruns=1)
    slow = (changed["library"] == "b") & changed["block"].between(8, 15) & (changed["size_bytes"] == 2)
    changed.loc[slow, "median_s"] *= 1.5
    (warning,) = ratio_warnings(changed, "a", "b")
    assert "(Bcast of 2 B)" in warning


def test_equal_algorithms_replace_the_default_in_at_most_one_campaign_of_twenty() -> None:
    rng = np.random.default_rng(12)
    trials, labels = 40, ["mpi", "mpi.1", "mpi.2"]
    replaced = 0
    for _ in range(trials):
        table = World(of_mpirun=0.05, of_block=0.3).summaries(rng, 1, 8, 1, tuple(labels))
        chosen = choices(table, "mpi", {label: {"bcast": label[-1]} for label in labels[1:]})
        replaced += any(one.algorithm for one in chosen)
    assert replaced <= at_most(trials, SIGNIFICANT)
