"""The replay: what was known on each day decides its verdicts, and they stay."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog, Event, NodeSet, Outlier
from lepaute.watch.judging.judge import judge
from lepaute.watch.judging.replay import replay

DAY_S = 86400.0
NODE = NodeSet("c", "1")


def day(number: int) -> dt.date:
    return dt.date(1970, 1, 1) + dt.timedelta(days=number)


def series(values: list[float], node: str = "1") -> pd.DataFrame:
    """A job a day at noon."""
    count = len(values)
    return pd.DataFrame(
        {
            "cluster": "c", "node": node, "cpu": 0, "job": [str(number) for number in range(count)],
            "started_s": DAY_S * (np.arange(count) + 0.5), "stratum": "", "factor": "f_Hz", "value": values,
            "state": "done", "archive": "",
        }
    )  # fmt: skip


NOISE = list(np.random.default_rng(1).normal(size=16))


def test_an_outlier_that_is_logged_later_is_in_the_references_of_the_days_between() -> None:
    spiky = [*NOISE[:6], 50.0, *NOISE[7:]]
    log = Changelog((), (Outlier(day(9), NODE, "6", "noticed three days later"),))
    found = replay(series(spiky), log, windows=[1]).set_index("job")
    assert list(found.n) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14]
    assert not found.outlier.any()  # the verdict of job 6 is older than its entry
    assert found.high["8"] > 50
    assert found.high["9"] < 20
    hindsight = judge(series(spiky), log, windows=[1]).set_index("job")
    assert hindsight.outlier["6"]
    assert hindsight.high["8"] < 20


def test_an_event_resets_from_its_date_on_and_nothing_before_it() -> None:
    log = Changelog((Event(day(8), NODE, "platform", "repaired"),))
    found = replay(series(NOISE), log, windows=[1])
    assert list(found.n) == [*range(8), *range(8)]
    assert list(found.judged_s) == [DAY_S * (number + 1) for number in range(16)]
    before = replay(series(NOISE), windows=[1]).iloc[:8]
    pd.testing.assert_frame_equal(found.iloc[:8], before)


def test_a_job_that_is_ingested_late_is_judged_when_it_comes_and_changes_no_verdict_made() -> None:
    values = [*NOISE[:6], 50.0, *NOISE[7:]]
    known_s = np.where(np.arange(16) == 6, DAY_S * 10.2, np.nan)
    found = replay(series(values), windows=[1], ingested_s=known_s)
    assert list(found.job) == ["0", "1", "2", "3", "4", "5", "7", "8", "9", "6", "10", "11", "12", "13", "14", "15"]
    late = found.set_index("job")
    assert late.judged_s["6"] == late.judged_s["10"] == DAY_S * 11
    assert late.n["6"] == 6  # of what started before it
    assert late.p_value["6"] < 1e-6
    assert list(late.loc[["7", "8", "9"]].n) == [6, 7, 8]
    assert list(late.loc[["10", "11"]].n) == [10, 11]
    assert late.high["9"] < 20 < late.high["10"]


def test_a_pooled_verdict_does_not_have_what_another_node_has_not_yet_delivered() -> None:
    """Node 9 delivers job 6, its last, on day 10: others judge day 6 without it, and days from 7 to 9."""
    every = pd.concat([*(series(NOISE, str(node)) for node in range(7)), series(NOISE[:7], "9")], ignore_index=True)
    every["value"] = np.random.default_rng(2).normal(size=len(every))
    late = (every["node"] == "9") & (every["job"] == "6")
    every.loc[late, "started_s"] += 3600.0  # after the others of its day
    found = replay(every, windows=[1], pooled=True, ingested_s=np.where(late, DAY_S * 10.2, np.nan))
    prompt, never = replay(every, windows=[1], pooled=True), replay(every[~late], windows=[1], pooled=True)
    same = [table[table["node"] == "1"].set_index("job")["statistic"] for table in (found, prompt, never)]
    jobs = [str(number) for number in range(16)]
    found_1, prompt_1, never_1 = (table[jobs].to_numpy() for table in same)
    np.testing.assert_array_equal(found_1[:10], never_1[:10])
    assert (found_1[6:10] != prompt_1[6:10]).all()
    np.testing.assert_array_equal(found_1[10:], prompt_1[10:])
    assert (found_1[10:] != never_1[10:]).all()


def test_a_clock_that_was_set_back_does_not_make_a_job_known_before_it_started() -> None:
    known_s = np.full(16, 0.0)
    pd.testing.assert_frame_equal(replay(series(NOISE), ingested_s=known_s), replay(series(NOISE)))


def test_only_the_nodes_that_are_touched_are_judged_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    every = pd.concat([series(NOISE, str(node)) for node in range(5)])
    log = Changelog((), (Outlier(day(9), NODE, "6", ""), Outlier(day(12), NodeSet("c", "1/3"), "7", "")))
    passes = []

    def counted(values: pd.DataFrame, *settings: object) -> pd.DataFrame:
        passes.append(sorted(set(values.node)))
        return judge(values, *settings)

    monkeypatch.setattr("lepaute.watch.judging.replay.judge", counted)
    found = replay(every, log, windows=[1])
    assert passes == [["0", "1", "2", "3", "4"], ["1"], ["1", "3"]]
    assert len(found) == len(every)
    passes.clear()
    replay(every, log, windows=[1], pooled=True)
    assert passes == [["0", "1", "2", "3", "4"]] * 3  # a pooled covariance is that of all of them
    passes.clear()
    assert len(replay(every, log, windows=[1], until=day(8))) == 9 * 5
    assert len(passes) == 1


def test_days_without_jobs_have_no_verdicts() -> None:
    empty = replay(series(NOISE), since=day(100))
    assert len(empty) == 0
    assert list(empty) == list(replay(series(NOISE)))
    assert list(replay(series(NOISE), windows=[1], since=day(3), until=day(4)).n) == [3, 4]


def test_what_cannot_be_replayed_is_refused_in_one_line() -> None:
    frame = series(NOISE)
    with pytest.raises(InputError, match="nothing to replay"):
        replay(frame.iloc[:0])
    with pytest.raises(InputError, match="no row has the factor 'g'; there are f_Hz"):
        replay(frame, factors=["g"])
    with pytest.raises(InputError, match="no window is given"):
        replay(frame, windows=[])
    with pytest.raises(InputError, match="give one date for each of the 16 rows"):
        replay(frame, ingested_s=[1.0])
    with pytest.raises(InputError, match="row 2, is not finite"):
        replay(frame, ingested_s=[1.0, np.inf, *[1.0] * 14])
