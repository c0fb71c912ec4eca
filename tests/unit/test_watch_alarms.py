"""Alarms of a watch: given once, kept as they were, and gone when the machine is back or its change is explained."""

import datetime as dt
import time

import numpy as np
import pandas as pd
import pytest
from support_store import old_store

from lepaute.errors import InputError
from lepaute.watch.alarms import procedure
from lepaute.watch.alarms.procedure import AlarmSettings, judge_days, record_alarms, settings_of
from lepaute.watch.alarms.sizes import is_worse, worse_direction
from lepaute.watch.alarms.standing import standing
from lepaute.watch.alarms.stretches import Stretches
from lepaute.watch.changelog import Changelog, Event, NodeSet, Outlier
from lepaute.watch.changelog_edits import add_changelog
from lepaute.watch.open_regressions import open_regressions
from lepaute.watch.store import Store, open_store
from lepaute.watch.store.tables import ALARMS

DAYS, NODES, BEGIN = 60, 12, 30
START = dt.datetime(2026, 1, 1, 6, tzinfo=dt.UTC).timestamp()
FREQUENCY = "mean_frequency_Hz"


def table(days: int = DAYS, change: float = 0.0, seed: int = 3, until: int = DAYS) -> pd.DataFrame:
    """A frequency of 12 nodes with a noise of 0.5 %, a job a day; node 3 changes on day BEGIN, up to day `until`."""
    values = 2e9 * (1 + 0.005 * np.random.default_rng(seed).normal(size=(days, NODES)))
    values[BEGIN:until, 3] *= 1 + change
    rows = [
        ("dahu", str(node), 0, f"j{day}", START + 86400.0 * day, "s", FREQUENCY, values[day, node], "done", f"a{day}")
        for day in range(days)
        for node in range(NODES)
    ]
    names = ["cluster", "node", "cpu", "job", "started_s", "stratum", "factor", "value", "state", "archive"]
    return pd.DataFrame(rows, columns=names)


def log(*days: int, nodes: str = "3", outliers: tuple[int, ...] = ()) -> Changelog:
    """Events of the nodes on these days, and outlying jobs of them."""
    first = dt.date(2026, 1, 1)
    at = NodeSet("dahu", nodes)
    return Changelog(
        tuple(Event(first + dt.timedelta(day), at, "platform", "repair") for day in days),
        tuple(Outlier(first + dt.timedelta(day), at, f"j{day}", "cold") for day in outliers),
    )


def without_clock(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="judged_s").reset_index(drop=True)


def test_a_lower_frequency_is_an_alarm_that_says_since_when_and_how_much() -> None:
    found = judge_days(table(change=-0.05)).alarms
    assert found["node"].tolist() == ["3"]
    alarm = found.iloc[0]
    assert alarm["size_low"] < -0.05 < alarm["size_high"] < 0
    assert abs(alarm["before"] / 2e9 - 1) < 0.005
    assert alarm["direction"] == -1
    assert alarm["worse"]
    assert alarm["changed_s"] == START + 86400 * BEGIN
    assert alarm["since_s"] == START
    day = (dt.date.fromisoformat(alarm["day"]) - dt.date(2026, 1, 1)).days
    assert BEGIN < day <= BEGIN + 7
    assert alarm["archive"] == f"a{day}"
    assert alarm["evidence"] >= alarm["enough"] > 1


def test_a_day_more_takes_up_what_was_judged_also_by_a_run_that_was_stopped(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path))
    monkeypatch.setattr(procedure, "KEEP_S", 0.0)
    taken, take = [], Stretches.take
    monkeypatch.setattr(Stretches, "take", lambda self, at: (taken.append(at), take(self, at))[1])
    values, events = table(change=-0.05), log(20)

    def stopped(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge_days(values, events, progress=stopped, keep=True)
    for days in (DAYS - 1, DAYS):
        taken.clear()
        part = values[values["started_s"] < START + 86400 * days]
        found = judge_days(part, events, keep=True)
        assert taken[0] >= DAYS // 2 - 1 if days < DAYS else taken == [DAYS - 2, DAYS - 1]
        pd.testing.assert_frame_equal(without_clock(found.alarms), without_clock(judge_days(part, events).alarms))
    # other values of a day that was judged: anew
    late = values.assign(value=values["value"].where(values["job"] != "j5", 2.1e9))
    taken.clear()
    judge_days(late, events, keep=True)
    assert taken[0] == 0


@pytest.mark.parametrize("days", [33, 40])
def test_the_alarms_of_a_day_are_the_same_whatever_comes_later(days: int) -> None:
    values = table(change=-0.05)
    whole, part = judge_days(values), judge_days(values[values["started_s"] < START + 86400 * days])
    last = part.days["day"].iloc[-1]
    for name in ("days", "alarms"):
        early = getattr(whole, name)
        early = early[early["day"] <= last]
        pd.testing.assert_frame_equal(without_clock(getattr(part, name)), without_clock(early), check_exact=True)


def record(store: Store) -> pd.DataFrame:
    return record_alarms(store, open_regressions(store).judged)


def test_a_store_keeps_what_was_said_of_each_day_first_and_its_settings(where: str) -> None:
    values = table(change=-0.05)
    with open_store(where) as store:
        store.add_values(values.assign(archive=""))
        new = record(store)
        kept, days = store.alarms(), store.alarm_days()
        pd.testing.assert_frame_equal(kept, new[list(ALARMS.columns)], check_exact=True)
        assert record(store).empty
        pd.testing.assert_frame_equal(store.alarms(), kept, check_exact=True)
        pd.testing.assert_frame_equal(store.alarm_days(), days, check_exact=True)
        assert settings_of(store.alarm_days()) == AlarmSettings()


def test_what_is_open_depends_on_data_and_log_and_not_on_what_was_judged_when(where: str) -> None:
    values = table(change=-0.05).assign(archive="")
    late = values["job"].isin(["j12", "j40"]) & (values["node"] == "3")
    early = values["started_s"] < START + 86400 * 50
    with open_store(where) as store:
        for part in (~late & early, late, ~early):
            store.add_values(values[part])
            record(store)
        add_changelog(store, log(20))
        rows = open_regressions(store).rows
        expected = standing(judge_days(values, log(20)).alarms, log(20), values)
        assert rows["node"].tolist() == ["3"]
        assert rows["since_s"].tolist() == [START + 86400 * 20 - 6 * 3600]
        names = ["changed_s", "size", "size_low", "size_high", "day"]
        pd.testing.assert_frame_equal(rows[names], expected[names], check_exact=True)


def test_a_job_of_the_future_does_not_end_the_alarms(where: str) -> None:
    values = table(change=-0.05).assign(archive="")
    early = values["started_s"] < START + 86400 * BEGIN
    ahead = values.iloc[:1].assign(job="ahead", started_s=time.time() + 2 * 86400.0)
    tomorrow = values.iloc[1:2].assign(job="tomorrow", started_s=time.time() + 86400.0)
    with open_store(where) as store:
        store.add_values(pd.concat([values[early], ahead]))
        assert open_regressions(store).last_day == "2026-01-30"
        store.add_values(values[~early])
        assert record(store)["node"].tolist() == ["3"]
        store.add_values(tomorrow)
        day = (dt.datetime.now(dt.UTC) + dt.timedelta(days=1)).date().isoformat()
        assert open_regressions(store).last_day == day


def test_of_two_that_judge_the_same_days_one_is_recorded(where: str) -> None:
    values = table(20)
    with open_store(where) as one, open_store(where) as other:
        judged = judge_days(values)
        assert one.add_alarms(judged.days, judged.alarms, after="")
        assert not other.add_alarms(judged.days, judged.alarms, after="")
        assert len(one.alarm_days()) == 20
        with pytest.raises(InputError, match="is not after 2026-01-20"):
            one.add_alarms(judged.days, judged.alarms, after="2026-01-20")


def test_a_store_of_version_2_gets_tables_of_alarms(where: str) -> None:
    old_store(where, 2)
    with open_store(where) as store:
        assert store.alarms().empty
        assert record(store).empty
        assert len(store.alarm_days()) == 4


def test_a_change_on_the_day_of_an_event_is_explained_by_it() -> None:
    assert judge_days(table(change=-0.05), log(BEGIN)).alarms.empty


def test_an_outlying_job_that_is_logged_is_no_part_of_a_stream() -> None:
    values = table()
    spoilt = (values["node"] == "3") & values["job"].isin([f"j{day}" for day in range(30, 36)])
    values.loc[spoilt, "value"] *= 0.9
    assert judge_days(values).alarms["node"].tolist()[:1] == ["3"]
    assert judge_days(values, log(outliers=tuple(range(30, 36)))).alarms.empty


def test_a_regression_stands_until_the_machine_is_back_or_an_event_explains_it() -> None:
    values = table(change=-0.05)
    alarms = judge_days(values).alarms
    found = standing(alarms, Changelog(), values)
    assert found["node"].tolist() == ["3"]
    assert found["now_size"].iloc[0] == pytest.approx(-0.05, abs=0.01)
    assert standing(alarms, log(BEGIN), values).empty  # explained
    assert standing(alarms, log(50), values).empty  # a new reference
    assert not standing(alarms, log(50, nodes="4"), values).empty
    assert not standing(alarms, log(10), values).empty  # before it
    back = table(change=-0.05, until=50)
    both = judge_days(back).alarms
    assert both["direction"].tolist() == [-1, 1]
    assert both["worse"].tolist() == [True, False]
    assert standing(both, Changelog(), back).empty
    assert standing(both.iloc[:1], Changelog(), back).empty
    not_yet = back["started_s"] < START + 86400 * 53
    assert len(standing(both.iloc[:1], Changelog(), back[not_yet])) == 1


def test_a_regression_is_sized_by_its_step_whatever_all_nodes_did_before_and_after() -> None:
    values = table(change=-0.04)
    for day, factor in ((15, 0.95), (45, 1.03)):
        values.loc[values["started_s"] >= START + 86400.0 * day, "value"] *= factor
    for known in (Changelog(), log(15, nodes="all")):
        found = standing(judge_days(values, known).alarms, known, values)
        (size,) = found[found["node"] == "3"]["size"]
        assert size == pytest.approx(-0.04, abs=0.005)


def test_two_steps_of_a_node_are_two_regressions_each_with_its_date_and_size() -> None:
    values = table(change=-0.05)
    again = (values["node"] == "3") & (values["started_s"] >= START + 86400 * 45)
    values.loc[again, "value"] *= 0.96
    found = standing(judge_days(values).alarms, Changelog(), values)
    assert found["node"].tolist() == ["3", "3"]
    assert found["changed_s"].tolist() == [START + 86400 * BEGIN, START + 86400 * 45]
    assert found["size"].tolist() == pytest.approx([-0.05, -0.04], abs=0.005)
    assert found["now_size"].tolist() == pytest.approx([0.95 * 0.96 - 1] * 2, abs=0.01)


def test_a_change_for_the_better_is_an_alarm_but_no_regression() -> None:
    values = table(change=0.05)
    alarms = judge_days(values).alarms
    assert alarms["worse"].tolist() == [False]
    assert standing(alarms, Changelog(), values).empty


def test_a_change_of_all_machines_is_one_alarm_of_what_they_have_in_common() -> None:
    values = table()
    values.loc[values["started_s"] >= START + 86400 * BEGIN, "value"] *= 0.95
    alarms = judge_days(values).alarms
    assert alarms[["cluster", "node", "cpu"]].to_numpy().tolist() == [["dahu", "all", -1]]
    assert alarms["size"].iloc[0] == pytest.approx(-0.05, abs=0.01)
    assert standing(alarms, Changelog(), values)["node"].tolist() == ["all"]
    assert standing(alarms, log(BEGIN, nodes="all"), values).empty


@pytest.mark.parametrize(
    ("factor", "direction"),
    [
        ("dgemm_rate_flops", -1), ("memory_bandwidth_B_per_s", -1), ("mean_frequency_Hz", -1), ("duration_s", 1),
        ("mean_temperature_degC", 1), ("dgemm_MNK_s_per_flop", 1), ("cpu_power_W", 0),
    ],
)  # fmt: skip
def test_the_unit_of_a_factor_tells_which_side_is_worse(factor: str, direction: int) -> None:
    assert worse_direction(factor) == direction
    assert [is_worse(factor, each) for each in (-1, 1)] == [direction <= 0, direction >= 0]
