"""What the flags of a diagnosis promise: few on a calibration of which all is well, and the right one where not.

Durations are drawn from a model that is exactly the one they are judged by: half-normal noise that grows with the
mean, and processes that each are a little faster or slower.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lepaute.measure.fit.diagnostics import machine_name, subject_of
from lepaute.measure.fit.diagnostics.course import machine_of
from lepaute.measure.fit.diagnostics.flag import flags_of
from lepaute.measure.fit.diagnostics.residuals import Residuals


def calls(
    rng, name="kernel dgemm", *, processes=16, each=120, process_sd=0.01, sd=0.08, change=None, noise=None, cores=2
):
    """A subject; `change(time_s, place, size)` multiplies durations, `noise(rng, size)` replaces the half-normal."""
    count = processes * each
    size = 10 ** rng.uniform(2, 6, count)
    predicted = 1e-9 * size + 1e-6
    process = np.repeat(np.arange(processes), each)
    place = process % cores
    time_s = np.concatenate([10.0 * number + np.sort(rng.uniform(0, 4, each)) for number in range(processes)])
    drawn = noise(rng, count) if noise else (np.abs(rng.normal(size=count)) - 0.79788456) / 0.60281027
    measured = predicted * (1 + sd * drawn) * (1 + process_sd * rng.normal(size=processes))[process]
    if change is not None:
        measured = measured * change(time_s, place, size)
    names = tuple(f"core {number}" for number in range(cores))
    return Residuals(
        name, size, "size", measured, predicted, sd * predicted, time_s, process, place,
        np.zeros(count, dtype=np.int64), names, ("",) * cores, weighs_time=True,
    )  # fmt: skip


def flags(parts):
    subjects = [subject_of(part, 1.0, wandering=False) for part in parts]
    machine = machine_of("", [subject.calls for subject in subjects])
    judged = [(subject.name, subject.share, subject.checks) for subject in subjects]
    return flags_of([*judged, (machine_name(machine), 1.0, machine.checks)])


@pytest.mark.long
@pytest.mark.slow
def test_a_calibration_of_which_all_is_well_gets_a_flag_in_one_case_of_a_hundred_at_most():
    rng = np.random.default_rng(20261121)
    n = 150
    flagged = sum(bool(flags([calls(rng, f"kernel {number}") for number in range(5)])) for _ in range(n))
    assert flagged <= stats.binom.ppf(1 - 1e-4, n, 0.01)


def test_heavy_tails_and_wide_processes_raise_no_more_alarms():
    rng = np.random.default_rng(5)
    n = 60
    made = {"processes": 24, "process_sd": 0.03, "noise": lambda rng, count: rng.standard_t(3, count)}
    flagged = sum(bool(flags([calls(rng, f"kernel {number}", **made) for number in range(3)])) for _ in range(n))
    assert flagged <= stats.binom.ppf(1 - 1e-4, n, 0.01)


def test_p_values_of_the_tests_are_no_smaller_than_promised():
    # Under the null a p-value is below 0.05 in one case of twenty; the tests may be cautious, not careless.
    rng = np.random.default_rng(7)
    n, below = 300, {"size": 0, "spread": 0, "autocorrelation": 0, "cores": 0, "drift": 0, "step": 0}
    for _ in range(n):
        for check in subject_of(calls(rng), 1.0, wandering=False).checks:
            if check.kind in below:
                below[check.kind] += check.p_value is not None and check.p_value <= 0.05
    bound = stats.binom.ppf(1 - 1e-4, n, 0.05)
    assert all(count <= bound for count in below.values()), below


def kinds(found, subject=None):
    return {flag.kind for flag in found if subject in (None, flag.subject)}


def share_found(n, plant, kind, *, seed, several=1, **made):
    """Share of `n` calibrations with this planted defect that get a flag of this kind."""
    rng = np.random.default_rng(seed)
    found = [flags([calls(rng, f"kernel {i}", change=plant, **made) for i in range(several)]) for _ in range(n)]
    return np.mean([kind in kinds(one) for one in found])


def test_a_mean_that_is_wrong_at_some_sizes_is_found():
    assert share_found(20, lambda _t, _p, size: 1 + 0.15 * (size > 1e5), "size", seed=1) >= 0.9


def test_noise_that_grows_otherwise_than_the_model_says_is_found():
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(20):
        part = calls(rng, sd=0.02)
        wider = part.predicted_s * (1 + (part.ratio - 1) * np.where(part.size < 1e3, 10, 1))
        found += "spread" in kinds(flags([replace(part, measured_s=np.maximum(wider, 1e-9))]))
    assert found >= 18


def test_a_slow_core_is_found_and_named():
    rng = np.random.default_rng(3)
    found = flags([calls(rng, change=lambda _t, place, _s: 1 + 0.12 * (place == 1), processes=40, each=60)])
    (flag,) = [flag for flag in found if flag.kind == "cores"]
    assert re.match(r"core 1 takes 1[123]\.\d % longer than core 0", flag.sentence)
    assert flag.severity == "notable"


def test_a_drift_over_the_measurement_and_successive_calls_that_are_alike_are_found():
    assert share_found(10, lambda t, _p, _s: 1 + 0.15 * t / 240, "drift", seed=4, processes=24) >= 0.9

    def wandering(rng, count):
        x = rng.normal(size=count)
        for i in range(1, count):
            x[i] = 0.8 * x[i - 1] + 0.6 * x[i]
        return x

    assert share_found(10, None, "autocorrelation", seed=6, noise=wandering) == 1.0


def test_interruptions_that_take_a_tenth_of_the_time_are_found():
    rng = np.random.default_rng(8)
    part = calls(rng)
    hit = rng.random(len(part)) < 0.002
    worse = replace(part, measured_s=part.measured_s * np.where(hit, 100.0, 1.0))
    (flag,) = [flag for flag in flags([worse]) if flag.kind == "outliers"]
    assert flag.severity == "serious"


def test_a_change_in_the_middle_of_the_measurement_is_named_with_its_time_its_size_and_its_kernels():
    rng = np.random.default_rng(9)
    made = {"processes": 30, "change": lambda time_s, _p, _s: 1 + 0.20 * (time_s >= 150)}
    found = flags([calls(rng, f"kernel {number}", **made) for number in range(4)])
    (flag,) = [flag for flag in found if flag.subject == "machine" and flag.kind == "step"]
    assert flag.severity == "serious"
    assert abs(flag.statistic - 0.20) < 0.02
    assert "longer from 2 min 30 s on" in flag.sentence
    assert "in 4 of the 4 kernels" in flag.sentence


def test_a_perturbation_inside_one_process_is_named_with_its_beginning_and_its_end():
    rng = np.random.default_rng(10)
    made = {"processes": 10, "each": 600, "change": lambda time_s, _p, _s: 1 + 0.5 * ((time_s > 51) & (time_s < 52.5))}
    found = flags([calls(rng, f"kernel {number}", **made) for number in range(4)])
    (flag,) = [flag for flag in found if flag.kind == "perturbation"]
    assert "from 51" in flag.sentence
    assert "to 52." in flag.sentence
    assert re.search(r"(49|50|51)\.\d % longer", flag.sentence)
    assert flag.severity == "serious"


def test_a_difference_too_small_to_matter_is_no_flag_nor_is_that_of_a_kernel_that_takes_no_time():
    rng = np.random.default_rng(11)
    part = calls(rng, processes=40, each=1000, process_sd=0.0, change=lambda _t, place, _s: 1 + 0.01 * (place == 1))
    checks = {check.kind: check for check in subject_of(part, 1.0, wandering=False).checks}
    assert checks["cores"].p_value < 1e-6
    assert flags([part]) == []
    rng = np.random.default_rng(12)
    subject = subject_of(calls(rng, change=lambda _t, _p, size: 1 + 2.0 * (size > 1e5)), 1.0, wandering=False)
    seen = [[flag.severity for flag in flags_of([("kernel", share, subject.checks)])] for share in (0.5, 0.005, 0.0005)]
    assert "serious" in seen[0]
    assert set(seen[1]) == {"notable"}
    assert seen[2] == []
