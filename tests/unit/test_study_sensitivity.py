"""Main effects, interactions and Sobol indices of small tables."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from lepaute.kit.text import duration
from lepaute.study.evaluation import Outcome, Point, Trial, answered, trials_of
from lepaute.study.sensitivity import effects
from lepaute.study.sobol import Index, simulations_of, sobol

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
    assert re.match(
        r"a matters most: time 30\d\.\d % more \(95 %: .* more\) at 4 than at 1; of the variance .*: a 9", found.text
    )
    chance = replace(found, terms=(replace(found.terms[0], p_value=0.5), *found.terms[1:]))
    assert chance.terms[1].is_significant
    assert chance.sentence.startswith("a explains the most, 9")
    assert "but that may be chance; shown to matter: b " in chance.sentence
    little = replace(
        found,
        terms=tuple(
            replace(term, widest=(replace(term.widest[0], high=1.02), 1)) if term.widest else term
            for term in found.terms
        ),
    )
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
