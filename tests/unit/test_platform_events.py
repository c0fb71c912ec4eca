"""Changes of many machines become one report for each cause; what is no change is said as well."""

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pytest
from support.fleets import BEGIN_S, DAY_S, fleet_values

from lepaute.errors import InputError
from lepaute.kit.json_values import finite_json
from lepaute.watch.changelog import Changelog, Inventory, NodeSet, Outlier
from lepaute.watch.changelog import NodeSet as Nodes
from lepaute.watch.judging.judge import judge
from lepaute.watch.notices.notice import notices
from lepaute.watch.proposals.platform_events import propose
from lepaute.watch.proposals.proposed_event import read_inventory, shared_groups
from lepaute.watch.values import backward_jobs, check_values

MACHINES, DAYS, CHANGED = 32, 80, 50


def quiet(seed: int = 1, machines: int = MACHINES) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(machines, DAYS))


def nodes_of(event: object) -> set[str]:
    return {node for _, node in event.nodes}


@pytest.mark.slow
def test_half_of_the_nodes_changed_at_once_is_one_platform_event_with_their_sizes() -> None:
    z = quiet()
    z[:16, CHANGED:] -= 10  # 5 %
    events = propose(fleet_values(z))
    assert len(events) == 1
    (event,) = events
    assert (event.kind, event.shape) == ("platform", "step")
    assert nodes_of(event) == {str(i) for i in range(1, 9)}
    assert event.date == dt.date(2026, 2, 20)  # day 50 of 2026, counted from 0
    (factor,) = event.factors
    assert factor.direction == -1
    assert -0.055 < factor.size < -0.045
    assert event.after_s < BEGIN_S + CHANGED * DAY_S <= event.before_s < BEGIN_S + (CHANGED + 1) * DAY_S


def test_faults_of_different_signs_are_two_events_one_in_two_factors_one_and_a_spike_none() -> None:
    z = quiet(3)
    z[4:6, CHANGED:] -= 8
    z[20:22, CHANGED + 3 :] += 8
    events = propose(fleet_values(z))
    assert sorted((event.kind, *nodes_of(event)) for event in events) == [("machine", "11"), ("machine", "3")]
    rate, power = quiet(4), quiet(5)
    rate[4:6, CHANGED:] -= 8
    power[4:6, CHANGED:] += 8
    events = propose(fleet_values({"dgemm_rate_flops": rate, "cpu_power_W": power}))
    assert len(events) == 1
    assert {(factor.factor, factor.direction) for factor in events[0].factors} == {
        ("dgemm_rate_flops", -1),
        ("cpu_power_W", 1),
    }
    z = quiet(6)
    z[3, 40] += 1000
    z[9, :3] -= 20
    z[12, -3:] -= 20
    assert propose(fleet_values(z)) == ()


@pytest.mark.slow
def test_a_change_below_the_least_one_is_not_reported() -> None:
    z = quiet(7)
    z[4:6, CHANGED:] += 6  # 3 %
    values = fleet_values(z)
    assert len(propose(values, least_change=0.01)) == 1
    assert propose(values, least_change={"dgemm_rate_flops": 0.05}) == ()
    with pytest.raises(InputError, match="least change"):
        propose(values, least_change=-1.0)


@pytest.mark.slow
def test_an_accepted_proposal_is_not_proposed_again() -> None:
    z = quiet(8)
    z[4:6, CHANGED:] -= 10
    values = fleet_values(z)
    (event,) = propose(values)
    entry = event.to_event("jane")
    assert (entry.kind, entry.author, entry.nodes) == ("platform", "jane", NodeSet("sim", "3"))
    assert "dgemm_rate_flops" in entry.reason
    assert propose(values, Changelog((entry,))) == ()
    assert propose(values, since_s=event.before_s) == (event,)
    assert propose(values, since_s=event.before_s + DAY_S) == ()
    json.dumps(event.as_json(), allow_nan=False)


@pytest.mark.slow
def test_nodes_that_drop_for_single_days_again_and_again_are_one_event(tmp_path: Path) -> None:
    # four nodes of one chassis: a power supply, as in the published data
    z = quiet(9)
    for day in (30, 37, 41, 60):
        z[8:16, day] -= 20
    values = fleet_values(z)
    verdicts = judge(values, windows=(1,))
    file = tmp_path / "inventory.csv"
    file.write_text("node,chassis\n1/2/3/4,a\n5/6/7/8,b\n9/10/11/12,c\n13/14/15/16,d\n")
    events = propose(values, inventory=read_inventory(file), verdicts=verdicts)
    assert len(events) == 1
    (event,) = events
    assert (event.kind, event.shape, nodes_of(event)) == ("platform", "days", {"5", "6", "7", "8"})
    assert event.days[0].isoformat() == "2026-01-31"
    assert [(group.kind, group.name, group.changed, group.members) for group in event.groups] == [
        ("chassis", "b", 4, 4)
    ]
    with pytest.raises(InputError, match="outliers"):
        event.to_event("jane")
    outliers = event.to_outliers("jane")
    # later days have fewer alarms, since the first ones are not logged yet and widen the reference
    assert (outliers[0].date.isoformat(), outliers[0].job, outliers[0].nodes.text) == ("2026-01-31", "1030", "5/6/7/8")
    assert {outlier.job for outlier in outliers} <= {"1030", "1037", "1041", "1060"}
    json.dumps(event.as_json(), allow_nan=False)


def test_a_group_explains_an_event_if_chance_hardly_does(tmp_path: Path) -> None:
    file = tmp_path / "inventory.csv"
    file.write_text("node,chassis,rack\nn[1-4],c1,r1\nn[5-8],c2,r1\nn[9-12],c3,r2\nn[13-16],c4,r2\n")
    inventory = read_inventory(file)
    every = [("x", f"n{i}") for i in range(1, 17)]
    (group,) = shared_groups(inventory, every[4:8], every)
    # 1 of the 1820 ways to choose 4 of 16 nodes; two groups have a changed node
    assert (group.name, group.p_value) == ("c2", pytest.approx(2 / 1820))
    assert shared_groups(inventory, every[::4], every) == ()
    assert shared_groups(inventory, every[:1], every) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node\n1\n", ":1: the first line"),
        ("chassis,rack\na,b\n", ":1: the first line"),
        ("node,chassis\n1/2,a\n2,b\n", ":3: node 2 is already on line 2"),
        ("node,chassis\n1,a,b\n", ":2: the line has not as many"),
        ("node,chassis\n1\n", ":2: the line has not as many"),
        ("node,chassis\nall,a\n", ":2: the node is 'all'"),
        ("node,chassis\n[1-,a\n", ":2: '[1-' is not a set"),
        ("node,chassis\n", "names no node"),
    ],
)
def test_an_inventory_that_is_none_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "inventory.csv"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_inventory(file)
    assert message in str(caught.value)


FLEET, NIGHTS = 32, 60


def quiet_fleet(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(FLEET, NIGHTS))


def test_a_node_that_was_bad_from_the_start_is_unlike_its_peers_of_the_like_processors_and_no_event() -> None:
    z = quiet_fleet(1)
    z[6:8] -= 50  # 25 % below its own level, which is within 3 % of the others
    values = fleet_values(z)
    assert propose(values) == ()
    found = notices(values)
    assert [(each.kind, each.node, each.cpu) for each in found] == [
        ("unlike its peers", "4", 0),
        ("unlike its peers", "4", 1),
    ]
    assert all(-0.35 < each.size < -0.15 for each in found)
    json.dumps(finite_json(found), allow_nan=False)
    z = quiet_fleet(2)
    z[1::2] += 60  # each second processor is 30 % faster
    assert notices(fleet_values(z)) == ()


def test_machines_of_a_model_of_the_inventory_are_compared_with_their_like() -> None:
    values = fleet_values(np.random.default_rng(9).normal(size=(80, 1)))
    node = values["node"].astype(int)
    values["value"] = 1e12 * (1 + 0.01 * np.random.default_rng(10).normal(size=80))
    values.loc[node > 20, "value"] *= 1.4
    values.loc[node == 33, "value"] *= 0.8
    models = {str(each): "b" if each > 20 else "a" for each in range(1, 41)}
    found = notices(values, Changelog(inventory=Inventory({"model": models})))
    assert {(each.kind, each.node) for each in found} == {("unlike its peers", "33")}
    assert notices(values) == ()


def test_jobs_whose_dates_run_backwards_are_named_and_make_no_event() -> None:
    z = quiet_fleet(6)
    values = fleet_values(z)
    # at job 1045 the clock of node 6 was set back by twenty days, and the node became 5 % slower
    late = (values["node"] == "6") & (values["job"].astype(int) >= 1045)
    values.loc[late, "started_s"] -= 20 * DAY_S
    values.loc[late, "value"] *= 0.95
    (found,) = notices(values)
    assert (found.kind, found.node) == ("dates", "6")
    assert propose(values) == ()
    backward = check_values(values)[backward_jobs(check_values(values))]
    # the later ones, and those of the same dates: nobody knows which are right
    assert set(backward["job"]) == {str(job) for job in range(1027, 1060)} | ({"1026"} & set(backward["job"]))
    assert found.text.startswith(f"the dates of {backward['job'].nunique()} jobs run backwards")


def test_one_job_from_the_future_makes_no_later_ones_wrong_and_names_of_archives_have_no_order() -> None:
    values = fleet_values(quiet_fleet(7))
    one = (values["node"] == "6") & (values["job"] == "1030")
    values.loc[one, "started_s"] += 1000 * DAY_S
    table = check_values(values)
    assert set(table[backward_jobs(table)]["job"]) == {"1030"}
    values = fleet_values(quiet_fleet(8))
    values = values.assign(job="sha" + values["job"], started_s=values["started_s"].to_numpy()[::-1])
    assert not backward_jobs(check_values(values)).any()


def test_a_job_ingested_late_gives_the_same_events_as_one_in_time() -> None:
    z = quiet_fleet(9)
    z[8:12, 35:] -= 10
    values = fleet_values(z)
    shuffled = values.sample(frac=1, random_state=3)
    assert propose(shuffled) == propose(values) != ()
    assert notices(shuffled) == notices(values)


def test_jobs_logged_as_outliers_do_not_count_for_a_level() -> None:
    z = np.random.default_rng(10).normal(size=(FLEET, 5))
    z[6, :3] -= 60
    values = fleet_values(z)
    assert [notice.node for notice in notices(values)] == ["4"]
    day = dt.date(2026, 1, 2)
    log = Changelog(outliers=tuple(Outlier(day, Nodes("sim", "4"), str(1000 + job), "fan", "jane") for job in range(3)))
    assert notices(values, log) == ()
