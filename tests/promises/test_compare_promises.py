"""False alarms, intervals, power and forecasts of comparisons, also against baselines of several days."""

import numpy as np
import pandas
import pytest
from long_tests import long_but
from scipy.stats import binom
from support_comparisons import World, build_and_days

from lepaute.measure.compare.baseline import day_verdicts
from lepaute.measure.compare.single_calls import flagged, flags, two_groups
from lepaute.measure.compare.summaries import mpirun_summaries
from lepaute.measure.compare.verdicts import SIGNIFICANT, verdicts
from lepaute.measure.compare.wording import gate, sentence
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
@pytest.mark.parametrize(("blocks", "mpiruns"), long_but([(2, 4), (10, 1)], (2, 4)))
def test_a_library_against_itself_is_declared_faster_in_at_most_one_comparison_of_twenty(name, blocks, mpiruns):
    rng = np.random.default_rng((7, blocks, len(name)))
    trials, rows = 30, 3
    families = false = 0
    for _ in range(trials):
        results = verdicts(UNPLEASANT[name].summaries(rng, rows, blocks, mpiruns), "a", "b")
        families += any(result.p_corrected <= SIGNIFICANT for result in results)
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


@pytest.mark.slow
@pytest.mark.long
def test_eight_mpiruns_decide_what_differs_among_75_rows_and_hardly_anything_else() -> None:
    rng = np.random.default_rng(20261126)
    found, false = 0, []
    for _ in range(4):
        table = World(of_mpirun=0.01).summaries(rng, 75, 2, 4)
        slower = (table["library"] == "b") & (table["size_bytes"] < 2**25)
        results = verdicts(table.assign(median_s=table["median_s"] * np.where(slower, 1.2, 1.0)), "a", "b")
        shown = [result.size_bytes < 2**25 for result in results if result.outcome in ("left faster", "right faster")]
        found += sum(shown)
        false.append(1 - np.mean(shown))
    assert found >= 0.8 * 4 * 25
    assert np.mean(false) <= 0.1  # 5 % are promised; 4 campaigns


def test_primary_rows_are_decided_by_fewer_mpiruns_than_all() -> None:
    table = World(of_mpirun=0.01, effect=0.3).summaries(np.random.default_rng(3), 12, 1, 4)
    alike = (table["library"] == "b") & (table["size_bytes"] > 1)
    table.loc[alike, "median_s"] /= np.exp(0.3)
    row = ("Bcast", "blocking", 1)
    assert not any(verdict.p_corrected <= SIGNIFICANT for verdict in verdicts(table, "a", "b"))
    first, *others = verdicts(table, "a", "b", primary=[row])
    assert (first.outcome, first.p_corrected) == ("left faster", pytest.approx(2 / 70))
    assert all(one.p_corrected > SIGNIFICANT for one in others)


def slow_calls(rng: np.random.Generator, share: float) -> pandas.DataFrame:
    """Twelve mpiruns of 60 calls of both libraries; of the second one, a share of calls takes five times as long."""
    frames = []
    for mpirun, library in enumerate([*rng.permutation(["a", "b"] * 6), *rng.permutation(["a", "b"] * 6)]):
        duration_s = 1e-5 * np.exp(rng.normal(0, 0.02) + rng.normal(0, 0.1, 60))
        duration_s[rng.random(60) < share * (library == "b") + 0.005] *= 5
        about = {"library": library, "block": mpirun // 12, "mpirun": mpirun, "operation": "Bcast"}
        frames.append(pandas.DataFrame({"duration_s": duration_s, "form": "blocking", "size_bytes": 8, **about}))
    return mpirun_summaries(pandas.concat(frames))


@pytest.mark.slow
@pytest.mark.long
def test_a_patch_that_makes_one_call_in_ten_five_times_slower_is_found_and_none_is_not() -> None:
    rng = np.random.default_rng(5)
    found = [verdicts(slow_calls(rng, 0.1), "a", "b")[0] for _ in range(12)]
    assert sum(one.slow_calls == "right" for one in found) >= 10
    assert not any(one.slow_calls == "left" for one in found)
    assert "b has more slow calls: " in sentence(next(one for one in found if one.slow_calls), "a", "b")
    clean = [verdicts(slow_calls(rng, 0.0), "a", "b")[0] for _ in range(40)]
    assert sum(one.slow_calls is not None for one in clean) <= at_most(40, SIGNIFICANT)


def test_a_library_that_drifts_is_named_and_a_steady_one_seldom() -> None:
    rng = np.random.default_rng(6)
    steady = 0
    for _ in range(30):
        table = World().summaries(rng, 3, 3, 4)
        steady += any("drifts" in line for line in flagged(flags(no_calls(table))))
    assert steady <= at_most(30, SIGNIFICANT)
    drifting = (table["library"] == "b") & (table["size_bytes"] == 2)
    table.loc[drifting, "median_s"] = 0.7e-6 + 1e-6 * table.loc[drifting, "mpirun"]
    line = flagged(flags(no_calls(table)))[0]
    assert line.startswith("b drifts: Bcast of 2 B goes from ")


def test_mpiruns_that_fall_into_two_groups_are_told_and_one_group_seldom_is_two() -> None:
    rng = np.random.default_rng(7)
    logs = np.log(np.where(rng.random(30) < 0.4, 140e-6, 600e-6)) + rng.normal(0, 0.05, 30)
    assert np.exp(two_groups(logs)) == pytest.approx([140e-6, 600e-6], rel=0.05)
    draws = (lambda size: rng.normal(0, 1, size), lambda size: rng.exponential(1, size))
    false = sum(bool(two_groups(draw(size))) for size in (12, 30) for draw in draws for _ in range(100))
    assert false <= 20  # of 400


def no_calls(table: pandas.DataFrame) -> pandas.DataFrame:
    """A call for each mpirun: what a flag of single calls is made of, of which there is none."""
    table["calls"] = table["calls_inside"] = 1
    return table


def test_five_per_cent_are_shown_by_ten_blocks_and_one_per_cent_by_none() -> None:
    rng = np.random.default_rng(10)
    shown = {
        effect: sum(
            row.outcome == "left faster"
            for _ in range(6)
            for row in verdicts(World(effect=effect).summaries(rng, 4, 10, 2), "a", "b")
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
                if verdicts(table[table["block"] < blocks], "a", "b")[0].decision.is_decided
            ),
            120,
        )
        count += 1
        inside += first.forecast.low <= needed <= max(first.forecast.high, 120 * (first.forecast.high > 120))
        near += 0.5 <= first.forecast.likely / needed <= 2
    assert count >= 15
    assert inside >= 0.6 * count
    assert near >= 0.4 * count


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
