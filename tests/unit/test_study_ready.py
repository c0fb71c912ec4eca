"""Ready studies, one command each; and effects and Sobol indices of small tables."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lepaute.cli.main import main
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.io import with_values
from lepaute.study.checking import check_study
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Outcome, Point, Trial, trials_of
from lepaute.study.ready import READY, Subject, ready_study, slowest_nodes, top_switches
from lepaute.study.running import run_study
from lepaute.study.schema import parse_study, study_text
from lepaute.study.sensitivity import effects
from lepaute.study.sobol import simulations_of, sobol

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
    assert [line.split()[0] for line in listed.splitlines()] == list(READY)
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


POINTS = [Point({"a": a, "b": b, "c": "same"}) for a in (1, 2, 4) for b in (0, 1)]


def outcomes(points: Sequence[Point] = POINTS, runs: int = 4) -> list[Outcome]:
    """Twice as long for twice as large an a, 10 % more with b, and machines that differ by 5 %, and a little in a."""
    found = []
    for trial in trials_of(points, runs):
        machine = np.random.default_rng(trial.seed).normal(0.0, 0.05, 7)
        a, b = int(trial.point["a"]), int(trial.point["b"])  # type: ignore[arg-type]
        time_s = a * (1.0 + 0.1 * b) * np.exp(machine[0] + 0.1 * machine[a] + 0.1 * machine[5 + b])
        found.append(Outcome(trial, {"time_s": float(time_s)}))
    return found


def test_shares_of_a_balanced_design_add_up_and_effects_multiply() -> None:
    found = effects(outcomes())
    assert [term.name for term in found.terms] == ["a", "b", "a × b"]
    assert sum(term.share for term in found.terms) + found.unexplained == pytest.approx(1.0)
    assert found.terms[0].degrees == 2
    assert found.terms[0].is_significant
    levels = {level.level: level.effect for level in found.terms[0].levels}
    assert levels[4] / levels[1] == pytest.approx(4.0, rel=0.02)
    assert found.between_seeds == pytest.approx(0.05, rel=1.0)
    assert found.text.startswith("a matters most: it explains 9")
    chance = replace(found, terms=(replace(found.terms[0], p_value=0.5), *found.terms[1:]))
    assert chance.terms[1].is_significant
    assert chance.sentence.startswith("a explains the most, 9")
    assert "but that may be chance; shown to matter: b " in chance.sentence


def test_the_runs_that_would_show_an_effect_are_those_that_show_it() -> None:
    """An effect of 3 % where a factor's effect varies by 1.5 % between machines, judged from two runs."""

    def table(runs: int) -> list[Outcome]:
        found = []
        for trial in trials_of([Point({"x": x}) for x in (0, 1)], runs):
            own = 0.015 * (1 if trial.seed % 2 else -1) + 0.03
            found.append(Outcome(trial, {"time_s": float(np.exp(own * (trial.point["x"] == 1)))}))
        return found

    few = effects(table(2))
    (term,) = few.terms
    assert not term.is_significant
    assert f"if the effect of x is as large as it seems, {term.enough} runs would show it" in few.text
    assert effects(table(term.enough + term.enough % 2)).terms[0].is_significant


def test_a_refused_point_is_left_out_and_named() -> None:
    known = outcomes()
    refused = [Outcome(one.trial, refusal="does not fit") if one.trial.point == POINTS[0] else one for one in known]
    found = effects(refused)
    assert found.left_out == (POINTS[0],)
    assert found.points == 5


def test_sobol_takes_the_simulations_that_it_says_with_common_seeds_in_a_row() -> None:
    seen: list[Trial] = []

    def evaluate(trials: Sequence[Trial]) -> list[Outcome]:
        seen.extend(trials)
        return [Outcome(one, {"time_s": 1.0 + float(one.point["x"])}) for one in trials]  # type: ignore[arg-type]

    found = sobol({"x": lambda u: u, "null": lambda u: u > 0.5}, evaluate, 32)
    assert found.simulations == len(seen) == simulations_of(2, 32)
    assert next(iter(found.total)) == "x"
    assert found.total["x"].value == pytest.approx(1.0, abs=0.1)
    assert found.is_null("null")
    assert len({trial.seed for trial in seen[:3]}) == 1  # A, and A with one factor of B


def test_the_best_level_and_the_direction_are_said() -> None:
    found = effects(outcomes())
    (line,) = [line for line in found.text.splitlines() if line.startswith(f"  {found.terms[0].factors[0]}: ")]
    best, worst = found.best_of(found.terms[0])
    assert line.startswith(f"  {found.terms[0].factors[0]}: {best.level} is the best level (")
    assert f", {worst.level} the worst (" in line
    assert best.effect < 1.0 < worst.effect
    assert found.to_dict()["best_levels"][found.terms[0].factors[0]] == best.level
