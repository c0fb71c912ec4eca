"""What is said of thousands of tests, replays of days, the log, and the map of a watch's front page."""

import datetime as dt
import math
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas
import pandas as pd
import pytest
from support_pages import text_of

from lepaute.errors import InputError
from lepaute.watch.changelog import Changelog, Inventory, NodeSet, Outlier, read_changelog
from lepaute.watch.changelog_edits import record_inventory
from lepaute.watch.factors.dgemm import MODEL_FACTORS
from lepaute.watch.judging.judge import judge
from lepaute.watch.judging.replay import replay
from lepaute.watch.notices.absences import absences_of
from lepaute.watch.notices.notice import UNCONFIRMED, UNLIKE_PEERS, Notice
from lepaute.watch.report.factor_history import COLOURS
from lepaute.watch.report.findings import findings_in
from lepaute.watch.report.summary import Change, Regression, regressions_of, summarise
from lepaute.watch.site.front import cost_text, node_answer
from lepaute.watch.site.states import STATES, StateMap, drawn
from lepaute.watch.site.write import write_site
from lepaute.watch.store import open_store
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


FIRST_S = 1_700_006_400.0  # 00:00 UTC
RATE, POWER = "dgemm_rate_flops", "cpu_power_W"


def table(nodes: int, days: int, factors: tuple[str, ...] = (RATE, POWER), seed: int = 7) -> pandas.DataFrame:
    """A job a day of each node, independent noise of a thousandth."""
    index = pandas.MultiIndex.from_product([range(1, nodes + 1), range(days), factors], names=["node", "day", "factor"])
    frame = index.to_frame(index=False)
    noise = np.random.default_rng(seed).normal(0.0, 1e-3, len(frame))
    return frame.assign(
        cluster="c", cpu=-1, job=frame["day"].astype(str), started_s=FIRST_S + DAY_S * frame["day"], stratum="s",
        value=100.0 * (1.0 + noise), state="done", archive="", node="n" + frame["node"].astype(str),
    )  # fmt: skip


def cells(page: str) -> dict[str, list[str]]:
    """Node -> the state of each of its cells."""
    strips = re.findall(r'<a href="node-[^"]*" title="[^"]*"><b>([^<]*)</b>(.*?)</a>', page, re.DOTALL)
    return {name: re.findall(r'<i(?: class="(\w+)")?>', rest) for name, rest in strips}


def test_each_node_and_factor_is_in_the_state_of_its_last_values(tmp_path: Path) -> None:
    values = table(12, 40)
    day, node, rate = values["day"], values["node"], values["factor"] == RATE
    values.loc[(node == "n2") & rate & (day >= 25), "value"] *= 0.95  # 50 deviations
    values.loc[(node == "n6") & rate & (day == 39), "value"] *= 1.02
    failed = (node == "n5") & (day >= 38)
    values.loc[failed, "state"], values.loc[failed, "value"] = "failed", np.nan
    silent = (node == "n3") & (day >= 30)
    lost = (node == "n4") & ~rate & (day >= 20)  # it reports, but no longer its power
    young = (node == "n12") & (day < 39)
    with open_store(tmp_path / "store") as store:
        store.add_values(values[~(silent | lost | young)].drop(columns="day"))
        write_site(store, tmp_path / "site", FIRST_S + 40 * DAY_S)
    page = (tmp_path / "site" / "index.html").read_text()
    found = cells(page)
    assert list(found) == [f"n{number}" for number in range(1, 13)]
    factors = [POWER, RATE]
    assert (
        re.findall(r'<a href="factor-[^"]*">([^<]*)</a>', page.split('<div class="names">')[1].split("</div>")[0])
        == factors
    )
    state = {name: dict(zip(factors, states, strict=True)) for name, states in found.items()}
    assert state["n2"] == {POWER: "fine", RATE: "changed"}
    assert state["n3"] == {POWER: "silent", RATE: "silent"}
    assert state["n4"] == {POWER: "silent", RATE: "fine"}
    assert state["n5"] == {POWER: "failed", RATE: "failed"}
    assert state["n6"] == {POWER: "fine", RATE: "suspicious"}
    assert state["n12"] == {POWER: "unknown", RATE: "unknown"}  # one job: not known, so not fine
    assert all(state[f"n{number}"] == {POWER: "fine", RATE: "fine"} for number in (1, 7, 8, 9, 10, 11))
    assert f"{POWER} of c n4: no value since" in page
    assert "1 open regression on 12 nodes, last data" in page
    assert re.search(r'aria-label="-(4.9|5.0|5.1) % since .*?d="M.*?d="M.*?d="M.*?<strong>-', page), "its picture"
    nodes = (tmp_path / "site" / "nodes.html").read_text()
    assert re.findall(r">(n\d+)</a>", nodes)[:5] == ["n2", "n5", "n3", "n4", "n6"], "the worst first"
    last = day_of(FIRST_S + 39 * DAY_S)
    assert f"<td>fine</td><td>{last}</td>" in re.sub(r"(?<=<td)[^>]*|<i.*?</i>", "", nodes).replace("<td></td>" * 2, "")
    legend = re.search(r'<p class="states">(.*?)</p>', page)
    assert legend
    counts = ["1 changed", "1 failed", "2 silent", "1 suspicious", "1 unknown", "6 fine"]
    assert re.findall(r"</i>([^<]*)<", legend[1]) == counts, "states that no node is in are left out"
    said = {
        text_of(file.read_text()).partition(" by lepaute watch site.")[2] for file in (tmp_path / "site").glob("node-*")
    }
    fine = f"Fine; last value {last}."
    for start in (f"Changed: {RATE} -", "Failed: no value since", "Silent since", f"Suspicious: {RATE}.", fine):
        assert any(text.strip().startswith(start) for text in said), start


@pytest.mark.parametrize(
    ("factor", "size", "longer", "lost"),
    [(RATE, -0.2, "25.00 %", "0.40 of 2 CPUs"), ("copy_s", 0.25, "25.00 %", "0.40 of 2 CPUs")],
)
def test_the_cost_of_a_regression_is_the_time_that_work_takes_longer(
    factor: str, size: float, longer: str, lost: str
) -> None:
    ends = sorted((size * 0.99, size * 1.01))
    hot = Change("cpu_degC", 1, 0.4, 0.39, 0.41, 2)
    report = Regression(
        "c", (("c", "n1", 0), ("c", "n1", 1)), dt.date(2026, 3, 1), dt.date(2026, 3, 2),
        (hot, Change(factor, int(np.sign(size)), size, ends[0], ends[1], 2)), (),
    )  # fmt: skip
    text = cost_text(report, 24, dt.date(2026, 3, 10))
    assert f"takes {longer} (95 %:" in text
    assert f"{lost} are lost, 4.0 CPU-days so far" in text  # ten days of 0.4
    heat = Regression("c", report.machines, report.since, report.alarm, (hot,), ())
    assert "costs nothing that is known" in cost_text(heat, 24, dt.date(2026, 3, 10))


def test_nodes_stand_by_rack_where_the_inventory_knows_racks(tmp_path: Path) -> None:
    racks = {f"n{number}": f"r{1 + number // 4}" for number in range(1, 9)}
    chassis = {name: f"{rack}{at % 2}" for at, (name, rack) in enumerate(racks.items())}
    with open_store(tmp_path / "store") as store:
        store.add_values(table(9, 12).drop(columns="day"))
        record_inventory(store, Inventory({"rack": racks, "chassis": chassis}), "jane")
        write_site(store, tmp_path / "site", FIRST_S + 13 * DAY_S)
    page = (tmp_path / "site" / "index.html").read_text()
    assert re.findall("<h3>([^<]*)</h3>", page) == ["rack r1", "rack r2", "rack r3", "no rack known"]
    assert list(cells(page)) == [f"n{number}" for number in range(1, 10)]


def test_a_map_of_five_thousand_nodes_stays_small() -> None:
    nodes = [f"n{number}" for number in range(5000)]
    rng = np.random.default_rng(3)
    of_node = {name: ["fine" if chance < 0.98 else "silent" for chance in rng.random(8)] for name in nodes}
    made = drawn(
        StateMap([(f"f{at}", "p") for at in range(8)], of_node), 0, "c", dict.fromkeys(nodes, "p"), Inventory()
    )
    assert made["size"] == "small"
    assert len(made["styles"]) < 60  # strips that look alike share one
    assert sum(count for _, _, count in made["counts"]) == 5000


# What eyes without red or green receptors make of linear RGB (Machado, Oliveira and Fernandes 2009, full severity).
PROTANOPIA = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("vision", [np.eye(3), PROTANOPIA, DEUTERANOPIA], ids=["all", "no red", "no green"])
def test_every_two_states_can_be_told_apart_by_all_eyes(vision: tuple[tuple[float, ...], ...], scheme: int) -> None:
    colours = {state: COLOURS[state][scheme] for state in STATES}
    linear = {
        name: np.array([int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]) ** 2.2 for name, text in colours.items()
    }
    seen = {name: np.clip(np.array(vision) @ colour, 0, 1) ** (1 / 2.2) for name, colour in linear.items()}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 0.15, (one, other)


def test_the_page_of_a_model_has_its_name_and_says_which_coefficient_moved(tmp_path: Path) -> None:
    values = table(6, 40, MODEL_FACTORS)
    moved = (values["node"] == "n3") & (values["factor"] == "dgemm_mk_s") & (values["day"] >= 33)
    values.loc[moved, "value"] *= 1.03
    with open_store(tmp_path / "store") as store:
        store.add_values(values.drop(columns="day"))
        write_site(store, tmp_path / "site", FIRST_S + 41 * DAY_S)
    (path,) = (tmp_path / "site").glob("factor-c-dgemm-mnk-s-dgemm-*.html")
    page = path.read_text()
    assert "<h1>c: dgemm model, 8 coefficients</h1>" in page
    assert re.search(
        r"n3</a></td>.*?<td class=\"words\">dgemm_mk_s \+(2\.9|3\.0|3\.1) %; the other 7 are as before \(p = [^<]*\)<",
        page,
    )
    front = (tmp_path / "site" / "index.html").read_text()
    assert "8 coefficients of the models" in front
    assert " & " not in re.sub("<[^>]*>", "", front)
    assert [len(states) for states in cells(front).values()] == [1] * 6  # the model stands for its coefficients
    assert cells(front)["n3"] != ["fine"]


def test_the_page_of_a_node_says_the_size_and_day_of_a_change_that_is_not_confirmed() -> None:
    shared = Notice(UNCONFIRMED, "c", "", -1, "a_Hz", START_S, -0.015, 0.01, "n[1-2]: a_Hz -1.5 %", ("n1", "n2"))
    assert [node for node in ("n1", "n2", "n3") if shared.names(node)] == ["n1", "n2"]
    answer = node_answer("unconfirmed", ["a_Hz"], (), (), [shared])
    assert answer["text"] == "Not confirmed: n[1-2]: a_Hz -1.5 %"
    assert (answer["what"], answer["since"]) == ("a_Hz -1.5 %", dt.date(2026, 3, 1))
