"""Ready studies: one command each, for any platform that has what they vary."""

from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.io import with_values
from lepaute.study.checking import check_study
from lepaute.study.configuration import Configurations
from lepaute.study.ready import READY, Subject, ready_study, slowest_nodes, top_switches
from lepaute.study.running import run_study
from lepaute.study.schema import parse_study, study_text

DAHU = load_platform("dahu")
SMALL = {"n": 2000, "grid": "4x4"}


@pytest.mark.parametrize("name", list(READY))
def test_every_ready_study_is_a_valid_file_for_a_shipped_platform(name: str) -> None:
    study = ready_study(name, Subject("dahu", DAHU, {}))
    assert parse_study(study_text(study)) == study
    configurations = Configurations(study)
    check_study(configurations)
    assert len(configurations.points()) > 1


def test_all_nodes_that_are_left_are_used_whatever_the_grid() -> None:
    study = slowest_nodes(Subject("dahu-2019-04", load_platform("dahu-2019-04"), {}))
    configurations = Configurations(study)
    for point in configurations.points():
        found = configurations.at(point)
        assert found.nodes == 32 - int(str(point["left_out"]))
        assert found.application.ranks == 32 * found.nodes


def test_removing_top_switches_slows_down_and_slow_nodes_hold_up() -> None:
    narrow = {"n": 3000, "nb": 128}
    run = run_study(top_switches(Subject("dahu", DAHU, narrow, runs=2)), scheduler="threads")
    ratios = {
        comparison.other.level: comparison.differences["time_s"].ratio
        for comparison in run.answer.comparisons  # type: ignore[attr-defined]
    }
    assert ratios["1 top switch"] > ratios["2 top switches"] > 1.0
    assert ratios["one switch"] < ratios["1 top switch"]


def test_a_study_of_which_every_run_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    small = (Path(__file__).parents[1] / "data" / "platforms" / "small.yaml").read_text()
    (tmp_path / "p.yaml").write_text(small.replace("sd: {mnk: 1.0e-12}", "sd: {mnk: 1.0e+308}"))
    (tmp_path / "s.yaml").write_text(
        "question: tune\nbase: {application: {name: hpl, n: 64, grid: 1x2}, platform: ./p.yaml}\nruns: 2\n"
        "factors: {nb: {path: application.nb, levels: [8, 16]}}\n"
    )
    words = ["study", "tune", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "out"), "--scheduler", "threads"]
    assert main(words) == 2
    assert not (tmp_path / "out").exists()


def test_the_command_lists_prints_and_runs_them(tmp_path, monkeypatch, json_of, output_of, refusal_of):
    monkeypatch.chdir(tmp_path)
    listed = output_of("study", "ready")
    first, *lines = listed.splitlines()
    assert first == f"{len(READY)} questions about HPL, asked by 'lepaute study ready NAME -p PLATFORM'"
    assert [line.split()[0] for line in lines] == list(READY)
    Path("mine.yaml").write_text(output_of("study", "ready", "components", "--n", "2k", "--grid", "4x16", "--print"))
    answer = json_of("study", "whatif", "mine.yaml", "--runs", "2", "--json")
    ratio = {each["other"]["level"]: each["differences"]["time_s"]["ratio"]["mean"] for each in answer["comparisons"]}
    assert ratio["speed x 10"] < 1.0 < ratio["speed / 10"]
    assert ratio["latency / 10"] < 1.0 < ratio["latency x 10"]
    again = json_of("study", "ready", "components", "--n", "2k", "--grid", "4x16", "--runs", "2", "--json")
    assert again["comparisons"] == answer["comparisons"]
    assert "no ready study 'component' (did you mean components?)" in refusal_of("study", "ready", "component")


def test_several_sizes_are_compared_each_with_its_own_base(output_of, refusal_of):
    study = parse_study(output_of("study", "ready", "temporal-variability", "--n", "1k,2k", "--grid", "2x4", "--print"))
    assert study.levels["n"] == (1000, 2000)
    assert "--n has several values" in refusal_of("study", "ready", "scaling", "--n", "1k,2k")


def test_a_platform_with_a_tree_of_its_own_keeps_what_its_cables_cost() -> None:
    levels = [{"latency_s": 1e-6}, {"latency_s": 2e-6}]
    tree = with_values(DAHU, {"topology": {"kind": "fat-tree", "parameters": "2;8,4;1,4;1,2", "levels": levels}})
    study = top_switches(Subject("dahu", tree, SMALL))
    assert list(study.scenarios) == ["4 top switches", "3 top switches", "2 top switches", "1 top switch"]
    assert study.scenarios["1 top switch"] == {"platform.topology.parameters": "2;8,4;1,1;1,2"}
