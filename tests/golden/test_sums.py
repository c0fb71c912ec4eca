"""From Python 3.12 on sum() of floats rounds otherwise than before: what is promised to the last bit adds by fsum()."""

import builtins
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from golden.pinned_predictions import CASES, predicted

import lepaute

PACKAGE = Path(lepaute.__file__).parent
#: Progress, which no result depends on.
FREE = {"simulate/tasks.py"}
sum_of = builtins.sum


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Modules of Lepaute that have called sum() with three fractions or more: with two, all Pythons round alike."""
    seen: set[str] = set()

    def noting(values: Iterable[Any], /, start: Any = 0) -> Any:
        listed = list(values)
        file = Path(sys._getframe(1).f_code.co_filename)
        if file.is_relative_to(PACKAGE) and sum_of(type(each) is float and each % 1 != 0 for each in listed) > 2:
            seen.add(str(file.relative_to(PACKAGE)))
        return sum_of(listed, start)

    monkeypatch.setattr(builtins, "sum", noting)
    return seen


@pytest.mark.parametrize("name", ["parts of the interval", "sampled", "random mapping", "stencil, memory and noise"])
def test_a_prediction_does_not_add_floats_by_sum(name: str, places: set[str]) -> None:
    predicted(CASES[name])
    assert places <= FREE
