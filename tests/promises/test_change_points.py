"""The promises of proposed events: rarely any where nothing changes, and sizes and dates that hold what they say."""

import numpy as np
import pytest
from long_tests import long_but
from scipy import stats
from support.fleets import BEGIN_S, DAY_S, NOISE, fleet_values
from support.null_streams import CPUS, KINDS, autoregressive, null_streams

from lepaute.watch.judging.judge import judge
from lepaute.watch.proposals.change_points import LEVEL, find_change_points
from lepaute.watch.proposals.day_events import day_events
from lepaute.watch.proposals.platform_events import propose


def most(chance: float, count: int) -> int:
    """More of `count` than this, each with that chance, happen to one seed in a million."""
    return int(stats.binom.ppf(1 - 1e-6, count, chance))


@pytest.mark.slow
@pytest.mark.parametrize("kind", long_but(KINDS, "AR(1) 0.6 of t, 4 df"))
def test_a_fleet_in_which_nothing_changes_has_any_change_point_in_at_most_one_run_of_twenty(kind: str) -> None:
    fleets, days = 12, 120
    streams = null_streams(kind, fleets * CPUS, days, seed=20261125).reshape(fleets, CPUS, days)
    # whatever matters: a season to which machines respond differently is no change even so
    found = [find_change_points(fleet_values(z, seed=number), least_change=0.0) for number, z in enumerate(streams)]
    assert sum(map(bool, found)) <= most(LEVEL, fleets)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_few_machines_without_peers_have_no_more_false_change_points(rho: float) -> None:
    runs, machines, days = 30, 4, 90
    z = autoregressive(np.random.default_rng(8).normal(size=(runs, machines, days)), rho)
    assert sum(bool(find_change_points(fleet_values(each), least_change=0.0)) for each in z) <= most(LEVEL, runs)


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "size"), long_but([(0.0, 4.0), (0.6, 8.0)], (0.6, 8.0)))
def test_sizes_and_dates_of_planted_changes_lie_in_their_intervals(rho: float, size: float) -> None:
    fleets, days, day = 12, 120, 70
    sized, dated, found, planted, false = 0, 0, 0, 0, 0
    for number in range(fleets):
        rng = np.random.default_rng((20261126, number))
        z = autoregressive(rng.normal(size=(32, days)), rho)
        changed = rng.permutation(32)[:8]
        signs = rng.choice([-1.0, 1.0], 8)
        z[changed, day:] += (size * signs)[:, None]
        truth = dict(zip(((int(m) // 2 + 1, int(m) % 2) for m in changed), size * NOISE * signs, strict=True))
        planted += 8
        for point in find_change_points(fleet_values(z, seed=number)):
            true = truth.get((int(point.node), point.cpu))
            if true is None:
                false += 1
                continue
            found += 1
            sized += point.low <= true <= point.high
            dated += point.earliest_s < BEGIN_S + (day + 1) * DAY_S and point.latest_s >= BEGIN_S + day * DAY_S
    assert found >= 0.8 * planted
    assert false <= most(LEVEL, found)
    assert sized >= stats.binom.ppf(1e-6, found, 0.95)
    assert dated >= stats.binom.ppf(1e-6, found, 0.95)


@pytest.mark.slow
@pytest.mark.long
def test_a_drift_of_both_processors_of_a_node_is_told_once() -> None:
    fleets, days = 40, 90
    told = 0
    for number in range(fleets):
        z = autoregressive(np.random.default_rng((20261127, number)).normal(size=(32, days)), 0.3)
        z[6:8] -= 4.0 * np.arange(days) / days  # node 4 loses 2 %
        events = propose(fleet_values(z, seed=number))
        told += [{node for _, node in event.nodes} for event in events] == [{"4"}]
    # 95 % of 300 fleets; of such a share less than this comes about for one seed in a million
    assert told >= stats.binom.ppf(1e-6, fleets, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", long_but(["independent", "Student t, 4 df", "AR(1) 0.6 of t, 4 df"], "Student t, 4 df")
)
def test_alarms_of_machines_that_have_nothing_in_common_are_no_platform_event(kind: str) -> None:
    # heavy tails: the raw tests have dozens of times as many alarms as their level says
    fleets, days = 12, 120
    streams = null_streams(kind, fleets * CPUS, days, seed=20261127).reshape(fleets, CPUS, days)
    events = 0
    for z in streams:
        # every processor a node: the two of a node have their jobs, and so their bad days, in common
        values = fleet_values(z)
        values = values.assign(node=values["node"] + values["cpu"].map({0: "a", 1: "b"}), cpu=0)
        events += bool(day_events(judge(values, windows=(1,)), values, least_change=0.0))
    assert events <= most(LEVEL, fleets)
