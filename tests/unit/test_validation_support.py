"""What the scripts of validation/ compute, on data made here (tests do not read the reference data)."""

from pathlib import Path

import factorial
import numpy as np
import pandas
import pytest
from population.simulated import dahu_like, simulated
from population.two_sample import combined, levels, p_values
from same_bits import compared, differing, judged, parsed
from support.report import at_most, status
from truth import law as laws
from truth.calibration import CLOCK_S, write_calibration
from truth.runs import true_platform, true_runs_s
from what_if.runs import effect_goals, same_order

from lepaute import fit
from lepaute.measure.archive import Archive
from lepaute.simulate import Hpl, Layers, predict


def test_a_goal_that_cannot_be_judged_is_not_met() -> None:
    assert at_most("error", 3.0, 3.0).met is True
    assert at_most("error", 3.0, 3.01).met is False
    assert at_most("error", 3.0, float("nan")).met is None
    assert status([at_most("a", 3.0, 1.0)]) == 0
    assert status([at_most("a", 3.0, 1.0), at_most("b", 3.0, float("nan"))]) == 1


def test_main_effects_of_a_balanced_design_are_those_worked_out_by_hand() -> None:
    levels = [(nb, depth, bcast, swap) for nb in (128, 256) for depth in (0, 1) for bcast in (0, 1) for swap in (0, 1)]
    frame = pandas.DataFrame(levels, columns=list(factorial.FACTORS))
    # Balanced: the sum of squares of a two-level factor is n * (half the difference of its means)^2.
    frame["time_s"] = 100.0 + 3.0 * (frame["block_size"] == 256) - 5.0 * frame["depth"] + 1.0 * frame["bcast"]
    frame["time_s"] += 0.25 * (-1.0) ** (frame["depth"] + frame["bcast"])  # an interaction: all that is left over
    found = factorial.main_effects(frame, "time_s")
    assert list(found["factor"]) == ["depth", "block_size", "bcast", "swap"]
    assert found["sum_of_squares"].to_numpy() == pytest.approx([16 * 2.5**2, 16 * 1.5**2, 16 * 0.5**2, 0.0], abs=1e-9)
    assert list(found["degrees"]) == [1, 1, 1, 1]
    # The residual has 16 - 5 degrees of freedom and the sum of squares 16 * 0.25^2.
    assert found["f"][0] == pytest.approx(100.0 / (1.0 / 11.0))


def test_only_pairs_that_the_published_times_tell_apart_have_an_order() -> None:
    published = pandas.Series({"a": 100.0, "b": 101.0, "c": 150.0})
    assert same_order(pandas.Series({"a": 11.0, "b": 10.0, "c": 20.0}), published) == (2, 2)
    assert same_order(pandas.Series({"a": 21.0, "b": 10.0, "c": 20.0}), published) == (1, 2)
    assert same_order(pandas.Series({"a": 20.0, "b": 20.0, "c": 20.0}), published) == (0, 2)  # equal is no order


def test_effects_must_have_the_published_sign_and_be_near() -> None:
    published = pandas.Series({"one": 20.0, "two": -3.0, "three": 0.5})
    near, small = pandas.Series({"one": 24.0, "two": -1.0, "three": -0.5}), pandas.Series({"one": 14.0, "two": 1.0})
    assert [goal.met for goal in effect_goals(near, published, "x")] == [True, True]
    assert [goal.met for goal in effect_goals(small, published[["one", "two"]], "x")] == [False, False]
    assert effect_goals(0.0 * near, published, "x")[0].met is False  # no effect at all has no direction


def test_dependent_p_values_are_combined_as_twice_their_median() -> None:
    assert combined([0.01, 0.02, 0.5]) == pytest.approx(0.04)
    assert combined([0.9]) == 1.0


def test_the_three_levels_add_up_to_the_data() -> None:
    data = simulated(dahu_like(), np.random.default_rng(1), nodes=4, days=5, missing=0.3)
    found = levels(data)
    whole = (
        found["between CPUs"][0][data.unit] + found["between days, common"][0][data.day] + found["between days, own"][0]
    )
    apart = data.values - whole  # the median of the CPUs, the same in each row
    assert np.ptp(apart, axis=0) == pytest.approx(0.0, abs=1e-18)


def blocks(rng: np.random.Generator, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Twelve blocks of four values that share most of their variance."""
    shared = rng.normal(size=(12, 2)).repeat(4, axis=0)
    return shared + 0.3 * rng.normal(size=(48, 2)) + shift, np.arange(12).repeat(4)


def test_p_is_large_for_blocks_of_one_law_though_rows_are_dependent_and_small_for_blocks_apart() -> None:
    rng = np.random.default_rng(5)
    small = sum(min(p_values(blocks(rng, 0.0), blocks(rng, 0.0), 1)) < 0.01 for _ in range(20))
    # three tests at 0.01 each: 0.6 expected; more than six of 20 once in a million
    assert small <= 6
    rng = np.random.default_rng(5)
    assert max(p_values(blocks(rng, 0.0), blocks(rng, 3.0), 1)) <= 0.002


PRINTED = "avx 1 fma 1 library 0f\na, depth 0 seed 1: time_s 0x1p+0 messages 3\nb seed 1: time_s 0x1p-1 messages 4\n"


def test_another_bit_a_missing_run_and_a_failed_one_count_as_differences() -> None:
    reference = {"a": "0x1p+0", "b": "0x1p-1", "c": "1"}
    assert differing(reference, reference) == []
    assert differing(reference, {"a": "0x1.0000000000001p+0", "b": "0x1p-1"}) == ["a", "c"]
    failed = {"a failed": "deadlock"}
    assert differing(failed, failed) == ["a failed"]


def test_what_was_skipped_is_named_and_does_not_count() -> None:
    reference = parsed(PRINTED)
    rows = [compared(reference, reference, ""), compared(reference, None, "skipped: no clang++")]
    assert rows[1]["first"] == "skipped: no clang++"
    assert judged(rows) == ("0 of 2", True)
    assert judged([*rows, {"runs": 2, "different": 1}]) == ("1 of 4", False)


def test_two_hundred_machines_are_fourteen_of_each_kind_and_combinations() -> None:
    machines = [laws.kinds_of(number, 1) for number in range(200)]
    assert all(machines.count((kind,)) == 14 for kind in laws.KINDS)
    combined = [kinds for kinds in machines if len(kinds) > 1]
    assert len(combined) == 200 - 14 * len(laws.KINDS)
    assert not any(set(kinds) >= laws.EXCLUSIVE for kinds in combined)


@pytest.mark.parametrize(
    "modes", [laws.half_normal(), laws.exponential(), laws.with_outliers(laws.half_normal(), 0.03, 0.02)[2]]
)
def test_noise_has_mean_zero_and_variance_one_as_the_engine_wants_it(modes: object) -> None:
    weight, mean, sd = (getattr(modes, name) for name in ("weight", "mean", "sd"))
    assert weight.sum() == pytest.approx(1.0)
    assert weight @ mean == pytest.approx(0.0, abs=1e-9)
    assert weight @ (mean**2 + sd**2) == pytest.approx(1.0)


def test_two_per_cent_of_calls_at_three_to_ten_times_lengthen_the_mean_by_eleven_per_cent() -> None:
    growth, relative_sd, _ = laws.with_outliers(laws.half_normal(), 0.03, 0.02)
    assert growth == pytest.approx(1.0 + 0.02 * 5.5)
    # E[(x - 1)^2] of a uniform in 3..10 is 5.5^2 + 49 / 12.
    assert (relative_sd * growth) ** 2 == pytest.approx(0.98 * 0.03**2 + 0.02 * (5.5**2 + 49 / 12) - 0.11**2, rel=1e-3)


def test_a_factor_on_all_cores_is_a_factor_on_the_run_of_one_process() -> None:
    law = laws.law_of(laws.Scatter(), np.random.default_rng(1))
    quiet, hpl = Layers(noise=False), Hpl(n=1000, nb=128)
    once, twice = (
        predict(hpl, true_platform(law, {(0, 0): factor, (0, 1): factor}, 1.0, 1), runs=1, layers=quiet)
        for factor in (1.0, 2.0)
    )
    assert twice.time_s.mean == pytest.approx(2.0 * once.time_s.mean)


@pytest.mark.slow
def test_the_archive_of_a_machine_without_effects_has_the_means_of_its_law(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    scatter = laws.Scatter(process=0.0, few=True)
    law, effects = laws.law_of(scatter, rng), laws.Effects(scatter, rng)
    table = Archive.open(write_calibration(tmp_path / "c.zip", law, effects, 1, rng)).table(
        "observations/kernels.parquet"
    )
    alone = table[table["probe"] != "hpl_steps_1x1_pair"]  # the others are crowded
    for kernel, calls in alone.groupby("kernel"):
        sizes = (calls[letter].to_numpy(dtype=float) for letter in ("m", "n", "k"))
        ratio = (calls["duration_s"] - CLOCK_S) / law.mean_s(str(kernel), *sizes)
        assert abs(ratio.mean() - 1.0) < 5.0 * law.relative_sd / len(calls) ** 0.5, kernel  # one seed of 10^5 fails


@pytest.mark.slow
def test_a_machine_of_two_nodes_is_calibrated_predicted_and_run(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    scatter = laws.scatter_of(("few", "network"))
    law, effects = laws.law_of(scatter, rng), laws.Effects(scatter, rng)
    path = write_calibration(tmp_path / "c.zip", law, effects, 2, rng)
    platform, _ = fit.platform_and_models(Archive.open(path), "made-up")
    hpl = Hpl(n=2000, nb=128, p=2, q=2)
    times = true_runs_s(hpl, law, effects, 2, 3, rng)
    assert len(set(times)) == 3
    assert predict(hpl, platform, runs=2).time_s.mean == pytest.approx(np.mean(times), rel=0.2)
