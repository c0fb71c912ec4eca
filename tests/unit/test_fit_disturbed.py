"""What disturbs a calibration: rows that fits leave out, sentinels, the clock of the cores, a speed that wanders."""

import re
from pathlib import Path

import numpy as np
import pandas
import pytest
from support_fit import sentinel_rows, write_calibration

from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.fit import diagnose, platform_and_models
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.observations.calibrations import without_disturbed
from lepaute.measure.fit.observations.calls import calls_by_kernel, pooled_observations
from lepaute.measure.fit.report import write_report
from lepaute.measure.fit.variability.dependence import FrequencyEffect, frequency_effect, monitoring_of
from lepaute.measure.fit.variability.sentinels import Watch, change_of, drift_of, sentinel_of, watches
from lepaute.simulate import Hpl, predict
from lepaute.simulate.platform import load_platform, override

KERNELS = ("probe", "cpu")


def runs(*rows: tuple[int, int, bool], probe: str = "dgemm", cpu: int = 0) -> pandas.DataFrame:
    """Two rows of observations for each run (block, attempt, disturbed)."""
    frame = pandas.DataFrame([row for row in rows for _ in range(2)], columns=["block", "attempt", "disturbed"])
    return frame.assign(probe=probe, cpu=cpu, duration_s=1.0)


def left(frames: list[pandas.DataFrame]) -> list[tuple[int, int, bool]]:
    pairs = [
        (int(block), int(attempt), bool(disturbed))
        for frame in frames
        for block, attempt, disturbed in zip(frame["block"], frame["attempt"], frame["disturbed"], strict=True)
    ]
    return sorted(set(pairs))


def test_disturbed_runs_are_left_out_where_three_blocks_have_an_undisturbed_one_else_all_are_used():
    table = runs((0, 0, True), (0, 1, False), (1, 0, False), (2, 0, False), (3, 0, True), (4, 0, True), (4, 1, True))
    kept, short = without_disturbed([table], KERNELS)
    assert left(kept) == [(0, 1, False), (1, 0, False), (2, 0, False)]
    assert short == ()
    assert len(table) == 14  # what was given stays as it was
    table = runs((0, 0, True), (0, 1, False), (1, 0, False), (2, 0, True), (3, 0, True))
    kept, short = without_disturbed([table], KERNELS)
    assert short == ("dgemm 0",)
    assert len(kept[0]) == len(table)


def test_each_probe_and_core_is_judged_for_itself():
    quiet = [(block, 0, False) for block in range(3)]
    poor = runs((0, 0, False), (1, 0, True), (2, 0, True), cpu=1)
    table = pandas.concat([runs(*quiet, (3, 0, True)), poor, runs(*quiet, (0, 1, True), probe="hpl_steps_1x1", cpu=1)])
    (kept,), short = without_disturbed([table], KERNELS)
    assert short == ("dgemm 1",)
    counts = kept.groupby(["probe", "cpu"])["disturbed"].agg(["size", "sum"])
    assert counts.to_dict("index") == {
        ("dgemm", 0): {"size": 6, "sum": 0},
        ("dgemm", 1): {"size": 6, "sum": 4},
        ("hpl_steps_1x1", 1): {"size": 6, "sum": 0},
    }


def test_blocks_of_several_archives_count_together_and_old_archives_count_as_undisturbed():
    old = runs((0, 0, False), (1, 0, False)).drop(columns=["attempt", "disturbed"])
    kept, short = without_disturbed([old, runs((0, 0, True), (1, 0, False))], KERNELS)
    assert short == ()
    assert [len(frame) for frame in kept] == [4, 2]


COUNT = 30
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
    watch = watch_of(tmp_path, np.zeros(COUNT))
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


ROWS, STEPS = 6000, 300


def observed(exponent: float, *, swing: float = 0.1, gap_s: float = 1.0) -> FrequencyEffect | None:
    """Steps of twenty calls on two cores whose clocks swing, durations with frequency to the power `exponent`."""
    rng = np.random.default_rng(1)
    m, n = np.floor(10 ** rng.uniform(2.4, 2.9, (2, ROWS)))
    step = np.arange(ROWS) * STEPS // ROWS
    core = step % 2
    start_s = 1000.0 + step * 0.5 + (np.arange(ROWS) % (ROWS // STEPS)) * 0.01
    hertz = 2e9 * (1 + swing * np.sin(start_s / 20.0 + core))
    duration = (2e-9 * m * n * 128 / 64 + 1e-6) * (hertz / 2e9) ** exponent * (1 + 0.02 * rng.normal(size=ROWS))
    frame = pandas.DataFrame(
        {
            "design_row": step, "position": 1, "kernel": "dgemm", "m": m, "n": n, "k": 128, "start_s": start_s,
            "duration_s": duration, "rank": 0, "cpu": core, "block": 0, "probe": "hpl_steps_1x1", "clock_cost_s": 0.0,
        }
    )  # fmt: skip
    table = pooled_observations([frame])
    fitted = {name: (calls, fit_kernel(calls)) for name, calls in calls_by_kernel(table).items()}
    at = np.arange(990.0, 1160.0, gap_s)
    samples = {f"frequency_core{number}_hz": 2e9 * (1 + swing * np.sin(at / 20.0 + number)) for number in (0, 1)}
    return frequency_effect(table, fitted, {0: pandas.DataFrame({"monotonic_s": at, **samples})})


def test_the_clock_explains_durations_that_go_with_it_and_no_others() -> None:
    found = observed(-1.0)
    assert found.exponent == pytest.approx(-1.0, abs=0.1)
    assert found.explained > 0.7
    assert "of what differs" in found.sentence
    found = observed(0.0)
    assert abs(found.exponent) < 5 * found.error
    assert found.explained < 0.1
    assert "too little to matter" in observed(-1.0, swing=1e-4).sentence
    assert observed(-1.0, gap_s=60.0) is None


def test_monitoring_is_taken_from_the_archive_where_it_has_a_frequency(tmp_path) -> None:
    with ArchiveWriter(tmp_path / "a.zip", {"kind": "calibration", "created": "2026-11-21T00:00:00+00:00"}) as archive:
        archive.add_table(
            "monitoring/n1.parquet", pandas.DataFrame({"monotonic_s": [1.0], "frequency_core0_hz": [2e9]})
        )
        archive.add_table("monitoring/n2.parquet", pandas.DataFrame({"monotonic_s": [1.0], "load_1min": [0.5]}))
    assert list(monitoring_of(Archive.open(tmp_path / "a.zip"), ("n1", "n2", "n3"))) == [0]


def test_the_file_of_a_platform_has_the_wandering_and_predictions_draw_it(tmp_path: Path) -> None:
    wandering = "{relative_sd: 0.1, correlation_s: 0.5, relative_sd_error: 0.1, correlation_error: 0.2}"
    platform = override(load_platform("dahu"), {"wandering": wandering, "episodes": "null"})
    platform.to_yaml(tmp_path / "p.yaml")
    again = load_platform(tmp_path / "p.yaml")
    assert again.wandering == platform.wandering
    times = [predict(Hpl(n=1000), each, runs=2).time_s for each in (again, override(again, {"wandering": "null"}))]
    assert times[0].mean != times[1].mean
