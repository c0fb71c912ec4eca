"""What is said of thousands of tests, replays of days, and the log of events and outliers."""

import datetime as dt
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog, NodeSet, Outlier, read_changelog
from lepaute.watch.judging.judge import judge
from lepaute.watch.judging.replay import replay
from lepaute.watch.notices.absences import absences_of
from lepaute.watch.notices.notice import UNLIKE_PEERS, Notice
from lepaute.watch.report.findings import findings_in
from lepaute.watch.report.summary import regressions_of, summarise
from lepaute.watch.values import day_of

DAY_S = 86400.0
LEVEL = 1e-4
START_S = dt.datetime(2026, 3, 1, tzinfo=dt.UTC).timestamp()


def alarm(node: str, cpu: int = 0, factor: str = "dgemm_rate_flops", day: float = 10.0, size: float = -0.05) -> dict:
    """A row of what standing() gives."""
    return {
        "cluster": "c", "node": node, "cpu": cpu, "factor": factor, "stratum": "s",
        "day": day_of(START_S + (day + 2) * DAY_S).isoformat(), "changed_s": START_S + day * DAY_S,
        "gradual_s": math.nan,
        "size": size, "size_low": size - 0.01, "size_high": size + 0.01, "now_size": size, "archive": f"a{node}",
    }  # fmt: skip


def verdict(node: str, day: int = 0, p_value: float = 0.5, **other: object) -> dict:
    row = {
        "cluster": "c", "node": node, "cpu": 0, "job": f"j{day}", "started_s": START_S + day * DAY_S + 60.0,
        "stratum": "s", "factor": "dgemm_rate_flops", "r": 1, "outlier": False, "p_value": p_value, "direction": -1,
        "missing": 0,
    }  # fmt: skip
    return row | other


def value(node: str, day: int, state: str = "done", cpu: int = 0) -> dict:
    return {
        "cluster": "c", "node": node, "cpu": cpu, "job": f"{node}j{day}", "started_s": START_S + day * DAY_S,
        "stratum": "s", "factor": "f", "value": 1.0 if state == "done" else np.nan, "state": state, "archive": "",
    }  # fmt: skip


NO_ALARMS = pd.DataFrame([alarm("1")]).iloc[:0]


def test_a_fault_that_shows_in_two_factors_on_two_cpus_is_one_report() -> None:
    rows = [
        alarm("7", cpu, factor, day)
        for cpu, day in ((0, 10.0), (1, 10.0))
        for factor in ("dgemm_rate_flops", "mean_frequency_Hz")
    ]
    (report,) = regressions_of(pd.DataFrame(rows))
    assert report.machines == (("c", "7", 0), ("c", "7", 1))
    assert [change.factor for change in report.changes] == ["dgemm_rate_flops", "mean_frequency_Hz"]
    assert report.since == dt.date(2026, 3, 11)


def test_nodes_that_change_together_are_one_report_and_those_that_do_not_are_several() -> None:
    rows = [alarm(node, size=-0.04) for node in ("1", "2", "3")]
    rows += [alarm("8", day=11.0, size=-0.122), alarm("9", day=10.0, size=+0.05, factor="mean_temperature_degC")]
    reports = regressions_of(pd.DataFrame(rows))
    assert [report.nodes for report in reports] == [("8",), ("1", "2", "3"), ("9",)], "the worst first"


def test_tests_of_what_a_regression_tells_are_not_suspicious_on_their_own() -> None:
    verdicts = pd.DataFrame([verdict("7", day, 1e-9) for day in (9, 12)] + [verdict("8", 12, 1e-9)])
    values = pd.DataFrame([value("7", 12), value("8", 12)])
    found = summarise([findings_in(verdicts, LEVEL)], values, pd.DataFrame([alarm("7")]))
    assert {(suspicion.nodes, suspicion.dates) for suspicion in found.suspicions} == {
        (("7",), (dt.date(2026, 3, 10),)),  # before the change
        (("8",), (dt.date(2026, 3, 13),)),
    }


def test_only_the_latest_week_is_told_unless_asked_otherwise() -> None:
    verdicts = pd.DataFrame([verdict("1", day, 1e-9) for day in range(3, 21)])
    values = pd.DataFrame([value("1", day) for day in range(21)])
    found = summarise([findings_in(verdicts, LEVEL)], values, NO_ALARMS)
    assert len(found.suspicions[0].dates) == 7
    assert found.older_suspicions == 11
    everything = summarise([findings_in(verdicts, LEVEL)], values, NO_ALARMS, since_s=START_S)
    assert (len(everything.suspicions[0].dates), everything.older_suspicions) == (18, 0)


def test_a_machine_that_vanishes_is_told_and_one_that_is_measured_weekly_is_not() -> None:
    rows = [value("1", day) for day in range(30)] + [value("2", day) for day in range(20)]
    rows += [value("3", day) for day in range(0, 28, 7)]
    (absence,) = absences_of(pd.DataFrame(rows))
    assert absence.machines == (("c", "2", 0),)
    assert (absence.last, absence.days, absence.jobs) == (dt.date(2026, 3, 20), 10, 0)


def test_a_machine_whose_latest_job_failed_is_reported_until_one_is_done() -> None:
    rows = [value("1", day) for day in range(10)]
    rows += [value("2", day, "done" if day < 8 else "failed") for day in range(10)]
    rows += [value("3", day, "done" if day < 9 else "failed") for day in range(10)]
    rows += [value("4", day, "missing") for day in range(10)]
    rows += [value("5", day, "failed" if day == 8 else "done") for day in range(10)]
    found = {absence.machines[0][1]: (absence.state, absence.jobs) for absence in absences_of(pd.DataFrame(rows))}
    assert found == {"2": ("failed", 2), "3": ("failed", 1), "4": ("missing", 10)}


def test_a_window_that_only_repeats_an_earlier_bad_job_is_not_suspicious_again() -> None:
    """Job 6 is bad by itself, and the windows of five from job 6 to 10 hold it; that of job 12 does not."""
    rows = [
        verdict(node="1", day=day, r=r, p_value=p_value)
        for day in range(1, 13)
        for r, p_value in ((1, 1e-9 if day == 6 else 0.5), (5, 1e-6 if 6 <= day <= 10 or day == 12 else 0.5))
    ]
    values = pd.DataFrame([value("1", day) for day in range(1, 13)])
    (report,) = summarise([findings_in(pd.DataFrame(rows), LEVEL)], values, NO_ALARMS, since_s=0.0).suspicions
    assert report.dates == (dt.date(2026, 3, 7), dt.date(2026, 3, 13))


def test_what_a_regression_covers_is_no_notice_besides() -> None:
    noticed = [
        Notice(UNLIKE_PEERS, "c", node, 0, "dgemm_rate_flops", START_S, -0.05, 1e-9, "text") for node in ("1", "2")
    ]
    rows, values = [verdict("1", 1), verdict("2", 1)], pd.DataFrame([value("1", 1), value("2", 1)])
    found = summarise([findings_in(pd.DataFrame(rows), LEVEL)], values, pd.DataFrame([alarm("1")]), noticed)
    assert [notice.node for notice in found.notices] == ["2"]


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


DATA = Path(__file__).parents[1] / "data" / "watch"
NODES = [("dahu", "13"), ("dahu", "14"), ("dahu", "dahu-16"), ("gros", "13"), ("mine", "node13.site")]


def test_the_published_log_is_read() -> None:
    log = read_changelog(DATA / "events.csv", DATA / "outliers.csv")
    assert (len(log.events), len(log.outliers)) == (23, 41)
    assert {event.kind for event in log.events} == {"protocol", "platform"}
    resets = log.resets_s([("dahu", "26"), ("dahu", "13")])
    # four protocol events (2019-07-13, 10-18, 2020-05-05, 11-06) and the software of 2021-03-01, of all clusters; BIOS
    # of 2020-04-01 and 12-15; a power drain of node 26; two of the cooling of node 13
    assert (len(resets["dahu", "26"]), len(resets["dahu", "13"])) == (8, 9)
    assert ("dahu", "31", "1965756") in log.outlying_jobs([("dahu", "31"), ("dahu", "30")])
    assert not log.outlying_jobs([("dahu", "30"), ("gros", "31")]) & {
        ("dahu", "30", "1965756"),
        ("gros", "31", "1965756"),
    }


@pytest.mark.parametrize(
    ("cluster", "text", "touched"),
    [
        ("all", "all", set(NODES)),
        ("dahu", "all", {("dahu", "13"), ("dahu", "14"), ("dahu", "dahu-16")}),
        ("dahu", "13/16", {("dahu", "13"), ("dahu", "dahu-16")}),
        ("dahu", "dahu-[13-14]", {("dahu", "13"), ("dahu", "14")}),
        ("dahu", "[13-15/2],16", {("dahu", "13"), ("dahu", "dahu-16")}),
        ("all", "13", {("dahu", "13"), ("gros", "13")}),
        ("mine", "node[11-13].site", {("mine", "node13.site")}),
        ("mine", "13", set()),
    ],
)
def test_a_set_of_nodes_has_those_that_it_names(cluster: str, text: str, touched: set[tuple[str, str]]) -> None:
    assert NodeSet(cluster, text).among(NODES) == touched


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2020-13-01,dahu,all,platform,x", "events.csv:2: the date is '2020-13-01'; write it as 2020-04-01"),
        ("2020-12-01,dahu,all,bios,x", "events.csv:2: the type of an event is 'bios'; give protocol or platform"),
        ("2020-12-01,,all,platform,x", "events.csv:2: the cluster is empty"),
        ("2020-12-01,dahu,,platform,x", "events.csv:2: .*is not a set of nodes"),
        ("2020-12-01,dahu,13-/,platform,x", "events.csv:2: .*not a"),
        ("2020-12-01,dahu,13,platform,a, b", "events.csv:2: there are more cells than columns; put a description"),
        ('2020-12-01,dahu,13,platform,"a', "events.csv is not a CSV file: unexpected end of data"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "events.csv"
    path.write_text(f"date,cluster,node,type,description\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_changelog(path)


def test_an_outlier_needs_a_job() -> None:
    with pytest.raises(InputError, match="the job of an outlier is empty"):
        Outlier(dt.date(2020, 1, 1), NodeSet("dahu", "1"), "", "x")
