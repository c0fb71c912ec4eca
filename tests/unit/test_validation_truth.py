"""The made-up machines of validation/simulated_truth.py: archives and further runs follow one and the same law."""

from pathlib import Path

import numpy as np
import pytest
from truth.calibration import CLOCK_S, write_calibration
from truth.effects import Effects
from truth.kinds import EXCLUSIVE, KINDS, Scatter, kinds_of, scatter_of
from truth.law import exponential, half_normal, law_of, with_outliers
from truth.runs import true_platform, true_runs_s

from lepaute import fit
from lepaute.measure.archive import Archive
from lepaute.simulate import Hpl, Layers, predict


def test_two_hundred_machines_are_fourteen_of_each_kind_and_combinations() -> None:
    machines = [kinds_of(number, 1) for number in range(200)]
    assert all(machines.count((kind,)) == 14 for kind in KINDS)
    combined = [kinds for kinds in machines if len(kinds) > 1]
    assert len(combined) == 200 - 14 * len(KINDS)
    assert not any(set(kinds) >= EXCLUSIVE for kinds in combined)


@pytest.mark.parametrize("modes", [half_normal(), exponential(), with_outliers(half_normal(), 0.03, 0.02)[2]])
def test_noise_has_mean_zero_and_variance_one_as_the_engine_wants_it(modes: object) -> None:
    weight, mean, sd = (getattr(modes, name) for name in ("weight", "mean", "sd"))
    assert weight.sum() == pytest.approx(1.0)
    assert weight @ mean == pytest.approx(0.0, abs=1e-9)
    assert weight @ (mean**2 + sd**2) == pytest.approx(1.0)


def test_two_per_cent_of_calls_at_three_to_ten_times_lengthen_the_mean_by_eleven_per_cent() -> None:
    growth, relative_sd, _ = with_outliers(half_normal(), 0.03, 0.02)
    assert growth == pytest.approx(1.0 + 0.02 * 5.5)
    # E[(x - 1)^2] of a uniform in 3..10 is 5.5^2 + 49 / 12.
    assert (relative_sd * growth) ** 2 == pytest.approx(0.98 * 0.03**2 + 0.02 * (5.5**2 + 49 / 12) - 0.11**2, rel=1e-3)


def test_a_factor_on_all_cores_is_a_factor_on_the_run_of_one_process() -> None:
    law = law_of(Scatter(), np.random.default_rng(1))
    quiet, hpl = Layers(noise=False), Hpl(n=1000, nb=128)
    once, twice = (
        predict(hpl, true_platform(law, {(0, 0): factor, (0, 1): factor}, 1.0, 1), runs=1, layers=quiet)
        for factor in (1.0, 2.0)
    )
    assert twice.time_s.mean == pytest.approx(2.0 * once.time_s.mean)


@pytest.mark.slow
def test_the_archive_of_a_machine_without_effects_has_the_means_of_its_law(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    scatter = Scatter(process=0.0, few=True)
    law, effects = law_of(scatter, rng), Effects(scatter, rng)
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
    scatter = scatter_of(("few", "network"))
    law, effects = law_of(scatter, rng), Effects(scatter, rng)
    path = write_calibration(tmp_path / "c.zip", law, effects, 2, rng)
    platform, _ = fit.platform_and_models(Archive.open(path), "made-up")
    hpl = Hpl(n=2000, nb=128, p=2, q=2)
    times = true_runs_s(hpl, law, effects, 2, 3, rng)
    assert len(set(times)) == 3
    assert predict(hpl, platform, runs=2).time_s.mean == pytest.approx(np.mean(times), rel=0.2)
