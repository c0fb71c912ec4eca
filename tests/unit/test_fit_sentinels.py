"""What a fit makes of the sentinels of a calibration: the machine's speed, whether it wandered, its drift."""

import re
from pathlib import Path

import numpy as np
import pytest
from support_fit import sentinel_rows, write_calibration

from lepaute.errors import FitError
from lepaute.measure.archive import Archive
from lepaute.measure.fit import diagnose, platform_and_models
from lepaute.measure.fit.report import write_report
from lepaute.measure.fit.variability.sentinels import Watch, change_of, drift_of, sentinel_of, watches

COUNT = 30
STILL = np.zeros(COUNT)
#: 60 to 56.6 Gflop/s in the last of five blocks.
STEP = np.where(np.arange(COUNT) >= 24, 0.06, 0.0)
EPISODE = np.where((np.arange(COUNT) >= 12) & (np.arange(COUNT) < 18), 0.08, 0.0)
TREND = np.linspace(0.0, 0.05, COUNT)


def archive_of(folder: Path, level: np.ndarray, **more: object) -> Archive:
    return Archive.open(write_calibration(folder / "calibration.zip", sentinels=sentinel_rows(level, **more)))


def watch_of(folder: Path, level: np.ndarray) -> Watch:
    (watch,) = watches([archive_of(folder, level)])
    return watch


def test_a_sentinel_is_the_trimmed_mean_of_its_calls_mean_over_cores(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, STILL)
    assert len(watch) == COUNT
    assert watch.size == (1024, 1024, 128)
    # The one interrupted call of twenty is left out: 5 ms and the mean of the noise of a call, 0.8 %.
    assert (watch.duration_s, watch.blocks) == (pytest.approx(np.full(COUNT, 5.040e-3), rel=0.01), 5)


def test_the_sentinel_of_the_platform_has_its_error(tmp_path: Path) -> None:
    sentinel = sentinel_of([watch_of(tmp_path, STEP)])
    assert sentinel.duration_s == pytest.approx(5.040e-3 * (1 + 0.06 * 0.2), rel=0.004)
    # Of 30 with 0.3 % on each of two cores; one step of 6 % among 29 differences adds a little.
    assert 0.0003 < sentinel.relative_error < 0.0020
    assert sentinel.ended.startswith("2001-09-09T01:48")


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (STEP, r"the machine slowed by (5\.[6-9]|6(\.\d)?) % \(53\.\d -> 50\.\d Gflop/s a core\) in block 5 of 5$"),
        (EPISODE, r"the machine slowed by (7\.9|8(\.\d)?) % \(53\.\d -> 49\.\d Gflop/s a core\) in block 3 of 5 and"),
        (TREND, r"the machine slowed by (4\.[5-9]|5(\.\d)?) % little by little \(5.* -> 5.* Gflop/s a core\) in 1\.9"),
    ],
)
def test_a_machine_that_wandered_is_told_with_figures(tmp_path: Path, level: np.ndarray, text: str) -> None:
    found = change_of(watch_of(tmp_path, level))
    assert re.search(text, found.sentence), found.sentence


def test_a_machine_that_stays_is_not_told_of(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, STILL)
    assert change_of(watch) is None
    assert drift_of([watch]).relative_sd(600.0) < 0.01


def test_the_drift_of_a_machine_that_stepped_is_wide(tmp_path: Path) -> None:
    drift = drift_of([watch_of(tmp_path, STEP)])
    assert 0.02 < drift.relative_sd(600.0) < 0.3
    assert drift.span_s == pytest.approx(4.0 * (COUNT - 1))
    assert drift.common_relative_sd > 0.005


def test_disturbed_sentinels_are_left_out_unless_most_are(tmp_path: Path) -> None:
    rows = sentinel_rows(np.where(np.arange(COUNT) == 7, 0.5, 0.0))
    rows.loc[rows["order"] == 7, "disturbed"] = True
    (watch,) = watches([Archive.open(write_calibration(tmp_path / "one.zip", sentinels=rows))])
    assert len(watch.quiet()) == COUNT - 1
    assert change_of(watch) is None
    rows["disturbed"] = True
    (watch,) = watches([Archive.open(write_calibration(tmp_path / "all.zip", sentinels=rows))])
    assert len(watch.quiet()) == COUNT


def test_few_sentinels_say_what_they_can(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, np.zeros(3))
    assert change_of(watch) is None
    assert drift_of([watch]) is None
    assert sentinel_of([watch]) is not None
    assert sentinel_of([]) is None
    assert drift_of([]) is None


@pytest.mark.slow
def test_the_fit_and_its_report_tell(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, STEP)
    platform, fitted = platform_and_models(archive, "here")
    assert any("the machine slowed by" in text for text in fitted.warnings)
    assert platform.sentinel is not None
    assert platform.days.drift is not None
    assert platform.days.at_lag(3600).common_relative_sd > platform.days.common_relative_sd
    diagnosis = diagnose(archive, fitted)
    assert any(flag.kind == "sentinels" and "The machine slowed by" in flag.sentence for flag in diagnosis.flags)
    page = tmp_path / "report.html"
    write_report(diagnosis, page)
    assert "Sentinels in the course of the calibration" in page.read_text()


@pytest.mark.slow
def test_archives_without_sentinels_have_no_drift(tmp_path: Path) -> None:
    platform, fitted = platform_and_models(Archive.open(write_calibration(tmp_path / "old.zip")), "here")
    assert platform.sentinel is None
    assert platform.days.drift is None
    assert not any("slowed" in text for text in fitted.warnings)


def test_a_table_that_cannot_be_is_refused(tmp_path: Path) -> None:
    rows = sentinel_rows(STILL).drop(columns="order")
    with pytest.raises(FitError, match="lacks the column order"):
        watches([Archive.open(write_calibration(tmp_path / "bad.zip", sentinels=rows))])
