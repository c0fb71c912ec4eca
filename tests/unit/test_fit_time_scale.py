"""From a calibration with steps of HPL to the wandering of the platform that is fitted to it."""

from pathlib import Path

import numpy as np
import pandas
from support_fit import write_calibration

from lepaute.measure.archive import Archive
from lepaute.measure.fit import models
from lepaute.simulate import Hpl, predict
from lepaute.simulate.platform import dump_platform, load_platform, override

BLOCKS, STEPS, CALLS = 5, 8, 40


def steps(level_sd: float) -> pandas.DataFrame:
    """On two cores, in each block, steps of some tenths of a second by a core whose speed lasts for some of them."""
    rng = np.random.default_rng(20261127)
    rows = []
    for block in range(BLOCKS):
        for cpu in range(2):
            start_s, level = 100.0 * block, level_sd * rng.normal()
            for step in range(STEPS):
                m, n = np.floor(10 ** rng.uniform(2.5, 3.2, (2, CALLS)))
                level = 0.6 * level + 0.8 * level_sd * rng.normal()
                duration_s = (
                    (2.5e-10 * m * n * 128 + 1e-6) * np.exp(level) * (1 + 0.02 * np.abs(rng.normal(size=CALLS)))
                )
                starts_s = start_s + np.cumsum(duration_s) - duration_s
                start_s = float(starts_s[-1] + duration_s[-1])
                columns = {"position": 1, "design_row": step, "block": block, "cpu": cpu, "rank": cpu}
                sizes = {"m": m.astype(int), "n": n.astype(int), "k": 128}
                times = {"start_s": starts_s, "duration_s": duration_s, "clock_cost_s": 2e-8}
                rows.append(pandas.DataFrame({**columns, **sizes, **times}))
    names = {"kind": "hpl_step", "kernel": "dgemm", "host": "here", "probe": "hpl_steps_1x1"}
    return pandas.concat(rows, ignore_index=True).assign(**names)


def test_steps_that_differ_within_processes_are_a_wandering_and_no_effect_of_runs(tmp_path: Path) -> None:
    fitted = models(Archive.open(write_calibration(tmp_path / "calibration.zip", kernels=steps(0.08))))
    # 80 correlated steps know a standard deviation to about 12 %.
    assert 0.04 < fitted.wandering.relative_sd < 0.14
    assert 0.0 < fitted.wandering.relative_sd_error < 0.5
    assert fitted.days.cpu_relative_sd < 0.05
    assert fitted.days.source == "spread between 5 blocks of fresh processes"


def test_the_file_of_a_platform_has_the_wandering_and_predictions_draw_it(tmp_path: Path) -> None:
    wandering = "{relative_sd: 0.1, correlation_s: 0.5, relative_sd_error: 0.1, correlation_error: 0.2}"
    platform = override(load_platform("dahu"), {"wandering": wandering, "episodes": "null"})
    dump_platform(platform, tmp_path / "p.yaml")
    again = load_platform(tmp_path / "p.yaml")
    assert again.wandering == platform.wandering
    times = [predict(Hpl(n=1000), each, runs=2).time_s for each in (again, override(again, {"wandering": "null"}))]
    assert times[0].mean != times[1].mean
