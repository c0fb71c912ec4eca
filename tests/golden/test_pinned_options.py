"""Every option of a prediction, pinned: results change where that is meant, and never unnoticed."""

import json
from functools import cache
from typing import Any

import pytest
from golden.pinned_predictions import CASES, FILE, NOT_PINNED, predicted

REMEDY = "if that is meant: PYTHONPATH=src:tests .venv/bin/python tests/golden/pinned_predictions.py"


@cache
def pinned() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("name", CASES)
def test_a_prediction_is_what_it_was_to_the_last_bit_and_key(name: str) -> None:
    # JSON keeps every digit of a double, so equality of the parsed numbers is equality of bits.
    assert predicted(CASES[name]) == pinned()[name], REMEDY
    assert set(pinned()[name]["simulation"]).isdisjoint(NOT_PINNED)


def test_all_cases_are_pinned_and_at_least_sixty() -> None:
    assert set(CASES) == set(pinned()), REMEDY
    assert len(CASES) >= 60
