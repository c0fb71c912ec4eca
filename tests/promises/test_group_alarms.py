"""Machines of a rack that wander together: no more alarms than promised, and a rack that changed is named."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.fleets import CPUS_A_NODE, NOISE, fleet_values
from support.null_streams import racked_streams

from lepaute.stats.multiple_tests import LEVEL
from lepaute.watch.alarms.procedure import AlarmSettings, judge_days
from lepaute.watch.changelog import Changelog, Inventory
from lepaute.watch.open_regressions import OpenRegressions, regressions_in

SEED = 20261127
FLEETS = 16


def racks_of(machines: int, racks: int) -> Changelog:
    """Which node is in which rack."""
    nodes = machines // CPUS_A_NODE
    return Changelog(inventory=Inventory({"rack": {str(i + 1): f"r{i * racks // nodes + 1}" for i in range(nodes)}}))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("machines", "racks"), [(12, 3), (64, 4)])
def test_clean_fleets_with_racks_that_wander_have_no_more_alarms_than_promised(
    machines: int, racks: int, known: bool
) -> None:
    # an AR(1) 0.9 of one standard deviation, a season, and days that all share; a correct program has more with 1e-6
    log = racks_of(machines, racks) if known else Changelog()
    fleets = [fleet_values(racked_streams(SEED + i, machines, racks), seed=i) for i in range(FLEETS)]
    alarmed = sum(len(judge_days(values, log).alarms) > 0 for values in fleets)
    assert alarmed <= stats.binom.ppf(1 - 1e-6, FLEETS, LEVEL)


def open_after(z: np.ndarray, log: Changelog, seed: int) -> OpenRegressions:
    return regressions_in(fleet_values(z, seed=seed), log, AlarmSettings())


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("wander", "size"), [(0.0, 6.0), (1.0, 10.0)])
def test_a_rack_that_changed_is_told_as_a_rack(wander: float, size: float) -> None:
    # 3 %, or 5 % where racks wander by a tenth of that
    for seed in range(4):
        z = racked_streams(SEED + 100 + seed, 32, 4, 150, wander)
        z[8:16, 100:] -= size
        report = open_after(z, racks_of(32, 4), seed).reports[0]
        assert report.shared == "rack r2"
        assert set(report.nodes) == {"5", "6", "7", "8"}
        assert abs(report.changes[0].size + size * NOISE) < 0.01


@pytest.mark.slow
def test_where_no_group_shares_anything_an_inventory_changes_no_bit() -> None:
    z = racked_streams(SEED, 12, 3, 100, 0.0)
    z[3, 50:] -= 6.0
    values = fleet_values(z)
    plain, known = (judge_days(values, log).alarms.drop(columns="judged_s") for log in (Changelog(), racks_of(12, 3)))
    assert len(plain) == 1
    pd.testing.assert_frame_equal(plain, known, check_exact=True)


@pytest.mark.slow
@pytest.mark.long
def test_one_machine_of_a_rack_that_wanders_is_found_and_none_of_its_neighbours() -> None:
    hit = 0
    for seed in range(6):
        z = racked_streams(SEED + 200 + seed, 32, 4, 150)
        z[9, 100:] -= 8.0
        found = open_after(z, racks_of(32, 4), seed)
        assert {report.machines for report in found.reports} <= {(("sim", "5", 1),)}
        hit += len(found.reports)
    assert hit >= 5  # of eight standard deviations, none is missed
