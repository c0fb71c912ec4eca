"""The replay: what was known on each day decides its verdicts, and they stay."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from lepaute.watch.changelog import Changelog, NodeSet, Outlier
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
