"""The promises of proposed and planned events and of notices: rarely any where nothing is wrong, and true sizes."""

import datetime as dt

import numpy as np
import pytest
from long_tests import long_but
from scipy import stats
from support.fleets import BEGIN_S, DAY_S, NOISE, fleet_values
from support.null_streams import CPUS, KINDS, autoregressive, null_streams
from support_limits import most

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog, Event, NodeSet
from lepaute.watch.judging.judge import judge
from lepaute.watch.notices.notice import notices
from lepaute.watch.proposals.change_points import LEVEL, find_change_points
from lepaute.watch.proposals.day_events import day_events
from lepaute.watch.proposals.planned_change import before_after
from lepaute.watch.proposals.platform_events import propose


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


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("machines", [16, 64])
def test_levels_that_are_normal_and_nodes_that_come_and_go_rarely_give_a_notice(machines: int) -> None:
    fleets, days = 60, 40
    count = 0
    for number in range(fleets):
        rng = np.random.default_rng((20261128, machines, number))
        z = autoregressive(rng.normal(size=(machines, days)), 0.6)
        z[np.repeat(rng.uniform(size=(machines // 2, days)) < 0.15, 2, axis=0)] = np.nan
        count += bool(notices(fleet_values(z, seed=1000 + number), least_change=0.0))
    assert count <= stats.binom.ppf(1 - 1e-6, fleets, LEVEL)


@pytest.mark.slow
def test_a_level_six_deviations_from_the_others_is_found() -> None:
    found = 0
    for number in range(30):
        z = np.random.default_rng((20261129, number)).normal(size=(64, 30))
        values = fleet_values(z, seed=number)
        middle = values.groupby(["node", "cpu"])["value"].median().median()
        bad = (values["node"] == "7") & (values["cpu"] == 0)
        values.loc[bad, "value"] *= 0.82 * middle / values.loc[bad, "value"].median()
        found += any((notice.node, notice.cpu) == ("7", 0) for notice in notices(values))
    assert found >= 27


MACHINES, CHANGE = 16, -2.0  # standard deviations


def changed(rho: float, before: int, after: int, seed: int, machines: int = MACHINES) -> np.ndarray:
    z = autoregressive(np.random.default_rng((20261125, seed)).normal(size=(machines, before + after)), rho)
    z[:, before:] += CHANGE
    return z


def date(day: int) -> dt.date:
    return dt.date(2026, 1, 1) + dt.timedelta(days=day)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), long_but([(20, 20), (60, 10), (10, 5)], (20, 20)))
@pytest.mark.parametrize("rho", long_but([0.0, 0.6], 0.6))
def test_intervals_of_machines_and_of_all_hold_the_change(rho: float, before: int, after: int) -> None:
    fleets = 15
    hit, hit_all, significant = 0, 0, 0
    for seed in range(fleets):
        found = before_after(fleet_values(changed(rho, before, after, seed), seed=seed), date(before))
        inside = (found["low"] <= CHANGE * NOISE) & (found["high"] >= CHANGE * NOISE)
        hit += int(inside[found["node"] != ""].sum())
        hit_all += int(inside[found["node"] == ""].sum())
        significant += int((found["p_adjusted"] < 0.05)[found["node"] == ""].sum())
    assert hit >= stats.binom.ppf(1e-6, fleets * MACHINES, 0.95)
    assert hit_all >= stats.binom.ppf(1e-6, fleets, 0.95)
    if before >= 20:  # five days have no certain mean, where neighbours may resemble each other
        assert significant >= 0.8 * fleets


@pytest.mark.slow
@pytest.mark.parametrize("rho", long_but([0.0, 0.6], 0.6))
def test_where_nothing_changed_few_fleets_have_a_significant_machine(rho: float) -> None:
    fleets, alarms = 25, 0
    for seed in range(fleets):
        z = changed(rho, 30, 15, seed)
        z[:, 30:] -= CHANGE
        alarms += bool((before_after(fleet_values(z, seed=seed), date(30))["p_adjusted"] < 0.05).any())
    # the machines and the row of all: 5 % each
    assert alarms <= stats.binom.ppf(1 - 1e-6, fleets, 0.1)


def test_only_what_lies_between_the_neighbouring_events_is_compared() -> None:
    z = changed(0.0, 30, 30, 3)
    z[:, :10] += 50
    z[:, 50:] += 50
    log = Changelog(
        tuple(
            Event(date(day), NodeSet("sim", "all"), "platform", reason)
            for day, reason in ((10, "earlier"), (30, "the change"), (50, "later"))
        )
    )
    found = before_after(fleet_values(z), date(30), log)
    assert set(found["n_before"]) == {20}
    assert set(found["n_after"]) == {20}
    assert (found["change"] + 0.01).abs().max() < 0.01


def test_too_few_jobs_are_said_and_none_are_refused() -> None:
    values = fleet_values(changed(0.0, 30, 2, 4))
    found = before_after(values, date(30))
    assert found["missing"].tolist() == [1] * MACHINES + [0]  # all together by pairs
    assert found["p_value"].iloc[:-1].isna().all()
    with pytest.raises(InputError, match="before and after 2027"):
        before_after(values, dt.date(2027, 1, 1))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_before_and_one_after_are_compared_by_pairs(jobs: int) -> None:
    fleets, machines, change = 60, 30, -0.0013
    noise, hit, false = 0.0004, 0, 0
    for seed in range(fleets):
        z = np.random.default_rng((20261129, seed)).normal(size=(machines, 2 * jobs))
        z[:, jobs:] += change / noise
        z[4, jobs:] -= 0.01 / noise
        found = before_after(fleet_values(z, noise=noise, seed=seed), date(jobs))
        of_all, others = found.iloc[-1], found.iloc[:-1]
        assert of_all["pairs"] >= machines - 3
        hit += of_all["low"] <= change <= of_all["high"]
        differing = others[others["p_differs"] < 0.05]
        slow = differing[(differing["node"] == "3") & (differing["cpu"] == 0)]
        assert slow["change"].tolist() == pytest.approx([-0.0113], abs=0.002)
        false += len(differing) > 1
    assert hit >= stats.binom.ppf(1e-3, fleets, 0.95)
    assert false <= stats.binom.ppf(0.999, fleets, 0.05)
    assert of_all["high"] - of_all["low"] < 0.001
