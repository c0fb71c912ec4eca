"""A regression that stands can be accepted, and what lasts is not proposed as single days."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from support.fleets import DAY_S, fleet_values

from lepaute.watch.alarms.procedure import AlarmSettings
from lepaute.watch.changelog import Changelog
from lepaute.watch.judging.judge import judge
from lepaute.watch.open_regressions import regressions_in
from lepaute.watch.proposals.day_events import day_events
from lepaute.watch.proposals.platform_events import propose

MACHINES, DAYS, CHANGED = 32, 60, 50
CHANGED_ON = dt.date(2026, 2, 20)


def quiet(seed: int, days: int = DAYS) -> np.ndarray:
    """Of 16 nodes of two processors, in units of 0.5 %."""
    return np.random.default_rng(seed).normal(size=(MACHINES, days))


def open_in(values: pd.DataFrame, log: Changelog | None = None) -> pd.DataFrame:
    return regressions_in(values, log or Changelog(), AlarmSettings()).rows


def one_node_down() -> pd.DataFrame:
    z = quiet(31)
    z[4:6, CHANGED:] -= 8
    return fleet_values(z)


@pytest.mark.slow
def test_a_regression_that_no_step_has_found_yet_is_a_proposal_whose_event_ends_it() -> None:
    values = one_node_down()
    early = values[values["started_s"] < values["started_s"].min() + (CHANGED + 4) * DAY_S]
    left = open_in(early)
    assert len(left)
    assert propose(early) == ()
    (event,) = propose(early, standing=left)
    assert (event.kind, event.shape, event.date, event.nodes) == ("machine", "step", CHANGED_ON, (("sim", "3"),))
    (factor,) = event.factors
    assert factor.low < -0.04 < factor.high < 0
    accepted = Changelog((event.to_event("jane"),))
    assert open_in(early, accepted).empty
    assert propose(early, accepted, standing=open_in(early, accepted)) == ()
    assert propose(early, standing=left, least_change=0.2) == ()
    assert propose(early, standing=left, since_s=event.before_s + DAY_S) == ()


def test_what_lasts_is_not_proposed_as_a_single_day() -> None:
    z = quiet(33)
    z[:8, CHANGED] -= 12
    single = fleet_values(z)
    (event,) = day_events(judge(single, windows=(1,)), single)
    assert event.days == (CHANGED_ON,)
    z[:8, CHANGED + 1 :] -= 12
    lasting = fleet_values(z)
    assert day_events(judge(lasting, windows=(1,)), lasting) == ()


@pytest.mark.slow
def test_days_of_what_an_alarm_has_found_are_not_proposed() -> None:
    z = quiet(34)
    z[4:6, CHANGED:] -= 8
    z[8:16, CHANGED + 2] -= 12
    values = fleet_values(z)
    left, verdicts = open_in(values), judge(values, windows=(1,))
    (day,) = propose(values, verdicts=verdicts)
    assert (day.shape, {node for _, node in day.nodes}) == ("days", {"3", "5", "6", "7", "8"})
    found = propose(values, verdicts=verdicts, standing=left)
    assert [(event.shape, {node for _, node in event.nodes}) for event in found] == [
        ("step", {"3"}),
        ("days", {"5", "6", "7", "8"}),
    ]
