"""Studies of the literature and ready studies: published figures beside ours; effects and Sobol indices."""

import csv
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hostile.cases import commands

from lepaute.cli.main import main
from lepaute.kit.text import duration
from lepaute.simulate import Hpl, predict
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.components import with_components
from lepaute.simulate.platform.io import with_values
from lepaute.simulate.platform.population import population_of
from lepaute.study.checking import check_study, opened_study
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Outcome, Point, Trial, answered, trials_of
from lepaute.study.ready import READY, Subject, ready_study, slowest_nodes, top_switches
from lepaute.study.running import run_study
from lepaute.study.schema import parse_study, study_text
from lepaute.study.sensitivity import effects
from lepaute.study.sobol import Index, simulations_of, sobol

ROOT = Path(__file__).parents[2]
LITERATURE = ROOT / "examples" / "literature"
FIGURES = list(csv.DictReader((ROOT / "docs" / "evidence" / "data" / "figures.csv").open()))
#: Commands of figures that need no measurement, and what they are run with in small; of others options are looked up.
RUN = ("predict hpl", "platform new", "platform show", "segment", "design dgemm", "design p2p", "study whatif")
FEW = {"--n": "2k", "--nb": "128", "--grid": "2x2", "--runs": "1", "--rows": "30"}
STUDIES = [path for path in sorted(LITERATURE.glob("*.yaml")) if "question:" in path.read_text()]
DAHU = load_platform("dahu")
SMALL = {"name": "hpl", "n": 2000, "nb": 128, "grid": "2x2"}
TWO = {
    "question": "whatif",
    "base": {"application": SMALL, "platform": "dahu"},
    "scenarios": {"as it is": {}, "slow": {"scale.computing": 0.5}},
    "runs": 2,
}


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_of_the_literature_can_be_run_and_names_its_command(path: Path) -> None:
    study, configurations = opened_study(path)
    assert f"lepaute study {study.question} examples/literature/{path.name}" in path.read_text()
    configurations.at(configurations.points()[0])
    assert len(configurations.points()) > 1


def test_every_figure_has_a_verdict_and_the_page_counts_them() -> None:
    verdicts = [row["verdict"] for row in FIGURES]
    text = (ROOT / "docs" / "evidence" / "literature.md").read_text()
    assert all(f"\n| {name} | {verdicts.count(name)} |" in text for name in ("met", "differs", "no number", "not ours"))
    assert verdicts.count("met") >= 2 * verdicts.count("differs")
    for row in FIGURES:
        assert row["why"] or row["verdict"] == "met", row
        assert row["verdict"] not in ("met", "differs") or (row["command"] and row["printed"] and row["ours"]), row


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted({each for row in FIGURES for each in row["command"].split("; ")} - {""}))
def test_the_command_of_a_figure_is_one_and_runs_in_small(command: str, tmp_path: Path, monkeypatch) -> None:
    program, *words = shlex.split(command)
    if program != "lepaute":
        assert (ROOT / program).is_file()
        return
    name, known = next(each for at in (2, 1) for each in commands().items() if each[0] == " ".join(words[:at]))
    assert {word for word in words if re.match("--?[a-z]", word)} <= {o for each in known.params for o in each.opts}
    monkeypatch.chdir(tmp_path)
    Path("osu_latency.txt").write_text("size,time_us\n" + "".join(f"{n},{n}\n" for n in range(1, 9)))
    if name == "study whatif":
        words = ["study", "check", str(ROOT / words[2])]
    if name in RUN:
        assert main([FEW.get(before, word) for before, word in zip(["", *words], words, strict=False)]) == 0


def test_published_figures_stand_beside_ours() -> None:
    results = [{"at": {"scenario": "slow"}, "change": 81.5}, {"at": {"scenario": "as it is"}, "value": 0.25}]
    run = run_study(TWO | {"published": {"source": "a thesis", "results": results}})
    titles, rows = run.answer.table()  # type: ignore[union-attr]
    place = titles.index("published")
    assert [row[place] for row in rows] == ["0.25", "81.5 % more"]
    answer = run.to_dict()
    assert answer["published_source"] == "a thesis"
    assert answer["comparisons"][0]["published_other"] == {"change_percent": 81.5, "value": None}
    assert "published" not in run_study(TWO).answer.table()[0]  # type: ignore[union-attr]


def test_a_study_takes_its_slots_from_a_hostfile_in_order_or_at_random(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("dahu-7 slots=2\ndahu-3 slots=2\n")

    def cores(**mapping: object) -> list[int]:
        base = {"application": SMALL, "platform": "dahu", "mapping": {"file": "hosts", **mapping}}
        (tmp_path / "study.yaml").write_text(json.dumps(TWO | {"base": base}))
        _, configurations = opened_study(tmp_path / "study.yaml")
        return configurations.at(Point({"scenario": "slow"})).conditions.mapping.cores(DAHU, 4, 1)

    in_order = [6 * 32, 6 * 32 + 1, 2 * 32, 2 * 32 + 1]
    assert cores(kind="hostfile") == in_order
    shuffled = cores(kind="random", seed=3)
    assert sorted(shuffled) == sorted(in_order)
    assert shuffled != in_order
    assert cores(kind="hostfile", hosts="in-order") == [0, 1, 32, 33]


def test_a_copy_of_a_study_finds_the_hostfile_again(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("dahu-7 slots=4\n")
    base = {"application": SMALL, "platform": "dahu", "mapping": {"kind": "hostfile", "file": "hosts"}}
    (tmp_path / "study.yaml").write_text(json.dumps(TWO | {"base": base}))
    run = run_study(tmp_path / "study.yaml", folder=tmp_path / "results")
    assert run_study(tmp_path / "results" / "study.yaml").answer.text == run.answer.text


def test_ranks_with_a_whole_node_differ_as_the_mean_of_its_cpus_does() -> None:
    known = population_of(DAHU)
    cluster = synthesize(DAHU, known, nodes=4, threads=32)
    population = cluster.population
    assert (population.threads, cluster.nodes.cpus) == (32, 1)
    factor = population.groups[0].mean[0] / known.groups[0].mean[0]
    assert factor == pytest.approx(1 / (32 * 0.9), rel=1e-5)  # 90 % of 32 cores, as `platform new` guesses
    here, there = population.groups[0].covariance_spatial, known.groups[0].covariance_spatial
    assert here[0][0] == pytest.approx(there[0][0] * factor**2 / 2)  # two CPUs a node
    assert population.covariance_common[0][0] == pytest.approx(known.covariance_common[0][0] * factor**2)
    assert cluster.kernel("dgemm", 32).discrepancy_relative_sd > 0.13  # the share is guessed
    assert any("32 threads" in each.what for each in cluster.assumed or ())
    predict(Hpl(n=4000, nb=128, p=2, q=2, threads_per_rank=32), cluster, runs=2)


def test_ranks_inside_of_a_cpu_differ_as_cpus_do() -> None:
    cluster = synthesize(DAHU, population_of(DAHU), nodes=4, threads=16)
    assert (cluster.nodes.cpus, cluster.nodes.core_to_cpu) == (2, "block")
    here, there = cluster.population, population_of(DAHU)
    factor = here.groups[0].mean[0] / there.groups[0].mean[0]
    assert here.covariance_temporal[0][0] == pytest.approx(there.covariance_temporal[0][0] * factor**2)


def test_threads_that_fill_no_cpu_are_refused_with_those_that_do(tmp_path, refusal_of):
    for threads, words in (("12", "take 1, 2, 4, 8, 16, 32 threads"), ("33", "has 1 to 32")):
        output = tmp_path / f"{threads}.yaml"
        arguments = ["--nodes", "4", "--threads-per-rank", threads, "-o", str(output)]
        assert words in refusal_of("platform", "synthesize", *arguments)


def test_a_data_sheet_gets_a_population_of_its_threads(tmp_path, capsys) -> None:
    sheet, table, drawing = tmp_path / "sheet.yaml", tmp_path / "days.csv", tmp_path / "drawing.yaml"
    given = ["--nodes", "4", "--cores", "2x16", "--dgemm", "29G", "--link", "100Gb", "--threads-per-rank", "32"]
    assert main(["platform", "new", *given, "-o", str(sheet)]) == 0
    rows = [(node, day, 2.3e-12 * (1 + 0.02 * node + 0.001 * day)) for node in range(4) for day in range(3)]
    lines = ["node,cpu,day,mnk,1,sd:mnk", *(f"{node},0,{day},{mnk},1e-6,{0.03 * mnk}" for node, day, mnk in rows)]
    table.write_text("\n".join(lines))
    words = ["platform", "population", str(table), "--of", str(sheet), "--threads-per-rank", "32", "-o", str(drawing)]
    assert main(words) == 0
    assert load_platform(drawing).population.threads == 32
    assert main(["predict", "hpl", "-p", str(drawing), "--n", "4k", "--grid", "2x2", "--threads-per-rank", "32"]) == 0
    capsys.readouterr()


def test_calls_vary_as_a_study_says_where_nodes_are_drawn_too() -> None:
    nodes = load_platform(LITERATURE / "dahu-nodes.yaml")
    steady = with_components(nodes, {"noise.dgemm": 0.0})
    assert steady.population.terms == ("mnk", "1")
    rows = nodes.population.groups[0].covariance_spatial
    assert steady.population.groups[0].covariance_spatial == tuple(row[:2] for row in rows[:2])
    predict(Hpl(n=4000, nb=128, p=2, q=2, threads_per_rank=32), steady, runs=2)


@pytest.mark.parametrize("name", list(READY))
@pytest.mark.parametrize("threads", [1, 32])
def test_every_ready_study_is_a_valid_file_for_a_shipped_platform(name: str, threads: int) -> None:
    """A platform of ranks with a core each or a node each."""
    study = ready_study(name, Subject("dahu", DAHU, {} if threads == 1 else {"threads_per_rank": 32, "n": 4000}))
    assert parse_study(study_text(study)) == study
    configurations = Configurations(study)
    check_study(configurations)
    assert len(configurations.points()) > 1
    configurations.at(configurations.points()[-1])


def test_all_nodes_that_are_left_are_used_whatever_the_grid() -> None:
    configurations = Configurations(slowest_nodes(Subject("dahu-2019-04", load_platform("dahu-2019-04"), {})))
    for point in configurations.points():
        found = configurations.at(point)
        assert found.nodes == 32 - int(str(point["left_out"]))
        assert found.application.ranks == 32 * found.nodes


def test_removing_top_switches_slows_down_and_slow_nodes_hold_up() -> None:
    narrow = Subject("dahu", DAHU, {"n": 1500, "nb": 128}, runs=2)
    run = run_study(top_switches(narrow, cables="first"), scheduler="threads")
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
    first, *lines = output_of("study", "ready").splitlines()
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


def test_several_values_are_compared_each_with_its_own_base_or_tuned_over(output_of, refusal_of):
    study = parse_study(output_of("study", "ready", "temporal-variability", "--n", "1k,2k", "--nb", "64,96", "--print"))
    assert (study.levels["n"], study.levels["nb"]) == ((1000, 2000), (64, 96))
    study = parse_study(output_of("study", "ready", "nb-and-grid", "--nb", "64,96", "--grid", "2x2,1x4", "--print"))
    assert (study.levels["nb"], study.levels["grid"]) == ((64, 96), ("2x2", "1x4"))
    assert "--n has several values" in refusal_of("study", "ready", "scaling", "--n", "1k,2k")
    assert "--grid is 2x2,1x4, and" in refusal_of("study", "ready", "scaling", "--grid", "2x2,1x4")
    assert "--grid is 'x'" in refusal_of("study", "ready", "components", "--grid", "x", "--print")


def test_a_platform_with_a_tree_of_its_own_keeps_what_its_cables_cost() -> None:
    levels = [{"latency_s": 1e-6}, {"latency_s": 2e-6}]
    tree = with_values(DAHU, {"topology": {"kind": "fat-tree", "parameters": "2;8,4;1,4;1,2", "levels": levels}})
    study = top_switches(Subject("dahu", tree, {"n": 2000, "grid": "4x4"}))
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


def test_of_an_interaction_that_explains_much_the_best_combination_is_named() -> None:
    better = {(4, 1), (1, 0), (2, 0)}
    changed = [
        replace(each, responses={"time_s": each["time_s"] / (3.0 if (at["a"], at["b"]) in better else 1.0)})
        for each in outcomes()
        for at in [each.trial.point]
    ]
    found = effects(changed)
    (term,) = (term for term in found.told_terms if len(term.factors) == 2)
    assert found.direction_of(term).startswith("a=1, b=0 is the best combination (")
    assert "  a × b: a=1, b=0 is the best combination (" in found.text


def test_shares_of_a_balanced_design_add_up_and_effects_multiply() -> None:
    found = effects(outcomes())
    assert [term.name for term in found.terms] == ["a", "b", "a × b"]
    assert sum(term.share for term in found.terms) + found.unexplained == pytest.approx(1.0)
    assert found.terms[0].degrees == 2
    assert found.terms[0].is_significant
    levels = {level.level: level.effect for level in found.terms[0].levels}
    assert levels[4] / levels[1] == pytest.approx(4.0, rel=0.02)
    assert found.between_seeds == pytest.approx(0.05, rel=1.0)
    most = r"a matters most: time 30\d\.\d % more \(95 %: .* more\) at 4 than at 1; of the variance .*: a 9"
    assert re.match(most, found.text)
    assert found.told_terms == found.single_terms, "the interaction explains next to nothing"
    chance = replace(found, terms=(replace(found.terms[0], p_value=0.5), *found.terms[1:]))
    assert chance.terms[1].is_significant
    assert chance.sentence.startswith("a explains the most, 9")
    assert "but that may be chance; shown to matter: b " in chance.sentence
    near = (
        replace(term, widest=(replace(term.widest[0], high=1.02), 1)) if term.widest else term for term in found.terms
    )
    little = replace(found, terms=tuple(near))
    assert little.sentence.startswith("No factor matters much: a the most, time ")


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
    assert few.text.splitlines()[0].endswith(f"; x seems to have one; --runs {term.enough} would decide")
    assert few.further.simulations == 2 * (term.enough - 2)
    assert answered(few, 90.0).endswith(f", about {duration(90.0 * few.further.simulations)} more, would decide")
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
    assert found.text.startswith("x matters most: of the variance of the time, with interactions, x ")
    nothing = replace(found, total={"null": Index(0.1, -0.1, 0.3)})
    # twice as wide as it may be: four times as many rows, and a power of two above that
    assert nothing.text.endswith(f"; budget.simulations {simulations_of(1, 256)} would decide")
    assert len({trial.seed for trial in seen[:3]}) == 1  # A, and A with one factor of B


def test_the_best_level_and_the_direction_are_said() -> None:
    found = effects(outcomes())
    (line,) = [line for line in found.text.splitlines() if line.startswith(f"  {found.terms[0].factors[0]}: ")]
    best, worst = found.best_of(found.terms[0])
    assert line.startswith(f"  {found.terms[0].factors[0]}: {best.level} is the best level (")
    assert f", {worst.level} the worst (" in line
    assert best.effect < 1.0 < worst.effect
    assert found.to_dict()["best_levels"][found.terms[0].factors[0]] == best.level
