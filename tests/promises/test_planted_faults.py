"""Whom a planted fault is said to have hit, on fleets of 3 to 12 nodes: the right set, no clean node, true sizes."""

from dataclasses import dataclass

import numpy as np
import pytest
from long_tests import long_but
from scipy import stats
from support_planted import BEGIN_S, Fault, drawn_fault, planted

from lepaute.watch.alarms.procedure import AlarmSettings
from lepaute.watch.changelog import ALL, Changelog
from lepaute.watch.open_regressions import regressions_in
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


def test_half_of_a_fleet_that_is_slower_is_named_and_not_the_other_half_as_faster() -> None:
    hit = (1, 3, 6)
    rows = regressions_in(planted(6, 80, (Fault(hit, -0.08, 56),), 73), Changelog(), AlarmSettings()).rows
    assert set(rows["node"]) == {f"n{node}" for node in hit}


def test_a_shift_of_all_nodes_is_not_counted_again_in_the_step_of_one() -> None:
    every = tuple(range(1, 7))
    values = planted(6, 90, (Fault(every, -0.022, 50), Fault((2,), -0.03, 70)), 4)
    rows = regressions_in(values, Changelog(), AlarmSettings()).rows
    sizes = dict(zip(rows["node"], rows["size"], strict=True))
    assert sizes == {ALL: pytest.approx(-0.022, abs=0.004), "n2": pytest.approx(-0.03, abs=0.004)}


def test_two_nodes_that_change_days_apart_are_two_regressions_with_their_dates() -> None:
    rows = regressions_in(
        planted(8, 90, (Fault((2,), -0.05, 60), Fault((5,), -0.08, 62)), 5), Changelog(), AlarmSettings()
    ).rows
    dates = {row["node"]: (row["changed_s"] - BEGIN_S) // DAY_S for row in rows.to_dict("records")}
    assert dates == {"n2": 60, "n5": 62}
