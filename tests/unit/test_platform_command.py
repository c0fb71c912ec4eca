"""`lepaute platform`."""

from pathlib import Path

from lepaute.cli.main import main

DATA = Path(__file__).parent.parent / "data" / "platforms"


def test_list_names_each_platform_once_with_its_size(output_of):
    lines = output_of("platform", "list").splitlines()
    assert lines[0].startswith("7 platforms, for -p NAME; ")
    assert lines[2].split() == ["dahu", "-", "-", "another", "name", "of", "dahu-2020-01"]
    assert lines[3].startswith("dahu-2019-04  32  32  Dahu in April 2019: the cooling of nodes 13 to 16 was failing")
    assert len(lines) == 10


def test_show_says_what_is_modelled_and_where_it_comes_from(output_of):
    shown = output_of("platform", "show", DATA / "small.yaml", "--details")
    assert "1.000e-10 mnk - 1.000e-10 mn + 0.000002000; sd 1.000e-12 mnk, half-normal; 2 CPUs have their own" in shown
    assert "1 <= k <= 16" in shown
    assert "nodes     2 (numbers 1 to 2), 2 cores on 2 CPUs (modulo), 8.000 GiB each" in shown
    assert "sd 1.00 % common, 0.50 % a cpu (20 degrees of freedom)" in shown


def test_show_yaml_prints_a_file_that_check_accepts(capsys, output_of, tmp_path):
    assert main(["platform", "show", "dahu", "--yaml"]) == 0
    file = tmp_path / "copy.yaml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert ": valid, platform dahu-2020-01: 32 nodes" in output_of("platform", "check", file)


def test_check_of_a_bad_file_is_status_2_and_one_line_without_a_traceback(refusal_of):
    assert "latency_with_unit.yaml:27: network.remote.segments[0].latency_s is '1.2us'" in refusal_of(
        "platform", "check", DATA / "bad" / "latency_with_unit.yaml"
    )
