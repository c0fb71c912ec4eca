"""Pages of studies: one file that needs nothing else, escaped, with every picture; and Pareto fronts."""

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.study.capacity import front, is_on_front
from lepaute.study.evaluation import Outcome, Point, Trial, trials_of
from lepaute.study.report_page import PageFacts, page
from lepaute.study.sensitivity import effects
from lepaute.study.sobol import sobol
from lepaute.study.tune import crossed
from lepaute.study.tune_real import correct

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


class Pictures(HTMLParser):
    """Counts pictures and figures, and finds what would be loaded from elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.pictures, self.loaded = 0, list[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pictures += tag == "svg"
        of_other_files = [
            str(value) for name, value in attrs if name in ("src", "href") and not str(value).startswith(("#", "data:"))
        ]
        self.loaded += of_other_files
        assert tag != "script"


def test_the_page_of_tuning_says_question_answer_certainty_ranges_and_command() -> None:
    found = crossed(POINTS, evaluate, 5)
    real = correct([outcome for outcome in found.outcomes if outcome.refusal is None], lambda _: 12.0, 3)
    text = page(FACTS, replace(found, real=real), found.outcomes)
    assert Pictures(text).pictures == 3, "the ranking, what was tried, and a heat map"
    assert Pictures(text).loaded == []
    for words in ("Which &amp; why?", "tune &#39;a &lt;b&gt;.yaml&#39;", "does &lt;not&gt; fit", "Real runs",
                  "1\u00a0% of their computing", "NB &lt;and&gt; grid"):  # fmt: skip
        assert words in text
    assert "<8x2>" not in text


def test_pages_of_effects_indices_and_fronts_have_their_pictures() -> None:
    outcomes = crossed(POINTS, evaluate, 5).outcomes
    text = page(FACTS, effects(outcomes), outcomes)
    assert Pictures(text).pictures == 2
    assert "left out, since refused: 1 point" in text
    indices = sobol({"x": lambda u: u}, sloping, 16)
    assert Pictures(page(FACTS, indices)).pictures == 1
    text = page(FACTS, front(outcomes, ("time_s", "cost")), outcomes)
    assert Pictures(text).pictures == 1
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
    assert Pictures(page).pictures == 2, "the time and the rate"
    assert page.count("<use ") == 12, "a mark for each scenario"
    for words in (
        "How does the time change with “speed x 10”, “speed / 10”, ",
        "latency / 10”, against “as it is”?",
        "lepaute study ready components -p dahu --n 1k --grid 2x2 --runs 2",
        "<code>lepaute study whatif study.yaml</code>",
        "hpl (n 1000, nb 128, grid 2x2) on dahu",
    ):
        assert words in page
    rows = re.findall(r"<tr>(.*?)</tr>", page.split("Comparisons</h3>")[1], re.DOTALL)
    assert len(rows) == 8, "heads, the base once, six others"
    assert sum("the base" in row for row in rows) == 1


WIDE = Path(__file__).parents[1].joinpath("data", "texts", "wide_study.yaml").read_text()


def test_a_table_with_many_columns_needs_no_scrolling_on_a_usual_screen(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wide.yaml").write_text(WIDE)
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
    assert both.sentence.startswith(f"Fastest {doubt} and best for the money {doubt}: x=0 (")


def test_rates_are_better_when_larger_and_bad_input_is_one_line() -> None:
    outcomes = [Outcome(Trial(Point({"x": x}), 1), {"rate_gflops": 10.0 + x, "cost": 5.0}) for x in range(3)]
    found = front(outcomes, ("rate_gflops", "cost"))
    assert [one.point["x"] for one in found.likely] == [2]
    with pytest.raises(InputError, match="a front of cost; "):
        front(outcomes, ("cost",))
    with pytest.raises(InputError, match="no seed in common"):
        front([outcomes[0], Outcome(Trial(Point({"x": 9}), 2), outcomes[0].responses)], ("rate_gflops", "cost"))
