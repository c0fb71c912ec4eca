"""A prediction some time after the calibration: the day's effect grows by the drift, and the result says so."""

import pytest

from lepaute.errors import InputError
from lepaute.kit.quantities import lag_of
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.platform.io import override, parse_platform
from lepaute.simulate.platform.schema import Platform, platform_text

HPL = Hpl(n=600, p=2, q=2)
DRIFT = "{slope_per_s: 1.0e-6, span_s: 120, common_relative_sd: 0.005}"
SENTINEL = "{m: 1024, n: 1024, k: 128, duration_s: 0.005, relative_error: 0.001, ended: '2026-11-22T20:13:49+00:00'}"


@pytest.fixture(scope="module")
def drifting(dahu: Platform) -> Platform:
    return override(dahu, {"days.drift": DRIFT})


def test_the_effect_of_the_day_grows_with_the_lag(drifting: Platform) -> None:
    common = drifting.days.common_relative_sd
    # Of a random walk: 2 * slope * (lag + span / 3), less what the blocks hold already.
    expected = (common**2 + 2e-6 * (600 + 40) - 0.005**2) ** 0.5
    assert drifting.days.at_lag(600).common_relative_sd == pytest.approx(expected)
    assert drifting.days.at_lag(1e9).common_relative_sd <= 0.51
    days = Layers.only("days")
    later, soon = (predict(HPL, drifting, runs=20, lag_s=lag_s, layers=days).time_s for lag_s in (600.0, None))
    assert later.half_width_percent > 1.3 * soon.half_width_percent  # type: ignore[operator]


def test_the_result_has_the_lag_and_the_digest_of_the_calibrated_platform(drifting: Platform) -> None:
    told = predict(HPL, drifting, runs=2, lag_s=600).to_dict()
    assert told["parameters"]["lag_s"] == 600
    assert told["platform_sha256"] == drifting.sha256
    assert any("measured over 2 min: over a lag of 10 min it is extrapolated" in text for text in told["warnings"])
    assert "lag_s" not in predict(HPL, drifting, runs=2).to_dict()["parameters"]


def test_a_drift_that_is_left_out_is_told_where_it_matters(drifting: Platform, dahu: Platform) -> None:
    assert any("--lag 1h" in text for text in predict(HPL, drifting, runs=2).warnings)
    little = override(drifting, {"days.drift.slope_per_s": "1.0e-9"})
    assert not any("drift" in text for text in predict(HPL, little, runs=2).warnings)
    assert not any("drift" in text for text in predict(HPL, dahu, runs=2).warnings)


def test_a_platform_without_drift_says_that_a_lag_changes_nothing(dahu: Platform) -> None:
    later = predict(HPL, dahu, runs=2, lag_s=600)
    assert later.time_s == predict(HPL, dahu, runs=2).time_s
    assert any("does not say how the machine drifts" in text for text in later.warnings)


def test_both_fields_survive_a_file_and_leave_other_digests_alone(dahu: Platform) -> None:
    whole = override(dahu, {"days.drift": DRIFT, "sentinel": SENTINEL})
    assert parse_platform(platform_text(whole)) == whole
    assert "drift" not in platform_text(dahu)
    assert whole.sentinel.gflops == pytest.approx(53.7, abs=0.1)


def test_a_bounded_drift_stops_growing(drifting: Platform) -> None:
    bounded = override(drifting, {"days.drift.range_s": "10"})
    assert bounded.days.at_lag(600) == pytest.approx(bounded.days.at_lag(6000))
    assert bounded.days.at_lag(600).common_relative_sd < drifting.days.at_lag(600).common_relative_sd  # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "lag_s"), [("90", 90), ("90s", 90), ("1.5min", 90), ("2h", 7200), ("3d", 259200)])
def test_a_lag_is_a_time(text: str, lag_s: float) -> None:
    assert lag_of(text) == lag_s


@pytest.mark.parametrize("text", ["", "-1", "1 week", "nan", "inf", "1e5", "²"])
def test_no_lag(text: str) -> None:
    with pytest.raises(InputError, match="such as 90s, 30min, 2h or 3d"):
        lag_of(text)
