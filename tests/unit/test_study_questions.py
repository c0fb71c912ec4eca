"""Every question from its file to its answer; pages of studies: one file, escaped, with every picture."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from long_tests import long_but
from support_pages import Elements
from support_study import crossed

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat
from lepaute.simulate.platform import load_platform
from lepaute.study import session
from lepaute.study.capacity import front, is_on_front
from lepaute.study.checking import checked
from lepaute.study.evaluation import Outcome, Point, Trial, trials_of
from lepaute.study.ready import READY, Subject, ready_study
from lepaute.study.report_page import PageFacts, page
from lepaute.study.running import run_study
from lepaute.study.schema import study_text
from lepaute.study.sensitivity import effects
from lepaute.study.sobol import sobol
from lepaute.study.tune_real import correct

BASE = "base: {application: {name: hpl, n: 3k}, platform: ./mine.yaml}\n"
FACTORS = """\
factors:
  nb: {path: application.nb, levels: [128, 192]}
  grid: {path: application.grid, levels: [4x8, 2x16]}
runs: 3
"""
CATALOGUE = """\
parts:
  xeon: {kind: node, price: 9000, watts: 400, ranks: 32}
  slim: {kind: network, price: 300, per: node, set: {scale.bandwidth: 0.25}}
  fat: {kind: network, price: 1400, per: node, watts: 15}
"""
STUDIES = {
    "tune": f"question: tune\n{BASE}{FACTORS}budget: {{simulations: 40}}\n",
    "sensitivity": f"question: sensitivity\n{BASE}{FACTORS}",
    "whatif": f"question: whatif\n{BASE}{FACTORS}whatif: {{factor: nb, best_of: [grid]}}\n",
    "capacity": f"question: capacity\n{BASE}capacity: {{catalogue: parts.yaml, nodes: [1, 2]}}\nruns: 3\n",
}


@pytest.mark.parametrize("question", list(STUDIES))
def test_every_question_is_answered_and_its_folder_repeats_it(question, tmp_path, monkeypatch, json_of):
    monkeypatch.chdir(tmp_path)
    load_platform("dahu").to_yaml("mine.yaml")
    Path("ask.yaml").write_text(STUDIES[question])
    Path("parts.yaml").write_text(CATALOGUE)
    answer = json_of("study", question, "ask.yaml", "--json")
    assert answer["simulated"] > 0
    assert answer["question"] == question
    assert answer["answer"].startswith({"capacity": "Fastest", "tune": "Best"}.get(question, "n"))
    page = Path("ask.results/report.html").read_text()
    assert f"lepaute study {question} study.yaml" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    if question == "tune":
        dat = read_hpl_dat(Path("ask.results/HPL.dat"))
        assert [hpl.nb for hpl in dat.combinations()] == [answer["best"]["nb"]]
    monkeypatch.chdir(tmp_path / "ask.results")
    assert json_of("study", question, "study.yaml", "-o", "again", "--json") == answer


SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
RANGES = """\
factors:
  width: {path: scale.bandwidth, range: [0.5, 2]}
"""
COUNTED = STUDIES | {
    "tune a range": f"question: tune\n{BASE}{RANGES}budget: {{simulations: 20}}\n",
    "Sobol indices": f"question: sensitivity\n{BASE}{RANGES}budget: {{simulations: 48}}\n",
    "to a precision": f"question: whatif\n{BASE}{FACTORS}whatif: {{factor: nb}}\nbudget: {{precision: 50}}\n",
    "priced": f"question: whatif\n{BASE}scenarios: {{a: {{}}, b: {{scale.bandwidth: 2}}}}\nruns: 9\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", long_but([*COUNTED, *READY], *COUNTED, "temporal-variability", "nb-and-grid"))
def test_as_many_simulations_are_made_as_were_announced(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load_platform("dahu").to_yaml("mine.yaml")
    Path("parts.yaml").write_text(CATALOGUE)
    if name in COUNTED:
        Path("ask.yaml").write_text(COUNTED[name].replace("n: 3k", "n: 1k, nb: 64, grid: 2x4"))
    else:
        grid = {} if name in ("slowest-nodes", "scaling") else {"grid": "4x4"}
        subject = Subject("dahu", load_platform("dahu"), {"n": 500, "nb": 64, **grid}, runs=2)
        Path("ask.yaml").write_text(study_text(ready_study(name, subject)))
    announced = checked("ask.yaml").takes
    run = run_study("ask.yaml", scheduler="threads")
    assert run.simulated <= announced.most
    assert run.further <= announced.most_further
    assert announced.most_wall_s >= announced.wall_s
    if run.study.question != "tune" and name != "to a precision":
        assert run.simulated == announced.missing
        # Nodes that are drawn once have no sizes to which their models were fitted: nothing there can be judged.
        assert run.further == (0 if name in ("spatial-variability", "variability-and-topology") else announced.further)


def test_what_cannot_be_at_any_point_is_refused_before_anything_is_simulated(tmp_path: Path) -> None:
    text = STUDIES["whatif"].replace("n: 3k", "n: 200k").replace("./mine.yaml", "dahu")
    (tmp_path / "ask.yaml").write_text(text)
    for asked in (checked, run_study):
        with pytest.raises(InputError, match=r"no configuration can be: at grid=4x8, nb=128 the data of N = 200000"):
            asked(tmp_path / "ask.yaml")
    (tmp_path / "ask.yaml").write_text(text.replace("4x8, 2x16", "16x64, 2x16"))
    assert "; 2 configurations cannot be: at grid=2x16, nb=128 the data" in checked(tmp_path / "ask.yaml").takes.text


@pytest.mark.parametrize(("seconds", "runs"), [(1e9, 7), (300.0, 3), (30.0, 1)])
def test_a_study_gives_the_answer_for_which_its_seconds_suffice(seconds, runs, monkeypatch, tmp_path):
    text = COUNTED["priced"].replace("n: 3k", "n: 1k, grid: 1x2").replace("./mine.yaml", str(SMALL))
    (tmp_path / "ask.yaml").write_text(f"{text.replace('runs: 9', 'runs: 7')}budget: {{seconds: {seconds}}}\n")
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=count(0.0, 20.0).__next__))
    run = run_study(tmp_path / "ask.yaml", scheduler="threads")
    assert (run.simulated, run.answer.runs) == (2 * runs, runs)
    assert any(f"sufficed for {runs} of 7 runs" in caveat for caveat in run.caveats) == (runs < 7)
    (tmp_path / "ask.yaml").write_text(f"{text}budget: {{seconds: 1e-9}}\n")
    with pytest.raises(InputError, match=r"one run of each configuration takes about .*, and budget.seconds is 1e-09"):
        run_study(tmp_path / "ask.yaml", scheduler="threads")


def test_what_is_mostly_extrapolated_is_never_the_best_by_itself(tmp_path, monkeypatch, output_of):
    monkeypatch.chdir(tmp_path)
    text = "question: tune\nbase: {application: {name: hpl, n: 20k, grid: 8x8}, platform: dahu}\nfactors:\n"
    Path("ask.yaml").write_text(
        f"{text}  nb: {{path: application.nb, levels: [96, 192]}}\nbudget: {{simulations: 20}}\n"
    )
    short = output_of("study", "tune", "ask.yaml")
    assert "caveats: dlocswp is not modelled by the platform, so taken to cost nothing; " in short
    said = output_of("study", "tune", "ask.yaml", "--resume", "--details")
    assert said.startswith("Best of those that are comparable: nb=192, time 4.")
    assert " Gflop/s" in said.partition("\n")[0]
    assert "rivals  1 more may be as good but cannot be compared: extrapolation alone makes its time uncertain" in short
    assert "decide  `lepaute calibrate --nb 96,192`, or --real-runs N" in short
    assert [hpl.nb for hpl in read_hpl_dat(tmp_path / "ask.results" / "HPL.dat").combinations()] == [192]
    assert "warning: not comparable, extrapolation alone makes its time uncertain by ± 17.2 %: nb=96 (1 of 2)" in said
    assert "warning: dlocswp is not modelled by the platform, so taken to cost nothing: dlocswp (" in said
    answer = json.loads(Path("ask.results/answer.json").read_text())
    first, second = answer["standings"]
    assert second["value"] / first["value"] == pytest.approx(second["ratio"]["mean"])
    assert first["rate_gflops"] / second["rate_gflops"] == pytest.approx(second["ratio"]["mean"])
    assert "  time, s  rate, Gflop/s  against the best" in short
    assert [one["comparable"] for one in (first, second)] == [True, False]
    assert answer["ahead"] == []
    assert len(answer["caveats"]) == sum(line.startswith("warning: ") for line in said.splitlines())
    page = Path("ask.results/report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "not comparable, extrapolation alone makes its time uncertain by ± 17.2 %: nb=96" in page


FACTS = PageFacts("NB <and> grid", "Which & why?", ("lepaute study tune 'a <b>.yaml'",), "dahu, seeds 1 to 6")
POINTS = [Point({"nb": nb, "grid": grid}) for nb in (64, 128, 256) for grid in ("2x8", "4x4", "<8x2>")]


def evaluate(trials: Sequence[Trial]) -> list[Outcome]:
    found = []
    for trial in trials:
        nb, grid = int(trial.point["nb"]), POINTS.index(trial.point) % 3  # type: ignore[arg-type]
        time_s = (
            10.0 * (1 + abs(nb - 128) / 1000 + 0.1 * grid) * np.exp(np.random.default_rng(trial.seed).normal(0, 0.05))
        )
        if nb == 256 and grid == 2:
            found.append(Outcome(trial, refusal="does <not> fit"))
        else:
            own = 1.0 + 0.001 * trial.seed * (nb - 64) / 64
            found.append(Outcome(trial, {"time_s": float(time_s * own), "cost": 100.0 + nb}, 0.3 if nb == 64 else 0.0))
    return found


def sloping(trials: Sequence[Trial]) -> list[Outcome]:
    return [Outcome(trial, {"time_s": 1.0 + float(trial.point["x"])}) for trial in trials]  # type: ignore[arg-type]


def pictures(text: str) -> int:
    """Of a page without scripts that loads nothing."""
    elements = Elements(text)
    assert "script" not in elements.tags
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    return len(elements.images)


def test_the_page_of_tuning_says_question_answer_certainty_ranges_and_command() -> None:
    found = crossed(POINTS, evaluate, 5)
    real = correct([outcome for outcome in found.outcomes if outcome.refusal is None], lambda _: 12.0, 3)
    text = page(FACTS, replace(found, real=real), found.outcomes)
    assert pictures(text) == 3, "the ranking, what was tried, and a heat map"
    for words in ("Which &amp; why?", "tune &#39;a &lt;b&gt;.yaml&#39;", "does &lt;not&gt; fit", "Real runs",
                  "1\u00a0% of their computing", "NB &lt;and&gt; grid"):  # fmt: skip
        assert words in text
    assert "<8x2>" not in text


def test_pages_of_effects_indices_and_fronts_have_their_pictures() -> None:
    outcomes = crossed(POINTS, evaluate, 5).outcomes
    text = page(FACTS, effects(outcomes), outcomes)
    assert pictures(text) == 2
    assert "left out, since refused: 1 point" in text
    assert pictures(page(FACTS, sobol({"x": lambda u: u}, sloping, 16))) == 1
    text = page(FACTS, front(outcomes, ("time_s", "cost")), outcomes)
    assert pictures(text) == 1
    numbers = [float(each) for each in re.findall(r'<use [^>]*x="([\d.]+)"', text)]
    assert len(numbers) == 8, "a mark for each point"
    assert all(0 <= number <= 760 for number in numbers)


def test_the_page_of_what_if_has_the_question_the_changes_with_intervals_and_the_command(
    tmp_path, monkeypatch, output_of
):
    monkeypatch.chdir(tmp_path)
    argv = ["study", "ready", "components", "-p", "dahu", "--n", "1k", "--grid", "2x2", "--runs", "2"]
    assert "None of 6 changes can be judged: not comparable, at " in output_of(*argv)
    page = (tmp_path / "components.results" / "report.html").read_text()
    assert pictures(page) == 2, "the time and the rate"
    assert page.count("<use ") == 12, "a mark for each scenario"
    for words in (
        "How does the time change with “speed x 10”, “speed / 10”, ",
        "latency / 10”, against “baseline”?",
        "lepaute study ready components -p dahu --n 1k --grid 2x2 --runs 2",
        "<code>lepaute study whatif study.yaml</code>",
        "hpl (n 1000, nb 128, grid 2x2) on dahu",
    ):
        assert words in page
    rows = re.findall(r"<tr>(.*?)</tr>", page.split("Comparisons</h3>")[1], re.DOTALL)
    assert len(rows) == 8, "heads, the base once, six others"
    assert sum("the base" in row for row in rows) == 1


def test_a_table_with_many_columns_needs_no_scrolling_on_a_usual_screen(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wide.yaml").write_text(Path(__file__).parents[1].joinpath("data", "texts", "wide_study.yaml").read_text())
    assert main(["study", "whatif", "wide.yaml"]) == 0
    tab = browser.new_page(viewport={"width": 1100, "height": 900})
    tab.goto((tmp_path / "wide.results" / "report.html").as_uri())
    assert tab.evaluate("document.querySelectorAll('th').length") == 11
    assert tab.evaluate("[...document.querySelectorAll('.scroll')].every(e => e.scrollWidth <= e.clientWidth)")


def test_pictures_take_their_colours_from_the_page_but_those_of_cells(browser, tmp_path):
    found = crossed(POINTS, evaluate, 5)
    file = tmp_path / "page.html"
    file.write_text(page(FACTS, found, found.outcomes))
    seen = {}
    for scheme in ("light", "dark"):
        tab = browser.new_page(color_scheme=scheme)
        tab.goto(file.as_uri())
        seen[scheme] = tab.evaluate(
            "[...document.querySelectorAll('figure text')].map(t => [t.textContent.trim(), getComputedStyle(t).fill])"
        )
        tab.close()
    fills = {scheme: dict(texts) for scheme, texts in seen.items()}
    assert fills["light"]["grid"] == "rgb(90, 102, 117)"  # the name of an axis
    assert fills["dark"]["grid"] == "rgb(163, 173, 186)"
    # In a cell, whose colour says its value and is the same in both modes.
    cells = [text for text, fill in seen["light"] if fill == "rgb(28, 36, 49)"]
    assert cells
    assert all(fills["dark"][text] == "rgb(28, 36, 49)" for text in cells)


def test_a_front_holds_what_nothing_beats_in_all_responses() -> None:
    values = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0], [2.0, 3.0], [1.0, 3.0]])
    assert is_on_front(values).tolist() == [True, True, True, False, True]


def test_the_probability_of_a_front_is_that_of_further_machines() -> None:
    generator = np.random.default_rng(1)
    points = [Point({"x": x}) for x in range(2)]
    #: Both cost the same; which is faster changes from machine to machine, the first one in five of six.
    outcomes = [
        Outcome(
            trial,
            {"time_s": float(np.exp(generator.normal(0.0 if trial.point["x"] == 0 else 0.01, 0.005))), "cost": 1.0},
        )
        for trial in trials_of(points, 60)
    ]
    both = front(outcomes, ("time_s", "cost"))
    found = {member.point: member.probability for member in both.members}
    assert found[points[0]] == pytest.approx(0.92, abs=0.05)
    assert found[points[0]] + found[points[1]] == pytest.approx(1.0)
    doubt = f"(with a probability of {100.0 * found[points[0]]:.0f} %)"
    assert both.sentence == f"Fastest {doubt} and best for the money {doubt}: x=0 (1.000 s, cost 1)"
    words = [text for name, text in both.facts if name == "best for the money"]
    assert words == [f"x=0 (1.000 s, cost 1), the least time × cost, {doubt[1:-1]}"]
    assert [member.point["x"] for member in both.by_first] == [0, 1]


def test_rates_are_better_when_larger_and_bad_input_is_one_line() -> None:
    outcomes = [Outcome(Trial(Point({"x": x}), 1), {"rate_gflops": 10.0 + x, "cost": 5.0}) for x in range(3)]
    assert [one.point["x"] for one in front(outcomes, ("rate_gflops", "cost")).likely] == [2]
    with pytest.raises(InputError, match="a front of cost; "):
        front(outcomes, ("cost",))
    with pytest.raises(InputError, match="no seed in common"):
        front([outcomes[0], Outcome(Trial(Point({"x": 9}), 2), outcomes[0].responses)], ("rate_gflops", "cost"))
