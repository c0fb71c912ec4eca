"""The scripts of validation/: statistics, goals and pages, on data made here (tests do not read the reference data)."""

import factorial
import pandas
import pytest
from support.goals import at_most, status
from what_if.effects import effect_goals, same_order


def test_a_goal_that_cannot_be_judged_is_not_met() -> None:
    assert at_most("error", 3.0, 3.0).met is True
    assert at_most("error", 3.0, 3.01).met is False
    assert at_most("error", 3.0, float("nan")).met is None
    assert status([at_most("a", 3.0, 1.0)]) == 0
    assert status([at_most("a", 3.0, 1.0), at_most("b", 3.0, float("nan"))]) == 1


def test_main_effects_of_a_balanced_design_are_those_worked_out_by_hand() -> None:
    levels = [(nb, depth, bcast, swap) for nb in (128, 256) for depth in (0, 1) for bcast in (0, 1) for swap in (0, 1)]
    frame = pandas.DataFrame(levels, columns=list(factorial.FACTORS))
    # Balanced: the sum of squares of a two-level factor is n * (half the difference of its means)^2.
    frame["time_s"] = 100.0 + 3.0 * (frame["block_size"] == 256) - 5.0 * frame["depth"] + 1.0 * frame["bcast"]
    frame["time_s"] += 0.25 * (-1.0) ** (frame["depth"] + frame["bcast"])  # an interaction: all that is left over
    found = factorial.main_effects(frame, "time_s")
    assert list(found["factor"]) == ["depth", "block_size", "bcast", "swap"]
    assert found["sum_of_squares"].to_numpy() == pytest.approx([16 * 2.5**2, 16 * 1.5**2, 16 * 0.5**2, 0.0], abs=1e-9)
    assert list(found["degrees"]) == [1, 1, 1, 1]
    # The residual has 16 - 5 degrees of freedom and the sum of squares 16 * 0.25^2.
    assert found["f"][0] == pytest.approx(100.0 / (1.0 / 11.0))


def test_only_pairs_that_the_published_times_tell_apart_have_an_order() -> None:
    published = pandas.Series({"a": 100.0, "b": 101.0, "c": 150.0})
    assert same_order(pandas.Series({"a": 11.0, "b": 10.0, "c": 20.0}), published) == (2, 2)
    assert same_order(pandas.Series({"a": 21.0, "b": 10.0, "c": 20.0}), published) == (1, 2)
    assert same_order(pandas.Series({"a": 20.0, "b": 20.0, "c": 20.0}), published) == (0, 2)  # equal is no order


def test_effects_must_have_the_published_sign_and_be_near() -> None:
    published = pandas.Series({"one": 20.0, "two": -3.0, "three": 0.5})
    near, small = pandas.Series({"one": 24.0, "two": -1.0, "three": -0.5}), pandas.Series({"one": 14.0, "two": 1.0})
    assert [goal.met for goal in effect_goals(near, published, "x")] == [True, True]
    assert [goal.met for goal in effect_goals(small, published[["one", "two"]], "x")] == [False, False]
    assert effect_goals(0.0 * near, published, "x")[0].met is False  # no effect at all has no direction
