"""What is no change is said as well: bad from the start, gone, or with dates that cannot be right."""

import datetime as dt
import json

import numpy as np
from support.fleets import DAY_S, fleet_values

from lepaute.kit.json_values import finite_json
from lepaute.watch.changelog import Changelog, Inventory, Outlier
from lepaute.watch.changelog import NodeSet as Nodes
from lepaute.watch.notices.notice import notices
from lepaute.watch.proposals.platform_events import propose
from lepaute.watch.values import backward_jobs, check_values

MACHINES, DAYS = 32, 60


def quiet(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(MACHINES, DAYS))


def test_a_node_that_was_bad_from_the_start_is_unlike_its_peers_and_no_event() -> None:
    z = quiet(1)
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


def test_two_kinds_of_processors_in_a_node_are_compared_with_their_like() -> None:
    z = quiet(2)
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
    z = quiet(6)
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


def test_one_job_from_the_future_does_not_make_all_later_ones_wrong() -> None:
    values = fleet_values(quiet(7))
    one = (values["node"] == "6") & (values["job"] == "1030")
    values.loc[one, "started_s"] += 1000 * DAY_S
    table = check_values(values)
    assert set(table[backward_jobs(table)]["job"]) == {"1030"}


def test_jobs_named_like_archives_have_no_order() -> None:
    values = fleet_values(quiet(8))
    values = values.assign(job="sha" + values["job"], started_s=values["started_s"].to_numpy()[::-1])
    assert not backward_jobs(check_values(values)).any()


def test_a_job_ingested_late_gives_the_same_events_as_one_in_time() -> None:
    z = quiet(9)
    z[8:12, 35:] -= 10
    values = fleet_values(z)
    shuffled = values.sample(frac=1, random_state=3)
    assert propose(shuffled) == propose(values) != ()
    assert notices(shuffled) == notices(values)


def test_jobs_logged_as_outliers_do_not_count_for_a_level() -> None:
    z = np.random.default_rng(10).normal(size=(MACHINES, 5))
    z[6, :3] -= 60
    values = fleet_values(z)
    assert [notice.node for notice in notices(values)] == ["4"]
    day = dt.date(2026, 1, 2)
    log = Changelog(outliers=tuple(Outlier(day, Nodes("sim", "4"), str(1000 + job), "fan", "jane") for job in range(3)))
    assert notices(values, log) == ()
