"""The promises of what is worth a look: one clean fleet in twenty has such a line in 100 days; what is found, and when.

Fleets of machines with a value a day or several, noise of one standard deviation, and a day effect of half of that,
which all share. Bounds are missed by a correct program less than once in a million, by the binomial distribution.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from long_tests import long_but
from scipy import stats
from support.fleets import BEGIN_S, fleet_values
from support.look_streams import NOISES, changed, days_until, fleets_of, shown
from support_limits import most

from lepaute.stats.change_evidence import factors
from lepaute.stats.level_shift import onset
from lepaute.stats.small_changes import CHANCE, DAYS, LEVELS, WIDER
from lepaute.watch.alarms.procedure import judge_days
from lepaute.watch.alarms.standing import standing
from lepaute.watch.alarms.worth_a_look import LABEL, LEVEL, SCATTER
from lepaute.watch.changelog import Changelog
from lepaute.watch.values import DAY_S

Floats = npt.NDArray[np.float64]
#: Machines of a fleet, and fleets: what is counted has a standard error of at most 1.5 points for the larger ones.
SIZES = {5: 600, 12: 300, 64: 120}  # of fewer than five machines nothing is looked at


def least(chance: float, count: int) -> int:
    """Fewer of `count` than this, each with that chance, happen to one seed in a million."""
    return int(stats.binom.ppf(1e-6, count, chance))


@pytest.mark.slow
@pytest.mark.parametrize("noise", long_but(NOISES, NOISES[1]))
@pytest.mark.parametrize("size", SIZES)
def test_in_100_days_at_most_one_clean_fleet_in_twenty_has_a_line(noise: str, size: int) -> None:
    # days are the first 100, and the last 100 of 250, where more is known
    fleets = SIZES[size] if noise == NOISES[1] else 2 * SIZES[size]
    found = shown(fleets_of(noise, size, fleets, 250, 1), size).reshape(fleets, size, 250).any(axis=1)
    for begin in (0, 150):
        assert found[:, begin : begin + DAYS].any(axis=1).sum() <= most(CHANCE, fleets)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "jobs", "within", "share"),
    [
        (2.0, 1, 14, 0.75),
        (2.0, 2, 7, 0.8),
        *long_but([(1.0, 4, 14, 0.85), (1.0, 1, 60, 0.7), (None, 1, 42, 0.9)], (None, 1, 42, 0.9)),
    ],
)
def test_what_is_found_within_so_many_days(change: float | None, jobs: int, within: int, share: float) -> None:
    days = days_until(shown(changed(change, 12, 60, jobs, 2, max(within, 30)), 12, jobs), 12, jobs)
    assert (days <= within).sum() >= least(share, 60)


def test_no_test_of_one_value_a_day_finds_one_standard_deviation_in_a_fortnight_at_this_level() -> None:
    # seven fortnights, two directions, so many machines share the level; scale, level and date known, Neyman & Pearson
    def power(machines: int) -> float:
        return float(stats.norm.sf(stats.norm.isf(CHANCE / (DAYS // 14 * 2 * machines)) - np.sqrt(14)))

    assert power(64) < 0.5 < power(12) < 0.65
    assert power(1) < 0.9


def fleets_with(make: "list[Floats]") -> pd.DataFrame:
    return pd.concat([fleet_values(z, seed=i, cluster=f"c{i}") for i, z in enumerate(make)], ignore_index=True)


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "days"), long_but([(0.05, 80), (0.1, 45), (0.2, 30)], (0.1, 45)))
def test_a_drift_is_dated_within_a_week_of_its_beginning(slope: float, days: int) -> None:
    rng = np.random.default_rng((20261127, round(100 * slope)))
    fleets = []
    for _ in range(20):
        z = rng.normal(size=(12, 100 + days)) + 0.5 * rng.normal(size=100 + days)
        z[3, 100:] -= slope * np.arange(1, days + 1)
        fleets.append(z)
    values = fleets_with(fleets)
    judged = judge_days(values)
    mine = judged.looks[(judged.looks["node"] == "2") & (judged.looks["cpu"] == 1)]
    looks = mine.drop_duplicates("cluster")["changed_s"].to_numpy()
    assert len(looks) >= 18
    # a twentieth of a standard deviation a day leaves six days of error to any test, and two fleets' luck besides
    late = looks / DAY_S - BEGIN_S / DAY_S - 100
    assert abs(np.median(late)) <= 7
    assert np.median(np.abs(late)) <= (7 if slope > 0.05 else 10)
    # so is an alarm, where there is one
    steps = standing(judged.alarms, Changelog(), values)
    first = steps[(steps["node"] == "2") & (steps["cpu"] == 1)].drop_duplicates("cluster")
    assert len(first) >= 15
    begun = first["gradual_s"].fillna(first["changed_s"]).to_numpy() / DAY_S - BEGIN_S / DAY_S - 100
    assert np.median(np.abs(begun)) <= (7 if slope > 0.05 else 10)


def test_a_step_is_no_drift() -> None:
    rng = np.random.default_rng(4)
    called = []
    for _ in range(200):
        x = rng.normal(size=80)
        x[50:] += 3
        called.append(onset([(np.arange(80.0), x)]).gain > 2)
    assert sum(called) <= most(0.01, 200)


def test_lines_tell_a_level_from_a_scatter_and_change_no_alarm() -> None:
    rng = np.random.default_rng(5)
    level, scatter, clean = (rng.normal(size=(12, 160)) for _ in range(3))
    level[3, 100:] -= 1.5
    scatter[5, 100:] *= 4
    judged = judge_days(fleets_with([level, scatter, clean]))
    looks = judged.looks[judged.looks["stands"]]
    assert {(row.cluster, row.node, row.cpu, row.kind) for row in looks.itertuples()} == {
        ("c0", "2", 1, LEVEL),
        ("c1", "3", 1, SCATTER),
    }
    sizes = dict(zip(looks["kind"], looks["size"], strict=True))
    assert -0.012 < sizes[LEVEL] < -0.003
    assert 1.5 < sizes[SCATTER] < 5
    assert judged.alarms.empty
    assert "no alarms" in LABEL


def test_a_machine_that_is_back_is_no_longer_shown() -> None:
    z = np.random.default_rng(6).normal(size=(12, 200))
    z[3, 100:125] -= 2
    looks = judge_days(fleet_values(z)).looks
    assert len(looks) == 1
    assert not looks["stands"].any()


@pytest.mark.parametrize("degrees", [2, 5, 40])
def test_the_mean_of_a_factor_is_at_most_one(degrees: int) -> None:
    rng = np.random.default_rng(11)
    count = 400_000
    scale = np.sqrt(rng.chisquare(degrees, count) / degrees)
    for noise in (rng.normal(size=count), rng.standard_t(4, count) / 1.2):
        ratios = factors(noise / scale, np.full(count, degrees), (*LEVELS, *WIDER))
        # of a scatter it is 1.05 for the first few values ever of a stream without peers, by the grid of scales
        assert (ratios.mean(axis=0) <= [1.01, 1.01, 1.06] + 5 * ratios.std(axis=0) / np.sqrt(count)).all()
