"""Intervals of a planned change hold what they say, where a textbook's t-test does not."""

import datetime as dt

import numpy as np
import pytest
from long_tests import long_but
from scipy import stats
from support.fleets import NOISE, fleet_values
from support.null_streams import autoregressive

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog, Event, NodeSet
from lepaute.watch.proposals.planned_change import before_after

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
