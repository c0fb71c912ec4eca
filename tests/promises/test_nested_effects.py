"""Effects of days, launches and processes are told apart, and a run of 2 or 16 ranks scatters as they say."""

import numpy as np
import pytest
from scipy import stats

from lepaute.stats.covariances import NestedEffects, nested_effects

#: Ranks of the launches of a block, as a calibration has them: two processes alone and two pairs.
LAUNCHES = (1, 1, 2, 2)


def campaign(rng: np.random.Generator, blocks: int, day: float, run: float, own: float) -> tuple[np.ndarray, ...]:
    """Effects of processes, with lasting differences between their kinds; then block, launch and kind of each."""
    ranks = np.tile(LAUNCHES, blocks)
    launch = np.repeat(np.arange(len(ranks)), ranks)
    block = launch // len(LAUNCHES)
    kind = np.tile(np.arange(sum(LAUNCHES)), blocks)
    effect = (day * rng.normal(size=blocks))[block] + (run * rng.normal(size=len(ranks)))[launch]
    return effect + own * rng.normal(size=len(launch)) + rng.normal(size=sum(LAUNCHES))[kind], block, launch, kind


def variances(found: NestedEffects) -> np.ndarray:
    return np.array([found.block_sd, found.launch_sd, found.process_sd]) ** 2


@pytest.mark.parametrize(("day", "run", "own"), [(0.03, 0.02, 0.02), (0.02, 0.03, 0.01), (0.02, 0.02, 0.02)])
def test_the_variances_of_all_three_are_recovered(day, run, own):
    rng = np.random.default_rng(1)
    true = np.array([day, run, own]) ** 2
    found = np.array([variances(nested_effects(*campaign(rng, 12, day, run, own))) for _ in range(300)])
    # Twelve blocks: an estimate of the widest effect scatters by half of it, the mean of 300 by 3 %.
    assert found.mean(axis=0) == pytest.approx(true, rel=0.12)
    assert found.mean(axis=0).sum() == pytest.approx(true.sum(), rel=0.05)


def test_with_few_blocks_the_variance_of_a_process_is_still_unbiased():
    rng = np.random.default_rng(2)
    found = np.array([variances(nested_effects(*campaign(rng, 3, 0.0, 0.02, 0.01))) for _ in range(600)])
    # Negative estimates become 0 at the cost of the narrower effects: only the sum stays.
    assert found.mean(axis=0).sum() == pytest.approx(0.02**2 + 0.01**2, rel=0.1)
    assert np.all(found >= 0)


def test_errors_of_single_values_are_no_effect_of_a_process():
    rng = np.random.default_rng(6)
    found = []
    for _ in range(300):
        values, *groups = campaign(rng, 12, 0.02, 0.02, 0.01)
        scatter = np.full(len(values), 0.03**2)
        found.append(variances(nested_effects(values + 0.03 * rng.normal(size=len(values)), *groups, scatter)))
    assert np.mean(found, axis=0)[:2] == pytest.approx([0.02**2] * 2, rel=0.15)
    # Estimates below 0 become 0: an effect of a third of the errors comes out too large, but not as large as these.
    assert 0.01**2 < np.mean(found, axis=0)[2] < 0.5 * 0.03**2


#: Times of processes as a demo's calibration has them: from one second to four.
TIMES_S = np.array([1.0, 1.3, 4.4, 4.2, 1.5, 1.4])


def test_weights_leave_the_variances_unbiased():
    rng = np.random.default_rng(7)
    found = []
    for _ in range(300):
        values, *groups = campaign(rng, 12, 0.02, 0.02, 0.02)
        error = 0.02 / np.sqrt(np.tile(TIMES_S, 12))
        values = values + error * rng.normal(size=len(values))
        found.append(variances(nested_effects(values, *groups, error**2, np.tile(TIMES_S, 12))))
    assert np.mean(found, axis=0) == pytest.approx([0.02**2] * 3, rel=0.15)


def test_what_an_interruption_does_to_short_processes_is_not_taken_for_that_of_long_ones():
    """Interruptions that nothing tells apart from an effect of the process, by time as in a sum of many."""
    rng = np.random.default_rng(8)
    times_s = np.tile(TIMES_S, 12)
    plain, weighted = [], []
    for _ in range(300):
        values, *groups = campaign(rng, 12, 0.01, 0.01, 0.01)
        values = values + 0.03 / np.sqrt(times_s) * rng.normal(size=len(values))
        plain.append(variances(nested_effects(values, *groups)).sum())
        weighted.append(variances(nested_effects(values, *groups, weight=times_s)).sum())
    of_long = 3 * 0.01**2 + 0.03**2 / 4.3
    assert of_long < np.mean(weighted) < 0.85 * np.mean(plain)


def test_lost_and_repeated_processes_do_no_harm():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(300):
        values = campaign(rng, 12, 0.02, 0.02, 0.02)
        kept = rng.random(len(values[0])) < 0.8
        found.append(variances(nested_effects(*(value[kept] for value in values))))
    assert np.mean(found, axis=0) == pytest.approx([0.02**2] * 3, rel=0.15)


def test_what_the_data_cannot_tell_apart_belongs_to_the_wider_group():
    rng = np.random.default_rng(4)
    day = rng.normal(size=10)
    alone = nested_effects(day, np.arange(10), np.arange(10), np.zeros(10))
    assert (alone.launch_sd, alone.process_sd) == (0.0, 0.0)
    assert alone.block_sd == pytest.approx(np.std(day, ddof=1))
    kind = np.tile([0, 1], 10)
    by_themselves = nested_effects(rng.normal(size=20), np.repeat(np.arange(10), 2), np.arange(20), kind)
    assert by_themselves.process_sd == 0.0
    assert by_themselves.launch_sd > 0.0
    with pytest.raises(ValueError, match="no two blocks"):
        nested_effects(np.ones(4), np.zeros(4), np.arange(4), np.zeros(4))


@pytest.mark.slow
@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("ranks", [2, 16])
@pytest.mark.parametrize(
    ("blocks", "day", "run", "own"), [(5, 0.02, 0.02, 0.01), (5, 0.0, 0.02, 0.02), (2, 0.02, 0.02, 0.01)]
)
def test_the_mean_over_the_ranks_of_a_further_run_lies_inside(blocks, day, run, own, ranks, by_time):
    """Each effect with the degrees of freedom that it rests on; the level itself is known here."""
    rng = np.random.default_rng(5)
    campaigns, drawn = 200, 1000
    true_sd = np.sqrt(day**2 + run**2 + own**2 / ranks)
    covered, widths = [], []
    for _ in range(campaigns):
        weight = np.tile(TIMES_S, blocks) if by_time else None
        found = nested_effects(*campaign(rng, blocks, day, run, own), weight=weight)
        of_run = found.block_sd * rng.standard_t(found.block_degrees_of_freedom, drawn)
        of_run += found.launch_sd * rng.standard_t(found.launch_degrees_of_freedom, drawn)
        of_run += found.process_sd * rng.standard_t(found.process_degrees_of_freedom, (ranks, drawn)).mean(axis=0)
        low, high = np.quantile(of_run, [0.025, 0.975])
        covered.append(float(stats.norm.cdf(high, scale=true_sd) - stats.norm.cdf(low, scale=true_sd)))
        widths.append((high - low) / 2)
    # Runs of one campaign share its estimates: the mean of 200 campaigns is known to 0.7 %.
    assert np.mean(covered) >= 0.93
    if blocks == 5:
        assert np.mean(covered) <= 0.99
        assert np.median(widths) < 1.4 * 1.96 * true_sd
