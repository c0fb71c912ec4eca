"""The replay gives what a watch that judges anew each day gives, whatever comes late."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import long_but
from oracles.daily_judge import JOB, daily_verdicts

from lepaute.watch.changelog import Changelog, Event, NodeSet, Outlier
from lepaute.watch.judging.judge import judge
from lepaute.watch.judging.replay import replay

DAYS = 7
NODES = [("c", "1"), ("c", "2"), ("d", "1")]
#: As many as a pooled test needs, which asks what a day did to other nodes.
MANY_NODES = [*(("c", str(number)) for number in range(1, 8)), ("d", "1")]
DATES = st.integers(0, DAYS + 1).map(lambda day: dt.date(1970, 1, 1) + dt.timedelta(days=day))
NODE_SETS = st.builds(NodeSet, st.sampled_from(["all", "c", "d"]), st.sampled_from(["all", "1", "2", "1/2"]))
LOGS = st.builds(
    Changelog,
    st.lists(st.builds(Event, DATES, NODE_SETS, st.just("platform"), st.just("")), max_size=2).map(tuple),
    st.lists(st.builds(Outlier, DATES, NODE_SETS, st.integers(0, 3 * DAYS).map(str), st.just("")), max_size=4).map(
        tuple
    ),
)


@st.composite
def histories(draw: st.DrawFn, nodes: list[tuple[str, str]]) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of values of some nodes over some days, in any order, and when each of its rows became known."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    often_late = draw(st.sampled_from([0.0, 0.2, 0.8]))
    rows = []
    for number in range(3 * DAYS):
        started_s = float(rng.integers(0, 4 * DAYS)) * 21_600.0  # jobs that start at the same moment, and at midnight
        late_s = rng.exponential(2.5 * 86400) if rng.random() < often_late else 0.0
        for cluster, node in nodes:
            for factor in ("f_Hz", "p_W"):
                if rng.random() < 0.8:
                    done = rng.random() < 0.9
                    rows.append(
                        (
                            cluster,
                            node,
                            int(rng.integers(0, 2)) if number % 4 == 0 else 0,
                            str(number),
                            started_s,
                            factor,
                        )
                        + ((rng.normal(), "done") if done else (np.nan, "failed"))
                        + (started_s + late_s * rng.integers(0, 2) if late_s else np.nan,)
                    )
    names = ["cluster", "node", "cpu", "job", "started_s", "factor", "value", "state", "known_s"]
    frame = pd.DataFrame(rows, columns=names).assign(stratum="", archive="").sample(frac=1.0, random_state=1)
    return frame.drop(columns="known_s").reset_index(drop=True), frame["known_s"].to_numpy()


FACTORS = ["f_Hz", ("f_Hz", "p_W")]
ORDER = ["factor", "r", *JOB]


@pytest.mark.parametrize("pooled", long_but([False, True], True))
@pytest.mark.slow
def test_a_replay_is_what_a_watch_concludes_that_judges_anew_each_day(pooled: bool) -> None:
    unlike_hindsight = tests = 0

    @settings(max_examples=6, derandomize=True)
    @given(histories(MANY_NODES if pooled else NODES), LOGS)
    def compare(history: tuple[pd.DataFrame, np.ndarray], log: Changelog) -> None:
        nonlocal unlike_hindsight, tests
        values, known_s = history
        slow = daily_verdicts(values, log, known_s, factors=FACTORS, windows=(2,), pooled=pooled)
        fast = replay(values, log, factors=FACTORS, windows=(2,), pooled=pooled, ingested_s=known_s)
        assert fast["judged_s"].is_monotonic_increasing
        pd.testing.assert_frame_equal(
            fast.sort_values(ORDER, ignore_index=True), slow.sort_values(ORDER, ignore_index=True), rtol=1e-9
        )
        hindsight = judge(values, log, FACTORS, windows=(2,), pooled=pooled).sort_values(ORDER, ignore_index=True)
        tests += int((fast["missing"] == 0).sum())
        unlike_hindsight += not hindsight.equals(fast[list(hindsight)].sort_values(ORDER, ignore_index=True))

    compare()
    assert tests > 100
    assert unlike_hindsight > 2  # else nothing came late, and nothing was compared


@given(histories(NODES), LOGS, st.integers(0, DAYS), st.integers(0, DAYS))
@settings(max_examples=4)
@pytest.mark.slow
def test_the_verdicts_between_two_dates_are_those_of_the_whole_replay(history, log, since, until):
    values, known_s = history
    whole = replay(values, log, windows=(1,), ingested_s=known_s)
    first, last = (dt.date(1970, 1, 1) + dt.timedelta(days=day) for day in (since, until))
    part = replay(values, log, windows=(1,), ingested_s=known_s, since=first, until=last)
    days = whole["judged_s"] / 86400 - 1
    wanted = whole[(days >= since) & (days <= until)]
    pd.testing.assert_frame_equal(
        part.sort_values(ORDER, ignore_index=True), wanted.sort_values(ORDER, ignore_index=True)
    )
