"""A change that a part of a fleet shares is one event, and the other machines are judged as if it had not been."""

import numpy as np
import pandas as pd
import pytest
from long_tests import long_but
from scipy import stats
from support.fleets import DAY_S, date_of, fleet_values
from support.null_streams import KINDS, null_streams

from lepaute.stats.group_effects import PartialShifts
from lepaute.watch.alarms.procedure import AlarmSettings
from lepaute.watch.changelog import Changelog
from lepaute.watch.open_regressions import OpenRegressions, regressions_in
from lepaute.watch.proposals.platform_events import propose
from lepaute.watch.proposals.proposed_event import ProposedEvent
from lepaute.watch.values import day_of

pytestmark = pytest.mark.slow
#: Scatter of a machine, and what a day does to all; the day of the change, and all days.
NOISE, OF_DAY, DAY, DAYS = 0.008, 0.7, 40, 75
#: Machines, and the share of them that changes.
FLEETS = [(16, 0.5), (40, 0.3), (40, 0.7), (200, 0.3), (200, 0.5), (200, 0.7)]


def fleet(machines: int, share: float, size: float, slow: dict[int, int], seed: int = 1) -> pd.DataFrame:
    """The first machines change by `size`; the numbers in `slow` by -6 % from a day on."""
    rng = np.random.default_rng((20261129, machines, seed))
    z = rng.normal(size=(machines, DAYS)) + OF_DAY * rng.normal(size=DAYS)
    z[: int(share * machines), DAY:] += size / NOISE
    for machine, day in slow.items():
        z[machine, day:] -= 0.06 / NOISE
    return fleet_values(z, noise=NOISE, seed=seed)


def judged(values: pd.DataFrame) -> tuple[OpenRegressions, tuple[ProposedEvent, ...]]:
    found = regressions_in(values, Changelog(), AlarmSettings())
    return found, propose(found.values, found.changelog, standing=found.confirmed(), points=found.change_points())


@pytest.mark.parametrize(("machines", "share"), long_but(FLEETS, FLEETS[0]))
def test_what_a_part_of_a_fleet_shares_is_one_event_and_single_machines_are_judged_beside_it(machines, share):
    hit = int(share * machines)
    slow = {2: 50, machines - 3: 55}  # one of either part
    found, events = judged(fleet(machines, share, 0.04, slow))
    shared, *others = events
    assert {2 * (int(node) - 1) + cpu for _, node, cpu in shared.machines} == set(range(hit))
    assert day_of(shared.before_s).isoformat() == date_of(DAY)
    assert shared.factors[0].size == pytest.approx(0.04, abs=0.004)
    assert {2 * (int(row["node"]) - 1) + row["cpu"] for row in found.rows.to_dict("records")} == set(slow)
    assert found.rows["size"].to_numpy() == pytest.approx(-0.06, abs=0.012)
    assert len(others) == len(slow)


def test_a_part_of_a_fleet_that_became_slower_is_one_regression() -> None:
    found, events = judged(fleet(100, 0.5, -0.02, {}))
    (report,) = found.reports
    assert len(report.machines) == 50
    assert report.since.isoformat() == date_of(DAY)
    assert report.changes[0].size == pytest.approx(-0.02, abs=0.002)
    assert [len(event.machines) for event in events] == [50]


@pytest.mark.parametrize("days", [1, 3])
def test_what_a_part_of_a_fleet_does_for_a_few_days_is_no_change_of_the_others(days: int) -> None:
    values = fleet(60, 0.5, 0.0, {})
    warm = (values["node"].astype(int) <= 15) & values["started_s"].between(
        values["started_s"].min() + DAY * DAY_S, 9e9
    )
    warm &= values["started_s"] < values["started_s"].min() + (DAY + days) * DAY_S
    values.loc[warm, "value"] *= 0.95
    found, _ = judged(values)
    assert found.rows.empty
    assert set(found.judged.alarms["node"].astype(int)) <= set(range(1, 16))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("machines", [8, 64])
def test_no_part_of_a_fleet_is_told_apart_where_nothing_changes(kind: str, machines: int) -> None:
    fleets, days = 8, 100
    z = null_streams(kind, fleets * machines, days, seed=20261129).reshape(fleets, machines, days)
    z = z - np.median(z, axis=1, keepdims=True)
    told = 0
    for values in z:
        rho = np.full(machines, 0.6 if "0.6" in kind else 0.0)
        scale = values.std(axis=1) * np.sqrt(1 - rho**2)
        parts, nothing = PartialShifts(np.zeros(machines, np.int64)), np.zeros(1)
        for day in range(days):
            parts.take(values[:, day], scale, rho, nothing, nothing)
            told += bool(parts.shifted.any())
    assert told <= stats.binom.ppf(0.999, fleets * days, 0.01)
