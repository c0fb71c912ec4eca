"""The clock of a core and the durations on it: what was planted comes back."""

import numpy as np
import pandas
import pytest

from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.fit.kernels.kernel_fit import fit_kernel
from lepaute.measure.fit.observations.calls import calls_by_kernel, pooled_observations
from lepaute.measure.fit.variability.dependence import FrequencyEffect, frequency_effect, monitoring_of

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


def test_durations_that_go_with_the_clock_are_explained_by_it() -> None:
    found = observed(-1.0)
    assert found.exponent == pytest.approx(-1.0, abs=0.1)
    assert found.explained > 0.7
    assert "of what differs" in found.sentence


def test_durations_that_do_not_are_not() -> None:
    found = observed(0.0)
    assert abs(found.exponent) < 5 * found.error
    assert found.explained < 0.1


def test_a_clock_that_stands_still_explains_nothing() -> None:
    assert "too little to matter" in observed(-1.0, swing=1e-4).sentence


def test_samples_too_far_apart_and_no_monitoring_say_nothing() -> None:
    assert observed(-1.0, gap_s=60.0) is None


def test_monitoring_is_taken_from_the_archive_where_it_has_a_frequency(tmp_path) -> None:
    with ArchiveWriter(tmp_path / "a.zip", {"kind": "calibration", "created": "2026-11-21T00:00:00+00:00"}) as archive:
        archive.add_table(
            "monitoring/n1.parquet", pandas.DataFrame({"monotonic_s": [1.0], "frequency_core0_hz": [2e9]})
        )
        archive.add_table("monitoring/n2.parquet", pandas.DataFrame({"monotonic_s": [1.0], "load_1min": [0.5]}))
    assert list(monitoring_of(Archive.open(tmp_path / "a.zip"), ("n1", "n2", "n3"))) == [0]
