"""Every question from its file to its answer, page and files, by one command each."""

import json
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from long_tests import long_but

from lepaute.errors import InputError
from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat
from lepaute.simulate.platform import dump_platform, load_platform
from lepaute.study import session
from lepaute.study.checking import checked
from lepaute.study.ready import READY, Subject, ready_study
from lepaute.study.running import run_study
from lepaute.study.schema import study_text

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
    dump_platform(load_platform("dahu"), "mine.yaml")
    Path("ask.yaml").write_text(STUDIES[question])
    Path("parts.yaml").write_text(CATALOGUE)
    answer = json_of("study", question, "ask.yaml", "--json")
    assert answer["simulated"] > 0
    assert answer["question"] == question
    assert answer["answer"].startswith({"capacity": "Fastest", "tune": "Best: "}.get(question, "n"))
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
    dump_platform(load_platform("dahu"), "mine.yaml")
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
    assert said.startswith("Best: nb=192, time 4.")
    assert "rivals  1 more may be as good but cannot be compared: extrapolation alone makes its time uncertain" in short
    assert "decide  `lepaute calibrate --nb 96,192`, or --real-runs N" in short
    assert [hpl.nb for hpl in read_hpl_dat(tmp_path / "ask.results" / "HPL.dat").combinations()] == [192]
    assert "warning: not comparable, extrapolation alone makes its time uncertain by ± 16.4 %: nb=96 (1 of 2)" in said
    assert "warning: dlocswp is not modelled by the platform, so taken to cost nothing: dlocswp (" in said
    answer = json.loads(Path("ask.results/answer.json").read_text())
    first, second = answer["standings"]
    assert second["value"] / first["value"] == pytest.approx(second["ratio"]["mean"])
    assert [one["comparable"] for one in (first, second)] == [True, False]
    assert answer["ahead"] == []
    assert len(answer["caveats"]) == sum(line.startswith("warning: ") for line in said.splitlines())
    page = Path("ask.results/report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "not comparable, extrapolation alone makes its time uncertain by ± 16.4 %: nb=96" in page
