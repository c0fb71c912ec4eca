"""Pages of studies: one file that needs nothing else, escaped, with every picture; and Pareto fronts."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.study.evaluation import Outcome, Point, Trial, trials_of
from lepaute.study.pareto import front, is_on_front
from lepaute.study.report_page import Asked, effects_page, front_page, sobol_page, tuned_page
from lepaute.study.sensitivity import effects
from lepaute.study.sensitivity_sobol import sobol
from lepaute.study.tune import crossed
from lepaute.study.tune_real import correct

ASKED = Asked("NB <and> grid", "Which & why?", "lepaute study tune 'a <b>.yaml'", "dahu, seeds 1 to 6")
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
    return [Outcome(one, {"time_s": 1.0 + float(one.point["x"])}) for one in trials]  # type: ignore[arg-type]


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
    page = tuned_page(ASKED, found, correct([one for one in found.outcomes if one.refusal is None], lambda _: 12.0, 3))
    assert Pictures(page).pictures == 2
    assert Pictures(page).loaded == []
    for words in ("Which &amp; why?", "tune &#39;a &lt;b&gt;.yaml&#39;", "does &lt;not&gt; fit", "Real runs",
                  "are not compared; calibrate their sizes", "NB &lt;and&gt; grid"):  # fmt: skip
        assert words in page
    assert "<8x2>" not in page


def test_pages_of_effects_indices_and_fronts_have_their_pictures() -> None:
    outcomes = crossed(POINTS, evaluate, 5).outcomes
    page = effects_page(ASKED, effects(outcomes), outcomes)
    assert Pictures(page).pictures == 2
    assert "1 points were refused" in page
    indices = sobol({"x": lambda u: u}, sloping, 16)
    assert Pictures(sobol_page(ASKED, indices)).pictures == 1
    page = front_page(ASKED, front(outcomes, ("time_s", "cost")), outcomes)
    assert Pictures(page).pictures == 1
    numbers = [float(each) for each in re.findall(r'<path class="(?:dot|mark)" d="M([\d.]+) ', page)]
    assert numbers
    assert all(0 <= each <= 760 for each in numbers)


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
    found = {one.point: one.probability for one in front(outcomes, ("time_s", "cost")).members}
    assert found[points[0]] == pytest.approx(0.92, abs=0.05)
    assert found[points[0]] + found[points[1]] == pytest.approx(1.0)


def test_rates_are_better_when_larger_and_bad_input_is_one_line() -> None:
    outcomes = [Outcome(Trial(Point({"x": x}), 1), {"rate_gflops": 10.0 + x, "cost": 5.0}) for x in range(3)]
    found = front(outcomes, ("rate_gflops", "cost"))
    assert [one.point["x"] for one in found.likely] == [2]
    with pytest.raises(InputError, match="1 responses of 3 points"):
        front(outcomes, ("cost",))
    with pytest.raises(InputError, match="no seed in common"):
        front([outcomes[0], Outcome(Trial(Point({"x": 9}), 2), outcomes[0].responses)], ("rate_gflops", "cost"))
