"""benchmarks/speed.py: medians of what is measured in turn, and how the cost of an event is judged."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from engine import cases
from engine.before import built
from engine.command import NOW, NUMBERS, Cost, in_turn, median, nothing
from engine.scaling import Point, exponent, flatness


def cost(user_s: float, messages: float = 900.0) -> Cost:
    return Cost(user_s, 2 * user_s, user_s, 1e6, 5e7, messages, (1.5,), "full")


def test_the_median_of_each_figure_is_taken_and_failures_are_told() -> None:
    found = median([cost(3.0), cost(1.0), cost(2.0)])
    assert (found.user_s, found.wall_s, found.repeats) == (2.0, 4.0, 3)
    assert median([nothing("refused"), cost(1.0)]).problem == "refused"
    assert median([cost(1.0), nothing("stopped")]).repeats == 1


def test_a_cost_comes_back_from_its_row_of_the_table() -> None:
    for one in (cost(1.5), nothing("refused")):
        row = {name: getattr(one, name) for name in NUMBERS} | {"times_s": " ".join(map(repr, one.times_s))}
        row = {name: str(value).replace("nan", "") for name, value in row.items()}  # as CSV has it
        again = Cost.of_row(row | {"fidelity": one.fidelity, "problem": one.problem})
        assert repr(again) == repr(one)  # NaN is not equal to itself


def test_programs_are_run_in_turn_in_alternating_order() -> None:
    order: list[str] = []

    def run(name: str, user_s: float) -> Cost:
        order.append(name)
        return cost(user_s)

    found = in_turn({"old": lambda: run("old", 10.0), "new": lambda: run("new", 1.0)})
    # The old one is long, and run three times; the new one five times.
    assert order == ["old", "new", "new", "old", "old", "new", "new", "new"]
    assert (found["old"].repeats, found["new"].repeats) == (3, 5)


def test_an_event_is_a_message_or_a_turn_of_a_rank_in_a_step() -> None:
    square = cases.Square(side=2, steps=25)
    point = Point.of(NOW.name, square, cost(1.3), start_s=0.3)
    assert point.events == 900 + 4 * 25
    assert point.event_ns == pytest.approx(1e6)  # 1 s for 1000 events
    assert Point.of(NOW.name, square, cost(0.2), start_s=0.3) is None
    assert Point.of(NOW.name, square, nothing("refused"), start_s=0.3) is None


def test_flatness_is_against_1024_ranks_and_against_the_middle_of_the_steps() -> None:
    points = [Point("now", ranks, 10, spent_s, 1e9) for ranks, spent_s in ((64, 9.0), (1024, 10.0), (4096, 12.0))]
    assert flatness(points, "ranks") == (pytest.approx(1.2), 1024)
    steps = [replace(point, ranks=1024, steps=steps) for point, steps in zip(points, (3, 2, 1), strict=True)]
    assert flatness(steps, "steps") == (pytest.approx(1.2), 2)


def test_the_exponent_is_that_of_the_power_law_that_made_the_points() -> None:
    points = [Point("now", 64, 1, 1e-9 * events**1.25, events) for events in (1e6, 1e7, 1e8)]
    assert exponent(points) == pytest.approx(1.25)


def test_a_version_that_does_not_exist_is_refused_with_a_reason() -> None:
    with pytest.raises(RuntimeError, match="git rev-parse"):
        built("no-such-revision")
