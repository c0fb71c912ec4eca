"""Tables of factor values and the tests of all their machines, against the slow twin and on an excerpt of real data."""

import datetime as dt
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.chew import slow_tests
from scipy import stats
from support.watch_data import published_values

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog, Event, NodeSet, read_changelog
from lepaute.watch.judging.judge import judge
from lepaute.watch.values import check_values, vectors

DATA = Path(__file__).parents[1] / "data" / "watch"
LEVEL = 1e-4
#: Of the excerpt with r = 1: observations and tests, alarms, and those on logged jobs, by the recount that
#: validation/watch_published.py quotes for the whole.
PINNED = {
    "tests": (2144, 1824),
    "alarms": {"mean_frequency_Hz": 35, "mean_temperature_degC": 5, "cpu_power_W": 46, "dram_power_W": 33},
    "logged": 119,
}


def table(rows: dict[str, list[object]]) -> pd.DataFrame:
    """Rows with what is not given filled in."""
    count = len(next(iter(rows.values())))
    usual: dict[str, object] = {
        "cluster": "c", "node": "1", "cpu": 0, "job": [str(number) for number in range(count)],
        "started_s": [86400.0 * number for number in range(count)], "stratum": "s", "factor": "f_Hz",
        "value": [float(number % 3) for number in range(count)], "state": "done", "archive": "",
    }  # fmt: skip
    return pd.DataFrame({**usual, **rows}, index=range(count))


@pytest.fixture(scope="module")
def values() -> pd.DataFrame:
    return published_values(DATA / "three_nodes.csv")


@pytest.fixture(scope="module")
def log() -> Changelog:
    return read_changelog(DATA / "events.csv", DATA / "outliers.csv")


@pytest.mark.parametrize("r", [1, 5])
def test_every_test_of_an_excerpt_is_what_the_formula_gives_one_by_one(values, log, r):
    found = judge(values, log, windows=[r])
    alarms = 0
    for (node, cpu, factor), part in found.groupby(["node", "cpu", "factor"]):
        resets = np.array(log.resets_s([("dahu", node)])["dahu", node])
        jobs = {job for _, _, job in log.outlying_jobs([("dahu", node)])}
        rows = values[(values.node == node) & (values.cpu == cpu) & (values.factor == factor)].sort_values("started_s")
        by_job = part.set_index("job")
        for _, stretch in rows.groupby(np.searchsorted(resets, rows.started_s, side="right")):
            kept = [job not in jobs for job in stretch.job]
            slow = slow_tests(stretch[["value"]].to_numpy(), kept, r)
            for job, is_kept, one in zip(stretch.job, kept, slow, strict=True):
                row = by_job.loc[job]
                assert row.outlier == (not is_kept)
                assert (one is None) == (row.missing > 0)
                if one is not None:
                    alarms += one.p_value < LEVEL
                    assert row.n == one.n
                    assert row.p_value == pytest.approx(one.p_value, rel=1e-4, abs=1e-300)
    assert alarms == int((found.p_value < LEVEL).sum()) > 50


def test_the_alarms_of_the_excerpt_are_those_counted_once(values: pd.DataFrame, log: Changelog) -> None:
    found = judge(values, log, windows=[1])
    alarms = found[found.p_value < LEVEL]
    assert (len(found), int((found.missing == 0).sum())) == PINNED["tests"]
    assert alarms.factor.value_counts().to_dict() == PINNED["alarms"]
    assert int(alarms.outlier.sum()) == PINNED["logged"]


def test_an_event_begins_a_new_reference_and_an_outlier_is_tested_but_never_in_one() -> None:
    rng = np.random.default_rng(1)
    level = np.where(np.arange(12) < 6, 0.0, 100.0)
    frame = table({"value": list(level + rng.normal(size=12))})
    assert (judge(frame, windows=[1]).p_value < 1e-3).sum() == 1
    events = "date,cluster,node,type,description\n1970-01-07,c,all,platform,x\n"
    found = judge(frame, changelog_of(events), windows=[1])
    assert list(found.n) == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]  # the job of 00:00 of the date is the first after it
    assert list(found.missing) == [3, 2, 1, 0, 0, 0, 3, 2, 1, 0, 0, 0]
    assert not (found.p_value < 1e-3).any()
    spike = table({"value": [*rng.normal(size=6), 100.0, *rng.normal(size=5)]})
    logged = judge(
        spike, changelog_of(outliers="date,cluster,node,jobid,description\n1970-01-07,c,1,6,x\n"), windows=[1]
    )
    assert list(logged.n) == [0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10]
    assert list(logged.outlier) == [number == 6 for number in range(12)]
    assert logged.p_value[6] < 1e-6
    assert judge(spike, windows=[1]).high[11] > 10 > logged.high[11]


def changelog_of(events: str = "", outliers: str = "") -> Changelog:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in (("events.csv", events), ("outliers.csv", outliers)):
            (Path(folder) / name).write_text(text)
            paths.append(Path(folder) / name if text else None)
        return read_changelog(*paths)


def test_strata_machines_and_factors_are_never_mixed() -> None:
    parts = []
    for number, (node, cpu, stratum, factor) in enumerate(
        [("1", 0, "s", "f"), ("1", 1, "s", "f"), ("2", 0, "s", "f"), ("1", 0, "t", "f"), ("1", 0, "s", "g")]
    ):
        rng = np.random.default_rng(number)
        parts.append(
            table({"value": list(1000.0 * number + rng.normal(size=8))}).assign(
                node=node, cpu=cpu, stratum=stratum, factor=factor
            )
        )
        parts[-1]["job"] = [f"{stratum}{job}" for job in range(8)]
    found = judge(pd.concat(parts), windows=[1, 2])
    assert len(found) == 2 * 5 * 8
    assert (found[found.r == 1].groupby(["node", "cpu", "stratum", "factor"]).n.max() == 7).all()
    assert (found[found.r == 2].groupby(["node", "cpu", "stratum", "factor"]).n.max() == 6).all()
    assert not (found.p_value < 1e-3).any()


def test_the_order_of_rows_does_not_matter_and_jobs_ingested_late_take_their_place(values: pd.DataFrame) -> None:
    shuffled = values.sample(frac=1.0, random_state=7)
    pd.testing.assert_frame_equal(judge(values), judge(shuffled))
    # what came before a job decides its test, so that a later job changes none of the earlier ones
    middle = values.started_s.median()
    earlier, every = judge(values[values.started_s < middle]), judge(values)
    same = every[every.started_s < middle].reset_index(drop=True)
    pd.testing.assert_frame_equal(earlier, same)


def test_several_factors_are_one_vector_of_the_jobs_that_have_all(values: pd.DataFrame) -> None:
    both = ["mean_frequency_Hz", "cpu_power_W"]
    without = values[~((values.factor == both[1]) & (values.job == values.job.iloc[20]))]
    found = judge(without, factors=[both], windows=[1])
    assert set(found.factor) == {"mean_frequency_Hz & cpu_power_W"}
    assert set(found.p) == {2}
    assert values.job.iloc[20] not in set(found.job)
    machine = found[(found.node == "13") & (found.cpu == 1)]
    rows = vectors(check_values(without), tuple(both)).query("node == '13' and cpu == 1")
    slowly = slow_tests(rows[both].to_numpy() / [1e9, 100.0], [True] * len(rows), 1)
    for row, slow in zip(machine.itertuples(), slowly, strict=True):
        assert (slow is None) == (row.missing > 0)
        if slow is not None:
            assert row.p_value == pytest.approx(slow.p_value, rel=1e-5)


def test_pooling_tests_the_second_job_after_an_event_and_says_that_it_is_pooled() -> None:
    rng = np.random.default_rng(2)
    nodes, jobs = 20, 6
    frame = pd.concat(
        table({"value": list(50.0 * node + rng.normal(size=jobs))}).assign(node=str(node)) for node in range(nodes)
    ).reset_index(drop=True)
    frame.loc[(frame.node == "4") & (frame.job == "5"), "value"] += 12.0
    event = changelog_of("date,cluster,node,type,description\n1970-01-05,c,4,platform,x\n")  # job 4 is its first after
    alone, pooled = judge(frame, event, windows=[1]), judge(frame, event, windows=[1], pooled=True)
    assert not alone.pooled.any()
    assert pooled.pooled.all()
    last = (pooled.node == "4") & (pooled.job == "5")
    assert list(alone[last].missing) == [2]
    # days 1 to 3 of nineteen of twenty machines, day 4 of nineteen, each less its part in the effect of the day; the
    # only value of its own says nothing of the spread
    assert list(pooled[last].n) == [1]
    assert list(pooled[last].degrees_of_freedom) == [int(3 * 19 * 19 / 20 + 18)]
    assert (pooled[last].p_value < 1e-6).all()
    assert (pooled.p_value < 1e-4).sum() == 1


@pytest.mark.parametrize("r", [1, 3])
def test_a_pooled_test_is_that_of_least_squares_with_machines_and_days(r: int) -> None:
    """Of all jobs up to the tested ones: a level each machine, an effect each day, and a step of the tested machine."""
    rng = np.random.default_rng(3)
    machines, days = 7, 8
    x = 50.0 * np.arange(machines)[:, None] + 5 * rng.normal(size=days) + rng.normal(size=(machines, days))
    frame = pd.concat(
        table({"value": list(row)}).assign(node=str(node), started_s=86400.0 * np.arange(days) + 100.0 * node)
        for node, row in enumerate(x)
    )
    found = judge(frame, windows=[r], pooled=True)
    made = found[found.missing == 0]
    assert len(made) == machines * (days - 1 - r), "the first day has no reference, the second no spread"
    for row in made.itertuples():
        machine, day = int(row.node), int(row.job)
        level, effect = np.eye(machines), np.eye(days)
        design = np.array([[*level[m], *effect[d]] for m in range(machines) for d in range(day + 1)])
        step = np.array([m == machine and d > day - r for m in range(machines) for d in range(day + 1)])
        fit, *_ = np.linalg.lstsq(np.c_[design, step], x[:, : day + 1].reshape(-1), rcond=None)
        variance = np.linalg.pinv(np.c_[design, step].T @ np.c_[design, step])[-1, -1]
        before = x[:, : day + 1 - r]
        residuals = before - before.mean(axis=0) - before.mean(axis=1)[:, None] + before.mean()
        degrees = (machines - 1) * (day - r)
        assert row.n == day + 1 - r
        assert row.degrees_of_freedom == degrees
        t = fit[-1] / np.sqrt(variance * np.sum(residuals**2) / degrees)
        assert row.p_value == pytest.approx(2 * stats.t.sf(abs(t), degrees), rel=1e-6)
        assert row.direction == np.sign(t)
        window = x[machine, day + 1 - r : day + 1].mean()
        assert (row.low + row.high) / 2 == pytest.approx(window - fit[-1], rel=1e-9)
        half = stats.t.ppf(1 - 0.5e-4, degrees) * np.sqrt(variance * np.sum(residuals**2) / degrees)
        assert (row.high - row.low) / 2 == pytest.approx(half, rel=1e-6)


def test_a_day_that_is_warm_for_all_is_no_alarm_of_a_pooled_test_nor_are_peers_that_change() -> None:
    rng = np.random.default_rng(4)
    machines, days = 12, 15
    x = 50.0 * np.arange(machines)[:, None] + rng.normal(size=(machines, days))
    x[:, 12] += 40.0  # all of them
    x[:4, 14] += 30.0  # a third of them
    frame = pd.concat(table({"value": list(row)}).assign(node=str(node)) for node, row in enumerate(x))
    alone, pooled = judge(frame, windows=[1]), judge(frame, windows=[1], pooled=True)
    assert (alone[alone.job == "12"].p_value < 1e-6).all()
    assert not (pooled[pooled.job == "12"].p_value < 1e-4).any()
    last = pooled[pooled.job == "14"]
    assert set(last[last.p_value < 1e-6].node) == {"0", "1", "2", "3"}
    assert (last[last.p_value >= 1e-6].p_value > 1e-4).all()


def test_with_few_nodes_nothing_is_pooled_and_those_that_are_missing_are_counted() -> None:
    rng = np.random.default_rng(5)
    frame = pd.concat(
        table({"value": list(rng.normal(size=9))}).assign(node=str(node), cpu=cpu)
        for node in range(3)
        for cpu in (0, 1)
    )
    found = judge(frame, windows=[1], pooled=True)
    assert set(found[found.n > 0].missing) == {3}, "two other nodes of five"
    assert found.p_value.isna().all()


def test_a_p_value_that_is_too_small_for_a_number_still_has_a_rank() -> None:
    found = judge(table({"value": [*np.random.default_rng(6).normal(size=200), 1e60, 1e70]}), windows=[1])
    assert list(found.p_value[200:]) == [0.0, pytest.approx(1.0, abs=1.0)]
    assert found.log10_p[200] < -1e4
    usual = found[found.p_value > 0]
    assert np.allclose(usual.log10_p, np.log10(usual.p_value))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"state": ["done", "lost", "done"]}, "row 2: state 'lost' is not one of done, failed"),
        ({"value": [1.0, np.nan, 2.0]}, "row 2: value nan is not finite, though the job is done"),
        ({"value": [1.0, 2.0, 3.0], "state": ["done", "done", "failed"]}, "row 3: value 3.0 is there, though"),
        ({"cpu": [0, -2, 0]}, "row 2: cpu -2 is below -1"),
        ({"cpu": [0, 0.5, 0]}, "row 2: cpu 0\\.5 is not an integer"),
        ({"started_s": [0.0, np.nan, 1.0]}, "row 2: started_s nan is not a date"),
        ({"started_s": [0.0, "noon", 1.0]}, "row 2: started_s 'noon' is not a number"),
        ({"job": ["a", "b", "a"]}, "row 3: job 'a' has this factor of this processor in two rows"),
        ({"node": ["1", None, "1"]}, "row 2: node (None|nan) is empty"),
    ],
)
def test_a_table_at_fault_is_refused_with_its_row(rows: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_values(table(rows))


def test_no_reference_contains_an_open_regression_and_an_event_ends_it() -> None:
    rng = np.random.default_rng(8)
    good, slow = 100 + rng.normal(size=40), 90 + rng.normal(size=20)
    table = pd.DataFrame({"value": np.concatenate([good, slow]), "started_s": 86_400.0 * np.arange(60)})
    table = table.assign(cluster="c", node="n1", cpu=0, stratum="s", factor="f_flops", state="done", archive="")
    table["job"] = [f"j{day}" for day in range(60)]
    row = {"cluster": "c", "node": "n1", "cpu": 0, "stratum": "s", "factor": "f_flops", "changed_s": 86_400.0 * 40}
    standing = pd.DataFrame([row])
    for r in (1, 5):
        found = judge(table, windows=(r,), standing=standing)
        late = found[found["started_s"] >= 86_400.0 * 45]
        assert (late["n"] == 40).all() if r == 1 else (late["n"] <= 40).all()
        assert (late["p_value"] < 1e-4).all()
        widened = judge(table, windows=(r,))
        pd.testing.assert_frame_equal(found.iloc[:40], widened.iloc[:40])
    event = Event(dt.date(1970, 2, 20), NodeSet("c", "n1"), "platform", "accepted")
    after = judge(table, Changelog((event,)), windows=(1,), standing=standing)
    assert (after["n"].iloc[-5:] == np.arange(5, 10)).all()
