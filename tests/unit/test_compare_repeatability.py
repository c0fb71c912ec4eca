"""What benchmarks report of the same calls, and how far repetitions of that differ."""

import numpy as np
import pandas
import pytest
from support.one_run import one_run_values, stopped_mean

from lepaute.errors import InputError
from lepaute.measure.compare.resampling import TRIALS, normalised, resampled_trials


def test_trials_are_divided_by_the_least() -> None:
    assert normalised([3.0, 2.0, 5.0]).tolist() == [1.5, 1.0, 2.5]
    for values in ([], [1.0, 0.0], [1.0, float("nan")]):
        with pytest.raises(InputError, match="above 0"):
            normalised(values)


def test_the_stopping_rule_of_skampi_takes_at_least_so_many_calls_and_no_more_than_it_needs() -> None:
    assert stopped_mean(np.array([1.0] * 8 + [100.0])) == 1.0, "equal calls: the error is 0 after the least number"
    # One call of 100 among ones: the error of the mean stays at 99 to 100 % of it, whatever follows.
    assert stopped_mean(np.array([100.0] + [1.0] * 99)) == pytest.approx(1.99)
    noisy = np.random.default_rng(2).uniform(0, 2, 10_000)
    until = stopped_mean(noisy)
    counts = [n for n in range(8, 200) if np.std(noisy[:n], ddof=1) / np.sqrt(n) <= 0.1 * noisy[:n].mean()]
    assert until == pytest.approx(noisy[: counts[0]].mean())


def test_osu_takes_the_mean_of_the_ranks_and_intel_the_slowest_one_without_calls_to_warm_up() -> None:
    raw = pandas.DataFrame(
        [
            {"mpirun": 0, "operation": "Bcast", "form": "blocking", "size_bytes": 8, "call": call, "rank": rank}
            | {"start_ns": 1000, "end_ns": 1000 + ns}
            for rank, durations in enumerate(((900, 10, 20), (900, 30, 40)))
            for call, ns in zip((-1, 0, 1), durations, strict=True)
        ]
    )
    calls = pandas.DataFrame(
        {"mpirun": 0, "operation": "Bcast", "form": "blocking", "size_bytes": 8, "global_s": [30e-9, 50e-9]}
    )
    (row,) = one_run_values(raw, calls, "global_s").to_dict("records")
    assert row["osu_s"] == pytest.approx(25e-9)  # of 15 and 35
    assert row["intel_s"] == pytest.approx(35e-9)
    assert row["skampi_s"] == pytest.approx(40e-9)  # fewer calls than the rule takes at least: all


def test_means_of_more_mpiruns_repeat_more_closely() -> None:
    """The logarithms of mpiruns differ by 0.1: thirty trials of one by about 4.1 deviations, of 25 by a fifth of it."""
    rng = np.random.default_rng(5)
    mpiruns = np.exp(rng.normal(0, 0.1, 2000))
    one, many = (np.mean([resampled_trials(mpiruns, n, rng).max() - 1 for _ in range(50)]) for n in (1, 25))
    assert len(resampled_trials(mpiruns, 1, rng)) == TRIALS
    assert one == pytest.approx(np.exp(0.41) - 1, rel=0.15)
    assert many == pytest.approx(0.41 / 5, rel=0.15)
