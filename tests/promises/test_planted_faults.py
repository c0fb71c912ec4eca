"""Whom a planted fault is said to have hit: nodes, racks, and no others."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from long_tests import long_but
from scipy import stats
from support.fleets import CPUS_A_NODE, NOISE, fleet_values
from support.null_streams import racked_streams
from support_planted import BEGIN_S, Fault, drawn_fault, planted

from lepaute.stats.multiple_tests import LEVEL
from lepaute.watch.alarms.procedure import AlarmSettings, judge_days
from lepaute.watch.changelog import ALL, Changelog, Inventory
from lepaute.watch.open_regressions import OpenRegressions, regressions_in
from lepaute.watch.values import DAY_S

FLEETS = 200


@dataclass(frozen=True)
class Named:
    """Of one fleet; sizes: whether each interval holds the size that was planted."""

    named: frozenset[int]
    hit: frozenset[int]
    sizes: tuple[bool, ...]
    days_late: tuple[float, ...]


def named(seed: int, days_after: int | None = None) -> Named:
    """The fleet is looked at the end, or so many days after the fault began."""
    nodes, days, faults = drawn_fault(seed)
    values = planted(nodes, days, faults, seed)
    if days_after is not None:
        begun = faults[0].day if faults else 60
        values = values[values["started_s"] < BEGIN_S + DAY_S * (begun + days_after)]
    rows = regressions_in(values, Changelog(), AlarmSettings()).rows.to_dict("records")
    found: set[int] = set()
    for row in rows:
        found |= set(range(1, nodes + 1)) if row["node"] == ALL else {int(row["node"][1:])}
    return Named(
        frozenset(found),
        frozenset(node for fault in faults for node in fault.nodes),
        tuple(row["size_low"] <= faults[0].size <= row["size_high"] for row in rows if faults),
        tuple((row["changed_s"] - BEGIN_S) // DAY_S - faults[0].day for row in rows if faults),
    )


@pytest.mark.slow
@pytest.mark.parametrize("fleets", long_but([20, FLEETS], 20))
def test_the_nodes_that_were_hit_are_named_and_no_others(fleets: int) -> None:
    every = [named(seed) for seed in range(fleets)]
    assert sum(each.named == each.hit for each in every) >= 0.95 * fleets
    assert [each for each in every if each.named - each.hit] == [], "a clean node is named"
    sizes = [inside for each in every for inside in each.sizes]
    if fleets == FLEETS:
        assert 0.93 <= np.mean(sizes) <= 0.97
    low = int(stats.binom.ppf(1e-3, len(sizes), 0.93))
    assert sum(sizes) >= low
    late = [abs(days) for each in every for days in each.days_late]
    assert np.mean(np.array(late) == 0) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("fleets", long_but([21, FLEETS], 21))
def test_days_after_a_fault_the_right_nodes_are_named_or_none(fleets: int) -> None:
    every = [named(seed, 3 + seed % 15) for seed in range(fleets)]
    wrong = [each for each in every if each.named not in (each.hit, frozenset())]
    assert len(wrong) <= 0.05 * fleets
    assert [each for each in every if each.named - each.hit] == [], "a clean node is named"


@pytest.mark.parametrize("nodes", [3, 4])
@pytest.mark.parametrize("before", [45, 60])
def test_a_shift_of_all_nodes_of_a_small_fleet_is_one_of_all(nodes: int, before: int) -> None:
    values = planted(nodes, before + 16, (Fault(tuple(range(1, nodes + 1)), -0.05, before),), nodes * before)
    for days in range(1, 17):
        seen = values[values["started_s"] < BEGIN_S + DAY_S * (before + days)]
        rows = regressions_in(seen, Changelog(), AlarmSettings()).rows
        assert rows["node"].tolist() in ([], [ALL]), f"after {days} jobs"
    assert rows["node"].tolist() == [ALL]
    assert rows["size"].item() == pytest.approx(-0.05, abs=0.004)


def test_a_node_is_named_on_the_third_day_however_slow_it_is() -> None:
    for seed, size in enumerate((-0.06, -0.2, -0.4) * 3):
        rows = regressions_in(planted(8, 59, (Fault((2,), size, 56),), seed), Changelog(), AlarmSettings()).rows
        assert rows["node"].tolist() == ["n2"]


def test_half_of_a_fleet_a_shift_of_all_and_nodes_that_change_days_apart_are_each_named_as_they_are() -> None:
    hit = (1, 3, 6)
    rows = regressions_in(planted(6, 80, (Fault(hit, -0.08, 56),), 73), Changelog(), AlarmSettings()).rows
    assert set(rows["node"]) == {f"n{node}" for node in hit}
    every = tuple(range(1, 7))
    values = planted(6, 90, (Fault(every, -0.022, 50), Fault((2,), -0.03, 70)), 4)
    rows = regressions_in(values, Changelog(), AlarmSettings()).rows
    sizes = dict(zip(rows["node"], rows["size"], strict=True))
    assert sizes == {ALL: pytest.approx(-0.022, abs=0.004), "n2": pytest.approx(-0.03, abs=0.004)}
    rows = regressions_in(
        planted(8, 90, (Fault((2,), -0.05, 60), Fault((5,), -0.08, 62)), 5), Changelog(), AlarmSettings()
    ).rows
    dates = {row["node"]: (row["changed_s"] - BEGIN_S) // DAY_S for row in rows.to_dict("records")}
    assert dates == {"n2": 60, "n5": 62}


SEED = 20261127
RACKED_FLEETS = 16


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
    fleets = [fleet_values(racked_streams(SEED + i, machines, racks), seed=i) for i in range(RACKED_FLEETS)]
    alarmed = sum(len(judge_days(values, log).alarms) > 0 for values in fleets)
    assert alarmed <= stats.binom.ppf(1 - 1e-6, RACKED_FLEETS, LEVEL)


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
