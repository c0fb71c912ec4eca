"""A watch: what is ingested, the changelog it keeps, and tests that are recorded once."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from long_tests import long_but
from scipy import stats
from support_archive import failed_archive
from support_store import killed_at_random, run_at_once
from support_watch import day_files, ingest_and_test

import lepaute as lp
from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog, Event, NodeSet, Outlier
from lepaute.watch.judging.judge import judge
from lepaute.watch.notices.absences import absences
from lepaute.watch.store.tables import VERDICTS
from lepaute.watch.watcher import Watch

DAY_S = 86_400.0
#: Of what the judge does and the kind of store does not decide, a database is tried in long tests.
FOLDER_FIRST = pytest.mark.parametrize("where", long_but(["folder", "postgresql"], "folder"), indirect=True)


@pytest.fixture
def watch(where: str) -> Iterator[Watch]:
    """An empty one of each kind."""
    with lp.watch.open(where) as opened:
        yield opened


def values(nodes: int = 3, jobs: int = 12, factors: tuple[str, ...] = ("a_Hz", "b_W"), seed: int = 1) -> pd.DataFrame:
    """A job a day of each node, two processors each."""
    index = pd.MultiIndex.from_product(
        [range(nodes), range(2), range(jobs), factors], names=["node", "cpu", "job", "factor"]
    )
    frame = index.to_frame(index=False)
    return frame.assign(
        cluster="c",
        node=frame["node"].astype(str),
        job=frame["job"].astype(str),
        started_s=DAY_S * frame["job"],
        stratum="s",
        value=np.random.default_rng(seed).normal(100.0, 1.0, len(frame)),
        state="done",
        archive="",
    )


def event(day: int, nodes: str) -> Event:
    return Event(dt.date(1970, 1, 1) + dt.timedelta(days=day), NodeSet("c", nodes), "platform", "new board", "jane")


def assert_same(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    """To the bit, in what judge() says."""
    pd.testing.assert_frame_equal(found[list(wanted.columns)], wanted, check_exact=True, check_dtype=False)


LOG = Changelog((event(6, "1"),), (Outlier(dt.date(1970, 1, 5), NodeSet("all", "0/2"), "3", "hot, too hot"),))


def test_the_changelog_comes_back_as_it_was_recorded(watch: Watch) -> None:
    assert watch.changelog() == Changelog()
    for _ in range(2):
        watch.add_changelog(LOG)
        assert watch.changelog() == LOG


@FOLDER_FIRST
@pytest.mark.parametrize("pooled", [False, True])
def test_the_tests_of_a_watch_are_those_of_judge(watch: Watch, pooled: bool) -> None:
    data = values(nodes=7)
    watch.store.add_values(data)
    watch.add_changelog(LOG)
    wanted = judge(data, LOG, windows=[1, 5], pooled=pooled)
    part = watch.test(windows=[1], nodes=["1"], factors=["b_W"], since_s=4 * DAY_S, until_s=8 * DAY_S, pooled=pooled)
    chosen = wanted.query("r == 1 and node == '1' and factor == 'b_W' and job in ['4', '5', '6', '7']")
    pd.testing.assert_frame_equal(
        part[list(wanted.columns)], chosen.reset_index(drop=True), check_exact=True, check_dtype=False
    )
    assert_same(watch.test(windows=[1, 5], pooled=pooled), wanted)
    vector = ["a_Hz", "b_W"]
    assert_same(
        watch.test(factors=[vector], windows=[1], pooled=pooled), judge(data, LOG, [vector], windows=[1], pooled=pooled)
    )


@pytest.mark.parametrize("pooled", long_but([False, True], True))
def test_day_by_day_or_at_once_and_again_the_verdicts_are_the_same(watch: Watch, pooled: bool) -> None:
    data = values(nodes=7, jobs=8)
    watch.add_changelog(LOG)
    for first, end in [(0, 4), (4, 5), (5, 6), (6, 7), (7, 8)]:
        watch.store.add_values(data[data.job.astype(int).between(first, end - 1)])
        watch.test(since_s=first * DAY_S, until_s=end * DAY_S, pooled=pooled)
    recorded = watch.store.verdicts()
    again = watch.test(pooled=pooled)
    pd.testing.assert_frame_equal(watch.store.verdicts(), recorded, check_exact=True)
    assert_same(again, judge(data, LOG, pooled=pooled))


@FOLDER_FIRST
def test_an_event_makes_further_verdicts_only_of_what_it_touches_and_the_old_ones_stay(watch: Watch) -> None:
    watch.store.add_values(values())
    before = watch.test(windows=[1])
    watch.add_changelog(Changelog((event(6, "1"),), (Outlier(dt.date(1970, 1, 5), NodeSet("c", "2"), "3", "hot"),)))
    after = watch.test(windows=[1])
    history = watch.store.verdicts()
    added = history.merge(before[["node", "cpu", "job", "factor", "basis"]], how="left", indicator=True)
    added = added[added["_merge"] == "left_only"]
    assert {(row.node, int(row.job)) for row in added.itertuples()} == {
        *(("1", job) for job in range(6, 12)),
        *(("2", job) for job in range(3, 12)),
    }
    assert len(history) == len(before) + len(added)
    assert_same(after, judge(values(), watch.changelog(), windows=[1]))
    # withdrawn again: the first verdicts are those of today's basis
    watch.store.withdraw_events(list(watch.store.events()["id"]), "jane")
    watch.store.withdraw_outliers(list(watch.store.outliers()["id"]), "jane")
    pd.testing.assert_frame_equal(watch.test(windows=[1]), before, check_exact=True)
    assert len(watch.store.verdicts()) == len(history)


@FOLDER_FIRST
def test_a_late_job_makes_further_verdicts_of_later_jobs_of_its_machine(watch: Watch) -> None:
    data = values(factors=("a_Hz",))
    late = (data.node == "1") & (data.cpu == 1) & (data.job == "5")
    watch.store.add_values(data[~late])
    before = watch.test(windows=[1])
    watch.store.add_values(data[late])
    after = watch.test(windows=[1])
    assert len(watch.store.verdicts()) == len(before) + 1 + 6
    other = after.merge(before[["node", "cpu", "job", "basis"]], how="left", indicator=True)
    other = other[other["_merge"] == "left_only"]
    assert {(row.node, row.cpu, int(row.job)) for row in other.itertuples()} == {("1", 1, job) for job in range(5, 12)}
    assert_same(after, judge(data, windows=[1]))


@FOLDER_FIRST
def test_other_settings_are_other_verdicts(watch: Watch) -> None:
    watch.store.add_values(values())
    for confidence in (0.99, 0.9999):
        watch.test(windows=[1], confidence=confidence)
    assert len(watch.store.verdicts()) == 2 * len(watch.test(windows=[1]))


@FOLDER_FIRST
def test_clusters_are_tested_apart_and_a_factor_that_none_has_is_refused(watch: Watch) -> None:
    watch.store.add_values(pd.concat([values(), values(factors=("b_W",), seed=2).assign(cluster="d")]))
    found = watch.test(windows=[1])
    assert found.groupby("cluster").factor.unique().map(set).to_dict() == {"c": {"a_Hz", "b_W"}, "d": {"b_W"}}
    with pytest.raises(InputError, match="no row has the factor 'c'; there are a_Hz, b_W"):
        watch.test(factors=["c"])


@FOLDER_FIRST
def test_a_store_without_values_has_nothing_to_test(watch: Watch) -> None:
    with pytest.raises(InputError, match="nothing to test: the store has no factor values"):
        watch.test()


@FOLDER_FIRST
def test_a_node_that_vanished_and_one_that_fails_more_often_than_its_peers_are_listed_first(watch: Watch) -> None:
    data = values(nodes=6, jobs=30, factors=("a_Hz",))
    data = data[~((data.node == "4") & (data.job.astype(int) > 20))]
    broken = (data.node == "2") & (data.job.astype(int) % 4 == 1)
    failed = broken | ((data.node == "0") & (data.job == "7"))
    data = data.assign(value=data.value.where(~failed), state=data.state.where(~failed, "failed"))
    watch.store.add_values(data)
    found = watch.absences()
    assert list(found.node)[:2] == ["4", "2"]
    vanished, faulty = found.iloc[0], found.iloc[1]
    assert (vanished.days_away, vanished.usual_share, vanished.last_done_s) == (9, 1.0, 20 * DAY_S)
    assert (faulty.jobs, faulty.failed, faulty.not_done_since) == (30, 8, 1), "the last failure is of the last day"
    assert faulty.p_value < 1e-4
    assert (found.p_value[2:] > 0.05).all()
    assert watch.absences(cluster="none").empty


@FOLDER_FIRST
def test_failed_archives_without_values_are_jobs_of_their_nodes(watch: Watch, tmp_path: Path) -> None:
    watch.store.ingest([failed_archive(tmp_path / "failed.zip")], cluster="c")
    found = watch.absences().set_index("node")
    assert found.loc["node2", "failed"] == found.loc["node3", "missing"] == found.loc["node1", "aborted"] == 1
    assert found.last_done_s.isna().all()


def test_nodes_that_fail_alike_seldom_have_a_small_p_value() -> None:
    """Fisher's test is exact: at most as often as its level, of 2,000 nodes in 100 clusters."""
    rng = np.random.default_rng(20261123)
    where = np.indices((100, 20, 60)).reshape(3, -1)
    jobs = pd.DataFrame(
        {
            "cluster": where[0].astype(str),
            "node": where[1].astype(str),
            "job": where[2].astype(str),
            "started_s": DAY_S * where[2],
            "state": np.where(rng.random(where.shape[1]) < 0.05, "failed", "done"),
        }
    )
    found = absences(jobs)
    for level in (0.1, 0.01):
        assert (found.p_value <= level).sum() <= stats.binom.ppf(1 - 1e-6, 2000, level)
    assert (found.p_value <= 0.3).sum() > 200, "nor is it never small"


def assert_whole(where: str, days: int) -> None:
    """Each day there once, and today's verdicts those of judge()."""
    with lp.watch.open(where) as opened:
        held = opened.store.values()
        assert len(held) == days * 24
        assert_same(opened.test(windows=[1]), judge(held, windows=[1]))


@pytest.mark.slow
@pytest.mark.parametrize("kills", long_but([2, 12], 2))
def test_a_kill_in_the_middle_of_ingest_or_test_loses_and_doubles_nothing(where, kills, tmp_path):
    files = day_files(tmp_path, kills + 2)
    for _ in killed_at_random(ingest_and_test, where, files, kills):
        with lp.watch.open(where) as opened:
            assert len(opened.store.values()) % 24 == 0, "whole days only"
            assert not opened.store.verdicts().duplicated(list(VERDICTS.key)).any()
    assert_whole(where, len(files))


@pytest.mark.slow
def test_four_that_ingest_and_test_at_once_lose_and_double_nothing(where: str, tmp_path: Path) -> None:
    files = day_files(tmp_path, 3)
    orders = [files[n:] + files[:n] for n in (0, 1, 2, 0)]
    run_at_once(ingest_and_test, [(where, order) for order in orders])
    assert_whole(where, 3)
    with lp.watch.open(where) as opened:
        assert not opened.store.verdicts().duplicated(list(VERDICTS.key)).any()
