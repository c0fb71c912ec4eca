"""The parts of a node test, and its workloads: what a user may ask for, what they print, what watch makes of it."""

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from support_factors import experiment
from support_limits import HANG_S, ran

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure import node_test_disk
from lepaute.measure.archive import Archive
from lepaute.measure.layout import Core, Layout
from lepaute.measure.node_test import QUICK, Parameters, memory_rows, neighbours, node_test_design, numa_threads
from lepaute.measure.node_test_workloads import (
    STRESSORS,
    Workload,
    chosen_workloads,
    figures_of,
    own_workloads,
    parameters_of,
)
from lepaute.measure.nodes.results import Result
from lepaute.measure.raw_files import rows_of
from lepaute.watch.alarms.procedure import judge_days
from lepaute.watch.alarms.sizes import worse_direction
from lepaute.watch.factors import factors_of, strata_of
from lepaute.watch.factors.dgemm import TERMS

#: What versions 0.15 write; `null` is the name of a stressor there, and not a name to YAML.
METRICS = Path(__file__).parents[1].joinpath("data", "texts", "stress_ng_metrics.yaml").read_text()


def printed(text: str, duration_s: float = 2.5) -> Result:
    return Result("n1", ("sh",), None, 0, text, "", "2026-11-27T18:00:00Z", duration_s)


def own(pattern: str | None) -> Workload:
    given = {"workload.stream": "/opt/stream"} | ({} if pattern is None else {"workload_pattern.stream": pattern})
    (workload,) = own_workloads(given)
    return workload


def test_all_parts_are_stressed_unless_some_are_chosen_and_operations_count_by_the_wall_clock() -> None:
    assert [workload.name for workload in chosen_workloads("all", 3, {})] == list(STRESSORS)
    assert chosen_workloads("none", 3, {}) == ()
    assert [each.name for each in chosen_workloads("disk,branch", 3, {"workload.a": "true"})] == ["disk", "branch", "a"]
    with pytest.raises(InputError, match="'gpu' is none of memory, cache"):
        chosen_workloads("disk,gpu", 3, {})
    (syscall,) = chosen_workloads("syscall", 3, {})
    assert figures_of(syscall, printed(METRICS)) == [("ops_per_s", 29335.139247)]


@pytest.mark.parametrize("text", ["", "metrics:\n", "metrics: [{}]", "{", METRICS.replace("29335.139247", "0.0")])
def test_metrics_that_say_nothing_are_a_workload_that_failed(text: str) -> None:
    (syscall,) = chosen_workloads("syscall", 3, {})
    with pytest.raises(EnvironmentProblem, match="stress-ng"):
        figures_of(syscall, printed(text))


def test_figures_are_what_named_groups_match_and_else_the_duration() -> None:
    text = "Copy:  9000.5  0.1\nTriad: 8000  0.2\nTriad: 8100  0.2\n"
    pattern = r"^Triad:\s+(?P<triad_MB_per_s>\S+)\s+(?P<triad_s>\S+)"
    expected = [("triad_MB_per_s", 8000.0), ("triad_s", 0.2), ("triad_MB_per_s", 8100.0), ("triad_s", 0.2)]
    assert figures_of(own(pattern), printed(text)) == expected
    assert figures_of(own(None), printed(text)) == [("duration_s", 2.5)]
    with pytest.raises(EnvironmentProblem, match="it printed nothing that its pattern matches"):
        figures_of(own(pattern), printed("segmentation fault\n"))
    for word in ("fast", "inf", "nan"):
        with pytest.raises(EnvironmentProblem, match=f"it printed '{word}' for triad_MB_per_s, which is no number"):
            figures_of(own(pattern), printed(f"Triad: {word} 1\n"))


@pytest.mark.parametrize(
    ("commands", "patterns", "expected"),
    [
        (["stream"], [], "--workload is 'stream'; write NAME=COMMAND"),
        (["a=true"], ["a"], "--workload-pattern is 'a'; write NAME=REGEX"),
        (["a=true", "a=false"], [], "'a' is given twice"),
        (["memory=/opt/stream"], [], "named 'memory'; give letters and digits"),
        (["a_b=true"], [], "named 'a_b'"),
        (["a="], [], "the command of the workload a is ''"),
        (["a=echo 'x"], [], "has an open quote"),
        (["a=./stream"], [], "give an absolute path"),
        ([], ["a=(?P<x_s>.)"], "a pattern of the workload 'a', and no command"),
        (["a=true"], ["a=(?P<x_s>"], "no regular expression"),
        (["a=true"], ["a=[0-9]+"], "names no figure"),
        (["a=true"], ["a=(?P<é_s>.)"], "names no figure"),
        ([f"a{number}=true" for number in range(21)], [], "there are 21 workloads"),
    ],
)
def test_workloads_that_cannot_be_are_refused(commands: list[str], patterns: list[str], expected: str) -> None:
    with pytest.raises(InputError, match=expected) as refused:
        parameters_of(commands, patterns)
    assert "\n" not in str(refused.value)


def test_parameters_of_workloads_are_known_and_checked_before_a_node_is_asked_for() -> None:
    given = parameters_of(["a=/bin/true --x=1"], ["a=(?P<x_s>.)"])
    assert given == {"workload.a": "/bin/true --x=1", "workload_pattern.a": "(?P<x_s>.)"}
    assert Parameters.of({**given, "workload_s": "5"}).workload_s == 5
    assert Parameters.of({"quick": "true"}).workload_s == 1
    for wrong in ({"workload.a": ""}, {"workloads": "gpu"}, {"workload_s": "0"}, {"workload_seconds": "1"}):
        with pytest.raises(InputError):
            Parameters.of(wrong)


def rows(value: float = 1.0, **columns: Any) -> pandas.DataFrame:
    """Three runs of `branch` on n1, and one of a user's command with two figures."""
    stress = {"workload": "branch", "figure": "ops_per_s", "command": "stress-ng --branch CORES", "stress_ng": "0.15"}
    told = [{**stress, "repetition": number, "value": value * each} for number, each in enumerate((90.0, 100.0, 500.0))]
    of_user = {"workload": "own", "command": "/opt/own", "pattern": "x", "repetition": 0, "stress_ng": ""}
    told += [{**of_user, "figure": figure, "value": 7.0} for figure in ("a_s", "b_per_s")]
    return pandas.DataFrame(told).fillna({"pattern": ""}).assign(node="n1", **columns)


def test_a_workload_is_a_factor_of_its_node_by_the_median_of_its_runs(tmp_path: Path) -> None:
    found = factors_of(Archive.open(experiment(tmp_path / "a.zip", {"workloads": rows()})), "c")
    assert dict(zip(found["factor"], found["value"], strict=True)) == {
        "workload_branch_ops_per_s": 100.0,
        "workload_own_a_s": 7.0,
        "workload_own_b_per_s": 7.0,
    }
    assert set(found["cpu"]) == {-1}
    assert [worse_direction(factor) for factor in found["factor"]] == [-1, 1, -1]


def test_a_node_that_lost_a_workload_has_it_missing(tmp_path: Path) -> None:
    both = pandas.concat([rows(), rows().query("workload == 'own'").assign(node="n2")])
    found = factors_of(Archive.open(experiment(tmp_path / "a.zip", {"workloads": both}, ["n1", "n2"])), "c")
    lost = found[(found["node"] == "n2") & (found["state"] == "missing")]
    assert lost["factor"].tolist() == ["workload_branch_ops_per_s"]


def strata(path: Path, table: pandas.DataFrame, **parameters: str) -> set[str]:
    more: dict[str, Any] = {"name": "NodeTest", "parameters": parameters}
    return set(strata_of(Archive.open(experiment(path, {"workloads": table}, **more))))


def test_workloads_are_conditions_of_themselves_alone(tmp_path: Path) -> None:
    plain = strata(tmp_path / "a.zip", rows())
    assert len(plain) == 2
    # Other workloads beside them, and other numbers of cores, change nothing; a version or a command does.
    more = {"workload.x": "true", "workload_pattern.x": "y", "workloads": "branch", "workload_s": "3"}
    assert strata(tmp_path / "b.zip", rows(cores=3), **more) == plain
    assert len(strata(tmp_path / "c.zip", rows(stress_ng="0.17")) & plain) == 0
    assert len(strata(tmp_path / "d.zip", rows(), disk_folder="/data") & plain) == 0
    assert strata(tmp_path / "e.zip", rows().query("workload == 'branch'").drop(columns="pattern")) < plain


@pytest.mark.parametrize(
    "table",
    [rows(figure="x" * 200), rows(workload="a b"), rows(value=np.inf).assign(node="elsewhere")],
    ids=["long", "blank", "place"],
)
def test_a_table_of_workloads_that_cannot_be_is_refused(tmp_path: Path, table: pandas.DataFrame) -> None:
    with pytest.raises(InputError) as refused:
        factors_of(Archive.open(experiment(tmp_path / "a.zip", {"workloads": table})))
    assert "\n" not in str(refused.value)


def alarms(factor: str, change: float) -> list[str]:
    """Machines with an alarm, of 12 nodes on 60 days with a noise of 0.05 %; node 3 changes on day 30."""
    values = 1e4 * (1 + 0.0005 * np.random.default_rng(5).normal(size=(60, 12)))
    values[30:, 3] *= 1 + change
    days, nodes = np.indices(values.shape)
    table = pandas.DataFrame(
        {
            "cluster": "c", "node": nodes.ravel().astype(str), "cpu": -1, "job": [f"j{day}" for day in days.ravel()],
            "started_s": 1.77e9 + 86400.0 * days.ravel(), "stratum": "s", "factor": factor, "value": values.ravel(),
            "state": "done", "archive": [f"a{day}" for day in days.ravel()],
        }
    )  # fmt: skip
    found: list[str] = judge_days(table).alarms["node"].tolist()
    return found


def test_watch_has_an_alarm_of_a_workload_that_lost_more_than_its_least_change() -> None:
    # 0.2 % is the least change of dgemm; 1 % is five times that, and less than the 2 % that count of a disk.
    assert alarms("workload_syscall_ops_per_s", -0.03) == ["3"]
    assert alarms("workload_disk_ops_per_s", -0.01) == []
    assert alarms("workload_own_ops_per_s", -0.01) == ["3"]
    assert alarms("workload_disk_ops_per_s", -0.05) == ["3"]


@pytest.mark.slow
def test_a_slower_disk_is_an_open_regression_of_test_replay_and_site(tmp_path, output_of, monkeypatch):
    rng = np.random.default_rng(3)
    names = [f"n{number}" for number in range(1, 9)]
    for day in range(30):
        told = [
            {"node": node, "workload": workload, "figure": "ops_per_s", "command": "stress-ng", "stress_ng": "0.15"}
            | {"value": (0.6 if node == "n6" and workload == "disk" and day >= 15 else 1.0) * (1 + 0.01 * rng.normal())}
            for node in names
            for workload in ("disk", "branch")
            for _ in range(3)
        ]
        start = (dt.datetime(2026, 9, 1, 6, tzinfo=dt.UTC) + dt.timedelta(days=day)).isoformat()
        phases = [{"name": "run", "start": start, "duration_s": 300.0, "status": "done"}]
        more: dict[str, Any] = {"name": "NodeTest", "run_id": f"r{day}", "created": start, "phases": phases}
        experiment(tmp_path / f"{day}.zip", {"workloads": pandas.DataFrame(told)}, names, **more)
    monkeypatch.chdir(tmp_path)
    output_of("watch", "ingest", *(f"{day}.zip" for day in range(30)), "--store", "s", "--cluster", "c")
    found = output_of("watch", "test", "--store", "s", status=1)
    assert re.search(r"1 open regression.* c n6: workload_disk_ops_per_s -(39|40|41)", found)
    assert "workload_disk_ops_per_s" in output_of("watch", "replay", "--store", "s")
    assert main(["watch", "site", "--store", "s", "-o", "site"]) == 0
    assert "workload_disk_ops_per_s" in (tmp_path / "site" / "index.html").read_text()


def blocks_of(order_seed: int, seed: int = 1) -> list[list[tuple[object, ...]]]:
    design = node_test_design(seed, QUICK, order_seed)
    return [[row[1:4] for row in design.rows if row[4] == block] for block in range(QUICK.most_blocks)]


def test_blocks_have_the_same_sizes_in_other_orders() -> None:
    first, second = blocks_of(5)
    assert first != second
    assert sorted(map(str, first)) == sorted(map(str, second))
    assert len(set(first)) > len(TERMS)
    # The order is drawn by its own seed; the sizes are those of every test with that seed.
    other, _ = blocks_of(6)
    assert other != first
    assert set(other) == set(first)
    assert set(blocks_of(5, seed=2)[0]) != set(first)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"warmup": "1"}, "there is no parameter warmup; known: warm_up_s"),
        ({"warm_up_s": "long"}, "warm_up_s is 'long'"),
        ({"dgemm_s": "-1"}, "dgemm_s"),
        ({"dgemm_s": "nan"}, "dgemm_s"),
        ({"quick": "perhaps"}, "quick"),
    ],
)
def test_parameters_that_cannot_be_are_refused(given: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        Parameters.of(given)


def test_all_cores_of_a_numa_node_read_at_once_and_each_node_is_in_two_pairs_with_its_neighbours() -> None:
    cores = [Core(number, 2 * number, number // 4, number // 2, number // 4, (2 * number,)) for number in range(8)]
    assert numa_threads(Layout(tuple(cores), "test")) == {0: [0, 2], 1: [4, 6], 2: [8, 10], 3: [12, 14]}
    assert len(memory_rows(1, quick=True).rows) < len(memory_rows(1, quick=False).rows)
    assert neighbours(["a"]) == []
    assert neighbours(["a", "b"]) == [("a", "b")]
    assert neighbours(["a", "b", "c"]) == [("a", "b"), ("b", "c"), ("c", "a")]


def test_the_disk_script_writes_and_reads_and_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, node_test_disk.__file__, str(tmp_path), "2", str(8 << 20), "10"]
    rows = rows_of(ran(words, check=True).stdout)
    assert [row["operation"] for row in rows] == ["write", "read"] * 2
    assert {row["size_bytes"] for row in rows} == {str(8 << 20)}
    assert all(float(row["duration_s"]) > 0 for row in rows)
    assert list(tmp_path.iterdir()) == []
    failed = subprocess.run([*words[:2], "/nowhere", *words[3:]], capture_output=True, check=False, timeout=HANG_S)
    assert failed.returncode != 0
