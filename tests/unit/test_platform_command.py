"""`lepaute platform`."""

import json
from pathlib import Path

import pytest

from lepaute.cli.main import main

DATA = Path(__file__).parent.parent / "data" / "platforms"


def test_list_names_each_platform_once_with_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platform", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("7 platforms, for -p NAME; ")
    assert lines[2].split() == ["dahu", "-", "-", "another", "name", "of", "dahu-2020-01"]
    assert lines[3].startswith("dahu-2019-04  32  32  Dahu in April 2019: the cooling of nodes 13 to 16 was failing")
    assert len(lines) == 10


def test_show_says_what_is_modelled_and_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platform", "show", str(DATA / "small.yaml"), "--details"]) == 0
    shown = capsys.readouterr().out
    assert "1e-10 mnk - 1e-10 mn + 2e-06; sd 1e-12 mnk, half-normal; 2 CPUs have their own" in shown
    assert "1 <= k <= 16" in shown
    assert "nodes     2 (numbers 1 to 2), 2 cores on 2 CPUs (modulo), 8 GiB each" in shown
    assert "sd 1.00 % common, 0.50 % a cpu (20 degrees of freedom)" in shown


def test_list_and_show_print_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platform", "list", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)["platforms"]}
    assert listed["dahu"]["alias_of"] == "dahu-2020-01"
    assert (listed["dahu-2019-04"]["nodes"], listed["dahu-2019-04"]["cores"]) == (32, 32)
    assert main(["platform", "show", "dahu", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["sha256"] == listed["dahu"]["sha256"]
    # The fields are those of the file.
    assert {"name", "nodes", "kernels", "network"} <= set(shown)
    assert shown["nodes"]["count"] == 32
    assert main(["platform", "show", "dahu", "--json", "--yaml"]) == 2


def test_show_yaml_prints_a_file_that_check_accepts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["platform", "show", "dahu", "--yaml"]) == 0
    file = tmp_path / "copy.yaml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["platform", "check", str(file)]) == 0
    assert ": valid, platform dahu-2020-01: 32 nodes" in capsys.readouterr().out


def test_check_of_a_bad_file_is_status_2_and_one_line_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platform", "check", str(DATA / "bad" / "latency_with_unit.yaml")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert "latency_with_unit.yaml:27: network.remote.segments[0].latency_s is '1.2us'" in printed.err


def test_check_prints_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platform", "check", "stampede-like", "--json"]) == 0
    good = json.loads(capsys.readouterr().out)
    assert (good["valid"], good["name"]) == (True, "stampede-like")
    assert main(["platform", "check", str(DATA / "bad" / "latency_with_unit.yaml"), "--json"]) == 2
    bad = json.loads(capsys.readouterr().out)
    assert not bad["valid"]
    assert "latency_s is '1.2us'" in bad["faults"][0]
