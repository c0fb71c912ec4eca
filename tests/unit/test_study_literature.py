"""Studies of the literature: published figures beside ours, mappings from files, clusters of ranks with threads."""

import json
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.simulate import Hpl, predict
from lepaute.simulate.machine.synthesis import synthesize
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.components import with_components
from lepaute.simulate.platform.population import population_of
from lepaute.study.checking import check_study, opened_study
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Point
from lepaute.study.ready import READY, Subject, ready_study
from lepaute.study.running import run_study

LITERATURE = Path(__file__).parents[2] / "examples" / "literature"
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
    for point in configurations.points()[:1]:
        configurations.at(point)
    assert len(configurations.points()) > 1


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
        found = configurations.at(Point({"scenario": "slow"}))
        return found.conditions.mapping.cores(DAHU, 4, 1)

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
    again = run_study(tmp_path / "results" / "study.yaml")
    assert again.answer.text == run.answer.text


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
    model = cluster.kernel("dgemm", 32)
    assert model.discrepancy_relative_sd > 0.13  # the share is guessed
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
    population = load_platform(drawing).population
    assert population.threads == 32
    assert main(["predict", "hpl", "-p", str(drawing), "--n", "4k", "--grid", "2x2", "--threads-per-rank", "32"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("name", [name for name in READY if name != "nb-and-grid"])
def test_ready_studies_take_ranks_with_threads_on_any_platform(name: str) -> None:
    study = ready_study(name, Subject("dahu", DAHU, {"threads_per_rank": 32, "n": 4000}))
    configurations = Configurations(study)
    check_study(configurations)
    configurations.at(configurations.points()[-1])


def test_calls_vary_as_a_study_says_where_nodes_are_drawn_too() -> None:
    nodes = load_platform(LITERATURE / "dahu-nodes.yaml")
    steady = with_components(nodes, {"noise.dgemm": 0.0})
    assert steady.population.terms == ("mnk", "1")
    rows = nodes.population.groups[0].covariance_spatial
    assert steady.population.groups[0].covariance_spatial == tuple(row[:2] for row in rows[:2])
    predict(Hpl(n=4000, nb=128, p=2, q=2, threads_per_rank=32), steady, runs=2)
