"""An interval of durations that reaches below zero never comes without a word."""

import json

import pytest

from lepaute.cli.main import main
from lepaute.simulate.prediction import Run
from lepaute.simulate.warnings import interval_warnings

#: Runs of days that differ by half: of two of them, Student's interval is some twelve standard deviations wide.
WIDE = ("predict", "hpl", "-p", "dahu", "--n", "16", "--grid", "1x1", "--set", "days.common_relative_sd=0.5")


def runs(*times_s: float, rate: float | None = None) -> list[Run]:
    return [Run(seed, time_s, rate) for seed, time_s in enumerate(times_s)]


def test_only_an_interval_that_reaches_below_zero_is_warned_of_and_once() -> None:
    assert interval_warnings(runs(1.0)) == []  # one run has no interval
    assert interval_warnings(runs(1.0, 1.01, 0.99)) == []
    # Mean 0.3825, sd 0.436, t(0.975, 3) = 3.182: 0.3825 - 3.182 * 0.436 * sqrt(1.25) = -1.17.
    (warning,) = interval_warnings(runs(0.1, 0.2, 0.2, 1.03))
    assert warning.startswith("the 95 % interval of the time reaches below zero")
    assert interval_warnings(runs(*[0.1] * 39, 5.0)) == []  # 40 runs: quantiles, which are those of durations


def test_text_and_json_of_a_prediction_have_the_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WIDE, "--runs", "2", "--seed", "21", "--json"]) == 0
    prediction = json.loads(capsys.readouterr().out)
    assert prediction["time_s"]["low"] < 0
    assert sum("reaches below zero" in warning for warning in prediction["warnings"]) == 1
    assert main([*WIDE, "--runs", "2", "--seed", "21"]) == 0
    assert "warning: the 95 % interval of the time" in capsys.readouterr().out
