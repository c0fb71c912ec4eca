"""Coefficients of each core and day from calibrations, made up from days that are known."""

from pathlib import Path

import numpy as np
import pandas
import pytest

from lepaute.cli.main import main
from lepaute.errors import FitError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.fit.population.coefficients import coefficients_of_archives
from lepaute.simulate.platform import load_platform

RATES = {("n1", 0): 2.0e-11, ("n1", 1): 2.2e-11, ("n2", 0): 3.0e-11, ("n2", 1): 3.3e-11}
INTERCEPT_S, GAMMA = 1e-6, 0.05  # the noise's sd over the mean


def kernels(day: float, rows: int = 4000, blocks: int = 5) -> pandas.DataFrame:
    """dgemm of all cores on a day that makes all slower by that factor; block b is slower by b % more."""
    rng = np.random.default_rng(7)
    m, n = np.floor(10 ** rng.uniform(1.5, 3.0, (2, rows))).astype(int)
    host, cpu, block = rng.choice(["n1", "n2"], rows), rng.integers(0, 2, rows), rng.integers(0, blocks, rows)
    rate = np.array([RATES[name, number] for name, number in zip(host, cpu, strict=True)])
    noise = (np.abs(rng.normal(size=rows)) - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
    duration = rate * day * (1 + 0.01 * block) * m * n * 128 * (1 + GAMMA * noise) + INTERCEPT_S
    columns = {"design_row": 0, "kind": "hpl_step", "position": 1, "kernel": "dgemm", "m": m, "n": n, "k": 128}
    columns |= {"start_s": np.cumsum(duration), "duration_s": duration, "rank": 0, "cpu": cpu, "host": host}
    columns |= {"block": block, "attempt": 0, "disturbed": False, "probe": "hpl_steps_1x1"}
    return pandas.DataFrame({**columns, "clock_cost_s": 0.0})


def archive(path: Path, table: pandas.DataFrame) -> Archive:
    machine = {"cpu_model": "made up", "node_cores": 2, "cores": [0, 1], "blas": {"core": "Haswell"}}
    metadata = {"kind": "calibration", "created": "2026-11-21T00:00:00+00:00", "lepaute_version": "0", "host": "n1,n2"}
    metadata |= {"machines": {"n1": machine, "n2": machine}, **machine, "warnings": [], "mpi": {}}
    with ArchiveWriter(path, metadata) as written:
        written.add_table("observations/kernels.parquet", table)
    return Archive.open(path)


def test_several_calibrations_are_as_many_days(tmp_path: Path) -> None:
    given = [archive(tmp_path / f"{number}.zip", kernels(day, blocks=1)) for number, day in enumerate((1.0, 1.1, 0.9))]
    data = coefficients_of_archives(given)
    assert (data.nodes, data.units, data.days) == (2, 4, 3)
    alpha = data.values[:, 0].reshape(4, 3)
    expected = np.array(list(RATES.values()))[:, None] * np.array([1.0, 1.1, 0.9])
    assert alpha == pytest.approx(expected, rel=0.02)  # 1000 calls of 5 % noise, 0.2 % and a tail
    assert data.values[:, 2] == pytest.approx(GAMMA * data.values[:, 0], rel=0.2)


def test_the_blocks_of_one_calibration_are_its_days(tmp_path: Path) -> None:
    data = coefficients_of_archives(archive(tmp_path / "one.zip", kernels(1.0)))
    assert data.days == 5
    alpha = data.values[:, 0].reshape(4, 5).mean(axis=0)
    assert alpha / alpha[0] == pytest.approx(1 + 0.01 * np.arange(5), rel=0.01)


def test_too_few_calls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FitError, match="no core has 10 calls of dgemm on a day"):
        coefficients_of_archives(archive(tmp_path / "few.zip", kernels(1.0, rows=20)))


def test_the_command_makes_a_population_of_calibrations(tmp_path, output_of):
    days = enumerate((1.0, 1.1, 0.9, 1.05))
    names = [str(archive(tmp_path / f"{number}.zip", kernels(day, blocks=1)).path) for number, day in days]
    assert "2 nodes, 1 group" in output_of("platform", "population", *names, "--of", "dahu", "-o", tmp_path / "p.yaml")
    population = load_platform(tmp_path / "p.yaml").population
    # all cores are slower and faster together: 1.0, 1.1, 0.9, 1.05 of a mean rate of 2.6e-11
    alpha_sd = (population.covariance_common[0][0]) ** 0.5
    assert alpha_sd == pytest.approx(2.6e-11 * np.std([1.0, 1.1, 0.9, 1.05], ddof=1), rel=0.1)


def test_a_table_among_archives_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platform", "population", "a.zip", "b.csv", "--of", "dahu"]) == 2
    assert "give one table, or archives (.zip) alone" in capsys.readouterr().err


def test_calls_with_other_contents_than_random_ones_do_not_count(tmp_path: Path) -> None:
    random = kernels(1.0).assign(content="random")
    constant = random.assign(content="constant", duration_s=0.5 * random["duration_s"])
    constant["start_s"] += 1.0 + random["start_s"].max()
    both = pandas.concat([random, constant], ignore_index=True)
    alone = coefficients_of_archives(archive(tmp_path / "random.zip", random))
    assert np.array_equal(coefficients_of_archives(archive(tmp_path / "both.zip", both)).values, alone.values)
