"""What a command prints first, its JSON and its page state the same: studies, comparisons, traces, verifications."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from support_comparisons import campaign
from support_pages import text_of

from lepaute.kit.text import percent, seconds, size_text
from lepaute.measure.verify.comparison import error_text

DATA = Path(__file__).parent.parent / "data"
SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
N, RUNS = 2000, 4
#: Fields of a study of each question, beside its base.
QUESTIONS: dict[str, dict[str, Any]] = {
    "whatif": {"scenarios": {f"nb {nb}": {"application.nb": nb} for nb in (64, 128, 32)}},
    "tune": {"factors": {"nb": {"path": "application.nb", "levels": [32, 64, 128]}}, "budget": {"simulations": 24}},
    "sensitivity": {
        "factors": {
            "nb": {"path": "application.nb", "levels": [32, 128]},
            "grid": {"path": "application.grid", "levels": ["1x4", "2x2"]},
        }
    },
}


def verdict(page: str) -> str:
    """The answer of a page, as its readers see it."""
    (found,) = re.findall(r'<p class="verdict[^"]*">(.*?)</p>', page, re.DOTALL)
    return text_of(found)


def same(one: str, other: str) -> bool:
    """But for the blanks at which lines are broken, and the full stop."""
    return re.sub(r"\s+", " ", one).strip().removesuffix(".") == re.sub(r"\s+", " ", other).strip().removesuffix(".")


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_page_of_a_study_has_the_answer_and_the_caveats_that_are_printed_and_the_figures_of_its_json(
    question, tmp_path, monkeypatch, output_of, json_of
):
    monkeypatch.chdir(tmp_path)
    application = {"name": "hpl", "n": N, "nb": 64, "grid": "2x2"}
    content = {"question": question, "base": {"application": application, "platform": str(SMALL)}, "runs": RUNS}
    Path("s.yaml").write_text(yaml.safe_dump(content | QUESTIONS[question], sort_keys=False))
    # How long further simulations take is known where they were made, and no part of the page.
    printed = re.sub(r", about [^,;]* more, would", " would", output_of("study", question, "s.yaml"))
    page = Path("s.results/report.html").read_text()
    told = json_of("study", question, "s.yaml", "--resume", "--json")
    seen = text_of(page)
    # A terminal has the parts of a long answer in lines of their own.
    parts = verdict(page).removesuffix(".").split("; ") if question == "tune" else [verdict(page).removesuffix(".")]
    assert all(part.removeprefix("to decide: ") in re.sub(r"\s+", " ", printed) for part in parts)
    assert told["caveats"]
    assert next(iter(told)) == "answer"
    assert all(re.sub(r"\s+", " ", caveat) in seen for caveat in told["caveats"])
    if question == "tune":
        best = next(one for one in told["standings"] if one["point"] == told["best"])
        assert f"probability of {100 * best['probability_best']:.0f} %" in seen
    elif question == "sensitivity":
        for term in told["terms"]:
            assert f"{100 * term['share']:.3g}"[:4] in seen


@pytest.mark.parametrize("cases", ["500", "500,700", "500 --grid 1x2,2x2", "500,700 --nb 32,64"])
def test_the_json_of_predictions_begins_with_the_answer_that_is_printed_first(cases, output_of, json_of):
    words = ["predict", "hpl", "-p", str(SMALL), "--runs", "2", "--n", *cases.split()]
    (key, answer), *_ = json_of(*words, "--json").items()
    assert key == "answer"
    assert output_of(*words).replace("\n", "; ").startswith(answer)


digits = partial(re.sub, r"[.,]", "")  # of numbers in whatever unit


def test_the_page_of_a_comparison_has_the_answer_and_every_verdict_that_is_printed(
    tmp_path, monkeypatch, output_of, json_of
):
    monkeypatch.chdir(tmp_path)
    campaign(Path("c.zip"), ("openmpi", "mpich"), sizes=(0, 8), calls_each=20, blocks=9)
    printed = output_of("compare", "c.zip", "--report", "p.html")
    told = json_of("compare", "c.zip", "--json")
    page = Path("p.html").read_text()
    assert same(verdict(page).lower(), told["answer"].lower())
    assert verdict(page).removesuffix(".") in printed
    seen = text_of(page)
    for row in told["rows"]:
        ratio, interval, words = re.fullmatch(
            r"mpich took (\S+) times as long( \(.*?\))?: (.*)", row["sentence"]
        ).groups()
        for text in (f"{ratio}{interval or ''}", words):
            assert text in seen
            assert text in printed


@pytest.mark.slow
def test_the_page_of_a_trace_has_the_answer_that_is_printed_and_the_shares_that_were_predicted(
    tmp_path, monkeypatch, output_of, json_of
):
    monkeypatch.chdir(tmp_path)
    words = ("-p", str(SMALL), "--n", str(N), "--nb", "64", "--grid", "2x2", "--runs", "1", "--trace", "t.parquet")
    predicted = output_of("predict", "hpl", *words)
    printed = output_of("trace", "breakdown", "t.parquet", "--report", "p.html")
    told = json_of("trace", "breakdown", "t.parquet", "--json")
    page = Path("p.html").read_text()
    assert same(verdict(page), told["answer"])
    assert same(printed.splitlines()[0], told["answer"])
    whole = sum(told["all"].values())
    for name, category in (("computing", "compute"), ("waiting", "late")):
        assert told["shares"][name] == pytest.approx(told["all"][category] / whole)
        share = percent(told["shares"][name])
        assert share in verdict(page)
        assert share in predicted, "the prediction of the same run"
    waiting = told["waiting"]
    mine = next(one for one in told["ranks"] if one["rank"] == waiting["rank"])
    assert waiting["time_s"] == pytest.approx(mine["late"])
    assert all(one["late"] <= mine["late"] for one in told["ranks"])


@pytest.mark.slow
def test_the_page_of_two_traces_has_the_answer_that_is_printed_and_the_figures_of_its_json(
    tmp_path, monkeypatch, output_of, json_of
):
    monkeypatch.chdir(tmp_path)
    words = ("-p", str(SMALL), "--n", str(N), "--nb", "64", "--grid", "2x2", "--runs", "1")
    for seed in ("1", "2"):
        output_of("predict", "hpl", *words, "--seed", seed, "--trace", f"{seed}.parquet")
    printed = output_of("trace", "compare", "1.parquet", "2.parquet", "--report", "p.html")
    told = json_of("trace", "compare", "1.parquet", "2.parquet", "--json")
    page = Path("p.html").read_text()
    assert same(verdict(page), told["answer"])
    assert same(printed.splitlines()[0], told["answer"])
    seen = text_of(page)
    assert told["first_difference"]
    for each in (*told["first_difference"], *told["first_size_difference"]):
        assert each["why"] in seen
    for each in told["calls"]:
        assert each["name"] in seen
        assert digits(seconds(each["left_s"]).split()[0]) in digits(seen)


def test_the_page_of_a_segmentation_has_the_answer_that_is_printed_and_the_lines_of_its_json(
    tmp_path, monkeypatch, output_of, json_of
):
    monkeypatch.chdir(tmp_path)
    file = str(DATA / "duration_tables" / "osu_three_protocols.txt")
    printed = output_of("segment", file, "--report", "p.html")
    (told,) = json_of("segment", file, "--json")["tables"]
    page = Path("p.html").read_text()
    assert same(verdict(page), told["answer"])
    assert same(printed.splitlines()[0], told["answer"])
    seen = text_of(page)
    assert len(told["segments"]) == 4
    for each in told["segments"]:
        for number_s in (each["intercept_s"], *each["intercept_interval_s"]):
            assert digits(f"{number_s:.1e}".partition("e")[0]) in digits(seen)
    for each in told["breakpoints"]:
        assert size_text(each["size"]) in verdict(page)


@pytest.mark.slow
def test_the_page_of_a_verification_has_the_answer_that_is_printed_and_the_errors_of_its_json(
    tmp_path, monkeypatch, output_of, json_of
):
    monkeypatch.chdir(tmp_path)
    words = ("verify", "hpl", "--results", str(DATA / "hpl_out" / "HPL.out"), "-p", "dahu", "--runs", "2")
    words = (*words, "--tolerance", "100%")
    printed = output_of(*words, "--report", "p.html")
    told = json_of(*words, "--json")["verifications"]
    page = Path("p.html").read_text()
    assert same(verdict(page), printed.splitlines()[0])
    seen = text_of(page)
    assert len(told) == 16
    for each in told:
        error = error_text(each["error_percent"])
        assert error in seen
        assert error in printed
        assert all(digits(f"{run['time_s']:.2e}".partition("e")[0]) in digits(seen) for run in each["measured"])
