"""Splitting variation over days into a common part and parts of single units, exact cases."""

import pytest

from lepaute.errors import FitError
from scripts.day_effects import day_effects


def table(values: dict[str, list[float]]) -> list[tuple[str, int, float]]:
    """{unit: values of days 0, 1, ...} as rows."""
    return [(unit, day, value) for unit, listed in values.items() for day, value in enumerate(listed)]


def test_units_that_move_together_have_no_part_of_their_own() -> None:
    effects = day_effects(table({"a": [0.9, 1.0, 1.1], "b": [9.0, 10.0, 11.0]}))
    assert effects.common_relative_sd == pytest.approx(0.1)  # sd of -0.1, 0, 0.1
    assert effects.unit_relative_sd == pytest.approx(0, abs=1e-12)
    assert (effects.degrees_of_freedom, effects.days, effects.units) == (2, 3, 2)


def test_units_that_move_oppositely_have_nothing_in_common() -> None:
    effects = day_effects(table({"a": [0.9, 1.0, 1.1], "b": [11.0, 10.0, 9.0]}))
    assert effects.common_relative_sd == 0
    # squares of the remainders: 4 of 0.01; degrees of freedom (3 - 1) (2 - 1)
    assert effects.unit_relative_sd == pytest.approx((0.04 / 2) ** 0.5)


def test_differences_between_units_do_not_count() -> None:
    assert day_effects(table({"a": [1.0, 1.0], "b": [5.0, 5.0]})).unit_relative_sd == 0


def test_several_values_of_a_unit_on_one_day_are_averaged() -> None:
    once = day_effects(table({"a": [0.9, 1.1], "b": [1.0, 1.2]}))
    rows = [("a", 0, 0.8), ("a", 0, 1.0), ("a", 1, 1.1), ("b", 0, 1.0), ("b", 1, 1.2)]
    assert day_effects(rows) == once


def test_a_day_that_saw_less_than_half_of_the_units_does_not_count() -> None:
    rows = table({"a": [0.9, 1.1], "b": [0.9, 1.1], "c": [0.9, 1.1]})
    assert day_effects([*rows, ("a", 2, 50.0)]) == day_effects(rows)
    assert day_effects([*rows, ("a", 2, 1.5), ("b", 2, 1.5)]).days == 3


@pytest.mark.parametrize("rows", [[], [("a", 0, 1.0), ("a", 1, 1.0)], [("a", 0, 1.0), ("b", 0, 1.0)]])
def test_one_day_or_one_unit_is_too_little(rows: list[tuple[str, int, float]]) -> None:
    with pytest.raises(FitError, match="two units and two days"):
        day_effects(rows)


def test_a_value_that_is_not_positive_is_refused() -> None:
    with pytest.raises(FitError, match="above 0"):
        day_effects([("a", 0, 0.0)])
