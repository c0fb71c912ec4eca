"""ReFrame's performance logs and results database: real files of 4.10.4 and 3.12.0, and damaged ones."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lepaute.errors import InputError
from lepaute.watch.foreign import read_foreign

DATA = Path(__file__).parents[1] / "data" / "watch" / "foreign"
LOG = DATA / "reframe4_copy_test.log"
OLD = DATA / "reframe3_copy_test_64.log"
DATABASE = DATA / "reframe_results.db"


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def read(folder: Path, text: str, **more: str) -> pd.DataFrame:
    (folder / "x.log").write_text(text)
    return read_foreign(folder / "x.log", "reframe", **more)


def refusal(folder: Path, text: str, **more: str) -> str:
    with pytest.raises(InputError) as error:
        read(folder, text, **more)
    message = str(error.value).replace(str(folder), "")
    assert "\n" not in message
    return message


def database(folder: Path, change: Any) -> Path:
    """The real database with its first report changed in place, or replaced by what `change` returns."""
    path = folder / "results.db"
    shutil.copy(DATABASE, path)
    with sqlite3.connect(path) as base:
        uuid, blob = base.execute("select uuid, json_blob from sessions order by session_start_unix").fetchone()
        report = json.loads(blob)
        changed = change(report)
        new = json.dumps(report) if changed is None else changed
        base.execute("update sessions set json_blob = ? where uuid = ?", (new, uuid))
    base.close()
    return path


def test_a_log_of_reframe_4_has_each_variable_of_each_run_in_si_units() -> None:
    values = read_foreign(LOG)
    cells = [dict(zip(lines(LOG)[0].split("|"), line.split("|"), strict=True)) for line in lines(LOG)[1:]]
    assert len(values) == 2 * len(cells) == 8
    for cell in cells:
        job = values[values["job"].str.startswith(f"{cell['jobid']}@")].set_index("factor")
        assert job.loc[f"{cell['name']}:rate_B_per_s", "value"] == float(cell["rate_value"]) * 1e9
        assert job.loc[f"{cell['name']}:duration_s", "value"] == float(cell["duration_value"])
        assert set(job["started_s"]) == {float(cell["job_completion_time_unix"])}
        assert set(job["node"]) == {cell["job_nodelist"]}
    assert set(values["cluster"]) == {"generic"}
    assert values.groupby("factor")["stratum"].nunique().eq(1).all()


def test_a_test_that_failed_without_a_value_failed_and_one_that_missed_its_reference_has_its_value() -> None:
    broken = read_foreign(DATA / "reframe4_broken_test.log")
    assert list(broken["state"]) == ["failed", "failed"]
    assert set(broken["factor"]) == {"broken_test:rate_B_per_s"}
    slow = read_foreign(DATA / "reframe4_slow_test.log")
    assert list(slow["state"]) == ["done", "done"]
    assert set(slow["value"]) == {3.5e6}


def test_the_database_has_what_the_logs_of_the_same_runs_have() -> None:
    logs = pd.concat([read_foreign(path) for path in sorted(DATA.glob("reframe4_*_test.log"))])
    columns = ["cluster", "node", "cpu", "job", "factor", "started_s", "value", "state"]
    order = ["factor", "job"]
    pd.testing.assert_frame_equal(
        read_foreign(DATABASE)[columns].sort_values(order, ignore_index=True),
        logs[columns].sort_values(order, ignore_index=True),
    )


def test_logs_with_other_separators_are_read(tmp_path: Path) -> None:
    values = read_foreign(DATA / "reframe4_semicolons.log")
    assert len(values) == 4
    assert set(values["cluster"]) == {""}  # the format leaves the system out
    assert set(values["started_s"]) == {pd.Timestamp("2026-11-23T07:45:27Z").timestamp()}
    commas, default = (read_foreign(DATA / name, node="n1") for name in ("reframe3_commas.log", OLD.name))
    assert list(commas["factor"]) == list(default["factor"])
    assert set(commas["cluster"]) == {"vm"}
    tabs = read(tmp_path, LOG.read_text().replace("|", "\t"))
    pd.testing.assert_frame_equal(tabs, read_foreign(LOG))


def test_formats_of_reframe_3_in_reframe_4_name_the_same_factors() -> None:
    factors = set(read_foreign(LOG)["factor"])
    for name in ("reframe4_compat.log", "reframe4_commas.log"):  # with perflog_compat: a line a variable
        values = read_foreign(DATA / name, node="n1")
        assert set(values["factor"]) == factors
        assert set(values["cluster"]) == {"vm"}
        assert values["job"].nunique() == 2
        assert values["stratum"].nunique() == 1


def test_a_log_of_reframe_3_has_a_line_a_variable_and_no_nodes(tmp_path: Path) -> None:
    values = read_foreign(OLD, cluster="c", node="n1")
    assert dict(zip(values["factor"], values["value"], strict=True)) == {
        "copy_test %size_MB=64:duration_s": 0.692472,
        "copy_test %size_MB=64:rate_B_per_s": 1.9e9,
    }
    assert set(values["job"]) == {"556@2026-11-23T07:45:32Z"}
    assert set(values["cluster"]) == {"c"}
    with pytest.raises(InputError, match=r"reframe3_copy_test_64\.log:1: does not say on which node it ran"):
        read_foreign(OLD)
    older = OLD.read_text().replace("copy_test %size_MB=64 @generic:default+builtin", "copy_64 on s:p using gnu")
    assert set(read(tmp_path, older, node="n1")["factor"]) == {"copy_64:duration_s", "copy_64:rate_B_per_s"}
    nothing = OLD.read_text().replace("duration=0.692472", "duration=null")
    assert list(read(tmp_path, nothing, node="n1")["state"]) == ["failed", "done"]


def test_a_log_that_grows_keeps_its_rows_and_one_that_is_read_twice_gives_the_same(tmp_path: Path) -> None:
    heading, *rest = lines(LOG)
    first = read(tmp_path, "\n".join([heading, *rest[:2]]))
    whole = read(tmp_path, "\n".join([heading, *rest, heading, *rest]))
    pd.testing.assert_frame_equal(whole, read_foreign(LOG))
    assert len(first.merge(whole)) == len(first) == 4


def test_what_ran_in_another_way_is_another_stratum(tmp_path: Path) -> None:
    heading, first, *_ = lines(LOG)
    assert "|builtin|" in first
    other = first.replace("|builtin|", "|gnu|").replace("07:45", "08:45").replace("361", "362")
    assert read(tmp_path, "\n".join([heading, first, other]))["stratum"].nunique() == 2

    def options(report: Any) -> None:
        report["runs"][0]["testcases"][0]["executable_opts"] = ["bs=1M"]

    found = read_foreign(database(tmp_path, options))
    assert found[found["factor"].str.startswith("copy_test %size_MB=16")]["stratum"].nunique() == 2


def test_a_job_on_several_nodes_is_of_them_as_a_whole_unless_they_differ_and_a_node_is_given(tmp_path: Path) -> None:
    text = LOG.read_text().replace("|vm|", "|nid[001-002]|")
    assert set(read(tmp_path, text)["node"]) == {"nid[001-002]"}
    assert set(read(tmp_path, text, node="pair")["node"]) == {"pair"}
    heading, first, second, *_ = lines(LOG)
    mixed = "\n".join([heading, first, second.replace("|vm|", "|vn|")])
    assert "the node is given, 'n1', and cases ran on 2 nodes, such as 'vm' and 'vn'" in refusal(
        tmp_path, mixed, node="n1"
    )


@pytest.mark.parametrize(
    ("result", "state"), [("abort", "aborted"), ("fail", "failed"), ("fail_deps", "missing"), ("pass", "missing")]
)
def test_states_follow_the_results(result: str, state: str, tmp_path: Path) -> None:
    text = (DATA / "reframe4_broken_test.log").read_text().replace("fail|", f"{result}|")
    assert set(read(tmp_path, text)["state"]) == {state}


def test_a_case_without_variables_has_the_factors_of_its_test_and_one_of_no_node_or_skipped_none(tmp_path):
    whole = read_foreign(DATABASE)

    def changed(report: Any) -> None:
        first, second, third, fourth = report["runs"][0]["testcases"]
        first |= {"perfvalues": {}, "result": "fail"}
        second |= {"result": "skip"}
        third |= {
            "perfvalues": {},
            "result": "fail",
            "job_nodelist": None,
            "job_completion_time_unix": None,
            "jobid": None,
        }
        fourth |= {"name": "other", "display_name": "other", "perfvalues": None}

    values = read_foreign(database(tmp_path, changed))
    failed = values[values["factor"].str.startswith("copy_test %size_MB=16") & (values["state"] == "failed")]
    assert list(failed["factor"]) == ["copy_test %size_MB=16:duration_s", "copy_test %size_MB=16:rate_B_per_s"]
    assert list(values[values["factor"] == "other"]["state"]) == ["failed"]  # no case tells its factors
    assert len(values) == len(whole) - 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("|name|", "|nom|", ""),  # display_name, unique_name and short_name would do
        ("job_completion_time", "done", "has no column job_completion_time; add %(check_job_completion_time)s"),
        ("_value", "_val", "has no columns of values and units; format_perfvars must have"),
        ("|descr|", "|environ|", "/x.log:1: has a column twice"),
        ("|0.22831|", "|fast|", "/x.log:2: duration is 'fast'; it must be a finite number"),
        ("|0.22831|", "|inf|", "/x.log:2: duration is 'inf'; it must be a finite number"),
        ("|1.5|GB/s", "|1e300|GB/s", "/x.log:2: rate is 1e+300 GB/s, which is too large"),
        ("1795419914.3202457", "1e99", "/x.log:2: the date is '1e99', which is not of the years"),
        ("|0.22831|", "|0.2|28|", "/x.log:2: has 37 cells, and the heading 36; remove the line"),
        ("pass|2026", "maybe|2026", "/x.log:2: the result is 'maybe'; there are pass, xpass"),
        ("|vm|", "||", "/x.log:2: does not say on which node it ran"),
        ("copy_test", "", ""),
    ],
)
def test_damaged_logs_are_refused_with_their_line(old: str, new: str, words: str, tmp_path: Path) -> None:
    text = LOG.read_text()
    assert old in text
    if words:
        assert words in refusal(tmp_path, text.replace(old, new))
    else:
        assert len(read(tmp_path, text.replace(old, new))) == 8


def test_damaged_lines_of_reframe_3_are_refused(tmp_path: Path) -> None:
    first, second = lines(OLD)
    for broken in ("junk", second[:60], second.replace("jobid=", ""), second.replace("rate=1.9", "rate"), first[:40]):
        assert refusal(tmp_path, f"{first}\n{broken}\n", node="n").startswith(
            "/x.log:2: is no line of a performance log of ReFrame"
        )
    assert "/x.log:2: rate is 'x'" in refusal(tmp_path, f"{first}\n{second.replace('=1.9', '=x')}\n", node="n")
    assert "/x.log: is empty" in refusal(tmp_path, "\n\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _: "{", "is not JSON"),
        (lambda _: "[]", "its report has no session_info and runs"),
        (lambda _: 3, "its report has no session_info and runs"),
        (lambda r: r.update(runs=[3]), "runs[0] has no testcases"),
        (lambda r: r["runs"][0]["testcases"].append(3), "runs[0].testcases[4] is no object"),
        (lambda r: r["runs"][0]["testcases"][1].update(name="", display_name=None), "the name of the test is missing"),
        (lambda r: r["runs"][0]["testcases"][1].update(perfvalues=[1]), "perfvalues is no object"),
        (lambda r: r["runs"][0]["testcases"][1].update(perfvalues={"r": [1]}), ": r is no list of value, reference"),
        (lambda r: r["runs"][0]["testcases"][1].update(perfvalues={"r": ["x", 0, 0, 0, "s"]}), "r is 'x'; it must be"),
        (
            lambda r: r["runs"][0]["testcases"][1].update(perfvalues={"r": [10**400, 0, 0, 0, "s"]}),
            "it must be a finite",
        ),
        (lambda r: r["runs"][0]["testcases"][1].update(perfvalues={"r": [True, 0, 0, 0, "s"]}), "r is 'True'"),
        (lambda r: r["runs"][0]["testcases"][1].update(job_completion_time_unix="soon"), "the date is 'soon'"),
        (lambda r: r["runs"][0]["testcases"][1].update(result="x"), "the result is 'x'"),
        (lambda r: r["runs"][0]["testcases"][1].update(job_nodelist="a\x1b"), "cannot be printed"),
    ],
)
def test_damaged_reports_are_refused_with_their_place(change: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_foreign(database(tmp_path, change))
    message = str(error.value)
    assert words in message
    assert "results.db" in message


def test_other_databases_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    data = DATABASE.read_bytes()
    for content in (data[:100], data[:20_000], data[:4096] + b"\xff" * 8192 + data[12288:]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"x\.db: "):
            read_foreign(path)
    endless = "with recursive r(n) as (select 1 union all select n from r) select n as uuid, n as json_blob from r"
    plain = "create table sessions(uuid, json_blob, session_start_unix); create table testcases(a);"
    for statements, words in (
        ("create table t(a)", "has no tables sessions and testcases"),
        (f"create table testcases(a); create view sessions as {endless}", "has no tables sessions and testcases"),
        ("create table sessions(a); create table testcases(a)", "no such column"),
        (f"{plain} create table metadata(schema_version); insert into metadata values('2.0')", "has version 2.0"),
        (f"{plain} insert into sessions values('u', null, 1)", "session u: holds no report"),
        (plain, "has no value of any factor"),
    ):
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as base:
            base.executescript(statements)
        base.close()
        with pytest.raises(InputError, match=words):
            read_foreign(path)
